"""The front door: `sample(problem, method=...)`.

    problem or target -> densities on vectors -> a job (pilot, warm-up, draws) -> blocks -> a tree

Everything that can be wrong with a call is found before anything long is compiled.
"""

import time
import warnings
from pathlib import Path
from typing import Any

import jax

from temperance._types import Key, Options
from temperance.methods.by_name import job_by_name
from temperance.engine.checkpoint import Store
from temperance.problems.checks import check_count, check_problem, is_number
from temperance.engine.conductor import Conductor
from temperance.errors import ArgumentError
from temperance.rows.in_programs import sources_in
from temperance.engine.fingerprint import fingerprint
from temperance.engine.jobs import HandJob, Job
from temperance.methods.methods import METHODS, method_named, move_named
from temperance.moves.move import AbstractMove
from temperance.problems.problem import Densities, Problem, Target, densities_of
from temperance.programs.compiled import traceable
from temperance.programs.progress import reporter
from temperance.results.tree import result_tree
from temperance.programs.scope import across_precisions, scope
from temperance.engine.loop import block_size
from temperance.rows.source import left_in_place, refuse_sources


class RunWarning(UserWarning):
    """A run ended early; the message says why and with how much."""


@across_precisions
def sample(
    problem: Problem | Target,
    method: Any = "pt",
    move: str | AbstractMove | None = None,
    *,
    num_draws: int = 1000,
    num_warmup: int = 1000,
    num_chains: int = 4,
    seed: int = 0,
    progress: bool = True,
    checkpoint: str | Path | None = None,
    max_seconds: float | int | None = None,
    target_ess: float | int | None = None,
    precision: str = "double",
    cache: bool = True,
    **options: Any,
) -> Any:
    """Draw from `problem` by `method`, and return an `xarray.DataTree` in ArviZ's schema.

    `method` is a name (see `temperance methods`) or a sampler built by hand, which is run as it
    is: nothing of it is tuned. `move` is how to travel at one temperature, a name or a Move; by
    default "hmc", and "metropolis" for `mint`.
    The same call with the same `checkpoint` goes on where a killed run stopped, with the same
    draws bit for bit; with a larger `num_draws` it appends. `max_seconds` and `target_ess` stop
    early, after the block in which they are met. `cache=False` keeps compiled programs out of the
    user's cache folder. Other `options` are the method's own.
    """
    began = time.monotonic()
    if not isinstance(problem, Problem | Target):
        raise ArgumentError(f"problem: wanted a Problem or a Target, got {type(problem).__name__}")
    num_draws = check_count("num_draws", num_draws, 1)
    num_warmup = check_count("num_warmup", num_warmup, 0)
    num_chains = check_count("num_chains", num_chains, 1)
    seed = check_count("seed", seed, 0)
    if seed >= 2**63:
        raise ArgumentError(f"seed: wanted a whole number below 2**63, got {seed}")
    _check_limit("max_seconds", max_seconds)
    _check_limit("target_ess", target_ess)
    with scope(precision, cache):
        by_rows = _reads_rows(method, move)
        if isinstance(problem, Problem) and not by_rows:
            refuse_sources(
                problem.data, method if isinstance(method, str) else type(method).__name__
            )
        densities = densities_of(problem, by_rows=by_rows)
        check_problem(problem, densities)
        counts = {"num_chains": num_chains, "num_warmup": num_warmup, "num_draws": num_draws}
        key = _key(seed)
        if isinstance(method, str):
            fitting = {"seed": seed, "progress": progress, "precision": precision}
            job: Job = job_by_name(problem, densities, method, move, counts, key, options, fitting)
            name = method
        else:
            job = _by_hand(problem, densities, method, counts, key, options)
            name = type(method).__name__
        densities = job.densities
        store = _open(checkpoint, problem, job, seed)
        try:
            with (
                reporter(progress) as bars,
                Conductor(
                    block_size(num_chains, densities.layout.dimension),
                    bars,
                    store,
                    max_seconds,
                    target_ess,
                    watched=progress or any((checkpoint, max_seconds, target_ess)),
                    began=began,
                ) as conductor,
            ):
                finished = job.run(conductor)
        finally:
            if store is not None:
                store.close()
            for source in sources_in(densities):
                source.let_go()
        if conductor.stopped is not None:
            _tell(conductor, finished.num_draws, num_draws)
        facts = {
            "method": name,
            "move": repr(job.move),
            "seed": seed,
            "num_warmup": num_warmup,
            "precision": precision,
            "stopped": conductor.stopped or "",
            "seconds": time.monotonic() - began,
            "num_rows": densities.num_rows,
        }
        return result_tree(problem, densities.layout, finished, facts)


def _reads_rows(method: Any, move: str | AbstractMove | None) -> bool:
    """Whether the run will look at a few rows a step, so that sources stay where they are."""
    if not isinstance(method, str):
        return isinstance(getattr(method, "move", None), AbstractMove) and method.move.reads_rows
    return method == "mint" or move_named(move, method_named(method).move).reads_rows


def _by_hand(
    problem: Problem | Target,
    densities: Densities,
    sampler: Any,
    counts: dict[str, int],
    key: Key,
    options: Options,
) -> HandJob:
    parts = ("init", "step", "snapshot", "trail", "params", "move", "ladder")
    if isinstance(sampler, type) or not all(hasattr(sampler, name) for name in parts):
        raise ArgumentError(
            f"method: wanted a name ({', '.join(METHODS)}) or a sampler such as "
            f"ParallelTempering(ladder, move, params), got {sampler!r}"
        )
    others = sorted(set(options) - {"sweeps_per_draw"})
    if others:
        raise ArgumentError(
            f"options {others} belong to methods by name; a sampler built by hand holds its own"
        )
    sweeps = check_count("sweeps_per_draw", options.get("sweeps_per_draw", 1), 1)
    return HandJob(
        problem, densities, traceable(sampler), key=key, sweeps_per_draw=sweeps, **counts
    )


def _open(
    checkpoint: str | Path | None, problem: Problem | Target, job: Job, seed: int
) -> Store | None:
    """The checkpoint, if it is wanted and belongs to this run."""
    if checkpoint is None:
        return None
    data = problem.data if isinstance(problem, Problem) else None
    if job.move.reads_rows:
        data = left_in_place(data, lambda leaf: leaf)
    return Store.open(checkpoint, fingerprint(job.functions(), data, job.identity, seed))


def _key(seed: int) -> Key:
    # In 32 bits JAX forgets the upper half of a seed.
    with jax.enable_x64(True):
        return jax.random.key(seed)


def _check_limit(name: str, value: Any) -> None:
    if value is not None and not (is_number(value) and value > 0):
        raise ArgumentError(f"{name}: wanted a positive number or None, got {value!r}")


def _tell(conductor: Conductor, got: int, wanted: int) -> None:
    """Say that a run ended early, unless it ended as it was asked to."""
    if conductor.stopped == "target_ess" or got >= wanted:
        return
    what = "interrupted" if conductor.stopped == "interrupted" else "out of time"
    warnings.warn(f"{what} after {got} of {wanted} draws; what is finished is kept", RunWarning, 4)
