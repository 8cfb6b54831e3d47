"""What the summary says: every warning where it is due, and none of them of a healthy run."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from numpy.random import default_rng

import temperance as tp
from temperance.results.arviz import to_datatree

CHAINS, DRAWS, PAIRS = 4, 400, 3
SHAPE = (CHAINS, DRAWS)


def made(method: str = "pt", **changes: Any) -> Any:
    """The tree of a healthy run, put together by hand, with `changes` by name."""
    rng = default_rng(0)
    parts: dict[str, Any] = {
        "x": rng.normal(size=(*SHAPE, 2)),
        "diverging": np.zeros(SHAPE, bool),
        "acceptance_rate": np.clip(rng.normal(0.85, 0.1, SHAPE), 0.0, 1.0),
        "swap_acceptance": np.full(PAIRS, 0.6),
        "round_trips": np.array([12, 9, 15, 11]),
        "log_evidence": np.array([1.0, 1.01]),
        "error": np.array([0.02, 0.02]),
        "log_weight": rng.normal(size=SHAPE),
        "kish": 600.0,
        "base_z": 1.0,
        "base_checks": 4,
        "base_heavy": 0,
        "attrs": {},
    }
    assert changes.keys() <= parts.keys()
    p = parts | changes
    names = ("diverging", "acceptance_rate", *(("log_weight",) if method != "pt" else ()))
    trips = {
        "round_trips": (("chain",), p["round_trips"]),
        "beta": (("rung",), np.linspace(0, 1, PAIRS + 1)),
    }
    of_swaps = {
        "swap_acceptance": (("pair",), p["swap_acceptance"]),
        "barrier": ((), 1.0),
    }
    of_travel = {
        name: ((), p[name]) for name in ("kish", "base_z", "base_checks", "base_heavy")
    } | {"base_error": ((), 0.1), "log_zeta": ((), 0.0), "visits": (("bin",), np.full(10, 0.1))}
    if method != "pt":
        p["log_evidence"], p["error"] = p["log_evidence"][:1], p["error"][:1]
    estimators = ["mbar", "stepping_stones"] if method == "pt" else ["weights"]
    evidence = {
        "estimator": (("estimator",), estimators),
        "log_evidence": (("estimator",), p["log_evidence"]),
        "error": (("estimator",), p["error"]),
    }
    return to_datatree(
        {"x": p["x"]}, {name: p[name] for name in names},
        trips | (of_swaps if method == "pt" else of_travel), evidence, None, None,
        {"method": method, "stopped": "", "seconds": 1.0, "num_evaluations": 1e5} | p["attrs"],
    )  # fmt: skip


def stuck() -> np.ndarray:
    x = np.array(made()["posterior"]["x"])
    x[3, :, 0] += 6.0
    return x


def slow() -> np.ndarray:
    """Chains that agree, and have been at fifteen places each."""
    x = np.array(made()["posterior"]["x"])
    places = default_rng(1).normal(size=(CHAINS, 15))
    x[..., 0] = 0.1 * x[..., 0] + np.repeat(places, 27, axis=1)[:, :DRAWS]
    return x


def neck() -> dict[str, np.ndarray]:
    """Acceptance that falls towards the low end of the second variable."""
    x = np.array(made()["posterior"]["x"])
    rates = 0.9 / (1 + np.exp(-3.0 * (x[..., 1] + 1.2)))
    led = np.concatenate([rates[:, :1], rates[:, :-1]], axis=1)
    return {"acceptance_rate": led, "diverging": led < 0.05}


def scattered(share: float) -> np.ndarray:
    return default_rng(2).random(SHAPE) < share


def early() -> np.ndarray:
    return scattered(0.1) & (np.arange(DRAWS) < 0.05 * DRAWS)


WARNINGS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "stuck": ({"x": stuck()}, ["chains disagree: R-hat of x[0]", "few independent draws"]),
    "slow": ({"x": slow()}, ["few independent draws: bulk ESS of x[0]"]),
    "one chain": (
        {
            "x": made()["posterior"]["x"].values[:1],
            "diverging": np.zeros((1, DRAWS), bool),
            "acceptance_rate": np.ones((1, DRAWS)),
            "round_trips": np.array([9]),
        },
        ["one chain cannot be compared"],
    ),
    "neck": (neck(), ["chains turn back at the low end of x[1]"]),
    "divergences of a short run": (
        {
            "x": made()["posterior"]["x"].values[:, :200],
            "acceptance_rate": np.ones((CHAINS, 200)),
            "diverging": scattered(0.05)[:, :200],
        },
        ["divergent trajectories at the target, in"],
    ),
    "few round trips": ({"round_trips": np.array([3, 4, 2, 5])}, ["few round trips"]),
    "no round trip in a chain": ({"round_trips": np.array([30, 20, 0, 25])}, ["few round trips"]),
    "hardly swap": (
        {"round_trips": np.array([1, 0, 2, 1]), "swap_acceptance": np.array([0.6, 0.02, 0.6])},
        ["rungs 1 and 2 hardly swap", "few round trips"],
    ),
    "estimates": ({"log_evidence": np.array([1.0, 1.4])}, ["two estimates of log evidence"]),
    "no error": ({"error": np.array([np.inf, 0.1])}, ["log evidence has no error bar"]),
    "large error": ({"error": np.array([0.8, 0.7])}, ["log evidence has a standard error of 0.8"]),
    "out of time": ({"attrs": {"stopped": "max_seconds"}}, ["stopped early (max_seconds)"]),
    "interrupted": ({"attrs": {"stopped": "interrupted"}}, ["stopped early (interrupted)"]),
}

NOTES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "divergences": ({"diverging": scattered(0.03)}, ["divergent trajectories at the target, in"]),
    "early": ({"diverging": early()}, ["all of them in the first tenth"]),
    "impossible": ({"attrs": {"num_impossible": 12.0}}, ["12 proposals"]),
    "enough": ({"attrs": {"stopped": "target_ess"}}, ["at the effective size asked for"]),
    "narrow pair": ({"swap_acceptance": np.array([0.6, 0.02, 0.6])}, ["rungs 1 and 2 hardly swap"]),
    "heavy tails": (
        {"x": default_rng(3).standard_cauchy(size=(*SHAPE, 2))}, ["heavy tails: x["]
    ),
    "some draws": ({"x": np.repeat(made()["posterior"]["x"].values[:, ::8], 8, axis=1)},
                   ["means are known to 0.0"]),
    "small gap": (
        {"log_evidence": np.array([1.0, 1.03]), "error": np.array([0.002, 0.002])},
        ["take that for the error"],
    ),
}  # fmt: skip

WEIGHTED: dict[str, tuple[dict[str, Any], list[str], list[str]]] = {
    "concentrated": ({"kish": 8.0}, ["weights are concentrated"], []),
    "few round trips": ({"round_trips": np.array([1, 2, 0, 3])}, ["few round trips"], []),
    "base": ({"base_z": 9.0}, ["base's own moments come out wrong"], []),
    "large error": ({"error": np.array([0.8, 0.7])}, ["log evidence has a standard error"], []),
    "no error": ({"error": np.array([np.nan, 0.7])}, ["log evidence has no error bar"], []),
    "heavy base": ({"base_heavy": 2}, [], ["2 variables have such heavy tails"]),
}


def assert_said(sentences: list[str], wanted: list[str]) -> None:
    """Each sentence holds what is wanted of it, in this order, and there are no others."""
    assert len(sentences) == len(wanted), sentences
    for sentence, words in zip(sentences, wanted, strict=True):
        assert words in sentence


@pytest.mark.parametrize("method", ["pt", "gibbs-ct"])
def test_a_healthy_run_gives_no_warning_and_no_note(method: str):
    said = tp.summary(made(method))
    assert (said.warnings, said.notes) == ([], [])
    assert "No warnings." in str(said)
    assert "Note" not in str(said)
    assert "<li>No warnings.</li>" in said._repr_html_()
    assert "Notes" not in said._repr_html_()


@pytest.mark.parametrize("case", WARNINGS)
def test_each_warning_is_given_where_it_is_due(case: str):
    changes, wanted = WARNINGS[case]
    said = tp.summary(made(**changes))
    assert_said(said.warnings, wanted)
    assert all(f"Warning: {words}" in str(said) for words in said.warnings)


@pytest.mark.parametrize("case", NOTES)
def test_a_fact_is_a_note(case: str):
    changes, wanted = NOTES[case]
    said = tp.summary(made(**changes))
    assert said.warnings == []
    assert_said(said.notes, wanted)
    assert all(f"Note: {words}" in str(said) for words in said.notes)
    assert "<b>Notes</b>" in said._repr_html_()


@pytest.mark.parametrize("case", WEIGHTED)
def test_what_is_said_of_weighted_draws(case: str):
    changes, warnings, notes = WEIGHTED[case]
    said = tp.summary(made("gibbs-ct", **changes))
    assert_said(said.warnings, warnings)
    assert_said(said.notes, notes)


def test_what_html_shows_is_escaped():
    tree = made(x=stuck()).assign({})
    tree["posterior"] = tree["posterior"].dataset.rename({"x": "<x>"})
    assert "&lt;x&gt;[0]" in tp.summary(tree)._repr_html_().split("Warnings")[1]


# -- real runs -------------------------------------------------------------------------------------


def funnel(x: Any) -> Any:
    """Neal's: the last nine are normal with variance exp of the first, whose sd is 3."""
    return -0.5 * ((x[0] / 3) ** 2 + jnp.sum(x[1:] ** 2) * jnp.exp(-x[0]) + 9 * x[0])


