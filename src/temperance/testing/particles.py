"""Sequential Monte Carlo on a finite space: sums over all outcomes, and no draws.

`log_densities[k, x]` is log pi_k(x), rung 0 hottest, and `kernels[k]` a matrix that leaves pi_{k+1}
invariant, for the moves at rung k + 1. All N particles are followed at once. With X a tuple of N
states and W their weights, the measure

    Gamma_k(X, W) = E[ Z-hat_k ; the particles at rung k are X, with weights W ]

begins as the law of N exact draws of pi_0, and is taken through weights, every set of ancestors and
every path of the moves, each with its probability. Its sum is E[Z-hat], and

    sum over (X, W) of Gamma(X, W) sum_i W^i 1[X^i = x]

must be pi_{K-1}(x) / sum_x pi_0(x) for every state x: not Z alone, the whole unnormalised target is
estimated without bias. Where chains of P states grow from M ancestors (waste-free), N = M P
particles lie state by state: the M first states, then the M second ones.

Weights and resampling are passed in as the functions that the sampler uses, so that it is they that
are tested. `resampled` splits the uniforms of a scheme where its ancestors change: between two cuts
the ancestors are those at the middle.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import pairwise, product
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from temperance.samplers.annealing.particles import reweighted
from temperance.samplers.annealing.resampling import ancestors_at, num_uniforms, places_of
from temperance.testing.enumeration import Law, Matrix, Table, normalised

States = tuple[int, ...]
Weights = tuple[float, ...]
Outcome = tuple[float, States, Weights]
# (log weights, log increments) -> (log weights, log of the factor that Z-hat takes)
Weigh = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, float]]
# weights -> (probability, ancestors, weights that they begin with)
Resample = Callable[[Weights], list[Outcome]]
# For every particles and weights, the first and the second moment of Z-hat on paths to them.
Measure = dict[tuple[States, Weights], np.ndarray]
POWERS = np.array([1.0, 2.0])
DIGITS = 12


_reweighted = jax.jit(reweighted)


class Moments(NamedTuple):
    """E[Z-hat], E[Z-hat^2], and the mean of the estimated unnormalised target at each state."""

    mean: float
    square: float
    target: Law


def weigh(log_weights: np.ndarray, increments: np.ndarray) -> tuple[np.ndarray, float]:
    """As the sampler does."""
    after, log_ratio = _reweighted(jnp.asarray(log_weights), jnp.asarray(increments))
    return np.asarray(after), float(log_ratio)


def resampled(scheme: str, num: int) -> Resample:
    """Every set of `num` ancestors under a scheme, with its probability and even weights."""

    @jax.jit
    def ancestors_of(uniforms: Array, log_weights: Array) -> Array:
        return jax.vmap(lambda u: ancestors_at(places_of(u, num, scheme), log_weights))(uniforms)

    def outcomes(weights: Weights) -> list[Outcome]:
        edges = np.cumsum(weights)
        cells = [_cells(num * edges - m if scheme != "multinomial" else edges, scheme)
                 for m in range(num_uniforms(num, scheme))]  # fmt: skip
        every = list(product(*cells))
        uniforms = jnp.asarray([[middle for middle, _ in cell] for cell in every])
        ancestors = np.asarray(ancestors_of(uniforms, jnp.log(jnp.asarray(weights))))
        found: dict[States, float] = defaultdict(float)
        for cell, states in zip(every, ancestors.tolist(), strict=True):
            found[tuple(states)] += float(np.prod([share for _, share in cell]))
        return [(chance, states, (1 / num,) * num) for states, chance in found.items()]

    return outcomes


def _cells(cuts: Float[np.ndarray, " cuts"], scheme: str) -> list[tuple[float, float]]:
    """The middles and the lengths of the pieces of (0, 1) between cuts."""
    # One uniform for all places sees the edges of each of them.
    inside = cuts % 1.0 if scheme == "systematic" else cuts[(cuts > 0) & (cuts < 1)]
    ends = np.unique(np.r_[0.0, inside, 1.0])
    return [(0.5 * (a + b), b - a) for a, b in pairwise(ends.tolist()) if b - a > 1e-14]


def moments(
    log_densities: Table,
    kernels: Sequence[Matrix],
    num_particles: int,
    resample: Resample,
    *,
    length: int = 1,
    weigh: Weigh = weigh,
    gather: Callable[[list[States]], States] | None = None,
) -> Moments:
    """Of Z-hat with N particles; with `length` > 1 from `resample`'s ancestors, in chains.

    `gather` makes the particles of the M chains; by default all of their states.
    """
    measure = _start(log_densities, num_particles)
    known: dict[Weights, list[Outcome]] = {}
    for step, kernel in zip(np.diff(log_densities, axis=0), kernels, strict=True):
        taken: Measure = defaultdict(lambda: np.zeros(2))
        for (states, weights), mass in measure.items():
            logs, log_factor = weigh(np.log(weights), step[list(states)])
            after = tuple(np.round(np.exp(logs), DIGITS).tolist())
            if after not in known:
                known[after] = resample(after)
            for chance, ancestors, begun in known[after]:
                starts = tuple(states[a] for a in ancestors)
                taken[starts, begun] += chance * np.exp(POWERS * log_factor) * mass
        measure = defaultdict(lambda: np.zeros(2))
        for (starts, begun), mass in taken.items():
            for chance, states in _moved(starts, kernel, length, gather):
                # States of chains are as many as their ancestors, or more and then even.
                weights = begun if len(states) == len(begun) else (1 / len(states),) * len(states)
                measure[states, weights] += chance * mass
    target = np.zeros(log_densities.shape[1])
    for (states, weights), mass in measure.items():
        np.add.at(target, list(states), mass[0] * np.asarray(weights))
    mean, square = sum(measure.values(), np.zeros(2)).tolist()
    return Moments(mean, square, target)


def _start(log_densities: Table, num_particles: int) -> Measure:
    """Exact draws of the hottest rung, evenly weighted."""
    law = normalised(log_densities[0])
    even = (1 / num_particles,) * num_particles
    every = product(range(law.size), repeat=num_particles)
    return {(states, even): np.full(2, np.prod(law[list(states)])) for states in every}


def _moved(
    starts: States, kernel: Matrix, length: int, gather: Callable[[list[States]], States] | None
) -> list[tuple[float, States]]:
    """The particles after the moves, and their probabilities."""
    num = kernel.shape[0]
    if length == 1:
        return [
            (float(np.prod(kernel[list(starts), list(ends)])), ends)
            for ends in product(range(num), repeat=len(starts))
        ]
    found = []
    for later in product(product(range(num), repeat=len(starts)), repeat=length - 1):
        chains = [starts, *later]
        chance = np.prod([kernel[list(a), list(b)] for a, b in pairwise(chains)])
        states = sum(chains, ()) if gather is None else gather(chains)
        found.append((float(chance), states))
    return found
