"""Processes that have a core of their own from their first import on.

How many threads a library has, and where they may run, is settled when it is imported or first used:
JAX's when it finds its devices, which some packages make it do while they are imported. A process that
moves to a core after that leaves its threads behind on all of them. But a process begins with the cores
of the one that starts it. So the parent moves to a core, starts a process there, and moves back.
"""

import contextlib
import multiprocessing
import os
import queue
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from typing import Any


def cores(num_cores: int) -> list[int | None]:
    """The cores to use; None where the system does not let a program choose."""
    if not hasattr(os, "sched_getaffinity"):
        return [None] * num_cores
    return [*sorted(os.sched_getaffinity(0))[:num_cores]]


@contextlib.contextmanager
def pinned(core: int | None) -> Iterator[None]:
    """Keep this thread, and whatever it starts meanwhile, to one core and one BLAS thread."""
    blas = os.environ.get("OPENBLAS_NUM_THREADS")
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    before = None if core is None else os.sched_getaffinity(0)
    if core is not None:
        os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        if before is not None:
            os.sched_setaffinity(0, before)
        if blas is None:
            del os.environ["OPENBLAS_NUM_THREADS"]
        else:
            os.environ["OPENBLAS_NUM_THREADS"] = blas


class PinnedPool:
    """A process on each of some cores; whatever is submitted goes to the next that is free."""

    def __init__(self, on: Sequence[int | None]) -> None:
        context = multiprocessing.get_context("spawn")
        self._processes = []
        self._free: queue.SimpleQueue[ProcessPoolExecutor] = queue.SimpleQueue()
        for core in on:
            process = ProcessPoolExecutor(1, context)
            with pinned(core):
                # A pool starts its process when it is first given something to do.
                process.submit(int).result()
            self._processes.append(process)
            self._free.put(process)
        self._hands = ThreadPoolExecutor(len(on))

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        return self._hands.submit(self._run, function, *arguments)

    def _run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        process = self._free.get()
        try:
            return process.submit(function, *arguments).result()
        finally:
            self._free.put(process)

    def close(self, *, cancel: bool = False) -> None:
        """Wait for what is running, and unless `cancel` for what is waiting."""
        self._hands.shutdown(wait=not cancel, cancel_futures=cancel)
        for process in self._processes:
            process.shutdown(wait=not cancel, cancel_futures=cancel)
