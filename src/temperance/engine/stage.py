"""Stages: what a run does, in order, and where it is.

A run is a list of stages, such as a pilot, warm-up and draws. A stage is a handful of pure
functions. What they share (the problem, the move, the options, how ladders are made) is one object,
`shared`, which the method's `prepare` makes; what changes is in two records:

    place    which stage and round, how many steps, and what is known of the rungs: plain numbers
             and text, kept beside every block of a checkpoint
    carry    arrays: the chains' states, and what has been learnt so far

The next place and carry are a function of these alone, so that a run resumed from any block goes
the same way as one that was never stopped.
"""

import abc
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from jaxtyping import PyTree

from temperance.engine.loop import Blocks


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
