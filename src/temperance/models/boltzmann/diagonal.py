"""The diagonal that makes a relaxation's components overlap most.

With any diagonal D that makes W + D positive semi-definite there is a relaxation; the components'
means are furthest apart along the largest eigenvalue. The best D solves (paper 4, equation 46)

    minimise t   such that   A = W + D >= 0,   B = t I - W - D >= 0,

a semi-definite programme in (d, t). A barrier makes it smooth,

    minimise   kappa t - log det A - log det B,

    gradient   (-diag A^-1 + diag B^-1,  kappa - tr B^-1),
    Hessian    [ A^-1 o A^-1 + B^-1 o B^-1,   -diag B^-2 ]
               [ -diag B^-2',                  tr B^-2   ],

with o the product by entries. It is convex; Newton's steps, halved until they stay inside and go
down, find its minimum. There t is above the optimum by 2n/kappa at most, so that kappa grows by
8 until that is small enough. Adding a constant to D moves all eigenvalues alike: the smallest is
brought to zero at the end.

At the optimum both end eigenvalues are usually multiple, and W + D has a rank below n - 1.
"""

import numpy as np

from temperance._types import Numbers
from temperance.errors import ArgumentError

GAP = 1e-12  # of the largest eigenvalue, relative to the weights' own size
GROWTH = 8.0
# Steps at one kappa. A few suffice; near the end rounding stops the descent first.
STEPS = 50
DECREASE = 1e-4
SETTLED = 1e-10


def diagonal(weights: Numbers) -> np.ndarray:
    """The d for which W + diag(d) is positive semi-definite with the least largest eigenvalue.

    A diagonal of `weights` is ignored: the result is the diagonal of W + D itself.
    """
    matrix = np.array(weights, float)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:
        raise ArgumentError(f"weights: wanted a square matrix, got shape {matrix.shape}")
    if not (np.isfinite(matrix).all() and np.allclose(matrix, matrix.T, rtol=1e-10, atol=0.0)):
        raise ArgumentError("weights: wanted a symmetric matrix of finite numbers")
    np.fill_diagonal(matrix, 0.0)
    size = float(np.linalg.norm(matrix, 2))
    if size == 0.0:
        return np.zeros(len(matrix))
    return size * _unit_diagonal(matrix / size)


def _unit_diagonal(matrix: np.ndarray) -> np.ndarray:
    """The best diagonal for weights of spectral norm one."""
    num_units = len(matrix)
    point = np.append(np.full(num_units, 2.0), 4.0)  # eigenvalues of A and of B in [1, 3]
    kappa = 1.0
    while True:
        point = _centre(matrix, point, kappa)
        if 2.0 * num_units / kappa < GAP:
            break
        kappa *= GROWTH
    d = point[:-1]
    return d - np.linalg.eigvalsh(matrix + np.diag(d))[0]


def _centre(matrix: np.ndarray, point: np.ndarray, kappa: float) -> np.ndarray:
    """The barrier's minimum at `kappa`, by Newton's method from a point inside."""
    value = _barrier(matrix, point, kappa)
    for _ in range(STEPS):
        gradient, hessian = _slopes(matrix, point, kappa)
        step = -np.linalg.solve(hessian, gradient)
        descent = float(gradient @ step)
        if -descent < SETTLED:
            break
        length = 1.0
        while True:
            moved = point + length * step
            found = _barrier(matrix, moved, kappa)
            if found <= value + DECREASE * length * descent:
                break
            length *= 0.5
            if length < 1e-12:  # nothing lower can be told apart from here
                return point
        point, value = moved, found
    return point


def _barrier(matrix: np.ndarray, point: np.ndarray, kappa: float) -> float:
    """The function to minimise; infinite outside."""
    lower = matrix + np.diag(point[:-1])
    upper = point[-1] * np.eye(len(matrix)) - lower
    try:
        factors = np.linalg.cholesky(np.stack((lower, upper)))
    except np.linalg.LinAlgError:
        return np.inf
    logs = np.log(np.diagonal(factors, axis1=1, axis2=2)).sum()
    return float(kappa * point[-1] - 2.0 * logs)


def _slopes(matrix: np.ndarray, point: np.ndarray, kappa: float) -> tuple[np.ndarray, np.ndarray]:
    """The barrier's gradient and Hessian in (d, t)."""
    lower = matrix + np.diag(point[:-1])
    upper = point[-1] * np.eye(len(matrix)) - lower
    below, above = np.linalg.inv(lower), np.linalg.inv(upper)
    squares = np.sum(above**2, axis=1)  # the diagonal of B^-2
    gradient = np.append(np.diagonal(above) - np.diagonal(below), kappa - np.trace(above))
    hessian = np.empty((point.size, point.size))
    hessian[:-1, :-1] = below**2 + above**2
    hessian[:-1, -1] = hessian[-1, :-1] = -squares
    hessian[-1, -1] = squares.sum()
    return gradient, hessian
