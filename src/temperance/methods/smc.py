"""`smc`: adaptive tempered sequential Monte Carlo, by powers or by growing subsamples.

    temper    islands of particles go from the hottest rung to the target, a temperature a round;
              each adapts its temperatures, scales and numbers of moves by its own particles
    draw      the particles at the target are the draws: a chain is an island

Nothing is tuned beforehand, so `num_warmup` is not used. Particles are equally weighted at the end.
Those of one island share ancestors, and log Z has its error from the spread between islands
(engine/islands.py; the sampler itself is samplers/annealing/smc.py).
"""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from temperance._types import Options as Values
from temperance.engine.islands import finished, init_islands, island_evidence, step_islands
from temperance.engine.method import Call, Method, Shared
from temperance.engine.options import count, flag, number, one_of, option
from temperance.engine.run import Place, Stage
from temperance.errors import ArgumentError, InterruptedRunError
from temperance.ladders.geometric import GeometricLadder
from temperance.ladders.ladder import AbstractLadder
from temperance.methods.report.evidence import LogEvidence, estimates
from temperance.methods.report.piece import Arrays, Piece, Report, tempering
from temperance.methods.report.rungs import Draws
from temperance.programs.random_streams import Run, Stage as Streams, stream
from temperance.rows.nested_subsamples import checked_sizes
from temperance.samplers.annealing.particles import ParticleInfo
from temperance.samplers.annealing.resampling import SCHEMES
from temperance.samplers.annealing.smc import SequentialMonteCarlo
from temperance.warmup.base_options import BaseOptions, check_move, with_base_asked
from temperance.warmup.rung_options import given, increasing_betas
from temperance.warmup.subsample_rungs import SubsampleRungs

MOST_TEMPERATURES = 2**12
# Rows of the first subsample that is not empty; each further one has twice as many.
FIRST_ROWS = 2
# Ancestors of an island are called few below this share of its particles, or below this number.
FEW_ORIGINS, FEWEST_ORIGINS = 0.02, 10
LARGE_ERROR = 0.5
MORE_PARTICLES = (
    "give more particles (num_draws=), a larger conditional_ess, or a base that is nearer to the "
    "target"
)
SHARE = "a share between 0 and 1"


def a_share(value: float) -> bool:
    """Whether it lies between 0 and 1."""
    return 0 < value < 1


@dataclass(frozen=True, kw_only=True)
class Options(BaseOptions):
    """Temperatures, resampling and moves; the number of particles is `num_draws`, by island."""

    conditional_ess: float = option(
        0.5,
        "the next beta keeps this share of the particles' effective size",
        number(SHARE, a_share),
    )
    betas: tuple[float, ...] | None = option(
        None, "the betas themselves, from 0 to 1 (default: by conditional_ess)", increasing_betas
    )
    by_rows: bool = option(
        False, "add rows instead of heat: nested subsamples that double in size", flag()
    )
    sizes: Any = option(
        None,
        "rows of each such subsample, from 0 to all, kept as given (default: doubled from 2 on)",
        given,
        kind="rows or shares",
    )
    resampling: str = option(
        "systematic",
        "how ancestors are drawn: systematic, stratified or multinomial",
        one_of("resampling scheme", SCHEMES),
    )
    waste_free: int | None = option(
        None, "how many ancestors start chains whose states are all particles (default: none)",
        count(1),
    )  # fmt: skip
    num_moves: int | None = option(
        None, "moves at each temperature (default: until particles have forgotten)", count(1)
    )
    correlation: float = option(
        0.1,
        "forgotten is a mean correlation with where moves began below this",
        number(SHARE, a_share),
    )
    most_moves: int = option(100, "moves at each temperature at most", count(1))


@dataclass(frozen=True)
class Temperatures:
    """How many temperatures have been passed."""

    passed: int


