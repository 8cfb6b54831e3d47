"""Held-out score against CPU time for the strategies of figure 3 of the paper: single states, and their means.

A run learns a random 7/8 of a table with one state of CrossCat and scores the other rows by the mean of log p(row). How long it takes
is set by passes, of which each strategy makes as many over the rows, and time is measured: CPU seconds of fitting, after compilation. So
the same seed gives the same score on any machine. All rows are swept once at the end. On the census the oracle says what could be had.

    anneal          a growing subsample that churns, by the paper's linear schedule
    accelerating    the same by our own, which churns most while rows are few
    sequential      rows enter one by one, then sweeps over all of them
    prior           a draw from the prior, then sweeps over all rows
"""

import resource
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from census import census
from experiment import Experiment, Result, write_csv
from sections import table
from tables import KDD_KINDS, read_hospital, read_kdd, split_rows

STRATEGIES = ("anneal", "accelerating", "sequential", "prior")
SCHEDULES = {"anneal": "linear", "accelerating": "accelerating"}
CENSUS_SEED = 1990
# Rows that compile every kernel before time is taken.
COMPILED_WITH = 60


@dataclass(frozen=True)
class Setting:
    """A table, the passes over it, how many seeds at scale 1, the least scale at which it is run, and seconds of a run.

    `more` are passes that only the accelerating schedule makes, of which one costs less.
    """

    problem: str
    num_rows: int
    num_columns: int
    passes: tuple[float, ...]
    num_seeds: int
    least: float
    seconds: float
    more: tuple[float, ...] = ()

    @property
    def kind(self) -> str:
        return f"heldout-{self.problem}-{self.num_rows}"


SETTINGS = (
    Setting("hospital", 307, 63, (5, 20, 80, 320, 1280), 16, 0.0, 10.0),
    Setting("kdd", 10_000, 41, (2, 6, 16, 64), 8, 0.0, 30.0),
    Setting("census", 10_000, 68, (2, 6, 16, 64), 8, 0.0, 15.0),
    Setting("census", 100_000, 68, (2, 5, 10, 30), 5, 0.1, 60.0),
    Setting("kdd", 494_021, 41, (2, 5, 10), 3, 0.5, 600.0, (20, 40)),
    Setting("census", 1_000_000, 68, (2, 5, 10), 3, 0.5, 600.0, (20, 40)),
)
SMOKE = Setting("census", 300, 68, (1,), 1, 0.0, 1.0)
COMPILATION = {setting.kind: setting.seconds for setting in (*SETTINGS, SMOKE)}


def experiments() -> list[Experiment]:
    return [row for setting in SETTINGS for row in _rows(setting)]


def smoke() -> list[Experiment]:
    return _rows(SMOKE)


def _rows(setting: Setting) -> list[Experiment]:
    # Seeds come with the scale: three of them at the least, all at 1. Seconds are those of the passes, not of a row.
    return [
        Experiment(
            setting.kind, setting.problem, setting.num_rows, setting.num_columns, f"passes{passes:g}", strategy,
            0.0, seed, max(setting.least, seed / setting.num_seeds if seed > 2 else 0.0),
        )
        for seed in range(setting.num_seeds)
        for passes, strategies in _made(setting)
        for strategy in strategies
    ]  # fmt: skip


def _made(setting: Setting) -> list[tuple[float, tuple[str, ...]]]:
    """Passes, and the strategies that make so many."""
    return [(passes, STRATEGIES) for passes in setting.passes] + [
        (passes, ("accelerating",)) for passes in setting.more
    ]


def needs_data(row: Experiment) -> bool:
    return row.problem != "census"


def load(row: Experiment, data: Path | None) -> tuple[Any, dict[str, str], Any]:
    """The table, the kinds of its columns, and the log density of its rows where it is known."""
    import pandas as pd

    if row.problem == "census":
        law = census(CENSUS_SEED)
        rows = law.draw(row.num_rows, CENSUS_SEED)
        return (
            pd.DataFrame(rows, columns=law.names),
            law.kinds,
            lambda held: law.log_prob(rows[held]),
        )
    assert data is not None
    if row.problem == "hospital":
        frame = read_hospital(data)
        return frame, dict.fromkeys(frame, "real"), None
    return read_kdd(data, row.num_rows), dict(KDD_KINDS), None


def run_heldout(row: Experiment, data: Path | None) -> Result:
    """Learn 7/8 of the rows, score the rest."""
    frame, kinds, oracle = load(row, data)
    learn, held = split_rows(len(frame), row.seed)
    fit(frame.iloc[:COMPILED_WITH], kinds, "anneal", 1, 0)
    before, began = time.process_time(), time.perf_counter()
    model = fit(frame.iloc[learn], kinds, row.sampler, passes_of(row), row.seed)
    cpu, wall = time.process_time() - before, time.perf_counter() - began
    scores = np.asarray(model.score_samples(frame.iloc[held]))
    found = {
        "passes": passes_of(row),
        "cpu": cpu,
        "wall": wall,
        "score": float(scores.mean()),
        "worst": float(scores.min()),
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
    return found | ({} if oracle is None else {"oracle": float(oracle(held).mean())})


def fit(frame: Any, kinds: dict[str, str], strategy: str, passes: float, seed: int) -> Any:
    """One state."""
    from temperance.crosscat import CrossCat

    model = CrossCat(passes=passes, num_states=1, final_sweeps=1, random_state=seed)
    if strategy in SCHEDULES:
        model.set_params(strategy="anneal", schedule=SCHEDULES[strategy])
    else:
        model.set_params(strategy=strategy)
    return model.fit(frame, schema=kinds)


def passes_of(row: Experiment) -> float:
    return float(row.move.removeprefix("passes"))


def write(rows: list[Result], folder: Path) -> list[str]:
    lines = [
        {
            "table": problem,
            "rows": num_rows,
            "strategy": strategy,
            "passes": passes,
            "runs": len(some),
            "cpu_seconds": float(np.mean([row["cpu"] for row in some])),
            "score": float(np.mean([row["score"] for row in some])),
            "spread": float(np.std([row["score"] for row in some])),
            "worst_run": float(min(row["score"] for row in some)),
            "below_oracle": _below(some),
        }
        for (problem, num_rows, strategy, passes), some in sorted(_groups(rows).items())
    ]
    write_csv(folder / "figure3.csv", lines)
    text = (
        "Mean of log p(row) over a random eighth of the rows, learned from the others by one state. *Spread* is the deviation "
        "between runs, *worst run* the lowest of them, *below oracle* how far the mean is under the law that made the rows."
    )
    return table(
        "Held-out score against time", text, list(lines[0]), [list(line.values()) for line in lines]
    )


def _groups(rows: list[Result]) -> dict[tuple[str, int, str, float], list[Result]]:
    found: dict[tuple[str, int, str, float], list[Result]] = {}
    for row in rows:
        key = (row["problem"], row["num_rows"], row["sampler"], row["passes"])
        found.setdefault(key, []).append(row)
    return found


def _below(rows: list[Result]) -> float | str:
    known = [row["oracle"] - row["score"] for row in rows if "oracle" in row]
    return float(np.mean(known)) if known else ""


def draw(rows: list[Result], folder: Path) -> None:
    from figure3_picture import picture

    picture(rows, STRATEGIES).savefig(folder / "figure3.png", dpi=130)


RUNNERS = dict.fromkeys(COMPILATION, run_heldout)
__all__ = ["COMPILATION", "RUNNERS", "draw", "experiments", "needs_data", "smoke", "write"]
