"""Which route to take for a Gaussian process with fast variables, by its rows and inputs.

A slow evaluation writes a covariance of n x n entries, and then either factors it (cholesky) or
reduces it to tridiagonal form (spectral). The reduction has four times the factor's operations,
half of them products of a matrix with a vector, which wait for memory where the matrix is large. It
makes the noise fast as well: that is one slow variable fewer, and the one that tells modes with
more and with less noise apart is summed over. In `studies/ensembles` that makes 1.8 times the
effective draws and twice the changes of mode for as many slow evaluations: we take it to be worth
`MOST` times the cost.

Costs are microseconds of one core, from `benchmarks/fast_gaussian_process`. They are constants and
no pilot on the machine at hand, because a pilot's verdict may differ from one run to the next, and
with it the draws of one seed.
"""

import numpy as np

# How much dearer a slow evaluation may be for the noise to be fast too.
MOST = 2.0
ROWS = (25, 50, 100, 200, 300, 500, 1000)
FACTOR = (19.2, 25.2, 46.1, 165.0, 418.0, 1530.0, 9930.0)
REDUCTION = (21.1, 31.6, 75.4, 366.0, 1260.0, 4940.0, 44300.0)
# Of whatever is there once, of one entry of the covariance, and of one input's share in it.
ONCE, ENTRY, INPUT = 12.0, 7.5e-4, 8e-5


def chosen_route(num_rows: int, num_inputs: int) -> str:
    """The route that is worth its cost."""
    return "spectral" if dearer(num_rows, num_inputs) <= MOST else "cholesky"


def dearer(num_rows: int, num_inputs: int) -> float:
    """The cost of a slow evaluation by tridiagonal form over that by Cholesky."""
    covariance = ONCE + (ENTRY + INPUT * num_inputs) * num_rows**2
    factor, reduction = (_cost(table, num_rows) for table in (FACTOR, REDUCTION))
    return (covariance + reduction) / (covariance + factor)


def _cost(table: tuple[float, ...], num_rows: int) -> float:
    """Between the sizes of a table along powers, and beyond them by cubes."""
    inside = np.clip(num_rows, ROWS[0], ROWS[-1])
    cost = np.exp(np.interp(np.log(inside), np.log(ROWS), np.log(table)))
    return float(cost * max(num_rows / ROWS[-1], 1.0) ** 3)
