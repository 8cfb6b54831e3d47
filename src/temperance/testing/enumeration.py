"""Kernels on a finite space as matrices, so that pi P = pi is a subtraction and not a test.

States are 0 ... n-1 and `log_densities[k, x]` is log pi_k(x), rung 0 hottest and the last row the
target, as everywhere. A matrix is built from a kernel's *probabilities* and never from its draws:

    Metropolis            P(x, y) = q(x, y) min(1, pi(y) q(y, x) / pi(x) q(x, y)),  x != y
    tempered transition   P(x, y) = sum over paths of  prod T(step) * min(1, rho(path))
    parallel tempering    P = (T_0 x ... x T_{K-1}) S_1 S_2 ...   on the product space

A right kernel leaves a defect near 1e-16; the slips in print leave 1e-2.
"""

from collections.abc import Callable, Sequence
from itertools import product

import numpy as np
from jaxtyping import Float

Matrix = Float[np.ndarray, "n n"]
Law = Float[np.ndarray, " n"]
Table = Float[np.ndarray, "rungs n"]
JointMatrix = Float[np.ndarray, "states states"]  # on the product space: states = n ** rungs
JointLaw = Float[np.ndarray, " states"]
Combine = Callable[[list[np.ndarray]], np.ndarray]


def normalised(log_density: Float[np.ndarray, " n"]) -> Law:
    """exp(log_density), summing to one."""
    law = np.exp(log_density - log_density.max())
    return law / law.sum()


def defect(matrix: Matrix, law: Law) -> float:
    """Max |pi P - pi|: how far one step carries the law from itself."""
    return float(np.abs(law @ matrix - law).max())


def imbalance(matrix: Matrix, law: Law) -> float:
    """Max |pi(x) P(x, y) - pi(y) P(y, x)|: zero for a reversible kernel."""
    flow = law[:, None] * matrix
    return float(np.abs(flow - flow.T).max())


def stationary(matrix: Matrix) -> Law:
    """The law that `matrix` does leave invariant, if there is only one."""
    n = matrix.shape[0]
    system = np.vstack([matrix.T - np.eye(n), np.ones(n)])
    law, _, rank, _ = np.linalg.lstsq(system, np.r_[np.zeros(n), 1.0], rcond=1e-12)
    if rank < n:
        raise ValueError("the chain is reducible: it leaves more than one law invariant")
    return law


def total_variation(one: Law, two: Law) -> float:
    """Half the sum of |differences|."""
    return float(0.5 * np.abs(one - two).sum())


def acceptance(log_ratio: np.ndarray) -> np.ndarray:
    """min(1, ratio)."""
    return np.exp(np.minimum(log_ratio, 0.0))


def kernel_of_moves(moves: Matrix) -> Matrix:
    """The kernel that moves with these probabilities off the diagonal, and stays otherwise."""
    matrix = moves - np.diag(np.diag(moves))
    return matrix + np.diag(1.0 - matrix.sum(axis=1))


def metropolis(proposal: Matrix, log_density: Float[np.ndarray, " n"]) -> Matrix:
    """The Metropolis-Hastings kernel of a proposal that is a matrix."""
    log_q = np.log(np.where(proposal > 0, proposal, 1.0))
    log_ratio = log_density[None, :] - log_density[:, None] + log_q.T - log_q
    matrix = np.where(proposal.T > 0, proposal * acceptance(log_ratio), 0.0)
    return kernel_of_moves(matrix)


def cycle_metropolis(log_density: Float[np.ndarray, " n"]) -> Matrix:
    """Metropolis with steps of +1 or -1, half each, on a cycle of n > 2 states."""
    n = log_density.size
    return metropolis(0.5 * (np.roll(np.eye(n), 1, axis=1) + np.roll(np.eye(n), -1, axis=1)),
                      log_density)  # fmt: skip


def reversal(matrix: Matrix, law: Law) -> Matrix:
    """The kernel run backwards from stationarity: P~(x, y) = pi(y) P(y, x) / pi(x)."""
    return matrix.T * law[None, :] / law[:, None]


