"""The two figures."""

from pathlib import Path

import matplotlib as mpl

mpl.use("agg")
import matplotlib.pyplot as plt
import numpy as np

COLOURS = {"deo": "#0b6e8a", "seo": "#c8553d", "sweep": "#7a9e3b"}
MARKERS = {"deo": "o", "seo": "s", "sweep": "^"}
LABELS = {
    "deo": "deo: even and odd pairs in turn",
    "seo": "seo: even or odd by a coin",
    "sweep": "sweep: all pairs, hot to cold",
}
STYLE = {
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "font.size": 9.5,
    "grid.alpha": 0.3,
    "legend.frameon": False,
}


def column(rows: list[dict], name: str) -> np.ndarray:
    return np.array([row[name] for row in rows], float)


def draw_travel(constant: list[dict], bridge: list[dict], path: Path) -> None:
    with plt.rc_context(STYLE):
        figure, panels = plt.subplots(1, 3, figsize=(13, 4.3), layout="constrained")
        _known_answer(panels[0], constant)
        _by_rungs(panels[1], bridge)
        _per_swap(panels[2], bridge)
        handles, labels = panels[1].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3)
        figure.savefig(path, dpi=130)
        plt.close(figure)


def _known_answer(axes, rows):
    ends = np.array([0.008, 0.8])
    axes.plot(ends, ends, color="0.4", lw=1)
    for scheme in COLOURS:
        those = [row for row in rows if row["scheme"] == scheme]
        x, y = column(those, "theory"), column(those, "round_trips_per_sweep")
        axes.plot(x, y, MARKERS[scheme], color=COLOURS[scheme], ms=6, alpha=0.85)
    worst = np.abs(column(rows, "round_trips_per_sweep") / column(rows, "theory") - 1).max()
    axes.annotate(f"largest deviation {100 * worst:.1f} %", (0.05, 0.92), xycoords="axes fraction")
    axes.set(xscale="log", yscale="log", xlim=ends, ylim=ends)
    axes.set(xlabel="theory, round trips a sweep", ylabel="found, round trips a sweep")
    axes.set_title("Constant acceptance: the known answer", loc="left", fontsize=10.5)


def _by_rungs(axes, rows):
    exact = [row for row in rows if row["move"] == "exact"]
    for scheme, colour in COLOURS.items():
        those = [row for row in exact if row["scheme"] == scheme]
        x = column(those, "rungs")
        y, error = column(those, "round_trips_per_sweep"), column(those, "standard_error")
        axes.errorbar(
            x, y, 2 * error, fmt=MARKERS[scheme], color=colour, ms=6, label=LABELS[scheme]
        )
        label = "theory, from the rejection seen" if scheme == "deo" else None
        axes.plot(x, column(those, "theory"), "--", color=colour, lw=1.2, label=label)
    walk = [row for row in rows if row["move"] == "metropolis"]
    axes.plot(
        column(walk, "rungs"), column(walk, "round_trips_per_sweep"), "o", mfc="white",
        color=COLOURS["deo"], ms=6, label="deo, one Metropolis step instead of an exact draw",
    )  # fmt: skip
    barrier = max(exact, key=lambda row: row["rungs"])["barrier"]
    axes.axhline(1 / (2 + 2 * barrier), color="0.4", lw=1, ls=":", label="limit of deo, 1/(2+2Λ)")
    _rung_axis(axes, exact)
    axes.set(yscale="log", ylabel="round trips a sweep")
    axes.set_title("Gaussian bridge: more rungs", loc="left", fontsize=10.5)


def _per_swap(axes, rows):
    exact = [row for row in rows if row["move"] == "exact"]
    for scheme, colour in COLOURS.items():
        those = [row for row in exact if row["scheme"] == scheme]
        x, y = column(those, "rungs"), column(those, "per_swap_tried")
        axes.plot(x, y, MARKERS[scheme] + "-", color=colour, ms=6, lw=1.2)
    _rung_axis(axes, exact)
    axes.set(yscale="log", ylabel="round trips a swap tried")
    axes.set_title("Gaussian bridge: per swap", loc="left", fontsize=10.5)


def _rung_axis(axes, rows):
    ticks = sorted({row["rungs"] for row in rows})
    axes.set_xscale("log")
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    axes.minorticks_off()
    axes.set_xlabel("rungs")


def draw_schedule(rows: list[dict], path: Path) -> None:
    rounds = sorted({row["round"] for row in rows})
    colours = plt.get_cmap("viridis")(np.linspace(0.9, 0.1, len(rounds)))
    with plt.rc_context(STYLE):
        figure, panels = plt.subplots(1, 2, figsize=(10.5, 4.3), layout="constrained")
        for number, colour in zip(rounds, colours, strict=True):
            those = [row for row in rows if row["round"] == number]
            rejection = column(those, "rejection")
            label = (
                f"round {number}, {those[0]['sweeps']} sweeps: "
                f"{rejection.min():.2f} to {rejection.max():.2f}"
            )
            pairs = column(those, "pair") + 0.5
            last = number == rounds[-1]
            panels[0].plot(
                pairs, rejection, "o-", color=colour, ms=4.5, lw=2.2 if last else 1.2, label=label
            )
        _betas(panels[1], rows, rounds, colours)
        panels[0].set(xlabel="pair of rungs, hot to cold", ylabel="rejection of swaps", ylim=(0, 1))
        panels[0].set_xticks(pairs, [f"{int(p)}·{int(p) + 1}" for p in pairs])
        panels[0].legend(fontsize=8.5, loc="upper left")
        panels[0].set_title("Rejection equalises", loc="left", fontsize=10.5)
        figure.savefig(path, dpi=130)
        plt.close(figure)


def _betas(axes, rows, rounds, colours):
    table = []
    for number in rounds:
        those = [row for row in rows if row["round"] == number]
        table.append([*column(those, "beta"), 1.0])
    table = np.array(table)
    for k in range(1, table.shape[1]):
        axes.plot(rounds, table[:, k], color="0.6", lw=1, zorder=1)
    for number, betas, colour in zip(rounds, table, colours, strict=True):
        axes.plot(np.full(betas.size - 1, number), betas[1:], "o", color=colour, ms=5, zorder=2)
    axes.set(yscale="log", xlabel="round of warm-up", ylabel="beta (that of rung 0 is 0)")
    axes.set_xticks(rounds)
    axes.set_title("as betas find their places", loc="left", fontsize=10.5)
