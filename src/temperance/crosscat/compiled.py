"""How kernels are compiled: once for each family of features, kept on disk, and without Python's lock.

A table's size is data to a kernel and never part of its type. Divisions follow IEEE 754 and do not raise.
"""

from typing import Any

from numba import njit

REORDER = {"reassoc", "contract", "nsz"}

kernel: Any = njit(cache=True, nogil=True, error_model="numpy")
inlined_kernel: Any = njit(cache=True, nogil=True, error_model="numpy", inline="always")
# Products and sums may be taken in any order; infinities and NaN keep their meaning.
reordered_kernel: Any = njit(cache=True, nogil=True, error_model="numpy", fastmath=REORDER)
