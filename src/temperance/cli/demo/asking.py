"""How the demo asks samplers a question, and what a person should make of their answers."""

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from temperance._types import Options
from temperance.estimates.diagnostics import effective_size, standard_error
from temperance.problems.problem import Problem
from temperance.results.tree import log_evidence
from temperance.sampling import RunWarning, sample

BAD_RHAT = 1.05
PER_MILLION = "ESS per 10⁶ rows"

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Exact:
    """The exact answer."""

    weight: float  # posterior probability of the mode that is asked for
    log_z: float


@dataclass(frozen=True)
class Question:
    """A problem with two modes, and whom to ask about them.

    `right` tells of a run's draws, by one or zero, which are in the mode that is asked for.
    `samplers` are options of `sample`; with `compiling` instead of theirs a run compiles what the
    timed one needs.
    """

    problem: Problem
    answer: Exact
    right: Callable[[Any], FloatArray]
    samplers: Mapping[str, Options]
    compiling: Options
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Row:
    """What one sampler found. `seconds` are those of a run that compiles nothing."""

    name: str
    tree: Any
    on_right: FloatArray  # (chain, draw): whether a draw is in the mode that is asked for
    weight: float
    weight_error: float
    log_z: float | None
    log_z_error: float | None
    ess: float
    seconds: float
    rhat: float
    verdict: str

    @property
    def num_rows(self) -> float:
        """Evaluations of one row's term."""
        return self.tree.attrs["num_row_evaluations"]

    @property
    def ess_per_second(self) -> float:
        """With warm-up, without compilation."""
        return self.ess / self.seconds

    @property
    def ess_per_million(self) -> float:
        """For a million evaluations of one row's term."""
        return 1e6 * self.ess / self.num_rows

    def words(self) -> dict[str, str]:
        """Cells of the table, by column."""
        return {
            "log Z": "-" if self.log_z is None else f"{self.log_z:.2f} ± {self.log_z_error:.2f}",
            "10⁹ rows": f"{self.num_rows / 1e9:.2f}",
            "ESS/s": f"{self.ess_per_second:.3g}",
            PER_MILLION: f"{self.ess_per_million:.2g}",
            "R-hat": f"{self.rhat:.2f}",
            "verdict": self.verdict,
        }


def ask(question: Question, seed: int, say: Callable[[str], None] | None = None) -> "Told":
    """Ask every sampler; `say` is told what is going on."""
    say = say or (lambda _: None)
    rows = []
    for name, options in question.samplers.items():
        say(f"{name}: compiling")
        _run(question.problem, options | question.compiling | {"seed": seed})
        say(f"{name}: drawing")
        began = time.monotonic()
        tree = _run(question.problem, options | {"seed": seed})
        rows.append(read(name, tree, time.monotonic() - began, question))
    return Told(question, rows)


def _run(problem: Problem, options: Options) -> Any:
    """`sample` keeps what an interrupted run has; here Ctrl-C means stop."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RunWarning)
        tree = sample(problem, progress=False, **options)
    if tree.attrs["stopped"] == "interrupted":
        raise KeyboardInterrupt
    return tree


def read(name: str, tree: Any, seconds: float, question: Question) -> Row:
    """A sampler's row of the table."""
    from temperance.results.arviz import summary_table

    on_right = question.right(tree["posterior"])
    ess = float(np.nan_to_num(effective_size(on_right)))
    error = float(standard_error(on_right))
    log_z, log_z_error = log_evidence(tree) if "evidence" in tree.children else (None, None)
    weight, rhat = float(on_right.mean()), float(summary_table(tree)["r_hat"].max())
    return Row(
        name, tree, on_right, weight, error, log_z, log_z_error, ess, seconds, rhat,
        verdict(on_right, error, rhat, question.answer.weight),
    )  # fmt: skip


def verdict(on_right: FloatArray, error: float, rhat: float, truth: float) -> str:
    """What a person should make of it."""
    by_chain = on_right.mean(axis=1)
    if np.isin(by_chain, (0.0, 1.0)).all():
        if by_chain.min() == by_chain.max():
            seen = truth if by_chain[0] == 1.0 else 1 - truth
            hidden = ", and R-hat does not show it" if rhat < BAD_RHAT else ""
            return f"found one mode of two, with {seen:.0%} of the probability{hidden}"
        return "every chain stays where it began: the weight only counts the starts"
    off = abs(float(by_chain.mean()) - truth)
    doubt = "" if off < 3 * error else ": more than chance allows"
    return f"found both modes; weight off by {off:.3f}, {off / error:.1f} standard errors{doubt}"


@dataclass(frozen=True)
class Told:
    """A question, and what the samplers told."""

    question: Question
    rows: list[Row]

    @property
    def cells(self) -> list[list[str]]:
        """The rows of the table as text, for the terminal and the page alike; the truth is first.

        The first two columns are the sampler and the question; the others are known by name.
        """
        answer, names = self.question.answer, self.question.columns[2:]
        exact = {"log Z": f"{answer.log_z:.2f}", "verdict": "by quadrature"}
        cells = [["exact", f"{answer.weight:.3f}", *(exact.get(name, "") for name in names)]]
        for row in self.rows:
            weight = f"{row.weight:.3f}" + (f" ± {row.weight_error:.3f}" if row.ess else "")
            found = row.words()
            cells.append([row.name, weight, *(found[name] for name in names)])
        return cells
