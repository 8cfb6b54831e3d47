"""Ensembles of states with the same slow variables: invariance, caches, averages over members."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
from jaxtyping import Array
from tests.moves.fast_slow import broken_ensemble as broken

import temperance as tp
from temperance._types import Key
from temperance.ladders.ladder import SingleRung
from temperance.moves.fast_slow import base_measures
from temperance.moves.fast_slow.ensemble import Ensemble, ensemble
from temperance.moves.move import AbstractMove
from temperance.samplers.continuous import GibbsTempering
from temperance.samplers.plain import Plain, PlainState
from temperance.samplers.simulated import SimulatedTempering
from temperance.testing import invariance, reversibility

# Two modes, of which one is higher and narrower, with slow and fast variables that know each other.
CENTRES = np.array([[-1.0, 0.6, -0.5], [1.0, -0.5, 0.8]])
ROOTS = np.array(
    [
        [[0.8, 0.0, 0.0], [0.4, 0.6, 0.0], [0.0, 0.3, 0.7]],
        [[0.6, 0.0, 0.0], [-0.3, 0.5, 0.0], [0.2, 0.0, 0.9]],
    ]
)
SHARES = np.array([0.6, 0.4])
# Of the fast variables, wider than the posterior.
MEASURE = tp.Gaussian(np.zeros(2), np.array([1.4, 1.6]) ** 2)
PARAMS = tp.Params(jnp.asarray([[0.9]]), jnp.asarray([[1.2, 0.9, 0.9]]))


def log_density(position: Any) -> Array:
    x = jnp.concatenate([position["slow"], position["fast"]])

    def one(centre: Array, root: Array) -> Array:
        z = jax.scipy.linalg.solve_triangular(root, x - centre, lower=True)
        return -0.5 * jnp.sum(z**2) - jnp.sum(jnp.log(jnp.diagonal(root)))

    logs = jax.vmap(one)(jnp.asarray(CENTRES), jnp.asarray(ROOTS))
    return jax.scipy.special.logsumexp(logs + jnp.log(SHARES))


LADDER = SingleRung(log_density)
SCALE = jnp.asarray([0.7, 0.7])


class Start(eqx.Module):
    """An exact draw of the target, as a chain begins; a chain may remember."""

    sampler: Plain

    def __call__(self, key: Key) -> PlainState:
        key_mode, key_noise = jax.random.split(key)
        mode = jax.random.choice(key_mode, 2, p=jnp.asarray(SHARES))
        noise = jax.random.normal(key_noise, (3,))
        x = jnp.asarray(CENTRES)[mode] + jnp.asarray(ROOTS)[mode] @ noise
        return self.sampler.init({"slow": x[:1], "fast": x[1:]})


class Step(eqx.Module):
    sampler: Plain

    def __call__(self, key: Key, state: PlainState) -> PlainState:
        return self.sampler.step(key, state)[0]


def statistics(state: PlainState) -> Array:
    x = state.point.position
    slow, fast = x["slow"][0], x["fast"]
    sums = jnp.stack([slow, fast[0], fast[1]])
    crossed = jnp.stack([slow * fast[0], fast[0] * fast[1], slow * fast[1]])
    carried = state.point.components
    return jnp.concatenate([jnp.tanh(sums), jnp.tanh(crossed), jnp.tanh(0.3 * carried + 1.0)])


def verdict_of(move: AbstractMove, seed: int, **options: Any) -> Any:
    sampler = Plain(LADDER, move, PARAMS)
    return invariance(
        Step(sampler), Start(sampler), statistics, seed=seed, num_replicates=2048, **options
    )


MEASURES = {
    "independent": base_measures.independent(MEASURE),
    "exchangeable": base_measures.exchangeable([0.7, 0.7]),
    "grid": base_measures.grid((1.8, 2.6), [0.7, 0.7]),
    "walk": base_measures.markov([0.5, 0.5]),
    "autoregression": base_measures.markov([1.2, 1.2], [0.2, 0.1], 0.8),
    "constellation": base_measures.constellation([[0, 0], [0.5, -1], [1, 1], [-0.3, 0.7]]),
}
SLOW = ("walk", "autoregression", "constellation")


def members_of(name: str) -> Any:
    return jax.tree.map(jnp.asarray, MEASURES[name])


@pytest.mark.parametrize("shift", [False, True], ids=["fixed", "shifted"])
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] if n in SLOW else []) for n in MEASURES]
)
def test_every_measure_leaves_the_target_invariant(name: str, shift: bool, seed: int):
    move = ensemble("fast", 4, members_of(name), "jointly", shift=shift)
    assert verdict_of(move, seed).passed


TWINS = {
    "selected by pi": (broken.WeighedByTheTarget(MEASURE), False),
    "shifted for nothing": (broken.ShiftedForNothing(MEASURE), True),
    "around the current one": (broken.AroundTheCurrentOne(SCALE), False),
    "always the same cell": (broken.AlwaysTheSameCell((1.8, 2.6), SCALE), False),
}


@pytest.mark.parametrize("twin", list(TWINS))
def test_the_four_failures_are_seen(twin: str, seed: int):
    measure, shift = TWINS[twin]
    measure = jax.tree.map(jnp.asarray, measure)
    move = broken.measured(ensemble("fast", 4, "exchangeable", "jointly", shift=shift), measure)
    assert not verdict_of(move, seed).lawful


@pytest.mark.parametrize("kind", [broken.StaleCache, broken.UniformSelection])
def test_slips_of_the_move_are_seen(kind: type[Ensemble], seed: int):
    move = ensemble("fast", 4, members_of("grid"), "jointly")
    assert not verdict_of(broken.slipped(move, kind), seed).lawful


@pytest.mark.parametrize(
    "update",
    [
        "one at a time",
        pytest.param(tp.hmc(3), id="hmc"),
        pytest.param(tp.slice_sampling(), id="slice", marks=pytest.mark.slow),
        pytest.param(tp.nuts(max_num_doublings=3), id="nuts", marks=pytest.mark.slow),
    ],
)
def test_any_kernel_updates_the_ensemble(update: Any, seed: int):
    move = ensemble("fast", 4, members_of("exchangeable"), update, times=2)
    assert verdict_of(move, seed).passed


@pytest.mark.parametrize("name", ["independent", "grid"])
def test_one_at_a_time_with_a_shift(name: str, seed: int):
    move = ensemble("fast", 4, members_of(name), "one at a time", shift=True)
    assert verdict_of(move, seed).passed


def test_a_joint_update_is_reversible(seed: int):
    move = ensemble("fast", 4, members_of("grid"), "jointly")
    sampler = Plain(LADDER, move, PARAMS)
    assert move.reversible
    assert reversibility(Step(sampler), Start(sampler), statistics, seed=seed).passed
    assert not ensemble("fast", 4).reversible
    assert ensemble("fast", 4).reversal() is not None


# -- caches --------------------------------------------------------------------------------------


def test_a_remembered_chain_goes_where_a_forgetful_one_goes(key: Key):
    """The cache saves an evaluation a step and changes nothing."""
    move = ensemble("fast", 4, members_of("grid"), "jointly")
    sampler = Plain(LADDER, move, PARAMS)
    position = {"slow": jnp.zeros(1), "fast": jnp.zeros(2)}
    kept = sampler.init(position)
    bare = PlainState(kept.point._replace(memory=None))
    for i in range(5):
        one = jax.random.fold_in(key, i)
        kept, info = sampler.step(one, kept)
        bare, info_bare = sampler.step(one, bare)
        assert int(info_bare.num_evaluations[0]) == int(info.num_evaluations[0]) + 1 == 2
        for a, b in zip(*map(jax.tree.leaves, (kept.point[:2], bare.point[:2])), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)
    assert bare.point.memory is None
    carried = LADDER.evaluate(kept.point.position, gradient=False).components
    np.testing.assert_allclose(kept.point.components, carried, rtol=1e-12)


def test_members_share_one_factorisation(key: Key):
    """However many members there are, the program of a step factors one matrix for a proposal."""
    points = np.random.default_rng(3).normal(size=(6, 1))

    def density(position: Any) -> Array:
        squares = (points - points.T) ** 2 * jnp.exp(-2 * position["log_length"])
        matrix = jnp.exp(-squares) + 0.1 * jnp.eye(6)
        root = jnp.linalg.cholesky(matrix)
        z = jax.scipy.linalg.solve_triangular(root, jnp.ones(6), lower=True)
        logs = jnp.sum(jnp.log(jnp.diagonal(root))) + 6 * position["log_scale"]
        square = jnp.sum(z**2) * jnp.exp(-2 * position["log_scale"])
        return -logs - 0.5 * square - 0.5 * position["log_scale"] ** 2

    move = ensemble("log_scale", 7, base_measures.Exchangeable(jnp.ones(1)), "jointly")
    sampler = Plain(SingleRung(density), move, tp.Params(jnp.ones((1, 1)), jnp.ones((1, 2))))
    state = sampler.init({"log_length": jnp.zeros(()), "log_scale": jnp.zeros(())})
    text = jax.jit(lambda key, state: sampler.step(key, state)).lower(key, state).as_text()
    assert "6x6" in text
    assert "7x6x6" not in text


# -- a run ---------------------------------------------------------------------------------------

Y = np.array([0.3, 1.2, -0.4])
NORMAL = np.array([1.0, 1.0, 1.5])
COVARIANCE = np.linalg.inv(np.eye(3) + 3 * np.outer(NORMAL, NORMAL))
MEAN = COVARIANCE @ (NORMAL * Y.sum())


def regression(**options: Any) -> tp.Problem:
    def draw(key: Key) -> Any:
        x = jax.random.normal(key, (3,))
        return {"a": x[:2], "f": x[2]}

    return tp.Problem(
        lambda p: -0.5 * jnp.sum(p["a"] ** 2) - 0.5 * p["f"] ** 2,
        lambda p, data: -0.5 * (data["y"] - jnp.sum(p["a"]) - 1.5 * p["f"]) ** 2,
        {"y": Y},
        draw,
        **options,
    )


def check_the_mean(tree: Any) -> None:
    found = tp.expectation(tree)
    off = np.append(
        (found["a"].value - MEAN[:2]) / found["a"].error,
        (found["f"].value - MEAN[2]) / found["f"].error,
    )
    assert np.abs(off).max() < 4.5


def test_the_prior_is_the_measure_of_independent_members(seed: int):
    tree = tp.sample(
        regression(), "plain", ensemble("f", 5, "independent"), seed=seed, num_draws=800,
        num_warmup=200, progress=False,
    )  # fmt: skip
    check_the_mean(tree)
    group = tree["ensemble"].dataset
    assert set(group.data_vars) == {"f", "log_weight"}
    assert group["f"].dims == ("chain", "draw", "member")
    np.testing.assert_allclose(np.exp(group["log_weight"]).sum("member"), 1.0)
    # The draw is one of its members.
    nearest = np.abs(group["f"] - tree["posterior"]["f"]).min("member")
    assert float(nearest.max()) == 0.0


def test_an_average_over_members_varies_less(seed: int):
    tree = tp.sample(
        regression(), "plain", ensemble("f", 16, "grid"), seed=seed, num_draws=1000,
        num_warmup=200, progress=False,
    )  # fmt: skip
    averaged, selected = tp.expectation(tree), tp.expectation(tree, members=False)
    assert averaged["f"].error < selected["f"].error
    np.testing.assert_array_equal(averaged["a"].value, selected["a"].value)
    check_the_mean(tree)
    square = tp.expectation(tree, lambda f, **_: f**2)
    wanted = COVARIANCE[2, 2] + MEAN[2] ** 2
    assert abs(square.value - wanted) < 4.5 * square.error


def test_what_members_decide_is_kept_by_its_constrained_name():
    def constrain(p: Any) -> dict[str, Array]:
        return {"scale": jnp.exp(p["f"]), "total": jnp.sum(p["a"])}

    tree = tp.sample(
        regression(constrain=constrain), "plain", ensemble("f", 3, "markov"), num_draws=20,
        num_warmup=20, progress=False,
    )  # fmt: skip
    group = tree["ensemble"].dataset
    assert set(group.data_vars) == {"f", "scale", "log_weight"}
    np.testing.assert_allclose(np.exp(group["f"]), group["scale"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "update"),
    [
        ("pt", "one at a time"),
        pytest.param("tt", "one at a time", marks=pytest.mark.slow),
        pytest.param("st", "jointly", marks=pytest.mark.slow),
        pytest.param("gibbs-ct", "jointly", marks=pytest.mark.slow),
        pytest.param("joint-ct", "jointly", marks=pytest.mark.slow),
    ],
)
def test_ensembles_on_ladders(method: str, update: str, seed: int):
    options = {"base": "prior"} if method.endswith("ct") or method == "st" else {}
    tree = tp.sample(
        regression(), method, ensemble("f", 4, "grid", update), seed=seed, num_draws=400,
        num_warmup=300, progress=False, **options,
    )  # fmt: skip
    check_the_mean(tree)
    # Members have their own weights for the base as well, which is the prior.
    if options:
        found = tp.expectation(tree, lambda f, **_: f**2, under="base")
        assert abs(found.value - 1.0) < 4.5 * found.error


def sampled_members(move: Ensemble, seed: int, method: str) -> Any:
    options = {"sweeps_per_draw": 1} if method == "pt" else {}
    return tp.sample(
        regression(), method, move, seed=seed, num_draws=50, num_warmup=50, progress=False,
        betas=(0.0, 0.1, 1.0), **options,
    )  # fmt: skip


def wrong_weights(tree: Any, late: int = 0) -> float:
    """How far stored weights are from those of the target, at each draw's own slow variables.

    `late` takes the slow variables of an earlier draw instead.
    """
    slow = np.roll(np.asarray(tree["posterior"]["a"]), late, axis=1)[:, :, None]
    f, stored = (np.asarray(tree["ensemble"][name]) for name in ("f", "log_weight"))
    x = np.concatenate([np.broadcast_to(slow, (*f.shape, 2)), f[..., None]], axis=-1) - MEAN
    logs = -0.5 * np.einsum("...i,ij,...j", x, np.linalg.inv(COVARIANCE), x)
    wanted = logs - scipy.special.logsumexp(logs, axis=-1, keepdims=True)
    return float(np.abs(np.exp(stored) - np.exp(wanted)).max())


def test_members_of_a_ladder_are_those_of_the_target(seed: int):
    move = ensemble("f", 16, "grid")
    assert wrong_weights(sampled_members(move, seed, "pt")) < 1e-8
    slipped = broken.slipped(move, broken.KeptAcrossASwap)
    assert wrong_weights(sampled_members(slipped, seed, "pt")) > 0.1


def test_members_of_a_transition_are_those_of_the_target(seed: int):
    tree = sampled_members(ensemble("f", 16, "grid"), seed, "tt")
    assert wrong_weights(tree) < 1e-8
    # Had the transition come after the move, members would belong to another draw's slow variables.
    assert wrong_weights(tree, late=1) > 0.1


BETAS = np.array([0.0, 0.2, 1.0])


def travelling(move: Ensemble, kind: str) -> Any:
    """A sampler that walks through temperatures, by hand."""

    def log_likelihood(p: Any) -> Array:
        return -0.5 * jnp.sum((Y - jnp.sum(p["a"]) - 1.5 * p["f"]) ** 2)

    ladder = tp.GeometricLadder(regression().log_prior, log_likelihood, BETAS)
    params = tp.Params(jnp.full((3, 1), 0.9), jnp.full((3, 3), 0.7))
    if kind == "st":
        return SimulatedTempering(ladder, move, params, jnp.asarray([0.0, 0.5, 1.0]))
    return GibbsTempering(ladder, move, params, jnp.asarray([0.0, -1.0, -2.0]))


def strayed_members(move: Ensemble, kind: str, seed: int) -> float:
    """How far what members count for is from the product of its two parts, taken one by one."""
    sampler = travelling(move, kind)
    state = sampler.init({"a": jnp.zeros(2), "f": jnp.zeros(())})
    step = eqx.filter_jit(sampler.step)
    worst = 0.0
    for key in jax.random.split(jax.random.key(seed), 20):
        state, _ = step(key, state)
        kept = sampler.snapshot(state)
        at = (
            sampler.ladder.at(state.rung)
            if kind == "st"
            else sampler.ladder.between(state.beta, 1.0 - state.beta)
        )
        points = [
            sampler.ladder.evaluate(state.point.position | {"f": f[0]}, gradient=False)
            for f in kept["members"]
        ]
        # A grid's members are all as likely: the rung's density alone selects.
        selected = jax.nn.log_softmax(jnp.stack([at.log_density(point) for point in points]))
        for name in ("log_weight", "log_weight_base"):
            counts = jnp.stack([sampler.weigh(point.components)[name] for point in points])
            worst = max(worst, float(np.abs(kept[f"member_{name}"] - selected - counts).max()))
    return worst


@pytest.mark.parametrize("kind", ["st", pytest.param("gibbs-ct", marks=pytest.mark.slow)])
def test_members_count_by_their_own_weights(kind: str, seed: int):
    move = ensemble("f", 6, "grid", "jointly")
    assert strayed_members(move, kind, seed) < 1e-8
    assert strayed_members(broken.slipped(move, broken.WeighedAsOne), kind, seed) > 0.1


def test_a_killed_run_goes_on_with_the_same_draws(tmp_path: Any):
    arguments: dict[str, Any] = {"num_warmup": 30, "progress": False, "num_chains": 2}
    move = ensemble("f", 4, "grid")
    whole = tp.sample(regression(), "plain", move, num_draws=60, **arguments)
    path = tmp_path / "run"
    tp.sample(regression(), "plain", move, num_draws=25, checkpoint=path, **arguments)
    rest = tp.sample(regression(), "plain", move, num_draws=60, checkpoint=path, **arguments)
    assert whole["posterior"].dataset.identical(rest["posterior"].dataset)
    assert whole["ensemble"].dataset.identical(rest["ensemble"].dataset)


# -- wrong calls ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"fast": "g"}, "fast leaf"),
        ({"fast": ["a", "f"]}, "none is left to be slow"),
        ({"fast": None}, "does not say which"),
        ({"fast": "f", "members": 1}, "members"),
        ({"fast": "f", "base": "cubic"}, "base measure"),
        ({"fast": "a", "members": 5, "base": "grid"}, "power of 2"),
        ({"fast": "f", "base": base_measures.constellation([[0, 1], [1, 0]])}, "constellation"),
        ({"fast": "f", "update": "sideways"}, "update"),
        ({"fast": "f", "update": tp.mint(batch_size=2)}, "update"),
    ],
)
def test_wrong_ensembles_are_refused(options: dict[str, Any], words: str):
    with pytest.raises(tp.TemperanceError, match=words):
        tp.sample(regression(), "plain", ensemble(**options), num_draws=5, progress=False)


def test_a_prior_that_is_no_product_is_refused():
    problem = regression()
    bound = tp.Problem(
        lambda p: problem.log_prior(p) - 0.1 * p["f"] * p["a"][0],
        problem.terms,
        problem.data,
        problem.draw_prior,
    )
    with pytest.raises(tp.TemperanceError, match="depends on the slow ones"):
        tp.sample(bound, "plain", ensemble("f", base="independent"), progress=False)


def test_subsamples_are_refused():
    with pytest.raises(tp.TemperanceError, match="nested subsamples"):
        tp.sample(regression(), "spt", ensemble("f"), num_draws=5, progress=False)
