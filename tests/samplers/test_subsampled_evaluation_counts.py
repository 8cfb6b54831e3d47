"""Rows evaluated on nested subsamples, counted as the program runs, by formula, and by `work`.

With n_0 < ... < n_{K-1} = N rows a rung, each of them independent:

    moves         HMC of L steps takes L gradients and one value, each on n_k rows
    swaps         n_{k+1} - n_k for each pair that is compared
    transitions   N - n_0 on the way down, and n_{K-2} where the target's move was refused
"""

from types import SimpleNamespace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array
from tests.shared.counted_rows import count_rows, terms

from temperance._types import Key, Point
from temperance.engine.loop import run_block, step_chains
from temperance.ladders.ladder import Rungs
from temperance.ladders.prefix import PrefixLadder
from temperance.methods import method_like
from temperance.moves.hmc import hmc
from temperance.moves.metropolis import metropolis
from temperance.moves.move import AbstractMove, Params
from temperance.samplers.parallel.tempering import ParallelTempering
from temperance.samplers.transitions import TemperedTransitions

CHAINS, DRAWS, THIN, LEAPS = 2, 3, 2, 3
SWEEPS = CHAINS * DRAWS * THIN
SIZES = (3, 5, 11, 24)
N = SIZES[-1]
BETWEEN = tuple(np.diff(SIZES))


def log_prior(x: Array) -> Array:
    return -0.5 * jnp.sum(x**2)


def draw_prior(key: Key) -> Array:
    return jax.random.normal(key, (2,))


def make_ladder(
    sizes: tuple[int, ...] = SIZES, kind: type[PrefixLadder] = PrefixLadder
) -> PrefixLadder:
    rows = np.linspace(-2, 2, sizes[-1])
    return kind(log_prior, terms, rows, sizes, draw_prior=draw_prior)


def tuned(ladder: PrefixLadder, size: float) -> Params:
    return Params(jnp.full((ladder.num_rungs, 1), size), jnp.ones((ladder.num_rungs, 2)))


def drawn(sampler: Any) -> tuple[dict[str, np.ndarray], dict[str, int], float]:
    """What draws record, the rows with and without gradient they took, and what `work` says."""
    state = jax.vmap(sampler.init)(jnp.zeros((CHAINS, 2)))
    steps = map(jnp.asarray, (0, DRAWS, THIN))
    (*_, records), rows = count_rows(
        run_block, sampler, state, None, jax.random.key(0), *steps, jnp.asarray(False), DRAWS, THIN
    )
    draws = {name: np.asarray(values) for name, values in records.items()}
    run = SimpleNamespace(
        draws=draws, sampler=sampler, sweeps_per_draw=THIN, num_rows=sampler.ladder.num_rows
    )
    return draws, rows, method_like(sampler).report.work(run)["num_row_evaluations"]


def compared_by_deo(pair: int, rounds: int) -> int:
    """How often a chain compares a pair: in the rounds of its own parity."""
    return sum(turn % 2 == pair % 2 for turn in range(THIN * DRAWS * rounds))


@pytest.mark.parametrize("rounds", [pytest.param(1, marks=pytest.mark.slow), 3])
def test_swaps_evaluate_the_rows_between_rungs_that_are_compared(rounds: int):
    ladder = make_ladder()
    sampler = ParallelTempering(ladder, hmc(LEAPS), tuned(ladder, 0.2), "deo", rounds)
    _, rows, said = drawn(sampler)
    swaps = CHAINS * sum(compared_by_deo(k, rounds) * new for k, new in enumerate(BETWEEN))
    assert rows == {
        "plain": SWEEPS * sum(SIZES) + swaps,
        "gradient": SWEEPS * LEAPS * sum(SIZES),
    }
    assert said == sum(rows.values())


