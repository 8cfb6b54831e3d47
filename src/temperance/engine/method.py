"""A method: what `sample(problem, method=name)` looks up.

Everything that is special about a method is in one record, made in one file:

    options     a dataclass of declared options (options.py)
    prepare     from a checked call to what the stages share: the base, how ladders and samplers are
                made. Whatever can be wrong with the call is found here, before anything is compiled
    stages      what the run does, in order (run.py)
    report      what the result tells: arrays, facts, warnings, notes, log evidence, work

A method that lacks a part is refused when it is made, and one under a taken name when it is
registered: an unknown or incomplete method never runs as another one.
"""

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from temperance._types import Data, Key, Options
from temperance.engine.options import check_declared, identity
from temperance.engine.run import Place, Stage
from temperance.errors import ArgumentError
from temperance.ladders.row_sums import rows_alone
from temperance.moves.move import AbstractMove
from temperance.problems.problem import Densities, OnVectorAndRows, Problem, Target
from temperance.programs import random_streams
from temperance.programs.random_streams import probe_key, stream
from temperance.rows.in_programs import dtype_in_run

# Rows to trace terms with; those of a source are never all there.
FEW_ROWS = 2
Functions = dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]
STREAMS = {
    "warm": random_streams.Run.WARM,
    "draw": random_streams.Run.DRAW,
    "fill": random_streams.Run.FILL,
    "temper": random_streams.Run.TEMPER,
    "joint": random_streams.Run.JOINT,
}


@dataclass(frozen=True)
class Call:
    """One call of `sample`, checked as far as it can be without its method.

    `fitting` is what a fit of the base is told: seed, progress and precision. `reference` is what
    is known of the modes, where they were hunted for; `from_reference` says that it is the base.
    """

    problem: Problem | Target
    densities: Densities
    move: AbstractMove
    options: Any
    num_chains: int
    num_warmup: int
    num_draws: int
    key: Key
    method: str = ""
    fitting: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    reference: Any = None
    from_reference: bool = False

    @property
    def dimension(self) -> int:
        return self.densities.layout.dimension


@dataclass(frozen=True)
class Asked:
    """A call of `sample` before its method is chosen; its options are not checked yet."""

    problem: Problem | Target
    densities: Densities
    move: str | AbstractMove | None
    options: Options
    key: Key
    progress: bool
    num_warmup: int = 1000


@dataclass(frozen=True)
class Choice:
    """The method that was chosen by name, its move and options, and why, in a sentence.

    `reference` is what was found of the modes, where the method does not take it as its base.
    """

    method: str
    move: str | AbstractMove | None
    options: Options
    why: str
    reference: Any = None


@dataclass(frozen=True)
class Shared:
    """What the stages of a run share. Methods add how their ladders and samplers are made.

    `rungs` is the type of the record that a place keeps of the rungs, or None.
    """

    call: Call
    rungs = None

    @property
    def sweeps_per_draw(self) -> int:
        return getattr(self.call.options, "sweeps_per_draw", 1)

    def key(self, place: Place) -> Key:
        """The random key of a stage's round; the pilot's is the same for every seed."""
        if place.stage == "pilot":
            return jax.random.fold_in(random_streams.pilot_key(), place.round)
        return stream(self.call.key, STREAMS[place.stage], place.round)

    def identity(self) -> Options:
        """Everything beside functions and data that the draws depend on: every option there is."""
        call = self.call
        independent = call.problem.independent if isinstance(call.problem, Problem) else None
        return {
            "method": call.method,
            "move": call.move,
            "num_chains": call.num_chains,
            "num_warmup": call.num_warmup,
            "independent": independent,
            **identity(call.options),
        }

    def functions(self) -> Functions:
        """The functions that the draws depend on, and what to trace them with."""
        problem, d = self.call.problem, self.call.densities
        vector = jax.ShapeDtypeStruct((d.layout.dimension,), jnp.result_type(float))
        found: Functions = {"draw": (d.draw, (probe_key(),))}
        if self.call.move.reads_rows:
            rows = rows_alone(problem, d).rows
            found["terms"] = (rows.terms, (vector, rows.like(FEW_ROWS)))
        else:
            found["log_density"] = (d.whole, (vector,))
        if isinstance(problem, Problem) and not self.call.move.reads_rows:
            # Rungs of subsamples draw with the terms, also where their sum is given.
            terms = OnVectorAndRows(problem.terms, d.layout)
            found["terms"] = (terms, (vector, few_rows(problem.data)))
        if d.hot is not None:
            found["hottest"] = (d.hot, (vector,))
        return found


def few_rows(data: Data) -> PyTree[jax.ShapeDtypeStruct]:
    """The shapes of a few rows, as a run sees them."""

    def shape(leaf: Any) -> jax.ShapeDtypeStruct:
        array = np.asarray(leaf)
        return jax.ShapeDtypeStruct((FEW_ROWS, *array.shape[1:]), dtype_in_run(array.dtype))

    return jax.tree.map(shape, data)


@dataclass(frozen=True, kw_only=True)
class Method:
    """A method of `sample`. Every part has to be there; see the module's docstring.

    `sampler` and `ladder` are the types that draw: a sampler built by hand of these types gets this
    method's report. `move` is the default move. `reads_rows` says that the method looks at a few
    rows a step whatever the move, so that rows may stay in their files. `choose` belongs to a
    method that looks at a call, and at the methods that there are, and names the one that runs.
    """

    name: str
    summary: str
    options: type
    prepare: Callable[[Call], Any]
    stages: tuple[Stage, ...]
    report: Any
    sampler: type
    ladder: type
    references: tuple[str, ...] = ()
    move: str = "hmc"
    reads_rows: bool = False
    choose: Callable[[Asked, Mapping[str, "Method"]], Choice] | None = None

    def __post_init__(self):
        where = f"method {self.name!r}"
        if not (isinstance(self.name, str) and self.name and isinstance(self.summary, str)):
            raise ArgumentError(f"{where}: wanted a name and a summary, both text")
        if not (isinstance(self.options, type) and dataclasses.is_dataclass(self.options)):
            raise ArgumentError(f"{where}: options: wanted a dataclass, got {self.options!r}")
        check_declared(self.options)
        if not callable(self.prepare):
            raise ArgumentError(f"{where}: prepare: wanted a function, got {self.prepare!r}")
        for stage in self.stages:
            if not isinstance(stage, Stage):
                raise ArgumentError(f"{where}: stages: wanted Stages, got {stage!r}")
        if not self.stages or not self.stages[-1].draws:
            raise ArgumentError(f"{where}: stages: the last one has to be one that draws")
        parts = ("arrays", "stats", "evidence", "facts", "warnings", "notes", "work", "pictures")
        missing = [part for part in parts if not hasattr(self.report, part)]
        if missing:
            raise ArgumentError(
                f"{where}: report: wanted a Report of pieces; got {self.report!r}, which lacks "
                f"{', '.join(missing)}"
            )
        for part in ("sampler", "ladder"):
            if not isinstance(getattr(self, part), type):
                raise ArgumentError(f"{where}: {part}: wanted a class, the one that draws")
