"""PyMC models through the front door: densities, draws, rows, names, and what is refused."""

import functools
import os
import sys
import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from tests.interop.broken_front_ends import (
    PyMCWithoutJacobian,
    drawn_with_one_key,
    drawn_without_a_transform,
)
from tests.interop.front_ends import (
    ALPHA,
    COUNTIES,
    PRIOR_DRAWS,
    ROWS,
    TINY,
    binary_rows,
    check_rows,
    least_p_value,
    prior_draws,
    radon_rows,
    worst_difference,
    worst_z,
)

import temperance as tp
from temperance.errors import ModelError
from temperance.interop.pymc import advi_fit, parts_of
from temperance.interop.pytensor_graphs import DRAWN
from temperance.interop.row_detection import FrontEndWarning, assemble

RADON = radon_rows()
INPUTS, BINARY = binary_rows()
Y = RADON["y"]

# -- models --------------------------------------------------------------------------------------


def radon() -> pm.Model:
    """One covariate is pm.Data, one a plain array, and the county is an index."""
    coords = {"county": list("abcdef"), "slope": ["floor", "uranium"], "row": range(ROWS)}
    with pm.Model(coords=coords) as model:
        uranium = pm.Data("log_uranium", RADON["log_uranium"], dims="row")
        sigma_alpha = pm.HalfCauchy("sigma_alpha", 2.5)
        sigma_beta = pm.HalfCauchy("sigma_beta", 2.5)
        epsilon = pm.HalfCauchy("epsilon", 2.5)
        mu_alpha = pm.Normal("mu_alpha", 0.0, 1.0)
        mu_beta = pm.Normal("mu_beta", 0.0, 1.0)
        n_alpha = pm.Normal("n_alpha", 0.0, 1.0, dims="county")
        n_beta = pm.Normal("n_beta", 0.0, 1.0, dims="slope")
        alpha = pm.Deterministic("alpha", mu_alpha + sigma_alpha * n_alpha, dims="county")
        beta = pm.Deterministic("beta", mu_beta + sigma_beta * n_beta, dims="slope")
        mean = alpha[RADON["county"]] + RADON["floor"] * beta[0] + uranium * beta[1]
        pm.Normal("log_radon", mean, epsilon, observed=Y, dims="row")
    return model


def logistic() -> pm.Model:
    with pm.Model() as model:
        width = pm.LogNormal("width", 0.0, 1.0)
        slopes = pm.Normal("slopes", 0.0, width, shape=3)
        pm.Bernoulli("y", logit_p=pt.dot(INPUTS, slopes), observed=BINARY)
    return model


def bounded() -> pm.Model:
    with pm.Model() as model:
        share = pm.Dirichlet("share", np.ones(3))
        low = pm.Uniform("low", -1.0, 3.0)
        high = pm.Uniform("high", low, 4.0)
        width = pm.HalfNormal("width", 2.0, shape=3)
        pm.NormalMixture("y", share, np.arange(3.0) + low * high, width, observed=Y)
    return model


def two_kinds() -> pm.Model:
    with pm.Model() as model:
        rate = pm.Normal("rate", 0.0, 1.0)
        pm.Normal("y", rate * Y, 1.0, observed=Y)
        pm.Poisson("count", pt.exp(rate), observed=BINARY)
    return model


def vectors() -> pm.Model:
    with pm.Model() as model:
        center = pm.Normal("center", 0.0, 1.0, shape=3)
        pm.MvNormal("y", center, np.eye(3) + 0.5, observed=INPUTS)
    return model


def process() -> pm.Model:
    with pm.Model() as model:
        length = pm.HalfNormal("length", 1.0)
        marginal = pm.gp.Marginal(cov_func=pm.gp.cov.ExpQuad(1, length))
        marginal.marginal_likelihood("y", Y[:9, None], Y[:9], sigma=0.3)
    return model


def autoregression() -> pm.Model:
    with pm.Model() as model:
        slope = pm.Normal("slope", 0.0, 0.5)
        pm.AR("y", rho=[slope], sigma=1.0, init_dist=pm.Normal.dist(0.0, 1.0), observed=Y)
    return model


def walk() -> pm.Model:
    with pm.Model() as model:
        first = pm.Normal.dist(0.0, 1.0)
        state = pm.GaussianRandomWalk("state", sigma=1.0, init_dist=first, steps=ROWS - 1)
        pm.Normal("y", state, 1.0, observed=Y)
    return model


