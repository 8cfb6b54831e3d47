"""Ways to the posterior of the two-urn model, with a budget of T N assignments each.

Balls are N, and T are passes over them.

    prior               a draw of the prior, every ball on the left with probability p
    prior+gibbs         then T N Gibbs steps
    sequential          balls in random order, each assigned given those before it
    sequential+gibbs    then (T - 1) N Gibbs steps
    anneal-energy       from the prior, T N Gibbs steps by likelihood^beta, beta = t / (T N)
    anneal-stepsize     from the prior, T N steps with handfuls of about 1 / beta balls
    anneal-both         the same by the posterior to the power beta
    anneal-subsample    after each new ball T - 1 churns: one ball out, one in
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from temperance.errors import ArgumentError, unknown_name
from temperance.testing.urns.churns import CHURNS, UNIFORM, grow_and_churn
from temperance.testing.urns.gibbs import Urns, cool, shrink_handfuls, step_often

IntArray = npt.NDArray[np.int64]


class Runs(NamedTuple):
    """Final (i, j) of runs, one in each row, and the logs of their weights."""

    counts: IntArray
    log_weights: npt.NDArray[np.float64]


def check_budget(passes: int, num_runs: int) -> None:
    """Refuse an empty budget."""
    for name, got in (("passes", passes), ("num_runs", num_runs)):
        if got < 1:
            raise ArgumentError(f"{name}: got {got}, wanted one at least")


def check_churn(name: str) -> int:
    """The number of a churn."""
    if name not in CHURNS:
        raise unknown_name("churn", name, CHURNS)
    return CHURNS[name]


def prior(urns: Any, rng: np.random.Generator, passes: int, num_runs: int) -> IntArray:  # noqa: ARG001
    """Draws of the prior."""
    return rng.binomial((urns.num_red, urns.num_blue), urns.p, size=(num_runs, 2))


def prior_gibbs(urns: Any, rng: np.random.Generator, passes: int, num_runs: int) -> IntArray:
    """Gibbs from the prior."""
    counts = prior(urns, rng, passes, num_runs)
    step_often(known(urns), counts, passes * urns.num_balls, rng)
    return counts


def sequential(urns: Any, rng: np.random.Generator, passes: int, num_runs: int) -> IntArray:  # noqa: ARG001
    """Each ball given those before it: annealing without churns."""
    return _annealed(urns, rng, 1, num_runs, UNIFORM, False).counts


def sequential_gibbs(urns: Any, rng: np.random.Generator, passes: int, num_runs: int) -> IntArray:
    """Gibbs from there."""
    counts = sequential(urns, rng, passes, num_runs)
    step_often(known(urns), counts, (passes - 1) * urns.num_balls, rng)
    return counts


def anneal_energy(urns: Any, rng: np.random.Generator, passes: int, num_runs: int) -> IntArray:
    """Gibbs with a likelihood that cools from the prior to itself."""
    counts = prior(urns, rng, passes, num_runs)
    cool(known(urns), counts, passes * urns.num_balls, rng)
    return counts


def anneal_stepsize(urns: Any, rng: np.random.Generator, passes: int, num_runs: int) -> IntArray:
    """Handfuls of all data that shrink to single balls."""
    return _handfuls(urns, rng, passes, num_runs, False)


def anneal_both(urns: Any, rng: np.random.Generator, passes: int, num_runs: int) -> IntArray:
    """The same while the posterior cools."""
    return _handfuls(urns, rng, passes, num_runs, True)


def anneal_subsample(urns: Any, rng: np.random.Generator, passes: int, num_runs: int) -> IntArray:
    """A subsample that grows and churns."""
    return _annealed(urns, rng, passes, num_runs, UNIFORM, False).counts


def anneal(urns: Any, rng: np.random.Generator, passes: int, num_runs: int, churn: int) -> Runs:
    """The same by any churn, with weights."""
    return _annealed(urns, rng, passes, num_runs, churn, True)


def known(urns: Any) -> Urns:
    """The model as the kernels take it, always of the same types."""
    return Urns(int(urns.num_red), int(urns.num_blue), float(urns.p), float(urns.alpha))


def _handfuls(
    urns: Any, rng: np.random.Generator, passes: int, num_runs: int, heat: bool
) -> IntArray:
    counts = prior(urns, rng, passes, num_runs)
    red, blue, both = urns.log_tables
    shrink_handfuls(red, blue, both, counts, passes * urns.num_balls, heat, rng)
    return counts


def _annealed(
    urns: Any, rng: np.random.Generator, passes: int, num_runs: int, churn: int, weigh: bool
) -> Runs:
    runs = Runs(np.empty((num_runs, 2), np.int64), np.zeros(num_runs))
    grow_and_churn(known(urns), runs.counts, runs.log_weights, passes - 1, churn, weigh, rng)
    return runs
