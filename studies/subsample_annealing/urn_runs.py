"""Runs of the two-urn strategies for some seconds of CPU time, kept as counts in bins."""

import time
from typing import Any

import numpy as np
from experiment import Experiment, Result

from temperance.testing.urns.model import STRATEGIES, TwoUrns, distance, floor

PASSES, NUM_BINS, FINE_BINS = 10, 20, 40
CHURNS = {
    "anneal-weighted": "uniform",
    "anneal-metropolis": "metropolis",
    "anneal-picked": "weighted",
}
Rows = list[dict[str, Any]]


def urns_of(num_balls: int) -> TwoUrns:
    """The paper's: two reds to three blues, p = 0.45, Jeffreys' prior."""
    return TwoUrns(2 * num_balls // 5, num_balls - 2 * num_balls // 5, p=0.45, alpha=0.5)


def run_urns(row: Experiment, num_bins: int, most: int) -> Result:
    """As many runs of `row.sampler` as there is time for, in bins of x and y."""
    urns, rng = urns_of(row.num_rows), np.random.default_rng(row.seed)
    few(urns, row.sampler, rng, 1)
    began = time.process_time()
    counts, log_weights = [], []
    # Exact draws share the sums over all states.
    num, size = 0, 10_000 if row.sampler == "posterior" else max(1, 20_000 // row.num_rows)
    while num == 0 or (time.process_time() - began < row.seconds and num < most):
        found = few(urns, row.sampler, rng, size)
        counts.append(found[0])
        log_weights.append(found[1])
        num += size
    cpu = time.process_time() - began
    all_counts, logs = np.concatenate(counts), np.concatenate(log_weights)
    result: Result = {
        "num_runs": num, "cpu": cpu, "bins": urns.binned(all_counts, num_bins).tolist(),
        "red_left": float(all_counts[:, 0].mean() / urns.num_red),
    }  # fmt: skip
    if row.sampler in CHURNS:
        result |= weighed(urns, all_counts, logs, num_bins)
    return result


def few(
    urns: TwoUrns, name: str, rng: np.random.Generator, num: int
) -> tuple[np.ndarray, np.ndarray]:
    if name == "posterior":
        return urns.draw(rng, num), np.zeros(num)
    if name in STRATEGIES:
        return urns.run(name, rng, PASSES, num), np.zeros(num)
    return urns.anneal(rng, PASSES, num, CHURNS[name])


def weighed(urns: TwoUrns, counts: np.ndarray, logs: np.ndarray, num_bins: int) -> Result:
    """Log evidence and its error, the effective share of runs, and the weighted shares of bins."""
    weights = np.exp(logs - logs.max())
    shares = np.zeros((num_bins, num_bins))
    for bins, weight in zip(
        counts * num_bins // [urns.num_red + 1, urns.num_blue + 1], weights, strict=True
    ):
        shares[*bins] += weight
    return {
        "log_evidence": float(logs.max() + np.log(weights.mean())),
        "log_evidence_error": float(weights.std() / weights.mean() / np.sqrt(weights.size)),
        "true_log_evidence": urns.log_evidence,
        "effective_share": float(weights.mean() ** 2 / (weights**2).mean()),
        "weighted_bins": (shares / shares.sum()).tolist(),
    }


def coarse(bins: Any, num_bins: int) -> np.ndarray:
    """Shares in fewer bins."""
    fine = np.asarray(bins)
    every = fine.shape[0] // num_bins
    return fine.reshape(num_bins, every, num_bins, every).sum(axis=(1, 3))


def distances(shares: np.ndarray, truth: np.ndarray, num_runs: int) -> dict[str, tuple[float, ...]]:
    """The distance of binned x and of binned (x, y), each with its error and the floor of as many exact draws."""
    rng = np.random.default_rng(0)
    both = {"x": (shares.sum(1), truth.sum(1)), "x, y": (shares, truth)}
    return {
        name: (*distance(one, two, num_runs), *floor(two, num_runs, rng))
        for name, (one, two) in both.items()
    }
