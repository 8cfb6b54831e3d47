"""The hospital table by eight folds: held-out score of eight states averaged, and of each alone.

Columns are standardised over the whole table, so a score is the mean of log p(row) in those units. Every fold is an experiment: the
model learns seven eighths of the rows with eight states, and their densities are averaged for each row of the last eighth.
"""

import time
from pathlib import Path

import numpy as np
from experiment import Experiment, Result
from sections import table
from tables import read_hospital, split_rows

NUM_STATES, NUM_FOLDS = 8, 8
# Passes that take some twenty seconds a state.
PASSES = {"sequential": 500.0, "accelerating": 120.0}
SECONDS = {"folds": 240.0}
COMPILATION = SECONDS
COMPILED_WITH = 60


def experiments() -> list[Experiment]:
    return [
        Experiment("folds", "hospital", 307, 63, f"passes{passes:g}", strategy, 0.0, fold)
        for strategy, passes in PASSES.items()
        for fold in range(NUM_FOLDS)
    ]


def smoke() -> list[Experiment]:
    return []


def needs_data(row: Experiment) -> bool:  # noqa: ARG001
    return True


def run_fold(row: Experiment, data: Path | None) -> Result:
    """Learn seven eighths, score the rest."""
    from temperance.crosscat import CrossCat

    assert data is not None
    frame = read_hospital(data)
    kinds = dict.fromkeys(frame, "real")
    learn, held = split_rows(len(frame), row.seed)
    CrossCat(passes=1, num_states=1, random_state=0).fit(frame.iloc[:COMPILED_WITH], schema=kinds)
    before = time.process_time()
    strategy = "anneal" if row.sampler == "accelerating" else row.sampler
    model = CrossCat(
        strategy, PASSES[row.sampler], NUM_STATES, final_sweeps=1, random_state=row.seed
    )
    model.fit(frame.iloc[learn], schema=kinds)
    cpu = time.process_time() - before
    scores = np.asarray(model.score_samples(frame.iloc[held]))
    return {
        "cpu_a_state": cpu / NUM_STATES,
        "score": float(scores.mean()),
        "worst_row": float(scores.min()),
        "views": float(np.mean([len(state.views) for state in model.states_])),
        "log_joint_best": float(max(state.log_joint for state in model.states_)),
        "log_joint_worst": float(min(state.log_joint for state in model.states_)),
    }


def write(rows: list[Result], folder: Path) -> list[str]:  # noqa: ARG001
    names = (
        "sampler", "seed", "score", "worst_row", "cpu_a_state", "views", "log_joint_best", "log_joint_worst",
    )  # fmt: skip
    lines = [{name: row[name] for name in names} for row in rows]
    text = f"{NUM_STATES} states a fold. loom has -26.1, -27.0 and -28.3 on three splits with one state."
    for strategy in PASSES:
        scores = [row["score"] for row in rows if row["sampler"] == strategy]
        if len(scores) > 1:
            error = np.std(scores, ddof=1) / len(scores) ** 0.5
            text += f" {strategy}: mean over {len(scores)} folds **{np.mean(scores):.2f}** +- {error:.2f}."
    shown = [[f"{x:.4g}" if isinstance(x, float) else x for x in line.values()] for line in lines]
    return table("The hospital table by folds", text, list(names), shown)


def draw(rows: list[Result], folder: Path) -> None:
    """Nothing: the table says it."""


RUNNERS = {"folds": run_fold}
