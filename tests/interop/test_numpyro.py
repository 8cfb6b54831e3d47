"""NumPyro models through the front door: densities, draws, rows, names, and what is refused."""

import functools
import sys
import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro.contrib.control_flow import scan
from numpyro.handlers import mask, scale
from numpyro.infer import MCMC, NUTS, Predictive
from numpyro.infer.util import potential_energy
from tests.interop.broken_front_ends import (
    WithoutJacobian,
    closed_over,
    drawn_with_one_key,
    drawn_without_a_transform,
)
from tests.interop.front_ends import (
    ALPHA,
    COUNTIES,
    PRIOR_DRAWS,
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
from temperance.interop.numpyro import autoguide_fit, parts_of
from temperance.interop.row_detection import (
    FrontEndWarning,
    NotRowsError,
    are_independent,
    assemble,
)

RADON = radon_rows()
INPUTS, BINARY = binary_rows()
Y = RADON["y"]

# -- models --------------------------------------------------------------------------------------


def radon(county, floor, log_uranium, y):
    sigma_alpha = numpyro.sample("sigma_alpha", dist.HalfCauchy(2.5))
    sigma_beta = numpyro.sample("sigma_beta", dist.HalfCauchy(2.5))
    epsilon = numpyro.sample("epsilon", dist.HalfCauchy(2.5))
    mu_alpha = numpyro.sample("mu_alpha", dist.Normal(0, 1))
    mu_beta = numpyro.sample("mu_beta", dist.Normal(0, 1))
    with numpyro.plate("county", COUNTIES):
        n_alpha = numpyro.sample("n_alpha", dist.Normal(0, 1))
        alpha = numpyro.deterministic("alpha", mu_alpha + sigma_alpha * n_alpha)
    with numpyro.plate("slope", 2):
        n_beta = numpyro.sample("n_beta", dist.Normal(0, 1))
    beta = numpyro.deterministic("beta", mu_beta + sigma_beta * n_beta)
    with numpyro.plate("rows", len(y)):
        mean = alpha[county] + floor * beta[0] + log_uranium * beta[1]
        numpyro.sample("log_radon", dist.Normal(mean, epsilon), obs=y)


def logistic(x, y=None):
    width = numpyro.sample("width", dist.LogNormal(0.0, 1.0))
    slopes = numpyro.sample("slopes", dist.Normal(0, width).expand([3]).to_event(1))
    numpyro.sample("y", dist.Bernoulli(logits=x @ slopes), obs=y)


def bounded(y):
    share = numpyro.sample("share", dist.Dirichlet(jnp.ones(3)))
    ordered = dist.transforms.OrderedTransform()
    law = dist.TransformedDistribution(dist.Normal(0, 1).expand([3]).to_event(1), ordered)
    center = numpyro.sample("center", law)
    low = numpyro.sample("low", dist.Uniform(-1.0, 3.0))
    high = numpyro.sample("high", dist.Uniform(low, 4.0))
    with numpyro.plate("part", 3):
        width = numpyro.sample("width", dist.HalfNormal(2.0))
    parts = dist.Normal(center + low * high, width)
    numpyro.sample("y", dist.MixtureSameFamily(dist.Categorical(share), parts), obs=y)


def two_kinds(x, y, count):
    rate = numpyro.sample("rate", dist.Normal(0, 1))
    numpyro.sample("y", dist.Normal(rate * x, 1), obs=y)
    numpyro.sample("count", dist.Poisson(jnp.exp(rate)), obs=count)


def masked(y, seen):
    width = numpyro.sample("width", dist.HalfNormal(1))
    with mask(mask=seen):
        numpyro.sample("y", dist.Normal(0, width), obs=y)


def matrix(table):
    center = numpyro.sample("center", dist.Normal(0, 1))
    numpyro.sample("table", dist.Normal(center, 1), obs=table)


def lagged(y):
    """An autoregression whose rows look back: the one before is there for every row."""
    slope = numpyro.sample("slope", dist.Uniform(-1, 1))
    before = jnp.concatenate([jnp.zeros(1), y[:-1]])
    numpyro.sample("y", dist.Normal(slope * before, 1), obs=y)


def states(y):
    width = numpyro.sample("width", dist.HalfNormal(1))

    def step(before, now):
        state = numpyro.sample("state", dist.LogNormal(before, 1))
        numpyro.sample("y", dist.Normal(state, width), obs=now)
        return jnp.log(state), None

    scan(step, jnp.zeros(()), y)


def process(x, y):
    length = numpyro.sample("length", dist.HalfNormal(1))
    gram = jnp.exp(-0.5 * ((x[:, None] - x[None, :]) / length) ** 2) + 0.1 * jnp.eye(len(x))
    numpyro.sample("y", dist.MultivariateNormal(jnp.zeros(len(x)), gram), obs=y)


def autoregression(y):
    slope = numpyro.sample("slope", dist.Uniform(-1, 1))
    numpyro.sample("y", dist.Normal(slope * y[:-1], 1), obs=y[1:])


def factored(y):
    center = numpyro.sample("center", dist.Normal(0, 1))
    numpyro.factor("bend", -(center**4))
    numpyro.sample("y", dist.Normal(center, 1), obs=y)


def fixed_plate(y):
    center = numpyro.sample("center", dist.Normal(0, 1))
    with numpyro.plate("rows", len(Y)):
        numpyro.sample("y", dist.Normal(center, 1), obs=y)


def centred(y):
    center = numpyro.sample("center", dist.Normal(0, 1))
    numpyro.sample("y", dist.Normal(center, 1), obs=y - jnp.mean(y))


def unequal(y):
    center = numpyro.sample("center", dist.Normal(0, 1))
    numpyro.sample("y", dist.Normal(center, 1), obs=y)
    numpyro.sample("half", dist.Normal(center, 1), obs=y[:7])


def improper(y):
    center = numpyro.sample("center", dist.ImproperUniform(dist.constraints.real, (), ()))
    numpyro.sample("y", dist.Normal(center, 1), obs=y)


def scaled(y):
    with scale(scale=0.5):
        center = numpyro.sample("center", dist.Normal(0, 1))
    numpyro.sample("y", dist.Normal(center, 1), obs=y)


RADON_ARGS = tuple(RADON[name] for name in ("county", "floor", "log_uranium", "y"))
WITH_ROWS: dict[str, tuple[Any, tuple[Any, ...], bool]] = {
    "radon": (radon, RADON_ARGS, True),
    "logistic": (logistic, (INPUTS, BINARY), True),
    "bounded": (bounded, (Y,), True),
    "two kinds": (two_kinds, (Y, Y, BINARY), True),
    "masked": (masked, (Y, Y > 0), True),
    "matrix": (matrix, (INPUTS,), True),
    "lagged": (lagged, (Y,), False),
    "states": (states, (Y[:8],), False),
}
WITHOUT_ROWS: dict[str, tuple[Any, tuple[Any, ...], str]] = {
    "process": (process, (Y[:9], Y[:9]), "one log density for all its values"),
    "autoregression": (autoregression, (Y,), "no argument is an array with the 59 rows"),
    "factor": (factored, (Y,), "numpyro.factor"),
    "fixed plate": (fixed_plate, (Y,), "asked for 30 of the rows alone"),
    "centred": (centred, (Y,), "change when the other 30 are left out"),
    "unequal": (unequal, (Y,), "unequal numbers of rows"),
}


LONGER = ("masked", "matrix", "states")
LONG = [pytest.param(name, marks=pytest.mark.slow) for name in LONGER]


@functools.cache
def made(name: str) -> Any:
    model, args, _ = WITH_ROWS[name]
    return tp.from_numpyro(model, *args)


def their_density(model: Any, args: tuple[Any, ...]) -> Any:
    def density(x: Any) -> Any:
        with jax.numpy_rank_promotion("allow"):
            return -potential_energy(model, args, {}, x)

    return jax.jit(density)


# -- densities and rows --------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in WITH_ROWS if name not in LONGER] + LONG)
def test_rows_and_density(name: str, seed: int) -> None:
    """NumPyro's own log density is the prior plus the terms, and terms are those of their rows."""
    model, args, independent = WITH_ROWS[name]
    problem = made(name)
    assert isinstance(problem, tp.Problem)
    assert problem.independent == independent
    assert worst_difference(problem, their_density(model, args), seed) < 1e-10
    check_rows(problem, seed)


@pytest.mark.parametrize("name", WITHOUT_ROWS)
def test_without_rows_there_is_a_target_with_its_reason(name: str, seed: int) -> None:
    model, args, words = WITHOUT_ROWS[name]
    with pytest.warns(FrontEndWarning, match=words):
        target = tp.from_numpyro(model, *args)
    assert isinstance(target, tp.Target)
    assert words in target.reason
    assert target.base is not None
    assert worst_difference(target, their_density(model, args), seed) < 1e-10


@pytest.mark.parametrize(
    ("model", "words"), [(improper, "cannot be drawn from"), (scaled, "scaled or masked")]
)
def test_a_prior_that_cannot_be_drawn_from_leaves_no_base(model: Any, words: str) -> None:
    with pytest.warns(FrontEndWarning, match=words):
        target = tp.from_numpyro(model, Y)
    assert target.base is None
    assert words in target.reason
    assert worst_difference(target, their_density(model, (Y,)), 0) < 1e-10


def test_a_forgotten_jacobian_is_noticed(seed: int) -> None:
    with jax.enable_x64(True):
        problem = assemble(parts_of(WithoutJacobian(logistic, (INPUTS, BINARY), {})))
    assert worst_difference(problem, their_density(logistic, (INPUTS, BINARY)), seed) > 1e-4


def test_terms_that_ignore_which_rows_are_asked_for_are_noticed() -> None:
    problem = made("logistic")
    assert are_independent(problem.terms, problem.data, problem.example())
    assert not are_independent(closed_over(problem), problem.data, problem.example())
    every = jax.tree.map(jnp.asarray, problem.data)
    with pytest.raises(NotRowsError, match="of shape"):
        are_independent(lambda x, _: problem.terms(x, every), problem.data, problem.example())


# -- draws of the prior --------------------------------------------------------------------------


def own_prior(model: Any, args: tuple[Any, ...], seed: int) -> dict[str, Any]:
    key = jax.random.key(seed + 1)
    return Predictive(model, num_samples=PRIOR_DRAWS)(key, *args)


@pytest.mark.parametrize("name", ["logistic", pytest.param("bounded", marks=pytest.mark.slow)])
def test_prior_draws_are_the_models(name: str, seed: int) -> None:
    model, args, _ = WITH_ROWS[name]
    problem = made(name)
    with jax.numpy_rank_promotion("allow"):
        theirs = own_prior(model, args, seed)
    names = [site for site in problem.dims if site in theirs]
    assert len(names) == len(problem.dims)
    ours = prior_draws(problem, problem.draw_prior, seed)
    assert least_p_value(ours, theirs, names) > ALPHA
    for slip in (drawn_without_a_transform, drawn_with_one_key):
        wrong = prior_draws(problem, slip(problem), seed)
        assert least_p_value(wrong, theirs, names) < ALPHA


# -- runs ----------------------------------------------------------------------------------------


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
        "beta": ("beta_dim_0",),
    }
    free = tree["unconstrained_posterior"].dataset
    assert set(free.data_vars) == set(problem.example())
    np.testing.assert_allclose(np.exp(free["epsilon"]), posterior["epsilon"], rtol=1e-12)
    np.testing.assert_allclose(
        posterior["mu_alpha"] + posterior["sigma_alpha"] * posterior["n_alpha"], posterior["alpha"]
    )
    assert set(problem.data) == {"county", "floor", "log_uranium", "y"}


