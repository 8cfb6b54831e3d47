"""Merging axes changes how numbers are laid out and nothing else."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from temperance.programs.batched import elementwise, merged


def nested(x, scale):
    return jnp.cumsum(scale * jnp.sin(x)), {"sum": jnp.sum(x)}


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_merged_gives_what_nested_vmaps_give(axes):
    x = jax.random.normal(jax.random.key(axes), (*range(2, 2 + axes), 5))
    scale = x[..., 0]
    expected, found = jax.vmap(nested), merged(nested)
    for _ in range(axes - 1):
        expected, found = jax.vmap(expected), jax.vmap(found)
    for one, two in zip(
        jax.tree.leaves(expected(x, scale)), jax.tree.leaves(found(x, scale)), strict=True
    ):
        np.testing.assert_array_equal(one, two)


def test_merged_has_one_axis():
    x, scale = jnp.ones((2, 3, 5)), jnp.ones((2, 3))
    text = str(jax.make_jaxpr(jax.vmap(merged(nested)))(x, scale))
    assert "[6,5] = sin" in text
    assert "[2,3,5] = sin" not in text


def test_merged_copies_what_the_outer_axis_does_not_have():
    x, scale = jax.random.normal(jax.random.key(0), (3, 5)), jnp.arange(6.0).reshape(2, 3)
    found = jax.vmap(merged(nested), in_axes=(None, 0))(x, scale)[0]
    np.testing.assert_array_equal(found, jax.vmap(jax.vmap(nested), (None, 0))(x, scale)[0])


def test_merged_takes_keys():
    keys = jax.random.split(jax.random.key(0), (2, 3))
    found = jax.vmap(merged(lambda key: jax.random.normal(key, (4,))))(keys)
    expected = jax.vmap(jax.vmap(lambda key: jax.random.normal(key, (4,))))(keys)
    np.testing.assert_array_equal(found, expected)


def test_merged_may_close_over_what_a_loop_carries():
    """The trace of the loop's body is over when the loop is mapped."""

    def run(x):
        def body(_, carry):
            total, x = carry
            shift = jnp.sum(total)
            return merged(lambda row: row * 0.5 + shift)(total[:, None])[:, 0], x

        return jax.lax.fori_loop(0, 3, body, (x, x))[0]

    x = jnp.arange(6.0).reshape(2, 3)
    np.testing.assert_allclose(jax.vmap(run)(x), jnp.stack([run(row) for row in x]), rtol=1e-6)


def test_merged_functions_that_differ_are_kept_apart():
    x, shifts = jnp.arange(3.0), jnp.array([10.0, 20.0])
    found = jax.vmap(lambda shift: merged(lambda row: row + shift)(x))(shifts)
    np.testing.assert_array_equal(found, x[None] + shifts[:, None])


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (2, 3, 4), (3000,), (40, 100)])
def test_elementwise_gives_what_the_function_gives(shape):
    x = jax.random.uniform(jax.random.key(1), shape, minval=-0.9, maxval=0.9)
    function = elementwise(jax.lax.erf_inv)
    for _ in range(max(0, len(shape) - 1)):
        function = jax.vmap(function)
    np.testing.assert_allclose(jax.jit(function)(x), jax.lax.erf_inv(x), rtol=1e-6)


@pytest.mark.parametrize(("size", "apart"), [(10, True), (3000, False)])
def test_few_numbers_are_kept_apart(size, apart):
    """Inlined, XLA would loop over the short axis again."""
    mapped = jax.vmap(elementwise(jax.lax.erf_inv))
    text = jax.jit(mapped).lower(jnp.zeros((2, size))).as_text()
    assert ('inlineable = "false"' in text) is apart


def test_elementwise_works_on_one_axis():
    mapped = jax.vmap(jax.vmap(elementwise(jax.lax.erf_inv)))
    text = str(jax.make_jaxpr(mapped)(jnp.zeros((2, 3, 4))))
    assert "[24] = erf_inv" in text
