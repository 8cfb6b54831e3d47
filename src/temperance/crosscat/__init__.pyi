from .cross_validation import CrossValidation as CrossValidation, cross_validate as cross_validate
from .encoding.schema_inference import guess_schema as guess_schema
from .estimator import (
    CrossCat as CrossCat,
    DirichletProcessMixture as DirichletProcessMixture,
    PitmanYorMixture as PitmanYorMixture,
)
from .frames.schema import Column as Column, Schema as Schema
from .questions.mutual_information import MutualInformation as MutualInformation