def potential() -> pm.Model:
    with pm.Model() as model:
        center = pm.Normal("center", 0.0, 1.0)
        pm.Potential("bend", -(center**4))
        pm.Normal("y", center, 1.0, observed=Y)
    return model


def flat() -> pm.Model:
    with pm.Model() as model:
        pm.Normal("y", pm.Flat("center"), 1.0, observed=Y)
    return model


def ordered() -> pm.Model:
    with pm.Model() as model:
        order = pm.distributions.transforms.ordered
        center = pm.Normal("center", 0.0, 1.0, shape=3, transform=order, initval=[-1.0, 0.0, 1.0])
        pm.NormalMixture("y", np.ones(3) / 3, center, 1.0, observed=Y)
    return model


WITH_ROWS = {f.__name__: f for f in (radon, logistic, bounded, two_kinds, vectors)}
WITHOUT_ROWS = {
    "process": (process, "one log density for all its values"),
    "autoregression": (autoregression, "one log density for all its values"),
    "walk": (walk, "asked for 30 of the rows alone"),
    "potential": (potential, "pm.Potential"),
}
WITHOUT_DRAWS = {"flat": (flat, "'flat'"), "ordered": (ordered, "such as an ordered one")}


LONG = pytest.param("vectors", marks=pytest.mark.slow)


@functools.cache
def made(name: str) -> Any:
    return tp.from_pymc(WITH_ROWS[name]())


def their_density(model: pm.Model) -> Any:
    """PyMC's own, in PyTensor's plainest mode, which compiles nothing."""
    function = model.compile_logp(mode="FAST_COMPILE")
    return lambda x: function({name: np.asarray(leaf) for name, leaf in x.items()})


# -- densities and rows --------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", [*[*WITH_ROWS][:4], LONG])
def test_rows_and_density(name: str, seed: int) -> None:
    """PyMC's own log density is the prior plus the terms, and terms are those of their rows."""
    problem = made(name)
    assert isinstance(problem, tp.Problem)
    assert problem.independent
    assert worst_difference(problem, their_density(WITH_ROWS[name]()), seed) < 1e-10
    check_rows(problem, seed)


@pytest.mark.parametrize("name", WITHOUT_ROWS)
def test_without_rows_there_is_a_target_with_its_reason(name: str, seed: int) -> None:
    model, words = WITHOUT_ROWS[name]
    with pytest.warns(FrontEndWarning, match=words):
        target = tp.from_pymc(model())
    assert isinstance(target, tp.Target)
    assert words in target.reason
    assert target.base is not None
    assert worst_difference(target, their_density(model()), seed) < 1e-10


@pytest.mark.parametrize("name", WITHOUT_DRAWS)
def test_a_prior_that_cannot_be_drawn_from_leaves_no_base(name: str, seed: int) -> None:
    model, words = WITHOUT_DRAWS[name]
    with pytest.warns(FrontEndWarning, match=words):
        target = tp.from_pymc(model())
    assert target.base is None
    assert words in target.reason
    assert worst_difference(target, their_density(model()), seed) < 1e-10


def test_a_forgotten_jacobian_is_noticed(seed: int) -> None:
    problem = assemble(parts_of(PyMCWithoutJacobian(logistic())))
    assert worst_difference(problem, their_density(logistic()), seed) > 1e-4


def test_a_model_is_left_as_it_was() -> None:
    model = ordered()
    before = dict(model.rvs_to_initial_values), list(model.named_vars), os.environ.get("XLA_FLAGS")
    with pytest.warns(FrontEndWarning):
        tp.from_pymc(model)
    after = dict(model.rvs_to_initial_values), list(model.named_vars), os.environ.get("XLA_FLAGS")
    assert before == after


# -- draws of the prior --------------------------------------------------------------------------


def own_prior(model: pm.Model, names: Any, seed: int) -> dict[str, np.ndarray]:
    with model:
        found = pm.draw([model[name] for name in names], PRIOR_DRAWS, random_seed=seed + 1)
    return dict(zip(names, found, strict=True))


def test_prior_draws_are_the_models(seed: int) -> None:
    problem = made("logistic")
    names = ["width", "slopes"]
    theirs = own_prior(logistic(), names, seed)
    ours = prior_draws(problem, problem.draw_prior, seed)
    assert least_p_value(ours, theirs, names) > ALPHA
    for slip in (drawn_without_a_transform, drawn_with_one_key):
        wrong = prior_draws(problem, slip(problem), seed)
        assert least_p_value(wrong, theirs, names) < ALPHA


