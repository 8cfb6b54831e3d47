"""Rings that hold their latest states, and give each of them with the same probability."""

import re
from collections import deque

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from temperance._types import Point
from temperance.samplers.equi_energy.reservoir import Reservoir, add, draw, empty

RINGS, CAPACITY = 3, 4


def point(number: jax.Array | float) -> Point:
    """A state that says its number in every part."""
    value = 1.0 * jnp.asarray(number)
    return Point({"x": jnp.stack([value, -value])}, value[None], (jnp.stack([10 * value, value]),))


def numbers(reservoir: Reservoir, ring: int) -> list[float]:
    """What a draw can give, by going through the uniforms in equal steps."""
    held = int(reservoir.held[ring])
    grid = (jnp.arange(8 * held) + 0.5) / (8 * held)
    drawn, found = jax.vmap(lambda u: draw(u, reservoir, jnp.asarray(ring)))(grid)
    assert bool(found.all())
    parts = [drawn.position["x"][:, 0], -drawn.position["x"][:, 1], drawn.components[:, 0],
             drawn.gradients[0][:, 1], 0.1 * drawn.gradients[0][:, 0]]  # fmt: skip
    for part in parts[1:]:
        np.testing.assert_allclose(part, parts[0], rtol=1e-14)
    values, counts = np.unique(np.asarray(parts[0]), return_counts=True)
    assert set(counts) == {8}, "every state as often as the others"
    return values.tolist()


@pytest.mark.slow
def test_a_ring_holds_its_latest_states(seed: int) -> None:
    rng = np.random.default_rng(seed)
    reservoir = empty(point(0.0), RINGS, CAPACITY)
    kept = [deque(maxlen=CAPACITY) for _ in range(RINGS)]
    written = np.zeros(RINGS, int)
    for number in range(1, 40):
        ring, allowed = int(rng.integers(RINGS - 1)), bool(rng.random() < 0.7)
        before = reservoir
        reservoir = jax.jit(add)(reservoir, jnp.asarray(ring), point(number), jnp.asarray(allowed))
        if allowed:
            kept[ring].append(float(number))
            written[ring] += 1
        else:
            same = jax.tree.map(lambda a, b: bool((a == b).all()), before, reservoir)
            assert all(jax.tree.leaves(same))
        np.testing.assert_array_equal(reservoir.written, written)
        np.testing.assert_array_equal(reservoir.held, np.minimum(written, CAPACITY))
        for other in range(RINGS - 1):
            if kept[other]:
                assert numbers(reservoir, other) == sorted(kept[other])
    assert written.min() == 0
    assert written.max() > 2 * CAPACITY


def test_an_empty_ring_says_so() -> None:
    reservoir = empty(point(0.0), RINGS, CAPACITY)
    reservoir = add(reservoir, jnp.asarray(0), point(3.0), jnp.asarray(True))
    for ring, holds in ((0, True), (1, False), (2, False)):
        for uniform in (0.0, 0.5, np.nextafter(1.0, 0.0)):
            drawn, found = draw(jnp.asarray(uniform), reservoir, jnp.asarray(ring))
            assert bool(found) is holds
            assert float(drawn.components[0]) == (3.0 if holds else 0.0)


def test_many_rungs_at_once() -> None:
    """Under `vmap`, as all rungs of a sampler write in one go."""
    one = empty(point(0.0), RINGS, CAPACITY)
    several = jax.tree.map(lambda leaf: jnp.stack([leaf] * 5), one)
    points = jax.vmap(point)(jnp.arange(5.0))
    rings, allowed = jnp.arange(5) % RINGS, jnp.arange(5) != 2
    written = jax.vmap(add)(several, rings, points, allowed)
    for i in range(5):
        alone = add(one, rings[i], point(float(i)), allowed[i])
        same = jax.tree.map(lambda a, b, i=i: bool((a[i] == b).all()), written, alone)
        assert all(jax.tree.leaves(same))


@pytest.mark.parametrize("num_chains", [1, 3])
def test_a_loop_copies_no_ring(num_chains: int) -> None:
    """In the compiled loop nothing but the writes themselves has the size of the buffers."""
    capacity, dimension = 1013, 7
    state = Point(jnp.zeros(dimension), jnp.zeros(1), None)
    reservoir = jax.tree.map(
        lambda leaf: jnp.stack([leaf] * num_chains), empty(state, RINGS, capacity)
    )

    def fill(reservoir: Reservoir) -> Reservoir:
        def body(i: jax.Array, reservoir: Reservoir) -> Reservoir:
            new = Point(jnp.full(dimension, 1.0 * i), jnp.full(1, 1.0 * i), None)
            return jax.vmap(lambda r: add(r, i % RINGS, new, i >= 0))(reservoir)

        return jax.lax.fori_loop(0, 100, body, reservoir)

    text = jax.jit(fill, donate_argnums=0).lower(reservoir).compile().as_text()
    shape = rf"f64\[{num_chains},{RINGS},{capacity},{dimension}\]"
    assert re.search(shape, text)
    copied = re.findall(rf"= {shape}\S* (copy|select|concatenate|add|broadcast)\(", text)
    assert not copied, copied
