"""Figure 2: where each strategy leaves the two-urn model of 20,000 balls, for a budget of 10 N assignments."""

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from experiment import Experiment, Result, write_csv
from sections import table
from urn_runs import FINE_BINS, NUM_BINS, Rows, coarse, distances, run_urns, urns_of

from temperance.testing.urns.model import STRATEGIES

mpl.use("agg")
import matplotlib.pyplot as plt
from matplotlib.colors import PowerNorm

NUM_BALLS, FEW_BALLS, SECONDS, MOST = 20_000, 500, 600.0, 1_000_000
# Those that only draw or assign once need less.
QUICK = {"prior": 0.02, "sequential": 0.15, "posterior": 0.1}
NAMES = [*STRATEGIES, "posterior"]
COMPILATION = {"urns": 10.0}


def experiments() -> list[Experiment]:
    return [_row(name, NUM_BALLS, SECONDS * QUICK.get(name, 1.0)) for name in NAMES]


def smoke() -> list[Experiment]:
    return [_row(name, FEW_BALLS, 0.05) for name in NAMES]


def _row(name: str, num_balls: int, seconds: float) -> Experiment:
    return Experiment("urns", "two-urns", num_balls, 2, "gibbs", name, seconds)


def needs_data(row: Experiment) -> bool:  # noqa: ARG001
    return False


def run(row: Experiment, data: Path | None) -> Result:  # noqa: ARG001
    most = 10_000 if row.sampler == "prior" else MOST
    result = run_urns(row, FINE_BINS, most)
    if row.sampler == "posterior":
        result["truth"] = urns_of(row.num_rows).binned_posterior(FINE_BINS).tolist()
    return result


def found(rows: Rows) -> tuple[np.ndarray, dict[str, Any]]:
    """The posterior's shares, and each strategy's row with its distances, the nearest to the posterior last."""
    size = max(row["num_rows"] for row in rows)
    by_name = {row["sampler"]: row for row in rows if row["num_rows"] == size}
    truth = urns_of(size).binned_posterior(FINE_BINS)
    for row in by_name.values():
        row["distances"] = distances(
            coarse(row["bins"], NUM_BINS), coarse(truth, NUM_BINS), row["num_runs"]
        )
    order = sorted(
        by_name, key=lambda name: (name == "posterior", -by_name[name]["distances"]["x, y"][0])
    )
    return truth, {name: by_name[name] for name in order}


def write(rows: Rows, folder: Path) -> list[str]:
    _, by_name = found(rows)
    lines, csv = [], []
    for name, row in by_name.items():
        told = row["distances"]
        cells = [f"{v:.4f} ± {e:.4f} ({f:.4f})" for v, e, f, _ in told.values()]
        lines.append([name, row["num_runs"], *cells, f"{1e3 * row['cpu'] / row['num_runs']:.2f}"])
        csv.append({
            "strategy": name, "num_balls": row["num_rows"], "num_runs": row["num_runs"],
            **{f"{what} {axis}": value for axis, values in told.items()
               for what, value in zip(("distance", "error", "floor", "floor spread"), values, strict=True)},
            "cpu_seconds": row["cpu"],
        })  # fmt: skip
    write_csv(folder / "figure2.csv", csv)
    head = ["strategy", "runs", "distance of x", "distance of (x, y)", "CPU ms a run"]
    size = next(iter(by_name.values()))["num_rows"]
    text = (
        f"{size} balls, two reds to three blues, p = 0.45, alpha = 1/2, budgets of 10 N assignments. Total variation "
        f"distance in {NUM_BINS} bins of x and {NUM_BINS} x {NUM_BINS} of (x, y), its standard error, and in brackets "
        "the distance that as many exact draws have."
    )
    return table("Figure 2: two urns", text, head, lines)


def draw(rows: Rows, folder: Path) -> None:
    truth, by_name = found(rows)
    shown = {name: np.asarray(row["bins"]) for name, row in by_name.items()} | {"posterior": truth}
    figure, axes = plt.subplots(3, 3, figsize=(10.5, 10.2), sharex=True, sharey=True)
    for axis, (name, shares) in zip(axes.ravel(), shown.items(), strict=False):
        axis.imshow(
            shares.T, origin="lower", extent=(0, 1, 0, 1), cmap="magma_r",
            norm=PowerNorm(0.4, 0, np.quantile(truth, 0.999)), interpolation="bilinear",
        )  # fmt: skip
        value = "" if name == "posterior" else f": {by_name[name]['distances']['x, y'][0]:.3f}"
        axis.set_title(f"{'posterior, exact' if name == 'posterior' else name}{value}", fontsize=10)
    for axis in axes[-1]:
        axis.set_xlabel("x, share of red on the left")
    for axis in axes[:, 0]:
        axis.set_ylabel("y, share of blue on the left")
    figure.tight_layout()
    figure.savefig(folder / "figure2.png", dpi=110)
    plt.close(figure)


RUNNERS = {"urns": run}
