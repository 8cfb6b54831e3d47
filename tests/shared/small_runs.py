"""Small runs that several tests share, so that their programs are compiled once.

python -m tests.shared.small_runs CASE PATH      runs a case with a checkpoint, in blocks of a few
                                                 steps, and prints each block once it is kept
"""

import contextlib
import functools
import sys
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import temperance as tp
from temperance.engine import conductor
from temperance.engine.checkpoint import Store

ROWS = np.linspace(-1.0, 2.0, 6)
DIMENSION = 2
SHORT: dict[str, Any] = {"num_draws": 40, "num_warmup": 60, "num_chains": 2, "progress": False}


def log_prior(x):
    return -0.5 * jnp.sum(x["mean"] ** 2) - 0.5 * DIMENSION * np.log(2 * np.pi)


def terms(x, rows):
    return -0.5 * (rows - jnp.sum(x["mean"])) ** 2 - 0.5 * np.log(2 * np.pi)


def draw_prior(key):
    return {"mean": jax.random.normal(key, (DIMENSION,))}


def log_likelihood(x):
    return jnp.sum(terms(x, jnp.asarray(ROWS)))


def make_problem(**changes: Any) -> tp.Problem:
    parts = {"log_prior": log_prior, "terms": terms, "data": ROWS, "draw_prior": draw_prior}
    return tp.Problem(**(parts | changes))


def by_hand(scale: float = 0.7) -> tp.ParallelTempering:
    ladder = tp.GeometricLadder(log_prior, log_likelihood, [0.0, 0.2, 1.0])
    params = tp.Params(jnp.full((3, 1), scale), jnp.ones((3, DIMENSION)))
    return tp.ParallelTempering(ladder, tp.metropolis(scale=scale), params)


# As many as the pilot chooses for this problem, so that they run the same program.
BETAS = (0.0, 0.1, 0.4, 1.0)
CASES: dict[str, dict[str, Any]] = {
    "pt": {"method": "pt", "move": "metropolis", "seed": 1},
    "tt": {"method": "tt", "move": "metropolis", "betas": BETAS},
    "plain": {"method": "plain", "move": "hmc"},
    "spt": {"method": "spt", "move": "metropolis", "sizes": (0, 2, 6)},
    "spt refreshed": {"method": "spt", "move": "hmc", "sizes": (2, 6), "refresh": 1},
    "stt": {"method": "stt", "move": "metropolis", "sizes": (1, 3, 6)},
    "st": {"method": "st", "move": "metropolis", "betas": BETAS},
    "gibbs-ct": {"method": "gibbs-ct", "move": "metropolis", "base": "prior"},
    "joint-ct": {"method": "joint-ct", "move": "metropolis", "base": "prior"},
    "ais": {"method": "ais", "move": "metropolis", "num_rungs": 6},
    "ais by rows": {"method": "ais", "move": "metropolis", "sizes": (0, 2, 6)},
    "smc": {"method": "smc", "move": "metropolis", "most_moves": 10},
    "smc by rows": {"method": "smc", "move": "metropolis", "sizes": (0, 2, 6), "num_moves": 20},
    "pt from modes": {"method": "pt", "move": "metropolis", "base": "modes"},
    "auto": {"method": "auto", "move": "metropolis"},
    "hand": {"method": by_hand},
}

# Cases that run in the slow tests: each is a program more, and the others are much like them.
LONGER = ("st", "joint-ct", "ais by rows", "smc by rows", "pt from modes", "auto")
# Their draws are all there at once, as many as particles, and a run is of so many of them.
WHOLE = ("smc", "smc by rows")


def run(case: str, **changes: Any) -> Any:
    """The case's call of `sample`, with `changes`."""
    options = SHORT | CASES[case] | changes
    if options["method"] is by_hand:
        options["method"] = by_hand()
    return tp.sample(options.pop("problem", None) or make_problem(), **options)


@functools.cache
def uninterrupted(case: str, num_draws: int = SHORT["num_draws"]) -> Any:
    """What the case gives in one go, without a checkpoint."""
    return run(case, num_draws=num_draws)


def assert_identical(one: Any, two: Any, *, draws: int | None = None) -> None:
    """Every array of every group is the same to the last bit; of the first `draws` if given."""
    assert set(one.children) == set(two.children)
    for group in one.children:
        left, right = one[group].dataset, two[group].dataset
        if draws is not None:
            if group not in ("posterior", "sample_stats"):
                continue
            left, right = left.isel(draw=slice(draws)), right.isel(draw=slice(draws))
        assert set(left.variables) == set(right.variables)
        for name in left.variables:
            first, second = left[name].values, right[name].values
            assert (first.dtype, first.shape) == (second.dtype, second.shape), name
            assert first.tobytes() == second.tobytes(), f"{group}/{name}"


@contextlib.contextmanager
def small_blocks() -> Iterator[None]:
    """Blocks of a few steps, so that there are many moments to be stopped at."""
    before = conductor.FIRST_BLOCK, conductor.PATIENCE
    conductor.FIRST_BLOCK, conductor.PATIENCE = 3, 0.004
    try:
        yield
    finally:
        conductor.FIRST_BLOCK, conductor.PATIENCE = before


def main(case: str, path: str) -> None:
    append = Store.append

    def told(self: Store, phase: str, *args: Any, **kwargs: Any) -> Any:
        block = append(self, phase, *args, **kwargs)
        print(phase, flush=True)
        return block

    Store.append = told
    with small_blocks():
        run(case, checkpoint=path)


if __name__ == "__main__":
    main(*sys.argv[1:])
