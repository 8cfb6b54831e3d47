"""Options of the equi-energy samplers, and what is wrong with them before anything runs."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from temperance.engine.method import Call
from temperance.engine.options import count, number, option
from temperance.errors import ArgumentError
from temperance.ladders.energies import check_levels, check_temperatures
from temperance.warmup.energy_rungs import EnergyRungs
from temperance.warmup.rung_options import check_agreement, given

# Filling rings takes more steps than tuning: the target reaches other modes only by states that are
# in rings.
FILL_PER_WARMUP = 4


def decreasing_temperatures(_: str, value: Any) -> tuple[float, ...]:
    """Temperatures that decrease to 1."""
    return tuple(float(one) for one in check_temperatures(value))


@dataclass(frozen=True, kw_only=True)
class EnergyOptions:
    """Temperatures, levels and rings."""

    num_rungs: int | None = option(
        None, "number of rungs, 2 or more (default: from the highest temperature)", count(2)
    )
    max_temperature: float | None = option(
        None,
        "the highest temperature, above 1 (default: from a pilot)",
        number("a temperature above 1, the target's", lambda heat: 1 < heat < np.inf),
        formerly="hottest",
    )
    temperatures: tuple[float, ...] | None = option(
        None,
        "the rungs' temperatures, decreasing to 1, kept as given (default: tuned in warm-up)",
        decreasing_temperatures,
    )
    levels: Any = option(
        None,
        "energies below which the hot rungs are flat, with temperatures, kept as given "
        "(default: from the lowest energy that is seen)",
        given,
        kind="energies",
    )
    jump_probability: float = option(
        0.25,
        "how often a step jumps, in (0, 1]",
        number("a number in (0, 1]", lambda share: 0 < share <= 1),
    )
    capacity: int | None = option(
        None, "states that an energy ring holds (default: as many as 16 megabytes hold)", count(1)
    )
    num_fill: int | None = option(
        None, "steps of each hot rung that fill its rings (default: 4 num_warmup)", count(1)
    )


def energy_rungs(call: Call, kind: type[EnergyRungs] = EnergyRungs, **others: Any) -> Any:
    """The rungs of a call that heats by energies; its options have those of EnergyOptions."""
    options = call.options
    if call.num_warmup == 0:
        raise ArgumentError(
            f"num_warmup: method {call.method!r} fills its rings before it draws, and with 0 there "
            "would be nothing to jump to; give some, or use method='plain'"
        )
    heat, levels = options.temperatures, options.levels
    if heat is not None and options.max_temperature is not None:
        raise ArgumentError(
            "max_temperature and temperatures: the first temperature is the hottest; give one"
        )
    check_agreement(options.num_rungs, heat, "temperatures")
    if levels is not None:
        if heat is None:
            raise ArgumentError("levels: each belongs to a temperature; give temperatures too")
        levels = tuple(float(level) for level in _hot_levels(levels, len(heat)))
    return kind(
        call,
        None if heat is None else tuple(float(beta) for beta in 1.0 / np.asarray(heat)),
        levels,
        options.num_rungs,
        options.max_temperature,
        options.jump_probability,
        options.capacity,
        options.num_fill or FILL_PER_WARMUP * call.num_warmup,
        **others,
    )


def _hot_levels(levels: Any, num_rungs: int) -> np.ndarray:
    """The levels of the hot rungs, which may be given with or without the target's -inf."""
    if np.shape(levels) == (num_rungs - 1,):
        levels = [*levels, -np.inf]
    found = check_levels(levels, num_rungs)[:-1]
    if not np.isfinite(found).all():
        raise ArgumentError(f"levels: those of the hot rungs must be finite, got {found}")
    return found
