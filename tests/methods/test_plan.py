"""What a run does in order, and what its pilot finds."""

import json
import math
from dataclasses import asdict, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.shared.small_runs import BETAS, make_problem

import temperance as tp
from temperance.engine.jobs import Blocks
from temperance.engine.loop import block_size, chain_keys
from temperance.engine.stage import Stage
from temperance.ladders.spacing import initial_betas, rungs_for, transition_rungs_for
from temperance.methods import plan as plan_module
from temperance.methods.joint_plan import JointPlan
from temperance.methods.plan import PILOT_RUNGS, STARTS, Plan, ends_pilot, initial_params
from temperance.problems.problem import Problem, Target, densities_of
from temperance.samplers.transitions import TemperedTransitions
from temperance.warmup.adaptation import rounds


def make_plan(
    problem: Problem | Target,
    method: str = "pt",
    num_chains: int = 2,
    seed: int = 0,
    **options: Any,
) -> Plan:
    settings: dict[str, Any] = {"num_warmup": 60, "num_draws": 40} | options
    move = settings.pop("move", tp.metropolis())
    kind: type[Plan] = settings.pop("kind", Plan)
    key = jax.random.key(seed)
    return kind(problem, densities_of(problem), method, move, num_chains, key=key, **settings)


def walk(plan: Plan) -> tuple[list[Stage], Any]:
    """All stages, each run to its end without a conductor; and what the draws begin with."""
    stage, carry = plan.first()
    stages = [stage]
    size = block_size(plan.num_chains, plan.densities.layout.dimension)
    while stage.kind != "draw":
        blocks = Blocks(plan.sampler_of(stage, carry), plan.stage_key(stage), 4, size)
        stage, carry = plan.after(stage, blocks.learn(carry, 0, stage.length)[0])
        stages.append(stage)
    return stages, carry


# -- the order -----------------------------------------------------------------------------------


def test_a_run_by_default() -> None:
    stages, _ = walk(make_plan(make_problem()))
    assert [stage.name for stage in stages] == ["pilot-0", "pilot-1", "warm-0", "warm-1", "draw-0"]
    assert [stage.length for stage in stages] == [20, 40, *rounds(60), 40]
    assert [len(stage.betas) for stage in stages[:2]] == [PILOT_RUNGS, PILOT_RUNGS]
    barrier = stages[2].barrier
    assert len(stages[2].betas) == rungs_for(barrier)
    for stage in stages:
        assert (stage.betas[0], stage.betas[-1]) == (0.0, 1.0)
        assert (np.diff(stage.betas) > 0).all()
    assert len(stages[-1].rejection) == len(stages[-1].betas) - 1
    assert stages[-1].barrier == barrier
    # The last round settles: betas stay what they were in it.
    assert stages[-1].betas == stages[-2].betas


def test_given_rungs_need_no_pilot_and_given_betas_are_kept() -> None:
    rungs, _ = walk(make_plan(make_problem(), num_rungs=4))
    assert [stage.name for stage in rungs] == ["warm-0", "warm-1", "draw-0"]
    assert {len(stage.betas) for stage in rungs} == {4}
    assert rungs[0].betas != rungs[-1].betas
    betas, _ = walk(make_plan(make_problem(), betas=BETAS))
    assert {stage.betas for stage in betas} == {BETAS}


def test_without_warmup_draws_come_first() -> None:
    (stage,), (state, adaptation) = walk(make_plan(make_problem(), num_warmup=0))
    assert (stage.name, stage.length, len(stage.betas)) == ("draw-0", 40, PILOT_RUNGS)
    assert state.points.position.shape == (2, PILOT_RUNGS, 2)
    assert np.isfinite(adaptation.params().step_size).all()


def test_a_hottest_rung_above_zero() -> None:
    plan = make_plan(make_problem(), num_rungs=4, hottest=0.05)
    stage, _ = plan.first()
    assert stage.betas[0] == pytest.approx(0.05)
    np.testing.assert_allclose(np.diff(np.log(stage.betas)), math.log(20) / 3)
    assert plan.ladder(stage).draw_hottest() is None


def test_transitions_warm_up_in_parallel_and_then_change_over() -> None:
    plan = make_plan(make_problem(), "tt")
    stages, carry = walk(plan)
    draw = stages[-1]
    assert len(draw.betas) == transition_rungs_for(draw.barrier)
    sampler = plan.sampler_of(draw, carry)
    assert isinstance(sampler, TemperedTransitions)
    assert sampler.num_rungs == len(draw.betas)
    state, settled = carry
    assert state.point.position.shape == (2, 2)
    assert settled.after(sampler, state, None) is settled
    assert settled.params(True) is settled.params(False)


def test_the_template_of_a_stage_fits_what_it_carries() -> None:
    for method in ("pt", "tt", "plain"):
        plan = make_plan(make_problem(), method, betas=None if method == "plain" else BETAS)
        stages, last = walk(plan)
        for stage, carry in (plan.first(), (stages[-1], last)):
            template = jax.eval_shape(lambda s=stage, p=plan: p.carried(s))
            assert jax.tree.structure(template) == jax.tree.structure(carry)
            for wanted, got in zip(jax.tree.leaves(template), jax.tree.leaves(carry), strict=True):
                assert (wanted.shape, wanted.dtype) == (got.shape, got.dtype)


def test_a_stage_survives_its_notes() -> None:
    stage = Stage("warm", 3, 17, (0.0, 1 / 3, 1.0), (0.1, 0.2))
    again = Stage.of(json.loads(json.dumps(asdict(stage))))
    assert math.isnan(again.barrier)
    assert repr(again) == repr(stage)


