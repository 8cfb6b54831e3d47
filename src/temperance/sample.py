"""The front door: `sample(problem, method=...)`.

    problem or target -> densities on vectors -> a job (pilot, warm-up, draws) -> blocks -> a tree

Everything that can be wrong with a call is found before anything long is compiled.
"""

import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax

from temperance._types import Key, Options
from temperance.base_options import with_base
from temperance.checkpoint import Store
from temperance.checks import check_count, check_problem
from temperance.conductor import Conductor
from temperance.equi_energy_options import equi_energy_options
from temperance.equi_energy_plan import EquiEnergyPlan
from temperance.errors import ArgumentError, MoveError, unknown_name
from temperance.fetch import sources_in
from temperance.fingerprint import fingerprint
from temperance.geometric import check_betas
from temperance.jobs import HandJob, Job, TunedJob
from temperance.joint_plan import JointPlan
from temperance.methods import METHODS, check_options, method_named, move_named
from temperance.minibatch_options import mint_move, mintee_options
from temperance.mintee_plan import MinteePlan
from temperance.move import AbstractMove
from temperance.plan import ALONE, TRANSITIONS, Plan
from temperance.problem import Densities, Problem, Target, densities_of
from temperance.program import traceable
from temperance.progress import reporter
from temperance.result import result_tree
from temperance.runtime import across_precisions, scope
from temperance.samplers.run import block_size
from temperance.samplers.swaps import SCHEMES
from temperance.source import left_in_place, refuse_sources
from temperance.subsampled_options import subsampled_options
from temperance.travel_options import travel_options
from temperance.travel_plan import TravelPlan

# A sweep crosses a few pairs of rungs at most, so a kept draw of parallel tempering is several.
# Four steps of a chain that travels alone are as many as log evidence hears of.
SWEEPS_PER_DRAW = {"pt": 8, "spt": 2, "ee": 8, "mintee": 1, "st": 4, "gibbs-ct": 4, "joint-ct": 4}
SUBSAMPLED = ("spt", "stt")
WHAT_RUNGS_HAVE = {"spt": "sizes", "stt": "sizes", "ee": "temperatures", "mintee": "temperatures"}
ENERGIES = {"ee": EquiEnergyPlan, "mintee": MinteePlan}
TRAVELS = {
    "st": TravelPlan, "gibbs-ct": TravelPlan, "ais": TravelPlan, "bdmc": TravelPlan,
    "joint-ct": JointPlan,
}  # fmt: skip
# Swaps evaluate little or nothing, so every pair of neighbours gets its turn between two moves.
SWAPS_PER_SWEEP = {"deo": 2, "seo": 2, "sweep": 1}


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
            asked = {"seed": seed, "progress": progress, "precision": precision}
            densities, options = _heated(problem, densities, method, options, num_warmup, asked)
            job, name = _tuned(problem, densities, method, move, counts, key, options)
        else:
            job, name = _by_hand(problem, densities, method, counts, key, options)
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


