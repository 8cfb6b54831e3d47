"""A log density that says itself which of its variables are fast, in two functions.

    log density(x) = finish(prepare(slow), fast)

Moves find the same two stages in any density by themselves. Written apart they cannot run into
each other: `prepare` never sees a fast variable, and whatever it factors is factored once.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import equinox as eqx
from jaxtyping import Array, PyTree

from temperance.errors import ArgumentError, PositionError, unknown_name
from temperance.moves.fast_slow.fast_variables import checked_fast


class TwoStage(eqx.Module):
    """`finish(prepare(slow, *data), fast)`, as a function of positions and perhaps of data.

    `slow` and `fast` are dicts of the position's leaves. `fast` names those in the second.
    """

    prepare: Callable[..., PyTree]
    finish: Callable[..., Array]
    fast: tuple[str, ...] = eqx.field(static=True)

    def __call__(self, position: Any, *data: Any) -> Array:
        if not isinstance(position, Mapping):
            raise PositionError(
                "position: a density in two stages takes a dict of named leaves, got "
                f"{type(position).__name__}"
            )
        for name in self.fast:
            if name not in position:
                raise unknown_name("fast leaf", name, map(str, position))
        slow = {name: leaf for name, leaf in position.items() if name not in self.fast}
        fast = {name: position[name] for name in self.fast}
        return self.finish(self.prepare(slow, *data), fast)


def two_stage(
    prepare: Callable[..., PyTree], finish: Callable[..., Array], fast: str | Sequence[str]
) -> TwoStage:
    """A log density in two stages, for positions that are dicts of named leaves.

    `prepare(slow)` returns whatever `finish(cache, fast)` needs besides the leaves named in `fast`.
    For the log likelihood or the terms of a `Problem` it is `prepare(slow, data)`. Moves of fast
    and slow variables then know which are fast without being told.
    """
    for name, function in (("prepare", prepare), ("finish", finish)):
        if not callable(function):
            raise ArgumentError(f"{name}: wanted a function, got {function!r}")
    names = checked_fast(fast)
    if not names:
        raise ArgumentError("fast: name at least one leaf that `finish` takes, got none")
    return TwoStage(prepare, finish, names)
