"""Several states at once: on threads, in processes, or on any executor that has `map`.

Each state has a seed of its own, spawned from one: the same seed gives the same states whatever
does the work, in whatever order. The kernels let go of Python's lock, so that threads run side by
side without a copy of the table.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from multiprocessing import get_context
from typing import Any

from temperance.errors import ArgumentError, unknown_name

FitOne = Callable[[Any, Any, Any], Any]
WAYS = ("threads", "processes")


def fit_many(
    fit_one: FitOne,
    table: Any,
    settings: Any,
    seeds: Sequence[Any],
    executor: Any = None,
    num_workers: int | None = None,
) -> list[Any]:
    """`fit_one(table, settings, seed)` for each seed, in the order of the seeds.

    `executor` is None, "threads", "processes", or an object with `map`, such as an executor of
    `concurrent.futures` or a Dask client. With None and one worker, states are fitted in turn.
    """
    if num_workers is not None and num_workers < 1:
        raise ArgumentError(f"num_workers: wanted at least 1, got {num_workers}")
    work = partial(fit_one, table, settings)
    if executor is None and (num_workers is None or num_workers == 1):
        return [work(seed) for seed in seeds]
    if executor is None or executor == "threads":
        with ThreadPoolExecutor(num_workers or len(seeds)) as threads:
            return list(threads.map(work, seeds))
    if executor == "processes":
        return _in_processes(fit_one, table, settings, seeds, num_workers)
    if isinstance(executor, str):
        raise unknown_name("executor", executor, WAYS)
    if not callable(getattr(executor, "map", None)):
        raise ArgumentError(
            f"executor: got {type(executor).__name__}, which has no map: wanted 'threads', "
            "'processes' or an executor such as a Dask client"
        )
    found: Any = executor.map(work, seeds)
    if callable(gather := getattr(executor, "gather", None)):
        found = gather(found)
    return list(found)


def _in_processes(
    fit_one: FitOne,
    table: Any,
    settings: Any,
    seeds: Sequence[Any],
    num_workers: int | None,
) -> list[Any]:
    """Fresh processes, each of which is sent the table once."""
    with ProcessPoolExecutor(
        num_workers, get_context("spawn"), _receive, (fit_one, table, settings)
    ) as pool:
        return list(pool.map(_work, seeds))


_received: dict[str, Any] = {}


def _receive(fit_one: FitOne, table: Any, settings: Any) -> None:
    _received["work"] = partial(fit_one, table, settings)


def _work(seed: Any) -> Any:
    return _received["work"](seed)
