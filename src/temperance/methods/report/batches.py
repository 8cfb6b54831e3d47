"""What a move on mini-batches tells of its law and of its noise."""

from typing import Any

import numpy as np

from temperance.methods.report.piece import Arrays, Piece, tempering
from temperance.moves.minibatch.batch_law import flattening

# Uncorrected noise of this variance flattens by about 8 %; this share of steps may be doubtful.
SMALL_NOISE, DOUBTFUL = 0.04, 0.01


class Batches(Piece):
    """The tempered law that batches stand for, or whether an exact move's bounds held.

    Empty for moves that read all rows.
    """

    def arrays(self, run: Any) -> Arrays:
        draws, move = run.draws, run.sampler.move
        law = move.batch_law(run.num_rows)
        if law is None:
            return {}
        means = {
            name: ((), draws[f"batch_{name}"].mean()) for name in ("variance", "raised", "trusted")
        }
        return {
            "beta": (("rung",), np.array([law.beta])),
            "size": (("rung",), np.array([law.batch_size])),
            "step_size": (("rung", "part"), np.asarray(run.sampler.params.step_size)),
            "move_acceptance": (("rung", "part"), draws["acceptance"].mean(axis=(0, 1))),
            "noise_variance": (*means["variance"], {"noise": move.noise}),
            "raised_rate": means["raised"],
            "trusted_rate": means["trusted"],
        }

    def facts(self, tree: Any) -> dict[str, Any]:
        batches, stats = tempering(tree), tree["sample_stats"].dataset
        if "noise_variance" not in batches:
            raised = stats.get("batch_raised")
            return {} if raised is None else {"steps that read all rows": float(raised.mean())}
        beta = float(batches["beta"].values[0])
        return {
            "law": f"the posterior to the power 1/T, T = {1 / beta:.4g} (and not the posterior)",
            "rows of a batch": int(batches["size"].values[0]),
            "variance of the noise": float(batches["noise_variance"]),
            "steps with a larger batch": float(batches["raised_rate"]),
            "steps to be trusted": float(batches["trusted_rate"]),
        }

    def warnings(self, tree: Any) -> list[str]:
        batches, stats = tempering(tree), tree["sample_stats"].dataset
        if "noise_variance" in batches:
            return noise_warnings(batches)
        trusted = stats.get("batch_trusted")
        doubtful = 0.0 if trusted is None else 1 - float(trusted.mean())
        if not doubtful:
            return []
        words = (
            f"in {doubtful:.2%} of steps a row changed by more than its bound allows: the draws "
            "are not from the posterior, and by how much nobody knows; check that the bounds are "
            "of these terms and of these rows in their order, or give larger ones"
        )
        return [words]


def noise_warnings(batches: Any) -> list[str]:
    """What the noise of batches does to the law of the draws."""
    variance = float(batches["noise_variance"])
    noise = str(batches["noise_variance"].attrs["noise"])
    doubtful = 1 - float(batches["trusted_rate"])
    found = []
    if noise == "common" and variance > SMALL_NOISE:
        found.append(
            f"the batch's noise has variance {variance:.2g}, and nothing is done about it: the law "
            "of the draws is flatter than stated, for typical steps by a factor of about "
            f"{float(flattening(variance)):.2f}; use noise='penalty'"
        )
    if noise == "pseudo-marginal" and doubtful > DOUBTFUL:
        found.append(
            f"the log density of a state's own batch varies by {variance:.2g}: lucky batches "
            f"stick, and the draws' law is tilted by up to exp({0.5 * variance:.2g}) where rows "
            "vary more; give a smaller alpha, exchange= rows, or noise='penalty'"
        )
    if noise == "penalty" and doubtful > DOUBTFUL:
        found.append(
            f"in {doubtful:.0%} of steps the batch was too noisy for the penalty to make it good, "
            "even after it grew: the stated law cannot be trusted; give a larger batch_size or "
            "most_rows, or a smaller alpha"
        )
    return found
