"""Numbers of rows: shares, merging, and what cannot be a ladder's."""

import numpy as np
import pytest

from temperance.errors import ArgumentError, DataError
from temperance.ladders import prefix
from temperance.rows.nested_subsamples import SizeWarning, checked_sizes

PAPERS = (64, 91, 128, 181, 256, 362, 512)


def test_shares_become_whole_numbers_of_rows():
    assert checked_sizes(2.0 ** (-np.arange(6, -1, -1) / 2), 512) == PAPERS
    assert checked_sizes([0.0, 0.001, 1.0], 100) == (0, 1, 100)


def test_the_warning_has_its_name_beside_the_ladder_too():
    assert prefix.SizeWarning is SizeWarning


def test_sizes_that_round_alike_are_merged_with_a_warning():
    with pytest.warns(SizeWarning, match="1 rung.*merged: 3 are left"):
        assert checked_sizes([0.1, 0.12, 0.5, 1.0], 10) == (1, 5, 10)


@pytest.mark.parametrize(
    ("sizes", "error", "words"),
    [
        ([5], ArgumentError, "at least two rungs"),
        ([[1, 10]], ArgumentError, "one vector"),
        ([5, 2, 10], ArgumentError, "increase"),
        ([-1, 10], ArgumentError, "increase"),
        ([np.nan, 10], ArgumentError, "finite"),
        ([2.5, 10], ArgumentError, "whole numbers"),
        ([2, 5], DataError, "end at all 10 rows"),
        ([2, 20], DataError, "end at all 10 rows"),
        ("all", ArgumentError, "numbers of rows"),
    ],
)
def test_sizes_that_cannot_be(sizes: object, error: type[Exception], words: str):
    with pytest.raises(error, match=words):
        checked_sizes(sizes, 10)
