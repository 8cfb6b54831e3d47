"""What a run evaluated, counted in rows and in cubes.

A density of n rows costs n row evaluations, with or without its gradient. Terms that look back
(a Gaussian process) cost by the cube of the prefix: one *cube* is a value with its gradient on all
N rows, a value alone is a third of that (a factorisation is n^3 / 3 operations, the inverse that
the gradient needs 2 n^3 / 3 more). On nested subsamples

    moves         their evaluations at rung k, each on n_k rows
    swaps         the rows between the two rungs, for each pair that is compared
    transitions   the rows that each step down adds, and one value at the first hot rung where the
                  target's move was refused: the subsamples are new, and nobody knows them there
    evidence      every replica on all rows, once a draw
    mini-batches  every term that a step evaluates, at either end; delayed acceptance has all rows
                  besides, where the first stage moved
    refresh       two rows for each pair at each rung, or all rungs again if terms look back
"""

from typing import Any

import numpy as np

from temperance.ladders.prefix import PrefixLadder
from temperance.samplers.transitions import TemperedTransitions

VALUE = 1 / 3


def work(draws: dict[str, np.ndarray], finished: Any, num_rows: int) -> dict[str, float]:
    """Row evaluations of the draws, and cubes where terms look back."""
    sampler, thin = finished.sampler, finished.sweeps_per_draw
    evaluations = draws["num_evaluations"].sum(axis=(0, 1)) * thin
    ladder = sampler.ladder
    if isinstance(ladder, PrefixLadder) and "num_rows" in draws:
        return {"num_row_evaluations": float(draws["num_rows"].sum()) * thin}
    if not isinstance(ladder, PrefixLadder):
        batches = float(draws["batch_rows"].sum()) * thin if "batch_rows" in draws else 0.0
        # A move that reads a few rows evaluates the log prior, which has none.
        whole = 0.0 if sampler.move.reads_rows else float(evaluations.sum()) * num_rows
        return {"num_row_evaluations": batches + whole}
    values = draws["num_values"].sum(axis=(0, 1)) * thin
    num_draws = draws["num_evaluations"].shape[0] * draws["num_evaluations"].shape[1]
    sizes = np.asarray(ladder.sizes, float)
    lengths = sizes[1:] - sizes[:-1] if ladder.independent else sizes[1:]
    if isinstance(sampler, TemperedTransitions):
        lifts = np.full(len(lengths), num_draws * thin, float)
        others = [(sizes[-2], draws["first_look"].sum() * thin)]
    else:
        lifts = draws["swap_tried"].sum(axis=(0, 1)) * thin
        others = [(sizes[-1], len(sizes) * num_draws * sampler.complete)]
        if sampler.refresh and ladder.independent:
            others.append((2.0 * sampler.refresh, len(sizes) * num_draws * thin))
        elif sampler.refresh:
            others += [(size, num_draws * thin) for size in sizes]
    alone = [*zip(lengths, lifts, strict=True), *others]
    rows = float(evaluations @ sizes + sum(size * count for size, count in alone))
    if ladder.independent:
        return {"num_row_evaluations": rows}
    cubes = (evaluations - (1 - VALUE) * values) @ (sizes / num_rows) ** 3
    cubes += VALUE * sum((size / num_rows) ** 3 * count for size, count in alone)
    return {"num_row_evaluations": rows, "num_cubes": float(cubes)}
