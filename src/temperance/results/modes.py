"""The modes of a run: what the hunt knew of them, how often the chains were there, and evidence.

The group `modes` of a tree has, by mode,

    found             draws of the base whose climbs ended there
    share, error      the share of the run's draws, and its standard error
    entries           how often a chain's draws came from another mode
    reference_share   the share by the reference's own draws and their ratios p / q, and its error
    log_evidence      log Z of the mode alone, from the same ratios
    center_<name>     where it is, variable by variable
    mass_below        what the reference's draws say of the mass below quantiles of the run's draws,
                      (level, coordinate of the unconstrained position), and its error

and in its attributes `num_draws`, `num_missed` and `bound`, for the sentence about what a further
mode could hold. The reference's draws enter the target from the other side than the run's chains
do, so that a bridge between the two (`bridge_sampling`) is an estimate of log Z of its own, and the
two kinds of shares check each other.
"""

from typing import Any

import numpy as np

from temperance.estimates.bridge_sampling import bridge_sampling
from temperance.estimates.diagnostics import standard_error
from temperance.estimates.weighted import weighted_mean
from temperance.problems.layout import Layout
from temperance.results.chain_checks import scalars

GROUP, BRIDGE = "modes", "reference"
# Ratios with heavier tails than this say nothing of shares.
TRUSTED = 0.7
# A mode of this share has to be visited; shares and evidence differ by this at least to be told.
SEEN, APART, ERRORS = 0.02, 0.05, 4.0
GAP, AT_END = 0.1, 0.01
# Quantiles of the draws that the reference is asked about.
LEVELS = (0.02, 0.1, 0.5, 0.9, 0.98)


def modes_group(run: Any, layout: Layout) -> Any:
    """The group of a finished run that was heated from, or compared with, a reference."""
    import xarray as xr

    reference, positions = run.reference, run.draws["position"]
    chains, num_draws, dimension = positions.shape
    mode = reference.assign(positions.reshape(-1, dimension)).reshape(chains, num_draws)
    inside = (mode[..., None] == np.arange(reference.num_modes)).astype(float)
    weights = run.draws.get("log_weight")
    if weights is None:
        share, error = inside.mean(axis=(0, 1)), standard_error(inside)
        error = np.where(np.isfinite(error), error, 0.0)
    else:
        independent = "log_weight_base" not in run.draws
        found = weighted_mean(inside, weights[..., -1], independent=independent)
        share, error = found.value, found.error
    entered = (mode[:, 1:] != mode[:, :-1])[..., None] * inside[:, 1:]
    hunted = np.zeros(reference.num_modes)
    hunted[: reference.hunt.num_modes] = reference.hunt.counts()
    with np.errstate(divide="ignore"):
        own = reference.log_zeta + np.log(reference.shares)
    variables = {
        "found": ("mode", hunted.astype(int)),
        "share": ("mode", share),
        "error": ("mode", error),
        "entries": ("mode", entered.sum(axis=(0, 1)).astype(int)),
        "reference_share": ("mode", reference.shares),
        "reference_error": ("mode", reference.share_errors),
        "log_evidence": ("mode", own),
    }
    for name, values in layout.split(reference.centers).items():
        axes = [f"{name}_axis_{i}" for i in range(values.ndim - 1)]
        variables[f"center_{name}"] = (("mode", *axes), values)
    if weights is None:
        flat = positions.reshape(-1, dimension)
        mass, its_error = reference.below(np.quantile(flat, LEVELS, axis=0))
        variables["level"] = ("level", np.asarray(LEVELS))
        variables["mass_below"] = (("level", "coordinate"), mass)
        variables["mass_below_error"] = (("level", "coordinate"), its_error)
    hunt = reference.hunt
    return xr.Dataset(
        variables,
        attrs={
            "num_draws": hunt.num_draws,
            "num_missed": hunt.num_missed,
            "bound": hunt.bound,
            "complete": int(hunt.complete),
            "tail_shape": reference.shape,
            "efficiency": reference.efficiency,
            "num_evaluations": reference.num_evaluations,
        },
    )


def with_bridge(evidence: dict[str, Any], run: Any) -> dict[str, Any]:
    """The estimates of log Z, with the bridge between the reference's draws and the run's."""
    if "log_weight" in run.draws or "lp" not in run.draws or not run.reference.shape < TRUSTED:
        return evidence
    positions = run.draws["position"]
    log_q = run.reference.log_drawn(positions.reshape(-1, positions.shape[-1]))
    found = bridge_sampling(
        run.reference.log_ratios, run.draws["lp"] - log_q.reshape(positions.shape[:2])
    )
    new: dict[str, Any] = {
        "estimator": (("estimator",), [BRIDGE]),
        "log_evidence": (("estimator",), [found.value]),
        "error": (("estimator",), [found.error]),
    }
    if not evidence:
        return new
    joined: dict[str, Any] = {
        n: (d, [*v, *new[n][1]]) for n, (d, v) in evidence.items() if n in new
    }
    for name, (dims, values) in evidence.items():
        if name not in new:
            steps = np.asarray(values, float)
            joined[name] = (dims, np.concatenate([steps, np.full((1, *steps.shape[1:]), np.nan)]))
    return joined


def mode_table(tree: Any) -> Any:
    """The modes of a run as a frame, largest share first; None without a hunt."""
    if GROUP not in tree.children:
        return None
    group = tree[GROUP].dataset
    frame = group[
        ["share", "error", "reference_share", "log_evidence", "found", "entries"]
    ].to_dataframe()
    return frame.sort_values("share", ascending=False)