def named_like_statistics(y):
    """Its names are those of what `sample_stats` and `tempering` hold."""
    with numpyro.plate("rung", 3):
        control = numpyro.sample("control", dist.Normal(0, 1))
    with numpyro.plate("pair", 2):
        lp = numpyro.sample("lp", dist.HalfNormal(1))
    with numpyro.plate("chain", 2):
        beta = numpyro.deterministic("beta", lp * numpyro.sample("x", dist.Normal(0, 1)))
    numpyro.sample("y", dist.Normal(jnp.sum(control) + jnp.sum(beta), 1), obs=y)


@pytest.mark.slow
def test_names_that_the_result_has_of_its_own() -> None:
    problem = tp.from_numpyro(named_like_statistics, Y[:8])
    tree = tp.sample(problem, "plain", "metropolis", **TINY)
    posterior = tree["posterior"].dataset
    assert {name: array.dims[2:] for name, array in posterior.data_vars.items()} == {
        "control": ("rung",),
        "lp": ("pair",),
        "x": ("x_dim_0",),
        "beta": ("beta_dim_0",),
    }
    assert tree["sample_stats"]["lp"].dims == ("chain", "draw")


@pytest.mark.slow
def test_single_precision_has_no_double_left_in_it() -> None:
    tree = tp.sample(made("radon"), "plain", "metropolis", precision="single", **TINY)
    assert {array.dtype for array in tree["posterior"].dataset.values()} == {np.dtype("float32")}


