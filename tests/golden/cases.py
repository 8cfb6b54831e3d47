"""The runs that golden draws are recorded of: public names alone, so that all versions can run
them.

Each case returns what the run gave: a tree, or a dictionary of arrays and text.
"""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import temperance as tp

SHORT: dict[str, Any] = {"num_draws": 24, "num_warmup": 60, "num_chains": 2, "progress": False}
CASES: dict[str, Callable[[], Any]] = {}


def case(function: Callable[[], Any]) -> Callable[[], Any]:
    """Record what this function returns, under its name."""
    CASES[function.__name__] = function
    return function


def call(name: str, *args: Any, **options: Any) -> None:
    """Record a call of `sample`; a first argument that is a function makes the problem."""
    CASES[name] = lambda: tp.sample(args[0](), *args[1:], **(SHORT | options))


# -- problems --------------------------------------------------------------------------------------

ROWS = np.linspace(-1.0, 2.0, 24)


def log_prior(x):
    return -0.5 * jnp.sum(x["mean"] ** 2) - jnp.log(2 * jnp.pi)


def terms(x, rows):
    return -0.5 * (rows - jnp.sum(x["mean"])) ** 2 - 0.5 * np.log(2 * np.pi)


def draw_prior(key):
    return {"mean": jax.random.normal(key, (2,))}


def rows(**changes: Any) -> tp.Problem:
    return tp.Problem(log_prior, terms, ROWS, draw_prior, **changes)


def two_modes(x):
    left, right = jnp.sum((x + 4.0) ** 2), jnp.sum((x - 4.0) ** 2)
    return jnp.logaddexp(jnp.log(0.3) - 0.5 * left, jnp.log(0.7) - 0.5 * right)


def modes() -> tp.Target:
    return tp.Target(two_modes, base=tp.Gaussian([0.0, 0.0], 25.0))


def bare() -> tp.Target:
    return tp.Target(two_modes, example=jnp.zeros(2))


def constrained() -> tp.Problem:
    return rows(
        constrain=lambda x: {"total": jnp.sum(x["mean"]), "mean": x["mean"]},
        dims={"mean": ["side"]}, coords={"side": ["left", "right"]},
    )  # fmt: skip


def smooth() -> tp.Problem:
    inputs = np.random.default_rng(1).uniform(-2.0, 2.0, (24, 2))
    return tp.gaussian_process(inputs, np.sin(2.0 * inputs[:, 0]))


def fast() -> tp.Problem:
    inputs = np.random.default_rng(2).uniform(-2.0, 2.0, (16, 1))
    return tp.fast_gaussian_process(inputs, np.sin(2.0 * inputs[:, 0]), route="spectral")


DESIGN = np.random.default_rng(3).normal(size=(60, 2))
LABELS = (np.random.default_rng(4).random(60) < 1 / (1 + np.exp(-DESIGN @ [1.0, -1.0]))) * 1.0


def logistic_terms(x, rows):
    design, label = rows
    eta = design @ x
    return label * eta - jax.nn.softplus(eta)


def logistic() -> tp.Problem:
    return tp.Problem(
        lambda x: -0.5 * jnp.sum(x**2), logistic_terms, (DESIGN, LABELS),
        lambda key: jax.random.normal(key, (2,)),
    )  # fmt: skip


def on_disk(folder: str) -> tp.Problem:
    for name, values in (("design", DESIGN), ("label", LABELS)):
        np.save(Path(folder) / f"{name}.npy", values)
    parts = tuple(tp.open_rows(Path(folder) / f"{name}.npy") for name in ("design", "label"))
    whole = logistic()
    return tp.Problem(whole.log_prior, whole.terms, parts, whole.draw_prior)


# -- methods ---------------------------------------------------------------------------------------

