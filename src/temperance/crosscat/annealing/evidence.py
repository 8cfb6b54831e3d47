"""The evidence of a table, and weighted states, by subsample annealing.

Run any schedule and carry

    log w += log p(x_a | pi')   when row a enters,
    log w -= log p(x_r | pi')   when row r leaves,

with p(x | pi') the predictive given the partition without the row. Then E[w 1(pi)] = p(pi, X): the
mean weight is the evidence p(X), and weighted states are draws from the posterior, for every
schedule. These are the increments of annealed importance sampling: the step that lets a row in is
undone by one that drops its seat, and their probabilities cancel to the predictive. Whatever leaves
p(pi, X_S) invariant, as draws of hyperparameters and moves of columns do, has no weight.

Many states run side by side. When the effective number of states, (sum w)^2 / sum w^2, falls below
half, states are drawn again with probability proportional to w (systematic resampling), and the
weights become their mean: a sequential Monte Carlo sampler.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from temperance.crosscat.annealing.fitting import FittedState, settings_of
from temperance.crosscat.annealing.run import Annealing, Settings
from temperance.crosscat.encoding.table import Table, make_table
from temperance.crosscat.views.hyperparameters import Prior, prior_of
from temperance.crosscat.views.view import Ground
from temperance.errors import ArgumentError


class WeightedStates(NamedTuple):
    """States with log weights that estimate the evidence.

    `log_evidence` is of the whole table, hyperparameters and partitions summed over; `error` is the
    standard error of its estimate as far as one run can tell. `num_effective` is of the last
    weights.
    """

    states: list[FittedState]
    log_weights: np.ndarray
    log_evidence: float
    error: float
    num_effective: float


def weighted_states(
    frame: Any,
    settings: Mapping[str, Any] | None = None,
    num_states: int = 64,
    *,
    schema: Any = None,
    random_state: int = 0,
    resample: bool = True,
) -> WeightedStates:
    """Weighted states and the evidence of a frame."""
    if num_states < 2:
        raise ArgumentError(f"num_states: wanted at least 2 to weigh, got {num_states}")
    *seeds, dither, draws = np.random.SeedSequence(random_state).spawn(num_states + 2)
    table = make_table(frame, schema, np.random.default_rng(dither))
    chosen = settings_of(settings or {})
    if chosen.schedule.strategy == "prior" or chosen.schedule.churn not in ("window", "random"):
        raise ArgumentError(
            "settings: weights are of rows that enter one by one: wanted strategy 'anneal' or "
            f"'sequential' with churn 'window' or 'random', got {chosen.schedule}"
        )
    rng = np.random.default_rng(draws)
    return weigh_states(table, prior_of(table, chosen.model), chosen, seeds, rng, resample)


def weigh_states(
    table: Table,
    prior: Prior,
    settings: Settings,
    seeds: Sequence[np.random.SeedSequence],
    rng: np.random.Generator,
    resample: bool = True,
) -> WeightedStates:
    """One weighted state for each seed."""
    ground = Ground.of(table)
    runs = [Annealing.start(ground, prior, settings, seed, weighed=True) for seed in seeds]
    num = len(runs)
    logs, log_evidence, variance = np.zeros(num), 0.0, 0.0
    while not all(run.finished for run in runs):
        # All come to their turnovers and to their end together.
        logs += [run.advance(weighed=True)[1] for run in runs]
        if resample and not all(run.finished for run in runs) and num_effective(logs) < 0.5 * num:
            log_evidence += log_mean(logs)
            variance += relative_variance(logs)
            runs = _resampled(runs, logs, rng)
            logs = np.zeros(num)
    return WeightedStates(
        [FittedState(run) for run in runs],
        logs,
        log_evidence + log_mean(logs),
        float(np.sqrt(variance + relative_variance(logs))),
        num_effective(logs),
    )


def _resampled(
    runs: list[Annealing], logs: np.ndarray, rng: np.random.Generator
) -> list[Annealing]:
    """Runs drawn in proportion to their weights, copies with random numbers of their own."""
    shares = np.exp(logs - logs.max())
    ends = np.cumsum(shares / shares.sum())
    points = (rng.random() + np.arange(len(runs))) / len(runs)
    chosen = np.minimum(np.searchsorted(ends, points), len(runs) - 1)
    fresh = []
    for number, i in enumerate(chosen):
        run = runs[i]
        if number == 0 or chosen[number - 1] != i:
            fresh.append(run)
            continue
        copy = Annealing.from_arrays(
            run.state.ground, run.state.prior, run.settings, _copied(run.arrays())
        )
        copy.state.rng = run.state.rng.spawn(1)[0]
        fresh.append(copy)
    return fresh


def _copied(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name: x.copy() for name, x in arrays.items()}


def log_mean(logs: np.ndarray) -> float:
    """Log of the mean weight."""
    return float(np.logaddexp.reduce(logs) - np.log(len(logs)))


def relative_variance(logs: np.ndarray) -> float:
    """The variance of the mean weight, over its square."""
    weights = np.exp(logs - logs.max())
    return float(weights.var(ddof=1) / len(weights) / weights.mean() ** 2)


def num_effective(logs: np.ndarray) -> float:
    """(sum w)^2 / sum w^2."""
    weights = np.exp(logs - logs.max())
    return float(weights.sum() ** 2 / (weights**2).sum())
