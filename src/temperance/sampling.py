"""The front door: `sample(problem, method=...)`.

    problem or target -> densities on vectors -> the method's stages -> blocks of draws -> a tree

Everything that can be wrong with a call is found before anything long is compiled.
"""

import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax

from temperance._types import Key, Options
from temperance.engine import by_hand
from temperance.engine.checkpoint import Store
from temperance.engine.conductor import Conductor
from temperance.engine.fingerprint import fingerprint
from temperance.engine.loop import block_size
from temperance.engine.method import Asked, Call, Choice, Method, Shared
from temperance.engine.options import parsed
from temperance.engine.run import Stage, run
from temperance.errors import ArgumentError
from temperance.methods import METHODS, method_like
from temperance.moves.move import AbstractMove
from temperance.moves.named import move_named
from temperance.problems.checks import check_count, check_problem, is_number
from temperance.problems.problem import Densities, Problem, Target, densities_of
from temperance.programs.compiled import traceable
from temperance.programs.progress import reporter
from temperance.programs.scope import across_precisions, scope
from temperance.results.tree import result_tree
from temperance.rows.in_programs import sources_in
from temperance.rows.source import left_in_place, refuse_sources


class RunWarning(UserWarning):
    """A run ended early; the message says why and with how much."""


@across_precisions
def sample(
    problem: Problem | Target,
    method: Any = "auto",
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
    is: nothing of it is tuned. By default the problem is looked at first, and `tree.attrs["why"]`
    says which method was chosen and why. `move` is how to travel at one temperature, a name or a
    Move; by default what `auto` chooses, "hmc" for a method by name, and "metropolis" for `mint`.
    The same call with the same `checkpoint` goes on where a killed run stopped, with the same
    draws bit for bit; with a larger `num_draws` it appends. `max_seconds` and `target_ess` stop
    early, after the block in which they are met. `cache=False` keeps compiled programs out of the
    user's cache folder. Other `options` are the method's own.
    """
    began = time.monotonic()
    if not isinstance(problem, Problem | Target):
        raise ArgumentError(f"problem: wanted a Problem or a Target, got {type(problem).__name__}")
    counts = {
        "num_chains": check_count("num_chains", num_chains, 1),
        "num_warmup": check_count("num_warmup", num_warmup, 0),
        "num_draws": check_count("num_draws", num_draws, 1),
    }
    seed = check_count("seed", seed, 0)
    if seed >= 2**63:
        raise ArgumentError(f"seed: wanted a whole number below 2**63, got {seed}")
    _check_limit("max_seconds", max_seconds)
    _check_limit("target_ess", target_ess)
    with scope(precision, cache):
        if isinstance(method, str):
            fitting = {"seed": seed, "progress": progress, "precision": precision}
            choice = _chosen(
                problem, method, move, options, _key(seed), progress, counts["num_warmup"]
            )
            stages, shared, report = _by_name(problem, choice, counts, _key(seed), fitting)
        else:
            choice = None
            stages, shared, report = _by_hand(problem, method, options, counts, _key(seed))
        call = shared.call
        store = _open(checkpoint, shared, seed)
        try:
            with (
                reporter(progress) as bars,
                Conductor(
                    block_size(num_chains, call.dimension),
                    bars,
                    store,
                    max_seconds,
                    target_ess,
                    watched=progress or any((checkpoint, max_seconds, target_ess)),
                    began=began,
                ) as conductor,
            ):
                finished = run(stages, shared, conductor)
        finally:
            if store is not None:
                store.close()
            for source in sources_in(call.densities):
                source.let_go()
        if conductor.stopped is not None:
            _tell(conductor, finished.num_draws, num_draws)
        facts = {
            "method": call.method,
            "report": report.name,
            "references": " ".join(
                dict.fromkeys(
                    (
                        *report.references,
                        *call.move.references,
                        *(() if call.reference is None else call.reference.references),
                    )
                )
            ),
            "move": repr(call.move),
            "seed": seed,
            "num_warmup": call.num_warmup,
            "precision": precision,
            "stopped": conductor.stopped or "",
            "seconds": time.monotonic() - began,
            "num_rows": call.densities.num_rows,
        }
        if choice is not None and choice.why:
            facts["why"] = choice.why
        return result_tree(problem, call.densities.layout, finished, report.report, facts)


def _chosen(
    problem: Problem | Target,
    name: str,
    move: str | AbstractMove | None,
    options: Options,
    key: Key,
    progress: bool,
    num_warmup: int,
) -> Choice:
    """The method that runs: the one that was named, or what it chooses."""
    method = METHODS[name]
    if method.choose is None:
        return Choice(name, move, options, "")
    kernel = move_named(move, method.move)
    densities = _densities(problem, name, kernel.reads_rows, kernel.gathers)
    asked = Asked(problem, densities, move, options, key, progress, num_warmup)
    return method.choose(asked, METHODS)


def _by_name(
    problem: Problem | Target, choice: Choice, counts: Options, key: Key, fitting: Options
) -> tuple[Sequence[Stage], Shared, Method]:
    """What a method by name runs, what its stages share, and the method."""
    name, method = choice.method, METHODS[choice.method]
    kernel = move_named(choice.move, method.move)
    by_rows = method.reads_rows or kernel.reads_rows
    densities = _densities(problem, name, by_rows, kernel.gathers)
    given = parsed(name, method.options, choice.options)
    kernel = traceable(kernel.placed(problem, densities.layout))
    call = Call(
        problem, densities, kernel, given, **counts, key=key, method=name, fitting=fitting,
        reference=choice.reference,
    )  # fmt: skip
    return method.stages, method.prepare(call), method


def _by_hand(
    problem: Problem | Target, sampler: Any, options: Options, counts: Options, key: Key
) -> tuple[Sequence[Stage], Shared, Method]:
    """The same for a sampler built by hand, which is run as it is."""
    move = getattr(sampler, "move", None)
    ours = isinstance(move, AbstractMove)
    densities = _densities(
        problem, type(sampler).__name__, ours and move.reads_rows, ours and move.gathers
    )
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
    sampler, name = traceable(sampler), type(sampler).__name__
    call = Call(problem, densities, sampler.move, None, **counts, key=key, method=name)
    return by_hand.STAGES, by_hand.HandBuilt(call, sampler, sweeps), method_like(sampler)


def _densities(problem: Problem | Target, method: str, by_rows: bool, gathers: bool) -> Densities:
    """The problem on vectors, checked; with `by_rows` sources stay where they are."""
    if isinstance(problem, Problem) and not by_rows:
        refuse_sources(problem.data, method)
    densities = densities_of(problem, by_rows=by_rows)
    check_problem(problem, densities, gathers=gathers)
    return densities


def _open(checkpoint: str | Path | None, shared: Shared, seed: int) -> Store | None:
    """The checkpoint, if it is wanted and belongs to this run."""
    if checkpoint is None:
        return None
    problem = shared.call.problem
    data = problem.data if isinstance(problem, Problem) else None
    if shared.call.move.reads_rows:
        data = left_in_place(data, lambda leaf: leaf)
    parts = fingerprint(shared.functions(), data, shared.identity(), seed)
    return Store.open(checkpoint, parts)


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
