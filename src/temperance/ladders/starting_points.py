"""Starting points: draws of the prior or base at which a ladder's densities are finite."""

import itertools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from temperance._types import Key, Keys
from temperance.errors import StartError
from temperance.ladders.ladder import AbstractLadder, AbstractUniformLadder
from temperance.ladders.row_sums import RowLadder
from temperance.problems.layout import Layout
from temperance.problems.problem import Densities, Problem, Target

# How often a starting point is drawn before the prior or base is taken to be at fault.
TRIES = 100


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
