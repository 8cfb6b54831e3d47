"""What a call may say of an equi-energy run, and what is wrong with it before anything runs."""

from typing import Any

import numpy as np

from temperance._types import Options
from temperance.problems.checks import check_count, is_number
from temperance.ladders.energies import check_levels, check_temperatures
from temperance.errors import ArgumentError

JUMP_PROBABILITY = 0.25
# Rings are worth more steps than moves: what is in them is all that the target hears of modes.
FILL_PER_WARMUP = 4


def equi_energy_options(options: Options, num_warmup: int) -> Options:
    """The rungs and the other options of method "ee", checked."""
    if num_warmup == 0:
        raise ArgumentError(
            "num_warmup: method 'ee' fills its rings before it draws, and with 0 there would be "
            "nothing to jump to; give some, or use method='plain'"
        )
    hottest, betas = options.get("hottest"), None
    if hottest is not None and not (is_number(hottest) and 1 < hottest < np.inf):
        raise ArgumentError(
            f"hottest: wanted a temperature above 1, the target's, got {hottest!r}; method 'ee' "
            "takes temperatures and not betas"
        )
    temperatures, levels = options.get("temperatures"), options.get("levels")
    if temperatures is not None:
        if hottest is not None:
            raise ArgumentError(
                "hottest and temperatures: the first temperature is the hottest; give one"
            )
        heat = check_temperatures(temperatures)
        betas = tuple(float(beta) for beta in 1.0 / heat)
    if levels is not None:
        if betas is None:
            raise ArgumentError("levels: each belongs to a temperature; give temperatures too")
        levels = tuple(float(level) for level in _hot_levels(levels, len(betas)))
    probability = options.get("jump_probability", JUMP_PROBABILITY)
    if not (is_number(probability) and 0 < probability <= 1):
        raise ArgumentError(f"jump_probability: wanted a number in (0, 1], got {probability!r}")
    capacity = options.get("capacity")
    num_fill = options.get("num_fill", FILL_PER_WARMUP * num_warmup)
    return {
        "betas": betas,
        "hottest": None if hottest is None else float(hottest),
        "levels": levels,
        "jump_probability": float(probability),
        "capacity": None if capacity is None else check_count("capacity", capacity, 1),
        "num_fill": check_count("num_fill", num_fill, 1),
    }


def _hot_levels(levels: Any, num_rungs: int) -> np.ndarray:
    """The levels of the hot rungs, which may be given with or without the target's -inf."""
    if np.shape(levels) == (num_rungs - 1,):
        levels = [*levels, -np.inf]
    found = check_levels(levels, num_rungs)[:-1]
    if not np.isfinite(found).all():
        raise ArgumentError(f"levels: those of the hot rungs must be finite, got {found}")
    return found
