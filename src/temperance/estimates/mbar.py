"""The draws of all rungs as one mixture: MBAR's equations, and their solution.

With l_j(x) = log pi_j(x), f_j = log Z_j and n_j the draws at rung j, the mixture weights

    W_j(x) = n_j exp(l_j(x) - f_j) / sum_i n_i exp(l_i(x) - f_i)

must add up to n_j over all draws of all rungs. These equations are the gradient of

    F(f) = sum_x log sum_j n_j exp(l_j(x) - f_j) + sum_j n_j f_j,
    dF/df_j = n_j - sum_x W_j(x),      d2F/df2 = H = diag(sum_x W) - sum_x W W^T,

which is convex, with f_0 held at 0. Newton steps solve them, each kept only if it brings the
equations nearer to holding; otherwise the self-consistent step f_j += log(sum_x W_j / n_j), which
always lowers F. A change of f rescales all of a rung's exp(l_j - f_j) alike, so that no exponential
is taken twice.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.linalg import LinAlgError, cho_factor, cho_solve

FloatArray = npt.NDArray[np.float64]

_CHUNK = 1 << 16  # entries worked on at once: they stay in the cache, whatever the run's length
_TOLERANCE = 1e-10
_MOST_STEPS = 200
# exp(l - f) loses entries 700 below their row's largest, too small to matter until f moves that far
_MOST_DRIFT = 100.0


class Sums(NamedTuple):
    """What one pass over all draws adds up to."""

    column: FloatArray  # sum_x W_j
    hessian: FloatArray
    miss: float  # how far the equations are from holding, relative to the draws


class Mixture:
    """exp(l - f) for all draws, scaled so that none overflows, and the sums taken over it.

    Arrays are (rung of the density, sample), so that whatever is done for each sample is done for
    many at once.
    """

    def __init__(self, record: FloatArray) -> None:
        self.num_times = record.shape[0] * record.shape[1]
        self.num_rungs = record.shape[2]
        self.log_densities = np.moveaxis(record, 3, 0).reshape(self.num_rungs, -1)
        own = np.diagonal(record, axis1=2, axis2=3).reshape(self.num_times, self.num_rungs)
        # A draw that its own rung calls impossible was drawn from no rung: it has no place here.
        self.possible = np.isfinite(own)
        self.counts = self.possible.sum(axis=0).astype(np.float64)
        self.scaled = np.empty_like(self.log_densities)
        self.origin = np.zeros(self.num_rungs)

    def rebase(self, log_z: FloatArray) -> None:
        """Take the exponentials about `log_z`."""
        self.origin = log_z.copy()
        possible = self.possible.reshape(-1)
        for part in self._chunks():
            shifted = self.log_densities[:, part] - log_z[:, None]
            # Subtracting +inf from a sample without a place leaves exp(-inf) = 0 in all of it.
            shifted -= np.where(possible[part], shifted.max(axis=0), np.inf)
            np.exp(shifted, out=self.scaled[:, part])

    def sums(self, log_z: FloatArray) -> Sums:
        """The weights' sums, H, and how far the equations are from holding."""
        scale = self._scale(log_z)
        column = np.zeros(self.num_rungs)
        outer = np.zeros((self.num_rungs, self.num_rungs))
        for part in self._chunks():
            shares = self.scaled[:, part] * self._inverse_total(part, scale)
            column += shares.sum(axis=1)
            outer += shares @ shares.T
        column *= scale
        hessian = np.diag(column) - outer * scale * scale[:, None]
        miss = float(np.max(np.abs(column - self.counts)) / self.num_times)
        return Sums(column, hessian, miss)

    def influence(self, log_z: FloatArray, hessian: FloatArray) -> FloatArray:
        """On f of the target, of all draws at one time; infinite where rungs do not overlap."""
        unit = np.zeros(self.num_rungs)
        unit[-1] = 1.0
        direction = _newton(hessian, unit)
        if direction is None:
            return np.full(self.num_times, np.inf)
        scale = self._scale(log_z)
        answer = np.empty(self.scaled.shape[1])
        for part in self._chunks():
            answer[part] = (scale * direction) @ self.scaled[:, part]
            answer[part] *= self._inverse_total(part, scale)
        return self.num_times * answer.reshape(self.num_times, self.num_rungs).sum(axis=1)

    def _scale(self, log_z: FloatArray) -> FloatArray:
        return self.counts * np.exp(self.origin - log_z)

    def _inverse_total(self, part: slice, scale: FloatArray) -> FloatArray:
        total = scale @ self.scaled[:, part]
        return np.divide(1.0, total, out=np.zeros_like(total), where=total > 0.0)

    def _chunks(self) -> Iterator[slice]:
        size = max(1, _CHUNK // self.num_rungs)
        for start in range(0, self.scaled.shape[1], size):
            yield slice(start, start + size)


def solve(mixture: Mixture, log_z: FloatArray) -> tuple[FloatArray, Sums]:
    """Newton's steps where they help, self-consistent steps where they do not."""
    mixture.rebase(log_z)
    now = mixture.sums(log_z)
    for _ in range(_MOST_STEPS):
        if now.miss < _TOLERANCE:
            break
        log_z, now = _step(mixture, log_z, now)
        if np.max(np.abs(log_z - mixture.origin)) > _MOST_DRIFT:
            mixture.rebase(log_z)
    return log_z, now


def _step(mixture: Mixture, log_z: FloatArray, now: Sums) -> tuple[FloatArray, Sums]:
    move = _newton(now.hessian, now.column - mixture.counts)
    if move is not None and np.max(np.abs(move)) < _MOST_DRIFT:
        there = mixture.sums(log_z + move)
        if there.miss < now.miss:
            return log_z + move, there
    with np.errstate(divide="ignore", invalid="ignore"):
        move = np.log(now.column / mixture.counts)
    move = np.clip(np.nan_to_num(move - move[0]), -_MOST_DRIFT, _MOST_DRIFT)
    return log_z + move, mixture.sums(log_z + move)


def _newton(hessian: FloatArray, target: FloatArray) -> FloatArray | None:
    """H^-1 target with the first entry held at zero; None where H cannot say."""
    inner = hessian[1:, 1:]
    # In units of each rung's own weight the diagonal is at most 1, so this is relative.
    units = np.sqrt(np.maximum(np.diag(hessian)[1:], np.finfo(np.float64).tiny))
    try:
        factor = cho_factor(inner / units / units[:, None], check_finite=True)
    except (LinAlgError, ValueError):
        return None
    if np.min(np.diag(factor[0])) ** 2 < 1e-13:
        return None
    return np.r_[0.0, cho_solve(factor, target[1:] / units) / units]
