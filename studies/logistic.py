"""Logistic regression, which several studies have."""

from typing import Any

import equinox as eqx
import jax
from jaxtyping import Array


class LogisticTerms(eqx.Module):
    """Bernoulli terms of a linear predictor."""

    def __call__(self, coefficients: Array, data: Any) -> Array:
        rows, labels = data
        logits = rows @ coefficients
        return labels * logits - jax.nn.softplus(logits)
