"""What the tests of both front ends share: data, comparisons, and how draws are judged."""

from typing import Any

import arviz_stats
import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

import temperance as tp

ALPHA = 1e-5
PRIOR_DRAWS = 4000
ROWS, COUNTIES = 60, 6
TINY: dict[str, Any] = {"num_draws": 12, "num_warmup": 10, "num_chains": 2, "progress": False}


def radon_rows() -> dict[str, np.ndarray]:
    """Rows as in the radon survey: a county, a floor, the county's uranium, and a log radon."""
    rng = np.random.default_rng(11)
    county = rng.integers(0, COUNTIES, ROWS)
    floor = rng.integers(0, 2, ROWS)
    uranium = rng.normal(size=COUNTIES)[county]
    level = rng.normal(1.3, 0.4, COUNTIES)[county]
    y = level - 0.6 * floor + 0.7 * uranium + rng.normal(0, 0.7, ROWS)
    return {"county": county, "floor": floor, "log_uranium": uranium, "y": y}


def binary_rows() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(12)
    inputs = rng.normal(size=(ROWS, 3))
    return inputs, (rng.random(ROWS) < 1 / (1 + np.exp(-inputs @ [1.0, -2.0, 0.0]))).astype(int)


def positions_like(example: Any, num: int, seed: int) -> list[Any]:
    rng = np.random.default_rng(seed)
    return [
        jax.tree.map(lambda leaf: jnp.asarray(rng.normal(size=np.shape(leaf))), example)
        for _ in range(num)
    ]


def example_of(problem: tp.Problem | tp.Target) -> Any:
    return problem.example() if isinstance(problem, tp.Problem) else problem.example


def density_of(problem: tp.Problem | tp.Target) -> Any:
    """The log density, from the parts that samplers use."""
    if isinstance(problem, tp.Target):
        return jax.jit(problem.log_density)
    data = jax.tree.map(jnp.asarray, problem.data)
    return jax.jit(lambda x: problem.log_prior(x) + jnp.sum(problem.terms(x, data)))


def worst_difference(problem: Any, theirs: Any, seed: int, num: int = 5) -> float:
    """The largest difference of two log densities, relative to their size."""
    ours = density_of(problem)
    found = []
    for x in positions_like(example_of(problem), num, seed):
        wanted = float(theirs(x))
        found.append(abs(float(ours(x)) - wanted) / max(1.0, abs(wanted)))
    return max(found)


def check_rows(problem: tp.Problem, seed: int) -> None:
    """Terms of some rows are their terms among all: prefixes, and any rows if independent."""
    (x,) = positions_like(problem.example(), 1, seed)
    n = problem.num_rows
    terms = jax.jit(problem.terms)
    whole = np.asarray(terms(x, jax.tree.map(jnp.asarray, problem.data)))
    assert whole.shape == (n,)
    anywhere = [np.array([5, 0, 7])] if problem.independent else []
    for some in (np.arange(1), np.arange(3), *anywhere):
        rows = jax.tree.map(lambda leaf, some=some: jnp.asarray(leaf[some]), problem.data)
        np.testing.assert_allclose(terms(x, rows), whole[some], rtol=1e-10, atol=1e-11)


def prior_draws(problem: Any, draw: Any, seed: int) -> dict[str, np.ndarray]:
    """Draws of the prior, constrained."""
    keys = jax.random.split(jax.random.key(seed), PRIOR_DRAWS)
    found = jax.jit(jax.vmap(lambda key: problem.constrain(draw(key))))(keys)
    return {name: np.asarray(values) for name, values in found.items()}


def least_p_value(one: dict[str, Any], two: dict[str, Any], names: Any) -> float:
    """Two-sample Kolmogorov-Smirnov tests of every coordinate, and of products of neighbours."""
    found = []
    for name in names:
        left, right = (np.reshape(np.asarray(d[name]), (len(d[name]), -1)) for d in (one, two))
        assert left.shape[1] == right.shape[1], name
        for i in range(left.shape[1]):
            found.append(stats.ks_2samp(left[:, i], right[:, i]).pvalue)
            j = (i + 1) % left.shape[1]
            found.append(stats.ks_2samp(left[:, i] * left[:, j], right[:, i] * right[:, j]).pvalue)
    return min(found) * len(found)


def worst_z(tree: Any, theirs: dict[str, np.ndarray], names: Any) -> float:
    """Differences of means in their combined Monte Carlo errors; arrays lead with chain, draw."""
    worst = 0.0
    for name in names:
        sides = []
        for values in (tree["posterior"][name].values, np.asarray(theirs[name])):
            flat = values.reshape(*values.shape[:2], -1)
            size = np.array([arviz_stats.ess(flat[..., i]) for i in range(flat.shape[-1])])
            sides.append((flat.mean((0, 1)), flat.var((0, 1)) / size.reshape(-1)))
        (left, left_error), (right, right_error) = sides
        worst = max(worst, float((np.abs(left - right) / np.sqrt(left_error + right_error)).max()))
    return worst
