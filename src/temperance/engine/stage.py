"""Where a run is: which of its stages, with what it knows of its ladder."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Stage:
    """Where a run is. `rejection` is the newest measured, one for each pair of rungs."""

    kind: str
    index: int
    length: int
    betas: tuple[float, ...]
    rejection: tuple[float, ...] = ()
    barrier: float = float("nan")
    levels: tuple[float, ...] = ()  # those of the hot rungs, where energies are truncated
    lowest: float = float("nan")  # the lowest energy that was seen
    num_betas: int = 0  # of an anneal, which has more of them than there are rungs
    chosen: bool = False  # sizes that a pilot has chosen, and now tries

    @property
    def name(self) -> str:
        return f"{self.kind}-{self.index}"

    @classmethod
    def of(cls, notes: dict[str, Any]) -> "Stage":
        """A stage from the notes of a checkpoint."""
        values: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in notes.items()
        }
        return cls(**values)