STRATA = np.arange(24) % 2
call("plain", rows, "plain")
call("plain_without_base", bare, "plain", "nuts")
call("no_warmup", rows, "plain", "metropolis", num_warmup=0)
call("pt", rows)
call("pt_target", modes, "pt")
call("pt_one_chain", modes, "pt", "metropolis", num_chains=1)
call("pt_betas_seo", modes, "pt", "metropolis", betas=[0.0, 0.1, 0.4, 1.0], scheme="seo")
call("pt_hottest_sweep", modes, "pt", "mala", hottest=0.05, scheme="sweep", num_rungs=5)
call("pt_rungs_sweeps", rows, "pt", "slice", num_rungs=3, sweeps_per_draw=3, swaps_per_sweep=1)
call("pt_single_precision", rows, "pt", "metropolis", precision="single", num_rungs=4)
call("pt_no_warmup", rows, "pt", "metropolis", num_warmup=0, num_rungs=4)
call("pt_constrained", constrained, "pt", "metropolis", num_rungs=4, seed=3)
call("pt_from_modes", modes, "pt", "metropolis", base="modes")
call("pt_from_modes_rows", rows, "pt", base="modes", num_rungs=3)
call("auto", modes)
call("auto_rows", rows, move="metropolis")
call("auto_options", modes, "auto", "metropolis", num_rungs=3)
call("auto_without_base", bare, "auto", "metropolis")
call("spt", rows, "spt", "metropolis")
call("spt_sizes", rows, "spt", "metropolis", sizes=[0, 6, 24])
call("spt_refresh", rows, "spt", sizes=[4, 24], refresh=2)
call("spt_strata", rows, "spt", "mala", sizes=[0, 6, 24], strata=STRATA, evidence=True)
call("spt_hottest", rows, "spt", "metropolis", hottest=4, num_rungs=3)
call("spt_gaussian_process", smooth, "spt", sizes=[0, 8, 24])
call("tt", modes, "tt", "metropolis")
call("tt_rungs", rows, "tt", num_rungs=4, hottest=0.1)
call("stt", rows, "stt", "metropolis")
call("stt_sizes", rows, "stt", "metropolis", sizes=[6, 12, 24], strata=STRATA)
call("stt_rungs", rows, "stt", num_rungs=3)
call("mint", rows, "mint", batch_size=4)
call("mint_common_mala", rows, "mint", "mala", batch_size=6, noise="common", alpha=0.4)
call("mint_own_batch", rows, "mint", batch_size=6, noise="pseudo-marginal", corrected=True)
call("mint_exchange", rows, "mint", batch_size=6, noise="pseudo-marginal", exchange=2)
call("ee", modes, "ee", "metropolis")
call("ee_temperatures", modes, "ee", temperatures=[8.0, 3.0, 1.0], levels=[9.0, 4.0])
call("ee_hottest", rows, "ee", "mala", hottest=6.0, jump_probability=0.4, capacity=50)
call("mintee", logistic, "mintee", "metropolis", num_fill=60)
call("mintee_sizes", logistic, "mintee", temperatures=[6.0, 1.0], batch_sizes=[10, 60])
call("joint_ct", modes, "joint-ct", "metropolis")
call("joint_ct_fitted", rows, "joint-ct", "hmc")
call("gibbs_ct", modes, "gibbs-ct", "metropolis")
call("gibbs_ct_guess", rows, "gibbs-ct", base="prior", log_zeta=-40.0)
call("gibbs_ct_no_warmup", rows, "gibbs-ct", "metropolis", base="advi", num_warmup=0)
call("st", modes, "st", "metropolis")
call("st_betas", rows, "st", "mala", betas=[0.0, 0.1, 0.4, 1.0])
call("ais", modes, "ais", "metropolis")
call("ais_conditional", rows, "ais", "metropolis", conditional_ess=0.9)
call("ais_rungs", rows, "ais", "metropolis", num_rungs=8)
call("ais_by_rows", rows, "ais", "metropolis", sizes=[0, 4, 24], strata=STRATA)
call("smc", modes, "smc")
call("smc_betas", rows, "smc", "metropolis", betas=[0.0, 0.1, 0.4, 1.0], resampling="stratified")
call("smc_rows", rows, "smc", "metropolis", sizes=[0, 6, 24], num_moves=3)
call("smc_waste_free", modes, "smc", "mala", waste_free=6, conditional_ess=0.7)
call("bdmc", rows, "bdmc", "metropolis", exact={"mean": np.array([0.2, 0.3])}, num_rungs=6)

# -- moves -----------------------------------------------------------------------------------------

