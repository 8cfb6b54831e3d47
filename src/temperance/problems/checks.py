"""What is checked about a problem before anything long is compiled."""

import itertools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from temperance._types import Key, Keys
from temperance.problems.constrain import check_constrain
from temperance.errors import ArgumentError, PositionError, StartError, TermsError
from temperance.rows.in_programs import first_rows, struct_of
from temperance.ladders.ladder import AbstractLadder, AbstractUniformLadder
from temperance.problems.layout import Layout
from temperance.problems.problem import Densities, Problem, Target
from temperance.ladders.row_sums import RowLadder
from temperance.rows.source import left_in_place

# Rows on which terms are compared; enough to see a look-ahead, few enough to cost nothing.
FEW_ROWS = 8
TRIES = 100


def is_number(value: Any) -> bool:
    """Whether it is a number, and not a flag."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def check_problem(problem: Problem | Target, densities: Densities) -> None:
    """Shapes, and for a problem with rows the laws of its terms."""
    vector = jax.ShapeDtypeStruct((densities.layout.dimension,), jnp.result_type(float))
    if isinstance(problem, Problem):
        _check_terms(problem, densities)
        _check_scalar("log_prior", densities.hot, vector)
    else:
        _check_scalar("base", densities.hot, vector)
        _check_scalar("log_density", densities.cold, vector)
    check_constrain(problem.constrain, densities.layout)


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


@eqx.filter_jit
def _try_starts(
    ladder: AbstractLadder, draw: Any, place: Layout | None, keys: Keys, gradient: bool
) -> tuple[Array, Array]:
    vectors = jax.vmap(draw)(keys)

    def evaluate(x: Array) -> Any:
        position = ladder.embed(_placed(place, x))
        return ladder.evaluate(position, gradient=gradient and ladder.keeps_gradients)

    uniform = isinstance(ladder, AbstractUniformLadder)
    points = jax.vmap(evaluate)(vectors) if uniform else jax.lax.map(evaluate, vectors)
    good = jnp.all(jnp.isfinite(points.components), axis=1)
    for gradient_of_one in points.gradients or ():
        good &= jnp.all(jnp.isfinite(gradient_of_one), axis=1)
    return vectors, good


def _placed(place: Layout | None, vector: Array) -> Any:
    return vector if place is None else place.unravel(vector)


def starting_points(
    ladder: AbstractLadder,
    problem: Problem | Target,
    densities: Densities,
    key: Key,
    shape: tuple[int, int],
    *,
    gradient: bool,
    place: Layout | None = None,
) -> Array:
    """Draws with finite log density and gradient for (chain, rung), (chains, rungs, d).

    `place` lays vectors out for a ladder whose densities take positions.
    """
    num_chains, num_rungs = shape
    keys = jax.random.split(key, num_chains * num_rungs)
    vectors, good = _try_starts(ladder, densities.draw, place, keys, gradient)
    vectors, good = np.array(vectors), np.array(good)
    for attempt in itertools.count(1):
        if good.all():
            break
        if attempt == TRIES:
            chain = int(np.flatnonzero(~good)[0]) // num_rungs
            where = _blame(problem, densities, ladder, place, vectors[~good][0])
            raise StartError(
                f"chain {chain}: no starting point with a finite log density"
                f"{' and gradient' if gradient else ''} in {TRIES} draws; at the last one "
                f"{where}. Check the support and the scale of the "
                f"{'prior' if isinstance(problem, Problem) else 'base or example'}"
            )
        again = jax.vmap(lambda k, a=attempt: jax.random.fold_in(k, a))(keys)
        new, fine = _try_starts(ladder, densities.draw, place, again, gradient)
        vectors[~good] = np.asarray(new)[~good]
        good |= np.asarray(fine)
    return jnp.asarray(vectors.reshape(num_chains, num_rungs, -1))


def _blame(
    problem: Problem | Target,
    densities: Densities,
    ladder: AbstractLadder,
    place: Layout | None,
    vector: np.ndarray,
) -> str:
    """Which part of the density is not finite at `vector`."""
    x = jnp.asarray(vector)
    where = ", ".join(f"{n}={np.array2string(v, threshold=6, precision=4)}"
                      for n, v in densities.layout.split(vector).items())  # fmt: skip
    parts: dict[str, Any] = {}
    if isinstance(problem, Problem):
        parts["log_prior"] = problem.log_prior(densities.layout.unravel(x))
        if not isinstance(ladder, RowLadder):
            terms = np.asarray(problem.terms(densities.layout.unravel(x), problem.data))
            worst = np.flatnonzero(~np.isfinite(terms))
            if worst.size:
                parts[f"terms[{worst[0]}]"] = terms[worst[0]]
    else:
        parts["log_density"] = densities.cold(x)
    components = ladder.evaluate(ladder.embed(_placed(place, x)), gradient=False).components
    parts |= {f"component {i} of the ladder": value for i, value in enumerate(components)}
    for name, value in parts.items():
        if not np.isfinite(value):
            return f"({where}) {name} = {float(value)}"
    return f"({where}) the gradient is not finite"


def check_count(name: str, value: Any, least: int) -> int:
    """A whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ArgumentError(f"{name}: wanted a whole number of at least {least}, got {value!r}")
    return int(value)
