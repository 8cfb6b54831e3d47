"""What a person sees while a table is learned: a line for each state, and how to stop well.

A line has the rows in the window, the clusters of all views, the views, the score and the time
left. The first Ctrl-C asks states to stop, which they do soon; a second one ends at once.
"""

import contextlib
import signal
import threading
from collections.abc import Iterator
from typing import Any


class FitProgress:
    """Hears of progress, shows it, and answers whether to stop."""

    def __init__(self, bars: Any = None):
        self.interrupted = False
        self._bars = bars
        self._tasks: dict[int, Any] = {}
        self._lock = threading.Lock()

    def __call__(self, event: Any) -> bool:
        if self._bars is not None:
            with self._lock:
                self._show(event)
        return self.interrupted

    def _show(self, event: Any) -> None:
        if event.state not in self._tasks:
            label = f"state {event.state + 1}"
            self._tasks[event.state] = self._bars.add_task(label, total=1.0, words="")
        task = self._tasks[event.state]
        self._bars.update(task, completed=event.done, words=words_of(event))

    def stop(self, *_: Any) -> None:
        """The first Ctrl-C is a wish, the second an order."""
        if self.interrupted:
            raise KeyboardInterrupt
        self.interrupted = True


def words_of(event: Any) -> str:
    """What a state is like, in a few words."""
    parts = [
        f"{event.rows:,} of {event.num_rows:,} rows",
        f"{event.clusters} clusters",
        f"{event.views} view{'s' if event.views != 1 else ''}",
        f"score {event.score / max(event.rows, 1):.3f} a row",
    ]
    return ", ".join(parts)


@contextlib.contextmanager
def fit_progress(shown: bool) -> Iterator[FitProgress]:
    """Progress on standard error if it is to be shown; Ctrl-C is heard either way."""
    with contextlib.ExitStack() as stack:
        bars = stack.enter_context(_bars()) if shown else None
        progress = FitProgress(bars)
        stack.enter_context(_on_interrupt(progress))
        yield progress


def _bars() -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    return Progress(
        TextColumn("{task.description:<9}"), BarColumn(bar_width=16), TextColumn("eta"),
        TimeRemainingColumn(), TextColumn("{task.fields[words]}"), console=Console(stderr=True),
    )  # fmt: skip


@contextlib.contextmanager
def _on_interrupt(progress: FitProgress) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, progress.stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
