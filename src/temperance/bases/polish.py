"""Many points at once, each climbing a log density to a maximum: L-BFGS, one gradient a step.

Every point has a direction p, made from its last few steps s and changes of gradient y by the
two-loop recursion (Nocedal and Wright 2006, algorithm 7.4), and a share t of it to try:

    trial = x + t p
    accepted where f(trial) >= f(x) + 1e-4 t g'p (Armijo): a new direction, and t = 1
    otherwise t is made smaller, and x stays

so that every step of every point costs one value and gradient, and no point waits for the line
search of another. Coordinates are in units of the spread of the starts, about their middle, and no
step is longer than `LONGEST` units or half of the distance to the middle. A point has finished
where the gain that its direction promises is below `GAIN`, or where no step up is found.
"""

from typing import NamedTuple

import numpy as np

from temperance.bases.batch_gradients import BatchGradients

MEMORY = 5
LONGEST = 2.0
GAIN, SHORTEST = 1e-6, 1e-8
ENOUGH, SHRINK = 1e-4, 0.25
# Points that are worked on at once, so that what they remember stays in the cache; steps that all
# of them may make, and points that go on whatever it costs.
BLOCK, ALL_MAY, FEWEST = 2048, 15, 128


class Ends(NamedTuple):
    """Where points ended, their log densities and gradients, and whether they had finished.

    `followed` tells those that were not given up for want of evaluations.
    """

    x: np.ndarray
    value: np.ndarray
    slope: np.ndarray
    finished: np.ndarray
    followed: np.ndarray


class _Climbers:
    """Points on their way, in the units of the starts, and what they remember."""

    def __init__(self, z: np.ndarray, value: np.ndarray, slope: np.ndarray, rows: np.ndarray):
        n, d = z.shape
        self.rows, self.z, self.value, self.slope = rows, z, value, slope
        length = np.linalg.norm(slope, axis=1, keepdims=True)
        self.direction = slope / np.maximum(length, 1.0)
        self.share = np.ones(n)
        self.steps = np.zeros((MEMORY, n, d))
        self.changes = np.zeros((MEMORY, n, d))
        self.inverse = np.zeros((MEMORY, n))
        self.width, self.num_steps = np.zeros(n), 0
        self.finished = ~np.isfinite(value) | (length[:, 0] == 0)

    def keep(self, which: np.ndarray) -> None:
        """Only these of them."""
        for name in ("rows", "z", "value", "slope", "direction", "share", "width", "finished"):
            setattr(self, name, getattr(self, name)[which])
        for name in ("steps", "changes", "inverse"):
            setattr(self, name, getattr(self, name)[:, which])

    def step(self, seen: "Climb") -> None:
        """One trial of each."""
        trial = self.z + self.share[:, None] * self.direction
        value, slope = seen.in_units(trial)
        rise = np.einsum("ni,ni->n", self.slope, self.direction)
        up = value >= self.value + ENOUGH * self.share * rise
        up &= np.isfinite(value)
        s, y = trial - self.z, self.slope - slope
        bend = np.einsum("ni,ni->n", s, y)
        square = np.einsum("ni,ni->n", y, y)
        learns = up & (bend > 1e-12 * square)
        # A slot of a step that taught nothing has no weight; the oldest slot is the next to go.
        slot = self.num_steps % MEMORY
        self.num_steps += 1
        self.steps[slot], self.changes[slot] = s, y
        safe = np.where(learns, bend, 1.0)
        self.inverse[slot] = np.where(learns, 1 / safe, 0.0)
        self.width = np.where(learns, safe / np.where(learns, square, 1.0), self.width)
        self.z[up], self.value[up], self.slope[up] = trial[up], value[up], slope[up]
        reach = 2 * np.linalg.norm(s, axis=1)
        self.direction[up] = self._directions(up, reach[up])
        self.share = np.where(up, 1.0, SHRINK * self.share)
        still = np.einsum("ni,ni->n", self.slope, self.direction) < GAIN
        stuck = (self.share * rise < 1e-3 * GAIN) | (self.share < SHORTEST)
        self.finished |= np.where(up, still, stuck)

    def _directions(self, which: np.ndarray, reach: np.ndarray) -> np.ndarray:
        """The inverse of the curvature, as the last steps have seen it, times the gradient."""
        every = which.all()
        slope, inverse, steps, changes = (
            leaf if every else leaf[..., which, :] if leaf.ndim == 3 else leaf[:, which]
            for leaf in (self.slope[None], self.inverse, self.steps, self.changes)
        )
        slope = slope[0]
        newest = [(self.num_steps - 1 - i) % MEMORY for i in range(MEMORY)]
        q, shares = slope.copy(), {}
        for i in newest:
            shares[i] = inverse[i] * np.einsum("ni,ni->n", steps[i], q)
            q -= shares[i][:, None] * changes[i]
        width = self.width[which]
        q *= np.where(width > 0, width, 1.0)[:, None]
        for i in reversed(newest):
            q += steps[i] * (shares[i] - inverse[i] * np.einsum("ni,ni->n", changes[i], q))[:, None]
        # Before a step has said how the density bends: twice as far each time.
        length = np.maximum(np.linalg.norm(slope, axis=1), np.finfo(float).tiny)
        q = np.where(width[:, None] > 0, q, slope * (reach / length)[:, None])
        longest = np.maximum(LONGEST, 0.5 * np.linalg.norm(self.z[which], axis=1))
        return (
            q * np.minimum(1.0, longest / np.maximum(np.linalg.norm(q, axis=1), longest))[:, None]
        )


