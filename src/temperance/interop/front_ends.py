"""The doors for models written elsewhere; what stands behind them is imported when they open."""

import importlib
from typing import Any

from temperance.errors import ModelError
from temperance.problems.problem import Problem, Target


class MissingPackageError(ModelError, ImportError):
    """An optional package is not installed."""


def from_pymc(model: Any) -> Problem | Target:
    """A PyMC model as a `Problem`, or as a `Target` where its likelihood is no product over rows.

    Positions are PyMC's value variables, such as `sigma_log__`; the result's posterior has the
    model's own variables and deterministics, with its dims and coords. Rows are the leading axis
    of the observed values. Every array of the model with as many entries in front, be it observed,
    `pm.Data` or a plain constant, goes with them, so that rows can be left out.

    Where rows are not possible a `FrontEndWarning` says why, and the target's `reason` keeps it.
    Such a target is heated towards the prior. Discrete unknowns are refused.
    """
    return _module("pymc").convert(model)


def from_numpyro(model: Any, *args: Any, **kwargs: Any) -> Problem | Target:
    """A NumPyro model and its arguments as a `Problem`, or as a `Target` without rows.

    Positions hold the unconstrained values of the latent sites; the result's posterior has the
    sites and the deterministics in their own space, with plates as dims. Rows are the leading axis
    of the observed sites. Every array among the arguments with as many entries in front goes with
    them; the model is run again on some of the rows, so that its plates take their sizes from its
    arguments.

    Where rows are not possible a `FrontEndWarning` says why, and the target's `reason` keeps it.
    Such a target is heated towards the prior. Discrete latent sites are refused.
    """
    return _module("numpyro").convert(model, *args, **kwargs)


def _module(name: str) -> Any:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise MissingPackageError(
            f"from_{name} needs a package that is not installed ({error}): "
            f"pip install temperance[{name}]"
        ) from error
    return importlib.import_module(f"temperance.interop.{name}")
