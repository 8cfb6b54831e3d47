"""Tables of the demonstration: means over seeds, with standard errors of these means."""

from pathlib import Path
from typing import Any

import numpy as np
from experiment import write_csv
from neal_samplers import names
from sections import table

Rows = list[dict[str, Any]]
# What an effective size and a number of switches are counted by.
SLOW = 1e5
BEST_OF = ("metropolis", "one", "extra")


def write(rows: Rows, folder: Path) -> list[str]:
    """The CSV of all chains, and the page's sections."""
    left_out = ("points", "machine")
    write_csv(
        folder / "demonstration.csv",
        [{k: v for k, v in r.items() if k not in left_out} for r in rows],
    )
    by_name = {name: [r for r in rows if r["sampler"] == name] for name in names()}
    by_name = {name: found for name, found in by_name.items() if found}
    best = {what: _best(by_name, what) for what in ("ess", "switches")}
    lines = []
    for name, found in by_name.items():
        ess, switches = (rates(found, what) for what in ("ess", "switches"))
        lines.append(
            [
                name, len(found), _told(ess), _told(switches), _gain(ess, best["ess"]),
                _gain(switches, best["switches"]), _told(per_second(found)),
                _told([1e6 * r["seconds"] / r["num_slow"] for r in found]),
                _told([r["noisy"] for r in found]), f"{np.mean([r['acceptance'] for r in found]):.2f}",
            ]
        )  # fmt: skip
    head = [
        "sampler", "chains", "ESS of log sigma per 100,000 slow evaluations", "switches of mode per 100,000",
        "ESS, over the best without ensembles", "switches, over the best without", "ESS per CPU second",
        "microseconds per slow evaluation", "share of the noisy mode", "acceptance",
    ]  # fmt: skip
    text = "Means over chains of different seeds, +- one standard error of the mean."
    return table("The paper's demonstration", text, head, lines)


def rates(found: Rows, what: str) -> list[float]:
    """Of each chain, effective draws of log sigma or switches of mode, for so many slow evaluations."""
    name = {"ess": "ess_log_sigma", "switches": "switches"}[what]
    values = [r[name] for r in found]
    return [
        SLOW * (0.0 if np.isnan(v) else v) / r["num_slow"]
        for v, r in zip(values, found, strict=True)
    ]


def per_second(found: Rows) -> list[float]:
    return [np.nan_to_num(r["ess_log_sigma"]) / r["seconds"] for r in found]


def _best(by_name: dict[str, Rows], what: str) -> list[float]:
    """The rates of the best sampler that has no ensemble."""
    plain = [rates(found, what) for name, found in by_name.items() if name.split()[0] in BEST_OF]
    return max(plain, key=np.mean, default=[np.nan])


def _told(values: list[float]) -> str:
    if len(values) < 2:
        return f"{np.mean(values):.3g}"
    return f"{np.mean(values):.3g} +- {np.std(values, ddof=1) / len(values) ** 0.5:.2g}"


def _gain(values: list[float], best: list[float]) -> str:
    """A ratio of means, with a 95 % interval by resampling chains."""
    if min(len(values), len(best)) < 2 or not np.mean(best) > 0:
        return ""
    rng = np.random.default_rng(0)

    def means(of: list[float]) -> np.ndarray:
        return rng.choice(of, (2000, len(of))).mean(axis=1)

    ratios = means(values) / np.maximum(means(best), 1e-12)
    low, high = np.quantile(ratios, [0.025, 0.975])
    return f"{np.mean(values) / np.mean(best):.2f} ({low:.2f} to {high:.2f})"
