"""Tests for samplers and models that can fail: laws, enumeration, invariance, Geweke's joint test.

Public, because whoever writes a ladder, a move or a model's terms has the same questions to answer.
"""

from temperance.testing import (
    ensembles,
    enumeration,
    fast_slow,
    heated,
    minibatches,
    refreshes,
    subsamples,
    tables,
)
from temperance.testing.constant_swaps import ConstantSwaps, ResetToRung
from temperance.testing.invariance import Verdict, invariance, reversibility, sequential
from temperance.testing.joint import joint
from temperance.testing.laws import check_gradients, check_ladder, check_terms, check_vmap
from temperance.testing.targets import (
    ConjugateNormal,
    CurvedGamma,
    GaussianBridge,
    TwoModes,
    two_modes,
)

__all__ = [
    "ConjugateNormal",
    "ConstantSwaps",
    "CurvedGamma",
    "GaussianBridge",
    "ResetToRung",
    "TwoModes",
    "Verdict",
    "check_gradients",
    "check_ladder",
    "check_terms",
    "check_vmap",
    "ensembles",
    "enumeration",
    "fast_slow",
    "heated",
    "invariance",
    "joint",
    "minibatches",
    "refreshes",
    "reversibility",
    "sequential",
    "subsamples",
    "tables",
    "two_modes",
]
