"""The samplers of paper 1, section 4.3, with the paper's settings.

    betas         beta_m = 2^(-m/2), m = 0..6; subsamples of round(beta_m N) rows
    metropolis    step 0.1 beta_m^(-1/2) in every coordinate
    hmc           step 0.01; 10 leapfrog steps for the normal, 5 for the Gaussian process

Nothing is tuned, no step is jittered, and the metric is the identity. All five samplers run the same
inner kernel: leapfrog that drifts first (drift, kick, drift), which needs no gradient at the ends of
a trajectory, so that a point that changes rung carries nothing that belongs to the rung it came from.
Rung 0 is the hottest here, so that our rung k is the paper's m = 6 - k.

**What an iteration costs**, in units of one inner iteration, when a row costs the same everywhere:

    plain 1,  SPT sum_k n_k^a / N^a,  STT 1 + 2 sum_{k < 6} n_k^a / N^a,  PT 7,  TT 13,

with a = 1 for the normal and a = 3 for the Gaussian process. STT and TT make an ordinary move at the
target first, and two at every other rung.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

import temperance as tp

NUM_HOTTER = 6
BETAS = 2.0 ** (-0.5 * np.arange(NUM_HOTTER, -1, -1))
HMC_STEP, METROPOLIS_STEP = 0.01, 0.1
NUM_LEAPFROG = {"normal": 10, "gp": 5}
EXPONENT = {"normal": 1, "gp": 3}
# In the order of the paper's tables.
SAMPLERS = ("plain", "stt", "tt", "spt", "pt")
MOVES = ("hmc", "metropolis")
NUM_CHAINS = 3


class TotalTerms(eqx.Module):
    """The log likelihood of all rows."""

    terms: Any
    data: Any

    def __call__(self, position: Any) -> Array:
        return jnp.sum(self.terms(position, self.data))


def sizes(num_rows: int) -> list[int]:
    """Rows of each rung, the hottest first."""
    return [round(float(beta) * num_rows) for beta in BETAS]


def move_named(name: str, problem: str, integrator: str = "position") -> Any:
    """The paper's inner kernel."""
    if name == "metropolis":
        return tp.metropolis(METROPOLIS_STEP, metric="unit")
    return tp.hmc(
        num_steps=NUM_LEAPFROG[problem],
        step_size=HMC_STEP,
        metric="unit",
        jitter=0.0,
        integrator=integrator,
    )


def params(move: str, dimension: int) -> tp.Params:
    """Step sizes by rung, and the identity."""
    steps = METROPOLIS_STEP * BETAS**-0.5 if move == "metropolis" else np.full(7, HMC_STEP)
    return tp.Params(jnp.asarray(steps)[:, None], jnp.ones((len(BETAS), dimension)))


def sampler_named(
    name: str, problem: tp.Problem, kind: str, move: str, integrator: str = "position"
) -> Any:
    """One of the five samplers on `problem`, of the `kind` "normal" or "gp"."""
    kernel = move_named(move, kind, integrator)
    dimension = sum(leaf.size for leaf in jax.tree.leaves(problem.example()))
    steps = params(move, dimension)
    if name in ("spt", "stt"):
        ladder = tp.PrefixLadder.of(problem, sizes(problem.num_rows), seed=0)
    else:
        data = jax.tree.map(jnp.asarray, problem.data)
        ladder = tp.GeometricLadder(problem.log_prior, TotalTerms(problem.terms, data), BETAS)
    if name == "plain":
        return tp.Plain(ladder, kernel, steps)
    if name in ("pt", "spt"):
        return tp.ParallelTempering(ladder, kernel, steps, scheme="sweep")
    return tp.TemperedTransitions(ladder, kernel, steps)


def theory(sampler: str, num_rows: int, exponent: int) -> float:
    """Cost of an iteration in units of the inner sampler's, with the sizes as they are rounded."""
    hotter = [(n / num_rows) ** exponent for n in sizes(num_rows)[:-1]]
    return {
        "plain": 1.0,
        "spt": 1.0 + sum(hotter),
        "stt": 1.0 + 2.0 * sum(hotter),
        "pt": 1.0 + len(hotter),
        "tt": 1.0 + 2.0 * len(hotter),
    }[sampler]
