"""Broken twins of two-urn anneals, named after their slips."""

import numpy as np
from numba import njit

from temperance.testing.urns import enumeration as enumerated
from temperance.testing.urns.churns import churn_once, pick, place
from temperance.testing.urns.enumeration import picks, placements, predictive, removals, subsamples
from temperance.testing.urns.strategies import known


def churns_after_all_growth(urns, num_churns):
    """The loops side by side, as the print's lost indentation reads: T churns, at the full size."""
    law = np.ones(1)
    for size in range(urns.num_red + urns.num_blue):
        law = law @ enumerated.growth(urns, size)
    last = enumerated.churn(urns, urns.num_red + urns.num_blue)
    return law @ np.linalg.matrix_power(last, num_churns)


def runs_with_churns_after_all_growth(urns, rng, passes, num_runs):
    """The same slip in the kernel's own words."""
    counts = np.empty((num_runs, 2), np.int64)
    _grow_then_churn(known(urns), counts, passes - 1, rng)
    return counts


@njit
def _grow_then_churn(model, counts, num_churns, rng):
    for run in range(counts.shape[0]):
        held = np.zeros(4, np.int64)
        for _ in range(model.num_red + model.num_blue):
            place(model, held, pick(model, held, 1.0, 1.0, rng), rng)
        for _ in range(num_churns):
            churn_once(model, held, 0, False, rng)
        counts[run] = held[:2]


def churn_without_acceptance(urns, size):
    """Proposes as the Metropolis churn does and takes everything: the printed churn."""
    return enumerated.churn(urns, size, "uniform")


def churn_accepting_by_the_old_predictive(urns, size):
    """Compares predictive probabilities with r still in."""
    states = subsamples(urns, size)
    matrix = np.zeros((len(states), len(states)))
    for k, held in enumerate(states):
        for gone in removals(held):
            for chance, colour in picks(urns, gone.held):
                ratio = predictive(urns, held, colour) / predictive(urns, held, gone.place % 2)
                for way in placements(urns, gone.held, colour):
                    move = gone.chance * chance * way.chance
                    matrix[k, states.index(way.held)] += min(1.0, ratio) * move
                    matrix[k, k] += (1.0 - min(1.0, ratio)) * move
    return matrix


def weights_without_removals(urns, num_churns):
    """E[w; end] where balls in multiply the weight and balls out do not divide it."""
    law = np.ones(1)
    for size in range(urns.num_red + urns.num_blue):
        law = law @ enumerated.growth(urns, size, weigh=True)
        states = subsamples(urns, size + 1)
        step = np.zeros((len(states), len(states)))
        for k, held in enumerate(states):
            for gone in removals(held):
                for chance, colour in picks(urns, gone.held):
                    factor = gone.chance * chance * predictive(urns, gone.held, colour)
                    for way in placements(urns, gone.held, colour):
                        step[k, states.index(way.held)] += factor * way.chance
        law = law @ np.linalg.matrix_power(step, num_churns)
    return law


def handful_by_the_posterior_alone(urns, size):
    """Weighs both sides by the posterior, and forgets how likely the handful was to be chosen."""
    num = urns.num_red + urns.num_blue
    states, law = subsamples(urns, num), enumerated.extended_law(urns, num)
    matrix = np.zeros((len(states), len(states)))
    for k, held in enumerate(states):
        for gone in removals(held):
            if held[gone.place] < size:
                matrix[k, k] += gone.chance
                continue
            after = list(held)
            after[gone.place] -= size
            after[(gone.place + 2) % 4] += size
            other = states.index(tuple(after))
            matrix[k, other] += gone.chance * law[other] / (law[other] + law[k])
            matrix[k, k] += gone.chance * law[k] / (law[other] + law[k])
    return matrix


def printed_drift(x, y, *, red, p):
    """The drift of the print, which has no p in it."""
    r_1, r_2 = red * x, red * (1 - x)
    n_1 = r_1 + (1 - red) * y
    n_2 = 1 - n_1
    return (1 - 2 * x) / 2 + 0.5 * (n_2 * r_1 - n_1 * r_2) / (n_2 * r_1 + n_1 * r_2)


def printed_effective_time(duration, num_balls, smallest):
    """The print's value of the integral of 1 / beta^2."""
    return (1 / num_balls) * (1 / smallest - 1 / num_balls)
