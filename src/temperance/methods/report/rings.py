"""What a run tells of its energy rings.

An equi-energy run draws with the target's chain alone, so that what is known of the hot rungs is
from when they filled their rings. `num_evaluations` counts the draws, as for every method; what
filling cost is `fill_evaluations`.
"""

from typing import Any

import numpy as np

from temperance.methods.report.piece import Arrays, Piece, tempering

MANY_EMPTY, LOW_JUMP, LOW_REFRESH = 0.1, 0.02, 0.05


class Rings(Piece):
    """Temperatures and levels, jumps, and how rings were filled."""

    def arrays(self, run: Any) -> Arrays:
        ladder, draws = run.sampler.ladder, run.draws
        group: Arrays = {
            "temperature": (("rung",), np.asarray(ladder.temperatures)),
            "level": (("rung",), np.asarray(ladder.levels)),
        }
        # Sums over chains of what the draws and, where there was one, the filling of rings did.
        names = ("jump_tried", "jump_found", "jump_acceptance")
        sums = {name: draws[name].sum(axis=(0, 1)) * run.sweeps_per_draw for name in names}
        tally = getattr(run.learnt, "tally", None)  # absent from samplers built by hand
        if tally is not None:
            told = {name: np.asarray(value) for name, value in tally._asdict().items()}
            sums = {name: sums[name] + told[name].sum(axis=0) for name in names}
            group |= self._filling(run, told)
        tried, found = (np.where(sums[n] > 0, sums[n], np.nan)[1:] for n in names[:2])
        return group | {
            "jump_acceptance": (("pair",), sums["jump_acceptance"][1:] / found),
            "empty_rate": (("pair",), 1 - sums["jump_found"][1:] / tried),
        }

    def _filling(self, run: Any, tally: dict[str, np.ndarray]) -> Arrays:
        """What each rung did while it filled its rings, and the target while it drew."""
        group: Arrays = {}
        steps = np.maximum(tally["steps"].sum(axis=0), 1.0)
        for name, stat in (("move_acceptance", "acceptance"), ("diverging_rate", "diverging")):
            mean = (tally[stat].sum(axis=0).T / steps).T
            mean[-1] = run.draws[stat].mean(axis=(0, 1))[-1]
            axes = ("rung", "part")[: mean.ndim]
            group[name] = (axes, mean)
        group["fill_evaluations"] = (("rung",), tally["num_evaluations"].sum(axis=0))
        group["ring_states"] = (("chain", "pair", "ring"), np.asarray(run.learnt.held))
        return group

    def facts(self, tree: Any) -> dict[str, Any]:
        ladder = tempering(tree)
        facts: dict[str, Any] = {
            "temperatures": ladder["temperature"].values,
            "energy levels": ladder["level"].values,
            "jump acceptance": ladder["jump_acceptance"].values,
            "jumps into empty rings": ladder["empty_rate"].values,
        }
        if "ring_states" in ladder:
            # Of the rung that the target jumps into, the mean over chains.
            states = ladder["ring_states"].values[:, -1].mean(axis=0)
            facts["states in the target's rings"] = states
            facts["evaluations to fill rings"] = float(ladder["fill_evaluations"].sum())
        return facts

    def warnings(self, tree: Any) -> list[str]:
        ladder, found = tempering(tree), []
        empty, jumps = ladder["empty_rate"].values, ladder["jump_acceptance"].values
        worst = int(np.argmax(np.nan_to_num(empty, nan=1.0)))
        if not empty[worst] <= MANY_EMPTY:
            found.append(
                f"{np.nan_to_num(empty[worst], nan=1.0):.0%} of the jumps from rung {worst + 1} "
                f"found an empty ring: rung {worst} was never at those energies; give more rungs, "
                "or fill the rings longer (num_fill=)"
            )
        found += self.between(ladder)
        least = int(np.argmin(np.nan_to_num(jumps, nan=0.0)))
        if not jumps[least] >= LOW_JUMP:
            found.append(
                f"jumps from rung {least + 1} are hardly ever accepted "
                f"({np.nan_to_num(jumps[least], nan=0.0):.1%}): what hotter rungs know of modes "
                "does not reach the target; give more rungs (num_rungs=)"
            )
        return found

    def between(self, ladder: Any) -> list[str]:
        """Warnings of rings that see mini-batches."""
        return []


class MinibatchRings(Rings):
    """The same of rungs that see mini-batches, and how often a state renews its batch."""

    def arrays(self, run: Any) -> Arrays:
        return super().arrays(run) | {"size": (("rung",), np.asarray(run.sampler.sizes))}

    def _filling(self, run: Any, tally: dict[str, np.ndarray]) -> Arrays:
        steps = np.maximum(tally["steps"].sum(axis=0), 1.0)
        evaluations = tally["num_evaluations"].sum(axis=0)
        return super()._filling(run, tally) | {
            "refresh_rate": (("rung",), tally["refreshed"].sum(axis=0) / steps),
            "fill_rows": (("rung",), evaluations * np.asarray(run.sampler.sizes)),
        }

    def facts(self, tree: Any) -> dict[str, Any]:
        ladder = tempering(tree)
        return super().facts(tree) | {
            "rows by rung": ladder["size"].values,
            "row evaluations to fill rings": float(ladder["fill_rows"].sum()),
            "batches renewed": ladder["refresh_rate"].values,
        }

    def between(self, ladder: Any) -> list[str]:
        """Rungs whose batches differ so much that a state keeps the one it has."""
        sizes, rates = ladder["size"].values, ladder["refresh_rate"].values
        stuck = np.flatnonzero((sizes < sizes[-1]) & (rates < LOW_REFRESH))
        if not stuck.size:
            return []
        rung = int(stuck[0])
        words = (
            f"rung {rung} renews its batch of {sizes[rung]} rows in {rates[rung]:.1%} of its "
            "steps: energies of batches differ by more than the heat; give a smaller alpha, or "
            "larger batch_sizes"
        )
        return [words]
