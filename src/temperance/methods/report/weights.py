"""What runs with weighted draws tell: chains that travel the temperatures, and anneals.

Chains that travel the temperatures (ST, both CTs) weigh their draws for the target and for the
base. The base's own moments are known, and comparing them with what the base weights give is a
check of the run. It is necessary and not sufficient: if the base covers one mode only, a chain that
stayed in that mode passes as well (paper 4, equation 22; a base on one of two modes passes with
log Z off by 0.31 in a worked example).
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import ndtr

from temperance.estimates.tails import tail_shape
from temperance.estimates.weighted import kish, log_mean_weight, log_ratio, weighted_mean
from temperance.ladders.spacing import anneal_variance
from temperance.methods.report.evidence import WeightedEvidence, estimates
from temperance.methods.report.piece import Arrays, Piece, tempering
from temperance.methods.report.rungs import few_trips
from temperance.problems.gaussian import Gaussian
from temperance.programs.random_streams import probe_key
from temperance.samplers.round_trips import COLD, HOT

NUM_BINS = 10
# Draws of a base whose moments nobody knows; how unlikely a disagreement has to be.
MANY, UNLIKELY = 4096, 1e-3
# Tails of this shape have no variance, and squares of those with half of it have none.
NO_VARIANCE = 0.5
# Draws by weight alone that are few.
FEW_BY_WEIGHT = 50
# How many of their errors log Z of one chain may be from that of most.
APART = 4.5
# Of log weights of anneals: beyond it fewer and longer anneals are better.
MOST_VARIANCE = 1.0
WEIGHTS = ("log_weight", "log_weight_base", "log_weight_reverse")


class Weights(Piece):
    """The weights of the draws, and what moves did at all temperatures together."""

    def stats(self, run: Any) -> dict[str, np.ndarray]:
        return {name: run.draws[name][:, :, -1] for name in WEIGHTS if name in run.draws}

    def arrays(self, run: Any) -> Arrays:
        draws = run.draws
        return {
            "step_size": (("rung", "part"), np.asarray(run.sampler.params.step_size)),
            "move_acceptance": (("part",), draws["acceptance"].mean(axis=(0, 1, 2))),
            "diverging_rate": ((), draws["diverging"].mean()),
            "num_evaluations": ((), draws["num_evaluations"].sum() * run.sweeps_per_draw),
            "kish": ((), kish(draws["log_weight"][:, :, -1])),
        }

    def facts(self, tree: Any) -> dict[str, Any]:
        return {"draws by weight alone (Kish)": float(tempering(tree)["kish"])}

    def warnings(self, tree: Any) -> list[str]:
        size, sizes = float(tempering(tree)["kish"]), tree["posterior"].sizes
        # NaN where all weights are zero.
        if size >= FEW_BY_WEIGHT:
            return []
        words = (
            f"the weights are concentrated: {sizes['chain'] * sizes['draw']} draws weigh as much "
            f"as {size:.0f} equal ones (want {FEW_BY_WEIGHT}); draw more, give more rungs, or a "
            "base nearer to the target (base=)"
        )
        return [words]


class Anneals(Piece):
    """The betas at which anneals stop, and how many there should have been if they are fewer."""

    def arrays(self, run: Any) -> Arrays:
        betas = getattr(run.sampler.ladder, "betas", None)
        if betas is None:
            return {}
        wanted = int(getattr(run.learnt, "wanted", 0))
        group: Arrays = {"anneal_beta": (("stop",), np.asarray(betas))}
        return group | ({"wanted_stops": ((), wanted)} if wanted else {})

    def facts(self, tree: Any) -> dict[str, Any]:
        betas = tempering(tree).get("anneal_beta")
        if betas is None:
            return {}
        steps, wanted = betas.size - 1, tempering(tree).get("wanted_stops")
        if wanted is None:
            return {"steps of an anneal": steps}
        return {
            "steps of an anneal": f"{steps}, of {int(wanted) - 1} that were wanted: "
            "max_evaluations allows no more"
        }

    def warnings(self, tree: Any) -> list[str]:
        group = tempering(tree)
        if "wanted_stops" not in group:
            return []
        steps, wanted = group.sizes["stop"] - 1, int(group["wanted_stops"]) - 1
        variance = anneal_variance(steps + 1, wanted + 1)
        if variance <= MOST_VARIANCE:
            return []
        words = (
            f"an anneal has {steps} steps, and {wanted} were wanted: so few leave log weights a "
            f"variance of {variance:.2g} at least, and a few draws have nearly all of the weight. "
            "Give fewer num_draws, each of which is then a longer anneal, a larger "
            "max_evaluations, or a base that is nearer to the target (base=)"
        )
        return [words]


@dataclass(frozen=True)
class Travels(Piece):
    """How a chain went to and fro between base and target.

    `log_zeta` is where a sampler keeps it. With `by_rung` the chain walks rungs, and otherwise any
    inverse temperature between 0 and 1.
    """

    log_zeta: Any
    by_rung: bool = False
    has_rungs: bool = True
    pictures = ("temperatures",)

    def arrays(self, run: Any) -> Arrays:
        draws, ladder = run.draws, run.sampler.ladder
        trips = draws["round_trips"][:, -1] - draws["round_trips"][:, 0]
        group: Arrays = {
            "round_trips": (("chain",), trips),
            "log_zeta": ((), self.log_zeta(run.sampler)),
        }
        if self.by_rung:
            visits = [(draws["rung"] == k).mean() for k in range(ladder.num_rungs)]
            group["visits"] = (("rung",), np.array(visits))
        else:
            counts, _ = np.histogram(draws["beta"], bins=NUM_BINS, range=(0.0, 1.0))
            group["visits"] = (("bin",), counts / counts.sum())
        if self.has_rungs:
            group["beta"] = (("rung",), np.asarray(ladder.betas))
        return group | self._by_chain(run) | _base_check(draws, ladder)

    def _by_chain(self, run: Any) -> Arrays:
        """Each chain's time at both ends, and its own log Z."""
        draws, ladder, zeta = run.draws, run.sampler.ladder, self.log_zeta(run.sampler)
        if self.by_rung:
            base, target = draws["rung"] == 0, draws["rung"] == ladder.num_rungs - 1
        else:
            place = draws["beta"]
            if "control" in draws:
                of_each = jax.vmap(jax.vmap(ladder.control.beta))
                place = np.asarray(of_each(jnp.asarray(draws["control"])))
            base, target = place <= HOT, place >= COLD
        one, zero = (_all_steps(run, name) for name in ("log_weight", "log_weight_base"))
        chains = range(one.shape[0])
        own = [log_ratio(one[[c]], zero[[c]], zeta) for c in chains]
        return {
            "share_at_base": (("chain",), base.mean(axis=1)),
            "share_at_target": (("chain",), target.mean(axis=1)),
            "chain_log_evidence": (("chain",), [found.value for found in own]),
            "chain_evidence_error": (("chain",), [found.error for found in own]),
        }

    def facts(self, tree: Any) -> dict[str, Any]:
        ladder = tempering(tree)
        facts: dict[str, Any] = {"rungs": ladder.sizes["rung"]} if self.has_rungs else {}
        checks = int(ladder["base_checks"])
        moments = (
            f"off by {float(ladder['base_error']):.2g} standard deviations at most, "
            f"{float(ladder['base_z']):.1f} of their errors (agreement is necessary, and not "
            "sufficient)"
        )
        if "chain_log_evidence" in ladder:
            facts |= {
                "log evidence by chain": ladder["chain_log_evidence"].values,
                "share of draws at the base by chain": ladder["share_at_base"].values,
                "share of draws at the target by chain": ladder["share_at_target"].values,
            }
        return facts | {
            "round trips by chain": ladder["round_trips"].values,
            "log zeta": float(ladder["log_zeta"]),
            "share of draws by rung" if self.by_rung else "by tenths of beta": (
                ladder["visits"].values
            ),
            "base moments": moments if checks else "there are none to check",
        }

    def warnings(self, tree: Any) -> list[str]:
        ladder = tempering(tree)
        found = few_trips(tree, "draw more, or give a base that is nearer to the target (base=)")
        found += _apart(ladder)
        z, checks = float(ladder["base_z"]), int(ladder["base_checks"])
        if 2 * ndtr(-z) * checks < UNLIKELY:
            found.append(
                f"the base's own moments come out wrong, by {float(ladder['base_error']):.2g} "
                f"standard deviations or {z:.1f} of their errors: the chains have not seen all "
                "of it; draw more, or warm up longer"
            )
        return found

    def notes(self, tree: Any) -> list[str]:
        heavy = int(tempering(tree).get("base_heavy", 0))
        if not heavy:
            return []
        words = (
            f"{heavy} variables have such heavy tails under the base that their variance there, "
            "or its error, does not exist: the check of the base's own moments leaves them out"
        )
        return [words]


