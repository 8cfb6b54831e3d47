"""Orders without sorting: bijections, and near enough to uniform that nothing shows."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from temperance.errors import DataError
from temperance.rows.nested_subsamples import MOST_LABELS, Strata, permutation, shuffle, slot_labels


@pytest.mark.parametrize("n", [1, 2, 3, 5, 16, 17, 100, 1000])
def test_every_row_has_one_place(n: int, seed: int):
    order = jax.jit(permutation, static_argnums=1)(jax.random.key(seed), n)
    np.testing.assert_array_equal(np.sort(order), np.arange(n))
    first = permutation(jax.random.key(seed), n, min(n, 4))
    np.testing.assert_array_equal(first, order[:4])


def test_every_row_is_as_likely_at_every_place(seed: int):
    """A chi-square over rows and places, and over neighbours, of independent orders."""
    n, num = 12, 20_000
    keys = jax.random.split(jax.random.key(seed), num)
    orders = np.asarray(jax.jit(jax.vmap(lambda k: permutation(k, n)))(keys))
    for place in range(n):
        counts = np.bincount(orders[:, place], minlength=n)
        assert stats.chisquare(counts).pvalue > 1e-5
    steps = np.bincount((orders[:, 1] - orders[:, 0]) % n, minlength=n)[1:]
    assert stats.chisquare(steps).pvalue > 1e-5


def test_the_chi_square_sees_a_rotation(seed: int):
    """A broken twin: every row is everywhere equally often, but neighbours stay neighbours."""
    n, num = 12, 20_000
    starts = np.random.default_rng(seed).integers(0, n, num)
    orders = (np.arange(n) + starts[:, None]) % n
    steps = np.bincount((orders[:, 1] - orders[:, 0]) % n, minlength=n)[1:]
    assert stats.chisquare(steps).pvalue < 1e-5


@pytest.mark.parametrize("counts", [[5, 5], [90, 8, 2], [1, 1, 1], [1000, 1]])
def test_every_prefix_has_its_share_of_each_label(counts: list[int]):
    labels = slot_labels(np.array(counts))
    np.testing.assert_array_equal(np.bincount(labels), counts)
    total, kinds = len(labels), len(counts)
    assert set(labels[:kinds]) == set(range(kinds))
    for size in range(kinds, total + 1):
        found = np.bincount(labels[:size], minlength=kinds)
        # One slot each comes first, so a common label may be behind by as many as there are labels.
        assert (np.abs(found - np.array(counts) * size / total) <= kinds).all()


def test_strata_permute_rows_within_their_label(seed: int):
    labels = np.repeat([3, 7, 9], [50, 30, 4])
    strata = Strata.of(labels, 84)
    order = np.asarray(shuffle(jax.random.key(seed), 84, strata))
    np.testing.assert_array_equal(np.sort(order), np.arange(84))
    kinds = labels[order]
    again = strata.reordered(jnp.asarray(order))
    other = np.asarray(shuffle(jax.random.key(seed + 1), 84, again))
    np.testing.assert_array_equal(kinds[other], kinds)
    assert not np.array_equal(other, np.arange(84))


def test_labels_that_cannot_be():
    with pytest.raises(DataError, match="one label for each of the 5 rows"):
        Strata.of([1, 2], 5)
    with pytest.raises(DataError, match="different labels"):
        Strata.of(np.arange(MOST_LABELS + 1), MOST_LABELS + 1)


def test_the_same_strata_are_ordered_again_without_tracing(monkeypatch):
    """An order taken outside a compiled program was compiled label by label, in every run."""
    calls = []
    monkeypatch.setattr(
        "temperance.rows.nested_subsamples.permutation",
        lambda *args: calls.append(1) or permutation(*args),
    )
    strata = Strata.of(np.arange(1003) % 3, 1003)
    for seed in (0, 1):
        order = shuffle(jax.random.key(seed), 1003, strata)
        assert sorted(np.asarray(order).tolist()) == list(range(1003))
    assert len(calls) == 3
