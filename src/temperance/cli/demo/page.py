"""The demo's page and the picture of the README."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from temperance._version import __version__
from temperance.reports import demo_figures, run_figures
from temperance.reports.page import page, paragraph, picture, section, table

if TYPE_CHECKING:
    from temperance.cli.demo.asking import Told
    from temperance.cli.demo.few_rows import Known

TITLE = "Which group is the larger one?"
FEW = (
    "A hundred measurements come from two groups, one a little larger than the other. Where are "
    "their centres? The posterior has two separate modes, and with two parameters their "
    "probabilities and log Z are known exactly, by summing over a grid. Three samplers are asked."
)
MANY = (
    "Now 200,000 people (20,000 if it is to be quick), of whom half were treated, and nobody wrote "
    "down who. Does the treatment raise or lower what is measured? Again there are two modes, and "
    "every look at all rows costs. "
    "PT is hot by powers of the likelihood, which look at all rows; SPT and STT are hot by using "
    "fewer."
)
LEADS = FEW, MANY


def write_page(path: Path, few: "Told", many: "Told") -> Path:
    """Write the demo's page, with the tables that the terminal shows."""
    html = page(
        TITLE, FEW, _few_rows(few) + _many_rows(many),
        f"Temperance {__version__}: written by `temperance demo`",
    )  # fmt: skip
    path.write_text(html, encoding="utf-8")
    return path


def _table(told: "Told") -> str:
    columns = told.question.columns
    return table(columns, told.cells, words=columns[-1])


def _few_rows(told: "Told") -> list[str]:
    rows, answer = told.rows, _known(told)
    tempered = next(row for row in rows if "evidence" in row.tree.children)
    ladder = tempered.tree["tempering"].dataset
    draws = rows[0].on_right.shape
    return [
        section(
            "What they say",
            _table(told),
            paragraph(
                f"{draws[0]} chains of {draws[1]} draws each. ESS counts independent draws of the "
                "question itself, which mode; seconds are those of a run with its warm-up, after "
                "compilation; rows are evaluations of one measurement's density.",
                "note",
            ),
        ),
        section(
            "Where they went",
            picture(
                demo_figures.main_picture(answer, rows),
                "Draws on the exact posterior's contours (50, 90 and 99 %), with the share of "
                "draws in each mode. The grey clouds are the same posterior heated to beta = "
                f"{demo_figures.WARM_BETA}, where the modes join: tempering goes that way. On the "
                "right, faint dots are single chains.",
            ),
            picture(
                demo_figures.mode_strips(rows),
                "Coloured while the larger group is on the right. A band of one colour is a chain "
                "that never saw the other mode.",
            ),
        ),
        section(
            "How parallel tempering travels",
            picture(
                run_figures.ladder(ladder),
                "The ladder that warm-up found by itself: the number of rungs and their betas "
                "are chosen so that every pair swaps equally often.",
            ),
            picture(
                run_figures.replica_paths(ladder),
                "Replicas wander between the prior and the posterior; each round trip is a fresh "
                "chance to choose a mode.",
            ),
        ),
        section(
            "log evidence, for free",
            picture(
                demo_figures.evidence_bars(answer, tempered.tree),
                "The same run's estimates of log Z with 95 % intervals, and the exact value.",
            ),
        ),
    ]


def _known(few: "Told") -> "Known":
    """The first question's answer, which has a grid to draw."""
    answer: Any = few.question.answer
    return answer


def _many_rows(told: "Told") -> list[str]:
    rows, num_rows = told.rows, told.rows[0].tree.attrs["num_rows"]
    draws = rows[0].on_right.shape
    by_name = {row.name: row for row in rows}
    swapped, climbed = (
        ", ".join(f"{size:,}" for size in by_name[name].tree["tempering"]["size"].values)
        for name in ("SPT", "STT")
    )
    return [
        section(
            f"With {num_rows:,} rows",
            paragraph(MANY),
            _table(told),
            paragraph(
                f"{draws[0]} chains of {draws[1]} draws each, all with the same move; STT makes "
                f"{by_name['STT'].on_right.shape[1]}, since it moves several times for each. The "
                f"ladder is given and the same for PT and SPT, {swapped} rows or "
                "as large a share of the likelihood: it begins where the modes have joined, so "
                f"that PT need not pay for the way to the prior. STT climbs {climbed}. Every "
                "subsample has its share of "
                "small and large measurements (strata). Rows are counted for the draws, "
                "without warm-up. With so few draws the effective sizes are themselves known only "
                "to within a factor of two; the rows are exact.",
                "note",
            ),
            picture(
                demo_figures.weight_by_work(told.question.answer, rows),
                "What each sampler says and what it evaluated to say so, with 95 % intervals.",
            ),
            picture(
                demo_figures.mode_strips(rows),
                "Coloured while the effect is positive. Plain HMC never changes its mind.",
            ),
        )
    ]


def write_picture(path: Path, few: "Told") -> Path:
    """The main picture alone, as PNG or whatever the name ends in."""
    path.parent.mkdir(parents=True, exist_ok=True)
    demo_figures.main_picture(_known(few), few.rows).savefig(path, dpi=160)
    return path
