"""What a run does in order, and what its pilot finds."""

import json
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.shared.small_runs import BETAS, make_problem
from tests.shared.stages import drawing, shared_of, walk

import temperance as tp
from temperance.engine.loop import chain_keys
from temperance.engine.run import Place
from temperance.ladders.spacing import initial_betas, rungs_for, transition_rungs_for
from temperance.methods import METHODS
from temperance.problems.problem import Target
from temperance.programs.random_streams import Stage as Streams, stream
from temperance.samplers.transitions import TemperedTransitions
from temperance.warmup import power_rungs, rounds as rounds_module
from temperance.warmup.adaptation import rounds
from temperance.warmup.power_rungs import PILOT_RUNGS, PowerPilot, ends_pilot
from temperance.warmup.rounds import Betas, Left, first_params

# -- the order -----------------------------------------------------------------------------------


def test_a_run_by_default() -> None:
    places, _ = walk(shared_of(make_problem()))
    assert [place.name for place in places] == ["pilot-0", "pilot-1", "warm-0", "warm-1", "draw-0"]
    assert [place.length for place in places] == [20, 40, *rounds(60), 40]
    assert [len(place.rungs.betas) for place in places[:2]] == [PILOT_RUNGS, PILOT_RUNGS]
    barrier = places[2].rungs.barrier
    assert len(places[2].rungs.betas) == rungs_for(barrier)
    for place in places:
        assert (place.rungs.betas[0], place.rungs.betas[-1]) == (0.0, 1.0)
        assert (np.diff(place.rungs.betas) > 0).all()
    assert len(places[-1].rungs.rejection) == len(places[-1].rungs.betas) - 1
    assert places[-1].rungs.barrier == barrier
    # The last round settles: betas stay what they were in it.
    assert places[-1].rungs.betas == places[-2].rungs.betas


def test_given_rungs_need_no_pilot_and_given_betas_are_kept() -> None:
    places, _ = walk(shared_of(make_problem(), num_rungs=4))
    assert [place.name for place in places] == ["warm-0", "warm-1", "draw-0"]
    assert {len(place.rungs.betas) for place in places} == {4}
    assert places[0].rungs.betas != places[-1].rungs.betas
    places, _ = walk(shared_of(make_problem(), betas=BETAS))
    assert {place.rungs.betas for place in places} == {BETAS}


def test_without_warmup_draws_come_first() -> None:
    (place,), (state, adaptation) = walk(shared_of(make_problem(), num_warmup=0))
    assert (place.name, place.length, len(place.rungs.betas)) == ("draw-0", 40, PILOT_RUNGS)
    assert state.points.position.shape == (2, PILOT_RUNGS, 2)
    assert np.isfinite(adaptation.params().step_size).all()


def test_a_hottest_rung_above_zero() -> None:
    shared = shared_of(make_problem(), num_rungs=4, min_beta=0.05)
    rungs = shared.initial()
    assert rungs.betas[0] == pytest.approx(0.05)
    np.testing.assert_allclose(np.diff(np.log(rungs.betas)), math.log(20) / 3)
    assert shared.ladder(rungs).draw_hottest() is None


def test_transitions_warm_up_in_parallel_and_then_change_over() -> None:
    shared = shared_of(make_problem(), "tt")
    places, carry = walk(shared)
    draw = places[-1]
    assert len(draw.rungs.betas) == transition_rungs_for(draw.rungs.barrier)
    sampler = drawing(shared).sampler(shared, draw, carry)
    assert isinstance(sampler, TemperedTransitions)
    assert sampler.num_rungs == len(draw.rungs.betas)
    state, settled = carry
    assert state.point.position.shape == (2, 2)
    assert settled.after(sampler, state, None) is settled
    assert settled.params(True) is settled.params(False)


def test_the_template_of_a_stage_fits_what_it_carries() -> None:
    for method in ("pt", "tt", "plain"):
        given = {} if method == "plain" else {"betas": BETAS}
        shared = shared_of(make_problem(), method, **given)
        places, last = walk(shared)
        first = next(
            one
            for one in METHODS[method].stages
            if places[0].stage in one.kinds and one.applies(shared)
        )
        for stage, place, carry in (
            (first, *first.enter(shared, None)),
            (drawing(shared), places[-1], last),
        ):
            template = stage.template(shared, place)
            assert jax.tree.structure(template) == jax.tree.structure(carry)
            for wanted, got in zip(jax.tree.leaves(template), jax.tree.leaves(carry), strict=True):
                assert (wanted.shape, wanted.dtype) == (got.shape, got.dtype)


