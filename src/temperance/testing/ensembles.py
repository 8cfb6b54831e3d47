"""Ensemble updates on a finite space, summed over every ensemble.

A table `pi[s, f]` has slow states s and fast ones f on a cycle, and an ensemble is a slow state
with members f_1 ... f_K. Given a base measure xi of members with marginals xi_k an update is

    create   (s, f) -> (s, f_1 ... f_K), the members other than f from xi given f
    update   s* from a symmetric proposal, all members shifted by c, perhaps 0, and accepted with
             min(1, xi(f + c) W(s*, f + c) / (xi(f) W(s, f))),   W(s, f) = sum_k w(s, f_k)
    select   member k with probability proportional to w(s, f_k) = pi(s, f_k) / xi_k(f_k)

    independent    members are draws from one law
    exchangeable   members are draws around a centre that is uniform: given f the centre is drawn
                   first, around f, and then the others around it
    grid           members are one step after another apart, and f is at any place of them

Right kernels leave a defect near 1e-16. `redrawn` is an update on the whole space in place of the
fast states alone, where all members are proposed afresh: what multiple-try Metropolis resembles.
"""

from collections.abc import Callable
from itertools import product
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.sparse.csgraph import connected_components

from temperance.testing.enumeration import Law, Matrix
from temperance.testing.fast_slow import FastLaw, SlowProposal, Table

Members = tuple[int, ...]
Shifts = Float[np.ndarray, " fast"]


class BaseMeasure(NamedTuple):
    """How members are created around one, their joint density, and that of one alone."""

    create: Callable[[int], dict[Members, float]]
    joint: Callable[[Members], float]
    one: FastLaw


def independent(xi: FastLaw, members: int, *, weighted: bool = True) -> BaseMeasure:
    """Members drawn from `xi`; unweighted, pi takes the place of pi / xi, which is a slip."""

    def create(f: int) -> dict[Members, float]:
        others = product(range(xi.size), repeat=members - 1)
        return {(f, *more): float(np.prod(xi[list(more)])) for more in others}

    one = xi if weighted else np.ones_like(xi)
    return BaseMeasure(create, lambda fs: float(np.prod(xi[list(fs)])), one)


def exchangeable(spread: FastLaw, members: int, *, centred: bool = True) -> BaseMeasure:
    """Members around a centre; `spread` is a symmetric law of their distances.

    Not centred, the others are drawn around the current state itself: a slip for three and more.
    """
    n = spread.size

    def around(centre: int, fs: Members) -> float:
        return float(np.prod([spread[(f - centre) % n] for f in fs]))

    def create(f: int) -> dict[Members, float]:
        centres = np.roll(spread, f) if centred else np.eye(n)[f]
        return {
            (f, *more): sum(centres[c] * around(c, more) for c in range(n))
            for more in product(range(n), repeat=members - 1)
        }

    def joint(fs: Members) -> float:
        return sum(around(centre, fs) for centre in range(n)) / n

    return BaseMeasure(create, joint, np.full(n, 1.0 / n))


def grid(n: int, members: int, spacing: int, *, anywhere: bool = True) -> BaseMeasure:
    """Members `spacing` apart on a cycle of n states; f at any place of them.

    With f always at the first place the update is biased.
    """

    def create(f: int) -> dict[Members, float]:
        found: dict[Members, float] = {}
        places = range(members) if anywhere else (0,)
        for place in places:
            fs = tuple((f + (k - place) * spacing) % n for k in range(members))
            found[fs] = found.get(fs, 0.0) + 1.0 / len(places)
        return found

    return BaseMeasure(create, lambda _: 1.0, np.ones(n))


def ensemble(
    pi: Table,
    base: BaseMeasure,
    proposal: SlowProposal,
    shifts: Shifts | None = None,
    *,
    with_joint: bool = True,
) -> Matrix:
    """One update; `shifts` is a symmetric law of the offset, by default zero: fast states fixed.

    Without the joint density in the ratio of a shift it is biased, where that is not constant.
    """
    num_fast = pi.shape[1]
    offsets = np.eye(num_fast)[0] if shifts is None else shifts
    weights = pi / base.one[None]
    matrix = np.zeros((*pi.shape, *pi.shape))

    def selected(s: int, fs: Members) -> tuple[float, np.ndarray]:
        """W, and the members' shares of it by fast state."""
        by_state = np.bincount(fs, weights[s, list(fs)], num_fast)
        return by_state.sum(), by_state / by_state.sum()

    tries = list(product(np.argwhere(proposal).tolist(), np.flatnonzero(offsets).tolist()))
    for f in range(num_fast):
        for fs, chance in base.create(f).items():
            for (s, t), c in tries:
                there = tuple((one + c) % num_fast for one in fs)
                (total, stay), (new, go) = selected(s, fs), selected(t, there)
                if with_joint:
                    total, new = total * base.joint(fs), new * base.joint(there)
                accept = min(1.0, new / total)
                tried = chance * proposal[s, t] * offsets[c]
                matrix[s, f, t] += tried * accept * go
                matrix[s, f, s] += tried * (1.0 - accept) * stay
    return matrix.reshape(pi.size, pi.size)


def redrawn(law: Law, base: Law, members: int) -> Matrix:
    """An independent ensemble of whole states, of which all are proposed afresh."""
    n = law.size
    weights = law / base
    matrix = np.zeros((n, n))
    others = list(map(list, product(range(n), repeat=members - 1)))
    for x in range(n):
        for more in others:
            here = [x, *more]
            total = weights[here].sum()
            for there in map(list, product(range(n), repeat=members)):
                accept = min(1.0, weights[there].sum() / total)
                tried = base[more].prod() * base[there].prod()
                np.add.at(matrix[x], there, tried * accept * weights[there] / weights[there].sum())
                np.add.at(matrix[x], here, tried * (1 - accept) * weights[here] / total)
    return matrix


def closed_classes(matrix: Matrix) -> int:
    """How many sets of states a chain never leaves once it is there."""
    count, labels = connected_components(matrix > 0, connection="strong")
    leaves = (matrix > 0) & (labels[:, None] != labels[None, :])
    return count - len(set(labels[leaves.any(axis=1)]))


def second_eigenvalue(matrix: Matrix) -> float:
    """The largest eigenvalue but one, by its size: how fast a chain forgets."""
    return float(np.sort(np.abs(np.linalg.eigvals(matrix)))[-2])
