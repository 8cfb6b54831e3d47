"""Which rows a batch holds: every pair as likely as every other, nested, none twice."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array
from scipy import stats

from temperance._types import Key
from temperance.rows.batches import Batches, enciphered
from temperance.testing import check_vmap, sequential
from temperance.testing.invariance import iter_keys

NUM_KEYS = 20_000


def pair_p_value(pairs: np.ndarray, n: int, *, replace: bool = False) -> float:
    """Chi-square of the first two places, their rows sorted into at most eight classes each."""
    classes = min(n, 8)
    sizes = np.bincount(np.arange(n) % classes)
    wanted = np.outer(sizes, sizes).astype(float)
    if not replace:
        wanted -= np.diag(sizes)
    wanted /= wanted.sum()
    cells = pairs % classes
    found = np.zeros((classes, classes))
    np.add.at(found, (cells[:, 0], cells[:, 1]), 1.0)
    possible = wanted > 0
    assert found[~possible].sum() == 0
    return float(stats.chisquare(found[possible], wanted[possible] * len(pairs)).pvalue)


def judged(first_two, n: int, seed: int, *, replace: bool = False) -> bool:
    """Gandy and Scott's rule with fresh keys, for the first two places and for two later ones."""
    keys = iter_keys(seed)
    draw = jax.jit(jax.vmap(first_two))

    def p_values(size: int) -> np.ndarray:
        found = np.concatenate(
            [np.asarray(draw(jax.random.split(next(keys), NUM_KEYS))) for _ in range(size)]
        )
        return np.array([pair_p_value(found[:, at : at + 2], n, replace=replace) for at in (0, 2)])

    return sequential(p_values)[0]


@pytest.mark.parametrize("n", [6, 50, 1000])
@pytest.mark.parametrize("replace", [False, True])
def test_every_pair_of_rows_is_as_likely_as_every_other(n: int, replace: bool, seed: int):
    batches = Batches(n, replace)
    assert judged(lambda key: batches.places(key, 0, 4), n, seed, replace=replace)


@pytest.mark.parametrize("rounds", [2, 3])
def test_few_rounds_are_rejected(rounds: int, seed: int):
    def places(key: Key) -> Array:
        return enciphered(jax.random.bits(key, (rounds,), jnp.uint32), jnp.arange(4), 6)

    assert not judged(places, 6, seed)


@pytest.mark.parametrize("n", [2, 6, 50, 1000, 5000])
def test_batches_of_one_key_are_nested_and_cover_all_rows(n: int, key: Key):
    places = jax.jit(Batches(n).places, static_argnums=2)
    whole = np.asarray(places(key, 0, n))
    np.testing.assert_array_equal(np.sort(whole), np.arange(n))
    few = n // 2
    np.testing.assert_array_equal(places(key, 0, few), whole[:few])
    np.testing.assert_array_equal(places(key, few, n - few), whole[few:])
    other = np.asarray(places(jax.random.fold_in(key, 1), 0, n))
    assert n == 2 or (other != whole).any()


def test_with_replacement_rows_come_twice_and_later_places_are_others(key: Key):
    batches = Batches(10, replace=True)
    first, later = batches.places(key, 0, 40), batches.places(key, 40, 40)
    assert len(set(np.asarray(first).tolist())) <= 10
    assert (np.asarray(first) != np.asarray(later)).any()
    assert int(first.min()) >= 0
    assert int(first.max()) < 10


@pytest.mark.parametrize("replace", [False, True])
def test_many_keys_at_once_are_each_by_itself(replace: bool, key: Key):
    batches = Batches(37, replace)
    check_vmap(lambda key: batches.places(key, 0, 11), jax.random.split(key, 5))


def test_what_is_left():
    assert float(Batches(8).left(2)) == 0.75
    assert float(Batches(8).left(jnp.asarray(8))) == 0.0
    assert float(Batches(8, replace=True).left(2)) == 1.0
