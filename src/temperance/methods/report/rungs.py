"""What every run says of its draws, and every ladder of its rungs."""

from typing import Any

import numpy as np

from temperance.methods.report.piece import Arrays, Piece, tempering

# Statistics of a draw that a sampler or its move leave, by name.
LEFT = (
    "lp", "transition_acceptance", "log_ratio", "batch_variance", "batch_raised", "batch_trusted",
    "beta", "control", "rung",
)  # fmt: skip


class Draws(Piece):
    """Acceptance and divergences at the target, and what sampler and move leave of each draw."""

    def stats(self, run: Any) -> dict[str, np.ndarray]:
        draws = run.draws
        stats = {
            "acceptance_rate": draws["acceptance"][:, :, -1].mean(axis=-1),
            "diverging": draws["diverging"][:, :, -1] > 0,
        }
        stats |= {name: draws[name] for name in LEFT if name in draws}
        if "batch_rows" in draws:
            by_rung = draws["batch_rows"].ndim == 3
            stats["batch_rows"] = draws["batch_rows"].sum(-1) if by_rung else draws["batch_rows"]
        return stats


class Rungs(Piece):
    """Each rung's power, steps, acceptance and evaluations."""

    def arrays(self, run: Any) -> Arrays:
        draws, sampler = run.draws, run.sampler
        group: Arrays = {
            "step_size": (("rung", "part"), np.asarray(sampler.params.step_size)),
            "move_acceptance": (("rung", "part"), draws["acceptance"].mean(axis=(0, 1))),
            "diverging_rate": (("rung",), draws["diverging"].mean(axis=(0, 1))),
            "num_evaluations": (
                ("rung",),
                draws["num_evaluations"].sum(axis=(0, 1)) * run.sweeps_per_draw,
            ),
        }
        # A ladder of somebody's own need not be one of powers.
        betas = getattr(sampler.ladder, "betas", None)
        return group if betas is None else group | {"beta": (("rung",), np.asarray(betas))}

    def facts(self, tree: Any) -> dict[str, Any]:
        return {"rungs": tempering(tree).sizes["rung"]}


class Sizes(Piece):
    """Each rung's number of rows."""

    def arrays(self, run: Any) -> Arrays:
        return {"size": (("rung",), np.asarray(run.sampler.ladder.sizes))}

    def facts(self, tree: Any) -> dict[str, Any]:
        return {"rows by rung": tempering(tree)["size"].values}
