"""Subsample annealing of the two-urn model: balls in, balls out, and what a run weighs.

A *churn* of a subsample S with assignments z takes a ball r out, uniformly, picks a ball a among
those that are then not in S, and assigns it. Write z' for what is left without r, and p(x | z') for
the predictive probability of a colour, the sum over urns of the weights of a Gibbs step.

    uniform       a uniformly. What the paper prints; it leaves neither U(S) p(z | X_S) nor
                  f(S, z) = p(z, X_S) invariant, except at n = 1 and at n = N.
    metropolis    the same proposal, accepted with min(1, p(x_a | z') / p(x_r | z')); else r
                  goes back where it was. Leaves f invariant.
    weighted      a with probability proportional to p(x_a | z'). Leaves f invariant.

**Weights.** Each new ball multiplies a run's weight by p(x_a | z), each uniform churn by the
ratio p(x_a | z') / p(x_r | z'), each exact churn by one. Then E[w; z] = p(z, X), for any number of
churns. This is annealed importance sampling: the weights are ratios of f, forward and backward, in
which the chances (N - n) / (n + 1) of choosing balls multiply to one.
"""

import math
from typing import no_type_check

import numpy as np
from numba import njit

from temperance.testing.urns.gibbs import goes_left

UNIFORM, METROPOLIS, WEIGHTED = range(3)
CHURNS = {"uniform": UNIFORM, "metropolis": METROPOLIS, "weighted": WEIGHTED}


@njit(cache=True, nogil=True)
@no_type_check
def predictive(urns, held, colour):
    """The probability that the next ball has a colour (0 is red).

    `held` counts the balls assigned: red and blue on the left, red and blue on the right.
    """
    left = (urns.alpha + held[colour]) / (2 * urns.alpha + held[0] + held[1])
    right = (urns.alpha + held[2 + colour]) / (2 * urns.alpha + held[2] + held[3])
    return urns.p * left + (1 - urns.p) * right


@njit(cache=True, nogil=True)
@no_type_check
def place(urns, held, colour, rng):
    """Assign a ball of a colour."""
    left, right = held[0] + held[1], held[2] + held[3]
    to_left = goes_left(urns, held[colour], left, held[2 + colour], right, rng.random())
    held[colour if to_left else 2 + colour] += 1


@njit(cache=True, nogil=True)
@no_type_check
def take_out(held, rng):
    """Take one of the assigned balls out, and return its place in `held`."""
    ball = rng.random() * (held[0] + held[1] + held[2] + held[3])
    where = 0
    while where < 3 and ball >= held[where]:
        ball -= held[where]
        where += 1
    held[where] -= 1
    return where


@njit(cache=True, nogil=True)
@no_type_check
def pick(urns, held, red_weight, blue_weight, rng):
    """The colour of one of the balls not assigned, each with its colour's weight."""
    red = (urns.num_red - held[0] - held[2]) * red_weight
    blue = (urns.num_blue - held[1] - held[3]) * blue_weight
    return 0 if rng.random() * (red + blue) < red else 1


@njit(cache=True, nogil=True)
@no_type_check
def churn_once(urns, held, churn, weigh, rng):
    """One ball out and one in; the change of the log weight."""
    where = take_out(held, rng)
    out = where & 1
    if churn == WEIGHTED:
        weights = predictive(urns, held, 0), predictive(urns, held, 1)
        place(urns, held, pick(urns, held, weights[0], weights[1], rng), rng)
        return 0.0
    colour = pick(urns, held, 1.0, 1.0, rng)
    ratio = 1.0
    if colour != out and (weigh or churn == METROPOLIS):
        ratio = predictive(urns, held, colour) / predictive(urns, held, out)
    if churn == METROPOLIS and rng.random() >= ratio:
        held[where] += 1
        return 0.0
    place(urns, held, colour, rng)
    return math.log(ratio) if churn == UNIFORM else 0.0


@njit(cache=True, nogil=True)
@no_type_check
def grow_and_churn(urns, counts, log_weights, num_churns, churn, weigh, rng):
    """Whole anneals, one for each row of `counts`."""
    held = np.empty(4, np.int64)
    for run in range(counts.shape[0]):
        held[:] = 0
        log_weight = 0.0
        for _ in range(urns.num_red + urns.num_blue):
            colour = pick(urns, held, 1.0, 1.0, rng)
            if weigh:
                log_weight += math.log(predictive(urns, held, colour))
            place(urns, held, colour, rng)
            for _ in range(num_churns):
                log_weight += churn_once(urns, held, churn, weigh, rng)
        counts[run, 0], counts[run, 1] = held[0], held[1]
        log_weights[run] = log_weight