LAWS = {
    "beta": lambda: pm.Beta("x", 2.0, 3.0),
    "cauchy": lambda: pm.Cauchy("x", 1.0, 2.0),
    "dirichlet": lambda: pm.Dirichlet("x", np.array([1.0, 2.0, 0.5])),
    "exponential": lambda: pm.Exponential("x", 3.0),
    "gamma": lambda: pm.Gamma("x", 2.0, 5.0),
    "gumbel": lambda: pm.Gumbel("x", 1.0, 2.0),
    "laplace": lambda: pm.Laplace("x", 1.0, 2.0),
    "logistic": lambda: pm.Logistic("x", 1.0, 2.0),
    "multivariate_normal": lambda: pm.MvNormal("x", np.array([1.0, 2.0]), np.eye(2) + 0.7),
    "normal": lambda: pm.Normal("x", 1.0, 2.0),
    "t": lambda: pm.StudentT("x", 3.0, mu=1.0, sigma=2.0),
    "uniform": lambda: pm.Uniform("x", -1.0, 2.0),
    "half-normal": lambda: pm.HalfNormal("x", 2.0),
    "half-cauchy": lambda: pm.HalfCauchy("x", 2.0),
    "half-t": lambda: pm.HalfStudentT("x", 3.0, 2.0),
    "log-normal": lambda: pm.LogNormal("x", 1.0, 0.5),
    "inverse gamma": lambda: pm.InverseGamma("x", 3.0, 2.0),
    "zero-sum": lambda: pm.ZeroSumNormal("x", 2.0, shape=3),
    "walk": lambda: pm.GaussianRandomWalk(
        "x", sigma=0.5, init_dist=pm.Normal.dist(1.0, 2.0), steps=2
    ),
    "cholesky": lambda: pm.LKJCholeskyCov(
        "x", n=2, eta=2.0, sd_dist=pm.Exponential.dist(1.0), compute_corr=False
    ),
}


def test_every_trusted_sampler_has_its_test() -> None:
    assert set(DRAWN) <= set(LAWS)


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS)
def test_prior_draws_of_a_distribution(law: str, seed: int) -> None:
    with pm.Model() as model:
        LAWS[law]()
        pm.Potential("nothing", pt.zeros(()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FrontEndWarning)
        target = tp.from_pymc(model)
    assert target.base is not None, target.reason
    ours = prior_draws(target, target.base.draw_prior, seed)
    assert least_p_value(ours, own_prior(model, ["x"], seed), ["x"]) > ALPHA


# -- runs ----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_names_that_the_result_has_of_its_own() -> None:
    with pm.Model(coords={"rung": list("abc"), "pair": [1, 2]}) as model:
        control = pm.Normal("control", 0.0, 1.0, dims="rung")
        lp = pm.HalfNormal("lp", 1.0, dims="pair")
        beta = pm.Deterministic("beta", 2.0 * lp, dims="pair")
        pm.Normal("y", control.sum() + beta.sum(), 1.0, observed=Y[:8])
    tree = tp.sample(tp.from_pymc(model), "plain", "metropolis", **TINY)
    posterior = tree["posterior"].dataset
    assert {name: array.dims[2:] for name, array in posterior.data_vars.items()} == {
        "control": ("rung",), "lp": ("pair",), "beta": ("pair",),
    }  # fmt: skip
    assert list(posterior["rung"].values) == list("abc")
    assert tree["sample_stats"]["lp"].dims == ("chain", "draw")


@pytest.mark.slow
def test_names_and_axes() -> None:
    problem = made("radon")
    tree = tp.sample(problem, "plain", "metropolis", **TINY)
    posterior = tree["posterior"].dataset
    scalars = ("sigma_alpha", "sigma_beta", "epsilon", "mu_alpha", "mu_beta")
    assert {name: array.dims[2:] for name, array in posterior.data_vars.items()} == {
        **dict.fromkeys(scalars, ()),
        "n_alpha": ("county",),
        "alpha": ("county",),
        "n_beta": ("slope",),
        "beta": ("slope",),
    }
    assert list(posterior["county"].values) == list("abcdef")
    free = tree["unconstrained_posterior"].dataset
    np.testing.assert_allclose(np.exp(free["epsilon_log__"]), posterior["epsilon"], rtol=1e-12)
    np.testing.assert_allclose(
        posterior["mu_alpha"] + posterior["sigma_alpha"] * posterior["n_alpha"], posterior["alpha"]
    )
    assert len(problem.data) == 4
    assert {"log_uranium", "log_radon"} < set(problem.data)
    assert posterior.sizes["county"] == COUNTIES


@pytest.mark.slow
def test_rows_are_left_out_by_subsampled_tempering() -> None:
    tree = tp.sample(made("two_kinds"), "spt", "metropolis", sizes=(0, 20, 60), **TINY)
    assert list(tree["tempering"]["size"].values) == [0, 20, 60]
    assert np.isfinite(tree["sample_stats"]["lp"]).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["radon", "logistic"])
