"""The demo's page and the picture of the README."""

from pathlib import Path
from typing import TYPE_CHECKING

from temperance._version import __version__
from temperance.report import demo_figures, run_figures
from temperance.report.page import page, paragraph, picture, section, table

if TYPE_CHECKING:
    from temperance.demo import Known, Row

TITLE = "Which group is the larger one?"
LEAD = (
    "A hundred measurements come from two groups, one a little larger than the other. Where are "
    "their centres? The posterior has two separate modes, and with two parameters their "
    "probabilities and log Z are known exactly, by summing over a grid. Three samplers are asked."
)


def write_page(
    path: Path, answer: "Known", rows: "list[Row]", columns: tuple[str, ...], cells: list[list[str]]
) -> Path:
    """Write the demo's page, with the table that the terminal shows."""
    tempered = next(row for row in rows if "evidence" in row.tree.children)
    ladder = tempered.tree["tempering"].dataset
    draws = rows[0].on_right.shape
    sections = [
        section(
            "What they say",
            table(columns, cells, words=columns[-1]),
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
    html = page(TITLE, LEAD, sections, f"Temperance {__version__}: written by `temperance demo`")
    path.write_text(html, encoding="utf-8")
    return path


def write_picture(path: Path, answer: "Known", rows: "list[Row]") -> Path:
    """The main picture alone, as PNG or whatever the name ends in."""
    path.parent.mkdir(parents=True, exist_ok=True)
    demo_figures.main_picture(answer, rows).savefig(path, dpi=160)
    return path