def _tuned(
    problem: Problem | Target,
    densities: Densities,
    name: str,
    move: str | AbstractMove | None,
    counts: Options,
    key: Key,
    options: Options,
) -> tuple[Job, str]:
    method = method_named(name)
    check_options(method, options)
    kernel = traceable(move_named(move, method.move).placed(problem, densities.layout))
    if name == "mint":
        kernel = mint_move(problem, kernel, options)
    if method.needs_base and densities.hot is None:
        raise ArgumentError(
            f"method {name!r} heats the target towards a base and this Target has none: give "
            "Target(..., base=Gaussian(mean, covariance)), or use method='plain'"
        )
    if name in TRANSITIONS and (kernel.reversal() is None or not kernel.exact):
        raise MoveError(
            f"tempered transitions need an exact move that can be run backwards, and {kernel} is "
            "not: use metropolis, mala, hmc, nuts or slice, or repeat or alternate some of them"
        )
    start = kernel.draw_start()
    # On a ladder the same draws are those of its hottest rung.
    if start is not None and name in ALONE:
        densities = replace(densities, draw=start)
    if name in TRAVELS:
        betas, num_rungs, own = travel_options(problem, name, densities.layout, options)
    else:
        betas, own = _rungs(problem, name, options, counts["num_warmup"])
        num_rungs = options.get("num_rungs")
    if num_rungs is not None:
        num_rungs = check_count("num_rungs", num_rungs, 2)
        if betas is not None and len(betas) != num_rungs:
            what = WHAT_RUNGS_HAVE.get(name, "betas")
            raise ArgumentError(f"num_rungs is {num_rungs}, but there are {len(betas)} {what}")
    scheme = options.get("scheme", "deo")
    if scheme not in SCHEMES:
        raise unknown_name("swap scheme", scheme, SCHEMES)
    sweeps = check_count(
        "sweeps_per_draw", options.get("sweeps_per_draw", SWEEPS_PER_DRAW.get(name, 1)), 1
    )
    swaps = check_count(
        "swaps_per_sweep", options.get("swaps_per_sweep", SWAPS_PER_SWEEP[scheme]), 1
    )
    plan = (ENERGIES | TRAVELS).get(name, Plan)(
        problem, densities, name, kernel, key=key, num_rungs=num_rungs, betas=betas,
        scheme=scheme, swaps_per_sweep=swaps, **counts, **own,
    )  # fmt: skip
    return TunedJob(plan, sweeps), name


def _heated(
    problem: Problem | Target,
    densities: Densities,
    name: str,
    options: Options,
    num_warmup: int,
    asked: Options,
) -> tuple[Densities, Options]:
    """The densities with the base that a method that travels is told, or fits, and the options."""
    if name not in TRAVELS:
        return densities, options
    method = method_named(name)
    check_options(method, options)
    densities, fit = with_base(problem, densities, method, options.get("base"), **asked)
    # Warm-up learns log zeta; without one, the fit's bound is all there is.
    if fit is not None and not num_warmup and "log_zeta" in method.options:
        options = {"log_zeta": fit.log_zeta} | options
    return densities, options


def _rungs(
    problem: Problem | Target, name: str, options: Options, num_warmup: int
) -> tuple[tuple[float, ...] | None, Options]:
    """The betas, if they are given, and what else a method's ladder is told."""
    if name in ENERGIES:
        own = equi_energy_options(options, num_warmup)
        if name == "mintee":
            own |= mintee_options(problem, options, own["betas"])
        return own.pop("betas"), own
    hottest = options.get("hottest")
    if name not in SUBSAMPLED:
        if hottest is not None and not (_is_number(hottest) and 0 <= hottest < 1):
            raise ArgumentError(f"hottest: wanted a beta in [0, 1), got {hottest!r}")
        betas = options.get("betas")
        betas = None if betas is None else tuple(float(b) for b in check_betas(betas))
        return betas, {"hottest": float(hottest or 0.0)}
    if not isinstance(problem, Problem):
        raise ArgumentError(
            f"method {name!r} leaves rows out, and a Target has none: write it as a Problem with "
            "one term for each row, or heat it by powers with method='pt' or 'tt'"
        )
    return subsampled_options(problem, options)


def _by_hand(
    problem: Problem | Target,
    densities: Densities,
    sampler: Any,
    counts: dict[str, int],
    key: Key,
    options: Options,
) -> tuple[Job, str]:
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
    job = HandJob(problem, densities, traceable(sampler), key=key, sweeps_per_draw=sweeps, **counts)
    return job, type(sampler).__name__


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


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _check_limit(name: str, value: Any) -> None:
    if value is not None and not (_is_number(value) and value > 0):
        raise ArgumentError(f"{name}: wanted a positive number or None, got {value!r}")


def _tell(conductor: Conductor, got: int, wanted: int) -> None:
    """Say that a run ended early, unless it ended as it was asked to."""
    if conductor.stopped == "target_ess" or got >= wanted:
        return
    what = "interrupted" if conductor.stopped == "interrupted" else "out of time"
    warnings.warn(f"{what} after {got} of {wanted} draws; what is finished is kept", RunWarning, 4)
