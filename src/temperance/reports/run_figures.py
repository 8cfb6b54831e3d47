"""Pictures of one run: marginals and traces, what the ladder did, where log Z comes from."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from temperance.estimates.diagnostics import rhat_live
from temperance.reports.style import HOT, INK, SOFT, chain_colour, drawn, new_figure, quiet

MOST_VARIABLES = 8
MOST_POINTS = 2000
PATH_DRAWS = 250
MOST_MODES = 24


def scalars(posterior: Any) -> list[tuple[str, np.ndarray]]:
    """Every scalar of the posterior by name, as (chain, draw)."""
    found = []
    for name, array in posterior.data_vars.items():
        values = array.values
        for index in np.ndindex(*values.shape[2:]):
            label = f"{name}[{', '.join(map(str, index))}]" if index else str(name)
            found.append((label, values[(..., *index)]))
    return found


def worst_first(found: list[tuple[str, np.ndarray]]) -> list[tuple[str, np.ndarray]]:
    """As many as a page can hold: all of them in order, or those whose chains disagree most."""
    if len(found) <= MOST_VARIABLES:
        return found
    rhats = np.nan_to_num([float(rhat_live(values)) for _, values in found], nan=np.inf)
    return [found[i] for i in np.argsort(-rhats, kind="stable")[:MOST_VARIABLES]]


@drawn
def marginals(posterior: Any, log_weight: np.ndarray | None = None) -> Figure:
    """For each scalar, a histogram by chain and the trace that made it; weighted if draws are."""
    weights = None if log_weight is None else np.exp(log_weight - log_weight.max())
    chosen = worst_first(scalars(posterior))
    figure = new_figure(10.0, 0.5 + 1.45 * len(chosen))
    rows = figure.subplots(len(chosen), 2, squeeze=False, width_ratios=(1, 2.4))
    for (label, values), (left, right) in zip(chosen, rows, strict=True):
        edges = np.histogram_bin_edges(values[np.isfinite(values)], bins=50)
        stride = max(1, values.shape[1] // MOST_POINTS)
        for chain, series in enumerate(values):
            colour = chain_colour(chain)
            shares = None if weights is None or not weights[chain].any() else weights[chain]
            left.hist(series, edges, density=True, histtype="step", color=colour, weights=shares)
            right.plot(
                np.arange(len(series))[::stride], series[::stride], color=colour, lw=0.5, alpha=0.8
            )
        left.set_title(label)
        left.set_yticks([])
        left.spines["left"].set_visible(False)
        right.set_xlim(0, values.shape[1])
        quiet(right)
    rows[-1][1].set_xlabel("draw")
    return figure


@drawn
def ladder(tempering: Any) -> Figure:
    """Swap acceptance by pair, and the barrier as it accumulates over the betas."""
    rates = tempering["swap_acceptance"].values
    betas = tempering["beta"].values if "beta" in tempering else np.arange(len(rates) + 1)
    figure = new_figure(10.0, 3.0)
    left, right = figure.subplots(1, 2)
    pairs = np.arange(len(rates))
    left.bar(pairs, rates, color=_rung_colours(len(rates) + 1)[1:], width=0.75)
    left.axhline(rates.mean(), color=INK, lw=0.9, ls=(0, (4, 3)))
    left.set_ylim(0, 1)
    stride = max(1, len(rates) // 12)
    left.set_xticks(pairs[::stride], [f"{i}-{i + 1}" for i in pairs[::stride]])
    left.set_xlabel("rungs (hot to cold)")
    left.set_title(f"Swaps accepted: {rates.mean():.0%} on average")
    quiet(left)
    barrier = np.concatenate([[0.0], np.cumsum(1 - rates)])
    right.plot(betas, barrier, color=SOFT, zorder=1)
    right.scatter(betas, barrier, c=_rung_colours(len(betas)), s=34, zorder=2)
    right.set_xscale("symlog", linthresh=max(1e-6, float(betas[betas > 0].min())))
    right.set_xlabel("beta (log scale beyond the hottest)")
    right.set_title(f"Communication barrier: {barrier[-1]:.2f} in all")
    quiet(right)
    return figure


@drawn
def replica_paths(tempering: Any) -> Figure:
    """Which rung each replica of the first chain is at, over the last draws."""
    sits = tempering["replica"].values[0][-PATH_DRAWS:]
    rung_of = np.argsort(sits, axis=1)
    figure = new_figure(10.0, 2.7)
    axes = figure.subplots()
    num_rungs = sits.shape[1]
    for replica in range(num_rungs):
        axes.plot(rung_of[:, replica], color="#cfd5dc", lw=0.7, zorder=1)
    for number, replica in enumerate(range(0, num_rungs, max(1, (num_rungs + 1) // 2))):
        axes.plot(rung_of[:, replica], color=chain_colour(number), lw=1.3, zorder=2)
    axes.set_yticks([0, num_rungs - 1], ["hottest", "target"])
    axes.set_xlim(0, len(sits) - 1)
    axes.set_xlabel(f"draw, of the last {len(sits)} of one chain")
    trips = tempering["round_trips"].values
    axes.set_title(f"Replicas travel: {int(trips.sum())} round trips in all chains")
    return figure


@drawn
def transitions(tree: Any) -> Figure:
    """How hard tempered transitions are: their log acceptance ratios, and moves by rung."""
    ratios = tree["sample_stats"]["log_ratio"].values.ravel()
    shown = np.clip(ratios, -40, None)
    tempering = tree["tempering"]
    figure = new_figure(10.0, 2.8)
    left, right = figure.subplots(1, 2)
    left.hist(shown, bins=60, color=chain_colour(2))
    left.axvline(0, color=INK, lw=0.9, ls=(0, (4, 3)))
    left.set_xlabel("log acceptance ratio (those below -40 at -40)")
    left.set_yticks([])
    left.set_title(f"Transitions accepted: {float(tempering['transition_rate']):.1%}")
    accepted = tempering["move_acceptance"].values.mean(axis=1)
    right.bar(np.arange(len(accepted)), accepted, color=_rung_colours(len(accepted)), width=0.75)
    right.set_ylim(0, 1)
    right.set_xlabel("rung (hot to cold)")
    right.set_title("Acceptance of the moves")
    quiet(right)
    return figure


@drawn
def temperatures(tree: Any) -> Figure:
    """Where the first chain's temperature goes, and how often all chains are where."""
    stats = tree["sample_stats"]
    name = "beta" if "beta" in stats else "rung"
    values = stats[name].values
    figure = new_figure(10.0, 2.7)
    left, right = figure.subplots(1, 2, width_ratios=(2.4, 1))
    left.plot(values[0][-PATH_DRAWS:], color=chain_colour(0), lw=0.9)
    left.set_xlabel(f"draw, of the last {min(PATH_DRAWS, values.shape[1])} of one chain")
    trips = tree["tempering"]["round_trips"].values
    left.set_title(f"The {name} travels: {int(trips.sum())} round trips in all chains")
    visits = tree["tempering"]["visits"].values
    right.bar(np.arange(len(visits)), visits, color=_rung_colours(len(visits)), width=0.85)
    right.set_xlabel("tenth of beta, hot to cold" if name == "beta" else "rung, hot to cold")
    right.set_title("Share of the draws")
    quiet(right)
    return figure


