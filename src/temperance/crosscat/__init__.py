"""Cross-categorization: which columns of a table belong together, and which rows alike in them."""

from typing import TYPE_CHECKING

from temperance.face import offer

if TYPE_CHECKING:
    from temperance.crosscat.cross_validation import CrossValidation, cross_validate
    from temperance.crosscat.estimator import CrossCat, DirichletProcessMixture, PitmanYorMixture
    from temperance.crosscat.guess import guess_schema
    from temperance.crosscat.information import MutualInformation
    from temperance.crosscat.schema import Column, Schema

__all__ = [
    "Column", "CrossCat", "CrossValidation", "DirichletProcessMixture", "MutualInformation",
    "PitmanYorMixture", "Schema", "cross_validate", "guess_schema",
]  # fmt: skip

offer(__name__)
