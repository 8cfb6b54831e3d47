"""Several records of arrays, end to end as one."""

from collections.abc import Sequence
from typing import Any

import numpy as np


def join(parts: Sequence[Any]) -> Any:
    """Named tuples of arrays, of None and of named tuples: one whose arrays are end to end."""
    first = parts[0]
    if first is None:
        return None
    if isinstance(first, np.ndarray):
        return np.concatenate(parts)
    return type(first)(*(join(members) for members in zip(*parts, strict=True)))
