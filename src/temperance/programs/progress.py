"""What a person sees while a run goes on: one bar for each stage, with an estimate of its end.

The numbers beside the bar are computed from the draws so far: the smallest effective size, the
worst R-hat, the mean swap rate and the share of divergent steps.
"""

import contextlib
from collections.abc import Iterator
from typing import Any, Protocol, runtime_checkable

import numpy as np


@runtime_checkable
class Reporter(Protocol):
    """Who is told how far a run has come."""

    def begin(self, label: str, total: int, done: int) -> None: ...
    def update(self, done: int, words: str) -> None: ...


class Silent:
    """Nobody is told."""

    def begin(self, label: str, total: int, done: int) -> None: ...
    def update(self, done: int, words: str) -> None: ...


class Bars:
    """Rich's progress bars, on standard error."""

    def __init__(self, progress: Any):
        self._progress = progress
        self._task: Any = None

    def begin(self, label: str, total: int, done: int) -> None:
        self._task = self._progress.add_task(label, total=total, completed=done, words="")

    def update(self, done: int, words: str) -> None:
        self._progress.update(self._task, completed=done, words=words)


@contextlib.contextmanager
def reporter(shown: bool) -> Iterator[Reporter]:
    """Bars if they are to be shown, and silence otherwise."""
    if not shown:
        yield Silent()
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description:<10}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("eta"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[words]}"),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        yield Bars(progress)


def live_words(
    ess: float | None, rhat: float | None, swap_rate: float | None, diverging: float | None
) -> str:
    """The diagnostics that are known, in a few words."""
    parts = []
    if ess is not None and np.isfinite(ess):
        parts.append(f"ESS {ess:.0f}")
    if rhat is not None and np.isfinite(rhat):
        parts.append(f"R-hat {rhat:.3f}")
    if swap_rate is not None:
        parts.append(f"swaps {swap_rate:.0%}")
    if diverging:
        parts.append(f"divergent {diverging:.2%}")
    return "  ".join(parts)
