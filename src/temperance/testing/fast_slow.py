"""Methods for fast and slow variables on a finite space, summed over every path.

A table `pi[s, f]`, with or without its constant, has slow states s and fast ones f; states (s, f)
are numbered with the fast one fastest. Proposals are symmetric matrices.

    extra updates   P = sweep (sum over s: updates of f given s)^times
    random grid     P = E_delta Q_delta^times,   Q_delta: s +- delta and a step of f, accepted by pi
    dragging        (s, f_0) -> s*, f_1 ... f_{m-1},  f_i from a kernel for
                    pi(s, .)^(1 - i/m) pi(s*, .)^(i/m),  accepted as a whole with
                    min(1, exp((1/m) sum_{i<m} log pi(s*, f_i) - log pi(s, f_i)))
    multiple try    y_1 ... y_K from T(x, .), one of them chosen by w(y, x); K - 1 points from
                    T(y, .) and x itself stand against it;  w(x, y) = pi(x) T(x, y) lambda(x, y)
    multiset        (s, y_1 ... y_K) ~ sum_j pi(s, y_j) / xi(y_j) prod_j xi(y_j)

Matrices are built from probabilities. Right kernels leave a defect near 1e-16.
"""

from collections.abc import Callable, Hashable
from itertools import product

import numpy as np
from jaxtyping import Float

from temperance.testing.enumeration import (
    JointLaw,
    JointMatrix,
    Law,
    Matrix,
    acceptance,
    kernel_of_moves,
    metropolis,
)

Table = Float[np.ndarray, "slow fast"]
SlowProposal = Float[np.ndarray, "slow slow"]
FastProposal = Float[np.ndarray, "fast fast"]
SlowLaw = Float[np.ndarray, " slow"]
FastLaw = Float[np.ndarray, " fast"]
PathAccept = Callable[[list[np.ndarray], list[np.ndarray]], np.ndarray]


def flat(pi: Table) -> Law:
    """The table as a law of states (s, f)."""
    return pi.ravel() / pi.sum()


def cycle_steps(n: int) -> Matrix:
    """Steps of +1 or -1, half each, on a cycle."""
    return 0.5 * (np.roll(np.eye(n), 1, axis=1) + np.roll(np.eye(n), -1, axis=1))


def fast_updates(pi: Table, proposal: FastProposal, times: int) -> np.ndarray:
    """For each slow state the matrix of `times` Metropolis updates of the fast one."""
    once = [metropolis(proposal, np.log(row)) for row in pi]
    return np.stack([np.linalg.matrix_power(matrix, times) for matrix in once])


def extra_updates(pi: Table, sweep: Matrix, proposal: FastProposal, times: int) -> Matrix:
    """`sweep`, a kernel for all, and then `times` updates of the fast state alone."""
    return sweep @ _blocks(fast_updates(pi, proposal, times))


def random_grid(pi: Table, displacements: SlowLaw, proposal: FastProposal, times: int) -> Matrix:
    """`times` updates on the grid of one displacement of a slow cycle, averaged over it."""
    matrix = np.zeros((pi.size, pi.size))
    for delta, chance in enumerate(displacements):
        turn = np.roll(np.eye(len(pi)), delta, axis=1)
        update = metropolis(np.kron(0.5 * (turn + turn.T), proposal), np.log(pi.ravel()))
        matrix += chance * np.linalg.matrix_power(update, times)
    return matrix


def cached_grid(
    pi: Table,
    displacements: SlowLaw,
    proposal: FastProposal,
    times: int,
    slot: Callable[[int], Hashable],
) -> Matrix:
    """The same with a cache: grid index i is looked up in `slot(i)`, and stays there once it is.

    Where two indices on one path share a slot, the second is given the row of the first.
    """
    num_slow, num_fast = pi.shape
    matrix = np.zeros((pi.size, pi.size))
    cases = product(enumerate(displacements), range(num_slow), range(num_fast))
    for (delta, chance), s, f in cases:
        paths: dict[tuple[int, int, frozenset], float] = {(0, f, frozenset({(slot(0), 0)})): 1.0}
        for _ in range(times):
            following: dict[tuple[int, int, frozenset], float] = {}
            for (i, f_now, cache), weight in paths.items():
                here = pi[(s + dict(cache)[slot(i)] * delta) % num_slow, f_now]
                for j, g in product((i - 1, i + 1), range(num_fast)):
                    known = dict(cache)
                    found = known.setdefault(slot(j), j)
                    there = pi[(s + found * delta) % num_slow, g]
                    accept = min(1.0, there / here)
                    tried = 0.5 * weight * proposal[f_now, g]
                    kept = frozenset(known.items())
                    for key, p in (((j, g, kept), accept), ((i, f_now, kept), 1.0 - accept)):
                        following[key] = following.get(key, 0.0) + tried * p
            paths = following
        for (i, g, _), weight in paths.items():
            end = (s + i * delta) % num_slow
            matrix[s * num_fast + f, end * num_fast + g] += chance * weight
    return matrix


def by_the_path(here: list[np.ndarray], there: list[np.ndarray]) -> np.ndarray:
    """Dragging's acceptance, from log pi(s, f_i) and log pi(s*, f_i) along the path."""
    mean = sum(b - a for a, b in zip(here, there, strict=True)) / len(here)
    return acceptance(np.asarray(mean))


