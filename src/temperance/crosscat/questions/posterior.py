"""A fitted model as questions see it: the columns, and several draws of a state.

The states are draws from one posterior. What is asked of a model is asked of their average in
probability space, p(x) = mean over s of p_s(x), never of an average of logs.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from temperance.crosscat.encoding.cells import Cells
from temperance.crosscat.encoding.features import Features
from temperance.crosscat.frames.schema import Schema
from temperance.crosscat.views.predictive import Predictive, StatePredictive, ViewPredictive
from temperance.errors import ArgumentError

# Numbers held at once for a block of rows: 16 MiB of float64.
BLOCK = 1 << 21


@dataclass(frozen=True)
class Posterior:
    """Columns and states. Every column is in exactly one view of each state."""

    schema: Schema
    features: Features
    states: tuple[StatePredictive, ...]

    def __post_init__(self) -> None:
        if not self.states:
            raise ArgumentError("a model needs at least one state to answer, and has none")
        wanted = list(range(self.num_columns))
        for number, state in enumerate(self.states):
            found = sorted(column for view in state.views for column in view.columns)
            if found != wanted:
                raise ArgumentError(
                    f"state {number} has columns {found} in its views, not each of the "
                    f"{len(wanted)} columns once: it belongs to another table"
                )

    @property
    def num_columns(self) -> int:
        return len(self.schema.columns)

    @property
    def num_states(self) -> int:
        return len(self.states)

    @cached_property
    def log_units(self) -> NDArray[np.float64]:
        """[C] log length of a standardised unit in the user's units: 0 for discrete columns."""
        return np.array(
            [
                np.log(column.scale) if column.kind in ("real", "spike") else 0.0
                for column in self.schema.columns
            ]
        )

    @cached_property
    def views(self) -> NDArray[np.int64]:
        """[S, C] the view that each column is in."""
        found = np.empty((self.num_states, self.num_columns), np.int64)
        for state, views in zip(self.states, found, strict=True):
            for number, view in enumerate(state.views):
                views[list(view.columns)] = number
        return found

    def law(self, state: int, column: int) -> Predictive:
        """The laws of a column's cells in one state."""
        view = self.view(state, column)
        return view.predictives[view.columns.index(column)]

    def view(self, state: int, column: int) -> ViewPredictive:
        """The view that has a column in one state."""
        return self.states[state].views[self.views[state, column]]

    def blocks(self, cells: Cells, width: int | None = None) -> list[slice]:
        """Runs of rows that are short enough to be worked on at once.

        `width` is how many numbers one row needs: by default one for each cluster of each view of
        each state.
        """
        if width is None:
            width = sum(len(view.log_mass) for state in self.states for view in state.views)
        num = cells.num_rows
        size = int(np.clip(BLOCK // max(width, 1), 1, 4096))
        return [slice(start, min(start + size, num)) for start in range(0, num, size)]
