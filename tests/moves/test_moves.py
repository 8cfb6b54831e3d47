"""Moves leave a rung's density invariant, and are reversible where they say so."""

from collections.abc import Callable
from typing import Any

import blackjax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array
from tests.moves import broken_moves as broken
from tests.moves.curved_rung import DENSE, DIAGONAL, RUNG, Exact, params, run, volume

from temperance._types import Key, Point
from temperance.errors import ArgumentError, UnknownNameError
from temperance.ladders.ladder import Rung
from temperance.moves import accept, hmc as hmc_module
from temperance.moves.auto_step import auto_step
from temperance.moves.blackjax import elliptical_slice, from_blackjax, nuts, slice_sampling
from temperance.moves.combine import alternate, repeat
from temperance.moves.fast_slow.ensemble import ensemble
from temperance.moves.hmc import Hmc, hmc
from temperance.moves.mala import mala
from temperance.moves.metropolis import metropolis
from temperance.moves.minibatch.delayed import delayed
from temperance.moves.minibatch.mint import mint
from temperance.moves.move import AbstractMove, Info, Params
from temperance.results.references import REFERENCES
from temperance.testing import invariance, reversibility

MOVES: dict[str, tuple[AbstractMove, Params, tuple[float, float]]] = {
    "metropolis": (metropolis(), params(1.2), (0.3, 0.8)),
    "metropolis, dense": (metropolis(metric="dense"), params(1.2, factor=DENSE), (0.3, 0.8)),
    "mala": (mala(), params(1.0), (0.4, 0.95)),
    "mala, dense": (mala(metric="dense"), params(1.0, factor=DENSE), (0.4, 0.95)),
    "hmc": (hmc(3), params(0.7), (0.5, 0.98)),
    "hmc, dense": (hmc(3, metric="dense"), params(0.7, factor=DENSE), (0.5, 0.98)),
    "autostep": (auto_step(3), params(0.7), (0.5, 0.98)),
    "autostep, dense": (auto_step(1, metric="dense"), params(0.7, factor=DENSE), (0.4, 0.98)),
    "repeat": (repeat(metropolis(), 3), params(1.5), (0.5, 0.99)),
    "blackjax hmc": (
        from_blackjax(blackjax.hmc, 2, num_integration_steps=3), params(0.7), (0.5, 1.0)
    ),
    "nuts": (nuts(max_num_doublings=3), params(0.7), (0.8, 1.0)),
    "slice": (slice_sampling(width=2.0), params(1.0), (0.9, 1.0)),
    "elliptical slice": (elliptical_slice([0.0, 0.5], [1.0, 2.0]), params(1.0), (0.9, 1.0)),
}  # fmt: skip


# HMC's dense factor goes through the same two functions.
SLOW = ("metropolis, dense", "mala, dense", "autostep, dense")


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow) if n in SLOW else n for n in MOVES]
)
def test_moves_leave_the_rung_invariant_and_are_reversible(name: str, seed: int):
    move, tuned, band = MOVES[name]
    assert move.exact
    assert move.reversible
    verdict = run(invariance, move, tuned, seed, num_steps=12, band=band)
    assert verdict.passed, verdict
    verdict = run(reversibility, move, tuned, seed, band=band)
    assert verdict.passed, verdict


