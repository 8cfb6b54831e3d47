"""One state from its first row to its last sweep, a block of steps at a time.

After each turnover of the rows (schedules.py) hyperparameters are drawn; after every fourth, and at
the end, columns move between views (column_moves.py, block_moves.py). A block ends at a turnover,
or after some number of steps; where blocks end changes no draw, so that a run which is stopped goes
on as if it had not been.

**The first rows**, a hundred or half of all, are in before columns enter (initial_views.py): fewer
do not tell views apart. Where states are weighed they begin instead as a draw of the prior, with no
row in, as weights want it (evidence.py).
"""

import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from temperance.crosscat.annealing.exact_churn import next_churns
from temperance.crosscat.annealing.schedules import (
    Schedule,
    Window,
    fill,
    new_window,
    next_steps,
    rows_in,
)
from temperance.crosscat.encoding.features import NARROW, WIDE
from temperance.crosscat.random_state import generator_words, restore_generator
from temperance.crosscat.views.hyperparameters import Prior
from temperance.crosscat.views.state import State, Views
from temperance.crosscat.views.view import Ground
from temperance.errors import ArgumentError

# Steps of a block at most: a fraction of a second.
BLOCK, FEW = 200_000, 1000
# Columns move after every so many turnovers, and enter when so many rows are in.
TURNOVERS_A_MOVE, FIRST_ROWS = 4, 100
TRACED = ("seconds", "rows", "clusters", "views", "score", "done")


class Settings(NamedTuple):
    """What is fitted, and how."""

    model: str = "crosscat"
    schedule: Schedule = Schedule()
    num_auxiliary: int = 4
    stratify: str | None = None


class Progress(NamedTuple):
    """How far a state has come. `score` is its log joint density over the rows that are in."""

    state: int
    rows: int
    num_rows: int
    clusters: int
    views: int
    score: float
    done: float
    seconds: float


Tell = Callable[[Progress], Any]


