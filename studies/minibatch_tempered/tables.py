"""The tables as markdown, with the paper's figures beside ours."""

from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from experiment import machines
from printed import STEP_LENGTHS, TABLE_1, TABLE_2
from sections import mean_and_error, table

Rows = list[dict[str, Any]]
# How much sooner than MCMC on all rows a mini-batch should predict as well.
WANTED_GAIN = 50
KINDS = ("law", "tied", "normality", "batch", "accuracy", "reaching", "reasons", "modes", "tall")
TESTS = {
    "barker": "MHMINIBATCH",
    "austere": "AUSTEREMH, not conservative",
    "austere conservative": "AUSTEREMH, conservative",
    "confident": "MHSUBLHD",
    "exact": "all rows",
    "mint": "MINT",
}


def by_kind(results: Rows) -> dict[str, Rows]:
    """The results by what ran them."""
    return {kind: [row for row in results if row["kind"] == kind] for kind in KINDS}


def write_all(results: Rows, folder: Path) -> None:
    """Every table of what has been run, in tables.md."""
    kinds = by_kind(results)
    parts = ["# Mini-batch tempered MCMC, rerun", "", machines(results), ""]
    for write in (_law, _tied, _accuracy, _reaching, _normality, _batches, _modes, _reasons, _tall):
        parts += write(kinds)
    (folder / "tables.md").write_text("\n".join(parts))


def _law(kinds: dict[str, Rows]) -> list[str]:
    if not kinds["law"]:
        return []
    law = kinds["law"][-1]
    rows = []
    for name, points in law["modes"].items():
        one, other = np.round(points, 3).tolist()
        same = np.allclose(points[0], points[1], atol=1e-3)
        rows.append(
            (name, one, "the same" if same else other, "" if same else f"{law['ratios'][name]:.6f}")
        )
    text = (
        f"{law['num_rows']} rows, T = {law['temperature']:.0f}. Mass outside the grid {law['outside']:.1g}; largest "
        f"error of the binned rows {law['error_of_nodes']:.1g} in the tempered log density. The paper says 1.00."
    )
    return table(
        "Tied means: the laws", text, ("law", "mode", "other mode", "ratio of heights"), rows
    )


def _tied(kinds: dict[str, Rows]) -> list[str]:
    rows = []
    for row in kinds["tied"]:
        _, ball, ball_error, balls, half, half_error, _ = row["curve"][-1]
        both = row["num_both"] > 0
        rows.append((
            row["sampler"], row["num_steps"], row["acceptance"], row["cpu"], row["rows"],
            row["total_variation"], row["floor"] if both else "", row["exact_draws"] if both else "",
            f"{half:.3f} ± {half_error:.3f}" if both else "none",
            f"{ball:.2f} ± {ball_error:.2f} ({balls})" if balls else "none", row["num_both"],
        ))  # fmt: skip
    head = ("sampler", "steps a run", "accepted", "CPU s, all runs", "rows evaluated", "total variation", "floor",
            "exact draws", "halves", "balls (runs with both)", "runs in both halves")  # fmt: skip
    text = (
        "Twenty runs, half of them from either mode. SGLD and SGHMC aim at the posterior, all others at the tempered law, "
        "which the total variation is from; a ratio that only the starts decide is none."
    )
    return table("Tied means: samplers", text, head, rows)


def _groups(rows: Rows, *names: str) -> dict[tuple[Any, ...], Rows]:
    groups: dict[tuple[Any, ...], Rows] = defaultdict(list)
    for row in rows:
        groups[tuple(row[name] for name in names)].append(row)
    return groups


def _accuracy(kinds: dict[str, Rows]) -> list[str]:
    rows = []
    for (name,), group in _groups(kinds["accuracy"], "sampler").items():
        reached = [row["reached"] for row in group if row["reached"]]
        epochs, seconds = np.transpose(reached) if reached else ([], [])
        rows.append((
            name, len(group), mean_and_error([row["acceptance"] for row in group]),
            mean_and_error([row["length"] / row["dimension"] ** 0.5 for row in group]), STEP_LENGTHS.get(name.split()[0], ""),
            mean_and_error([row["last"] for row in group]), len(reached),
            mean_and_error(epochs) if len(reached) else "", mean_and_error(seconds) if len(reached) else "",
        ))  # fmt: skip
    head = ("sampler", "seeds", "accepted", "step a coordinate", "the paper's", "accuracy, last quarter",
            "seeds that reach 0.99", "after passes", "after CPU s")  # fmt: skip
    best = kinds["accuracy"][0]["best_accuracy"] if kinds["accuracy"] else float("nan")
    text = f"Accuracy of the current draw on the test images; that of the posterior's mode is {best:.4f}."
    return table("MNIST: accuracy", text, head, rows)


