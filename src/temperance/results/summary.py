"""Whether to believe a run: a table, the ladder's facts, and warnings in words.

The table is ArviZ's (rank-normalised split R-hat, bulk and tail ESS; Vehtari et al. 2021) with
paper 1's between-chain R-hat and ESS beside it: those see chains that disagree and nothing else,
and with a handful of chains they are very noisy (diagnostics.py says how noisy).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from temperance.moves.minibatch.batch_law import flattening
from temperance.estimates.diagnostics import ess_between, rhat_between
from temperance.results.rings import ring_facts, ring_warnings
from temperance.results.travels import bound_facts, travel_facts, travel_warnings
from temperance.results.weighted_table import weighted_table

RHAT, ESS_PER_CHAIN = 1.01, 100
# Uncorrected noise of this variance flattens by about 8 %; this share of steps may be doubtful.
SMALL_NOISE, DOUBTFUL = 0.04, 0.01
# Beyond this the log of a mean is no longer near its expansion.
LARGE_ERROR = 0.5
LOW_SWAP, FEW_TRIPS, LOW_TRANSITION = 0.1, 5, 0.05


@dataclass(frozen=True)
class Summary:
    """`table` by variable, `facts` of the run by name, `warnings` as sentences."""

    table: Any
    facts: dict[str, Any]
    warnings: list[str]

    def __str__(self) -> str:
        """The table, the facts and the warnings, for a terminal."""
        facts = "\n".join(f"  {name}: {_show(value)}" for name, value in self.facts.items())
        text = f"{self.table.to_string(float_format=lambda v: f'{v:.4g}')}\n\n{facts}"
        if not self.warnings:
            return f"{text}\n\nNo warnings."
        return text + "\n\n" + "\n".join(f"Warning: {words}" for words in self.warnings)

    def _repr_html_(self) -> str:
        items = "".join(f"<li>{words}</li>" for words in self.warnings)
        facts = "".join(f"<li>{n}: {_show(v)}</li>" for n, v in self.facts.items())
        return f"{self.table.to_html()}<ul>{facts}</ul><b>Warnings</b><ul>{items}</ul>"


def summary(tree: Any) -> Summary:
    """ArviZ's table, round trips, barrier and swap rates, and warnings in words."""
    from temperance.results.arviz import summary_table

    facts = _facts(tree)
    if "log_weight" in tree["sample_stats"].dataset:
        table = weighted_table(tree)
        return Summary(table, facts, _warnings(tree, table, facts))
    table = summary_table(tree)
    posterior = tree["posterior"].dataset
    between = {"rhat_between": rhat_between, "ess_between": ess_between}
    if posterior.sizes["chain"] > 1 and posterior.sizes["draw"] > 1:
        for name, measure in between.items():
            columns = [
                np.ravel(measure(posterior[variable].values)) for variable in posterior.data_vars
            ]
            table[name] = np.concatenate(columns)
    return Summary(table, facts, _warnings(tree, table, facts))


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
    if "tempering" in tree.children:
        ladder = tree["tempering"].dataset
        if "noise_variance" in ladder:
            return facts | _noise_facts(ladder)
        if "rung" in ladder["step_size"].dims and ("beta" in ladder or "kish" not in ladder):
            facts["rungs"] = ladder.sizes["rung"]
        if "size" in ladder:
            facts["rows by rung"] = ladder["size"].values
        if "swap_acceptance" in ladder:
            facts["round trips by chain"] = ladder["round_trips"].values
            facts["communication barrier"] = float(ladder["barrier"])
            facts["swap acceptance"] = ladder["swap_acceptance"].values
        facts |= ring_facts(ladder) | travel_facts(ladder)
        if "transition_rate" in ladder:
            facts["transitions accepted"] = float(ladder["transition_rate"])
    elif "batch_raised" in tree["sample_stats"].dataset:
        facts["steps that read all rows"] = float(tree["sample_stats"]["batch_raised"].mean())
    if "evidence" in tree.children:
        for row in tree["evidence"]["estimator"].values:
            chosen = tree["evidence"].dataset.sel(estimator=row)
            facts[f"log evidence ({row})"] = (
                f"{float(chosen['log_evidence']):.4f} +- {float(chosen['error']):.4f}"
            )
        facts |= bound_facts(tree["evidence"].dataset)
    return facts


def _noise_facts(batches: Any) -> dict[str, Any]:
    beta = float(batches["beta"].values[0])
    return {
        "law": f"the posterior to the power 1/T, T = {1 / beta:.4g} (and not the posterior)",
        "rows of a batch": int(batches["size"].values[0]),
        "variance of the noise": float(batches["noise_variance"]),
        "steps with a larger batch": float(batches["raised_rate"]),
        "steps to be trusted": float(batches["trusted_rate"]),
    }


