"""A million rows of 68 categorical columns, annealed with one view and with many, beside the oracle.

CPU seconds are of everything from the frame to the fitted state, after compilation; memory is how far the process's peak lies above
what it held before, as a multiple of the table in bytes. Linux tells both, and forgets an earlier peak when asked.
"""

import ctypes
import gc
import time
from pathlib import Path

import pandas as pd
from census import ONE_VIEW, SHAPE, census
from experiment import Experiment, Result
from sections import table

NUM_ROWS, NUM_HELD, SEED, NUM_SEEDS = 1_000_000, 10_000, 1990, 5
SHAPES = {"one view": ONE_VIEW, "views": SHAPE}
# With twenty, one state in four leaves two views in one.
PASSES = {"one view": 20.0, "views": 40.0}
COMPILATION = {"million": 300.0}
COMPILED_WITH = 300

PEAK_RESET, STATUS = Path("/proc/self/clear_refs"), Path("/proc/self/status")


def peak_bytes() -> int:
    """The most memory that this process has held since the peak was last forgotten."""
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith("VmHWM"))
    return 1024 * int(line.split()[1])


def experiments() -> list[Experiment]:
    # One seed in a short run.
    return [
        _row(NUM_ROWS, shape, seed, 0.5 if seed else 0.0)
        for seed in range(NUM_SEEDS) for shape in SHAPES
    ]  # fmt: skip


def smoke() -> list[Experiment]:
    return [_row(500, "one view", 0, 0.0)]


def _row(num_rows: int, shape: str, seed: int, least: float) -> Experiment:
    return Experiment("million", "census", num_rows, 68, "anneal", shape, 0.0, seed, least)


def needs_data(row: Experiment) -> bool:  # noqa: ARG001
    return False


def run_million(row: Experiment, data: Path | None) -> Result:  # noqa: ARG001
    from temperance.crosscat import CrossCat, PitmanYorMixture

    law = census(SEED, SHAPES[row.sampler])
    rows = law.draw(row.num_rows + NUM_HELD, SEED)
    frame = pd.DataFrame(rows, columns=law.names)
    learn, held = frame.iloc[: row.num_rows], frame.iloc[row.num_rows :]
    kind = PitmanYorMixture if row.sampler == "one view" else CrossCat
    kind(passes=1, num_states=1, random_state=0).fit(learn.iloc[:COMPILED_WITH], schema=law.kinds)
    # What earlier runs gave back and the allocator keeps would hide a rise.
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    PEAK_RESET.write_text("5")
    peak, before = peak_bytes(), time.process_time()
    model = kind(passes=PASSES[row.sampler], num_states=1, random_state=row.seed).fit(
        learn, schema=law.kinds
    )
    cpu = time.process_time() - before
    rise = peak_bytes() - peak
    state = model.states_[0]
    return {
        "passes": PASSES[row.sampler],
        "cpu": cpu,
        "memory": rise / rows[: row.num_rows].nbytes,
        "score": float(model.score_samples(held).mean()),
        "oracle": float(law.log_prob(rows[row.num_rows :]).mean()),
        "views": len(state.views),
        "true_views": len(law.views),
        "clusters": sum(len(view.log_mass) - 1 for view in state.views),
    }


def write(rows: list[Result], folder: Path) -> list[str]:  # noqa: ARG001
    names = (
        "sampler",
        "num_rows",
        "passes",
        "seed",
        "cpu",
        "memory",
        "score",
        "oracle",
        "views",
        "true_views",
        "clusters",
    )
    lines = [{name: row[name] for name in names} for row in rows]
    text = "One state of each, on one core; the seed is that of the state. loom takes 156 s for one view."
    shown = [[f"{x:.6g}" if isinstance(x, float) else x for x in line.values()] for line in lines]
    return table("A million rows", text, list(names), shown)


def draw(rows: list[Result], folder: Path) -> None:
    """Nothing: the table says it."""


RUNNERS = {"million": run_million}
