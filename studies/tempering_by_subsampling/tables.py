"""The tables, as CSV and as markdown with the paper's figures beside ours.

A rate is effective samples of all three chains per wall second of the whole run, the half that is
thrown away included. The paper's own estimator (`ess_between`) comes first and ArviZ's second; a
star marks a run whose R-hat, as the paper defines it, is 1.1 or more.
"""

from collections import defaultdict
from pathlib import Path
from typing import Any

import dimensions
import numpy as np
from cost import VARIANTS
from experiment import machines, write_csv
from printed import EXPECTED_COST, OBSERVED_COST, TABLE_1, TABLE_2
from settings import HMC_STEP, SAMPLERS
from sizes import PANELS

Rows = list[dict[str, Any]]
MOVES = {"hmc": "HMC", "metropolis": "MH"}
TITLES = {"plain": "inner alone", "stt": "STT", "tt": "TT", "spt": "SPT", "pt": "PT"}
EXTRA = {"normal": 0, "gp": 2}
# Numbers of rows that are a table's; the others are points of figure 3.
TABLE_ROWS = {
    ("gp", "hmc"): (dimensions.GP_ROWS, dimensions.STAND_IN_ROWS),
    ("gp", "metropolis"): (dimensions.GP_ROWS,),
} | {("normal", move): (num_rows,) for move, num_rows in dimensions.NORMAL_ROWS.items()}


def flat(results: Rows) -> dict[str, Rows]:
    """The results by kind, one flat row each; medians over seeds."""
    kinds: dict[str, Rows] = {"cost": [], "draws": [], "tuned": [], "spread": []}
    for result in (one for one in results if one["kind"] != "mobility"):
        setting = {
            name: result[name]
            for name in ("problem", "num_rows", "dimension", "move", "sampler", "seconds")
        }
        if result["kind"] == "cost":
            kinds["cost"] += [
                setting
                | {"sampler": sampler, "num_rounds": result["num_rounds"]}
                | {f"{kind}_ratio": cost[kind][1] for kind in ("wall", "cpu")}
                | {f"{kind}_low": cost[kind][0] for kind in ("wall", "cpu")}
                | {f"{kind}_high": cost[kind][2] for kind in ("wall", "cpu")}
                | {
                    name: cost[name]
                    for name in ("evaluated", "with_swaps", "theory", "microseconds")
                }
                for sampler, cost in result["costs"].items()
            ]
        elif result["kind"] == "spread":
            kinds["spread"] += [
                setting | {"run": i, "ess_between": one, "ess": other}
                for i, (one, other) in enumerate(
                    zip(result["ess_between"], result["ess"], strict=True)
                )
            ]
        else:
            kinds[result["kind"]].append(setting | _rates(result))
    for kind in ("draws", "tuned"):
        kinds[kind] = _over_seeds(kinds[kind])
    return kinds


def _rates(result: dict[str, Any]) -> dict[str, Any]:
    wall, rows = result["wall"], result["rows"]
    return {
        "num_draws": result["num_draws"],
        "wall": wall,
        "cpu": result["cpu"],
        "first_call": result["first_call"],
        "rhat_between": result["rhat_between"],
        "rhat": result["rhat"],
        "ess_between_per_second": result["ess_between"] / wall,
        "ess_per_second": result["ess"] / wall,
        "least_ess_per_second": result["least_ess"] / wall,
        "ess": result["ess"],
        "least_ess": result["least_ess"],
        "ess_per_cpu_second": result["ess"] / result["cpu"],
        "least_ess_per_cpu_second": result["least_ess"] / result["cpu"],
        "ess_per_million_rows": 1e6 * result["ess"] / rows,
        "ess_per_thousand": 1e3 * result["ess"] / result.get("cubes", rows / result["num_rows"]),
        "acceptance": result["acceptance"],
        "transition_rate": result.get("transition_rate", float("nan")),
        "least_swap_acceptance": float(np.min(result.get("swap_acceptance", np.nan))),
    }


def _over_seeds(rows: Rows) -> Rows:
    groups = defaultdict(list)
    for row in rows:
        groups[tuple(row[n] for n in ("problem", "num_rows", "dimension", "move", "sampler"))] += [
            row
        ]
    return [
        {
            name: value if isinstance(value, str) else float(np.median([r[name] for r in group]))
            for name, value in group[0].items()
        }
        | {"num_seeds": len(group)}
        for group in groups.values()
    ]


def write_all(results: Rows, folder: Path) -> None:
    """Every table of what has been run, as CSV, and all of them in tables.md."""
    kinds = flat(results)
    for kind, rows in kinds.items():
        if rows:
            write_csv(folder / f"{kind}.csv", rows)
    parts = ["# Tempering by subsampling, rerun", "", machines(results), ""]
    parts += _costs(kinds["cost"])
    for number, problem, printed in ((1, "gp", TABLE_1), (2, "normal", TABLE_2)):
        parts += _rates_table(kinds["draws"], number, problem, printed)
    parts += _by_size(kinds["draws"])
    parts += _steps(kinds["draws"])
    parts += _winners(kinds["tuned"]) + _spread(kinds["spread"]) + _mobility(results)
    (folder / "tables.md").write_text("\n".join(parts) + "\n")


