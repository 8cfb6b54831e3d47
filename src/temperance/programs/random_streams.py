"""The random streams of a run, by name: every number that is folded into a key stands here.

A run's key comes from its seed. Each stage of the run has a key of its own, made of the run's key,
the stage's kind and its round; a step of a chain has a key made of the stage's, the chain's number
and the step's. Whatever else is random takes a stream whose number no chain has, since
`split(key, n)[i]` is `fold_in(key, i)`.

The pilot's key is the same for every seed: how many rungs a problem wants belongs to the problem,
and another seed then runs the same compiled programs.
"""

from enum import IntEnum
from typing import Any

import jax

from temperance._types import Key

# The key of every pilot, and of the order of rows that a pilot looks at.
PILOT_SEED = 20140914


class Run(IntEnum):
    """Streams of a run's key."""

    WARM = 1
    DRAW = 2
    FILL = 3
    TEMPER = 4
    JOINT = 5
    HUNT = 6
    # No run has both: an anneal that chooses betas by conditional ESS leaves no rows out.
    ROWS = 2**31 - 2
    BETAS = 2**31 - 2


class ByHand(IntEnum):
    """Streams of the run of a sampler that was built by hand."""

    STARTS = 0
    WARM = 1
    DRAW = 2


class Stage(IntEnum):
    """Streams of a stage's key, beside the chains'."""

    STARTS = 2**31 - 1


class Sweep(IntEnum):
    """Streams of the key of a sampler's step, beside those that it is split into."""

    ROWS = 1
    JUMP = 2


class VariationalFit(IntEnum):
    """Streams of the seed of a variational fit."""

    BOUND = 1


class Hunting(IntEnum):
    """Streams of the key of a hunt for modes, and of the reference that follows from it."""

    STARTS = 1
    HOST = 2


def stream(key: Key, name: IntEnum, *numbers: Any) -> Key:
    """The key of a stream; further numbers, such as a stage's round, make keys within it."""
    for number in (int(name), *numbers):
        key = jax.random.fold_in(key, number)
    return key


def pilot_key() -> Key:
    """The key that all pilots share."""
    return jax.random.key(PILOT_SEED)


def probe_key() -> Key:
    """A key for looking at shapes, and at one draw of a function that is given."""
    return jax.random.key(0)