def product_of_ratios(log_ratios: list[np.ndarray]) -> np.ndarray:
    """The acceptance min(1, prod rho) of a tempered transition."""
    return acceptance(np.asarray(sum(log_ratios)))


def transition(
    log_densities: Table,
    climb: Sequence[Matrix],
    descend: Sequence[Matrix],
    accept: Combine = product_of_ratios,
) -> Matrix:
    """A tempered transition, summed over every path from the target up and down again.

    `climb` are the kernels in the order they are used (rungs K-2 ... 0) and so are `descend`
    (rungs 0 ... K-2 in the right algorithm). Costs n^(2K-1).
    """
    num_rungs, n = log_densities.shape
    length = 2 * num_rungs - 1
    steps = np.diff(log_densities, axis=0)

    def along(values: np.ndarray, *axes: int) -> np.ndarray:
        shape = [1] * length
        for axis in axes:
            shape[axis] = n
        return values.reshape(shape)

    weight = np.ones([1] * length)
    log_ratios = []
    for i, matrix in enumerate(climb):
        weight = weight * along(matrix, i, i + 1)
        log_ratios.append(along(-steps[num_rungs - 2 - i], i))
    for i, matrix in enumerate(descend):
        at = num_rungs - 1 + i
        weight = weight * along(matrix, at, at + 1)
        log_ratios.append(along(steps[i], at + 1))
    between = tuple(range(1, length - 1))
    moved = np.sum(weight * accept(log_ratios), axis=between)
    return moved + np.diag(1.0 - moved.sum(axis=1))


def tempered_transition(log_densities: Table, kernels: Sequence[Matrix]) -> Matrix:
    """The right tempered transition: `kernels[k]` is reversible for pi_k, and used both ways."""
    hotter = list(kernels[:-1])
    return transition(log_densities, hotter[::-1], hotter)


def single_top_transition(log_densities: Table, kernels: Sequence[Matrix]) -> Matrix:
    """The same with one move at the hottest rung in place of two.

    That move is its own way back, so it has to be reversible even where the others are not.
    """
    hotter = list(kernels[:-1])
    return transition(log_densities, hotter[::-1], [np.eye(hotter[0].shape[0]), *hotter[1:]])


def joint(log_densities: Table) -> JointLaw:
    """prod_k pi_k(x_k) on the product space, the last rung's state running fastest."""
    law = np.ones(1)
    for row in log_densities:
        law = np.kron(law, normalised(row))
    return law


def explore(kernels: Sequence[Matrix]) -> JointMatrix:
    """Every rung moved by its own kernel."""
    matrix = np.ones((1, 1))
    for kernel in kernels:
        matrix = np.kron(matrix, kernel)
    return matrix


def swap_pair(
    log_densities: Table, pair: int, exchanged: tuple[int, int] | None = None
) -> JointMatrix:
    """Compare rungs `pair` and `pair + 1`, and on acceptance exchange them.

    `exchanged` names another pair of rungs to exchange, as a paper may.
    """
    num_rungs, n = log_densities.shape
    one, two = exchanged if exchanged is not None else (pair, pair + 1)
    step = log_densities[pair + 1] - log_densities[pair]
    matrix = np.zeros((n**num_rungs, n**num_rungs))
    for here, x in enumerate(product(range(n), repeat=num_rungs)):
        acceptance = np.exp(min(0.0, step[x[pair]] - step[x[pair + 1]]))
        y = list(x)
        y[one], y[two] = y[two], y[one]
        there = np.ravel_multi_index(y, (n,) * num_rungs)
        matrix[here, there] += acceptance
        matrix[here, here] += 1.0 - acceptance
    return matrix


def parallel_sweep(
    log_densities: Table, kernels: Sequence[Matrix], pairs: Sequence[int]
) -> JointMatrix:
    """One sweep of parallel tempering: every rung moved, then `pairs` swapped in that order."""
    matrix = explore(kernels)
    for pair in pairs:
        matrix = matrix @ swap_pair(log_densities, pair)
    return matrix
