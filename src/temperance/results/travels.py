"""What a run with weighted draws tells: arrays for the result, facts and warnings for the summary.

Chains that travel the temperatures (ST, both CTs) weigh their draws for the target and for the
base. What the base weights say of the base's own moments, which are known, is a check of the
run. It is necessary and not sufficient: a base that knows one mode only is met by a chain that
never saw the others (paper 4, equation 22; a base on one of two modes passes with log Z off by
0.31 in a worked example).
"""

from typing import Any

import jax
import numpy as np
from scipy.special import ndtr

from temperance.problems.gaussian import Gaussian
from temperance.samplers.annealing.importance import AnnealedImportance
from temperance.samplers.continuous import GibbsTempering, JointTempering
from temperance.samplers.simulated import SimulatedTempering
from temperance.estimates.weighted import kish, log_mean_weight, log_ratio, weighted_mean

TRAVELLERS = (GibbsTempering, JointTempering, SimulatedTempering)
NUM_BINS = 10
# Draws of a base whose moments nobody knows; how unlikely a disagreement has to be; and the least
# share of a chain's weights that counts.
MANY, UNLIKELY, FEW_TRIPS, FEW_WEIGHTS = 4096, 1e-3, 5, 0.01


def log_zeta_of(sampler: Any) -> float:
    """The log ratio of constants at which both ends would be visited alike."""
    if isinstance(sampler, SimulatedTempering):
        return float(sampler.log_weights[0] - sampler.log_weights[-1])
    if isinstance(sampler, GibbsTempering):
        return float(sampler.log_z[-1] - sampler.log_z[0])
    return float(sampler.ladder.log_zeta)


def all_steps(draws: dict[str, np.ndarray], name: str) -> np.ndarray:
    """Weights of every step that was kept, and not only of those whose position was."""
    values = np.asarray(draws[name], float)
    return values.reshape(values.shape[0], -1)