TWINS: dict[str, tuple[AbstractMove, Params]] = {
    "drifting metropolis": (broken.DriftingMetropolis((None,), "diagonal"), params(1.2)),
    "mala without reverse": (broken.MalaWithoutReverse((None,), "diagonal"), params(1.0)),
    **{
        twin.__name__: (twin(3, 0.0, (None,), "diagonal", (0.8,)), params(0.7))
        for twin in (
            broken.HmcWithoutKineticTerm,
            broken.HmcWithKineticSignFlipped,
            broken.HmcWithoutLastHalfStep,
            broken.HmcWithStepSizeByPosition,
        )
    },
    **{
        twin.__name__: (twin(3, 0.3, 20, (None,), "diagonal", (0.8,)), params(0.7))
        for twin in (broken.AutoStepWithoutCheck, broken.AutoStepWithoutRatio)
    },
    "stale blackjax": (
        broken.StaleBlackjax(
            blackjax.hmc, 1, {"num_integration_steps": 3}, None, (None,), "diagonal", (0.8,),
            True, True, True,
        ),
        params(0.7),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TWINS)
def test_invariance_rejects_broken_moves(name: str, seed: int):
    verdict = run(invariance, *TWINS[name], seed, num_steps=12)
    assert verdict.moving, verdict
    assert not verdict.lawful, verdict


def test_the_loose_hmc_without_a_slip_is_hmc(seed: int):
    """The twins differ from ours in their slips alone."""
    loose = broken._LooseHmc(3, 0.0, (None,), "diagonal", (0.8,))
    point = Exact(RUNG, True)(jax.random.key(seed))
    proposals = []
    for move in (loose, hmc(3, jitter=0.0)):
        step = eqx.filter_jit(move.step)
        ends = [step(jax.random.key(i), point, RUNG, params(0.7)) for i in range(3)]
        proposals.append([info.acceptance[0] for _, info in ends])
    np.testing.assert_allclose(*proposals, rtol=1e-12)


class OneCoordinate(AbstractMove):
    """Metropolis along one axis: reversible alone, not in a fixed order with the other."""

    axis: int = eqx.field(static=True)
    step_sizes: tuple[float | None, ...] = eqx.field(static=True, default=(None,))
    metric: str = eqx.field(static=True, default="diagonal")
    target_acceptance: tuple[float, ...] = eqx.field(static=True, default=(0.4,))
    reversible: bool = eqx.field(static=True, default=True)
    exact: bool = eqx.field(static=True, default=True)
    uses_gradient: bool = eqx.field(static=True, default=False)

    def step(self, key: Key, point: Point, rung: Rung, params: Params) -> tuple[Point, Info]:
        only = params.factor * (jnp.arange(2) == self.axis)
        return metropolis().step(key, point, rung, params._replace(factor=only))


def test_alternate_is_invariant_but_not_reversible(seed: int):
    move = alternate(OneCoordinate(1), OneCoordinate(0))
    assert not move.reversible
    verdict = run(invariance, move, params(1.5, 1.5), seed, num_steps=12)
    assert verdict.passed, verdict
    verdict = run(reversibility, move, params(1.5, 1.5), seed, num_replicates=8192)
    assert verdict.moving, verdict
    assert not verdict.lawful, verdict


def test_alternate_renews_gradients_that_its_parts_do_not_keep(seed: int):
    move = alternate(metropolis(), hmc(2))
    assert move.uses_gradient
    verdict = run(invariance, move, params(1.2, 0.7), seed, num_steps=6)
    assert verdict.passed, verdict
    point = Exact(RUNG, True)(jax.random.key(seed))
    step = eqx.filter_jit(move.step)
    _, info = step(jax.random.key(seed), point, RUNG, params(1.2, 0.7))
    for i in range(4):
        point, _ = step(jax.random.key(i), point, RUNG, params(1.2, 0.7))
        fresh = RUNG.evaluate(point.position, gradient=True)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-12), point, fresh)
    assert info.acceptance.shape == (2,)
    assert info.num_evaluations == 1 + 1 + 2


@pytest.mark.parametrize("name", ["metropolis", "mala", "hmc", "repeat", "nuts"])
def test_a_point_after_a_step_is_what_evaluation_says(name: str, seed: int):
    move, tuned, _ = MOVES[name]
    point = Exact(RUNG, move.uses_gradient)(jax.random.key(seed))
    step = eqx.filter_jit(move.step)
    for i in range(3):
        point, _ = step(jax.random.key(i), point, RUNG, tuned)
        fresh = RUNG.evaluate(point.position, gradient=point.gradients is not None)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-11), point, fresh)


# Leapfrog, without randomness: the momentum is given, every proposal kept, and the last momentum is
# read off the position one step further on.


def flow(
    monkeypatch: pytest.MonkeyPatch, move: Callable[[int], Hmc], factor: Array, num_steps: int
):
    size = 0.4
    tuned = params(size, factor=factor)

    def keep(log_ratio: Array) -> tuple[Array, Array]:
        return jnp.ones_like(log_ratio), jnp.full_like(log_ratio, jnp.inf)

    monkeypatch.setattr(accept, "acceptance_of", keep)
    monkeypatch.setattr(broken, "acceptance_of", keep)

    def end(x: Array, momentum: Array, num_steps: int) -> Array:
        def given(*_: Any) -> tuple[Array, Array]:
            return momentum, jnp.full(2, 0.5)

        monkeypatch.setattr(hmc_module, "normals_and_uniforms", given)
        monkeypatch.setattr(broken, "normals_and_uniforms", given)
        point = RUNG.evaluate(x, gradient=True)
        return move(num_steps).step(jax.random.key(0), point, RUNG, tuned)[0].position

    def both(x: Array, momentum: Array) -> tuple[Array, Array]:
        last, next_ = end(x, momentum, num_steps), end(x, momentum, num_steps + 1)
        matrix = jnp.diag(factor) if factor.ndim == 1 else factor
        gradient = RUNG.gradient(RUNG.evaluate(last, gradient=True))
        kicked = jnp.linalg.solve(matrix, (next_ - last) / size)
        return last, kicked - 0.5 * size * matrix.T @ gradient

    return both


