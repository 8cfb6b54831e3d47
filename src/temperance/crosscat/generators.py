"""The state of a random number generator as an array of words, and back."""

import numpy as np

from temperance.errors import FileFormatError

WORD = 2**64


def generator_words(rng: np.random.Generator) -> np.ndarray:
    """The state of a PCG64 generator."""
    told = rng.bit_generator.state
    state, step = int(told["state"]["state"]), int(told["state"]["inc"])
    words = [*divmod(state, WORD), *divmod(step, WORD), told["has_uint32"], told["uinteger"]]
    return np.array(words, np.uint64)


def restored_generator(words: np.ndarray) -> np.random.Generator:
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
