"""The weight of an inverse temperature with a slip, which the tests must reject."""

import numpy as np
from jaxtyping import Float


def printed_log_weight(tilt: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """As printed below (20): t / (1 - exp(-t)), and then its logarithm."""
    with np.errstate(all="ignore"):
        return np.log(tilt / (1 - np.exp(-tilt)))
