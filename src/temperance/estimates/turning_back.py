"""Ends of a variable where chains turn back: the step is too long there, and mass may be missed.

In a funnel the density narrows towards one end of a variable. A step that fits the rest of it is
too long in the neck: trajectories diverge or are refused, few chains come in, and those that do
stay there. The acceptance of the moves that start at a draw, by the rank of the draw, falls
steadily towards that end. Two things look alike and are harmless:

    a narrow mode    moves are refused all over it; it lies apart, or acceptance is level in it
    a curved ridge   trajectories diverge at its ends, and still most moves are accepted there

An end is told of where the first 2 % of the draws, by rank from that end, have less than 0.3 of
the usual acceptance; the next 6 % have at least two thirds of what the first have; the 24 % after
those have half as much again as either; and no two neighbouring values up to rank 60 % are apart.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

# Ranks from an end: its draws, the next, and those where acceptance has to have recovered.
END, NEXT, BEYOND, HALFWAY = 0.02, 0.08, 0.32, 0.6
REFUSED, LEVEL, RISE, APART = 0.3, 1.5, 1.5, 0.15
# Below that an end has too few draws to be judged.
FEWEST_DRAWS = 1000


class End(NamedTuple):
    """An end of coordinate `variable`: acceptance and divergences there, and the usual acceptance.

    `sign` is -1 at the low end and 1 at the high one.
    """

    variable: int
    sign: int
    acceptance: float
    usual: float
    diverging: int


def enough_draws(acceptance: FloatArray) -> bool:
    """Whether ends can be judged at all from (chain, draw)."""
    return acceptance.size >= FEWEST_DRAWS and bool(np.isfinite(acceptance).all())


def ends_that_turn_back(
    position: FloatArray, acceptance: FloatArray, diverging: npt.NDArray[np.bool_]
) -> list[End]:
    """Of positions (chain, draw, d), and (chain, draw) of the moves that led to each draw.

    The worst comes first. Moves that led to a draw began at the draw before.
    """
    if not enough_draws(acceptance):
        return []
    starts = position[:, :-1].reshape(-1, position.shape[-1])
    rates, split = acceptance[:, 1:].ravel(), diverging[:, 1:].ravel()
    found = []
    for index, values in enumerate(starts.T):
        order = np.argsort(values, kind="stable")
        for sign in (-1, 1):
            end = _end(index, sign, values[order], rates[order], split[order])
            found += [] if end is None else [end]
            order = order[::-1]
    return sorted(found, key=lambda end: end.acceptance / end.usual)


def _end(
    index: int, sign: int, values: FloatArray, rates: FloatArray, split: npt.NDArray[np.bool_]
) -> End | None:
    """The end at which `values` begin, if chains turn back there."""
    end, near, beyond, half = (int(share * values.size) for share in (END, NEXT, BEYOND, HALFWAY))
    here, there, further = rates[:end].mean(), rates[end:near].mean(), rates[near:beyond].mean()
    usual = max(further, rates.mean())
    inner = np.abs(np.diff(values[end : half + 1]))
    reach = abs(values[half] - values[end])
    if (
        here >= REFUSED * usual
        or here > LEVEL * there
        or further < RISE * max(here, there)
        or inner.max() > APART * reach
    ):
        return None
    return End(index, sign, float(here), float(usual), int(split[:end].sum()))
