"""Tied means: how near the draws come to the exact tempered law, and the ratio of the two modes.

Twenty runs, half of which start at either mode. For each sampler:

    total variation   between a histogram of all runs' draws and the grid's law
    floor             what chance alone makes of it: with s_c the standard error of a cell's share over
                      runs, sqrt(2 / pi) sum_c s_c / 2
    exact draws       how many independent draws of the law have that floor
    balls             draws within 0.01 of one mode over those within 0.01 of the other, as in the paper
    halves            draws with theta_2 > 0 over those with theta_2 < 0, which is 1 by symmetry

Ratios are of all runs' draws together, with the standard error of the jackknife over runs: a mean of
ratios, as the paper has it, is biased upwards as long as runs are short. How many runs have been in both
places is told as well.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from experiment import Experiment, Result
from kernels import NOISES, walker
from stochastic_gradient import gradient_walker
from tied_problem import ALPHA, BATCH, BOX, COARSE, FINE, grid, modes, temperature, tied_means
from walks import blocks, tuned_step

from temperance.programs.scope import scope

NUM_ROWS = 10**6
NUM_RUNS = 20
RADIUS = 0.01
MOST_STEPS = 10**6
GRADIENTS = ("sgld", "sghmc")
SAMPLERS = (*(f"mint {noise}" for noise in NOISES), "tempered", *GRADIENTS)
# Steps in a block; a step on all rows costs a thousand times as much.
BLOCK, FULL_BLOCK = 500, 10
NUM_TUNING = 300
CURVE_POINTS = 24


def experiments() -> list[Experiment]:
    """One row a sampler; the law itself is a row too."""
    return [
        Experiment("law", "tied", NUM_ROWS, 2, "grid", "exact", 0.0),
        *(Experiment("tied", "tied", NUM_ROWS, 2, "metropolis", name, 3600.0) for name in SAMPLERS),
    ]


def run_law(row: Experiment) -> Result:
    """What the grid says: modes, the mass outside, the error of the nodes."""
    from tied_problem import LAWS, error_of_nodes, mass_outside

    found = {law: modes(row.num_rows, law) for law in LAWS}
    law = grid(row.num_rows)
    return {
        "temperature": temperature(row.num_rows),
        "modes": {law: points.tolist() for law, (points, _) in found.items()},
        "ratios": {law: ratio for law, (_, ratio) in found.items()},
        "outside": mass_outside(row.num_rows),
        "error_of_nodes": error_of_nodes(row.num_rows),
        "density": law.reshape(FINE // 4, 4, FINE // 4, 4).sum((1, 3)).tolist(),
    }


def run_tied(row: Experiment) -> Result:
    """One sampler, twenty runs."""
    name = row.sampler
    with scope("double"):
        problem = tied_means(row.num_rows)
        places = modes(row.num_rows, "prior tempered")[0]
        starts = jnp.asarray(places[np.arange(NUM_RUNS) % 2])
        if name in GRADIENTS:
            sampler = gradient_walker(name, problem, BATCH, 2)
            step = sampler.params.step_size[0, 0]
        else:
            sampler = walker(name, problem, BATCH, ALPHA)
            step, _ = tuned_step(sampler, jax.random.key(row.seed), starts[0], 1.0, NUM_TUNING)
        count = FULL_BLOCK if name == "tempered" else BLOCK
        tally = Tally(places)
        for block in blocks(
            sampler,
            row.num_rows,
            step,
            starts,
            row.seed,
            row.seconds,
            count,
            1,
            MOST_STEPS // count,
        ):
            tally.add(block)
    return tally.found(row.num_rows) | {"step_size": float(step), "rows": tally.rows}


class Tally:
    """What is kept of draws (run, draw, 2) that are too many to keep."""

    def __init__(self, places: np.ndarray) -> None:
        self.places = places
        self.hits: list[np.ndarray] = []
        self.counts = np.zeros((NUM_RUNS, COARSE**2 + 1))
        self.num_steps, self.rows = 0, 0.0
        self.times: dict[str, float] = {}
        self.acceptance: list[float] = []

    def add(self, block: dict[str, Any]) -> None:
        """Count one block."""
        draws = block["positions"]
        near = np.linalg.norm(draws[:, :, None] - self.places, axis=-1) < RADIUS
        halves = np.stack([draws[..., 1] > 0, draws[..., 1] < 0], axis=-1)
        self.hits.append(np.concatenate([near, halves], axis=-1).sum(1))
        for counts, run in zip(self.counts, draws, strict=True):
            counts += np.bincount(cells(run), minlength=counts.size)
        self.num_steps += draws.shape[1]
        self.rows += float(block["rows"].sum())
        self.times = {name: block[name] for name in ("wall", "cpu")}
        self.acceptance.append(block["acceptance"])

    def found(self, num_rows: int) -> Result:
        """Distances and ratios."""
        law = np.append(_coarse(grid(num_rows)).ravel(), 0.0)
        share = self.counts / self.num_steps
        mean, error = share.mean(0), share.std(0, ddof=1) / np.sqrt(NUM_RUNS)
        floor = float(np.sqrt(2 / np.pi) * error.sum() / 2)
        hits = np.cumsum(self.hits, axis=0)
        ends = np.unique(np.geomspace(1, len(hits), CURVE_POINTS).astype(int))
        return self.times | {
            "num_steps": self.num_steps,
            "acceptance": float(np.mean(self.acceptance)),
            "total_variation": 0.5 * float(np.abs(mean - law).sum()),
            "floor": floor,
            "exact_draws": float((np.sqrt(law * (1 - law)).sum() / (np.sqrt(2 * np.pi) * floor)) ** 2),
            "num_both": int(np.sum(np.all(hits[-1][:, 2:] > 0, axis=1))),
            "histogram": mean[:-1].reshape(COARSE, COARSE).tolist(),
            "curve": [[int(end * self.num_steps / len(hits)), *ratios(hits[end - 1])] for end in ends],
        }  # fmt: skip


def cells(draws: np.ndarray) -> np.ndarray:
    """The cell of each draw, the last for those outside the box."""
    low, high = np.transpose(BOX)
    place = np.floor(COARSE * (draws.reshape(-1, 2) - low) / (high - low)).astype(int)
    inside = np.all((place >= 0) & (place < COARSE), axis=1)
    return np.where(inside, place[:, 0] * COARSE + place[:, 1], COARSE**2)


def _coarse(law: np.ndarray) -> np.ndarray:
    each = FINE // COARSE
    return law.reshape(COARSE, each, COARSE, each).sum((1, 3))


def ratios(hits: np.ndarray) -> list[float | int]:
    """Ratios of balls and of halves (run, 4): value, standard error, how many runs saw both."""
    found: list[float | int] = []
    for one, other in (hits[:, :2].T, hits[:, 2:].T):
        both = int(np.sum((one > 0) & (other > 0)))
        # Without one of the runs at a time.
        ones, others = one.sum() - one, other.sum() - other
        if others.min() == 0 or ones.min() == 0:
            found += [float("nan"), float("nan"), both]
            continue
        without = ones / others
        error = np.sqrt((len(without) - 1) * np.var(without))
        found += [float(one.sum() / other.sum()), float(error), both]
    return found