def unequal(x: Any) -> Any:
    """Two modes, one of which is five times narrower."""
    wide = -0.5 * jnp.sum((x + 2.0) ** 2)
    narrow = -0.5 * jnp.sum(((x - 2.0) / 0.2) ** 2) - 2 * np.log(0.2)
    return jnp.logaddexp(wide, narrow)


FUNNEL = tp.Target(funnel, base=tp.Gaussian([0.0] * 10, [9.0] + [100.0] * 9))


@pytest.mark.slow
def test_a_funnel_is_warned_of_by_name(seed: int):
    said = tp.summary(tp.sample(FUNNEL, "pt", seed=seed, progress=False))
    words = [w for w in said.warnings if "chains turn back at the low end of x[0]:" in w]
    assert len(words) == 1
    assert "non-centred" in words[0]


@pytest.mark.slow
def test_two_modes_of_unequal_widths_are_not_warned_of(seed: int):
    target = tp.Target(unequal, base=tp.Gaussian([0.0, 0.0], 9.0))
    tree = tp.sample(target, "pt", num_warmup=300, num_draws=500, seed=seed, progress=False)
    said = tp.summary(tree)
    assert not [words for words in said.warnings if "diverg" in words or "turn back" in words]
    share = float((tree["posterior"]["x"].sum("x_dim_0") > 0).mean())
    assert abs(share - 0.5) < 0.2
