"""Log evidence from parallel tempering, from weights, and from anneals.

It is counted from the hottest rung, so it exists where that rung is a normalised density: beta = 0,
the prior or the base.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from temperance.estimates.evidence import bridges, mbar, stepping_stones
from temperance.methods.report.piece import Arrays, Piece

# Numbers that the evidence estimators hold at once; more draws than this are thinned for them.
MOST_NUMBERS = 3e7
# Beyond this the log of a mean is no longer near its expansion.
LARGE_ERROR = 0.5
# Estimates that differ by less than that, in errors or by itself, agree well enough.
FAR, MATERIAL = 4.0, 0.05
ESTIMATORS = {"mbar": mbar, "stepping_stones": stepping_stones, "bridges": bridges}


class LogEvidence(Piece):
    """The estimates in words; pieces for one kind of run say how they are made."""

    gives_evidence = True

    def facts(self, tree: Any) -> dict[str, Any]:
        if "evidence" not in tree.children:
            return {}
        found = tree["evidence"].dataset
        rows = zip(
            found["estimator"].values, found["log_evidence"].values, found["error"].values,
            strict=True,
        )  # fmt: skip
        return {f"log evidence ({name})": f"{value:.4f} +- {error:.4f}"
                for name, value, error in rows}  # fmt: skip


@dataclass(frozen=True)
class RungEvidence(LogEvidence):
    """From every rung's draws, by several estimators that have to agree."""

    estimators: tuple[str, ...] = ("mbar", "stepping_stones")

    def evidence(self, run: Any) -> Arrays:
        draws, ladder = run.draws, run.sampler.ladder
        if "components" not in draws or getattr(ladder, "betas", np.ones(1))[0] != 0:
            return {}
        weights = np.asarray(ladder.weight_table(), float)
        # Several sweeps of each draw count, and not only those whose position is kept.
        components = np.asarray(draws["components"], float)
        chains, rungs = components.shape[0], components.shape[3]
        components = components.reshape(chains, -1, *components.shape[3:])
        stride = int(np.ceil(components.shape[1] * chains * rungs**2 / MOST_NUMBERS))
        record = log_densities(components[:, ::stride], weights)
        estimates = [ESTIMATORS[name](record) for name in self.estimators]
        return {
            "estimator": (("estimator",), list(self.estimators)),
            "log_evidence": (("estimator",), [e.value for e in estimates]),
            "error": (("estimator",), [e.error for e in estimates]),
            "log_ratio": (("estimator", "pair"), [e.per_step for e in estimates]),
        }

    def warnings(self, tree: Any) -> list[str]:
        if "evidence" not in tree.children:
            return []
        found = tree["evidence"].dataset
        values, errors = found["log_evidence"].values, found["error"].values
        if not np.isfinite(errors).all():
            return [
                "log evidence has no error bar: some neighbouring rungs share no draws; add rungs"
            ]
        worst, (gap, error) = float(errors.max()), _gap(values, errors)
        if gap > max(FAR * error, MATERIAL):
            words = (
                f"the two estimates of log evidence differ by {gap:.2f}, {gap / error:.0f} of "
                "their errors: a rung has not seen what the next one likes; draw more, or give "
                "more rungs"
            )
            return [words]
        if worst > LARGE_ERROR:
            words = (
                f"log evidence has a standard error of {worst:.2g}: neighbouring rungs share few "
                "independent draws; draw more, or give more rungs"
            )
            return [words]
        return []

    def notes(self, tree: Any) -> list[str]:
        if "evidence" not in tree.children:
            return []
        found = tree["evidence"].dataset
        gap, error = _gap(found["log_evidence"].values, found["error"].values)
        if not FAR * error < gap <= MATERIAL:
            return []
        words = f"the two estimates of log evidence differ by {gap:.3f}, more than their errors say"
        return [f"{words}: take that for the error"]


def _gap(values: np.ndarray, errors: np.ndarray) -> tuple[float, float]:
    """How far the first two estimates are apart, and the error of that; 0 if there is one."""
    if len(values) < 2 or not np.isfinite(errors).all():
        return 0.0, 0.0
    return abs(values[0] - values[1]), float(np.hypot(errors[0], errors[1]))


def log_densities(components: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The log density of every sample (chain, draw, rung) at every rung, the last axis."""
    samples = components.reshape(-1, components.shape[-1])
    if np.isfinite(samples.sum()):
        by_rung = weights @ samples.T
    else:
        # A component of weight zero contributes zero, whatever its value.
        shares = np.zeros((len(weights), *samples.shape))
        counts = weights[:, None] != 0
        by_rung = np.multiply(weights[:, None], samples, out=shares, where=counts).sum(axis=-1)
    return np.moveaxis(by_rung.reshape(-1, *components.shape[:-1]), 0, -1)


class WeightedEvidence(LogEvidence):
    """Estimates from weights, each with an error that the largest of them may spoil."""

    def warnings(self, tree: Any) -> list[str]:
        found = tree["evidence"].dataset
        values, errors = found["log_evidence"].values, found["error"].values
        if not np.isfinite(values).all() or not np.isfinite(errors).all():
            return ["log evidence has no error bar: the weights of nearly all draws are zero"]
        worst = float(errors.max())
        if worst > LARGE_ERROR:
            words = (
                f"log evidence has a standard error of {worst:.2g}, too large for it to be one: a "
                "few draws have nearly all of the weight; give more rungs, or a base nearer to the "
                "target"
            )
            return [words]
        return []


def estimates(found: dict[str, Any]) -> Arrays:
    """The evidence group, from estimates by name."""
    return {
        "estimator": (("estimator",), list(found)),
        "log_evidence": (("estimator",), [one.value for one in found.values()]),
        "error": (("estimator",), [one.error for one in found.values()]),
    }