GIVEN = {"betas": [0.0, 0.2, 1.0]}
call("move_dense", modes, "pt", tp.hmc(num_steps=3, metric="dense"), **GIVEN)
call("move_position", modes, "pt", tp.hmc(integrator="position"), **GIVEN)
call("move_single_kicks", rows, "spt", tp.hmc(2, single="hot"), sizes=[0, 6, 24])
call("move_repeat", modes, "pt", tp.repeat(tp.metropolis(), 3), **GIVEN)
call("move_alternate", modes, "tt", tp.alternate(tp.metropolis(), tp.mala()), **GIVEN)
call("move_single_site", modes, "pt", tp.single_site(), **GIVEN)
call("move_auto_step", modes, "pt", tp.auto_step(num_steps=2), **GIVEN)
call("move_auto_step_rows", rows, "spt", tp.auto_step(num_steps=2), sizes=[0, 6, 24])
call("move_nuts", modes, "pt", "nuts", **GIVEN)
call("move_elliptical", modes, "plain", tp.elliptical_slice([0.0, 0.0], 25.0))
call("move_delayed", logistic, "pt", tp.delayed("metropolis", batch_size=10), **GIVEN)
call("move_mint", rows, "plain", tp.mint("mala", batch_size=5))
call("ensemble", fast, "plain", tp.ensemble(members=9, base="grid"))
call("ensemble_pt", fast, "pt", tp.ensemble(members=5, update="jointly"), **GIVEN)
call("ensemble_st", fast, "st", tp.ensemble(members=5, base="independent"), betas=[0.0, 0.3, 1.0])
call("random_grid", fast, "plain", tp.random_grid(times=4))
call("dragging", fast, "pt", tp.dragging(times=4), **GIVEN)
call("multiple_try", fast, "plain", tp.multiple_try(members=3))
call("multiset", fast, "plain", tp.multiset(members=5, base=tp.Gaussian([0.0, 0.0], 4.0)))
call("extra_updates", fast, "plain", tp.extra_updates(tp.metropolis(), times=4))


@case
def tuna() -> Any:
    problem = logistic()
    bounds = tp.lipschitz(DESIGN, "logistic", around=tp.laplace(problem))
    return tp.sample(problem, "plain", tp.tuna(bounds), **SHORT)


@case
def rows_on_disk() -> Any:
    with tempfile.TemporaryDirectory() as folder:
        return tp.sample(on_disk(folder), "mint", batch_size=8, **SHORT)


# -- samplers by hand, runs that go on, estimates -------------------------------------------------


def ladder() -> Any:
    base = tp.Gaussian([0.0, 0.0], 25.0)
    return tp.GeometricLadder(base, two_modes, [0.0, 0.1, 1.0], bridge=True, draw_hot=base.draw)


PARAMS = (3, 1), (3, 2)


def by_hand(sampler: Any) -> Any:
    return tp.sample(modes(), sampler, num_draws=20, num_warmup=10, num_chains=2, progress=False)


def params() -> Any:
    return tp.Params(*(jnp.full(shape, 0.8) for shape in PARAMS))


@case
def hand_parallel() -> Any:
    return by_hand(tp.ParallelTempering(ladder(), tp.hmc(2), params(), swaps_per_sweep=2))


@case
def hand_transitions() -> Any:
    return by_hand(tp.TemperedTransitions(ladder(), tp.metropolis(), params()))


@case
def hand_weighted() -> Any:
    return by_hand(tp.SimulatedTempering(ladder(), tp.metropolis(), params(), jnp.zeros(3)))


@case
def hand_subsampled() -> Any:
    nested = tp.PrefixLadder.of(rows(), sizes=[0, 6, 24], seed=2)
    sampler = tp.ParallelTempering(nested, tp.metropolis(), params(), complete=True)
    return tp.sample(rows(), sampler, num_draws=20, num_warmup=10, num_chains=2, progress=False)


def lengthened(method: str, **options: Any) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        kept: dict[str, Any] = SHORT | {"checkpoint": Path(folder) / "run.zarr"}
        tp.sample(rows(), method, "metropolis", **(kept | {"num_draws": 7}), **options)
        return tp.sample(rows(), method, "metropolis", **kept, **options)


@case
def resumed_pt() -> Any:
    return lengthened("pt")


@case
def resumed_stt() -> Any:
    return lengthened("stt", sizes=[6, 12, 24])


@case
def resumed_gibbs_ct() -> Any:
    return lengthened("gibbs-ct", base="prior")


@case
def resumed_ee() -> Any:
    return lengthened("ee", hottest=6.0)


@case
def bootstrapped() -> Any:
    fit = tp.bootstrap(rows(), "advi", num_rounds=2, num_draws=12, num_warmup=40, progress=False)
    return {"mean": fit.base.mean, "factor": fit.base.factor, "log_zeta": fit.log_zeta}