def _warnings(tree: Any, table: Any, facts: dict[str, Any]) -> list[str]:
    found = [*_chain_warnings(tree, table)]
    if tree.attrs.get("stopped") in ("interrupted", "max_seconds"):
        found.append(f"the run stopped early ({tree.attrs['stopped']}): {facts['chains x draws']}")
    if "tempering" in tree.children:
        found += _ladder_warnings(tree["tempering"].dataset, tree["posterior"].sizes["draw"])
    elif "batch_trusted" in tree["sample_stats"].dataset:
        found += _bound_warnings(tree["sample_stats"].dataset)
    if "evidence" in tree.children:
        found += _evidence_warnings(tree["evidence"].dataset)
    lost = tree.attrs.get("num_impossible", 0.0)
    steps = tree.attrs.get("num_evaluations", 0.0)
    if lost:
        found.append(
            f"{lost:.0f} proposals, in {steps:.3g} evaluations, ended where the log density is "
            "-inf: outside of the support, or where a covariance matrix is not positive definite. "
            "The draws are right; if there are many, a larger jitter or other coordinates help"
        )
    return found


def _chain_warnings(tree: Any, table: Any) -> list[str]:
    found = []
    chains = tree["posterior"].sizes["chain"]
    if chains == 1:
        found.append("one chain cannot be compared with another: run at least four")
    column = "r_hat" if "r_hat" in table else "rhat"
    if column in table:
        worst = table[column].astype(float)
        if (worst > RHAT).any():
            found.append(
                f"chains disagree: R-hat of {worst.idxmax()} is {worst.max():.3f} (want below "
                f"{RHAT}); warm up longer, or heat further if the posterior has several modes"
            )
    weighted = "ess" in table
    least = table["ess" if weighted else "ess_bulk"].astype(float)
    if (least < ESS_PER_CHAIN * chains).any():
        found.append(
            f"few independent draws: {'' if weighted else 'bulk '}ESS of {least.idxmin()} is "
            f"{least.min():.0f} (want "
            f"{ESS_PER_CHAIN * chains}); draw more"
        )
    divergent = int(tree["sample_stats"]["diverging"].sum())
    if divergent:
        found.append(
            f"{divergent} divergent trajectories at the target: the step is too long somewhere; "
            "raise target_acceptance, or write the model in other coordinates"
        )
    return found


def _ladder_warnings(ladder: Any, num_draws: int) -> list[str]:
    found = _noise_warnings(ladder) if "noise_variance" in ladder else []
    if "swap_acceptance" in ladder:
        rates = ladder["swap_acceptance"].values
        worst = int(np.argmin(rates))
        if rates[worst] < LOW_SWAP:
            found.append(
                f"rungs {worst} and {worst + 1} hardly swap ({rates[worst]:.1%}): replicas "
                f"cannot pass; give more than {len(rates) + 1} rungs, or warm up longer"
            )
        trips = ladder["round_trips"].values
        if trips.min() < FEW_TRIPS:
            found.append(
                f"a chain made {int(trips.min())} round trips in {num_draws} draws: how often it "
                "visits each mode is not yet to be trusted; draw more, or give more rungs"
            )
    if "transition_rate" in ladder and float(ladder["transition_rate"]) < LOW_TRANSITION:
        found.append(
            f"only {float(ladder['transition_rate']):.1%} of tempered transitions were accepted: "
            "give more rungs (num_rungs=) or a longer move at each"
        )
    if "left_behind" in ladder and ladder["left_behind"].any():
        left = ladder["left_behind"].values
        found.append(
            f"{int(left.sum())} of {left.size} replicas ended warm-up where no draw ever was: "
            f"there may be modes that the {'jumps' if 'level' in ladder else 'transitions'} do not "
            "reach, and nothing here says how much they weigh; heat further (hottest=), or use "
            "parallel tempering"
        )
    return found + ring_warnings(ladder) + travel_warnings(ladder, num_draws)


def _bound_warnings(stats: Any) -> list[str]:
    doubtful = 1 - float(stats["batch_trusted"].mean())
    if not doubtful:
        return []
    words = (
        f"in {doubtful:.2%} of steps a row changed by more than its bound allows: the draws are "
        "not from the posterior, and by how much nobody knows; check that the bounds are of these "
        "terms and of these rows in their order, or give larger ones"
    )
    return [words]


def _noise_warnings(batches: Any) -> list[str]:
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


def _evidence_warnings(evidence: Any) -> list[str]:
    values, errors = evidence["log_evidence"].values, evidence["error"].values
    if len(values) == 1 or "reverse" in evidence["estimator"].values:
        return _weight_warnings(evidence)
    if not np.isfinite(errors).all():
        return ["log evidence has no error bar: some neighbouring rungs share no draws; add rungs"]
    gap, error = abs(values[0] - values[1]), float(np.hypot(errors[0], errors[1]))
    if gap > 4 * error:
        return [f"the two estimates of log evidence differ by {gap:.2f}, far beyond their errors"]
    return []


def _weight_warnings(evidence: Any) -> list[str]:
    """Of one estimate, or of two bounds, which may well differ."""
    values, errors = evidence["log_evidence"].values, evidence["error"].values
    if not np.isfinite(values).all() or not np.isfinite(errors).all():
        return ["log evidence has no error bar: the weights of nearly all draws are zero"]
    worst = float(errors.max())
    if worst > LARGE_ERROR:
        words = (
            f"log evidence has a standard error of {worst:.2g}, too large for it to be one: a few "
            "draws have nearly all of the weight; give more rungs, or a base nearer to the target"
        )
        return [words]
    return []


def _show(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return np.array2string(value, precision=2, separator=", ", max_line_width=90)
    return f"{value:.4g}" if isinstance(value, float) else str(value)