class Climb:
    """Climbs of one density, in units of `unit` about `center`."""

    def __init__(self, gradients: BatchGradients, center: np.ndarray, unit: np.ndarray):
        self.gradients = gradients
        self.center, self.unit = np.asarray(center, float), np.asarray(unit, float)

    @property
    def num_evaluations(self) -> int:
        return self.gradients.num_evaluations

    def in_units(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Values and gradients in the units of the climb."""
        value, slope = self.gradients(self.center + self.unit * z)
        return value, slope * self.unit

    def polish(self, starts: np.ndarray, num_steps: int, most: float = np.inf) -> Ends:
        """The ends of climbs of at most `num_steps` steps, in the order of `starts`.

        All make the first few steps. Where `most` evaluations do not suffice for the rest, only a
        part of them goes on.
        """
        n, d = starts.shape
        ends = Ends(
            np.empty((n, d)), np.empty(n), np.empty((n, d)), np.zeros(n, bool), np.ones(n, bool)
        )
        for first in range(0, n, BLOCK):
            rows = np.arange(first, min(first + BLOCK, n))
            stop = self.num_evaluations + most * len(rows) / n
            z = (starts[rows] - self.center) / self.unit
            self._finish(_Climbers(z, *self.in_units(z), rows), ends, num_steps, stop)
        return ends

    def _finish(self, now: _Climbers, ends: Ends, num_steps: int, stop: float) -> None:
        for count in range(num_steps + 1):
            over = now.finished if count < num_steps else np.ones(len(now.rows), bool)
            given_up = np.zeros(len(over), bool)
            if count >= ALL_MAY and (number := int((~over).sum())) > FEWEST:
                # What is left for each of the steps to come.
                may = max((stop - self.num_evaluations) / ALL_MAY, FEWEST)
                given_up[np.flatnonzero(~over)[int(min(may, number)) :]] = True
            gone = over | given_up
            if gone.any():
                rows = now.rows[gone]
                ends.x[rows] = self.center + self.unit * now.z[gone]
                ends.value[rows], ends.slope[rows] = now.value[gone], now.slope[gone] / self.unit
                ends.finished[rows], ends.followed[rows] = now.finished[gone], ~given_up[gone]
                now.keep(~gone)
            if not now.rows.size:
                break
            now.step(self)
