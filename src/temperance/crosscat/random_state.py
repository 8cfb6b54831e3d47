"""Random states: seeds from what a caller gives, and the state of a generator as an array."""

from typing import Any

import numpy as np

from temperance.errors import ArgumentError, FileFormatError

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


WORD = 2**64


def generator_words(rng: np.random.Generator) -> np.ndarray:
    """The state of a PCG64 generator."""
    told = rng.bit_generator.state
    state, step = int(told["state"]["state"]), int(told["state"]["inc"])
    words = [*divmod(state, WORD), *divmod(step, WORD), told["has_uint32"], told["uinteger"]]
    return np.array(words, np.uint64)


def restore_generator(words: np.ndarray) -> np.random.Generator:
    """The generator whose state that is."""
    if np.shape(words) != (6,):
        raise FileFormatError(f"random numbers: wanted six words, got shape {np.shape(words)}")
    high, low, step_high, step_low, has_half, half = (int(word) for word in words)
    made = np.random.PCG64()
    made.state = {
        "bit_generator": "PCG64",
        "state": {"state": high * WORD + low, "inc": step_high * WORD + step_low},
        "has_uint32": has_half,
        "uinteger": half,
    }
    return np.random.Generator(made)
