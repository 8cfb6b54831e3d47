"""The questions that a fitted model answers.

Answers are those of the average of the model's states in probability space, and what is given
weighs the states too. Rows come as any frame. Columns that it does not have, and missing cells, are
not known, and drop out.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from temperance.crosscat.encoding.cells import Cells
from temperance.crosscat.encoding.encoder import encode
from temperance.crosscat.frames.frame import build_frame, open_frame
from temperance.crosscat.questions import (
    log_probability,
    mutual_information,
    prediction,
    similarity,
)
from temperance.crosscat.questions.answer_frames import (
    decoded_with,
    fill_frame,
    framed,
    means_of,
    uncertainty_table,
    values_of,
)
from temperance.crosscat.questions.cell_laws import concatenate
from temperance.crosscat.questions.imputation import STATISTICS, impute
from temperance.crosscat.questions.known_cells import column_places, known_cells, merge
from temperance.crosscat.questions.log_probability import log_conditional, log_score
from temperance.crosscat.questions.mutual_information import MutualInformation
from temperance.crosscat.questions.posterior import Posterior
from temperance.crosscat.questions.predictive_sampling import draw_rows
from temperance.crosscat.random_state import seed_sequence
from temperance.errors import ArgumentError, unknown_name


class Queries:
    """A posterior that is asked by name and answers in the user's units.

    `target` is the column that is predicted where none is named. `backend` is the kind of frame
    that draws come as.
    """

    def __init__(
        self,
        posterior: Posterior,
        rng: np.random.Generator,
        target: str | None = None,
        backend: str = "pandas",
    ) -> None:
        self.posterior = posterior
        self.schema = posterior.schema
        self.rng = rng
        self.target = target
        self.backend = backend

    def encode(self, frame: Any) -> Cells:
        return encode(frame, self.schema, partial=True)

    def score_samples(self, frame: Any) -> NDArray[np.float64]:
        return log_score(self.posterior, self.encode(frame))

    def logp(self, values: Any, given: Any = None) -> Any:
        asked = known_cells(values, self.schema, "values")
        evidence = known_cells(given, self.schema, "given")
        cells = merge(asked, evidence, self.schema, ("values", "given"))
        found = log_conditional(self.posterior, cells, asked.columns, evidence.columns)
        single = isinstance(values, Mapping) and (given is None or isinstance(given, Mapping))
        return float(found[0]) if single else found

    def predict(self, frame: Any, target: str | None = None, statistic: str = "median") -> Any:
        if statistic not in STATISTICS:
            raise unknown_name("statistic", statistic, STATISTICS)
        place = self._target(target)
        column = self.schema.columns[place]
        parts = prediction.predict(self.posterior, self.encode(frame), place, statistic)
        drawn = concatenate([part.cells for part in parts])
        return (means_of if statistic == "mean" else values_of)(column, drawn)

    def predict_proba(self, frame: Any, target: str | None = None) -> NDArray[np.float64]:
        return prediction.predict_proba(self.posterior, self.encode(frame), self._target(target))

    def _target(self, target: str | None) -> int:
        name = self.target if target is None else target
        if name is None:
            raise ArgumentError(
                "target: which column should be predicted? Name it with target=, or fit with y="
            )
        return self.schema.index(name)

    def impute(self, frame: Any, columns: Any, uncertainty: bool, level: float) -> Any:
        if not 0.0 < level < 1.0:
            raise ArgumentError(f"level: wanted a number between 0 and 1, got {level}")
        opened = open_frame(frame, self.schema)
        cells = self.encode(opened)
        wanted = columns if columns is not None else self._held(opened.names)
        places = column_places(wanted, self.schema)
        guesses = impute(self.posterior, cells, places, level if uncertainty else None)
        fills = {
            self.schema.names[place]: (rows, values_of(self.schema.columns[place], guess.cells))
            for place, (rows, guess) in guesses.items()
        }
        held = {name: fill for name, fill in fills.items() if name in opened.names}
        filled = fill_frame(frame, held)
        if filled is None:
            decoded = decoded_with(cells, self.schema, held)
            names = self._held(opened.names)
            filled = build_frame({name: decoded[name] for name in names}, opened.backend)
        if not uncertainty:
            return filled
        return filled, framed(uncertainty_table(self.schema, guesses), opened.backend)

    def _held(self, names: Sequence[str]) -> list[str]:
        return [name for name in self.schema.names if name in names]

    def sample(self, num: int, columns: Any, given: Any, seed: Any) -> Any:
        if isinstance(num, bool) or not isinstance(num, int | np.integer) or num < 0:
            raise ArgumentError(f"n: wanted a whole number of rows >= 0, got {num!r}")
        if given is not None and not isinstance(given, Mapping):
            raise ArgumentError(
                f"given: wanted a dictionary from names to values, got {type(given).__name__}"
            )
        evidence = known_cells(given, self.schema, "given")
        places = column_places(columns, self.schema)
        free = [place for place in places if not evidence.columns[place]]
        rng = self._rng(seed)
        drawn = draw_rows(self.posterior, int(num), free, *evidence, rng)
        found = {}
        for place in places:
            column = self.schema.columns[place]
            if place in drawn:
                found[column.name] = values_of(column, drawn[place])
            else:
                fixed = np.empty(num, object)
                fixed[:] = [(given or {})[column.name]] * int(num)
                found[column.name] = fixed
        return framed(found, self.backend)

    def _rng(self, random_state: Any) -> np.random.Generator:
        if random_state is None:
            return self.rng
        return np.random.default_rng(seed_sequence(random_state))

    def surprisal(self, frame: Any, columns: Any = None) -> Any:
        opened = open_frame(frame, self.schema)
        wanted = columns if columns is not None else self._held(opened.names)
        places = column_places(wanted, self.schema)
        found = log_probability.surprisal(self.posterior, self.encode(opened))
        table = {self.schema.names[place]: found[:, place] for place in places}
        return framed(table, opened.backend, like=frame)

    def similarity(self, rows: Any, among: Any, columns: Any) -> NDArray[np.float64]:
        places = None if columns is None else column_places(columns, self.schema)
        num = len(self.posterior.states[0].views[0].assignments)
        others = np.arange(num) if among is None else self._rows(among)
        return similarity.similarity(self.posterior, self._rows(rows), others, places)

    def _rows(self, rows: Any) -> Cells | NDArray[np.int64]:
        """Training rows by number, or the cells of new ones."""
        if isinstance(rows, Mapping):
            return known_cells(rows, self.schema, "rows").cells
        if isinstance(rows, int | np.integer):
            return np.array([rows], np.int64)
        if isinstance(rows, list | tuple | range | np.ndarray):
            numbers = np.asarray(rows)
            if numbers.ndim == 1 and numbers.dtype.kind in "iu":
                return numbers.astype(np.int64)
        return self.encode(rows)

    def dependence(self) -> Any:
        import pandas as pd

        names = list(self.schema.names)
        return pd.DataFrame(similarity.dependence(self.posterior), index=names, columns=names)

    def mutual_information(
        self, a: str, b: str, given: Any, num_samples: int, seed: Any
    ) -> MutualInformation:
        if num_samples < 2:
            raise ArgumentError(f"num_samples: wanted at least 2, got {num_samples}")
        first, second = self.schema.index(a), self.schema.index(b)
        if first == second:
            raise ArgumentError(
                f"mutual_information: {a!r} is asked about itself; name two columns"
            )
        evidence = known_cells(given, self.schema, "given")
        for place in (first, second):
            if evidence.columns[place]:
                name = self.schema.names[place]
                raise ArgumentError(f"column {name!r} is both asked about and given")
        return mutual_information.mutual_information(
            self.posterior, first, second, *evidence, num_samples, self._rng(seed)
        )
