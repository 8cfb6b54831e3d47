"""The samplers of paper 1, section 4.3, with the paper's settings.

    betas         beta_m = 2^(-m/2), m = 0..6; subsamples of round(beta_m N) rows
    metropolis    step 0.1 beta_m^(-1/2) in every coordinate
    hmc           step 0.01; 10 leapfrog steps for the normal, 5 for the Gaussian process

Nothing is tuned, no step is jittered, and the metric is the identity. All five samplers run the same
inner kernel: leapfrog that drifts first (drift, kick, drift), which needs no gradient at the ends of
a trajectory, so that a point that changes rung carries nothing that belongs to the rung it came from.
Rung 0 is the hottest here, so that our rung k is the paper's m = 6 - k.

**What an iteration costs**, in units of one inner iteration, when only the moves count:

    plain 1,  SPT sum_k b_k,  STT sum_k b_k + sum_{0 < k < 6} b_k,  PT 7,  TT 12,      b_k = (n_k / N)^a,

with a = 1 for the normal and a = 3 for the Gaussian process. STT and TT move at the target first, then
twice at every rung but the hottest, and once there: what the paper's eq. 14 means and misprints.

Subsamples have to be compared as well. With v the cost of a value over that of an inner iteration,

    SPT + v sum_k s_k / 2,     STT + v (b_5 + sum_k s_k),

where s_k is the work to lift a point from rung k to k + 1: (n_{k+1} - n_k) / N if rows are
independent, b_{k+1} if they look back; b_5 is for the first look at new subsamples. Swaps are those of even
and odd pairs in turn, so that a sweep compares half of them, where the paper compares all. HMC that drifts
first evaluates L gradients and one value an iteration, so v = 1 / (L + 1) in rows; in cubes a value is
a third of a value with gradient, and v = (1/3) / (L + 1/3). For Metropolis v = 1.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

import temperance as tp
from temperance.ladders.prefix import PrefixLadder
from temperance.ladders.spacing import spt_cost, stt_cost
from temperance.methods.report.work import VALUE
from temperance.moves.hmc import INTEGRATORS, SINGLE

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
    log_likelihood: Any

    def __call__(self, position: Any) -> Array:
        if self.log_likelihood is not None:
            return self.log_likelihood(position, self.data)
        return jnp.sum(self.terms(position, self.data))


def sizes(num_rows: int) -> list[int]:
    """Rows of each rung, the hottest first."""
    return [round(float(beta) * num_rows) for beta in BETAS]


def move_named(name: str, problem: str, integrator: str = "position", single: str = "never") -> Any:
    """The paper's inner kernel."""
    if name == "metropolis":
        return tp.metropolis(METROPOLIS_STEP, metric="unit")
    return tp.hmc(
        num_steps=NUM_LEAPFROG[problem],
        step_size=HMC_STEP,
        metric="unit",
        jitter=0.0,
        integrator=integrator,
        single=single,
    )


def params(move: str, dimension: int, hmc_step: float = HMC_STEP) -> tp.Params:
    """Step sizes by rung, and the identity."""
    steps = METROPOLIS_STEP * BETAS**-0.5 if move == "metropolis" else np.full(7, hmc_step)
    return tp.Params(jnp.asarray(steps)[:, None], jnp.ones((len(BETAS), dimension)))


def sampler_named(words: str, problem: tp.Problem, kind: str, move: str) -> Any:
    """One of the five samplers on `problem`, of the `kind` "normal" or "gp".

    After its name `words` may give HMC's integrator, another step, and where its gradients are of
    single precision: "plain velocity", "stt 0.1", "spt hot".
    """
    name, *given = words.split()
    integrator = next((word for word in given if word in INTEGRATORS), "position")
    single = next((word for word in given if word in SINGLE), "never")
    step = next((word for word in given if word not in (*INTEGRATORS, *SINGLE)), HMC_STEP)
    kernel = move_named(move, kind, integrator, single)
    dimension = sum(leaf.size for leaf in jax.tree.leaves(problem.example()))
    steps = params(move, dimension, float(step))
    if name in ("spt", "stt"):
        ladder = PrefixLadder.of(problem, sizes(problem.num_rows), seed=0)
    else:
        data = jax.tree.map(jnp.asarray, problem.data)
        total = TotalTerms(problem.terms, data, problem.log_likelihood)
        ladder = tp.GeometricLadder(problem.log_prior, total, BETAS)
    if name == "plain":
        return tp.Plain(ladder, kernel, steps)
    if name in ("pt", "spt"):
        return tp.ParallelTempering(ladder, kernel, steps)
    return tp.TemperedTransitions(ladder, kernel, steps)


def theory(sampler: str, num_rows: int, problem: str) -> float:
    """Cost of an iteration's moves in units of the inner sampler's, with the sizes as rounded."""
    if sampler == "plain":
        return 1.0
    cost = spt_cost if sampler in ("pt", "spt") else stt_cost
    # A rung of powers costs what the target does, however hot it is.
    exponent = float(EXPONENT[problem]) if sampler in ("spt", "stt") else 0.0
    return cost(np.array(sizes(num_rows)), exponent)


def theory_with_swaps(sampler: str, num_rows: int, problem: str, move: str) -> float:
    """The same, with what comparing subsamples costs."""
    moves = theory(sampler, num_rows, problem)
    if sampler not in ("spt", "stt"):
        return moves
    rows = np.array(sizes(num_rows)) / num_rows
    value = 1.0 if EXPONENT[problem] == 1 else VALUE
    inner = value if move == "metropolis" else NUM_LEAPFROG[problem] + value
    lifts = np.diff(rows) if EXPONENT[problem] == 1 else rows[1:] ** EXPONENT[problem]
    if sampler == "spt":
        return moves + 0.5 * value / inner * float(lifts.sum())
    return moves + value / inner * float(rows[-2] ** EXPONENT[problem] + lifts.sum())