@dataclass(frozen=True)
class Islands(Shared):
    """Independent islands of particles, and the ladder that they descend."""

    ladder: AbstractLadder

    rungs = Temperatures

    @property
    def sampler(self) -> SequentialMonteCarlo:
        options = self.call.options
        adapts = isinstance(self.ladder, GeometricLadder) and options.betas is None
        return SequentialMonteCarlo(
            self.ladder, self.call.move, self.call.num_draws,
            conditional_ess=options.conditional_ess if adapts else None,
            resampling=options.resampling, num_ancestors=options.waste_free,
            num_moves=options.num_moves, correlation=options.correlation,
            most_moves=options.most_moves,
        )  # fmt: skip

    def identity(self) -> Values:
        return super().identity() | {"num_draws": self.call.num_draws}


def prepare(call: Call) -> Islands:
    """The ladder from the base, or from no rows, to the target."""
    options = call.options
    check_particles(call)
    call = replace(call, num_warmup=0)  # there is no warm-up, and it is no part of a run's identity
    if options.by_rows or options.sizes is not None:
        ladder = growing_subsamples(call)
    else:
        if options.betas is not None and options.betas[0] != 0:
            raise ArgumentError(f"betas: they have to begin at 0, the base; got {options.betas[0]}")
        call, _ = with_base_asked(call)
        d = call.densities
        assert d.hot is not None
        betas = options.betas or (0.0, 1.0)
        ladder = GeometricLadder(d.hot, d.cold, betas, bridge=d.bridge, draw_hot=d.draw)
    shared = Islands(call, ladder)
    _ = shared.sampler  # which says what is wrong with its options
    return shared


def check_particles(call: Call) -> None:
    """Raise where options do not go together, with the names that a call gives them."""
    options, num = call.options, call.num_draws
    chosen = options.conditional_ess != Options.conditional_ess
    if num < 2:
        raise ArgumentError(f"num_draws: they are the particles of an island, 2 or more; got {num}")
    if chosen and (options.betas is not None or options.by_rows or options.sizes is not None):
        raise ArgumentError(
            "conditional_ess: it chooses the betas, and these are given, or rows take their place; "
            "leave it out"
        )
    if options.waste_free is None:
        return
    if num % options.waste_free or num == options.waste_free:
        raise ArgumentError(
            f"waste_free: wanted a number of ancestors below the {num} particles of an island "
            f"(num_draws=) that divides them, got {options.waste_free}"
        )
    if options.num_moves is not None:
        raise ArgumentError("num_moves and waste_free: a chain's length says how often it moves")


def growing_subsamples(call: Call) -> AbstractLadder:
    """Nested subsamples from none to all rows; each island has them in an order of its own."""
    options, n = call.options, call.densities.num_rows
    for other in ("betas", "base"):
        if getattr(options, other) is not None:
            raise ArgumentError(f"{other}: it belongs to powers, and not to subsamples; leave it")
    if not n:
        raise ArgumentError(
            "method 'smc' with sizes or by_rows adds rows as it goes, and a Target has none: write "
            "it as a Problem with one term for each row"
        )
    check_move(call, bridge=call.densities.bridge)
    sizes = options.sizes
    if sizes is None:
        doubled = FIRST_ROWS * 2 ** np.arange(int(np.ceil(np.log2(max(n / FIRST_ROWS, 1)))))
        sizes = np.unique(np.r_[0, np.minimum(doubled, n), n])
    rows = checked_sizes(sizes, n)
    if rows[0] != 0:
        raise ArgumentError(f"sizes: they have to begin at 0 rows, the prior; got {rows[0]}")
    shares = tuple(float(share) for share in np.asarray(rows) / n)
    return SubsampleRungs(call, shares).ladder(SubsampleRungs(call, shares).initial())


# -- stages --------------------------------------------------------------------------------------


class Path(NamedTuple):
    """What each temperature did, (temperature, island, ...)."""

    info: ParticleInfo


