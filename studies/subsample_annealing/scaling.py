"""Theorems 2 and 4: what a budget of 10 N gives as N grows, how slow Gibbs is, and what a barrier costs."""

import math
from pathlib import Path

import numpy as np
from experiment import Experiment, Result, write_csv
from scaling_figure import draw
from scipy.sparse import diags_array
from scipy.sparse.linalg import eigsh
from sections import table
from urn_runs import CHURNS, NUM_BINS, Rows, distances, run_urns, urns_of

from temperance.testing.bimodal import TwoModeEnergy
from temperance.testing.urns import enumeration as enumerated

SIZES, LARGE = (50, 100, 200, 400), (1600,)
NAMES = (
    "anneal-subsample",
    "sequential+gibbs",
    "prior+gibbs",
    "anneal-energy",
    "anneal-stepsize",
    "anneal-both",
)
RELAXED = (10, 20, 40, 80, 160, 240)
SECONDS, MOST = 30.0, 200_000
EPSILON, GAP, ROWS = 0.05, 0.1, (50, 100, 150, 200, 250, 300)
BARRIERS = (0.05, 0.1, 0.2)
COMPILATION = {"urn-scaling": 10.0, "urn-relaxation": 5.0, "two-modes": 1.0}


def experiments() -> list[Experiment]:
    by_size = [_row(name, size, SECONDS) for name in NAMES for size in (*SIZES, *LARGE)]
    weighed = [_row(name, size, SECONDS) for name in CHURNS for size in (*SIZES, *LARGE)]
    relaxed = [
        Experiment("urn-relaxation", "two-urns", n, 2, "gibbs", "exact", 0.0) for n in RELAXED
    ]
    modes = [
        Experiment("two-modes", f"barrier-{b}", n, 1, "ode", "anneal", 0.0)
        for n in ROWS
        for b in BARRIERS
    ]
    return [*by_size, *weighed, *relaxed, *modes]


def smoke() -> list[Experiment]:
    return [
        *(_row(name, 50, 0.02) for name in (*NAMES, *CHURNS)),
        Experiment("urn-relaxation", "two-urns", 20, 2, "gibbs", "exact", 0.0),
        Experiment("two-modes", "barrier-0.1", 100, 1, "ode", "anneal", 0.0),
    ]


def _row(name: str, num_balls: int, seconds: float) -> Experiment:
    return Experiment("urn-scaling", "two-urns", num_balls, 2, "gibbs", name, seconds)


def needs_data(row: Experiment) -> bool:  # noqa: ARG001
    return False


def run_scaling(row: Experiment, data: Path | None) -> Result:  # noqa: ARG001
    return run_urns(row, NUM_BINS, MOST)


def run_relaxation(row: Experiment, data: Path | None) -> Result:  # noqa: ARG001
    """1 / (1 - lambda) of the Gibbs step's second eigenvalue, by a symmetric form of its matrix."""
    urns = urns_of(row.num_rows)
    root = np.sqrt(enumerated.extended_law(urns, row.num_rows))
    kernel = diags_array(root) @ enumerated.gibbs(urns) @ diags_array(1 / root)
    values = eigsh(
        0.5 * (kernel + kernel.T).tocsc(),
        k=2,
        sigma=1 + 1e-8,
        which="LM",
        return_eigenvectors=False,
    )
    return {"relaxation": float(1 / (1 - np.sort(values)[0]))}


def run_modes(row: Experiment, data: Path | None) -> Result:  # noqa: ARG001
    """Durations for a distance of EPSILON: promised, found by bisection, and cold."""
    modes = TwoModeEnergy(row.num_rows, GAP, float(row.problem.removeprefix("barrier-")))
    promised = modes.duration_for(EPSILON)
    low, high = 1e-3, math.log(promised)
    low = math.log(low)
    for _ in range(60):
        middle = 0.5 * (low + high)
        enough = modes.distance(modes.annealed(math.exp(middle))) < EPSILON
        low, high = (low, middle) if enough else (middle, high)
    return {
        "barrier": modes.barrier, "promised": promised, "needed": math.exp(high), "cold": modes.cold_time(EPSILON),
        "distance": modes.distance(modes.annealed(promised)),
        "by_steps": modes.distance(modes.annealed_by_steps(promised)),
    }  # fmt: skip