@pytest.mark.parametrize("factor", [DIAGONAL, DENSE], ids=["diagonal", "dense"])
def test_leapfrog_runs_backwards_and_keeps_volume(monkeypatch, factor: Array, seed: int):
    def build(num_steps: int) -> Hmc:
        return hmc(num_steps, jitter=0.0)

    both = flow(monkeypatch, build, factor, 3)
    rng = np.random.default_rng(seed)
    x, z = jnp.asarray(rng.normal(size=(2, 2)))
    both = jax.jit(both)
    there = both(x, z)
    assert np.linalg.norm(there[0] - x) > 0.1
    back = both(there[0], -there[1])
    np.testing.assert_allclose(back[0], x, atol=1e-11)
    np.testing.assert_allclose(-back[1], z, atol=1e-11)
    assert abs(volume(both, x, z) - 1) < 1e-10


def test_backward_run_and_volume_reject_the_slips(monkeypatch, seed: int):
    rng = np.random.default_rng(seed)
    x, z = jnp.asarray(rng.normal(size=(2, 2)))

    def twin(kind: type[Hmc]) -> Callable[[int], Hmc]:
        return lambda num_steps: kind(num_steps, 0.0, (None,), "diagonal", (0.8,))

    both = flow(monkeypatch, twin(broken.HmcWithoutLastHalfStep), DIAGONAL, 3)
    there = both(x, z)
    assert np.linalg.norm(both(there[0], -there[1])[0] - x) > 1e-3
    both = flow(monkeypatch, twin(broken.HmcWithStepSizeByPosition), DIAGONAL, 3)
    assert abs(volume(both, x, z) - 1) > 1e-3


WRONG = {
    "negative scale": lambda: metropolis(-1.0),
    "unknown metric": lambda: metropolis(metric="full"),
    "zero step size": lambda: mala(0.0),
    "no leapfrog steps": lambda: hmc(0),
    "half a leapfrog step": lambda: hmc(0.5),
    "a bool for a count": lambda: hmc(True),
    "jitter of one": lambda: hmc(jitter=1.0),
    "impossible acceptance": lambda: hmc(target_acceptance=1.0),
    "auto step without steps": lambda: auto_step(0),
    "auto step without doublings": lambda: auto_step(max_doublings=0),
    "auto step with a jitter of one": lambda: auto_step(jitter=1.0),
    "negative auto step": lambda: auto_step(step_size=-0.1),
    "repeat never": lambda: repeat(mala(), 0),
    "no blackjax steps": lambda: from_blackjax(blackjax.nuts, 0),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_options_are_refused(name: str):
    with pytest.raises((ArgumentError, TypeError)):
        WRONG[name]()


def test_moves_name_the_papers_behind_them_and_their_parts():
    for name, (move, *_) in MOVES.items():
        assert move.references, name
        assert set(move.references) <= set(REFERENCES)
    assert slice_sampling().references == ("blackjax2024", "neal2003")
    assert alternate(metropolis(), repeat(mala(), 2)).references == (
        "metropolis1953",
        "roberts1996",
    )
    assert delayed("mala").references == ("christen2005", "roberts1996")
    assert ensemble("x").references == ("neal2010", "metropolis1953")


def test_only_moves_on_batches_have_a_law_of_batches():
    assert hmc().batch_law(100) is None
    for noise in ("penalty", "common", "pseudo-marginal"):
        move = mint(noise=noise, batch_size=16)
        law = move.batch_law(100)
        assert law is not None
        assert law.beta == pytest.approx(0.04)
        assert getattr(move, "noise") == noise  # noqa: B009  moves without batches have none


def test_unknown_blackjax_options_are_refused():
    with pytest.raises(UnknownNameError, match="num_leaps"):
        from_blackjax(blackjax.hmc, num_leaps=3)