class Temper(Stage):
    """From the hottest rung to the target; a round is a temperature."""

    kinds = ("temper",)

    def enter(self, shared: Islands, left: Any) -> tuple[Place, PyTree]:
        key = stream(shared.key(Place("temper", 0, 1)), Streams.STARTS)
        state = init_islands(shared.sampler, key, shared.call.num_chains)
        return Place("temper", 0, 1, Temperatures(0)), (state, None)

    def sampler(self, shared: Islands, place: Place, carry: PyTree) -> SequentialMonteCarlo:
        return shared.sampler

    def blocks(self, shared: Islands, place: Place, carry: PyTree, size: int) -> "OneTemperature":
        return OneTemperature(shared)

    def after(self, shared: Islands, place: Place, carry: PyTree) -> tuple[Place | None, Any]:
        state, _ = carry
        passed = place.round + 1
        if finished(state):
            return None, (passed, carry)
        if passed == MOST_TEMPERATURES:
            raise InterruptedRunError(
                f"after {passed} temperatures an island is at beta = "
                f"{float(jnp.min(state.beta)):.3g}: give a smaller conditional_ess, or a base that "
                "is nearer to the target"
            )
        return Place("temper", passed, 1, Temperatures(passed)), carry

    def template(self, shared: Islands, place: Place) -> PyTree:
        return shapes(shared, place.round + 1)


@dataclass(frozen=True)
class OneTemperature:
    """The block of one temperature. Its key is the same for all of them."""

    shared: Islands

    def learn(self, carry: PyTree, start: int, count: int) -> tuple[PyTree, dict[str, Any]]:
        """All islands' next temperature."""
        state, path = carry
        key = stream(self.shared.call.key, Run.TEMPER)
        state, info = step_islands(self.shared.sampler, key, state)
        info = jax.tree.map(lambda leaf: leaf[None], info)
        if path is not None:
            info = jax.tree.map(lambda old, new: jnp.concatenate([old, new]), path.info, info)
        return (state, Path(info)), {}


class Particles(Stage):
    """The particles at the target, as draws."""

    kinds = ("draw",)
    draws = True

    def enter(self, shared: Islands, left: Any) -> tuple[Place, PyTree]:
        passed, carry = left
        return Place("draw", 0, shared.call.num_draws, Temperatures(passed)), carry

    def sampler(self, shared: Islands, place: Place, carry: PyTree) -> SequentialMonteCarlo:
        return shared.sampler

    def blocks(self, shared: Islands, place: Place, carry: PyTree, size: int) -> "Slices":
        return Slices(shared, carry)

    def template(self, shared: Islands, place: Place) -> PyTree:
        return shapes(shared, place.rungs.passed)


@dataclass(frozen=True)
class Slices:
    """Blocks of draws: particles `start` to `start + count` of every island."""

    shared: Islands
    carry: PyTree

    def draw(self, carry: PyTree, start: int, count: int) -> tuple[PyTree, dict[str, np.ndarray]]:
        """The particles, with the costs and rates of the whole run shared out among them."""
        state, path = self.carry
        num, info = self.shared.call.num_draws, path.info
        record = _snapshots(self.shared.sampler, state)
        cut = self.order(num)[start : start + count]
        draws = {
            name: np.moveaxis(np.asarray(record[name]), 0, 1)[cut] for name in ("position", "lp")
        }
        last = np.asarray(info.moving).sum(axis=0) - 1
        islands = np.arange(len(last))
        for name, stat in (("acceptance", info.acceptance), ("num_moves", info.num_moves)):
            value = np.asarray(stat)[last, islands]
            draws[name] = np.broadcast_to(value, (len(draws["lp"]), *value.shape))
        draws["acceptance"] = draws["acceptance"][:, :, None]
        for name in ("diverging", "num_evaluations", "num_values", "num_rows", "impossible"):
            each = np.asarray(getattr(info, name), float).sum(axis=0) / num
            draws[name] = np.broadcast_to(each, (len(draws["lp"]), *each.shape))[:, :, None]
        return carry, draws

    def order(self, num: int) -> np.ndarray:
        """The order of draws: chain by chain, where particles are states of chains.

        Correlated draws are then neighbours, as in any chain, and estimates of autocorrelation are
        right.
        """
        ancestors = self.shared.sampler.num_ancestors or num
        return np.arange(num).reshape(-1, ancestors).T.ravel()


@eqx.filter_jit
def _snapshots(sampler: SequentialMonteCarlo, state: PyTree) -> dict[str, Array]:
    return jax.vmap(sampler.snapshot)(state)


