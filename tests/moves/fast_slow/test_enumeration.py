"""Fast/slow methods and ensembles on finite spaces: exact kernels to 1e-14, slips far above it."""

import numpy as np
import pytest
from tests.moves.fast_slow import broken_enumeration as twins

from temperance.testing import ensembles, fast_slow
from temperance.testing.enumeration import (
    Matrix,
    defect,
    imbalance,
    metropolis,
    normalised,
    stationary,
    total_variation,
)

EXACT, SLIP = 1e-14, 0.01


def table(num_slow: int, num_fast: int) -> np.ndarray:
    """A density without luck or symmetry."""
    s, f = np.ogrid[:num_slow, :num_fast]
    return np.exp(1.8 * np.sin(1.7 * s + 2.3 * f + 0.5) + 0.6 * np.cos(2.1 * f - s))


def lazy(n: int) -> Matrix:
    """Steps of -1, 0 or 1 on a cycle."""
    return 0.5 * (np.eye(n) + fast_slow.cycle_steps(n))


PI = table(4, 5)
LAW = fast_slow.flat(PI)
SLOW, FAST = fast_slow.cycle_steps(4), lazy(5)
DISPLACEMENTS = np.array([0.0, 0.6, 0.3, 0.1])


def check(matrix: Matrix, law: np.ndarray = LAW, *, reversible: bool = True) -> None:
    assert np.abs(matrix.sum(axis=1) - 1).max() < EXACT
    assert matrix.min() > -EXACT
    assert defect(matrix, law) < EXACT
    if reversible:
        assert imbalance(matrix, law) < EXACT
    else:
        assert imbalance(matrix, law) > 1e-4


def off(matrix: Matrix, law: np.ndarray = LAW) -> float:
    """How far from its law a kernel's own stationary law is."""
    return total_variation(stationary(matrix), law)


# Extra updates


def sweep() -> Matrix:
    return metropolis(np.kron(SLOW, FAST), np.log(LAW))


def test_extra_updates_are_exact_and_not_reversible():
    check(fast_slow.extra_updates(PI, sweep(), FAST, 3), reversible=False)


def test_extra_updates_with_an_old_cache_are_not():
    assert off(twins.with_the_cache_before_the_sweep(PI, sweep(), FAST, 3)) > SLIP


# Random grid


@pytest.mark.parametrize("times", [1, 2, 4])
def test_random_grid_is_exact_and_its_cache_changes_nothing(times: int):
    matrix = fast_slow.random_grid(PI, DISPLACEMENTS, FAST, times)
    check(matrix)
    for slot in (lambda i: i, lambda i: i % (times + 1)):
        cached = fast_slow.cached_grid(PI, DISPLACEMENTS, FAST, times, slot)
        assert np.abs(cached - matrix).max() < EXACT


def test_random_grid_with_a_cache_that_mixes_up_its_points_is_not():
    for slot in (abs, lambda i: i % 2):
        assert off(fast_slow.cached_grid(PI, DISPLACEMENTS, FAST, 3, slot)) > SLIP


# Dragging


@pytest.mark.parametrize("times", [1, 2, 3, 4])
def test_dragging_is_exact(times: int):
    check(fast_slow.dragging(PI, SLOW, FAST, times))


def test_dragging_with_one_density_is_metropolis_of_the_slow_state():
    alone = metropolis(np.kron(SLOW, np.eye(5)), np.log(LAW))
    assert np.abs(fast_slow.dragging(PI, SLOW, FAST, 1) - alone).max() < EXACT


def test_dragging_accepts_by_the_marginal_in_the_end():
    """With many densities in between the slow state moves as if the fast one were summed out."""
    small = table(3, 2)
    marginal = small.sum(axis=1) / small.sum()
    wanted = metropolis(fast_slow.cycle_steps(3), np.log(marginal))
    errors = []
    for times in (2, 5, 10):
        matrix = fast_slow.dragging(small, fast_slow.cycle_steps(3), lazy(2), times)
        by_slow = (fast_slow.flat(small)[:, None] * matrix).reshape(3, 2, 3, 2).sum(axis=(1, 3))
        errors.append(np.abs(by_slow / marginal[:, None] - wanted).max())
    assert errors[0] > errors[1] > errors[2]


