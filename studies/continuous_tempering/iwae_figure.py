"""Figure 4: a panel for each model, estimates of the sum of log p(x) against run time."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from pages import STYLE, save

COLOURS = {"ais": "C0", "st": "C1", "gibbs": "C2", "joint": "C3"}
WIDE = 3  # standard errors, as in the paper
# Below this much under the lower bound, short anneals would leave no room for the rest.
LOWEST = -320.0

Panel = tuple[str, Mapping[str, float], Mapping[str, np.ndarray]]


def draw_kept(panels: Sequence[Panel], names: Mapping[str, str], path: Path) -> None:
    """Columns of a course: moves, seconds, estimate minus lower bound, standard error."""
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(1, len(panels), figsize=(5.8 * len(panels), 4.0), squeeze=False)
        for axis, (model, bounds, courses) in zip(axes[0], panels, strict=True):
            for method, points in courses.items():
                if points.size:
                    _course(axis, method, names[method], points)
            axis.axhline(0.0, color="C3", ls="--", lw=0.9, label="lower bound")
            upper = bounds["upper"] - bounds["lower"]
            axis.axhline(upper, color="k", ls="--", lw=0.9, label="upper bound")
            axis.set(title=model, xlabel="seconds", ylim=(LOWEST, 25.0))
        axes[0, 0].set_ylabel("log likelihood of 1000 images - lower bound")
        axes[0, -1].legend()
        save(figure, path)


def _course(axis: Any, method: str, name: str, points: np.ndarray) -> None:
    _, seconds, away, error = points.T
    colour, wide = COLOURS[method], WIDE * error
    if method == "ais":
        axis.errorbar(seconds, away, wide, color=colour, fmt="o", ms=4, lw=1, capsize=3, label=name)
    else:
        axis.plot(seconds, away, color=colour, label=name)
        axis.fill_between(seconds, away - wide, away + wide, color=colour, alpha=0.2, lw=0)
