"""Moves for fast and slow variables: the paper's methods other than the ensemble.

Each leaves its rung invariant, knows its way back, and counts its slow evaluations.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array
from tests.moves.fast_slow import broken_moves as twins
from tests.moves.fast_slow.fast_slow_rung import DENSE, LADDER, RUNG, Exact, draw, params, run

import temperance as tp
from temperance._types import Point, Position
from temperance.errors import ArgumentError, MoveError, UnknownNameError
from temperance.ladders.ladder import SingleRung
from temperance.moves.fast_slow.extra_updates import FastUpdates
from temperance.moves.move import AbstractMove, Params
from temperance.moves.single_site import SingleSite
from temperance.testing import invariance, reversibility

FAST = "level"
FAST_BASE = tp.Gaussian([0.3, -0.1], [1.5, 1.0])
WHOLE_BASE = tp.Gaussian([0.3, -0.1, -0.4], [1.5, 1.0, 1.2])


def near(x: Array, y: Array) -> Array:
    """A log lambda: symmetric, and of no use but to be tried."""
    return -0.3 * jnp.sum((x - y) ** 2)


MOVES: dict[str, tuple[AbstractMove, Params]] = {
    "single site": (tp.single_site(), params(1.6)),
    "extra updates": (tp.extra_updates(tp.metropolis(), FAST, 3), params(1.2, 1.2)),
    "random grid": (tp.random_grid(FAST, 4), params(1.0)),
    "dragging": (tp.dragging(FAST, 4), params(1.5, 1.2)),
    "multiple try": (tp.multiple_try(3), params(1.2)),
    "multiple try, base": (tp.multiple_try(3, base=WHOLE_BASE), params(1.0)),
    "multiset": (tp.multiset(FAST, 4, base=FAST_BASE, times=2), params(1.5, 1.2)),
    "single site, trailing": (replace(tp.single_site(), trailing=1), params(1.2)),
    "single site, dense": (tp.single_site(metric="dense"), params(1.6, factor=DENSE)),
    "extra updates, hmc": (tp.extra_updates(tp.hmc(2), FAST, 3), params(0.7, 1.2)),
    "random grid, dense": (tp.random_grid(FAST, 4, metric="dense"), params(1.0, factor=DENSE)),
    "dragging, dense": (tp.dragging(FAST, 4, metric="dense"), params(1.5, 1.2, factor=DENSE)),
    "multiple try, lambda": (tp.multiple_try(3, log_lambda=near), params(1.2)),
    "multiple try, base, lambda": (
        tp.multiple_try(3, base=WHOLE_BASE, log_lambda=near), params(1.0)
    ),
}  # fmt: skip
SLOW = ("base", "dense", "hmc", "lambda", "trailing")


def marked(names: Any, slow: Callable[[str], bool]) -> list[Any]:
    return [pytest.param(n, marks=pytest.mark.slow) if slow(n) else n for n in names]


@pytest.mark.parametrize("name", marked(MOVES, lambda n: n.endswith(SLOW)))
def test_moves_leave_the_rung_invariant_and_know_their_way_back(name: str, seed: int):
    move, tuned = MOVES[name]
    assert move.exact
    verdict = run(invariance, move, tuned, seed, num_steps=8)
    assert verdict.passed, verdict
    if move.reversible:
        assert move.reversal() is move
        verdict = run(reversibility, move, tuned, seed)
        assert verdict.passed, verdict


@pytest.mark.parametrize(
    "name", marked(("single site", "extra updates", "multiset"), lambda n: n != "single site")
)
def test_there_and_back_is_reversible(name: str, seed: int):
    move, tuned = MOVES[name]
    assert not move.reversible
    verdict = run(reversibility, move, tuned, seed, back=move.reversal())
    assert verdict.passed, verdict


def test_single_site_twice_in_one_order_is_not_reversible(seed: int):
    twin = twins.SingleSiteInOneOrderBothWays((None,), "diagonal")
    verdict = run(
        reversibility, twin, params(1.6), seed, back=twin.reversal(), num_replicates=16384
    )
    assert verdict.moving, verdict
    assert not verdict.lawful, verdict


TWINS: dict[str, tuple[AbstractMove, Params]] = {
    "single site, stale": (
        twins.SingleSiteWithStaleComponents((None,), "diagonal"), params(1.6)
    ),
    "fast updates, stale": (
        tp.alternate(
            tp.metropolis(), twins.FastUpdatesWithStaleComponents((FAST,), 3, (None,), "diagonal")
        ),
        params(1.2, 1.2),
    ),
    **{
        twin.__name__: (twin((FAST,), 4, (None,), "diagonal"), params(1.0))
        for twin in (twins.RandomGridThatForgetsTheSign, twins.RandomGridWithTooFewSlots)
    },
    **{
        twin.__name__: (twin((FAST,), times, (None, None), "diagonal"), params(1.5, 1.2))
        # Of many terms one is not missed much.
        for twin, times in ((twins.DraggingByItsEnds, 4), (twins.DraggingWithoutTheFirstTerm, 2))
    },
    "multiple try without the point": (
        twins.MultipleTryWithoutThePoint(3, None, None, (None,), "diagonal"), params(1.2)
    ),
    **{
        twin.__name__: (
            twin((FAST,), 4, FAST_BASE, 2, (None, None), "diagonal"), params(1.5, 1.2)
        )
        for twin in (twins.MultisetChoosingUniformly, twins.MultisetWeighedByPi)
    },
}  # fmt: skip
# The others are of the same kinds.
MORE = (
    "fast updates, stale",
    "RandomGridWithTooFewSlots",
    "DraggingWithoutTheFirstTerm",
    "MultisetWeighedByPi",
)


@pytest.mark.parametrize("name", marked(TWINS, lambda n: n in MORE))
def test_invariance_rejects_broken_moves(name: str, seed: int):
    verdict = run(invariance, *TWINS[name], seed, num_steps=8)
    assert verdict.moving, verdict
    assert not verdict.lawful, verdict


# What a step knows and counts

EVALUATIONS = {
    "single site": 3,
    "extra updates": 1 + 1,
    "dragging": 2,
    "multiple try": 5,
    "multiset": 1,
}


@pytest.mark.parametrize("name", ["random grid", *EVALUATIONS])
def test_a_point_after_a_step_is_what_evaluation_says(name: str, seed: int):
    move, tuned = MOVES[name]
    exact = Exact(move if name == "multiset" else None)
    point = exact(jax.random.key(seed))
    step = eqx.filter_jit(move.step)
    for i in range(4):
        point, info = step(jax.random.key(i), point, RUNG, tuned)
        fresh = RUNG.evaluate(point.position, gradient=False)
        assert point.gradients is None
        np.testing.assert_allclose(point.components, fresh.components, rtol=1e-11)
        assert info.num_evaluations == info.num_values
        assert info.num_evaluations == EVALUATIONS.get(name, info.num_evaluations)
        assert info.acceptance.shape == (len(move.step_sizes),) == tuned.step_size.shape


@pytest.mark.parametrize("name", ["random grid", "dragging"])
def test_a_chain_that_remembers_prepares_its_slow_variables_once(name: str, seed: int):
    """It goes where one that does not goes, for one evaluation less a step."""
    move, tuned = MOVES[name]
    bare = Exact()(jax.random.key(seed))
    knowing = move.remember(bare, RUNG)
    step = eqx.filter_jit(move.step)
    for i in range(5):
        key = jax.random.key(i)
        (bare, first), (knowing, second) = (step(key, p, RUNG, tuned) for p in (bare, knowing))
        assert first.num_evaluations == second.num_evaluations + 1
        again = move.remember(knowing._replace(memory=None), RUNG)
        for one, two in ((bare, knowing._replace(memory=None)), (knowing, again)):
            same = jax.tree.map(lambda a, b: np.allclose(a, b, rtol=1e-11, atol=1e-14), one, two)
            assert all(jax.tree.leaves(same))


class Counting:
    """A density that counts how often its slow half is evaluated."""

    def __init__(self) -> None:
        self.count = 0

    def tally(self, u: Any) -> np.ndarray:
        self.count += 1
        return np.asarray(u)

    def __call__(self, position: Position) -> Array:
        u = position["shape"][0]
        u = jax.pure_callback(self.tally, jax.ShapeDtypeStruct((), u.dtype), u)
        return -0.5 * u**2 - 0.5 * jnp.sum((position["level"] - u) ** 2)


@pytest.mark.parametrize(
    ("move", "tuned"),
    [(tp.random_grid(FAST, 12), params(0.7)), (tp.dragging(FAST, 5), params(1.0, 1.0)),
     (FastUpdates((FAST,), 9, (None,), "diagonal"), params(1.0))],
    ids=["random grid", "dragging", "fast updates"],
)  # fmt: skip
def test_slow_evaluations_are_those_that_are_counted(move: AbstractMove, tuned: Params, seed: int):
    density = Counting()
    rung = SingleRung(density).at(0)
    point = rung.evaluate(draw(jax.random.key(seed)), gradient=False)
    point.components.block_until_ready()
    step = jax.jit(lambda key, point: move.step(key, point, rung, tuned))
    said, counted = [], []
    for i in range(6):
        density.count = 0
        point, info = step(jax.random.key(i), point)
        jax.block_until_ready(point)
        said.append(int(info.num_evaluations))
        counted.append(density.count)
    assert said == counted
    if move.branches:
        assert min(said) >= 2
        assert max(said) < 13


class WithMemory(SingleRung):
    """Points that carry something of their position."""

    def evaluate(self, position: Position, *, gradient: bool) -> Point:
        point = super().evaluate(position, gradient=gradient)
        return point._replace(memory=2.0 * position["shape"])


@pytest.mark.parametrize("trailing", [0, 1])
def test_single_site_carries_what_evaluation_says_of_a_point(trailing: int, seed: int):
    rung = WithMemory(LADDER.cold).at(0)
    point = rung.evaluate(draw(jax.random.key(seed)), gradient=False)
    move = SingleSite((None,), "diagonal", trailing=trailing)
    moved, info = eqx.filter_jit(move.step)(jax.random.key(seed), point, rung, params(0.8))
    assert info.num_evaluations == 3 - trailing
    np.testing.assert_array_equal(moved.memory, 2.0 * moved.position["shape"])
    fresh = rung.evaluate(moved.position, gradient=False)
    np.testing.assert_allclose(moved.components, fresh.components, rtol=1e-12)


def test_trailing_coordinates_move_with_every_other(monkeypatch: pytest.MonkeyPatch):
    """One slow coordinate and all that trail it change in one proposal, and no other does."""
    seen: list[Any] = []

    class Listening(SingleRung):
        def evaluate(self, position: Position, *, gradient: bool) -> Point:
            jax.debug.callback(lambda v: seen.append(np.array(v)), position["x"], ordered=True)
            return super().evaluate(position, gradient=gradient)

    # Nothing is accepted, so that every proposal starts from zero.
    rung = Listening(lambda position: -1e9 * jnp.sum(position["x"] ** 2)).at(0)
    start = {"x": jnp.zeros(5)}
    tuned = Params(jnp.ones(1), jnp.arange(1.0, 6.0))
    point = Point(start, jnp.zeros(1), None)
    for backwards in (False, True):
        seen.clear()
        move = SingleSite((None,), "diagonal", trailing=2, backwards=backwards)
        moved, _ = move.step(jax.random.key(0), point, rung, tuned)
        jax.block_until_ready(moved)
        jax.effects_barrier()
        turns = [np.flatnonzero(v).tolist() for v in seen]
        wanted = [[i, 3, 4] for i in range(3)]
        assert turns == (wanted[::-1] if backwards else wanted)


# Runs


def log_density(position: Position) -> Array:
    bend = position["level"] - 0.5 * position["shape"] ** 2
    return -0.5 * jnp.sum(position["shape"] ** 2) - 0.5 * jnp.sum(bend**2)


TARGET = tp.Target(
    log_density,
    base=tp.Gaussian(np.zeros(2), 4.0),
    example={"level": np.zeros(1), "shape": np.zeros(1)},
)
ALONE = "multiset"
RUNS: dict[str, Callable[[], AbstractMove]] = {
    "single site": tp.single_site,
    "extra updates": lambda: tp.extra_updates(tp.single_site(), FAST, 3),
    "random grid": lambda: tp.random_grid(FAST, 3),
    "dragging": lambda: tp.dragging(FAST, 3),
    "multiple try": lambda: tp.multiple_try(2),
    ALONE: lambda: tp.multiset(FAST, 3, base=tp.Gaussian([0.5], 4.0)),
}
SHORT = {"num_warmup": 20, "num_draws": 8, "num_chains": 2, "progress": False}
METHODS = {
    "plain": {},
    "pt": {"betas": (0.0, 0.4, 1.0)},
    "tt": {"betas": (0.0, 0.4, 1.0)},
    "st": {"betas": (0.0, 0.4, 1.0)},
    "gibbs-ct": {"base": "prior"},
}
CASES = [
    (name, method) for name in RUNS for method in METHODS if name != ALONE or method == "plain"
]
QUICK = [(ALONE, "plain"), ("single site", "plain"), ("random grid", "plain"), ("dragging", "pt")]


@pytest.mark.parametrize(
    ("name", "method"),
    [
        pytest.param(name, method, marks=() if (name, method) in QUICK else pytest.mark.slow)
        for name, method in CASES
    ],
)
def test_moves_run_by_name(name: str, method: str):
    tree = tp.sample(TARGET, method=method, move=RUNS[name](), **SHORT, **METHODS[method])
    posterior = tree["posterior"].dataset
    assert set(posterior.data_vars) >= {"level", "shape"}
    for leaf in ("level", "shape"):
        draws = posterior[leaf].values
        assert np.isfinite(draws).all()
        assert np.unique(draws).size > 2
    assert tree.attrs["num_evaluations"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_tuned_runs_find_the_known_moments(name: str):
    tree = tp.sample(
        TARGET, method="plain", move=tp.repeat(RUNS[name](), 10),
        num_warmup=300, num_draws=2000, num_chains=4, progress=False,
    )  # fmt: skip
    table = tp.summary(tree).table
    for row, wanted in (("shape[0]", 0.0), ("level[0]", 0.5)):
        mean, error = float(table.loc[row, "mean"]), float(table.loc[row, "mcse_mean"])
        assert abs(mean - wanted) < 5 * error
        assert error < 0.1


# Wrong calls


@pytest.mark.parametrize("method", ["pt", "tt"])
def test_a_multiset_is_refused_on_ladders(method: str):
    with pytest.raises(MoveError, match="method='plain'"):
        tp.sample(TARGET, method=method, move=RUNS[ALONE](), **SHORT, **METHODS[method])


def test_a_multiset_is_refused_between_other_moves():
    with pytest.raises(MoveError, match="cannot take turns"):
        tp.alternate(RUNS[ALONE](), tp.metropolis())


@pytest.mark.parametrize("name", ["extra updates", "random grid", "dragging", ALONE])
def test_unknown_leaves_are_refused(name: str):
    base = tp.Gaussian([0.5], 4.0)
    moves = {
        "extra updates": tp.extra_updates(tp.metropolis(), "levle"),
        "random grid": tp.random_grid("levle"),
        "dragging": tp.dragging("levle"),
        ALONE: tp.multiset("levle", base=base),
    }
    with pytest.raises(UnknownNameError, match="did you mean 'level'"):
        tp.sample(TARGET, method="plain", move=moves[name], **SHORT)


def test_fast_leaves_have_to_be_named_where_the_problem_names_none():
    with pytest.raises(ArgumentError, match="name the leaves"):
        tp.sample(TARGET, method="plain", move=tp.dragging(), **SHORT)


WRONG_BASES = {
    "multiple try": tp.multiple_try(2, base=tp.Gaussian([0.0], 1.0)),
    ALONE: tp.multiset(FAST, 3, base=tp.Gaussian([0.0, 0.0], 1.0)),
}


@pytest.mark.parametrize("name", WRONG_BASES)
def test_bases_of_another_size_are_refused(name: str):
    with pytest.raises(MoveError, match="base: draws have shape"):
        tp.sample(TARGET, method="plain", move=WRONG_BASES[name], **SHORT)


WRONG: dict[str, Callable[[], Any]] = {
    "negative scale": lambda: tp.single_site(-1.0),
    "unknown metric": lambda: tp.single_site(metric="full"),
    "no extra updates": lambda: tp.extra_updates(tp.metropolis(), FAST, 0),
    "extra updates of nothing": lambda: tp.extra_updates("metropolis", FAST),
    "no grid": lambda: tp.random_grid(FAST, 0),
    "half a grid": lambda: tp.random_grid(FAST, 0.5),
    "nothing to drag": lambda: tp.dragging(FAST, 1),
    "dragging nowhere": lambda: tp.dragging(FAST, 4, 0.0),
    "one try": lambda: tp.multiple_try(1),
    "a base that cannot be drawn": lambda: tp.multiple_try(2, base=near),
    "a walk from a base": lambda: tp.multiple_try(2, 1.0, base=WHOLE_BASE),
    "lambda of nothing": lambda: tp.multiple_try(2, log_lambda=3.0),
    "one member": lambda: tp.multiset(FAST, 1, base=FAST_BASE),
    "no base": lambda: tp.multiset(FAST, 3, base=None),
    "leaves without a name": lambda: tp.dragging(["level", ""]),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_options_are_refused(name: str):
    with pytest.raises((ArgumentError, MoveError, TypeError)):
        WRONG[name]()


def test_more_trailing_coordinates_than_there_are_are_refused():
    point = Exact()(jax.random.key(0))
    with pytest.raises(MoveError, match="trailing"):
        SingleSite((None,), "diagonal", trailing=3).step(
            jax.random.key(0), point, RUNG, params(1.0)
        )