def test_dragging_by_its_ends_is_not_exact():
    matrix = fast_slow.dragging(PI, SLOW, FAST, 3, twins.by_the_ends)
    assert off(matrix) > 0.05


# Multiple try, and T5: the numbers of record

K4 = np.arange(4)
LAW4, BASE4 = normalised(1.5 * np.sin(1.9 * K4 + 0.3)), normalised(np.cos(1.1 * K4))
TRY_DIAGONAL = (0.43248599, 0.69803564, 0.15246763, 0.3672101)
ENSEMBLE_DIAGONAL = (0.36379853, 0.65234461, 0.08395291, 0.26503081)


def independent_tries(members: int, *, with_current: bool = True) -> Matrix:
    return fast_slow.multiple_try(
        LAW4,
        np.tile(BASE4, (4, 1)),
        members,
        1 / np.outer(BASE4, BASE4),
        with_current=with_current,
    )


def test_multiple_try_and_ensemble_on_t5():
    tries, redrawn = independent_tries(2), ensembles.redrawn(LAW4, BASE4, 2)
    assert np.abs(np.diag(tries) - TRY_DIAGONAL).max() < 5.1e-9
    assert np.abs(np.diag(redrawn) - ENSEMBLE_DIAGONAL).max() < 5.1e-9


@pytest.mark.parametrize(
    ("members", "of_tries", "of_ensemble"), [(2, 0.30361, 0.19022), (3, 0.23838, 0.10561)]
)
def test_an_ensemble_forgets_faster_than_multiple_try(
    members: int, of_tries: float, of_ensemble: float
):
    tries, redrawn = independent_tries(members), ensembles.redrawn(LAW4, BASE4, members)
    check(tries, LAW4)
    check(redrawn, LAW4)
    assert ensembles.second_eigenvalue(tries) == pytest.approx(of_tries, abs=5e-6)
    assert ensembles.second_eigenvalue(redrawn) == pytest.approx(of_ensemble, abs=5e-6)
    # They differ after a rejection alone: off the diagonal an ensemble moves more.
    more = redrawn - tries
    assert (more - np.diag(np.diag(more))).min() > -EXACT
    assert np.abs(more).max() > 0.1


def test_multiple_try_of_a_walk_is_exact_with_any_symmetric_weights():
    x, y = np.ogrid[:4, :4]
    for symmetric in (None, np.ones((4, 4)), np.exp(np.cos(x * y + x + y))):
        for members in (2, 3):
            walk = 0.6 * lazy(4) + 0.1
            check(fast_slow.multiple_try(LAW4, walk, members, symmetric), LAW4)


def test_multiple_try_with_weights_that_are_not_symmetric_is_not():
    x, y = np.ogrid[:4, :4]
    assert off(fast_slow.multiple_try(LAW4, 0.6 * lazy(4) + 0.1, 2, np.exp(0.5 * x - y)), LAW4) > (
        SLIP
    )


@pytest.mark.parametrize("members", [2, 3])
def test_multiple_try_without_the_current_point_is_not(members: int):
    assert off(independent_tries(members, with_current=False), LAW4) > SLIP


# The multiset sampler

SMALL = table(3, 3)
XI3 = normalised(np.cos(1.1 * np.arange(3)))


@pytest.mark.parametrize("members", [2, 3])
def test_the_multiset_is_exact_and_choosing_from_it_gives_pi(members: int):
    law = fast_slow.multiset_law(SMALL, XI3, members)
    steps = fast_slow.cycle_steps(3)
    check(fast_slow.multiset(law, members, steps, steps, 2), law, reversible=False)
    chosen = law @ fast_slow.selection(SMALL, XI3, members)
    assert np.abs(chosen - fast_slow.flat(SMALL)).max() < EXACT