def test_a_place_survives_its_notes() -> None:
    place = Place("warm", 3, 17, Betas((0.0, 1 / 3, 1.0), (0.1, 0.2)))
    again = Place.of(json.loads(json.dumps(place.notes())), Betas)
    assert math.isnan(again.rungs.barrier)
    assert repr(again) == repr(place)
    assert Place.of(json.loads(json.dumps(Place("draw", 0, 5).notes())), None) == Place(
        "draw", 0, 5
    )


def test_the_next_place_is_a_function_of_the_last() -> None:
    one, two = (walk(shared_of(make_problem())) for _ in range(2))
    assert [repr(place) for place in one[0]] == [repr(place) for place in two[0]]
    for left, right in zip(jax.tree.leaves(one[1]), jax.tree.leaves(two[1]), strict=True):
        np.testing.assert_array_equal(left, right)


# -- keys ----------------------------------------------------------------------------------------


def data_of(key: Any) -> tuple[int, ...]:
    return tuple(np.asarray(jax.random.key_data(key)).ravel().tolist())


def test_no_two_stages_share_a_key_and_only_the_pilot_forgets_the_seed() -> None:
    places = [Place(kind, number, 1) for kind in ("pilot", "warm", "draw") for number in (0, 1)]
    by_seed = [
        [data_of(shared_of(make_problem(), seed=seed).key(place)) for place in places]
        for seed in (0, 1)
    ]
    assert by_seed[0][:2] == by_seed[1][:2]
    assert len({key for keys in by_seed for key in keys}) == 2 + 2 * 4


def test_starting_points_share_no_key_with_a_step() -> None:
    """`split(key, n)[i]` is `fold_in(key, i)`: so starts fold in what is no chain's number."""
    key = shared_of(make_problem()).key(Place("warm", 0, 1))
    starts = {data_of(k) for k in jax.random.split(stream(key, Streams.STARTS), 64)}
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
    num_rungs: int, rate: float, name: str, wanted: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = shared_of(make_problem())
    betas = tuple(initial_betas(num_rungs).tolist())
    finished = Place("pilot", 1, 40, Betas(betas, (rate,) * (num_rungs - 1)))
    assert ends_pilot(finished.rungs) == (name == "warm-0")
    params = first_params(shared.call.move, jnp.ones((2, num_rungs, 2)))
    monkeypatch.setattr(power_rungs, "learn_round", lambda *_: (finished.rungs, params))
    following, left = PowerPilot().after(shared, finished, (None, None))
    if following is None:
        assert isinstance(left, Left)
        rungs, state = left.rungs, None
        assert name == "warm-0"
    else:
        assert following.name == name
        rungs, (state, _) = following.rungs, left
        assert state.points.position.shape == (2, wanted, 2)
    assert len(rungs.betas) == wanted
    # Evenly spaced in the barrier before, evenly spaced after.
    np.testing.assert_allclose(rungs.betas, initial_betas(wanted), atol=1e-12)


PATH_FIRST = ["pilot-0", "pilot-1", "warm-0", "joint-0", "draw-0"]
LINE_ALONE = ["pilot-0", "pilot-1", "joint-0", "joint-1", "draw-0"]


def test_the_joint_chain_follows_the_rungs_of_its_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its chains start where the replicas are, and nothing else is started for them."""
    drawn = []
    honest = rounds_module.starting_points

    def counted(*args: Any, **options: Any) -> Any:
        drawn.append(args[-1])
        return honest(*args, **options)

    monkeypatch.setattr(rounds_module, "starting_points", counted)
    places, (state, learning) = walk(shared_of(make_problem(), "joint-ct", base="prior"))
    assert [place.name for place in places] == PATH_FIRST
    assert drawn == [(2, PILOT_RUNGS), (2, len(places[2].rungs.betas))]
    assert state.point.position.x.shape == (2, 2)
    path = learning.path
    np.testing.assert_array_equal(path.betas, places[-1].rungs.betas)
    assert path.excess[0] == path.excess[-1] == 0
    assert (path.excess[1:-1] < 0).all()  # log Z is convex in beta
    # With a log zeta nothing is to be learnt of the path, and its rounds are left out.
    drawn.clear()
    places, (_, learning) = walk(shared_of(make_problem(), "joint-ct", base="prior", log_zeta=1.0))
    assert [place.name for place in places] == LINE_ALONE
    assert drawn == [(2, PILOT_RUNGS)]
    assert learning.path is None
    assert learning.log_zeta == 1.0


def test_the_pilot_says_the_same_whatever_the_seed() -> None:
    found = [walk(shared_of(make_problem(), seed=seed))[0] for seed in range(3)]
    assert len({(places[2].rungs.betas, places[2].rungs.barrier) for places in found}) == 1
    assert len({places[-1].rungs.betas for places in found}) == 3


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
    places, _ = walk(shared_of(target, num_chains=4, num_warmup=600, move=tp.metropolis()))
    return places[-1].rungs.barrier, np.asarray(places[-1].rungs.rejection)


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
