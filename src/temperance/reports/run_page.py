"""The page of one run: should I believe it, what does it say, how was it made."""

from typing import Any

import numpy as np

from temperance import __version__
from temperance.methods import report_of
from temperance.reports import run_figures as figures
from temperance.reports.page import (
    code,
    notes,
    page,
    paragraph,
    picture,
    section,
    table,
    warnings,
)
from temperance.results.cite import cite
from temperance.results.modes import missed_sentence
from temperance.results.summary import Summary, summary

MOST_ROWS = 60


def run_page(tree: Any) -> str:
    """The page as HTML."""
    said = summary(tree)
    posterior = tree["posterior"].dataset
    attrs = tree.attrs
    sizes = posterior.sizes
    lead = (
        f"{sizes['chain']} chains of {sizes['draw']} draws by method {attrs.get('method', '?')!r} "
        f"in {attrs.get('seconds', float('nan')):.1f} s, seed {attrs.get('seed', '?')}."
    )
    sections = [
        section("Should I believe it?", warnings(said.warnings), notes(said.notes)),
        section("The posterior", _table(said), _marginals(tree)),
        *_modes(tree, said),
        *_tempering(tree),
        *_evidence(tree),
        section("How it was made", _facts(said, attrs)),
        section(
            "Whom to cite",
            paragraph("BibTeX of the method and moves that this run used.", "note"),
            code(cite(tree) or "Nothing beyond the package itself."),
        ),
    ]
    return page(f"Run by {attrs.get('method', '?')}", lead, sections, f"Temperance {__version__}")


def _table(said: Summary) -> str:
    frame = said.table.head(MOST_ROWS)
    rows = [
        [str(name), *(show(value) for value in row)]
        for name, row in zip(frame.index, frame.to_numpy(), strict=True)
    ]
    left_out = len(said.table) - len(frame)
    note = paragraph(f"{left_out} more variables are in the file.", "note") if left_out else ""
    return table(["", *map(str, frame.columns)], rows) + note


def _modes(tree: Any, said: Summary) -> list[str]:
    """What the hunt found, where there was one."""
    if said.modes is None:
        return []
    frame = said.modes.head(MOST_ROWS)
    rows = [
        [str(name), *(show(value) for value in row)]
        for name, row in zip(frame.index, frame.to_numpy(), strict=True)
    ]
    words = (
        "The shares by the run's draws and by independent draws of the reference are estimates of "
        "the same masses. " + (missed_sentence(tree) or "").capitalize() + "."
    )
    found = picture(figures.modes(tree["modes"].dataset), words)
    return [section("The modes", table(["mode", *map(str, frame.columns)], rows), found)]


def _marginals(tree: Any) -> str:
    posterior, stats = tree["posterior"].dataset, tree["sample_stats"].dataset
    logs = stats["log_weight"].values if "log_weight" in stats else None
    total = len(figures.scalars(posterior))
    shown = min(total, figures.MOST_VARIABLES)
    which = "" if shown == total else f" The {shown} of {total} whose chains disagree most."
    caption = (
        "Marginals (left) and traces (right), one colour for each chain. Chains that agree lie on "
        "top of each other." + which
    )
    if logs is not None:
        caption += " The marginals are weighted, and the traces are of all temperatures."
    return picture(figures.marginals(posterior, logs), caption)


def _tempering(tree: Any) -> list[str]:
    """The pictures that the method's report names."""
    names = report_of(tree.attrs).pictures
    parts = [picture(*PICTURES[name](tree)) for name in names]
    return [section("The ladder", *parts)] if parts else []


def _ladder(tree: Any) -> tuple[Any, str]:
    words = (
        "Even bars mean a well-spaced ladder; the barrier says how many rungs it wants "
        "(about twice as many as the barrier)."
    )
    return figures.ladder(tree["tempering"].dataset), words


def _replica_paths(tree: Any) -> tuple[Any, str]:
    ladder = tree["tempering"].dataset
    got = float(ladder["round_trips"].mean()) / tree["posterior"].sizes["draw"]
    words = f"Where replicas go. {got:.3f} round trips a draw in each chain."
    return figures.replica_paths(ladder), words


def _temperatures(tree: Any) -> tuple[Any, str]:
    words = "A chain that goes to and fro between base and target sees every mode on its way."
    return figures.temperatures(tree), words


def _transitions(tree: Any) -> tuple[Any, str]:
    words = (
        "Each transition climbs the whole ladder and comes back; it is accepted with "
        "probability min(1, exp of this ratio)."
    )
    return figures.transitions(tree), words


# By the names that pieces of a report have for them.
PICTURES = {
    "ladder": _ladder,
    "replica paths": _replica_paths,
    "temperatures": _temperatures,
    "transitions": _transitions,
}


def _evidence(tree: Any) -> list[str]:
    if "evidence" not in tree.children:
        return []
    found = tree["evidence"].dataset
    rows = [
        [str(name), f"{float(value):.4f}", f"{float(error):.4f}"]
        for name, value, error in zip(
            found["estimator"].values,
            found["log_evidence"].values,
            found["error"].values,
            strict=True,
        )
    ]
    said = [table(["estimator", "log Z", "standard error"], rows)]
    words = (
        "log Z is counted from the hottest rung, a normalised density. An error bar does not cover "
        "mass that no chain has visited."
    )
    by_rung = "log_ratio" in found
    said.append(picture(figures.evidence(tree), words) if by_rung else paragraph(words, "note"))
    return [section("log evidence", *said)]


def _facts(said: Summary, attrs: dict[str, Any]) -> str:
    facts = {name: show(value) for name, value in said.facts.items()}
    extra = ("move", "num_warmup", "sweeps_per_draw", "precision", "num_rows", "seed")
    facts |= {name.replace("_", " "): show(attrs[name]) for name in extra if name in attrs}
    return table(["", "value"], [[name, value] for name, value in facts.items()], words="value")


def show(value: Any) -> str:
    """A number as a person writes it."""
    if isinstance(value, np.ndarray):
        return np.array2string(value, precision=2, separator=", ")
    if isinstance(value, bool | str) or value is None:
        return str(value)
    if isinstance(value, int | np.integer):
        return f"{value:,}"
    number = float(value)
    if number.is_integer() and abs(number) >= 1e4:
        return f"{number:,.0f}"
    return f"{number:.4g}"
