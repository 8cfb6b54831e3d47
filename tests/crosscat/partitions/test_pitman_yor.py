"""The Pitman-Yor process: probabilities of partitions, draws of them, and their parameters."""

import itertools
import math

import numpy as np
import pytest
from tests.crosscat.goodness_of_fit import chi_square
from tests.crosscat.partitions import broken

from temperance.crosscat.partitions import pitman_yor
from temperance.crosscat.partitions.pitman_yor import PitmanYorGrids
from temperance.testing import tables


def test_weights_of_alpha_and_discount_are_the_law():
    grids = PitmanYorGrids(np.array([0.1, 1.0, 12.0]), np.array([0.0, 0.3, 0.8]))
    for labels in [(0, 0, 1, 0, 2, 1), (0,) * 6, tuple(range(40))]:
        sizes = np.bincount(labels)
        ours = pitman_yor.log_weights(sizes, sizes.size, grids)
        for (i, alpha), (j, d) in itertools.product(
            enumerate(grids.alpha), enumerate(grids.discount)
        ):
            plain = tables.log_seating(labels, tables.Seating(alpha, d))
            assert ours[i, j] == pytest.approx(plain, abs=1e-11)
            one = pitman_yor.log_eppf(sizes, sizes.size, alpha, d)
            assert one == pytest.approx(plain, abs=1e-11)


def test_probabilities_of_partitions_at_a_negative_alpha():
    total = 0.0
    for labels in tables.partitions(6):
        sizes = np.bincount(labels)
        ours = pitman_yor.log_eppf(sizes, sizes.size, -0.2, 0.6)
        total += math.exp(ours)
        assert ours == pytest.approx(
            tables.log_seating(labels, tables.Seating(-0.2, 0.6)), abs=1e-12
        )
    assert total == pytest.approx(1.0, abs=1e-13)


def partition_p_value(draw, alpha, d, rng) -> float:
    states = tables.partitions(5)
    law = np.exp([tables.log_seating(labels, tables.Seating(alpha, d)) for labels in states])
    counts = dict.fromkeys(states, 0)
    for _ in range(5000):
        labels, num = draw(5, alpha, d, rng)
        assert num == labels.max() + 1
        counts[tuple(labels.tolist())] += 1
    return chi_square(np.array(list(counts.values())), law)


@pytest.mark.parametrize(("alpha", "d"), [(1.3, 0.0), (1.0, 0.5), (-0.2, 0.6), (0.5, 0.9)])
def test_partitions_are_drawn_from_their_law(seed, alpha, d):
    rng = np.random.default_rng([seed, 58])
    assert partition_p_value(pitman_yor.draw_partition, alpha, d, rng) > 1e-4


def test_partitions_without_discount_are_found(seed):
    rng = np.random.default_rng([seed, 59])
    assert partition_p_value(broken.partition_without_discount, 1.0, 0.5, rng) < 1e-8


def test_hyperparameters_without_data_have_their_prior(seed):
    rng = np.random.default_rng([seed, 60])
    grids = pitman_yor.grids((0.0,))
    alpha, d = pitman_yor.draw_hyper(np.zeros(0, dtype=np.int64), 0, grids, rng)
    assert alpha in grids.alpha
    assert d == 0.0
    assert np.ptp(pitman_yor.log_weights(np.zeros(0, dtype=np.int64), 0, grids)) == 0.0
