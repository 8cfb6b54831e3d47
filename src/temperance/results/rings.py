"""What a run tells of its energy rings: arrays for the result, facts and warnings for the summary.

An equi-energy run draws with the target's chain alone, so that what is known of the hot rungs is
from when they filled their rings. `num_evaluations` counts the draws, as for every method; what
filling cost is `fill_evaluations`.
"""

from typing import Any

import numpy as np

from temperance.ladders.energies import EnergyLadder
from temperance.methods.equi_energy_plan import Filled
from temperance.samplers.equi_energy.minibatch_rung import MinibatchRung

MANY_EMPTY, LOW_JUMP, LOW_REFRESH = 0.1, 0.02, 0.05


def ring_group(draws: dict[str, np.ndarray], finished: Any) -> dict[str, Any]:
    """The arrays of the tempering group that only rungs of energies have."""
    ladder = finished.sampler.ladder
    if not isinstance(ladder, EnergyLadder):
        return {}
    group: dict[str, Any] = {
        "temperature": (("rung",), np.asarray(ladder.temperatures)),
        "level": (("rung",), np.asarray(ladder.levels)),
    }
    # Sums over chains of what the draws and, where there was one, the filling of rings did.
    names = ("jump_tried", "jump_found", "jump_acceptance")
    sums = {name: draws[name].sum(axis=(0, 1)) * finished.sweeps_per_draw for name in names}
    filled = finished.learnt
    if isinstance(filled, Filled):
        tally = {name: np.asarray(value) for name, value in filled.tally._asdict().items()}
        sums = {name: sums[name] + tally[name].sum(axis=0) for name in names}
        steps = np.maximum(tally["steps"].sum(axis=0), 1.0)
        for name, stat in (("move_acceptance", "acceptance"), ("diverging_rate", "diverging")):
            mean = (tally[stat].sum(axis=0).T / steps).T
            mean[-1] = draws[stat].mean(axis=(0, 1))[-1]
            axes = ("rung", "part")[: mean.ndim]
            group[name] = (axes, mean)
        group["fill_evaluations"] = (("rung",), tally["num_evaluations"].sum(axis=0))
        if isinstance(finished.sampler, MinibatchRung):
            sizes = np.asarray(finished.sampler.sizes)
            group["size"] = (("rung",), sizes)
            group["refresh_rate"] = (("rung",), tally["refreshed"].sum(axis=0) / steps)
            group["fill_rows"] = (("rung",), tally["num_evaluations"].sum(axis=0) * sizes)
        group["ring_states"] = (("chain", "pair", "ring"), np.asarray(filled.held))
    tried, found = (np.where(sums[n] > 0, sums[n], np.nan)[1:] for n in names[:2])
    return group | {
        "jump_acceptance": (("pair",), sums["jump_acceptance"][1:] / found),
        "empty_rate": (("pair",), 1 - sums["jump_found"][1:] / tried),
    }


def ring_facts(ladder: Any) -> dict[str, Any]:
    """Temperatures, levels, and what became of jumps, for the summary."""
    if "level" not in ladder:
        return {}
    facts: dict[str, Any] = {
        "temperatures": ladder["temperature"].values,
        "energy levels": ladder["level"].values,
        "jump acceptance": ladder["jump_acceptance"].values,
        "jumps into empty rings": ladder["empty_rate"].values,
    }
    if "ring_states" in ladder:
        # Of the rung that the target jumps into, the mean over chains.
        facts["states in the target's rings"] = ladder["ring_states"].values[:, -1].mean(axis=0)
        facts["evaluations to fill rings"] = float(ladder["fill_evaluations"].sum())
    if "fill_rows" in ladder:
        facts["row evaluations to fill rings"] = float(ladder["fill_rows"].sum())
        facts["batches renewed"] = ladder["refresh_rate"].values
    return facts


def ring_warnings(ladder: Any) -> list[str]:
    """What is wrong with the rings, in words."""
    if "level" not in ladder:
        return []
    found = []
    empty, jumps = ladder["empty_rate"].values, ladder["jump_acceptance"].values
    worst = int(np.argmax(np.nan_to_num(empty, nan=1.0)))
    if not empty[worst] <= MANY_EMPTY:
        found.append(
            f"{np.nan_to_num(empty[worst], nan=1.0):.0%} of the jumps from rung {worst + 1} found "
            f"an empty ring: rung {worst} was never at those energies; give more rungs, or fill "
            "the rings longer (num_fill=)"
        )
    if "fill_rows" in ladder:
        found += _batch_warnings(ladder)
    least = int(np.argmin(np.nan_to_num(jumps, nan=0.0)))
    if not jumps[least] >= LOW_JUMP:
        found.append(
            f"jumps from rung {least + 1} are hardly ever accepted "
            f"({np.nan_to_num(jumps[least], nan=0.0):.1%}): what hotter rungs know of modes does "
            "not reach the target; give more rungs (num_rungs=)"
        )
    return found


def _batch_warnings(ladder: Any) -> list[str]:
    """Rungs whose batches differ so much that a state keeps the one it has."""
    sizes, rates = ladder["size"].values, ladder["refresh_rate"].values
    stuck = np.flatnonzero((sizes < sizes[-1]) & (rates < LOW_REFRESH))
    if not stuck.size:
        return []
    rung = int(stuck[0])
    words = (
        f"rung {rung} renews its batch of {sizes[rung]} rows in {rates[rung]:.1%} of its steps: "
        "energies of batches differ by more than the heat; give a smaller alpha, or larger "
        "batch_sizes"
    )
    return [words]
