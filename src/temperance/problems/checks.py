"""What is checked about a problem before anything long is compiled."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from temperance.errors import ArgumentError, PositionError, TermsError
from temperance.problems.named_axes import check_names
from temperance.problems.problem import Densities, Problem, Target
from temperance.rows.in_programs import first_rows, struct_of
from temperance.rows.source import left_in_place

# Rows on which terms are compared; enough to see a look-ahead, few enough to cost nothing.
FEW_ROWS = 8


def is_number(value: Any) -> bool:
    """Whether it is a number, and not a flag."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def check_problem(
    problem: Problem | Target, densities: Densities, *, gathers: bool = False
) -> None:
    """Shapes, names, and for a problem with rows the laws of its terms.

    `gathers` says that the move is one of an ensemble, whose members the result keeps.
    """
    vector = jax.ShapeDtypeStruct((densities.layout.dimension,), jnp.result_type(float))
    if isinstance(problem, Problem):
        _check_terms(problem, densities)
        _check_scalar("log_prior", densities.hot, vector)
    else:
        _check_scalar("base", densities.hot, vector)
        _check_scalar("log_density", densities.cold, vector)
    check_names(problem, densities.layout, gathers=gathers)


def _check_scalar(name: str, density: Any, vector: jax.ShapeDtypeStruct) -> None:
    if density is None:
        return
    try:
        shape = np.shape(jax.eval_shape(density, vector))
    except PositionError:
        raise
    except (TypeError, ValueError, IndexError, KeyError, AttributeError) as error:
        raise ArgumentError(
            f"{name}: it fails on a position of the given shape: {error}; check that `example` or "
            "`draw_prior` gives positions of the shape that the function takes"
        ) from error
    if shape != ():
        raise ArgumentError(f"{name}: wanted a scalar, got shape {shape}; sum over what is left")


def _check_terms(problem: Problem, densities: Densities) -> None:
    n = problem.num_rows
    position = densities.layout.unravel(densities.draw(jax.random.key(0)))
    data = left_in_place(problem.data, jnp.asarray)
    try:
        shape = np.shape(jax.eval_shape(problem.terms, position, jax.tree.map(struct_of, data)))
    except (TypeError, ValueError, IndexError, KeyError, AttributeError) as error:
        raise TermsError(f"terms: it fails on a prior draw and the data: {error}") from error
    if shape != (n,):
        raise TermsError(
            f"terms: wanted one log density for each of the {n} rows, shape ({n},), got {shape}"
        )
    few = min(FEW_ROWS, n)
    half = few // 2
    data = jax.tree.map(lambda leaf: first_rows(leaf, few), data)
    whole = _terms(problem, position, data, 0, few)
    prefix = _terms(problem, position, data, 0, half)
    if not _alike(prefix, whole[:half]):
        raise TermsError(
            f"terms look ahead: the first {half} terms change when rows are added after them. "
            "terms[i] must be log p(y_i | y_<i, x), so nothing may be centred, scaled or averaged "
            "over all rows inside terms: do that to the data beforehand"
        )
    if problem.independent:
        tail = _terms(problem, position, data, half, few)
        if not _alike(tail, whole[half:]):
            raise TermsError(
                "terms of one row look at the others, but the problem says independent=True: "
                "give independent=False"
            )
    if problem.log_likelihood is not None:
        _check_sum(problem.log_likelihood, position, data, whole)


def _check_sum(log_likelihood: Any, position: Any, data: Any, terms: np.ndarray) -> None:
    some = jax.tree.map(lambda rows: rows[: len(terms)], data)
    try:
        value = np.asarray(log_likelihood(position, some))
    except (TypeError, ValueError, IndexError, KeyError, AttributeError) as error:
        raise TermsError(
            f"log_likelihood: it fails on a prior draw and {len(terms)} rows: {error}; wanted a "
            "function of a position and data that returns the sum of the terms"
        ) from error
    wanted = np.asarray(np.sum(terms))
    if value.shape != () or not _alike(value, wanted):
        raise TermsError(
            f"log_likelihood: wanted the sum of the terms, {wanted} on {len(terms)} rows, got "
            f"{value}; leave it out, or make it and `terms` the same density"
        )


def _terms(problem: Problem, position: Any, data: Any, start: int, stop: int) -> np.ndarray:
    some = jax.tree.map(lambda rows: rows[start:stop], data)
    try:
        values = np.asarray(problem.terms(position, some))
    except (TypeError, ValueError, IndexError, KeyError, AttributeError) as error:
        raise TermsError(
            f"terms: it fails on rows {start} to {stop} alone: {error}; everything with a row "
            "axis must come from `data`, because terms are also asked for some of the rows"
        ) from error
    if values.shape != (stop - start,):
        raise TermsError(
            f"terms: wanted {stop - start} values for {stop - start} rows, got shape "
            f"{values.shape}; everything with a row axis must come from `data`"
        )
    return values


def _alike(one: np.ndarray, two: np.ndarray) -> bool:
    tolerance = 1e-9 if one.dtype == np.float64 else 1e-4
    return bool(np.allclose(one, two, rtol=tolerance, atol=tolerance, equal_nan=True))


def check_count(name: str, value: Any, least: int) -> int:
    """A whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ArgumentError(f"{name}: wanted a whole number of at least {least}, got {value!r}")
    return int(value)