class Annealing:
    """A state, its window on the rows, and the trace of what it went through."""

    def __init__(self, state: State, window: Window, settings: Settings):
        self.state, self.window, self.settings = state, window, settings
        self.churns = settings.schedule.churns(state.ground.table.num_rows)
        self.traced: dict[str, list[float]] = {name: [] for name in TRACED}
        self.seconds, self.score, self.finished = 0.0, 0.0, False

    @classmethod
    def start(
        cls, ground: Ground, prior: Prior, settings: Settings, seed: np.random.SeedSequence,
        weighed: bool = False,
    ) -> "Annealing":  # fmt: skip
        """Before the first step; `weighed` if its steps are to be weighed."""
        rng = np.random.default_rng(seed)
        views: Views = "none"
        if settings.model != "crosscat":
            views = "one"
        elif weighed or settings.schedule.strategy == "prior":
            views = "prior"
        state = State.draw(ground, prior, rng, views)
        if settings.stratify is not None and settings.schedule.churn not in ("window", "random"):
            raise ArgumentError(
                f"stratify: wanted churn 'window' or 'random', got {settings.schedule.churn!r}"
            )
        strata = None if settings.stratify is None else _strata(ground, settings.stratify)
        window = new_window(ground.table.num_rows, rng, strata)
        made = cls(state, window, settings)
        if settings.schedule.strategy == "prior":
            state.seat_by_prior(np.arange(ground.table.num_rows))
            fill(window, made.churns[-1])
        elif views == "none":
            made.enter_first_rows()
        return made

    def enter_first_rows(self) -> None:
        """Rows enter without churns, then columns."""
        num_rows = len(self.churns)
        most = 1 + max(1, min(FIRST_ROWS, num_rows // 2))
        next_steps(self.window, np.zeros(num_rows), False, most, self.state.rng)
        self.window.owed[0] = self.churns[self.window.num_in - 1]
        self.state.enter_columns(self.rows)

    @property
    def rows(self) -> np.ndarray:
        return rows_in(self.window)

    @property
    def trace(self) -> dict[str, np.ndarray]:
        """What was seen at each turnover."""
        return {name: np.array(found) for name, found in self.traced.items()}

    def run(
        self, number: int = 0, tell: Tell | None = None, max_seconds: float | int | None = None
    ) -> "Annealing":
        """Goes on to the end, telling of each block.

        To keep to `max_seconds` churns are left out, and at the end sweeps, but not the last ones;
        so too once `tell` answers that it wants the end.
        """
        while not self.finished:
            begun = time.monotonic()
            num_steps, _ = self.advance()
            taken = time.monotonic() - begun
            self.seconds += taken
            if max_seconds is not None:
                self._hurry(0.5 * num_steps / taken * (max_seconds - self.seconds))
            if tell is not None and tell(self.progress(number)):
                max_seconds = 0.0
        return self

    def advance(self, weighed: bool = False) -> tuple[int, float]:
        """One block of steps, and what is due after it.

        Returns the number of steps and, if `weighed`, their log weight (evidence.py), which exact
        churns do not have.
        """
        churn, log_weight = self.settings.schedule.churn, 0.0
        if self.window.num_in == len(self.churns):
            # All rows are in: every churn is a step of Gibbs sampling, and each row has its turn.
            churn = "window"
        if churn in ("metropolis", "weighted"):
            made, turned, self.finished = next_churns(
                self.state, self.window, self.churns, churn, FEW
            )
        else:
            steps, turned, self.finished = next_steps(
                self.window, self.churns, churn == "random", BLOCK, self.state.rng
            )
            made, log_weight = len(steps), self.state.run(steps, weighed)
        if turned or self.finished:
            self.turn_over()
        return made, log_weight

    def turn_over(self) -> None:
        """Hyperparameters, then columns if it is their turn, given the rows that are in."""
        self.state.sweep_hyper()
        rows = self.rows
        if self.is_columns_turn():
            self.state.move_columns(rows, self.settings.num_auxiliary)
        self.score = self.state.log_joint(rows)
        told = self.progress(0)
        for name in TRACED:
            self.traced[name].append(float(getattr(told, name)))

    def is_columns_turn(self) -> bool:
        """Whether columns move at this turnover."""
        if self.settings.model != "crosscat" or len(self.state.ground.table.schema) == 1:
            return False
        turnover = 1 + len(self.traced["rows"])
        return self.finished or turnover % TURNOVERS_A_MOVE == 0

    def _hurry(self, affordable: float) -> None:
        """Leaves out churns beyond what is affordable, in proportion; last sweeps are kept."""
        num_in, owed, churns = self.window.num_in, self.window.owed, self.churns
        num_rows = len(churns)
        last = np.ceil(self.settings.schedule.final_sweeps * num_rows)
        if num_in < num_rows:
            coming = churns[num_in:-1].sum() + max(churns[-1] - last, 0.0) + owed[0]
            share = np.clip((affordable - (num_rows - num_in) - last) / max(coming, 1.0), 0.0, 1.0)
            churns[num_in:-1] *= share
            churns[-1] = last + share * max(churns[-1] - last, 0.0)
            owed[0] *= share
        else:
            made = churns[-1] - owed[0]
            owed[0] = min(owed[0], max(affordable, last - made))
            churns[-1] = made + owed[0]

    def progress(self, number: int) -> Progress:
        """How far this has come."""
        num_in, views = self.window.num_in, self.state.views
        num_rows = len(self.churns)
        left = self.churns[num_in:].sum() + self.window.owed[0] + num_rows - num_in
        return Progress(
            state=number,
            rows=num_in,
            num_rows=num_rows,
            clusters=sum(view.num_clusters for view in views),
            views=len(views),
            score=self.score,
            done=float(1.0 - left / (self.churns.sum() + num_rows)),
            seconds=self.seconds,
        )

    def arrays(self) -> dict[str, np.ndarray]:
        """All that it takes to go on, but the table."""
        counters = np.array([self.seconds, self.score, float(self.finished)])
        window = {f"window/{name}": x for name, x in self.window._asdict().items()}
        traced = {f"trace/{name}": x for name, x in self.trace.items()}
        words = {"rng": generator_words(self.state.rng)}
        rest = {"churns": self.churns, "counters": counters}
        return {**self.state.arrays(), **window, **traced, **words, **rest}

    @classmethod
    def from_arrays(
        cls, ground: Ground, prior: Prior, settings: Settings, arrays: Mapping[str, np.ndarray]
    ) -> "Annealing":
        """What `arrays` took apart; it goes on with the same draws."""
        rng = restore_generator(arrays["rng"])
        state = State.from_arrays(ground, prior, rng, arrays)
        window = Window(*(arrays[f"window/{name}"].copy() for name in Window._fields))
        made = cls(state, window, settings)
        made.churns = arrays["churns"].copy()
        made.traced = {name: arrays[f"trace/{name}"].tolist() for name in TRACED}
        seconds, score, finished = arrays["counters"]
        made.seconds, made.score, made.finished = float(seconds), float(score), bool(finished)
        return made


def _strata(ground: Ground, name: str) -> np.ndarray:
    """The stratum of each row: what it has in a column of categories, or that it has nothing."""
    column = ground.table.schema.index(name)
    feature = ground.table.features.of_column(column)[0]
    family = int(ground.table.features.family[feature])
    if family not in (NARROW, WIDE):
        kind = ground.table.schema.columns[column].kind
        raise ArgumentError(f"stratify: wanted a column of categories, and {name!r} is {kind}")
    return ground.table.cells[family][:, int(ground.table.features.place[feature])]