def _mobility(results: Rows) -> list[str]:
    """Squared jumps for what they cost, relative to the inner sampler with the paper's settings."""
    lines = []
    for result in (r for r in results if r["kind"] == "mobility"):
        found = result["mobility"]
        lines += [
            f"## How far an iteration goes: {result['problem']}, N = {result['num_rows']}, D = "
            f"{result['dimension']}", "",
            "Squared jumps in posterior standard deviations, averaged over parameters; a cube is one value "
            "with its gradient on all rows.", "",
            "| sampler | squared jump | cubes | jump a cube, relative to plain | accepted |",
            "|---|---|---|---|---|",
            *(
                f"| {name} | {one['jump']:.4g} | {one['cubes']:.2f} | "
                f"{one['per_cube'] / found['plain']['per_cube']:.2f} | {one.get('accepted', 1.0):.2f} |"
                for name, one in found.items()
            ),
            "",
        ]  # fmt: skip
    return lines


def _costs(rows: Rows) -> list[str]:
    """Figure 1: the cost of an iteration relative to the inner sampler's."""
    if not rows:
        return []
    lines = [
        "## Figure 1: cost of an iteration, relative to the inner sampler alone", "",
        "The inner sampler is in double precision throughout. *hot*: gradients on all subsamples but the "
        "whole are in single precision; *always*: all gradients are.", "",
        "| problem | inner | N | sampler | wall | CPU | evaluated | with swaps | theory "
        "| paper observed | paper expected |", "|---|---|---|---|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    largest = {p: max(r["num_rows"] for r in rows if r["problem"] == p) for p in _problems(rows)}
    rank = [*SAMPLERS, *VARIANTS].index
    rows = sorted(rows, key=lambda r: (r["problem"], r["move"], r["num_rows"], rank(r["sampler"])))
    for row in rows:
        if row["sampler"] == "plain":
            continue
        problem, sampler = row["problem"], row["sampler"]
        is_printed = row["move"] == "hmc" and row["num_rows"] == largest[problem]
        observed = OBSERVED_COST[problem].get(sampler, "") if is_printed else ""
        expected = EXPECTED_COST[problem].get(sampler, "") if is_printed else ""
        lines.append(
            f"| {problem} | {MOVES[row['move']]} | {row['num_rows']} | "
            f"{TITLES.get(sampler, sampler)} | {_range(row, 'wall')} | {_range(row, 'cpu')} | "
            f"{row['evaluated']:.3f} | {row['with_swaps']:.3f} | {row['theory']:.3f} | {observed} | {expected} |"
        )
    return [*lines, ""]


def _range(row: dict[str, Any], kind: str) -> str:
    return f"{row[f'{kind}_ratio']:.2f} ({row[f'{kind}_low']:.2f} to {row[f'{kind}_high']:.2f})"


def _problems(rows: Rows) -> set[str]:
    return {row["problem"] for row in rows}


def _rates_table(rows: Rows, number: int, problem: str, printed: dict[str, Any]) -> list[str]:
    """Table 1 or 2: our rate by the paper's estimator / by ArviZ's, and the paper's."""
    lines = [f"## Table {number}: effective samples a second", ""]
    lines += ["By the paper's estimator / by ArviZ's [the paper's figure].", ""]
    start = len(lines)
    for move, by_size in printed.items():
        those = [row for row in rows if row["problem"] == problem and row["move"] == move]
        sizes = [n for n in TABLE_ROWS[problem, move] if any(r["num_rows"] == n for r in those)]
        for num_rows in sizes:
            lines += [
                f"N = {int(num_rows)}, {MOVES[move]} within", "",
                "| parameters | " + " | ".join(TITLES[s] for s in SAMPLERS) + " |",
                "|---" * (len(SAMPLERS) + 1) + "|",
            ]  # fmt: skip
            for parameters, figures in by_size.items():
                cells = [
                    _cell(those, num_rows, parameters - EXTRA[problem], sampler, figures[sampler])
                    for sampler in SAMPLERS
                ]
                if any(not cell.startswith("[") for cell in cells):
                    lines.append(f"| {parameters} | " + " | ".join(cells) + " |")
            lines.append("")
    return lines if len(lines) > start else []


def _cell(rows: Rows, num_rows: int, dimension: int, sampler: str, figure: str) -> str:
    for row in rows:
        found = row["num_rows"], row["dimension"], row["sampler"]
        if found == (num_rows, dimension, sampler):
            star = "" if row["rhat_between"] < 1.1 else "*"
            return (
                f"{row['ess_between_per_second']:.3g}{star} / {row['ess_per_second']:.3g} "
                f"[{figure}]"
            )
    return f"[{figure}]"


def _by_size(rows: Rows) -> list[str]:
    """Figure 3 as a table."""
    lines = ["## Figure 3: effective samples a second, by the number of rows", ""]
    lines += ["By the paper's estimator / by ArviZ's.", ""]
    start = len(lines)
    for problem, dimension, move in PANELS:
        those = [
            row
            for row in rows
            if (row["problem"], row["dimension"], row["move"]) == (problem, dimension, move)
        ]
        sizes = sorted({int(row["num_rows"]) for row in those})
        if not sizes:
            continue
        lines += [
            f"{problem}, {dimension + EXTRA[problem]} parameters, {MOVES[move]} within", "",
            "| N | " + " | ".join(TITLES[s] for s in SAMPLERS) + " |",
            "|---" * (len(SAMPLERS) + 1) + "|",
        ]  # fmt: skip
        for num_rows in sizes:
            cells = [
                _cell(those, num_rows, dimension, sampler, "").replace(" []", "").replace("[]", "")
                for sampler in SAMPLERS
            ]
            lines.append(f"| {num_rows} | " + " | ".join(cells) + " |")
        lines.append("")
    return lines if len(lines) > start else []


def _steps(rows: Rows) -> list[str]:
    """The paper's settings but for HMC's step."""
    those = [r for r in rows if r["problem"] == "gp" and r["dimension"] == 18]
    lines = []
    for num_rows in sorted({int(r["num_rows"]) for r in those if " " in r["sampler"]}):
        for name in ("plain", "stt"):
            for row in those:
                words = row["sampler"].split()
                if row["num_rows"] == num_rows and row["move"] == "hmc" and words[0] == name:
                    step = float(words[2]) if len(words) > 2 else HMC_STEP
                    star = "" if row["rhat_between"] < 1.1 else "*"
                    lines.append(
                        (num_rows, name, step, f"{row['ess_between_per_second']:.3g}{star}",
                         f"{row['ess_per_second']:.3g}", f"{row['rhat']:.2f}",
                         f"{row['acceptance']:.2f}", f"{row['transition_rate']:.2f}")
                    )  # fmt: skip
    if not lines:
        return []
    return [
        "## The step of HMC: effective samples a second, all else as in the paper", "",
        "| N | sampler | step | by the paper's estimator | by ArviZ's | R-hat | acceptance "
        "| transitions accepted |", "|---|---|---|---|---|---|---|---|",
        *("| " + " | ".join(map(str, line)) + " |" for line in sorted(lines)), "",
    ]  # fmt: skip


def _winners(rows: Rows) -> list[str]:
    if not rows:
        return []
    lines = [
        "## Tuned samplers: effective samples by what they cost", "",
        "Per second of drawing: median over dimensions, and the least. Per thousand: of evaluations of "
        "all rows with gradient, a subsample counted as its share of rows or, for a Gaussian "
        "process, of n^3. First call: compiling and warming up.", "",
        "| problem | rows | method | draws | R-hat | ESS/s | ESS/CPU s | against plain "
        "| least ESS/CPU s | against plain | ESS per thousand | first call, s |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    plain = {(r["problem"], r["num_rows"]): r for r in rows if r["sampler"] == "plain"}
    for row in rows:
        base = plain.get((row["problem"], row["num_rows"]), {})
        typical, least = (
            f"{row[name]:.3g} | {row[name] / base.get(name, np.nan):.2f}"
            for name in ("ess_per_cpu_second", "least_ess_per_cpu_second")
        )
        lines.append(
            f"| {row['problem']} | {int(row['num_rows'])} | {row['sampler']} | "
            f"{int(row['num_draws'])} | {row['rhat']:.3f} | {row['ess_per_second']:.3g} | "
            f"{typical} | {least} | {row['ess_per_thousand']:.3g} | {row['first_call']:.0f} |"
        )
    return [*lines, ""]


def _spread(rows: Rows) -> list[str]:
    if not rows:
        return []
    lines = [
        "## How much one run of three chains says", "",
        "The same sampler, twenty runs of three chains: effective size by either estimator, "
        "median over dimensions.", "",
        "| problem | N | parameters | estimator | least | median | largest | largest / least |",
        "|---|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for problem in sorted(_problems(rows)):
        those = [row for row in rows if row["problem"] == problem]
        for name, title in (("ess_between", "the paper's"), ("ess", "ArviZ's")):
            values = np.array([row[name] for row in those])
            lines.append(
                f"| {problem} | {those[0]['num_rows']} | "
                f"{those[0]['dimension'] + EXTRA[problem]} | {title} | {values.min():.3g} | "
                f"{np.median(values):.3g} | {values.max():.3g} | "
                f"{values.max() / values.min():.2f} |"
            )
    return [*lines, ""]
