"""Tridiagonal form by one pass a row, by LAPACK, and by XLA: all are the form that they say."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from temperance.models.gaussian_process.linear_algebra import householder, reduction
from temperance.models.gaussian_process.linear_algebra.factorisation import cuts
from temperance.models.gaussian_process.linear_algebra.householder import DISTANCES, padded
from temperance.models.gaussian_process.linear_algebra.tridiagonal import (
    _foreign,
    _reduced,
    form_and_determinant,
    reduced,
)


def given(n: int, dtype: Any = np.float64) -> tuple[Any, Any, Any]:
    """A positive definite matrix, the panels of it, and data."""
    rng = np.random.default_rng(n)
    draws = rng.normal(size=(n, n + 3))
    matrix, y = (draws @ draws.T / n).astype(dtype), rng.normal(size=n).astype(dtype)
    panels = tuple(jnp.asarray(matrix[a:b, a:]) for a, b in cuts(n))
    return (np.triu(matrix) + np.triu(matrix, 1).T).astype(float), panels, jnp.asarray(y)


def check(matrix: Any, y: Any, form: tuple[Any, Any], tolerance: float) -> None:
    """Moments of A along y, and A's eigenvalues, say all that there is in a form."""
    diagonal, beside = (np.asarray(part, float) for part in form)
    y = np.asarray(y, float)
    form_of = np.diag(diagonal[1:]) + np.diag(beside[1:], 1) + np.diag(beside[1:], -1)
    np.testing.assert_allclose(beside[0] ** 2, y @ y, rtol=tolerance)
    along, by_form = y, np.eye(len(y))[0]
    for _ in range(3):
        along, by_form = matrix @ along, form_of @ by_form
        np.testing.assert_allclose(beside[0] ** 2 * by_form[0], y @ along, rtol=tolerance)
    np.testing.assert_allclose(
        np.linalg.eigvalsh(form_of), np.linalg.eigvalsh(matrix), rtol=tolerance, atol=tolerance
    )


def by_lapack(monkeypatch: Any, panels: Any, y: Any) -> Any:
    with monkeypatch.context() as patch:
        patch.setattr(householder, "distance", lambda num_rows: None)  # noqa: ARG005
        return jax.block_until_ready(_foreign(panels, y))


@pytest.mark.parametrize("n", [1, 2, 8, 63, 72, 135, 264])
def test_three_ways_to_one_form(n: int, monkeypatch: Any):
    matrix, panels, y = given(n)
    assert householder.distance(n + 1) in DISTANCES
    check(matrix, y, _foreign(panels, y), 1e-11)
    check(matrix, y, by_lapack(monkeypatch, panels, y), 1e-11)
    check(matrix, y, _reduced(panels, y), 1e-11)


@pytest.mark.parametrize("n", [5, 130])
def test_in_single_precision(n: int, monkeypatch: Any):
    matrix, panels, y = given(n, np.float32)
    for form in (_foreign(panels, y), by_lapack(monkeypatch, panels, y), _reduced(panels, y)):
        assert form[0].dtype == np.float32
        check(matrix, y, form, 1e-3)


def test_large_matrices_are_lapacks():
    assert householder.distance(DISTANCES[-1]) == DISTANCES[-1]
    assert householder.distance(DISTANCES[-1] + 1) is None
    n = DISTANCES[-1]
    assert reduction.shapes(n)[0] == (n + 1, n + 1)


def test_without_numba_the_form_is_lapacks(monkeypatch: Any):
    matrix, panels, y = given(9)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)  # noqa: ARG005
    assert reduction.shapes(9)[0] == (10, 10)
    check(matrix, y, _foreign(panels, y), 1e-11)


def test_several_matrices_at_once():
    matrices = [given(100 + seed)[0][:100, :100] for seed in range(3)]
    y = jnp.asarray(np.random.default_rng(0).normal(size=(3, 100)))
    panels = tuple(jnp.asarray(np.stack([m[a:b, a:] for m in matrices])) for a, b in cuts(100))
    diagonal, beside = jax.vmap(_foreign)(panels, y)
    for i, matrix in enumerate(matrices):
        check(matrix, y[i], (diagonal[i], beside[i]), 1e-11)


def test_a_diagonal_matrix_and_data_along_an_axis():
    # Rows with nothing beside their diagonal leave nothing to turn.
    matrix, y = np.diag(np.arange(1.0, 12.0)), np.eye(11)[3]
    panels = tuple(jnp.asarray(matrix[a:b, a:]) for a, b in cuts(11))
    check(matrix, y, _foreign(panels, jnp.asarray(y)), 1e-13)


# Broken twins.


def without_squares(matrix: Any, t: Any, n: Any) -> None:
    """Leaves what is below the diagonal in the squares as it lies."""
    num = matrix.shape[0]
    t[:] = 0
    matrix[0, 0] = 0
    matrix[n:, :num] = 0
    matrix[:n, n:num] = 0
    for r in range(num):
        for j in range(r):
            matrix[r, j] = 0


def without_zeros(matrix: Any, t: Any, n: Any) -> None:
    """Leaves what lies in the padding, here ones."""
    num = matrix.shape[0]
    t[:] = 0
    matrix[0, 0] = 0
    matrix[n:, :num] = 1
    matrix[:n, n:num] = 1
    for r in range(num):
        for j in range(r):
            matrix[r, j] = matrix[j, r]


@pytest.mark.parametrize("twin", [without_squares, without_zeros])
def test_a_reduction_that_starts_from_another_matrix_is_seen(twin: Any, monkeypatch: Any):
    matrix, panels, y = given(45)
    assert padded(46) > 46
    monkeypatch.setattr(householder, "prepare", twin)
    householder.kernel.cache_clear()
    try:
        with pytest.raises(AssertionError):
            check(matrix, y, _foreign(panels, y), 1e-11)
    finally:
        householder.kernel.cache_clear()


def test_determinants_of_any_number_of_rows():
    for n in (1, 2, 4, 5, 6, 9, 30):
        matrix, panels, y = given(n)
        found = reduced(panels, y)
        for variance in (1e-12, 0.3, 1e18):
            whole = matrix + variance * np.eye(n)
            form, determinant = form_and_determinant(found, jnp.asarray(variance))
            np.testing.assert_allclose(form, y @ np.linalg.solve(whole, y), rtol=1e-9)
            np.testing.assert_allclose(determinant, np.linalg.slogdet(whole)[1], rtol=1e-9)


def test_no_determinant_where_a_matrix_is_not_positive_definite():
    # Two negative eigenvalues leave the determinant positive.
    matrix, panels, y = given(12)
    lowest = np.linalg.eigvalsh(matrix)
    for below in (0.5 * (lowest[0] + lowest[1]), 0.5 * (lowest[1] + lowest[2])):
        _, determinant = form_and_determinant(reduced(panels, y), jnp.asarray(-below))
        assert np.isnan(determinant)
