"""What tempered transitions say, and whether warm-up knew modes that no draw came to."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from temperance.estimates.diagnostics import left_behind
from temperance.methods.report.piece import Arrays, Piece, tempering

LOW_TRANSITION = 0.05


class Transitions(Piece):
    """How often transitions are accepted."""

    pictures = ("transitions",)

    def arrays(self, run: Any) -> Arrays:
        return {"transition_rate": ((), run.draws["transition_accepted"].mean())}

    def facts(self, tree: Any) -> dict[str, Any]:
        return {"transitions accepted": float(tempering(tree)["transition_rate"])}

    def warnings(self, tree: Any) -> list[str]:
        rate = float(tempering(tree)["transition_rate"])
        if rate >= LOW_TRANSITION:
            return []
        words = (
            f"only {rate:.1%} of tempered transitions were accepted: "
            "give more rungs (num_rungs=) or a longer move at each"
        )
        return [words]


@dataclass(frozen=True)
class LeftBehind(Piece):
    """Replicas that ended warm-up where no draw ever was.

    `what` is how chains reach modes, and `option` says how far they heat.
    """

    what: str
    option: str

    def arrays(self, run: Any) -> Arrays:
        left = getattr(run.learnt, "left", None)  # absent from samplers built by hand
        if left is None:
            return {}
        betas = np.asarray(run.sampler.ladder.betas)
        found = left_behind(run.draws["position"], np.asarray(left), betas)
        return {"left_behind": (("chain", "rung"), found)}

    def warnings(self, tree: Any) -> list[str]:
        left = tempering(tree).get("left_behind")
        if left is None or not left.any():
            return []
        words = (
            f"{int(left.sum())} of {left.size} replicas ended warm-up where no draw ever was: "
            f"there may be modes that the {self.what} do not "
            f"reach, and nothing here says how much they weigh; heat further ({self.option}=), or "
            "use parallel tempering"
        )
        return [words]
