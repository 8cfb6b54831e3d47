"""Gibbs steps on the counts of the two-urn model, hot, cold, or by the handful.

A *Gibbs step* takes a ball, uniformly, and assigns it again given all others: left with weight p
(alpha + s_1) / (2 alpha + n_1), with s_1 the balls of its colour among the n_1 others on the left,
and right likewise. Only counts are needed, and the step on counts is exact.

**Energy.** The law at beta is prior times likelihood^beta, with the urns' shares summed out, and a
step weighs the two sides by p and 1 - p times the ratio of the two factors above to the power beta.

**Step size.** All data, single steps of m balls of one colour. A ball is chosen uniformly for its
colour and its urn; m balls of that colour of that urn go, together, to one of the two sides. Of R
balls with i on the left, the pair (i, i + m) is chosen from i with probability (R - i) / R and
from i + m with (i + m) / R, so that

    P(i -> i + m) = (R - i) / R  *  pi(i + m) (i + m) / (pi(i) (R - i) + pi(i + m) (i + m))

leaves the posterior pi invariant; for m = 1 it is the Gibbs step. If the urn has fewer than m
balls the state stays. Here m = floor(1 / beta + u) with u uniform, 1 / beta on average and
independent of the state, so every step is exact. Balls of a handful that chose their sides one by
one would move the counts by sqrt(m) only, and not by m as the ball of a subsample does.

**Both.** The posterior of all balls is a ridge of width 1 / sqrt(N) about the line where a share p
of them is on the left, and a handful of more than sqrt(N) balls leaves it: such steps are refused.
With pi^beta in place of pi the ridge is as wide as that of beta N balls, and a handful of 1 / beta
balls is as long a step across it as a single ball in a subsample.
"""

import math
from typing import NamedTuple, no_type_check

from numba import njit


class Urns(NamedTuple):
    """What the kernels know of the model."""

    num_red: int
    num_blue: int
    p: float
    alpha: float


@njit(cache=True, nogil=True, inline="always")
@no_type_check
def goes_left(urns, same_left, left, same_right, right, u):
    """Whether a ball with `same_left` of its colour among `left` others on the left goes there."""
    to_left = urns.p * (urns.alpha + same_left) * (2 * urns.alpha + right)
    to_right = (1 - urns.p) * (urns.alpha + same_right) * (2 * urns.alpha + left)
    return u * (to_left + to_right) < to_left


@njit(cache=True, nogil=True)
@no_type_check
def step_often(urns, counts, num_steps, rng):
    """Gibbs steps of every row of `counts`."""
    num_red, num_blue = urns.num_red, urns.num_blue
    num = num_red + num_blue
    for run in range(counts.shape[0]):
        i, j = counts[run]
        for _ in range(num_steps):
            ball = rng.random() * num
            u = rng.random()
            if ball < num_red:
                i -= ball < i
                left = i + j
                i += goes_left(urns, i, left, num_red - 1 - i, num - 1 - left, u)
            else:
                j -= ball - num_red < j
                left = i + j
                j += goes_left(urns, j, left, num_blue - 1 - j, num - 1 - left, u)
        counts[run, 0], counts[run, 1] = i, j


@njit(cache=True, nogil=True)
@no_type_check
def cool(urns, counts, num_steps, rng):
    """Gibbs steps with beta from 0 to 1."""
    num_red, alpha = urns.num_red, urns.alpha
    num = num_red + urns.num_blue
    odds = (1 - urns.p) / urns.p
    for run in range(counts.shape[0]):
        i, j = counts[run]
        for t in range(num_steps):
            ball = rng.random() * num
            red = ball < num_red
            if red:
                i -= ball < i
                same_left, same_right = i, num_red - 1 - i
            else:
                j -= ball - num_red < j
                same_left, same_right = j, urns.num_blue - 1 - j
            left = i + j
            over = (alpha + same_right) * (2 * alpha + left)
            under = (alpha + same_left) * (2 * alpha + num - 1 - left)
            right_over_left = odds * (over / under) ** ((t + 1) / num_steps)
            to_left = rng.random() * (1 + right_over_left) < 1
            if red:
                i += to_left
            else:
                j += to_left
        counts[run, 0], counts[run, 1] = i, j


@njit(cache=True, nogil=True)
@no_type_check
def move_handful(table, both, here, other, size, from_left, beta, u):
    """The number of a colour on the left after `size` of its balls were offered both sides."""
    num = table.size - 1
    low = here - size if from_left else here
    high = low + size
    if low < 0 or high > num:
        return here
    log_ratio = table[high] - table[low] + both[high + other] - both[low + other]
    log_ratio = beta * log_ratio + math.log(high / (num - low))
    return high if u * (1 + math.exp(-log_ratio)) < 1 else low


@njit(cache=True, nogil=True)
@no_type_check
def shrink_handfuls(red, blue, both, counts, num_steps, heat, rng):
    """Steps with handfuls of 1 / beta balls, beta from 0 to 1, by pi or with `heat` by pi^beta."""
    num_red, num_blue = red.size - 1, blue.size - 1
    for run in range(counts.shape[0]):
        i, j = counts[run]
        for t in range(num_steps):
            size = int(num_steps / (t + 1) + rng.random())
            ball = rng.random() * (num_red + num_blue)
            u = rng.random()
            beta = (t + 1) / num_steps if heat else 1.0
            if ball < num_red:
                i = move_handful(red, both, i, j, size, ball < i, beta, u)
            else:
                j = move_handful(blue, both, j, i, size, ball - num_red < j, beta, u)
        counts[run, 0], counts[run, 1] = i, j
