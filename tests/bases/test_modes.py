"""The reference: the modes' shares and log Z from its own draws, and what it is heated from."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import logsumexp
from tests.shared.small_runs import make_problem

import temperance as tp
from temperance.bases.modes import find_reference
from temperance.problems.problem import densities_of


class Pair(eqx.Module):
    """Two normal densities of equal weight, `apart` from each other, with two widths."""

    apart: float = eqx.field(static=True)
    narrow: float = eqx.field(static=True)

    def __call__(self, x: Any) -> Any:
        d = x.shape[0]
        center = jnp.zeros(d).at[0].set(self.apart / 2)
        one = -0.5 * jnp.sum((x + center) ** 2)
        two = -0.5 * jnp.sum((x - center) ** 2) / self.narrow**2 - d * jnp.log(self.narrow)
        return jnp.logaddexp(one, two) + jnp.log(0.5) - 0.5 * d * jnp.log(2 * jnp.pi)


def found_in(target: Any, seed: int) -> Any:
    return find_reference(target, densities_of(target), jax.random.key(seed))


UNEQUAL = tp.Target(Pair(10.0, 0.25), tp.Gaussian(np.zeros(10), 36.0))
SPIKE = tp.Target(Pair(0.0, 0.1), tp.Gaussian(np.zeros(10), 36.0))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "num_modes"), [(UNEQUAL, 2), (SPIKE, 1)], ids=["unequal", "spike"]
)
def test_shares_and_log_evidence_in_ten_dimensions(target: Any, num_modes: int, seed: int) -> None:
    """A slab about a spike is uphill of nothing but the spike, and so of its mode."""
    for i in range(3):
        assert_right(found_in(target, 3 * seed + i), num_modes)


def assert_right(found: Any, num_modes: int = 2) -> None:
    """Modes of equal mass, and log Z of zero."""
    assert found.num_modes == num_modes
    np.testing.assert_array_less(
        np.abs(found.shares - 1 / num_modes), 4 * found.share_errors + 1e-3
    )
    assert (found.share_errors < 0.05).all()
    error = np.sqrt((1 / found.efficiency - 1) / len(found.log_ratios))
    assert abs(found.log_zeta) < 4 * error < 0.3
    assert found.shape < 0.5
    assert found.efficiency > 0.1


@pytest.fixture(scope="module")
def unequal() -> Any:
    return found_in(UNEQUAL, 0)


def test_two_modes_of_unequal_widths(unequal: Any) -> None:
    assert_right(unequal)
    assert unequal.barrier < 1.5
    # The narrow mode is the highest.
    np.testing.assert_allclose(unequal.centers[:, 0], [5.0, -5.0], atol=0.1)
    np.testing.assert_allclose(unequal.centers[:, 1:], 0.0, atol=0.1)


def test_the_reference_is_a_density_of_which_it_draws(unequal: Any, key: jax.Array) -> None:
    """Importance of its draws by the target has mean one, as the target is normalised."""
    draws = jax.vmap(unequal.density.draw)(jax.random.split(key, 2000))
    log_q = jax.vmap(unequal.density)(draws)
    ratios = np.exp(np.asarray(jax.vmap(Pair(10.0, 0.25))(draws) - log_q))
    assert abs(ratios.mean() - 1.0) < 4.5 * ratios.std() / np.sqrt(2000) < 0.2


def test_the_ratios_are_of_draws_of_what_they_are_said_to_be_drawn_from(unequal: Any) -> None:
    rng, mixture = np.random.default_rng(0), unequal.drawn_from
    points = mixture.draws(rng, rng.multinomial(8000, np.exp(np.asarray(mixture.log_weights))))
    log_q = unequal.log_drawn(points)
    np.testing.assert_allclose(log_q[:5], [float(mixture(jnp.asarray(x))) for x in points[:5]])
    log_p = np.asarray(jax.vmap(Pair(10.0, 0.25))(jnp.asarray(points)))
    ours, theirs = (np.sort(v[np.isfinite(v)]) for v in (log_p - log_q, unequal.log_ratios))
    at = np.linspace(0.5, 0.95, 6)
    np.testing.assert_allclose(np.quantile(ours, at), np.quantile(theirs, at), atol=0.1)


def test_points_belong_to_the_mode_that_they_are_near_to(unequal: Any, seed: int) -> None:
    z = np.random.default_rng(seed).standard_normal((200, 10))
    axis = np.eye(10)[0] * 5.0
    assert (unequal.assign(0.25 * z + axis) == 0).all()
    assert (unequal.assign(z - axis) == 1).all()


def same_bits(one: Any, two: Any) -> bool:
    left, right = (jax.tree.leaves((r.density, r.log_ratios, r.shares)) for r in (one, two))
    return all(
        np.asarray(a).tobytes() == np.asarray(b).tobytes() for a, b in zip(left, right, strict=True)
    )


def test_a_reference_is_that_of_its_key(unequal: Any) -> None:
    assert same_bits(found_in(UNEQUAL, 0), unequal)
    assert not same_bits(found_in(UNEQUAL, 1), unequal)


# -- other problems --------------------------------------------------------------------------------


def two_hills(x: Any) -> Any:
    """One fifth of the mass at -3 and the rest at 3, times e."""
    left, right = jnp.sum((x + 3.0) ** 2), jnp.sum((x - 3.0) ** 2)
    logs = jnp.logaddexp(jnp.log(0.2) - 0.5 * left, jnp.log(0.8) - 0.5 * right)
    return 1.0 + logs - 0.5 * x.shape[0] * jnp.log(2 * jnp.pi)


def through_python(x: Any) -> Any:
    """The same where JAX cannot look."""

    def value(y: Any) -> Any:
        y = np.asarray(y)
        logs = [np.log(w) - 0.5 * np.sum((y - m) ** 2, axis=-1) for w, m in ((0.2, -3), (0.8, 3))]
        return 1.0 + logsumexp(logs, axis=0) - 0.5 * y.shape[-1] * np.log(2 * np.pi)

    shape = jax.ShapeDtypeStruct((), x.dtype)
    return jax.pure_callback(value, shape, x, vmap_method="sequential")


WIDE = tp.Gaussian(np.zeros(2), 16.0)


def assert_two_hills(found: Any) -> None:
    assert found.num_modes == 2
    np.testing.assert_allclose(found.centers, [[3.0, 3.0], [-3.0, -3.0]], atol=0.1)
    np.testing.assert_array_less(np.abs(found.shares - [0.8, 0.2]), 4.5 * found.share_errors + 0.01)
    error = np.sqrt((1 / found.efficiency - 1) / len(found.log_ratios))
    assert abs(found.log_zeta - 1.0) < 4.5 * error < 0.3


@pytest.mark.slow
def test_a_density_without_a_gradient(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"hunt.FIRST_WAVE": 12, "hunt.FEWEST": 100, "modes.DRAWS": 200}.items():
        monkeypatch.setattr(f"temperance.bases.{name}", value)
    monkeypatch.setattr("temperance.bases.modes.WALKERS", (24, 24))
    monkeypatch.setattr("temperance.bases.modes.WALKS", (16, 16))
    assert_two_hills(found_in(tp.Target(through_python, WIDE), seed))


@pytest.mark.slow
def test_walkers_that_cross_over_do_not_take_the_other_mode_along() -> None:
    """With these seeds some do."""
    for i in (0, 5):
        assert_two_hills(found_in(tp.Target(two_hills, WIDE), i))
        assert_two_hills(tp.modes(tp.Target(two_hills, WIDE), seed=i, progress=False).reference)


def test_a_target_without_a_base(seed: int) -> None:
    assert_two_hills(found_in(tp.Target(two_hills, example=np.zeros(2)), seed))


@pytest.mark.slow
def test_a_base_of_ones_own_is_a_part_of_the_mixture(seed: int) -> None:
    class Laplace:
        def __call__(self, x: Any) -> Any:
            return -jnp.sum(jnp.abs(x / 4.0)) - x.size * jnp.log(8.0)

        def draw(self, key: Any) -> Any:
            return 4.0 * jax.random.laplace(key, (2,))

    found = found_in(tp.Target(two_hills, Laplace()), seed)
    assert isinstance(found.density, tp.Mixture)
    assert_two_hills(found)


def test_a_problem_with_one_mode(seed: int) -> None:
    found = found_in(make_problem(), seed)
    assert found.num_modes == 1
    np.testing.assert_allclose(found.shares, [1.0])
    assert found.efficiency > 0.3


@pytest.mark.slow
@pytest.mark.parametrize(
    "density",
    [
        lambda x: jnp.where((jnp.abs(x) < 1.0).all(), 0.0, -jnp.inf),
        lambda x: -0.5 * (x[0] / 3) ** 2 - 0.5 * x[1] ** 2 * jnp.exp(-x[0]) - 0.5 * x[0],
        lambda x: -jnp.sum(jnp.log1p(x**2)),
    ],
    ids=["flat box", "funnel", "heavy tails"],
)
def test_densities_without_a_smooth_maximum_have_a_reference(density: Any, seed: int) -> None:
    found = found_in(tp.Target(density, WIDE), seed)
    assert np.isfinite(found.log_zeta)
    assert found.shares.sum() == pytest.approx(1.0)
    assert np.isfinite(found.barrier)


# -- the hunt alone --------------------------------------------------------------------------------


def test_the_hunt_alone(seed: int) -> None:
    found = tp.modes(tp.Target(two_hills, WIDE), seed=seed, progress=False)
    assert len(found) == 2
    assert_two_hills(found.reference)
    np.testing.assert_allclose(found.centers["x"], [[3.0, 3.0], [-3.0, -3.0]], atol=0.1)
    assert found.found.sum() <= found.num_draws
    table = found.table()
    assert list(table.columns) == ["share", "error", "found", "x[0]", "x[1]"]
    np.testing.assert_array_equal(table["share"], found.shares)
    said = str(found)
    assert f"less than {found.bound:.2g} of the base's mass (95 %)" in said
    assert f"{found.num_draws} of its draws" in said


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: tp.modes(UNEQUAL, seed=-1), "seed"),
        (lambda: tp.modes(UNEQUAL, precision="half"), "precision"),
    ],
)
def test_wrong_calls(call: Any, words: str) -> None:
    with pytest.raises(tp.TemperanceError, match=words):
        call()
