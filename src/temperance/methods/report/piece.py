"""A report: what a finished run tells, in pieces that a method composes.

    stats       statistics of each draw, (chain, draw)
    arrays      what the temperatures did, by name: (dimensions, values)
    evidence    log evidence by each estimator, with its error
    work        what was evaluated, counted in rows
    facts       of a saved run, for its summary
    warnings    of a saved run: why not to trust it yet
    notes       of a saved run: what is worth knowing, and no reason for distrust
    pictures    of a saved run, by their names in reports/run_page.py

The first four see the run while its sampler is there. The others see the tree alone, which may have
been saved and loaded.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from temperance.methods.report.work import all_rows

Arrays = dict[str, Any]


class Piece:
    """A part of a report; what it does not define is empty."""

    pictures: tuple[str, ...] = ()
    gives_evidence = False

    def stats(self, run: Any) -> dict[str, np.ndarray]:
        return {}

    def arrays(self, run: Any) -> Arrays:
        return {}

    def evidence(self, run: Any) -> Arrays:
        return {}

    def facts(self, tree: Any) -> dict[str, Any]:
        return {}

    def warnings(self, tree: Any) -> list[str]:
        return []

    def notes(self, tree: Any) -> list[str]:
        return []


@dataclass(frozen=True)
class Report:
    """Pieces in the order in which their warnings and notes are said.

    `count` counts what a run evaluated. `weighted` says that draws have weights, `serial` that each
    draw of a chain comes from the one before, and `if_chains_disagree` what to do where they do.
    """

    pieces: Sequence[Piece]
    count: Callable[[Any], Mapping[str, float]] = all_rows
    weighted: bool = False
    serial: bool = True
    if_chains_disagree: str = "warm up longer, or heat further if the posterior has several modes"

    def stats(self, run: Any) -> dict[str, np.ndarray]:
        """Statistics of each draw."""
        return _joined(piece.stats(run) for piece in self.pieces)

    def arrays(self, run: Any) -> Arrays:
        """What the temperatures did."""
        return _joined(piece.arrays(run) for piece in self.pieces)

    def evidence(self, run: Any) -> Arrays:
        """Log evidence by each estimator."""
        return _joined(piece.evidence(run) for piece in self.pieces)

    def work(self, run: Any) -> dict[str, float]:
        """What was evaluated, counted in rows."""
        return dict(self.count(run))

    def facts(self, tree: Any) -> dict[str, Any]:
        """Of a saved run."""
        return _joined(piece.facts(tree) for piece in self.pieces)

    def warnings(self, tree: Any) -> list[str]:
        """Of a saved run."""
        return [words for piece in self.pieces for words in piece.warnings(tree)]

    def notes(self, tree: Any) -> list[str]:
        """Of a saved run."""
        return [words for piece in self.pieces for words in piece.notes(tree)]

    @property
    def pictures(self) -> list[str]:
        return [name for piece in self.pieces for name in piece.pictures]

    @property
    def gives_evidence(self) -> bool:
        return any(piece.gives_evidence for piece in self.pieces)


def _joined(parts: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for part in parts:
        found |= part
    return found


def tempering(tree: Any) -> Any:
    """The group of what the temperatures did; empty if nothing was hot."""
    import xarray as xr

    return tree["tempering"].dataset if "tempering" in tree.children else xr.Dataset()
