"""The public names for tables, and the module that each one comes from."""

from .cross_validation import CrossValidation as CrossValidation, cross_validate as cross_validate
from .estimator import (
    CrossCat as CrossCat,
    DirichletProcessMixture as DirichletProcessMixture,
    PitmanYorMixture as PitmanYorMixture,
)
from .guess import guess_schema as guess_schema
from .information import MutualInformation as MutualInformation
from .schema import Column as Column, Schema as Schema