def _reaching(kinds: dict[str, Rows]) -> list[str]:
    groups = _groups(kinds["reaching"], "sampler")
    full = {row["seed"]: _first(row, "draw") for row in groups.get(("mcmc",), [])}
    rows = []
    for (name,), group in groups.items():
        cells: list[Any] = []
        for what in ("draw", "mean"):
            seconds = [_first(row, what) for row in group]
            gains = [full.get(row["seed"], np.nan) / _first(row, what) for row in group]
            reached = np.isfinite(np.median(seconds))
            cells += [
                f"{np.median(seconds):.3g} ({min(seconds):.2g} to {max(seconds):.2g})" if reached else "never",
                f"{np.median(gains):.3g}, {sum(gain >= WANTED_GAIN for gain in gains)}" if reached else "",
                float(np.mean([row[what]["share_after"] for row in group])),
                mean_and_error([row[what]["last"] for row in group]),
            ]  # fmt: skip
        rows.append((name, len(group), *cells))
    head = (
        "sampler", "seeds",
        *(f"{one}, {what}" for one in ("draw", "mean")
          for what in ("s to 0.99", "MCMC's draw over it, seeds above 50", "share at 0.99 after it", "last quarter")),
    )  # fmt: skip
    text = (
        "Steps adapt from the start. Wall seconds to the first that is right in 0.99 of the test images: the median over "
        "seeds, the fastest and the slowest, inf for one that does not get there. *Mean* is the prediction averaged over "
        "the second half of the draws so far. MCMC's draw over it is the median over seeds of a ratio of times."
    )
    return table("MNIST: reaching 0.99", text, head, rows)


def _first(row: dict[str, Any], what: str) -> float:
    """The wall seconds until the goal is first reached."""
    first = row[what]["first"]
    return float(first[1]) if first else float("inf")


def _normality(kinds: dict[str, Rows]) -> list[str]:
    if not kinds["normality"]:
        return []
    rows = [
        (name, one["accuracy"], one["sd"], one["ks"], one["skewness"], one["skewness_of_terms"])
        for name, one in kinds["normality"][-1]["points"].items()
    ]
    head = (
        "at",
        "its accuracy",
        "sd of t",
        "KS distance",
        "skewness of t",
        "skewness of a row's term",
    )
    text = "5000 batches of 100 rows. Draws of a normal law would have a distance of about 0.011."
    return table("MNIST: is a batch's mean normal?", text, head, rows)


def _batches(kinds: dict[str, Rows]) -> list[str]:
    rows = []
    for (name,), group in sorted(_groups(kinds["batch"], "sampler").items()):
        ours = {row["move"]: row for row in group}
        cells = [
            f"{ours[heat]['rows_used']:.0f} ± {ours[heat]['spread']:.0f} ({ours[heat]['acceptance']:.2f})"
            if heat in ours else "" for heat in ("T1", "T100")
        ]  # fmt: skip
        printed = "{:.1f} ± {:.1f}".format(*TABLE_1[name]) if name in TABLE_1 else ""
        rows.append((TESTS[name], *cells, printed))
    if rows:
        rows.append((TESTS["mint"], "", "100 ± 0", "100"))
    head = ("test", "ours, T = 1 (accepted)", "ours, T = 100 (accepted)", "printed")
    text = "Rows a decision, their mean and standard deviation over ten runs. A step that the exact test accepts 0.3 of."
    return table("MNIST: Table 1", text, head, rows)


def _modes(kinds: dict[str, Rows]) -> list[str]:
    rows = [
        (row["sampler"], row["num_draws"], row["cpu"], row["first_call"], row["rows"] / row["num_rows"],
         row["num_modes"], row["num_changes"], row["share_clear"], row["label_ess"], row["f_ratio"],
         row["p_value"])
        for row in kinds["modes"]
    ]  # fmt: skip
    head = ("sampler", "draws", "CPU s of drawing", "warm-up and compiling, s", "passes over the data", "modes of 50",
            "changes of mode", "clear draws", "effective visits", "F (49, 147)", "p")  # fmt: skip
    return table("Fifty modes", "Four chains on one core.", head, rows)


def _reasons(kinds: dict[str, Rows]) -> list[str]:
    if not kinds["reasons"]:
        return []
    found = kinds["reasons"][-1]
    rows = [
        (
            k,
            one.batch,
            one.temperature,
            f"{heat:.2f}",
            width,
            noise,
            " / ".join(f"{v:.1f}" for v in one.rings),
        )
        for k, (one, heat, width, noise) in enumerate(
            zip(TABLE_2, found["temperatures"], found["widths"], found["noise"], strict=True)
        )
    ]
    head = (
        "chain",
        "batch",
        "T printed",
        "n / m^0.995",
        "ring's width",
        "sd of the energy's noise",
        "printed, % in each ring",
    )
    loud, quiet = (
        " / ".join(f"{v:.1f}" for v in found[f"rings_{name}_noise"]) for name in ("with", "without")
    )
    text = (
        f"A row's term has a standard deviation of {found['term_spread']:.3f}. The ladder spans {found['whole_ladder']:.0f}: "
        f"at T = 1 a regular posterior is beyond it with probability 10^{found['log10_tail']:.0f}, the table has 9.55 %. "
        f"Chain 6 without noise would have {quiet} % in its rings, with noise {loud}."
    )
    return table("Fifty modes: why Table 2 is no reference", text, head, rows)


def _tall(kinds: dict[str, Rows]) -> list[str]:
    rows = [
        (row["sampler"], row["num_draws"], row["cpu"], row["warmup_cpu"], row["least_ess"],
         row["least_ess_per_cpu_second"], f"{row['least_ratio']:.3f} to {row['largest_ratio']:.3f}",
         row["ratio_error"], row["mean_error"])
        for row in kinds["tall"]
    ]  # fmt: skip
    head = ("sampler", "draws", "CPU s of drawing", "CPU s before", "worst ESS", "worst ESS a CPU second",
            "sd over the truth", "its standard error", "worst error of a mean, in sd")  # fmt: skip
    return table("Tall data", "100,000 rows, 20 coefficients, one chain on one core.", head, rows)
