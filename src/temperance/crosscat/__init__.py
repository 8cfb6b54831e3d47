"""Cross-categorization of tables, by subsample annealing."""

from temperance.crosscat.cross_validation import cross_validate
from temperance.crosscat.estimator import CrossCat, DirichletProcessMixture, PitmanYorMixture
from temperance.crosscat.guess import guess_schema
from temperance.crosscat.schema import Column, Schema

__all__ = [
    "Column",
    "CrossCat",
    "DirichletProcessMixture",
    "PitmanYorMixture",
    "Schema",
    "cross_validate",
    "guess_schema",
]
