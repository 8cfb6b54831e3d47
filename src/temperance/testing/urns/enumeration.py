"""The two-urn model with few balls: every kernel a matrix, every anneal a law.

A state `held` has the balls of a subsample by place: red and blue on the left, red and blue on the
right. Balls of a colour are alike, so a state stands for

    C(R, n_red) C(n_red, red left) C(B, n_blue) C(n_blue, blue left)

labelled ones: choices of the balls, and of their urns. All probabilities come from the joint law of
labelled assignments and colours by ratios,

    p(z, X_S) = p^left (1-p)^right B(alpha + red left, alpha + blue left)
                B(alpha + red right, alpha + blue right) / B(alpha, alpha)^2,

so nothing here shares a formula with the kernels in `temperance.crosscat`. A matrix with `weigh`
has each way's weight as a factor, and its products carry E[w; state].
"""

import math
from collections.abc import Iterator
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float
from scipy.sparse import coo_array, csr_array
from scipy.special import betaln

from temperance.testing.enumeration import Law, Matrix, normalised

Held = tuple[int, int, int, int]


@runtime_checkable
class Urns(Protocol):
    """A model: `TwoUrns` is one."""

    @property
    def num_red(self) -> int: ...
    @property
    def num_blue(self) -> int: ...
    @property
    def p(self) -> float: ...
    @property
    def alpha(self) -> float: ...


class Way(NamedTuple):
    """One ball in or out: how likely, its place in `held`, and the state afterwards."""

    chance: float
    place: int
    held: Held


def subsamples(urns: Urns, size: int) -> list[Held]:
    """All states of `size` balls."""
    return [
        (a, b, red - a, size - red - b)
        for red in range(max(0, size - urns.num_blue), min(urns.num_red, size) + 1)
        for a in range(red + 1)
        for b in range(size - red + 1)
    ]


def log_labelled(urns: Urns, held: Held) -> float:
    """Log p(z, X_S) of one labelled assignment with these counts."""
    a, b, c, d = held
    prior = (a + b) * math.log(urns.p) + (c + d) * math.log1p(-urns.p)
    likelihood = betaln(urns.alpha + a, urns.alpha + b) + betaln(urns.alpha + c, urns.alpha + d)
    return prior + float(likelihood) - 2 * float(betaln(urns.alpha, urns.alpha))


def extended_law(urns: Urns, size: int) -> Law:
    """The law proportional to p(z, X_S): what the exact churns leave invariant."""
    return normalised(np.array([_log_count(urns, h) for h in subsamples(urns, size)]))


def uniform_law(urns: Urns, size: int) -> Law:
    """The law U(S) p(z | X_S): a uniform subsample, and its posterior."""
    states = subsamples(urns, size)
    law = extended_law(urns, size)
    red = np.array([a + c for a, _, c, _ in states])
    for n in np.unique(red):
        ways = math.comb(urns.num_red, int(n)) * math.comb(urns.num_blue, size - int(n))
        share = ways / math.comb(urns.num_red + urns.num_blue, size)
        law[red == n] *= share / law[red == n].sum()
    return law


def predictive(urns: Urns, held: Held, colour: int) -> float:
    """The probability that one more ball has a colour (0 is red)."""
    here = log_labelled(urns, held)
    return sum(math.exp(log_labelled(urns, _with(held, k, 1)) - here) for k in (colour, 2 + colour))


def removals(held: Held) -> Iterator[Way]:
    """Each ball of a state with the same chance."""
    for place, num in enumerate(held):
        if num:
            yield Way(num / sum(held), place, _with(held, place, -1))


def placements(urns: Urns, held: Held, colour: int) -> Iterator[Way]:
    """Where a ball of a colour goes, given the others."""
    here = log_labelled(urns, held) + math.log(predictive(urns, held, colour))
    for place in (colour, 2 + colour):
        after = _with(held, place, 1)
        yield Way(math.exp(log_labelled(urns, after) - here), place, after)


def picks(urns: Urns, held: Held, *, weighted: bool = False) -> list[tuple[float, int]]:
    """The chance of each colour among balls left over, alike or by predictive probability."""
    left = np.array([urns.num_red - held[0] - held[2], urns.num_blue - held[1] - held[3]], float)
    if weighted:
        left *= [predictive(urns, held, colour) for colour in (0, 1)]
    return [(float(left[colour] / left.sum()), colour) for colour in (0, 1) if left[colour]]