def test_the_next_stage_is_a_function_of_the_last() -> None:
    plan = make_plan(make_problem())
    (first, *_), _ = (one := walk(plan))
    two = walk(make_plan(make_problem()))
    assert first.name == "pilot-0"
    assert [repr(stage) for stage in one[0]] == [repr(stage) for stage in two[0]]
    for left, right in zip(jax.tree.leaves(one[1]), jax.tree.leaves(two[1]), strict=True):
        np.testing.assert_array_equal(left, right)


# -- keys ----------------------------------------------------------------------------------------


def data_of(key: Any) -> tuple[int, ...]:
    return tuple(np.asarray(jax.random.key_data(key)).ravel().tolist())


def test_no_two_stages_share_a_key_and_only_the_pilot_forgets_the_seed() -> None:
    kinds = [("pilot", 0), ("pilot", 1), ("warm", 0), ("warm", 1), ("draw", 0)]
    stages = [Stage(kind, index, 1, (1.0,)) for kind, index in kinds]
    by_seed = [
        [data_of(make_plan(make_problem(), seed=seed).stage_key(stage)) for stage in stages]
        for seed in (0, 1)
    ]
    assert by_seed[0][:2] == by_seed[1][:2]
    assert len({key for keys in by_seed for key in keys}) == 2 + 2 * 3


def test_starting_points_share_no_key_with_a_step() -> None:
    """`split(key, n)[i]` is `fold_in(key, i)`: so starts fold in what is no chain's number."""
    key = make_plan(make_problem()).stage_key(Stage("warm", 0, 1, (1.0,)))
    starts = {data_of(k) for k in jax.random.split(jax.random.fold_in(key, STARTS), 64)}
    steps = {data_of(k) for step in range(64) for k in chain_keys(key, 4, jnp.asarray(step))}
    assert len(starts | steps) == 64 + 4 * 64


# -- the pilot -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("num_rungs", "rate", "name", "wanted"),
    [
        (12, 0.20, "warm-0", rungs_for(0.20 * 11)),
        (12, 0.69, "warm-0", rungs_for(0.69 * 11)),
        (12, 0.95, "pilot-2", 24),
        (24, 0.99, "pilot-2", 48),
        (96, 0.99, "pilot-2", 128),
        (128, 0.99, "warm-0", 128),
    ],
)
def test_the_pilot_looks_again_where_it_cannot_see(
    num_rungs: int, rate: float, name: str, wanted: int
) -> None:
    plan = make_plan(make_problem())
    betas = tuple(initial_betas(num_rungs).tolist())
    finished = Stage("pilot", 1, 40, betas, (rate,) * (num_rungs - 1))
    assert ends_pilot(finished) == (name == "warm-0")
    assert not ends_pilot(replace(finished, index=2))
    params = initial_params(plan.move, jnp.ones((2, num_rungs, 2)))
    following, (state, _) = plan._after_pilot(finished, params, None)
    assert (following.name, len(following.betas)) == (name, wanted)
    assert state.points.position.shape == (2, wanted, 2)
    # Evenly spaced in the barrier before, evenly spaced after.
    np.testing.assert_allclose(following.betas, initial_betas(wanted), atol=1e-12)


def test_the_joint_chain_follows_its_pilot_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its chains start where the pilot's replicas are, and nothing else is started for them."""
    drawn = []
    honest = plan_module.starting_points

    def counted(*args: Any, **options: Any) -> Any:
        drawn.append(args[-1])
        return honest(*args, **options)

    monkeypatch.setattr(plan_module, "starting_points", counted)
    stages, (state, _) = walk(make_plan(make_problem(), "joint-ct", kind=JointPlan))
    assert [stage.name for stage in stages] == ["pilot-0", "pilot-1", "warm-0", "warm-1", "draw-0"]
    assert drawn == [(2, PILOT_RUNGS)]
    assert state.point.position.x.shape == (2, 2)


def test_the_pilot_says_the_same_whatever_the_seed() -> None:
    found = [walk(make_plan(make_problem(), seed=seed))[0] for seed in range(3)]
    assert len({(stages[2].betas, stages[2].barrier) for stages in found}) == 1
    assert len({stages[-1].betas for stages in found}) == 3


# A bridge from N(0, s^2 I) to N(0, I) in two dimensions: at beta the energy is a multiple of an
# exponential variable, E|l - l'| / 2 = (1 - s^-2) / (2 tau) at precision tau(beta), and the barrier
# is its integral, log(s).
WIDTH = math.exp(2.0)


def log_normal(x: Any) -> Any:
    return -0.5 * jnp.sum(x**2)


def bridge(width: float) -> Target:
    return Target(log_normal, tp.Gaussian(np.zeros(2), width**2))


def measured_barrier(target: Target) -> tuple[float, np.ndarray]:
    """The pilot's, and the rejection rates at the end of warm-up."""
    plan = make_plan(target, num_chains=4, num_warmup=600, move=tp.metropolis())
    stages, _ = walk(plan)
    return stages[-1].barrier, np.asarray(stages[-1].rejection)


def test_the_barrier_of_a_gaussian_bridge() -> None:
    barrier, rejection = measured_barrier(bridge(WIDTH))
    assert barrier == pytest.approx(math.log(WIDTH), rel=0.25)
    assert len(rejection) + 1 == rungs_for(math.log(WIDTH)) == 6
    # A finite step rejects a little less than its share of the barrier.
    assert 0.85 * math.log(WIDTH) < rejection.sum() < 1.05 * math.log(WIDTH)
    assert rejection.max() < 1.6 * rejection.min()
    # A bridge a fifth shorter is told apart.
    _, rejection = measured_barrier(bridge(WIDTH**0.8))
    assert len(rejection) + 1 == 6
    assert rejection.sum() < 0.85 * math.log(WIDTH)
