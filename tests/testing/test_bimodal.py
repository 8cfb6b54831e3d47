"""Two modes and a barrier: quadrature against steps in time, the bound, and the print's slips."""

import math

import pytest
from scipy.integrate import quad
from scipy.special import expit
from tests.testing import broken_bimodal as broken

from temperance.errors import ArgumentError
from temperance.testing.bimodal import TwoModeEnergy

# Rows, gap, barrier, epsilon, and the distance that an anneal of the promised duration has.
PROMISES = [
    (200, 0.2, 0.2, 0.05, 0.0067),
    (200, 0.2, 0.3, 0.1, 0.0211),
    (200, 0.3, 0.1, 0.02, 0.0006),
]
DURATIONS = [10.0, 1e3, 1e5]


def closed_form_by_tau(modes, duration, start):
    """The integral over tau as it is written, with the class's own tau and beta."""
    first = modes.tau(0.0, duration)
    integral = quad(
        lambda tau: expit(modes.beta(tau, duration) * modes.gap * modes.num_rows),
        first, 1.0, limit=500, epsabs=1e-11,
    )[0]  # fmt: skip
    return start * first + integral


@pytest.mark.parametrize("start", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("duration", DURATIONS)
@pytest.mark.parametrize("modes", [TwoModeEnergy(200, 0.1, 0.1), TwoModeEnergy(50, 0.2, 0.1)])
def test_quadrature_and_steps_agree(modes, duration, start):
    found = modes.annealed(duration, start)
    assert found == pytest.approx(modes.annealed_by_steps(duration, start), abs=1e-8)
    assert found == pytest.approx(closed_form_by_tau(modes, duration, start), abs=1e-8)


def test_an_integral_from_zero_is_rejected():
    modes = broken.TauFromZero(200, 0.1, 0.1)
    assert abs(modes.annealed(10.0) - modes.annealed_by_steps(10.0)) > 0.05


def test_the_mode_of_lower_energy_gets_the_mass():
    assert TwoModeEnergy(200, 0.1, 0.1).annealed_by_steps(1e5) > 0.99
    assert broken.LowModeForHigh(200, 0.1, 0.1).annealed_by_steps(1e5) < 0.01


def solves_its_equation(modes):
    """Whether dtau/dt = tau exp(-beta delta N)."""
    duration, step = 50.0, 1e-5
    for time in (5.0, 20.0, 45.0):
        slope = modes.tau(time + step, duration) - modes.tau(time - step, duration)
        rate = math.exp(-time / duration * modes.barrier * modes.num_rows)
        wanted = modes.tau(time, duration) * rate
        if slope / (2 * step) != pytest.approx(wanted, rel=1e-6):
            return False
    return True


def test_tau_solves_its_equation():
    assert solves_its_equation(TwoModeEnergy(100, 0.1, 0.05))
    assert not solves_its_equation(broken.TauOfTheOtherSign(100, 0.1, 0.05))


def test_beta_inverts_tau():
    modes, duration = TwoModeEnergy(100, 0.1, 0.05), 50.0
    assert modes.tau(duration, duration) == 1.0
    for time in (5.0, 20.0, 45.0):
        found = modes.beta(modes.tau(time, duration), duration)
        assert found == pytest.approx(time / duration, rel=1e-9)


@pytest.mark.parametrize(("num_rows", "gap", "barrier", "epsilon", "known"), PROMISES)
def test_promised_durations_suffice(num_rows, gap, barrier, epsilon, known):
    modes = TwoModeEnergy(num_rows, gap, barrier)
    duration = modes.duration_for(epsilon)
    assert modes.distance(modes.annealed(duration)) == pytest.approx(known, abs=5e-5)
    for start in (0.0, 0.5, 1.0):
        assert modes.distance(modes.annealed(duration, start)) < epsilon
    simple = modes.simple_duration_for(epsilon, 1.01)
    assert simple > duration
    assert modes.distance(modes.annealed(simple)) < epsilon
    assert modes.distance(modes.annealed(duration)) < 0.5 * epsilon * math.gamma(
        1 + gap / barrier
    ) / math.log(2 / epsilon) ** (gap / barrier)


def test_annealing_is_linear_where_cold_is_exponential():
    few, many = TwoModeEnergy(200, 0.1, 0.1), TwoModeEnergy(400, 0.1, 0.1)
    assert many.duration_for(0.05) / few.duration_for(0.05) == pytest.approx(2.0, rel=1e-6)
    assert many.cold_time(0.05) / few.cold_time(0.05) == pytest.approx(math.exp(20), rel=1e-6)


def test_cold_time_is_the_time():
    modes = TwoModeEnergy(100, 0.1, 0.1)
    time = modes.cold_time(0.01, 0.2)
    assert modes.distance(modes.cold(time, 0.2)) == pytest.approx(0.01, rel=1e-9)
    assert modes.cold_time(0.01, modes.truth + 1e-3) == 0.0
    step = 1e-3 * time
    slope = (modes.cold(step, 0.2) - modes.cold(0.0, 0.2)) / step
    assert slope == pytest.approx(modes.slope(0.2, 1.0), rel=0.01)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: TwoModeEnergy(0, 0.1, 0.1), "all three positive"),
        (lambda: TwoModeEnergy(10, 0.1, -0.1), "all three positive"),
        (lambda: TwoModeEnergy(10, 0.1, 0.1).duration_for(0.05), "more than 37 rows"),
        (lambda: TwoModeEnergy(100, 0.1, 0.1).cold_time(1.5), "epsilon: got 1.5"),
        (lambda: TwoModeEnergy(100, 0.1, 0.1).simple_duration_for(0.1, 1.0), "factor: got 1.0"),
    ],
)
def test_wrong_calls_say_what_was_wanted(call, words):
    with pytest.raises(ArgumentError, match=words):
        call()
