"""Rows one by one: what a mini-batch kernel reads, and a ladder on which nobody reads them all.

On a `RowLadder` a point knows its log prior. Everything else about it would cost a pass over the
data, so the kernels that run there bring their own way to compare two points by a few rows.
"""

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PyTree

from temperance._types import Data, LogDensity, Position
from temperance.errors import DataError, MoveError
from temperance.rows.in_programs import is_remote, remote, struct_of, taken
from temperance.ladders.geometric import GeometricLadder
from temperance.ladders.ladder import AbstractLadder, AbstractUniformLadder, Rung, Rungs, SingleRung
from temperance.problems.problem import (
    Densities,
    Likelihood,
    OnVectorAndRows,
    Posterior,
    Problem,
    Target,
)

# Places are 32-bit numbers.
MOST_ROWS = 2**31 - 1


class Rows(eqx.Module):
    """A posterior of independent rows, by the row: log p(x) + sum_i l_i(x)."""

    log_prior: LogDensity
    terms: Callable[[Position, Data], Float[Array, " m"]]
    data: Data
    num_rows: int = eqx.field(static=True)

    def take(self, places: Int[Array, " m"]) -> Data:
        """The rows at `places`."""
        return taken(self.data, places)

    def like(self, count: int) -> PyTree[jax.ShapeDtypeStruct]:
        """The shape of `count` rows."""
        return jax.tree.map(lambda leaf: struct_of(leaf, count), self.data, is_leaf=is_remote)

    def at(self, position: Position, places: Int[Array, " m"]) -> Float[Array, " m"]:
        """The terms of the rows at `places`."""
        return self.terms(position, self.take(places))


class RowLadder(AbstractUniformLadder):
    """One rung whose points know their log prior alone, and whose log density says no more.

    For moves that say `reads_rows`, such as `mint`; any other would draw from the prior.
    """

    rows: Rows

    @classmethod
    def of(cls, problem: Problem) -> "RowLadder":
        """The ladder of a problem's positions."""
        data = remote(problem.data, jnp.asarray)
        return cls(Rows(problem.log_prior, problem.terms, data, problem.num_rows))

    @property
    def num_rungs(self) -> int:
        return 1

    @property
    def keeps_gradients(self) -> bool:
        return False

    def densities(self) -> Sequence[LogDensity]:
        return (self.rows.log_prior,)

    def weights(self, rung: Rungs) -> Float[Array, " components"]:
        return jnp.ones((1,))


def rows_alone(problem: Problem | Target, densities: Densities) -> RowLadder:
    """The ladder of a problem's vectors, if its rows can be read one by one."""
    if not (isinstance(problem, Problem) and problem.independent):
        raise MoveError(
            "mini-batch moves read rows one by one: they need a Problem with one term a row and "
            "independent=True, not a Target or terms that look back"
        )
    if problem.num_rows > MOST_ROWS:
        raise DataError(
            f"data: got {problem.num_rows} rows, and mini-batch moves number them in 32 bits: "
            f"wanted at most {MOST_ROWS}; leave some out, or put several into one row"
        )
    assert densities.hot is not None
    assert isinstance(densities.cold, Likelihood)
    terms = OnVectorAndRows(problem.terms, densities.layout)
    return RowLadder(Rows(densities.hot, terms, densities.cold.data, problem.num_rows))


def rows_of(rung: Rung) -> Rows:
    """The rows behind a rung, if it has any."""
    ladder: AbstractLadder = rung.ladder
    if isinstance(ladder, RowLadder):
        return ladder.rows
    prior: Any = None
    likelihood: Any = None
    if isinstance(ladder, SingleRung) and isinstance(ladder.density, Posterior):
        prior, likelihood = ladder.density.log_prior, ladder.density.log_likelihood
    elif isinstance(ladder, GeometricLadder) and not ladder.bridge:
        prior, likelihood = ladder.hot, ladder.cold
    if isinstance(likelihood, Likelihood):
        terms = OnVectorAndRows(likelihood.terms, likelihood.layout)
        num_rows = jax.tree.leaves(likelihood.data, is_leaf=is_remote)[0].shape[0]
        return Rows(prior, terms, likelihood.data, num_rows)
    raise MoveError(
        f"a mini-batch move reads single rows, and {type(ladder).__name__} has none to read: run "
        "it on a Problem with method='mint' or 'plain', or on RowLadder.of(problem)"
    )


def power_of(rung: Rung) -> Array:
    """The power of the likelihood at a rung that has rows."""
    return rung.weights[1] if isinstance(rung.ladder, GeometricLadder) else jnp.ones(())
