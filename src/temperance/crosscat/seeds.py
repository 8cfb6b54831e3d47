"""Seeds from whatever a caller gives: nothing, a number, a seed sequence or a generator."""

from typing import Any

import numpy as np

from temperance.errors import ArgumentError

WORDS = 4


def seed_sequence(random_state: Any) -> np.random.SeedSequence:
    """A seed sequence; the same number gives the same one, a generator moves on."""
    match random_state:
        case None:
            return np.random.SeedSequence()
        case np.random.SeedSequence():
            return random_state
        case np.random.Generator():
            return np.random.SeedSequence(random_state.integers(2**32, size=WORDS).tolist())
        case np.random.RandomState():
            words = random_state.randint(2**32, size=WORDS, dtype=np.uint32)
            return np.random.SeedSequence(words.tolist())
        case int() | np.integer() if random_state >= 0 and not isinstance(random_state, bool):
            return np.random.SeedSequence(int(random_state))
        case _:
            pass
    raise ArgumentError(
        f"random_state: got {random_state!r}, wanted None, a whole number >= 0, a SeedSequence or "
        "a NumPy generator"
    )
