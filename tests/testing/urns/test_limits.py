"""Two urns with many balls: drift, diffusion, effective time, and the relaxation of Gibbs."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from tests.testing.urns import broken

from temperance.testing.urns import enumeration as enumerated
from temperance.testing.urns.limits import anneal_time, diffusion, drift, effective_time
from temperance.testing.urns.model import TwoUrns


@pytest.mark.parametrize(("x", "y"), [(0.3, 0.6), (0.7, 0.2)])
def test_drift_and_diffusion_are_those_of_gibbs(x, y):
    """One exact step with a million balls, from its four chances."""
    num, red, p, alpha = 10**6, 0.4, 0.45, 0.5
    held = [int(num * red * x), int(num * (1 - red) * y)]
    held += [int(num * red) - held[0], int(num * (1 - red)) - held[1]]
    step = 1 / (num * red)
    mean = square = 0.0
    for place, sign in ((0, -1), (2, 1)):
        others = list(held)
        others[place] -= 1
        weights = [
            share * (alpha + others[k]) / (2 * alpha + others[k] + others[k + 1])
            for share, k in ((p, 0), (1 - p, 2))
        ]
        across = weights[1 if place == 0 else 0] / sum(weights)
        chance = held[place] / num * across
        mean += sign * chance * step
        square += chance * step**2
    assert drift(x, y, red=red, p=p) == pytest.approx(num * mean, abs=1e-5)
    assert diffusion(x, y, red=red, p=p) == pytest.approx(num**2 * square, rel=1e-4)
    assert abs(broken.printed_drift(x, y, red=red, p=p) - num * mean) > 0.01


def test_drift_has_the_known_number_and_vanishes_on_the_line():
    assert drift(0.3, 0.6, red=0.4, p=0.45) == pytest.approx(-0.0247, abs=5e-5)
    assert broken.printed_drift(0.3, 0.6, red=0.4, p=0.45) == pytest.approx(0.0171, abs=5e-5)
    assert drift(0.3, (0.45 - 0.4 * 0.3) / 0.6, red=0.4, p=0.45) == pytest.approx(0.0, abs=1e-15)
    half = {"red": 0.4, "p": 0.5}
    assert drift(0.3, 0.6, **half) == pytest.approx(broken.printed_drift(0.3, 0.6, **half))


def test_effective_time_is_the_integral():
    duration, num, smallest = 1e5, 10_000, 100
    found = effective_time(duration, num, smallest)
    start = smallest / num * duration
    assert found == pytest.approx(quad(lambda t: (duration / t) ** 2, start, duration)[0])
    assert found == pytest.approx(9_900_000)
    assert broken.printed_effective_time(duration, num, smallest) < 1e-6
    enough = anneal_time(num, smallest, 0.01)
    assert effective_time(enough, num, smallest) == pytest.approx(num**2 * math.log(100))
    assert anneal_time(2 * num, smallest, 0.01) / enough == pytest.approx(2, rel=0.01)


def test_relaxation_of_gibbs_grows_with_the_square(seed):
    found = {}
    for num in (10, 20, 40):
        urns = TwoUrns(2 * num // 5, 3 * num // 5)
        root = np.sqrt(enumerated.extended_law(urns, num))
        kernel = root[:, None] * enumerated.gibbs(urns).toarray() / root[None]
        found[num] = 1 / (1 - np.linalg.eigvalsh(0.5 * (kernel + kernel.T))[-2]) / num**2
    assert list(found.values()) == pytest.approx([0.72, 0.77, 0.796], abs=0.005)