def test_a_multiset_chosen_from_uniformly_or_without_its_base_is_not():
    law = fast_slow.multiset_law(SMALL, XI3, 3)
    uniform = law @ fast_slow.selection(SMALL, XI3, 3, uniform=True)
    assert total_variation(uniform, fast_slow.flat(SMALL)) > 0.1
    steps = fast_slow.cycle_steps(3)
    wrong = fast_slow.multiset(twins.multiset_law_without_the_base(SMALL, XI3, 3), 3, steps, steps)
    chosen = stationary(wrong) @ fast_slow.selection(SMALL, XI3, 3)
    assert total_variation(chosen, fast_slow.flat(SMALL)) > SLIP


# Ensembles: three bases, and fast states fixed or shifted

PI3 = table(3, 5)
LAW3 = fast_slow.flat(PI3)
SLOW3 = fast_slow.cycle_steps(3)
XI5 = normalised(np.cos(1.1 * np.arange(5)))
SPREAD = np.array([0.6, 0.15, 0.05, 0.05, 0.15])
SHIFTS = {"fixed": None, "shifted": np.array([0.2, 0.3, 0.1, 0.1, 0.3])}
BASES = {
    "independent": lambda k: ensembles.independent(XI5, k),
    "exchangeable": lambda k: ensembles.exchangeable(SPREAD, k),
    "grid": lambda k: ensembles.grid(5, k, 1),
}


@pytest.mark.parametrize("members", [2, 3])
@pytest.mark.parametrize("update", SHIFTS)
@pytest.mark.parametrize("base", BASES)
def test_ensembles_are_exact(base: str, update: str, members: int):
    matrix = ensembles.ensemble(PI3, BASES[base](members), SLOW3, SHIFTS[update])
    assert defect(matrix, LAW3) < 1e-15
    check(matrix, LAW3)


def test_ensembles_on_grids_of_random_spacing_are_exact():
    grids = [ensembles.ensemble(PI3, ensembles.grid(5, 3, d), SLOW3) for d in (1, 2)]
    check(0.7 * grids[0] + 0.3 * grids[1], LAW3)


FAILURES = {
    "independent weighed by pi": lambda: ensembles.ensemble(
        PI3, ensembles.independent(XI5, 3, weighted=False), SLOW3
    ),
    "exchangeable around the state itself": lambda: ensembles.ensemble(
        PI3, ensembles.exchangeable(SPREAD, 3, centred=False), SLOW3
    ),
    "grid with the state in one cell": lambda: ensembles.ensemble(
        PI3, ensembles.grid(5, 3, 1, anywhere=False), SLOW3
    ),
    "independent and shifted without its density": lambda: ensembles.ensemble(
        PI3, ensembles.independent(XI5, 3), SLOW3, SHIFTS["shifted"], with_joint=False
    ),
}


@pytest.mark.parametrize("failure", FAILURES)
def test_ensembles_with_a_slip_are_not(failure: str):
    assert off(FAILURES[failure](), LAW3) > SLIP


def test_two_members_around_the_state_itself_happen_to_be_exact():
    """The one other is as far from the state as the state from it."""
    base = ensembles.exchangeable(SPREAD, 2, centred=False)
    check(ensembles.ensemble(PI3, base, SLOW3), LAW3)


def test_a_fixed_spacing_never_leaves_its_cells():
    pi = table(3, 12)
    fixed = ensembles.ensemble(pi, ensembles.grid(12, 3, 3), SLOW3)
    check(fixed, fast_slow.flat(pi))
    assert ensembles.closed_classes(fixed) == 3
    other = ensembles.ensemble(pi, ensembles.grid(12, 3, 2), SLOW3)
    assert ensembles.closed_classes(0.5 * fixed + 0.5 * other) == 1
    shifts = np.eye(12)[0] / 2 + (np.eye(12)[1] + np.eye(12)[-1]) / 4
    shifted = ensembles.ensemble(pi, ensembles.grid(12, 3, 3), SLOW3, shifts)
    assert ensembles.closed_classes(shifted) == 1


def test_closed_classes_are_those_that_nobody_leaves():
    leaving = np.array([[0.5, 0.5, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    assert ensembles.closed_classes(leaving) == 2
