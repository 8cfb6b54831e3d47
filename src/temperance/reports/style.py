"""How every picture looks: fonts, colours, thin axes. Settings hold only while drawing."""

import functools
from collections.abc import Callable
from typing import Any, ParamSpec

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

INK, SOFT, FAINT = "#1f2630", "#6b7685", "#e3e6ea"
# Told apart by people who do not see red and green, and in grey print.
CHAINS = ("#2b6a99", "#d9772b", "#3f8f6b", "#8a5aa3", "#b3434e", "#7c7c36", "#4aa6b8", "#6b7685")
HOT = "magma"

SETTINGS: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9.5,
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelcolor": INK,
    "axes.edgecolor": SOFT,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "text.color": INK,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "grid.color": FAINT,
    "grid.linewidth": 0.7,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "figure.facecolor": "white",
    "axes.facecolor": "white",
    "lines.linewidth": 1.2,
}

Arguments = ParamSpec("Arguments")


def drawn(make: Callable[Arguments, Figure]) -> Callable[Arguments, Figure]:
    """Draw under our settings, and leave the caller's as they were."""

    @functools.wraps(make)
    def styled(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Figure:
        with mpl.rc_context(SETTINGS):
            return make(*args, **kwargs)

    return styled


def new_figure(width: float, height: float) -> Figure:
    """An empty figure, in inches, that keeps its labels from overlapping."""
    return Figure(figsize=(width, height), layout="constrained")


def chain_colour(chain: int) -> str:
    """The same chain has the same colour in every picture."""
    return CHAINS[chain % len(CHAINS)]


def quiet(axes: Axes, axis: str = "y") -> None:
    """A faint grid along one axis."""
    axes.grid(True, axis="x" if axis == "x" else "y")
    axes.tick_params(length=3)