def growth(urns: Urns, size: int, *, weigh: bool = False) -> Float[np.ndarray, "n m"]:
    """One more ball, from `size`."""
    before, after = subsamples(urns, size), subsamples(urns, size + 1)
    number = {held: k for k, held in enumerate(after)}
    matrix = np.zeros((len(before), len(after)))
    for k, held in enumerate(before):
        for chance, colour in picks(urns, held):
            factor = chance * (predictive(urns, held, colour) if weigh else 1.0)
            for way in placements(urns, held, colour):
                matrix[k, number[way.held]] += factor * way.chance
    return matrix


def churn(urns: Urns, size: int, kind: str = "uniform", *, weigh: bool = False) -> Matrix:
    """One ball out and one in, by a kind of churn: uniform, metropolis or weighted."""
    states = subsamples(urns, size)
    number = {held: k for k, held in enumerate(states)}
    matrix = np.zeros((len(states), len(states)))
    for k, held in enumerate(states):
        for gone in removals(held):
            taken = predictive(urns, gone.held, gone.place % 2)
            for chance, colour in picks(urns, gone.held, weighted=kind == "weighted"):
                ratio = predictive(urns, gone.held, colour) / taken
                accepted = min(1.0, ratio) if kind == "metropolis" else 1.0
                factor = ratio if weigh and kind == "uniform" else 1.0
                for way in placements(urns, gone.held, colour):
                    move = gone.chance * chance * way.chance * factor
                    matrix[k, number[way.held]] += accepted * move
                    matrix[k, k] += (1.0 - accepted) * move
    return matrix


def annealed(urns: Urns, num_churns: int, kind: str = "uniform", *, weigh: bool = False) -> Law:
    """The law of an anneal's end, or E[w; end] with `weigh`, over `subsamples` of all balls."""
    law = np.ones(1)
    for size in range(urns.num_red + urns.num_blue):
        law = law @ growth(urns, size, weigh=weigh)
        step = churn(urns, size + 1, kind, weigh=weigh)
        law = law @ np.linalg.matrix_power(step, num_churns)
    return law


def gibbs(urns: Urns, beta: float = 1.0) -> csr_array:
    """A Gibbs step on all balls with the likelihood to the power beta, over `subsamples` of all."""
    states = subsamples(urns, urns.num_red + urns.num_blue)
    number = {held: k for k, held in enumerate(states)}
    rows, columns, values = [], [], []
    for k, held in enumerate(states):
        for gone in removals(held):
            colour = gone.place % 2
            sides = (urns.p, colour), (1 - urns.p, 2 + colour)
            after = [_with(gone.held, place, 1) for _, place in sides]
            logs = np.array([log_labelled(urns, h) for h in after])
            prior = np.log([share for share, _ in sides])
            # The side's prior is in the joint law too, and is not heated.
            chances = normalised(prior + beta * (logs - prior))
            for h, chance in zip(after, chances, strict=True):
                rows.append(k)
                columns.append(number[h])
                values.append(gone.chance * chance)
    shape = len(states), len(states)
    return csr_array(coo_array((values, (rows, columns)), shape=shape))


def handful(urns: Urns, size: int, beta: float = 1.0) -> Matrix:
    """`size` balls of a colour and an urn offered both sides together, by the posterior^beta."""
    states = subsamples(urns, urns.num_red + urns.num_blue)
    number = {held: k for k, held in enumerate(states)}
    law = extended_law(urns, urns.num_red + urns.num_blue) ** beta
    matrix = np.zeros((len(states), len(states)))
    for k, held in enumerate(states):
        for gone in removals(held):
            across = (gone.place + 2) % 4
            if held[gone.place] < size:
                matrix[k, k] += gone.chance
                continue
            other = number[_with(_with(held, gone.place, -size), across, size)]
            there = law[other] * (held[across] + size)
            chance = there / (there + law[k] * held[gone.place])
            matrix[k, other] += gone.chance * chance
            matrix[k, k] += gone.chance * (1.0 - chance)
    return matrix


def _with(held: Held, place: int, num: int) -> Held:
    a, b, c, d = (count + num * (k == place) for k, count in enumerate(held))
    return a, b, c, d


def _log_count(urns: Urns, held: Held) -> float:
    """Log p(z, X_S), times the number of labelled states with these counts."""
    a, b, c, d = held
    ways = math.comb(urns.num_red, a + c) * math.comb(a + c, a)
    ways *= math.comb(urns.num_blue, b + d) * math.comb(b + d, b)
    return math.log(ways) + log_labelled(urns, held)