def test_draws_agree_with_pymcs_own(name: str, seed: int) -> None:
    tree = tp.sample(made(name), "plain", "nuts", seed=seed, progress=False)
    with WITH_ROWS[name](), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        own = pm.sample(
            1000, tune=1000, chains=4, cores=1, target_accept=0.95, random_seed=seed + 5,
            progressbar=False, compute_convergence_checks=False,
        )  # fmt: skip
    names = list(tree["posterior"].data_vars)
    theirs = {variable: own.posterior[variable].values.copy() for variable in names}
    assert worst_z(tree, theirs, names) < 4.5
    # The same test on draws that are not of this posterior.
    theirs["width" if name == "logistic" else "epsilon"] *= 1.2
    assert worst_z(tree, theirs, names) > 4.5


@pytest.mark.slow
@pytest.mark.parametrize("guide", ["normal", "dense"])
def test_a_fit_lies_as_our_vectors_do(guide: str, seed: int) -> None:
    y = np.random.default_rng(3).normal([1.0, -2.0, 3.0], 1.0, size=(20, 3))
    with pm.Model() as model:
        second = pm.Normal("b", 0.0, 1.0, shape=2)
        first = pm.Normal("a", 0.0, 1.0)
        pm.Normal("y", pt.concatenate([second, first[None]])[None, :], 1.0, observed=y)
    fit = advi_fit(model, guide=guide, num_steps=20_000, seed=seed)
    means = y.sum(0) / 21
    np.testing.assert_allclose(fit.base.mean, means[[2, 0, 1]], atol=0.1)
    known = -0.5 * y.size * np.log(2 * np.pi) - 1.5 * np.log(21)
    known += 0.5 * (21 * (means**2).sum() - (y**2).sum())
    # A bound, and close to it where the posterior is of the guide's kind.
    assert known - 0.3 < fit.log_zeta < known + 0.01


# -- wrong calls ---------------------------------------------------------------------------------


def discrete() -> pm.Model:
    with pm.Model() as model:
        pm.Normal("y", 1.0 * pm.Bernoulli("kind", 0.5), 1.0, observed=Y)
    return model


def unobserved() -> pm.Model:
    with pm.Model() as model:
        pm.Normal("center")
    return model


def nothing_to_draw() -> pm.Model:
    with pm.Model() as model:
        pm.Normal("y", 0.0, 1.0, observed=Y)
    return model


def batches() -> pm.Model:
    with pm.Model() as model:
        batch = pm.Minibatch(Y, batch_size=10)
        pm.Normal("y", pm.Normal("center"), 1.0, observed=batch, total_size=ROWS)
    return model


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: tp.from_pymc(3.0), "wanted a pymc.Model"),
        (lambda: tp.from_pymc(logistic), "wanted a pymc.Model"),
        (lambda: tp.from_pymc(discrete()), "'kind' is discrete.*sum it out"),
        (lambda: tp.from_pymc(unobserved()), "observes nothing"),
        (lambda: tp.from_pymc(nothing_to_draw()), "no free variable"),
        (lambda: tp.from_pymc(batches()), "pm.Minibatch"),
        (lambda: advi_fit(logistic(), guide="wide"), "unknown guide"),
    ],
)
def test_wrong_calls(call: Any, words: str) -> None:
    with pytest.raises(tp.TemperanceError, match=words):
        call()


def test_single_precision_is_refused() -> None:
    with pytest.raises(tp.TemperanceError, match="double precision written into them"):
        tp.sample(made("two_kinds"), "plain", precision="single", **TINY)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pymc", None)
    with pytest.raises(ModelError, match=r"pip install temperance\[pymc\]"):
        tp.from_pymc(logistic())


def test_a_parameter_out_of_range_has_no_density() -> None:
    """As in PyMC, and unlike in a bare graph, where the log of a negative scale is NaN."""
    with pm.Model() as model:
        pm.Normal("y", 0.0, pm.Normal("width", 1.0, 1.0), observed=Y)
    problem = tp.from_pymc(model)
    terms = problem.terms({"width": jnp.array(-1.0)}, jax.tree.map(jnp.asarray, problem.data))
    assert (np.asarray(terms) == -np.inf).all()
