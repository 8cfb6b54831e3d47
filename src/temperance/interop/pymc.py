"""PyMC's door: models as problems, and its variational fits as bases."""

from typing import Any

import jax
import numpy as np
import pymc

from temperance.errors import unknown_name
from temperance.bases.fit import Fit
from temperance.interop.variational_bound import fit_of
from temperance.interop.pymc_model import Model, PriorDraws, Terms, num_rows
from temperance.interop.pytensor_graphs import NoSamplerError
from temperance.interop.row_detection import FAILURES, Parts, assemble
from temperance.problems.layout import Layout
from temperance.problems.problem import Problem, Target

METHODS = {"normal": "advi", "dense": "fullrank_advi"}


def convert(model: Any) -> Problem | Target:
    """What `temperance.from_pymc` does."""
    with jax.enable_x64(True):
        return assemble(parts_of(Model(model)))


def parts_of(model: Model) -> Parts:
    """What the model is made of, and the reasons for what it lacks."""
    undrawn = reason = ""
    draw = terms = None
    try:
        draw = PriorDraws(model)
        jax.eval_shape(draw, jax.random.key(0))
    except (NoSamplerError, *FAILURES) as error:
        draw, undrawn = None, f"the prior cannot be drawn from by JAX: {error}"
    n, reason = num_rows(model.model)
    if n is not None and draw is not None:
        try:
            terms = Terms(model, n)
        except FAILURES as error:
            reason = f"the model cannot be written for some of the rows: {error}"
    data = None if terms is None else terms.data
    return Parts.of(model, draw_prior=draw, undrawn=undrawn, terms=terms, data=data, reason=reason)


def advi_fit(model: Any, *, guide: str = "normal", num_steps: int = 10_000, seed: int = 0) -> Fit:
    """A Gaussian base for a PyMC model, by its automatic differentiation variational inference.

    `guide` is "normal", independent coordinates, or "dense", a full covariance. The fit finds one
    mode: fits of several starts, by `seed`, combine with `temperance.bases.fit.match_moments`.
    """
    if guide not in METHODS:
        raise unknown_name("guide", guide, METHODS)
    ours = Model(model)
    layout = Layout.of(ours.example)
    found: Any = pymc.fit(
        num_steps, METHODS[guide], model=model, random_seed=seed, progressbar=False
    )
    mean = found.mean.eval()
    covariance = found.cov.eval() if guide == "dense" else found.std.eval() ** 2
    # PyMC's vector has the variables in an order of its own.
    places = {name: np.arange(len(mean))[at].reshape(shape) for name, at, shape in _order(found)}
    order = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(places)])
    with jax.enable_x64(True):
        covariance = covariance[np.ix_(order, order)] if guide == "dense" else covariance[order]
        return fit_of(ours.log_density, layout, mean[order], covariance, seed)


def _order(found: Any) -> list[tuple[str, slice, tuple[int, ...]]]:
    return [(name, place[1], tuple(place[2])) for name, place in found.ordering.items()]