@drawn
def evidence(tree: Any) -> Figure:
    """Log Z from the hottest rung to the target, by each estimator."""
    found = tree["evidence"]
    betas = tree["tempering"]["beta"].values
    figure = new_figure(10.0, 2.8)
    left, right = figure.subplots(1, 2, width_ratios=(2, 1))
    marks = {"mbar": "MBAR", "stepping_stones": "stepping stones"}
    names = [str(name) for name in found["estimator"].values]
    labels = [marks.get(name, name) for name in names]
    for number, (name, label) in enumerate(zip(names, labels, strict=True)):
        row = found.dataset.sel(estimator=name)
        path = np.concatenate([[0.0], np.cumsum(row["log_ratio"].values)])
        colour = chain_colour(number)
        if np.isfinite(path).all():  # a bridge from the reference makes no stops
            left.plot(betas, path, "o-", color=colour, ms=4, label=label)
        value, error = float(row["log_evidence"]), float(row["error"])
        right.errorbar(number, value, 1.96 * error, fmt="o", color=colour, capsize=4, ms=6)
    left.set_xscale("symlog", linthresh=max(1e-6, float(betas[betas > 0].min())))
    left.set_xlabel("beta (log scale beyond the hottest)")
    left.set_title("log Z along the ladder")
    left.legend()
    quiet(left)
    right.set_xlim(-0.6, len(labels) - 0.4)
    right.set_xticks(range(len(labels)), labels)
    right.ticklabel_format(axis="y", useOffset=False)
    right.set_title("At the target, 95 % intervals")
    quiet(right)
    return figure


@drawn
def modes(group: Any) -> Figure:
    """Each mode's share of the draws, beside what the reference's own draws say, and its visits."""
    order = np.argsort(-group["share"].values)[:MOST_MODES]
    figure = new_figure(10.0, 2.8)
    left, right = figure.subplots(1, 2)
    kinds = (("share", "error", "draws"), ("reference_share", "reference_error", "reference"))
    for number, (share, error, label) in enumerate(kinds):
        place = np.arange(len(order)) + 0.18 * (2 * number - 1)
        left.errorbar(
            place, group[share].values[order], 1.96 * group[error].values[order], fmt="o",
            color=chain_colour(number), capsize=3, ms=5, label=label,
        )  # fmt: skip
    left.set_ylim(bottom=0.0)
    left.set_title("Share of each mode, 95 % intervals")
    left.legend()
    right.bar(np.arange(len(order)), group["entries"].values[order], 0.6, color=chain_colour(0))
    right.set_title("How often chains came from another mode")
    for axes in (left, right):
        axes.set_xticks(range(len(order)), [str(mode) for mode in order])
        axes.set_xlabel("mode")
        quiet(axes)
    return figure


def _rung_colours(count: int) -> list[Any]:
    """Hot to cold."""
    import matplotlib as mpl

    return list(mpl.colormaps[HOT](np.linspace(0.78, 0.18, count)))
