"""Two urns with many balls: drift and diffusion of a Gibbs step, and what an anneal is worth.

Let x and y be the shares of the red and of the blue balls that lie on the left, r the share of red
ones, and N grow with alpha fixed. A step takes a red ball with probability r and puts it on the
left with probability

    P = p a_1 / (p a_1 + (1 - p) a_2),    a_1 = r x / n_1,    a_2 = r (1 - x) / n_2,

with n_1 = r x + (1 - r) y the share of all balls on the left and n_2 = 1 - n_1. Hence

    N   E[dx]   = P - x                                    the drift
    N^2 E[dx^2] = (x (1 - P) + (1 - x) P) / r              the diffusion

up to terms of order 1 / N, and for y with the colours exchanged. Both are free of N, so N steps
move x by its drift and N^2 steps let it diffuse. The drift vanishes where n_1 = p: there a run
diffuses along a line, and that takes of the order of N^2 steps. (Lemma 1 of the paper prints
coefficients that hold for p = 1/2 alone.)

On a subsample of beta N balls that time is beta^2 of what it is on all. So of an anneal with
beta = t / T, from N_0 balls on, the full data see the equal of

    T_eff = integral from T N_0 / N to T of dt / beta^2 = T (N / N_0 - 1)

steps. It is to be N^2 log(1 / epsilon): T = O(N N_0 log(1 / epsilon)), linear in N.
"""

import math

from temperance.errors import ArgumentError


def drift(x: float, y: float, *, red: float, p: float) -> float:
    """N E[dx] of a Gibbs step, for N to infinity; `red` is the share of red balls."""
    return _goes_left(x, y, red, p) - x


def diffusion(x: float, y: float, *, red: float, p: float) -> float:
    """N^2 E[dx^2] of a Gibbs step, for N to infinity."""
    left = _goes_left(x, y, red, p)
    return (x * (1 - left) + (1 - x) * left) / red


def effective_time(duration: float, num_balls: int, smallest: int) -> float:
    """The steps on all balls that a linear anneal is worth, from `smallest` balls on."""
    if not 1 <= smallest <= num_balls:
        raise ArgumentError(f"smallest: got {smallest} balls, wanted 1 to {num_balls}")
    return duration * (num_balls / smallest - 1)


def anneal_time(num_balls: int, smallest: int, epsilon: float) -> float:
    """A duration whose effective time is N^2 log(1 / epsilon), the order of cold inference."""
    if not 1 <= smallest < num_balls:
        raise ArgumentError(f"smallest: got {smallest} balls, wanted 1 to {num_balls - 1}")
    return num_balls**2 * math.log(1 / epsilon) / (num_balls / smallest - 1)


def _goes_left(x: float, y: float, red: float, p: float) -> float:
    left = red * x + (1 - red) * y
    to_left = p * red * x * (1 - left)
    to_right = (1 - p) * red * (1 - x) * left
    return to_left / (to_left + to_right)