@case
def hunted() -> Any:
    found = tp.modes(modes(), progress=False)
    return {
        "shares": found.shares, "found": found.found, "log_evidence": found.log_evidence,
        "bound": found.bound, "centers": found.centers["x"],
    }  # fmt: skip


@case
def fitted_bases() -> Any:
    one, several = tp.advi(rows(), progress=False), tp.local_fits(modes(), progress=False)
    return {
        "mean": one.base.mean, "log_zeta": one.log_zeta,
        "means": several.base.mean, "log_zetas": several.log_zeta,
    }  # fmt: skip


@case
def predicted() -> Any:
    tree = tp.sample(smooth(), "st", "metropolis", betas=[0.0, 0.2, 1.0], **SHORT)
    new = np.random.default_rng(5).uniform(-2.0, 2.0, (3, 2))
    found = tp.predict(smooth(), tree, new)
    mean = tp.expectation(tree, lambda **x: x[min(x)])
    again = tp.resample(tree, seed=1)
    return {
        "mean": found.mean, "variance": found.variance, "expectation": mean.value,
        "resampled": again[min(again.data_vars)].values,
    }  # fmt: skip


# -- front ends ------------------------------------------------------------------------------------


@case
def from_pymc() -> Any:
    import pymc as pm

    with pm.Model() as model:
        mean = pm.Normal("mean", 0.0, 2.0)
        scale = pm.HalfNormal("scale", 1.0)
        pm.Normal("y", mean, scale, observed=ROWS)
    return tp.sample(tp.from_pymc(model), "pt", "metropolis", num_rungs=4, **SHORT)


@case
def from_numpyro() -> Any:
    import numpyro
    import numpyro.distributions as dist

    def model(y):
        mean = numpyro.sample("mean", dist.Normal(0.0, 2.0))
        scale = numpyro.sample("scale", dist.HalfNormal(1.0))
        with numpyro.plate("rows", len(y)):
            numpyro.sample("y", dist.Normal(mean, scale), obs=y)

    return tp.sample(tp.from_numpyro(model, ROWS), "spt", "metropolis", sizes=[0, 6, 24], **SHORT)


# -- tables ----------------------------------------------------------------------------------------


def frame() -> Any:
    import pandas as pd

    rng = np.random.default_rng(6)
    ripe, dear = rng.random((2, 60)) < 0.5
    table = pd.DataFrame(
        {
            "colour": np.where(ripe, "red", "green"),
            "weight": np.round(np.where(ripe, 150.0, 90.0) + 8.0 * rng.normal(size=60), 1),
            "shop": np.where(dear, "airport", rng.choice(["market", "corner"], 60)),
            "visits": rng.poisson(np.where(dear, 2.0, 9.0)),
        }
    )
    table.loc[::10, "weight"] = np.nan
    return table


def answers(model: Any, table: Any) -> dict[str, Any]:
    return {
        "score": model.score_samples(table),
        "sample": model.sample(5, random_state=1).to_csv(),
        "given": model.sample(5, given={"colour": "red"}, random_state=2).to_csv(),
        "impute": model.impute(table).to_csv(),
        "dependence": np.asarray(model.dependence()),
        "similarity": np.asarray(model.similarity(0)),
        "anomaly": np.asarray(model.anomaly(table)),
    }


def fitted(**options: Any) -> dict[str, Any]:
    from temperance.crosscat import CrossCat

    options = {"num_states": 2, "passes": 4, "random_state": 0} | options
    return answers(CrossCat(**options).fit(frame()), frame())


@case
def crosscat_anneal() -> Any:
    return fitted()


@case
def crosscat_sequential() -> Any:
    return fitted(strategy="sequential")


@case
def crosscat_prior() -> Any:
    return fitted(strategy="prior")


@case
def crosscat_saved() -> Any:
    from temperance.crosscat import CrossCat

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.zip"
        CrossCat(num_states=1, passes=2, random_state=1).fit(frame()).save(path)
        return answers(CrossCat.load(path), frame())


@case
def pitman_yor() -> Any:
    from temperance.crosscat import PitmanYorMixture

    model = PitmanYorMixture(num_states=2, passes=4, random_state=0).fit(frame())
    return {
        "score": model.score_samples(frame()),
        "sample": model.sample(5, random_state=1).to_csv(),
    }
