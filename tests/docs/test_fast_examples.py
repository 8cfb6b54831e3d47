"""The densities of the examples with fast variables: that they are fast, and what they are."""

import importlib.util
from pathlib import Path
from types import ModuleType

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from temperance.problems.checks import check_problem
from temperance.problems.problem import densities_of

EXAMPLES = Path(__file__).parents[2] / "examples"


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["gaussian_process_classification", "t_prior_logistic"])
def test_fast_leaves_are_fast(name: str):
    module = example(name)
    problem = module.problem()
    slow, fast = module.what_is_fast(problem)
    assert slow > 0
    assert fast == 0
    check_problem(problem, densities_of(problem))
    base = problem.log_prior.fast_base
    drawn = problem.draw_prior(jax.random.key(0))
    sizes = sum(np.size(drawn[leaf]) for leaf in module.FAST)
    assert base.draw(jax.random.key(1)).shape == (sizes,)


def test_the_base_of_the_t_prior_is_its_hyperprior():
    module = example("t_prior_logistic")
    prior = module.Prior()
    assert list(module.FAST) == sorted(module.FAST)
    position = {"log_degrees": jnp.asarray(1.0), "log_width": jnp.asarray(0.2)}
    slopes = jnp.asarray(np.linspace(-1, 2, module.NUM_SLOPES))
    given = stats.t(np.exp(1.0), scale=np.exp(0.2)).logpdf(slopes).sum()
    base = prior.fast_base(jnp.asarray([1.0, 0.2]))
    np.testing.assert_allclose(prior(position | {"slope": slopes}), base + given, rtol=1e-12)


def test_latent_values_have_the_covariance_of_the_process():
    module = example("gaussian_process_classification")
    x = jnp.asarray(module.simulate()["x"][:4])
    position = {"log_length": jnp.asarray([0.1, 0.4]), "log_scale": jnp.asarray(0.3)}
    columns = [
        module.latent(position | {"white": jnp.eye(module.ROWS)[i]}, x) for i in range(len(x))
    ]
    factor = np.stack(columns, 1)
    scaled = np.asarray(x) / np.exp([0.1, 0.4])
    squares = ((scaled[:, None] - scaled[None]) ** 2).sum(-1)
    known = np.exp(0.6) * (np.exp(-squares / 2) + module.JITTER * np.eye(4))
    np.testing.assert_allclose(factor @ factor.T, known, rtol=1e-10)