def dragging(
    pi: Table,
    slow: SlowProposal,
    fast: FastProposal,
    times: int,
    accept: PathAccept = by_the_path,
) -> Matrix:
    """Dragging with `times` = m densities on the way, so m - 1 updates of the fast state."""
    num_slow, num_fast = pi.shape
    moved = np.zeros((num_slow, num_fast, num_slow, num_fast))

    def along(values: np.ndarray, *axes: int) -> np.ndarray:
        shape = [1] * times
        for axis in axes:
            shape[axis] = num_fast
        return values.reshape(shape)

    for s, t in zip(*np.nonzero(slow), strict=True):
        if s == t:
            continue
        log_s, log_t = np.log(pi[s]), np.log(pi[t])
        weight = np.full([1] * times, slow[s, t])
        for i in range(1, times):
            share = i / times
            kernel = metropolis(fast, (1 - share) * log_s + share * log_t)
            weight = weight * along(kernel, i - 1, i)
        here, there = ([along(log, i) for i in range(times)] for log in (log_s, log_t))
        paths = np.broadcast_to(weight * accept(here, there), [num_fast] * times)
        if times == 1:
            moved[s, :, t, :] = np.diag(paths)
        else:
            moved[s, :, t, :] = paths.sum(axis=tuple(range(1, times - 1)))
    matrix = moved.reshape(pi.size, pi.size)
    return matrix + np.diag(1.0 - matrix.sum(axis=1))


def multiple_try(
    law: Law,
    proposal: Matrix,
    members: int,
    symmetric: Matrix | None = None,
    *,
    with_current: bool = True,
) -> Matrix:
    """Multiple-try Metropolis; `symmetric` is lambda(x, y), by default 1 / T(x, y) for walks.

    Without the current point in the set that stands against the tries it is biased.
    """
    n = law.size
    if symmetric is None:
        symmetric = np.divide(1.0, proposal, out=np.zeros_like(proposal), where=proposal > 0)
    weights = law[:, None] * proposal * symmetric
    tries, others = product(range(n), repeat=members), range(members - with_current)
    against = [list(point) for point in product(range(n), repeat=len(others))]
    matrix = np.zeros((n, n))
    for ys in map(list, tries):
        for x in range(n):
            chance = proposal[x, ys].prod()
            total = weights[ys, x].sum()
            if chance == 0 or total == 0:
                continue
            for y in ys:
                standing = with_current * weights[x, y]
                for zs in against:
                    ratio = total / (weights[zs, y].sum() + standing)
                    back = proposal[y, zs].prod() * min(1.0, ratio)
                    matrix[x, y] += chance * weights[y, x] / total * back
    return kernel_of_moves(matrix)


def multiset_weights(pi: Table, xi: FastLaw, members: int) -> Float[np.ndarray, "states members"]:
    """pi(s, y_j) / xi(y_j) of each member, for every state (s, y_1 ... y_K)."""
    num_slow, num_fast = pi.shape
    states = np.array(list(product(range(num_slow), *[range(num_fast)] * members)))
    return (pi / xi[None])[states[:, :1], states[:, 1:]]


def multiset_law(pi: Table, xi: FastLaw, members: int) -> JointLaw:
    """The law of a slow state with its multiset, the last member running fastest."""
    base = np.ones(1)
    for _ in range(members):
        base = np.kron(base, xi)
    law = multiset_weights(pi, xi, members).sum(axis=1) * np.tile(base, len(pi))
    return law / law.sum()


def multiset(
    law: JointLaw, members: int, slow: SlowProposal, fast: FastProposal, times: int = 1
) -> JointMatrix:
    """An update of the slow state, and then `times` of one member, each time any of them."""
    num_fast = len(fast)
    log_law = np.log(law)
    first = metropolis(np.kron(slow, np.eye(num_fast**members)), log_law)
    second = np.zeros_like(first)
    for j in range(members):
        before, after = np.eye(num_fast**j), np.eye(num_fast ** (members - 1 - j))
        one = np.kron(np.eye(len(slow)), np.kron(np.kron(before, fast), after))
        second += metropolis(one, log_law) / members
    return first @ np.linalg.matrix_power(second, times)


def selection(pi: Table, xi: FastLaw, members: int, *, uniform: bool = False) -> np.ndarray:
    """P(s, y_j | s, y_1 ... y_K): members by their weights, or by nothing, which is a slip."""
    num_slow, num_fast = pi.shape
    weights = multiset_weights(pi, xi, members)
    weights = np.ones_like(weights) if uniform else weights
    weights = weights / weights.sum(axis=1, keepdims=True)
    matrix = np.zeros((len(weights), pi.size))
    for row, (s, *ys) in enumerate(product(range(num_slow), *[range(num_fast)] * members)):
        for y, weight in zip(ys, weights[row], strict=True):
            matrix[row, s * num_fast + y] += weight
    return matrix


def _blocks(matrices: np.ndarray) -> Matrix:
    """A matrix for each slow state, as one of all states."""
    num_slow, num_fast, _ = matrices.shape
    whole = np.einsum("st,sfg->sftg", np.eye(num_slow), matrices)
    return whole.reshape(num_slow * num_fast, num_slow * num_fast)
