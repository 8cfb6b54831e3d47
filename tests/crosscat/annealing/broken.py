"""Broken twins of whole anneals."""

import numpy as np

from temperance.crosscat.annealing.run import Annealing
from temperance.crosscat.annealing.schedules import next_steps
from temperance.crosscat.encoding.cells import Cells
from temperance.crosscat.encoding.features import Features


def stop_when_the_last_row_enters(run: Annealing) -> Annealing:
    """No sweep of all rows at the end."""
    run.churns[-1] = 0.0
    return run.run()


def no_bases(cells: Cells, features: Features, rows: np.ndarray) -> np.ndarray:
    """Factorials of counts taken for what always cancels."""
    return np.zeros(int(features.column.max()) + 1)


def forget_removals(run: Annealing) -> float:
    """Rows that leave take nothing from the weight."""
    random = run.settings.schedule.churn == "random"
    steps, turned, run.finished = next_steps(run.window, run.churns, random, 10_000, run.state.rng)
    log_weight = sum(run.state.run(np.array([step]), weighed=step >= 0) for step in steps.tolist())
    if turned or run.finished:
        run.turn_over()
    return log_weight


def weigh(run: Annealing, advance=lambda run: run.advance(weighed=True)[1]) -> float:
    """The log weight of a whole run."""
    total = 0.0
    while not run.finished:
        total += advance(run)
    return total
