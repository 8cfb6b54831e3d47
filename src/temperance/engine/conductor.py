"""What the host does between compiled blocks: progress, checkpoint, and whether to stop.

Blocks are as long as the watcher's patience allows and never longer than the buffers. Since the key
of a step depends on the step alone, how a stage is cut into blocks changes nothing that is drawn.
"""

import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np
from jaxtyping import PyTree

from temperance.engine.checkpoint import Store
from temperance.estimates.diagnostics import effective_size, rhat_live
from temperance.estimates.weighted import weighted_mean
from temperance.programs.progress import Reporter, live_words

# How long a block should take while somebody watches, in seconds, and how long the first one is.
PATIENCE = 0.7
FIRST_BLOCK = 8

Advance = Callable[[PyTree, int, int], tuple[PyTree, dict[str, np.ndarray]]]


@dataclass
class Conductor:
    """Runs stages block by block. `stopped` says why a stage ended early, if it did."""

    size: int
    reporter: Reporter
    store: Store | None = None
    max_seconds: float | int | None = None
    target_ess: float | int | None = None
    watched: bool = False
    began: float = field(default_factory=time.monotonic)
    stopped: str | None = None
    interrupted: bool = False

    def run(
        self,
        name: str,
        length: int,
        advance: Advance,
        carry: PyTree,
        notes: dict[str, Any],
        done: int = 0,
        draws: list[dict[str, np.ndarray]] | None = None,
    ) -> PyTree:
        """Steps `done` to `length` of a stage; finished blocks go to `draws` and to the store."""
        self.reporter.begin(name.split("-")[0], length, done)
        pace = min(FIRST_BLOCK, self.size) if self.watched else self.size
        while done < length and not self._must_stop(draws):
            count = min(pace, length - done, self.size)
            before = time.monotonic()
            carry, block = advance(carry, done, count)
            jax.block_until_ready(carry)
            seconds = time.monotonic() - before
            if draws is not None:
                draws.append(block)
            if self.store is not None:
                kept = block if draws is not None else {}
                self.store.append(name, done, kept, carry, notes, count=count)
            done += count
            self.reporter.update(done, self._words(draws) if self.watched else "")
            if self.watched:
                pace = int(np.clip(count * PATIENCE / max(seconds, 1e-6), 1, 4 * count))
        return carry

    def _must_stop(self, draws: list[dict[str, np.ndarray]] | None) -> bool:
        if self.interrupted:
            self.stopped = "interrupted"
        elif self.max_seconds is not None and time.monotonic() - self.began > self.max_seconds:
            self.stopped = "max_seconds"
        elif self.target_ess is not None and draws and _ess(draws) >= self.target_ess:
            self.stopped = "target_ess"
        return self.stopped is not None

    def _words(self, draws: list[dict[str, np.ndarray]] | None) -> str:
        if not draws:
            return ""
        enough = sum(len(block["position"]) for block in draws) >= 8
        swaps = draws[-1].get("swapped", draws[-1].get("transition_accepted"))
        rate = None if swaps is None else _swap_rate(draws[-1])
        return live_words(
            _ess(draws) if enough else None,
            _rhat(draws) if enough else None,
            rate,
            float(np.mean([block["diverging"].mean() for block in draws])),
        )

    def __enter__(self) -> "Conductor":
        """Ctrl-C lets the block finish; a second one does not wait."""
        self._previous = None
        if threading.current_thread() is threading.main_thread():
            self._previous = signal.signal(signal.SIGINT, self._interrupt)
        return self

    def __exit__(self, *_: object) -> None:
        if self._previous is not None:
            signal.signal(signal.SIGINT, self._previous)

    def _interrupt(self, signum: int, frame: Any) -> None:
        if self.interrupted:
            raise KeyboardInterrupt
        self.interrupted = True


def _positions(draws: list[dict[str, np.ndarray]]) -> np.ndarray:
    return np.moveaxis(np.concatenate([block["position"] for block in draws]), 0, 1)


def _ess(draws: list[dict[str, np.ndarray]]) -> float:
    positions = _positions(draws)
    if positions.shape[1] < 8:
        return 0.0
    if "log_weight" in draws[0]:
        logs = np.concatenate([block["log_weight"][:, :, -1] for block in draws]).T
        if not np.isfinite(logs.max()):
            return 0.0
        apart = "log_weight_base" not in draws[0]
        sizes = weighted_mean(positions, logs, independent=apart).ess
        return 0.0 if np.isnan(sizes).any() else float(np.min(sizes))
    sizes = effective_size(positions)
    return 0.0 if np.isnan(sizes).any() else float(np.min(sizes))


def _rhat(draws: list[dict[str, np.ndarray]]) -> float:
    return float(np.max(rhat_live(_positions(draws))))


def _swap_rate(block: dict[str, np.ndarray]) -> float:
    if "swap_acceptance" in block:
        return float(block["swap_acceptance"].mean())
    return float(block["transition_accepted"].mean())