def write(rows: Rows, folder: Path) -> list[str]:
    scaling = [row for row in rows if row["kind"] == "urn-scaling"]
    for row in scaling:
        truth = urns_of(row["num_rows"]).binned_posterior(NUM_BINS)
        row["distances"] = distances(np.asarray(row["bins"]), truth, row["num_runs"])
        if "weighted_bins" in row:
            effective = max(1, round(row["num_runs"] * row["effective_share"]))
            row["weighted"] = distances(np.asarray(row["weighted_bins"]), truth, effective)
    return [*_budgets(scaling, folder), *_weights(scaling), *_relaxations(rows), *_modes(rows)]


def _budgets(rows: Rows, folder: Path) -> list[str]:
    sizes = sorted({row["num_rows"] for row in rows})
    names = [n for n in (*NAMES, *CHURNS) if any(row["sampler"] == n for row in rows)]
    cells = {(row["sampler"], row["num_rows"]): row["distances"]["x"] for row in rows}
    lines = [
        [n, *("{:.3f} ± {:.3f}".format(*cells[n, s]) if (n, s) in cells else "" for s in sizes)]
        for n in names
    ]
    floors = [max(row["distances"]["x"][2] for row in rows if row["num_rows"] == s) for s in sizes]
    lines.append(["exact draws, as many", *(f"{f:.3f}" for f in floors)])
    csv = [
        {"strategy": n, "num_balls": s, "distance": cells[n, s][0], "error": cells[n, s][1], "floor": cells[n, s][2]}
        for n in names for s in sizes if (n, s) in cells
    ]  # fmt: skip
    write_csv(folder / "scaling.csv", csv)
    text = (
        f"Total variation distance of x in {NUM_BINS} bins after 10 N assignments, without weights."
    )
    return table(
        "What a budget of 10 N gives", text, ["strategy", *(f"N = {s}" for s in sizes)], lines
    )


def _weights(rows: Rows) -> list[str]:
    lines = [
        [
            row["sampler"], row["num_rows"], row["num_runs"], f"{row['effective_share']:.3f}",
            f"{row['log_evidence'] - row['true_log_evidence']:+.4f} ± {row['log_evidence_error']:.4f}",
            "{:.3f} ({:.3f})".format(*row["distances"]["x"][::2]), "{:.3f} ({:.3f})".format(*row["weighted"]["x"][::2]),
        ]
        for row in sorted(rows, key=lambda r: (r["sampler"], r["num_rows"])) if "weighted" in row
    ]  # fmt: skip
    head = [
        "churn",
        "N",
        "runs",
        "effective share",
        "log p(X), error",
        "distance unweighted",
        "weighted",
    ]
    text = (
        "`anneal-weighted` is the paper's churn with weights, `anneal-metropolis` and `anneal-picked` the exact ones. "
        "In brackets what as many exact draws have; for weighted runs as many as they are effectively."
    )
    return table("Weighted annealing", text, head, lines)


def _relaxations(rows: Rows) -> list[str]:
    kept = sorted((r for r in rows if r["kind"] == "urn-relaxation"), key=lambda r: r["num_rows"])
    lines = [
        [r["num_rows"], f"{r['relaxation']:.1f}", f"{r['relaxation'] / r['num_rows'] ** 2:.3f}"]
        for r in kept
    ]
    return table("Relaxation of Gibbs on all balls", "", ["N", "steps", "over N^2"], lines)


def _modes(rows: Rows) -> list[str]:
    kept = sorted(
        (r for r in rows if r["kind"] == "two-modes"), key=lambda r: (r["barrier"], r["num_rows"])
    )
    lines = [
        [
            r["barrier"],
            r["num_rows"],
            *(f"{r[k]:.4g}" for k in ("needed", "promised", "cold", "distance", "by_steps")),
        ]
        for r in kept
    ]
    head = [
        "barrier",
        "N",
        "needed",
        "promised",
        "cold",
        "distance at the promised",
        "the same by steps",
    ]
    text = f"Durations for a distance of {EPSILON} from x(0) = 0, with a gap of {GAP} a row."
    return table("Two modes and a barrier", text, head, lines)


RUNNERS = {"urn-scaling": run_scaling, "urn-relaxation": run_relaxation, "two-modes": run_modes}
__all__ = ["COMPILATION", "RUNNERS", "draw", "experiments", "needs_data", "smoke", "write"]
