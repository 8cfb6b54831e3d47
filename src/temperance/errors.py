"""What a wrong call gets: one exception type per kind of mistake, all under `TemperanceError`.

A message names the argument, what was got, what was wanted and what to do.
"""

from collections.abc import Iterable
from difflib import get_close_matches


class TemperanceError(Exception):
    """The root of every error that the package raises on purpose."""


class ArgumentError(TemperanceError, ValueError):
    """An argument has a value that cannot work: a negative count, betas that do not increase."""


class UnknownNameError(ArgumentError):
    """A method, move or option of that name does not exist."""


class PositionError(ArgumentError):
    """A position has the wrong structure, shape or dtype for what is asked of it."""


class TermsError(ArgumentError):
    """The terms have the wrong shape, or look ahead at rows they may not see."""


class DataError(ArgumentError):
    """The data are empty, ragged, or too few for what is asked."""


class ModelError(ArgumentError):
    """A PyMC or NumPyro model that cannot be sampled here: discrete unknowns, nothing observed."""


class StartError(TemperanceError):
    """No starting point with a finite log density (and gradient) was found."""


class MoveError(TemperanceError):
    """A move cannot do what the sampler needs of it: reversibility, gradients, exactness."""


class InterruptedRunError(TemperanceError):
    """A run was stopped before it had a single draw to give back."""


class CheckpointError(TemperanceError):
    """A checkpoint belongs to another run, or cannot be read."""


class FileFormatError(TemperanceError):
    """A file is unreadable, or was not written by this package."""


class ResultError(TemperanceError):
    """A result does not hold what was asked of it, such as evidence from a plain run."""


def unknown_name(
    kind: str, name: object, known: Iterable[str], owner: str = ""
) -> UnknownNameError:
    """An error that names the nearest known name; `owner` says of what it is not one."""
    names = sorted(known)
    near = get_close_matches(str(name), names, n=1, cutoff=0.4)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return UnknownNameError(f"unknown {kind} {name!r}{owner}: {hint}known are {', '.join(names)}")
