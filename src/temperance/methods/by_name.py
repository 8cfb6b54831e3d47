"""How a call by a method's name becomes a job.

    options and move, checked -> the base, fitted where one is wanted -> a plan -> a job

Every check stands before the fit, which may take longer than the run itself.
"""

from dataclasses import replace

from temperance._types import Key, Options
from temperance.bases.choice import base_asked, with_base
from temperance.problems.checks import check_count, is_number
from temperance.methods.equi_energy_options import equi_energy_options
from temperance.methods.equi_energy_plan import EquiEnergyPlan
from temperance.errors import ArgumentError, MoveError, unknown_name
from temperance.ladders.geometric import check_betas
from temperance.engine.jobs import TunedJob
from temperance.methods.joint_plan import JointPlan
from temperance.problems.layout import Layout
from temperance.methods.methods import Method, check_options, method_named, move_named
from temperance.methods.minibatch_options import mint_move, mintee_options
from temperance.methods.mintee_plan import MinteePlan
from temperance.moves.move import AbstractMove
from temperance.methods.plan import ALONE, TRANSITIONS, Plan
from temperance.problems.problem import Densities, Problem, Target
from temperance.programs.compiled import traceable
from temperance.samplers.parallel.swaps import SCHEMES
from temperance.methods.subsampled_options import subsampled_options
from temperance.methods.travel_options import check_travelling_move, travel_options
from temperance.methods.travel_plan import TravelPlan

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


def job_by_name(
    problem: Problem | Target,
    densities: Densities,
    name: str,
    move: str | AbstractMove | None,
    counts: Options,
    key: Key,
    options: Options,
    fitting: Options,
) -> TunedJob:
    """The job of method `name`; `fitting` is how a base is fitted, where the method asks for one.

    `counts` are the numbers of chains, of steps of warm-up and of draws.
    """
    method = method_named(name)
    check_options(method, options)
    kernel = _kernel(problem, densities.layout, method, move, options)
    if method.base == "own" and densities.hot is None:
        raise ArgumentError(
            f"method {name!r} heats the target towards a base and this Target has none: give "
            "Target(..., base=Gaussian(mean, covariance)), or use method='plain'"
        )
    betas, num_rungs, own = _rungs(problem, densities, name, options, counts["num_warmup"])
    scheme = options.get("scheme", "deo")
    if scheme not in SCHEMES:
        raise unknown_name("swap scheme", scheme, SCHEMES)
    sweeps = check_count(
        "sweeps_per_draw", options.get("sweeps_per_draw", SWEEPS_PER_DRAW.get(name, 1)), 1
    )
    swaps = check_count(
        "swaps_per_sweep", options.get("swaps_per_sweep", SWAPS_PER_SWEEP[scheme]), 1
    )
    start = kernel.draw_start()
    # On a ladder the same draws are those of its hottest rung.
    if start is not None and name in ALONE:
        densities = replace(densities, draw=start)
    if name in TRAVELS:
        base = base_asked(problem, densities, method, options.get("base"))
        check_travelling_move(name, kernel, densities, densities.bridge or base is not None)
        densities, fit = with_base(problem, densities, base, **fitting)
        # Warm-up learns log zeta; without one, the fit's bound is all there is.
        guessed = "log_zeta" in method.options and "log_zeta" not in options
        if fit is not None and guessed and not counts["num_warmup"]:
            own["log_zeta"] = float(fit.log_zeta)
    plan = (ENERGIES | TRAVELS).get(name, Plan)(
        problem, densities, name, kernel, key=key, num_rungs=num_rungs, betas=betas,
        scheme=scheme, swaps_per_sweep=swaps, **counts, **own,
    )  # fmt: skip
    return TunedJob(plan, sweeps)


def _kernel(
    problem: Problem | Target,
    layout: Layout,
    method: Method,
    move: str | AbstractMove | None,
    options: Options,
) -> AbstractMove:
    """The move, if the method can use it."""
    kernel = traceable(move_named(move, method.move).placed(problem, layout))
    if method.name == "mint":
        kernel = mint_move(problem, kernel, options)
    if method.name in TRANSITIONS and (kernel.reversal() is None or not kernel.exact):
        raise MoveError(
            f"tempered transitions need an exact move that can be run backwards, and {kernel} is "
            "not: use metropolis, mala, hmc, nuts or slice, or repeat or alternate some of them"
        )
    return kernel


def _rungs(
    problem: Problem | Target, densities: Densities, name: str, options: Options, num_warmup: int
) -> tuple[tuple[float, ...] | None, int | None, Options]:
    """The betas and the number of rungs, if they are given, and what else a plan is told."""
    if name in TRAVELS:
        betas, num_rungs, own = travel_options(problem, name, densities.layout, options)
    else:
        betas, own = _ladder_options(problem, name, options, num_warmup)
        num_rungs = options.get("num_rungs")
    if num_rungs is not None:
        num_rungs = check_count("num_rungs", num_rungs, 2)
        if betas is not None and len(betas) != num_rungs:
            what = WHAT_RUNGS_HAVE.get(name, "betas")
            raise ArgumentError(f"num_rungs is {num_rungs}, but there are {len(betas)} {what}")
    return betas, num_rungs, own


def _ladder_options(
    problem: Problem | Target, name: str, options: Options, num_warmup: int
) -> tuple[tuple[float, ...] | None, Options]:
    """The betas, if they are given, and what else a plan is told whose rungs run side by side."""
    if name in ENERGIES:
        own = equi_energy_options(options, num_warmup)
        if name == "mintee":
            own |= mintee_options(problem, options, own["betas"])
        return own.pop("betas"), own
    hottest = options.get("hottest")
    if name not in SUBSAMPLED:
        if hottest is not None and not (is_number(hottest) and 0 <= hottest < 1):
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
