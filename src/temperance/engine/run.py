"""The life of a run: its stages, one after another, in blocks.

    pilot, warm-up, ...        each round is run to its end; the stage says what follows
    draws                      the last stage, whose blocks are kept

A stage is a handful of pure functions. What the stages share (the problem, the move, the options,
how ladders are made) is one object, `shared`, which the method's `prepare` makes; what changes is
in two records:

    place    which stage and round, how many steps, and what is known of the rungs: plain numbers
             and text, kept beside every block of a checkpoint
    carry    arrays: the chains' states, and what has been learnt so far

The next place and carry are a function of these alone. After every block a checkpoint holds the
place, how far its round has come, and the carry, so that a run that is called again goes on from
there bit for bit.
"""

import abc
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

import numpy as np
from jaxtyping import PyTree

from temperance.engine.conductor import Conductor
from temperance.engine.loop import Blocks
from temperance.errors import InterruptedRunError


@dataclass(frozen=True)
class Place:
    """Where a run is. `rungs` is what is known of them, a record of the method's own."""

    stage: str
    round: int
    length: int
    rungs: Any = None

    @property
    def name(self) -> str:
        return f"{self.stage}-{self.round}"

    def notes(self) -> dict[str, Any]:
        """As text and numbers, for a checkpoint."""
        return asdict(self)

    @classmethod
    def of(cls, notes: dict[str, Any], rungs: type | None) -> "Place":
        """The place that `notes` are of."""
        kept = None
        if rungs is not None:
            values = {
                name: tuple(value) if isinstance(value, list) else value
                for name, value in notes["rungs"].items()
            }
            kept = rungs(**values)
        return cls(notes["stage"], notes["round"], notes["length"], kept)


class Stage(abc.ABC):
    """A part of a run. `kinds` are the names that its places have.

    Of the stage that `draws`, the last, blocks are kept; the others learn.
    """

    kinds: ClassVar[tuple[str, ...]]
    draws: ClassVar[bool] = False

    def applies(self, shared: Any) -> bool:
        """Whether a run has this stage."""
        return True

    @abc.abstractmethod
    def enter(self, shared: Any, left: Any) -> tuple[Place, PyTree]:
        """Its first round, from what the stage before has left; None if it is the first stage."""

    @abc.abstractmethod
    def sampler(self, shared: Any, place: Place, carry: PyTree) -> Any:
        """What runs at a place."""

    def after(self, shared: Any, place: Place, carry: PyTree) -> tuple[Place | None, Any]:
        """After a finished round: the next one and what it carries, or None and what is left."""
        raise TypeError(f"nothing comes after {type(self).__name__}")

    @abc.abstractmethod
    def template(self, shared: Any, place: Place) -> PyTree:
        """Something of the structure, shapes and dtypes of what is carried at a place."""

    def blocks(self, shared: Any, place: Place, carry: PyTree, size: int) -> Any:
        """What makes the blocks of a round, of `size` draws at most."""
        sampler = self.sampler(shared, place, carry)
        return Blocks(sampler, shared.key(place), shared.sweeps_per_draw, size)


Draws = dict[str, np.ndarray]


@dataclass(frozen=True)
class Finished:
    """The draws, by name and leading with (draw, chain), and the sampler that drew them.

    `learnt` is what the draws were made with: parameters, and whatever warm-up has left.
    `reference` is what was known of the modes beforehand, if they were hunted for.
    """

    draws: Draws
    sampler: Any
    sweeps_per_draw: int
    num_rows: int
    learnt: Any = None
    reference: Any = None

    @property
    def num_draws(self) -> int:
        return len(self.draws["position"])


def run(stages: Sequence[Stage], shared: Any, conductor: Conductor) -> Finished:
    """To the last draw, or to where the conductor stops; from where its checkpoint is."""
    stages = [stage for stage in stages if stage.applies(shared)]
    stage, place, carry, done = _where(stages, shared, conductor)
    while not stage.draws:
        carry = _round(stage, shared, place, carry, conductor, done)
        refuse_nothing(conductor)
        following, carry = stage.after(shared, place, carry)
        if following is None:
            stage = stages[stages.index(stage) + 1]
            following, carry = stage.enter(shared, carry)
        place, done = following, 0
    # The checkpoint may be of a run that wanted fewer draws.
    place = replace(place, length=shared.call.num_draws)
    draws = _kept(conductor, place)
    _round(stage, shared, place, carry, conductor, done, draws)
    return Finished(
        _joined(draws, conductor, place.length),
        stage.sampler(shared, place, carry),
        shared.sweeps_per_draw,
        shared.call.densities.num_rows,
        carry[1],
        shared.call.reference,
    )


def _round(
    stage: Stage,
    shared: Any,
    place: Place,
    carry: PyTree,
    conductor: Conductor,
    done: int,
    draws: list[Draws] | None = None,
) -> PyTree:
    """The rest of a round; blocks of draws are added to `draws`."""
    blocks = stage.blocks(shared, place, carry, conductor.size)
    advance = blocks.learn if draws is None else blocks.draw
    return conductor.run(place.name, place.length, advance, carry, place.notes(), done, draws)


def _where(
    stages: Sequence[Stage], shared: Any, conductor: Conductor
) -> tuple[Stage, Place, PyTree, int]:
    """The stage to go on with: the first, or that of the last good block."""
    store = conductor.store
    if store is None or store.last is None:
        return stages[0], *stages[0].enter(shared, None), 0
    place = Place.of(store.last.notes, shared.rungs)
    stage = next(stage for stage in stages if place.stage in stage.kinds)
    return stage, place, store.restore(stage.template(shared, place)), store.last.position


def _kept(conductor: Conductor, place: Place) -> list[Draws]:
    """The draws that a checkpoint already holds."""
    store = conductor.store
    return [] if store is None else [block.draws for block in store.blocks(place.name)]


def _joined(draws: list[Draws], conductor: Conductor, most: int) -> Draws:
    """All blocks' draws, if there is one; of a checkpoint that holds more, the first `most`."""
    refuse_nothing(conductor, draws)
    return {name: np.concatenate([block[name] for block in draws])[:most] for name in draws[0]}


def refuse_nothing(conductor: Conductor, draws: list[Any] | None = None) -> None:
    """Raise if the run was stopped with nothing to give back."""
    if conductor.stopped is None or draws:
        return
    after = {
        "interrupted": "interrupted",
        "max_seconds": f"out of time (max_seconds={conductor.max_seconds})",
        "target_ess": "stopped",
    }[conductor.stopped]
    keeps = (
        "run the same call again to go on from the checkpoint"
        if conductor.store is not None
        else "give checkpoint= to be able to go on, fewer num_warmup, or more time"
    )
    raise InterruptedRunError(f"{after} before the first draw was finished: {keeps}")