def weight_stats(draws: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The weights of the draws themselves, the inverse temperature and the rung."""
    names = ("log_weight", "log_weight_base", "log_weight_reverse")
    stats = {name: draws[name][:, :, -1] for name in names if name in draws}
    return stats | {name: draws[name] for name in ("beta", "control", "rung") if name in draws}


def travel_evidence(draws: dict[str, np.ndarray], sampler: Any) -> dict[str, Any]:
    """Log Z from the weights; of anneals there and back, a lower and an upper bound."""
    if isinstance(sampler, AnnealedImportance):
        found = {"forward": log_mean_weight(all_steps(draws, "log_weight"))}
        if "log_weight_reverse" in draws:
            back = log_mean_weight(all_steps(draws, "log_weight_reverse"))
            found["reverse"] = back._replace(value=-back.value)
    else:
        one, zero = (all_steps(draws, name) for name in ("log_weight", "log_weight_base"))
        found = {"weights": log_ratio(one, zero, log_zeta_of(sampler))}
    return {
        "estimator": (("estimator",), list(found)),
        "log_evidence": (("estimator",), [one.value for one in found.values()]),
        "error": (("estimator",), [one.error for one in found.values()]),
    }


def travel_group(draws: dict[str, np.ndarray], finished: Any) -> dict[str, Any]:
    """The arrays of the tempering group."""
    sampler = finished.sampler
    group: dict[str, Any] = {
        "step_size": (("rung", "part"), np.asarray(sampler.params.step_size)),
        "move_acceptance": (("part",), draws["acceptance"].mean(axis=(0, 1, 2))),
        "diverging_rate": ((), draws["diverging"].mean()),
        "num_evaluations": ((), draws["num_evaluations"].sum() * finished.sweeps_per_draw),
        "kish": ((), kish(draws["log_weight"][:, :, -1])),
    }
    if isinstance(sampler, AnnealedImportance):
        betas = getattr(sampler.ladder, "betas", None)
        return group if betas is None else group | {"anneal_beta": (("stop",), np.asarray(betas))}
    trips = draws["round_trips"][:, -1] - draws["round_trips"][:, 0]
    group |= {"round_trips": (("chain",), trips), "log_zeta": ((), log_zeta_of(sampler))}
    if isinstance(sampler, SimulatedTempering):
        visits = [(draws["rung"] == k).mean() for k in range(sampler.ladder.num_rungs)]
        group["visits"] = (("rung",), np.array(visits))
    else:
        counts, _ = np.histogram(draws["beta"], bins=NUM_BINS, range=(0.0, 1.0))
        group["visits"] = (("bin",), counts / counts.sum())
    betas = getattr(sampler.ladder, "betas", None)
    if betas is not None:
        group["beta"] = (("rung",), np.asarray(betas))
    return group | _base_check(draws, sampler.ladder)


def _base_check(draws: dict[str, np.ndarray], ladder: Any) -> dict[str, Any]:
    """How far the base's mean and variance, by the weights, are from what they are."""
    mean, variance, error = _base_moments(ladder, draws["position"].shape[-1])
    scale = np.sqrt(variance)
    away = (draws["position"] - mean) / scale
    found = weighted_mean(
        np.concatenate([away, away**2 - 1], axis=-1), draws["log_weight_base"][:, :, -1]
    )
    spread = np.hypot(found.error, error)
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.abs(found.value) / np.where(spread > 0, spread, np.nan)
    return {
        "base_error": ((), float(np.max(np.abs(found.value)))),
        "base_z": ((), float(np.nanmax(z, initial=0.0))),
        "base_checks": ((), z.size),
    }


def _base_moments(ladder: Any, dimension: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean and variance of the base, and the error of each in standard deviations."""
    if isinstance(ladder.hot, Gaussian):
        factor = np.asarray(ladder.hot.factor, float)
        variance = factor**2 if factor.ndim == 1 else np.sum(factor**2, axis=1)
        return np.asarray(ladder.hot.mean, float), variance, np.zeros(2 * dimension)
    keys = jax.random.split(jax.random.key(0), MANY)
    some = np.asarray(jax.vmap(ladder.draw_hot)(keys), float).reshape(MANY, -1)
    mean, variance = some.mean(axis=0), some.var(axis=0)
    away = (some - mean) / np.sqrt(variance)
    both = np.concatenate([away, away**2], axis=1)
    return mean, variance, both.std(axis=0) / np.sqrt(MANY)


def travel_facts(ladder: Any) -> dict[str, Any]:
    """What became of the travelling, for the summary."""
    if "kish" not in ladder:
        return {}
    facts: dict[str, Any] = {"draws by weight alone (Kish)": float(ladder["kish"])}
    if "anneal_beta" in ladder:
        facts["steps of an anneal"] = ladder.sizes["stop"] - 1
    if "round_trips" in ladder:
        facts["round trips by chain"] = ladder["round_trips"].values
        facts["log zeta"] = float(ladder["log_zeta"])
        name = "share of draws by rung" if "rung" in ladder["visits"].dims else "by tenths of beta"
        facts[name] = ladder["visits"].values
    if "base_z" in ladder:
        facts["base moments"] = (
            f"off by {float(ladder['base_error']):.2g} standard deviations at most, "
            f"{float(ladder['base_z']):.1f} of their errors (agreement is necessary, and not "
            "sufficient)"
        )
    return facts


def travel_warnings(ladder: Any, num_draws: int) -> list[str]:
    """What is wrong with the travelling, in words."""
    if "kish" not in ladder:
        return []
    found = []
    if "round_trips" in ladder and ladder["round_trips"].values.min() < FEW_TRIPS:
        found.append(
            f"a chain went {int(ladder['round_trips'].values.min())} times from the base to the "
            f"target and back in {num_draws} draws: how often it visits each mode is not yet to be "
            "trusted; draw more, or give a base that is nearer to the target (base=)"
        )
    if "base_z" in ladder:
        z, checks = float(ladder["base_z"]), int(ladder["base_checks"])
        if 2 * ndtr(-z) * checks < UNLIKELY:
            found.append(
                f"the base's own moments come out wrong, by {float(ladder['base_error']):.2g} "
                f"standard deviations or {z:.1f} of their errors: the chains have not seen all "
                "of it; draw more, or warm up longer"
            )
    return found


def bound_facts(evidence: Any) -> dict[str, Any]:
    """The gap between the bounds of anneals there and back."""
    names = list(evidence["estimator"].values)
    if "reverse" not in names:
        return {}
    low, high = (float(evidence["log_evidence"].sel(estimator=n)) for n in ("forward", "reverse"))
    return {"log evidence lies between": f"{low:.4f} and {high:.4f}, on average"}