def shapes(shared: Islands, passed: int) -> PyTree:
    """The shapes of what is carried after so many temperatures."""
    sampler, chains = shared.sampler, shared.call.num_chains
    key = stream(shared.call.key, Run.TEMPER)
    state = init_islands(sampler, key, chains)
    info = jax.eval_shape(lambda: step_islands(sampler, key, state)[1])
    longer = jax.tree.map(lambda s: jax.ShapeDtypeStruct((passed, *s.shape), s.dtype), info)
    return state, Path(longer)


# -- report --------------------------------------------------------------------------------------


class Descent(Piece):
    """The betas that islands passed, and how particles fared there."""

    def arrays(self, run: Any) -> Arrays:
        info = run.learnt.info
        moving = np.asarray(info.moving)
        axes = ("temperature", "chain")
        group: Arrays = {
            name: (axes, np.where(moving, np.asarray(value, float), np.nan))
            for name, value in (
                ("beta", info.beta), ("ess", info.ess), ("conditional_ess", info.conditional_ess),
                ("num_moves", info.num_moves), ("correlation", info.correlation),
                ("origins", info.num_origins),
            )
        }  # fmt: skip
        for name, value in (("move_acceptance", info.acceptance), ("step_size", info.step_size)):
            shown = np.where(moving[..., None], np.asarray(value, float), np.nan)
            group[name] = ((*axes, "part"), shown)
        return group

    def facts(self, tree: Any) -> dict[str, Any]:
        path = tempering(tree)
        return {
            "particles by island": tree["posterior"].sizes["draw"],
            "temperatures by island": np.isfinite(path["beta"].values).sum(axis=0),
            "moves by island": np.nansum(path["num_moves"].values, axis=0).astype(int),
            "ancestors by island": _last(path["origins"].values).astype(int),
        }

    def warnings(self, tree: Any) -> list[str]:
        path, num = tempering(tree), tree["posterior"].sizes["draw"]
        origins, found = _last(path["origins"].values), []
        if origins.min() < max(FEWEST_ORIGINS, FEW_ORIGINS * num):
            found.append(
                f"the {num} particles of an island descend from {int(origins.min())} draws of the "
                f"base: modes that the other draws led to are lost; {MORE_PARTICLES}"
            )
        return found


class IslandEvidence(LogEvidence):
    """Log Z from the mean of the islands' estimates."""

    def evidence(self, run: Any) -> Arrays:
        log_z = np.asarray(run.learnt.info.log_z_step, float).sum(axis=0)
        return estimates({"islands": island_evidence(log_z)})

    def warnings(self, tree: Any) -> list[str]:
        error = float(tree["evidence"]["error"].values[0])
        if tree["posterior"].sizes["chain"] == 1:
            return ["log evidence has no error bar: one island has no spread; give num_chains=4"]
        if not error <= LARGE_ERROR:
            words = (
                f"islands disagree about log evidence: its standard error is {error:.2g}; give "
                "more particles (num_draws=), more islands (num_chains=) or a larger "
                "conditional_ess"
            )
            return [words]
        return []


def _last(values: np.ndarray) -> np.ndarray:
    """The last number of each column that is one."""
    last = np.isfinite(values).sum(axis=0) - 1
    return values[last, np.arange(values.shape[1])]


def work(run: Any) -> dict[str, float]:
    """Rows, as the sampler counts them on subsamples; all of them otherwise."""
    by_rows = not isinstance(run.sampler.ladder, GeometricLadder)
    if by_rows:
        return {"num_row_evaluations": float(run.draws["num_rows"].sum())}
    evaluations = float(run.draws["num_evaluations"].sum())
    return {"num_row_evaluations": evaluations * run.num_rows}


METHOD = Method(
    name="smc",
    summary="sequential Monte Carlo: islands of particles, tempered and resampled as they go",
    options=Options,
    prepare=prepare,
    stages=(Temper(), Particles()),
    report=Report(
        (Draws(), Descent(), IslandEvidence()),
        work,
        serial=False,
        if_chains_disagree=MORE_PARTICLES,
    ),
    sampler=SequentialMonteCarlo,
    ladder=AbstractLadder,
    references=("delmoral2006", "dau2022", "zhou2016", "douc2005"),
)
