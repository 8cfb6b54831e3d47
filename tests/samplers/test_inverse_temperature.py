"""The law of beta given a position, and the weights: T7, sixty digits, and an exact draw."""

from decimal import Decimal, getcontext

import jax.numpy as jnp
import numpy as np
import pytest
from tests.samplers.broken_inverse_temperature import printed_log_weight

from temperance.samplers.inverse_temperature import draw_beta, log_base_weight, log_target_weight

TILTS = [0.0, 1e-300, 1e-17, 1e-9, 1e-5, 9.9e-3, 0.01, 0.0101, 0.3, 1.0, 7.0, 50.0, 800.0, 1e5]
BOTH = np.array([sign * tilt for tilt in TILTS for sign in (1.0, -1.0)])


def exact(tilt: float) -> float:
    """Log of t / (1 - exp(-t)) with sixty digits more than the answer needs."""
    getcontext().prec = 400
    getcontext().Emin = -(10**8)
    t = Decimal(tilt)
    return 0.0 if t == 0 else float((t / (1 - (-t).exp())).ln())


def test_t7():
    assert float(log_base_weight(jnp.asarray(-1.0))) == pytest.approx(0.458675145387, abs=1e-12)
    assert float(log_target_weight(jnp.asarray(-1.0))) == pytest.approx(-0.541324854613, abs=1e-12)
    assert float(log_base_weight(jnp.asarray(-50.0))) == pytest.approx(3.91202300543, abs=1e-11)
    assert float(log_target_weight(jnp.asarray(-800.0))) == pytest.approx(-793.315388272, abs=1e-9)


def test_both_weights_to_rounding():
    wanted = np.array([exact(t) for t in BOTH])
    scale = np.maximum(1.0, np.abs(wanted))
    one = np.asarray(log_target_weight(jnp.asarray(BOTH)))
    zero = np.asarray(log_base_weight(jnp.asarray(-BOTH)))
    assert np.max(np.abs(one - wanted) / scale) < 4e-15
    assert np.max(np.abs(zero - wanted) / scale) < 4e-15
    with np.errstate(all="ignore"):
        assert not np.max(np.abs(printed_log_weight(BOTH) - wanted) / scale) < 4e-15


def test_an_impossible_position_has_no_weight():
    assert float(log_target_weight(jnp.asarray(-jnp.inf))) == -np.inf
    assert np.isfinite(float(log_target_weight(jnp.asarray(1e300))))


@pytest.mark.parametrize("tilt", BOTH)
def test_the_draw_inverts_the_distribution_function(tilt: float):
    for uniform in (1e-12, 0.1, 0.5, 0.99):
        beta, rest = (float(v) for v in draw_beta(jnp.asarray(uniform), jnp.asarray(tilt)))
        assert 0 <= beta <= 1
        assert beta + rest == pytest.approx(1.0, abs=1e-15)
        # The mass between the favoured end and the draw is the uniform number.
        far, rate = (rest, abs(tilt)) if tilt > 0 else (beta, abs(tilt))
        mass = far if rate < 1e-12 else np.expm1(-rate * far) / np.expm1(-rate)
        assert mass == pytest.approx(uniform, rel=1e-10)


def test_the_draw_keeps_the_digits_of_the_smaller_part():
    _, rest = draw_beta(jnp.asarray(0.5), jnp.asarray(1e20))
    assert float(rest) == pytest.approx(np.log(2) / 1e20, rel=1e-12)