@pytest.mark.slow
def test_rows_are_left_out_by_subsampled_tempering() -> None:
    tree = tp.sample(made("two kinds"), "spt", "metropolis", sizes=(0, 20, 60), **TINY)
    assert list(tree["tempering"]["size"].values) == [0, 20, 60]
    assert np.isfinite(tree["sample_stats"]["lp"]).all()


@pytest.mark.slow
def test_a_target_is_heated_towards_its_prior() -> None:
    """The exact prior is the hottest rung, so the ladder's first component is its density."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FrontEndWarning)
        target = tp.from_numpyro(factored, Y)
    tree = tp.sample(target, "pt", "metropolis", betas=(0.0, 0.3, 1.0), **TINY)
    values = tree["tempering"]["components"].isel(sweep=-1, rung=-1, component=0).values
    center = tree["posterior"]["center"].values
    np.testing.assert_allclose(values, -0.5 * center**2 - 0.5 * np.log(2 * np.pi), rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["radon", "logistic"])
def test_draws_agree_with_numpyros_own(name: str, seed: int) -> None:
    model, args, _ = WITH_ROWS[name]
    tree = tp.sample(made(name), "plain", "nuts", seed=seed, progress=False)
    with jax.numpy_rank_promotion("allow"):
        own = MCMC(
            NUTS(model, target_accept_prob=0.95),
            num_warmup=1000, num_samples=1000, num_chains=4,
            chain_method="sequential", progress_bar=False,
        )  # fmt: skip
        own.run(jax.random.key(seed), *args)
    theirs = own.get_samples(group_by_chain=True)
    names = list(tree["posterior"].data_vars)
    assert worst_z(tree, theirs, names) < 4.5
    # The same test on draws that are not of this posterior.
    theirs["width" if name == "logistic" else "epsilon"] *= 1.2
    assert worst_z(tree, theirs, names) > 4.5


# -- fits ----------------------------------------------------------------------------------------


def conjugate(y):
    """Two independent means with known posteriors, declared against the order of their names."""
    second = numpyro.sample("b", dist.Normal(jnp.zeros(2), 1.0).to_event(1))
    first = numpyro.sample("a", dist.Normal(0.0, 1.0))
    means = jnp.concatenate([second, first[None]])
    numpyro.sample("y", dist.Normal(jnp.broadcast_to(means, y.shape), 1.0).to_event(1), obs=y)


@pytest.mark.slow
@pytest.mark.parametrize("guide", ["normal", "dense"])
def test_a_fit_lies_as_our_vectors_do(guide: str, seed: int) -> None:
    y = np.random.default_rng(3).normal([1.0, -2.0, 3.0], 1.0, size=(20, 3))
    fit = autoguide_fit(conjugate, y, guide=guide, num_steps=1500, seed=seed)
    means, variance = y.sum(0) / 21, 1 / 21
    np.testing.assert_allclose(fit.base.mean, means[[2, 0, 1]], atol=0.03)
    factor = np.asarray(fit.base.factor)
    covariance = np.diag(factor**2) if factor.ndim == 1 else factor @ factor.T
    np.testing.assert_allclose(np.diag(covariance), variance, rtol=0.15)
    known = -0.5 * y.size * np.log(2 * np.pi) - 1.5 * np.log(21)
    known += 0.5 * (21 * (means**2).sum() - (y**2).sum())
    # A bound, and close to it where the posterior is of the guide's kind.
    assert known - 0.1 < fit.log_zeta < known + 0.01


# -- wrong calls ---------------------------------------------------------------------------------


def discrete(y):
    kind = numpyro.sample("kind", dist.Bernoulli(0.5))
    numpyro.sample("y", dist.Normal(1.0 * kind, 1), obs=y)


def unobserved(y):
    numpyro.sample("center", dist.Normal(0, 1))


def nothing_to_draw(y):
    numpyro.sample("y", dist.Normal(0, 1), obs=y)


def subsampled(y):
    center = numpyro.sample("center", dist.Normal(0, 1))
    with numpyro.plate("rows", len(y), subsample_size=5) as rows:
        numpyro.sample("y", dist.Normal(center, 1), obs=jnp.asarray(y)[rows])


def with_param(y):
    center = numpyro.sample("center", dist.Normal(numpyro.param("at", 0.0), 1))
    numpyro.sample("y", dist.Normal(center, 1), obs=y)


def failing(y):
    center = numpyro.sample("center", dist.Normal(0, 1))
    numpyro.sample("y", dist.Normal(center * jnp.ones(7), 1), obs=y)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: tp.from_numpyro(3.0), "wanted a NumPyro model"),
        (lambda: tp.from_numpyro(logistic), "missing a required argument: 'x'"),
        (lambda: tp.from_numpyro(logistic, INPUTS), "'y' is discrete"),
        (lambda: tp.from_numpyro(discrete, Y), "'kind' is discrete.*sum it out"),
        (lambda: tp.from_numpyro(unobserved, Y), "observes nothing"),
        (lambda: tp.from_numpyro(nothing_to_draw, Y), "no latent sample site"),
        (lambda: tp.from_numpyro(subsampled, Y), "leave subsample_size out"),
        (lambda: tp.from_numpyro(with_param, Y), "numpyro.param"),
        (lambda: tp.from_numpyro(failing, Y), "model: it"),
        (lambda: autoguide_fit(logistic, INPUTS, BINARY, guide="wide"), "unknown guide"),
    ],
)
def test_wrong_calls(call: Any, words: str) -> None:
    with pytest.raises(tp.TemperanceError, match=words):
        call()


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numpyro", None)
    with pytest.raises(ModelError, match=r"pip install temperance\[numpyro\]"):
        tp.from_numpyro(logistic, INPUTS, BINARY)
