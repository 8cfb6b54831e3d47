"""States of a table, fitted one after another or side by side, afresh or from where they were."""

import functools
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from temperance.crosscat.annealing.executors import fit_many
from temperance.crosscat.annealing.run import Annealing, Progress, Settings
from temperance.crosscat.annealing.schedules import Schedule, new_window
from temperance.crosscat.encoding.cells import Cells
from temperance.crosscat.encoding.table import Table
from temperance.crosscat.files.checkpoints import Checkpoint
from temperance.crosscat.views.hyperparameters import prior_of
from temperance.crosscat.views.predictive import StatePredictive
from temperance.crosscat.views.state_predictive import predictive_of
from temperance.crosscat.views.view import Ground
from temperance.errors import ArgumentError

Tell = Callable[[Progress], Any]


class FittedState:
    """A finished state: its predictive law, what it takes to go on, and its trace."""

    def __init__(self, made: Annealing):
        self._predictive = predictive_of(made.state, made.rows)
        self._arrays = made.arrays()
        self.trace = made.trace

    def predictive(self) -> StatePredictive:
        return self._predictive

    def arrays(self) -> dict[str, np.ndarray]:
        return self._arrays


def settings_of(told: Mapping[str, Any]) -> Settings:
    """The settings of an estimator, checked."""
    rest = dict(told)
    model, num_auxiliary = rest.pop("model", "crosscat"), rest.pop("num_auxiliary", 4)
    stratify = rest.pop("stratify", None)
    schedule = Schedule(**rest)
    schedule.check()
    if num_auxiliary < 1:
        raise ArgumentError(f"num_auxiliary: wanted at least 1, got {num_auxiliary}")
    return Settings(model, schedule, num_auxiliary, stratify)


def fit_states(
    table: Table,
    settings: Mapping[str, Any],
    seeds: Sequence[np.random.SeedSequence],
    *,
    callback: Tell | None = None,
    max_seconds: float | int | None = None,
    executor: Any = None,
    num_workers: int | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
) -> list[FittedState]:
    """One state for each seed. `max_seconds` is for all of them, as if each worker took its share.

    What is in the folder `checkpoint` is gone on with (checkpoints.py).
    """
    chosen = settings_of(settings)
    if callback is not None and executor == "processes":
        raise ArgumentError(
            "callback: states in processes of their own cannot tell it how far they are; "
            "with executor='threads' they can"
        )
    kept = None if checkpoint is None else Checkpoint(checkpoint, table, chosen)
    side_by_side = num_workers or (1 if executor is None else os.cpu_count() or 1)
    share = None if max_seconds is None else max_seconds * min(1.0, side_by_side / len(seeds))
    fit_one = functools.partial(_fit_one, callback=callback, max_seconds=share, kept=kept)
    numbered = list(enumerate(seeds))
    return fit_many(fit_one, table, chosen, numbered, executor, num_workers)


def _fit_one(
    table: Table,
    settings: Settings,
    numbered: tuple[int, np.random.SeedSequence],
    callback: Tell | None,
    max_seconds: float | int | None,
    kept: Checkpoint | None,
) -> FittedState:
    number, seed = numbered
    ground, prior = Ground.of(table), prior_of(table, settings.model)
    arrays = None if kept is None else kept.restore(number, seed)
    if arrays is None:
        made = Annealing.start(ground, prior, settings, seed)
    else:
        made = Annealing.from_arrays(ground, prior, settings, arrays)
    tell = callback if kept is None else kept.make_callback(number, seed, made, callback)
    return FittedState(made.run(number, tell, max_seconds))


def append_rows(
    table: Table,
    kept: Sequence[Mapping[str, np.ndarray]],
    rows: Cells,
    settings: Mapping[str, Any],
    seeds: Sequence[np.random.SeedSequence],
    *,
    callback: Tell | None = None,
    max_seconds: float | int | None = None,
) -> tuple[Table, list[FittedState]]:
    """More rows enter states as they are; then all rows are swept as at the end of an anneal."""
    whole = Table(
        table.schema,
        table.features,
        Cells(*(np.concatenate(pair) for pair in zip(table.cells, rows, strict=True))),
    )
    chosen = settings_of(settings)
    ground, prior = Ground.of(whole), prior_of(whole, chosen.model)
    states = []
    for number, (arrays, seed) in enumerate(zip(kept, seeds, strict=True)):
        made = Annealing.from_arrays(ground, prior, chosen, _longer(arrays, whole, chosen, seed))
        states.append(FittedState(made.run(number, callback, max_seconds)))
    return whole, states


def _longer(
    arrays: Mapping[str, np.ndarray], whole: Table, settings: Settings, seed: np.random.SeedSequence
) -> dict[str, np.ndarray]:
    """The arrays of a finished run as those of one that has still to let the new rows in."""
    old, new = len(arrays["window/order"]), whole.num_rows
    # Those that are in come first on one ring, and the new ones enter in random order.
    rng = np.random.default_rng(seed)
    order = np.concatenate([rng.permutation(old), old + rng.permutation(new - old)])
    churns = settings.schedule._replace(strategy="sequential", passes=1.0).churns(new)
    window = new_window(new, rng)._replace(order=order, inside=np.array([old]))
    return {
        **arrays,
        **{f"window/{name}": x for name, x in window._asdict().items()},
        "churns": churns,
        "counters": np.array([0.0, *arrays["counters"][1:2], 0.0]),
    }