OPTIONS: dict[str, tuple[dict[str, Any], AbstractMove, tuple[int, ...], int]] = {
    # options, move, sizes; rows without gradient beside those of the moves
    "sweeps over the prior": ({"scheme": "sweep"}, hmc(2), (0, 4, 9), SWEEPS * 9),
    "every replica on all rows once a draw": (
        {"scheme": "sweep", "complete": True}, metropolis(), (0, 4, 9),
        SWEEPS * 9 + CHAINS * DRAWS * 3 * 9,
    ),
    "two rows for each exchange at each rung": (
        {"scheme": "sweep", "refresh": 4}, metropolis(), SIZES,
        SWEEPS * (N - 3) + SWEEPS * 2 * 4 * len(SIZES),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", OPTIONS)
def test_parallel_tempering_evaluates_what_its_options_say(name: str):
    options, move, sizes, others = OPTIONS[name]
    ladder = make_ladder(sizes)
    leaps = getattr(move, "num_steps", 0)
    _, rows, said = drawn(ParallelTempering(ladder, move, tuned(ladder, 0.3), **options))
    assert rows == {"plain": SWEEPS * sum(sizes) + others, "gradient": SWEEPS * leaps * sum(sizes)}
    assert said == sum(rows.values())


def test_a_toss_decides_which_pairs_are_evaluated():
    ladder = make_ladder()
    draws, rows, said = drawn(ParallelTempering(ladder, metropolis(), tuned(ladder, 0.3), "seo", 2))
    compared = THIN * draws["swap_tried"].sum(axis=(0, 1))
    assert compared[0] == compared[2]
    assert compared[0] + compared[1] == 2 * SWEEPS
    assert 0 < compared[0] < 2 * SWEEPS
    assert rows["plain"] == SWEEPS * sum(SIZES) + compared @ np.array(BETWEEN)
    assert said == rows["plain"]


# Tempered transitions

# Both ways at the rungs between, once at the hottest and at the target.
ON_THE_WAY = SIZES[0] + 2 * sum(SIZES[1:-1]) + N


@pytest.mark.parametrize(("size", "refused"), [(1e-4, 0), (1e4, SWEEPS), (0.38, None)])
def test_transitions_evaluate_the_rows_they_add_and_look_first_where_they_must(
    size: float, refused: int | None
):
    ladder = make_ladder()
    draws, rows, said = drawn(TemperedTransitions(ladder, hmc(LEAPS), tuned(ladder, size)))
    looks = THIN * draws["first_look"].sum()
    if refused is None:
        assert 0 < looks < SWEEPS
    else:
        assert looks == refused
    assert rows == {
        "plain": SWEEPS * (ON_THE_WAY + N - SIZES[0]) + looks * SIZES[-2],
        "gradient": SWEEPS * LEAPS * ON_THE_WAY,
    }
    assert said == sum(rows.values())


def test_a_transition_from_the_prior_evaluates_nothing_there():
    ladder = make_ladder((0, 4, 9))
    draws, rows, said = drawn(TemperedTransitions(ladder, metropolis(), tuned(ladder, 0.3)))
    looks = THIN * draws["first_look"].sum()
    assert rows == {"plain": SWEEPS * (2 * 4 + 9 + 9) + looks * 4, "gradient": 0}
    assert said == rows["plain"]


# The counts can fail.


class LadderThatLiftsAllRows(PrefixLadder):
    """Evaluates the whole of the longer subsample where its new rows would do."""

    def lift(self, rung: Rungs, point: Point) -> Point:
        block = self.num_blocks(int(rung))
        sums = self.block_sums(point.position, self.data, 0, block + 1)
        return point._replace(components=point.components.at[1 : 2 + block].set(jnp.stack(sums)))


@pytest.mark.parametrize("kind", [ParallelTempering, TemperedTransitions])
def test_rows_evaluated_for_nothing_are_noticed(kind: type[eqx.Module]):
    ladder = make_ladder(kind=LadderThatLiftsAllRows)
    _, rows, said = drawn(kind(ladder, metropolis(), tuned(ladder, 0.3)))
    assert sum(rows.values()) > said


def test_decisions_taken_in_a_batch_are_noticed():
    """Which is why chains go one after another."""
    ladder = make_ladder()
    sampler = ParallelTempering(ladder, metropolis(), tuned(ladder, 0.3))
    state = jax.vmap(sampler.init)(jnp.zeros((CHAINS, 2)))
    # One chain compares the pairs (0, 1) and (2, 3), the other (1, 2).
    state = state._replace(parity=jnp.arange(CHAINS))
    keys = jax.random.split(jax.random.key(0), CHAINS)
    needed = CHAINS * sum(SIZES) + sum(BETWEEN)
    _, alone = count_rows(eqx.filter_jit(step_chains), sampler, keys, state)
    assert alone["plain"] == needed
    _, batch = count_rows(eqx.filter_jit(lambda k, s: jax.vmap(sampler.step)(k, s)), keys, state)
    assert batch["plain"] == needed + sum(BETWEEN)
