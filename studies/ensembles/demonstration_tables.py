"""Tables of the demonstration: what all chains of a sampler say together, with intervals over chains."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from modes import DISCARD
from neal_samplers import names
from sections import table

from temperance.estimates.diagnostics import effective_size

Rows = list[dict[str, Any]]
# What an effective size and a number of switches are counted by.
SLOW = 1e5
BEST_OF = ("metropolis", "one", "extra")


def write(rows: Rows, folder: Path) -> list[str]:  # noqa: ARG001
    """The page's sections."""
    by_name = {name: [r for r in rows if r["sampler"] == name] for name in names()}
    by_name = {name: found for name, found in by_name.items() if found}
    best = {what: _best(by_name, what) for what in RATES}
    lines = []
    for name, found in by_name.items():
        told = {what: rate(found, what) for what in RATES}
        seconds = sum(r["seconds"] for r in found)
        lines.append(
            [
                name, len(found), *(_told(told[what]) for what in RATES),
                *(_gain(told[what], best[what]) for what in RATES),
                f"{1e6 * seconds / sum(r['num_slow'] for r in found):.0f}",
                _mean([r["noisy"] for r in found]), f"{np.mean([r['acceptance'] for r in found]):.2f}",
            ]
        )  # fmt: skip
    head = [
        "sampler", "chains", "ESS of log sigma per 100,000 slow evaluations", "switches of mode per 100,000",
        "ESS per CPU second", "ESS, over the best without ensembles", "switches, over the best without",
        "ESS per CPU second, over the best without", "microseconds per slow evaluation",
        "share of the noisy mode", "acceptance",
    ]  # fmt: skip
    text = (
        "Over all chains of a sampler together, so that chains that disagree count for little; in brackets 95 % "
        "intervals, by leaving out one chain at a time. The share is a mean over chains, +- its standard error."
    )
    return table("The paper's demonstration", text, head, lines)


class Rate(NamedTuple):
    """Something for so many slow evaluations or seconds, and the standard error of its logarithm."""

    value: float
    log_error: float


def rate(found: Rows, what: str) -> Rate:
    """One of `RATES`, with what leaving out each chain makes of it."""
    value = RATES[what](found)
    if len(found) < 3 or not value > 0:
        return Rate(value, float("nan"))
    without = np.array([RATES[what](found[:i] + found[i + 1 :]) for i in range(len(found))])
    logs = np.log(np.maximum(without, 1e-9))
    return Rate(value, float(np.sqrt((len(found) - 1) * np.var(logs))))


def effective_draws(found: Rows) -> float:
    return SLOW * _effective(found) / sum(r["num_slow"] for r in found)


def switches(found: Rows) -> float:
    return SLOW * sum(r["switches"] for r in found) / sum(r["num_slow"] for r in found)


def effective_each_second(found: Rows) -> float:
    return _effective(found) / sum(r["seconds"] for r in found)


RATES = {"ess": effective_draws, "switches": switches, "seconds": effective_each_second}


def _effective(found: Rows) -> float:
    """Of all chains together: between chains that disagree the size is small, however smooth each of them is."""
    series = np.stack([np.asarray(r["points"])[:, 2] for r in found])
    return float(effective_size(series[:, int(DISCARD * series.shape[1]) :]))


def _best(by_name: dict[str, Rows], what: str) -> Rate:
    """The rate of the best sampler that has no ensemble."""
    plain = [rate(found, what) for name, found in by_name.items() if name.split()[0] in BEST_OF]
    return max(plain, key=lambda one: one.value, default=Rate(float("nan"), float("nan")))


def _told(one: Rate) -> str:
    if not np.isfinite(one.log_error):
        return f"{one.value:.3g}"
    return f"{one.value:.3g} ({_interval(one.value, one.log_error)})"


def _gain(one: Rate, best: Rate) -> str:
    """A ratio with its interval, as if the two samplers' chains had nothing to do with each other: nor have they."""
    error = float(np.hypot(one.log_error, best.log_error))
    if not (best.value > 0 and np.isfinite(error)):
        return ""
    return f"{one.value / best.value:.2f} ({_interval(one.value / best.value, error)})"


def _interval(value: float, log_error: float) -> str:
    return f"{value * np.exp(-1.96 * log_error):.3g} to {value * np.exp(1.96 * log_error):.3g}"


def _mean(values: list[float]) -> str:
    if len(values) < 2:
        return f"{np.mean(values):.3f}"
    return f"{np.mean(values):.3f} +- {np.std(values, ddof=1) / len(values) ** 0.5:.3f}"