def _apart(ladder: Any) -> list[str]:
    """What there is to say of the chain whose log Z is farthest from that of most."""
    if "chain_log_evidence" not in ladder or ladder.sizes["chain"] == 1:
        return []
    own, errors = (ladder[f"chain_{name}"].values for name in ("log_evidence", "evidence_error"))
    middle = float(np.median(own))
    gap = np.abs(own - middle)
    # A chain without any weight is not near.
    far = ~(gap <= APART * np.hypot(errors, np.median(errors)))
    if not far.any():
        return []
    chain = int(np.argmax(np.where(far, np.nan_to_num(gap, nan=np.inf), -1.0)))
    base, target = (100 * float(ladder[f"share_at_{end}"][chain]) for end in ("base", "target"))
    words = (
        f"chains disagree about log evidence: chain {chain} alone says {own[chain]:.2f}, and the "
        f"median of the chains is {middle:.2f}; {base:.0f} % of its draws were at the base and "
        f"{target:.0f} % at the target. A chain does not travel, so that neither log evidence nor "
        "the draws can be used: warm up longer, give a base that is nearer to the target (base=), "
        "or use method='pt'"
    )
    return [words]


@dataclass(frozen=True)
class TravelEvidence(WeightedEvidence):
    """The ratio of the weights for the target and for the base."""

    log_zeta: Any

    def evidence(self, run: Any) -> Arrays:
        one, zero = (_all_steps(run, name) for name in ("log_weight", "log_weight_base"))
        return estimates({"weights": log_ratio(one, zero, self.log_zeta(run.sampler))})


