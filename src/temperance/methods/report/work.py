"""What a run evaluated, counted in rows and in cubes.

A density of n rows costs n row evaluations, with or without its gradient. Terms that look back
(a Gaussian process) cost by the cube of the prefix: one *cube* is a value with its gradient on all
N rows, a value alone is a third of that (a factorisation is n^3 / 3 operations, the inverse that
the gradient needs 2 n^3 / 3 more). On nested subsamples

    moves         their evaluations at rung k, each on n_k rows
    swaps         the rows between the two rungs, for each pair that is compared
    transitions   the rows that each step down adds, and one value at the first hot rung where the
                  target's move was refused: the subsamples are new, and no value is kept of them
    evidence      every replica on all rows, once a draw
    mini-batches  every term that a step evaluates, at either end; delayed acceptance has all rows
                  besides, where the first stage moved
    refresh       two rows for each pair at each rung, or all rungs again if terms look back
"""

from typing import Any

import numpy as np

VALUE = 1 / 3


def all_rows(run: Any) -> dict[str, float]:
    """Every evaluation looks at all rows, or at those that the move says."""
    batches = 0.0
    if "batch_rows" in run.draws:
        batches = float(run.draws["batch_rows"].sum()) * run.sweeps_per_draw
    # A move that reads a few rows evaluates the log prior, which has none.
    evaluations = float(_sums(run, "num_evaluations").sum())
    whole = 0.0 if run.sampler.move.reads_rows else evaluations * run.num_rows
    return {"num_row_evaluations": batches + whole}


def counted_rows(run: Any) -> dict[str, float]:
    """The sampler has counted the rows that it looked at."""
    return {"num_row_evaluations": float(run.draws["num_rows"].sum()) * run.sweeps_per_draw}


def anneals(run: Any) -> dict[str, float]:
    """Anneals through powers, or through subsamples that they count themselves."""
    return counted_rows(run) if hasattr(run.sampler.ladder, "sizes") else all_rows(run)


def parallel_prefixes(run: Any) -> dict[str, float]:
    """Parallel tempering on nested subsamples."""
    sampler, thin = run.sampler, run.sweeps_per_draw
    ladder, steps = sampler.ladder, _num_draws(run)
    sizes = np.asarray(ladder.sizes, float)
    others = [(sizes[-1], len(sizes) * steps * sampler.complete)]
    if sampler.refresh and ladder.independent:
        others.append((2.0 * sampler.refresh, len(sizes) * steps * thin))
    elif sampler.refresh:
        others += [(size, steps * thin) for size in sizes]
    return _on_prefixes(run, _sums(run, "swap_tried"), others)


def transitions_on_prefixes(run: Any) -> dict[str, float]:
    """Tempered transitions on nested subsamples."""
    sizes = np.asarray(run.sampler.ladder.sizes, float)
    lifts = np.full(len(sizes) - 1, _num_draws(run) * run.sweeps_per_draw, float)
    first = run.draws["first_look"].sum() * run.sweeps_per_draw
    return _on_prefixes(run, lifts, [(sizes[-2], first)])


def _on_prefixes(run: Any, lifts: np.ndarray, others: list[tuple[Any, Any]]) -> dict[str, float]:
    """Moves at every rung, `lifts` of each pair, and other sizes that were evaluated so often."""
    ladder = run.sampler.ladder
    evaluations, values = _sums(run, "num_evaluations"), _sums(run, "num_values")
    sizes = np.asarray(ladder.sizes, float)
    lengths = sizes[1:] - sizes[:-1] if ladder.independent else sizes[1:]
    alone = [*zip(lengths, lifts, strict=True), *others]
    rows = float(evaluations @ sizes + sum(size * count for size, count in alone))
    if ladder.independent:
        return {"num_row_evaluations": rows}
    cubes = (evaluations - (1 - VALUE) * values) @ (sizes / run.num_rows) ** 3
    cubes += VALUE * sum((size / run.num_rows) ** 3 * count for size, count in alone)
    return {"num_row_evaluations": rows, "num_cubes": float(cubes)}


def _sums(run: Any, name: str) -> np.ndarray:
    return run.draws[name].sum(axis=(0, 1)) * run.sweeps_per_draw


def _num_draws(run: Any) -> int:
    return run.draws["num_evaluations"].shape[0] * run.draws["num_evaluations"].shape[1]
