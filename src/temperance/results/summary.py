"""Whether to believe a run: a table, the ladder's facts, and warnings and notes in words.

A warning says why not to trust the run yet. A note is a fact that is worth knowing: the draws are
right with it.

The table is ArviZ's (rank-normalised split R-hat, bulk and tail ESS; Vehtari et al. 2021). Beside
it stand `r_hat_chance`, how likely chains that agree are as far apart (estimates/agreement.py), and
paper 1's between-chain R-hat and ESS: those see chains that disagree and nothing else, and with a
handful of chains they are very noisy (diagnostics.py says how noisy).
"""

from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from temperance.estimates.agreement import agreement
from temperance.estimates.diagnostics import ess_between, rhat_between
from temperance.methods import known_method, report_of
from temperance.results.chain_checks import Chains
from temperance.results.modes import mode_facts, mode_notes, mode_table, mode_warnings, vouched_for
from temperance.results.weighted_table import weighted_table


@dataclass(frozen=True)
class Summary:
    """`table` by variable, `facts` of the run by name, `warnings` and `notes` as sentences.

    `modes` is a table of the modes, where they were hunted for.

    A warning says why not to trust the run yet, and what to do. A note is no reason for distrust.
    """

    table: Any
    facts: dict[str, Any]
    warnings: list[str]
    notes: list[str]
    modes: Any = None

    def __str__(self) -> str:
        """The table, the facts, the warnings and the notes, for a terminal."""
        facts = "\n".join(f"  {name}: {_show(value)}" for name, value in self.facts.items())
        text = f"{self.table.to_string(float_format=lambda v: f'{v:.4g}')}\n\n"
        if self.modes is not None:
            text += f"{self.modes.to_string(float_format=lambda v: f'{v:.3g}')}\n\n"
        text += facts
        said = [f"Warning: {words}" for words in self.warnings] or ["No warnings."]
        said += [f"Note: {words}" for words in self.notes]
        return text + "\n\n" + "\n".join(said)

    def _repr_html_(self) -> str:
        facts = [f"{name}: {_show(value)}" for name, value in self.facts.items()]
        said = "<b>Warnings</b>" + _items(self.warnings or ["No warnings."])
        if self.notes:
            said += "<b>Notes</b>" + _items(self.notes)
        modes = "" if self.modes is None else self.modes.to_html()
        return self.table.to_html() + modes + _items(facts) + said


def summary(tree: Any) -> Summary:
    """ArviZ's table, round trips, barrier and swap rates, and warnings and notes in words."""
    report = report_of(tree.attrs)
    table = weighted_table(tree) if report.weighted else equal_table(tree)
    facts = _facts(tree) | report.facts(tree) | mode_facts(tree)
    chains = Chains(
        tree,
        table,
        serial=report.serial,
        weighted=report.weighted,
        remedy=report.if_chains_disagree,
        vouched=lambda variable, low: vouched_for(tree, variable, low=low),
    )
    found = chains.warnings()
    if tree.attrs.get("stopped") in ("interrupted", "max_seconds"):
        found.append(
            f"the run stopped early ({tree.attrs['stopped']}): {facts['chains x draws']} draws; "
            "go on from its checkpoint, or see whether the effective sizes are enough"
        )
    found += report.warnings(tree) + mode_warnings(tree)
    notes = chains.notes() + report.notes(tree) + mode_notes(tree) + _support_notes(tree)
    if tree.attrs.get("stopped") == "target_ess":
        notes.append(f"the run stopped at the effective size asked for: {facts['chains x draws']}")
    if "method" in tree.attrs and known_method(tree.attrs) is None:
        found.append(
            f"method {tree.attrs['method']!r} is not registered here, so that its own facts "
            "and warnings are missing; import the file that registers it"
        )
    return Summary(table, facts, found, notes, mode_table(tree))


def equal_table(tree: Any) -> Any:
    """ArviZ's table, with paper 1's diagnostics between chains beside it."""
    from temperance.results.arviz import summary_table

    table = summary_table(tree)
    posterior = tree["posterior"].dataset
    agree = [np.ravel(agreement(array.values).chance) for array in posterior.data_vars.values()]
    table["r_hat_chance"] = np.concatenate(agree)
    between = {"rhat_between": rhat_between, "ess_between": ess_between}
    if posterior.sizes["chain"] > 1 and posterior.sizes["draw"] > 1:
        for name, measure in between.items():
            columns = [
                np.ravel(measure(posterior[variable].values)) for variable in posterior.data_vars
            ]
            table[name] = np.concatenate(columns)
    return table


def _facts(tree: Any) -> dict[str, Any]:
    posterior = tree["posterior"].dataset
    facts: dict[str, Any] = {
        "method": tree.attrs.get("method"),
        "chains x draws": f"{posterior.sizes['chain']} x {posterior.sizes['draw']}",
        "seconds": tree.attrs.get("seconds"),
        "density evaluations": tree.attrs.get("num_evaluations"),
        "divergent": float(tree["sample_stats"]["diverging"].mean()),
    }
    if tree.attrs.get("num_row_evaluations"):
        facts["row evaluations"] = float(tree.attrs["num_row_evaluations"])
    return facts


def _support_notes(tree: Any) -> list[str]:
    lost = tree.attrs.get("num_impossible", 0.0)
    if not lost:
        return []
    words = (
        f"{lost:.0f} proposals, in {tree.attrs.get('num_evaluations', 0.0):.3g} evaluations, ended "
        "where the log density is -inf: outside of the support, or where a covariance matrix is "
        "not positive definite. They were refused, and the draws are right; if there are many, a "
        "larger jitter or other coordinates make the run shorter"
    )
    return [words]


def _items(sentences: list[str]) -> str:
    return "<ul>" + "".join(f"<li>{escape(words)}</li>" for words in sentences) + "</ul>"


def _show(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return np.array2string(value, precision=2, separator=", ", max_line_width=90)
    return f"{value:.4g}" if isinstance(value, float) else str(value)