class AnnealEvidence(WeightedEvidence):
    """The mean weight of anneals."""

    def evidence(self, run: Any) -> Arrays:
        return estimates({"forward": log_mean_weight(_all_steps(run, "log_weight"))})


class AnnealBounds(WeightedEvidence):
    """Of anneals there and back: a lower and an upper bound, on average."""

    def evidence(self, run: Any) -> Arrays:
        back = log_mean_weight(_all_steps(run, "log_weight_reverse"))
        return estimates(
            {
                "forward": log_mean_weight(_all_steps(run, "log_weight")),
                "reverse": back._replace(value=-back.value),
            }
        )

    def facts(self, tree: Any) -> dict[str, Any]:
        found = tree["evidence"].dataset
        low, high = (
            float(found["log_evidence"].sel(estimator=name)) for name in ("forward", "reverse")
        )
        words = f"{low:.4f} and {high:.4f}, on average"
        return super().facts(tree) | {"log evidence lies between": words}


def _all_steps(run: Any, name: str) -> np.ndarray:
    """Weights of every step that was kept, and not only of those whose position was."""
    values = np.asarray(run.draws[name], float)
    return values.reshape(values.shape[0], -1)


def _base_check(draws: dict[str, np.ndarray], ladder: Any) -> dict[str, Any]:
    """How far the base's mean and variance, by the weights, are from what they are."""
    base = _base_moments(ladder, draws["position"].shape[-1])
    away = (draws["position"] - base.mean) / np.sqrt(base.variance)
    found = weighted_mean(
        np.concatenate([away, away**2 - 1], axis=-1), draws["log_weight_base"][:, :, -1]
    )
    spread = np.hypot(found.error, base.error)
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.abs(found.value) / np.where(spread > 0, spread, np.nan)
    kept = base.exists
    return {
        "base_error": ((), float(np.max(np.abs(found.value[kept]), initial=0.0))),
        "base_z": ((), float(np.nanmax(z[kept], initial=0.0))),
        "base_checks": ((), int(kept.sum())),
        "base_heavy": ((), int((~kept[kept.size // 2 :]).sum())),
    }


class _Moments(NamedTuple):
    """Mean and variance of the base.

    Then, for all means and all variances, the error of each in standard deviations, and whether it
    exists.
    """

    mean: np.ndarray
    variance: np.ndarray
    error: np.ndarray
    exists: np.ndarray


def _base_moments(ladder: Any, dimension: int) -> _Moments:
    exists = np.ones(2 * dimension, bool)
    if isinstance(ladder.hot, Gaussian):
        factor = np.asarray(ladder.hot.factor, float)
        variance = factor**2 if factor.ndim == 1 else np.sum(factor**2, axis=1)
        return _Moments(np.asarray(ladder.hot.mean, float), variance, np.zeros(exists.size), exists)
    keys = jax.random.split(probe_key(), MANY)
    some = np.asarray(jax.vmap(ladder.draw_hot)(keys), float).reshape(MANY, -1)
    mean, variance = some.mean(axis=0), some.var(axis=0)
    away = (some - mean) / np.sqrt(variance)
    both = np.concatenate([away, away**2], axis=1)
    shapes = np.nan_to_num([tail_shape(column) for column in some.T])
    exists = np.concatenate([shapes < NO_VARIANCE, shapes < NO_VARIANCE / 2])
    return _Moments(mean, variance, both.std(axis=0) / np.sqrt(MANY), exists)