def mode_facts(tree: Any) -> dict[str, Any]:
    """Why the method was chosen, and how many modes there are."""
    facts = {"why": tree.attrs["why"]} if "why" in tree.attrs else {}
    if GROUP in tree.children:
        facts["modes"] = tree[GROUP].sizes["mode"]
    return facts


def missed_sentence(tree: Any) -> str | None:
    """What a further mode could hold, in words."""
    if GROUP not in tree.children:
        return None
    attrs = tree[GROUP].attrs
    lost = int(attrs["num_missed"])
    words = (
        f"a further mode would have to hold less than {attrs['bound']:.2g} of the base's mass "
        f"(95 %): {int(attrs['num_draws'])} draws of the base were followed uphill"
    )
    return words + (f", and {lost} of them ended at none of these modes" if lost else "")


def mode_notes(tree: Any) -> list[str]:
    """What is known of the modes, as facts."""
    sentence = missed_sentence(tree)
    if sentence is None:
        return []
    attrs = tree[GROUP].attrs
    found = [sentence]
    if attrs["tail_shape"] > TRUSTED:
        found.append(
            f"the reference is thin in places (tail shape {attrs['tail_shape']:.2f} of the ratios "
            "to it, which should be below 0.7): what follows from it alone is not used"
        )
    return found


def mode_warnings(tree: Any) -> list[str]:
    """Modes that were not visited, and estimates from both sides that do not agree."""
    if GROUP not in tree.children:
        return []
    group = tree[GROUP].dataset
    trusted = bool(tree[GROUP].attrs["tail_shape"] < TRUSTED)
    share, error = group["share"].values, group["error"].values
    known, its_error = group["reference_share"].values, group["reference_error"].values
    missed = (share == 0) & (known > SEEN) & (known > 3 * its_error)
    found = [
        (
            f"mode {k} ({_place(group, int(k))}) holds about {known[k]:.0%} of the mass by the "
            "reference's own draws, and no chain visited it: give more warm-up, or more rungs"
        )
        for k in np.flatnonzero(missed)
    ]
    apart = np.abs(share - known) > APART + ERRORS * np.hypot(error, its_error)
    found += [
        (
            f"mode {k} ({_place(group, int(k))}) has {share[k]:.1%} of the draws, and "
            f"{known[k]:.1%} of the mass by the reference's own draws: draw more, or warm up longer"
        )
        for k in np.flatnonzero(apart & ~missed & trusted)
    ]
    found += _quantile_warnings(tree, trusted=trusted)
    return found + _evidence_warnings(tree, trusted=trusted)


def _quantile_warnings(tree: Any, *, trusted: bool) -> list[str]:
    """The coordinate whose quantiles are farthest from what the reference says of them."""
    group = tree[GROUP].dataset
    if not trusted or "mass_below" not in group:
        return []
    level = group["level"].values[:, None]
    gap = np.abs(group["mass_below"].values - level)
    gap = np.where(gap > APART + ERRORS * group["mass_below_error"].values, gap, 0.0)
    if not gap.any():
        return []
    row, coordinate = np.unravel_index(int(np.argmax(gap)), gap.shape)
    name, known = scalars(tree)[0][int(coordinate)], group["mass_below"].values[row, coordinate]
    words = (
        f"{name} has {float(level[row, 0]):.0%} of the draws below one of its quantiles, and "
        f"{known:.1%} of the mass by the reference's own draws: draw more, or warm up longer"
    )
    return [words]


def vouched_for(tree: Any, variable: int, *, low: bool) -> bool:
    """Whether the reference's draws find no more mass at an end of a coordinate than the run's do.

    Then moves that are refused there miss nothing: replicas come from the reference.
    """
    if GROUP not in tree.children:
        return False
    group = tree[GROUP].dataset
    if "mass_below" not in group or not tree[GROUP].attrs["tail_shape"] < TRUSTED:
        return False
    row = 0 if low else -1
    error = float(group["mass_below_error"].values[row, variable])
    gap = float(group["mass_below"].values[row, variable] - group["level"].values[row])
    return error < AT_END and abs(gap) < AT_END + ERRORS * error


def _evidence_warnings(tree: Any, *, trusted: bool) -> list[str]:
    if "evidence" not in tree.children or not trusted:
        return []
    evidence = tree["evidence"].dataset
    names = [str(name) for name in evidence["estimator"].values]
    if BRIDGE not in names or len(names) < 2:
        return []
    values, errors = evidence["log_evidence"].values, evidence["error"].values
    other = names.index(BRIDGE)
    gap = abs(float(values[0] - values[other]))
    if not gap > GAP + ERRORS * float(np.hypot(errors[0], errors[other])):
        return []
    words = (
        f"log evidence from the rungs and from a bridge to the reference differ by {gap:.2f}, "
        "beyond their errors: one of them misses mass; draw more, or warm up longer"
    )
    return [words]


def _place(group: Any, k: int) -> str:
    """Where a mode is, in a few words."""
    words = []
    for name, array in group.data_vars.items():
        if str(name).startswith("center_") and len(words) < 2:
            values = np.ravel(array.values[k])[:3]
            shown = ", ".join(f"{value:.3g}" for value in values)
            more = ", ..." if np.size(array.values[k]) > 3 else ""
            words.append(f"{str(name).removeprefix('center_')} = {shown}{more}")
    return "; ".join(words)
