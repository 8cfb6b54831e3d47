"""One call of the generator gives normals and uniforms, and how many keys share it says nothing."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from temperance.programs.random_numbers import normals_and_uniforms

KEYS = (40, 50)
LEAST = 1e-4


def drawn(key, function=normals_and_uniforms):
    keys = jax.random.split(key, KEYS)
    numbers = jax.vmap(jax.vmap(lambda k: function(k, 10, 2, jnp.float64)))(keys)
    return [np.asarray(values) for values in numbers]


def as_uniforms(normals, uniforms):
    """All numbers of a transition on the scale of uniforms."""
    return np.concatenate([stats.norm.cdf(normals), uniforms], axis=-1)


def p_values(numbers):
    """Whether each is uniform, and whether neighbours in a call and in a row of keys are alike."""
    beside = [
        (numbers[..., :-1], numbers[..., 1:]),
        (numbers[:, :-1], numbers[:, 1:]),
    ]
    return [stats.kstest(numbers.ravel(), "uniform").pvalue] + [
        stats.pearsonr(one.ravel(), two.ravel()).pvalue for one, two in beside
    ]


def test_normals_and_uniforms_have_their_laws(key):
    assert min(p_values(as_uniforms(*drawn(key)))) > LEAST


def shared(key, *args):
    """Broken: the first uniform is that of the last normal."""
    normals, uniforms = normals_and_uniforms(key, *args)
    return normals, uniforms.at[0].set(jax.scipy.stats.norm.cdf(normals[-1]))


def narrow(key, *args):
    """Broken: the factor sqrt(2) is left out."""
    normals, uniforms = normals_and_uniforms(key, *args)
    return normals / np.sqrt(2), uniforms


@pytest.mark.parametrize("broken", [shared, narrow])
def test_broken_numbers_are_rejected(key, broken):
    assert min(p_values(as_uniforms(*drawn(key, broken)))) < LEAST


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_a_key_gives_the_same_numbers_alone_and_among_others(key, dtype):
    keys = jax.random.split(key, (3, 2))
    among = jax.vmap(jax.vmap(lambda k: normals_and_uniforms(k, 5, 1, dtype)))(keys)
    alone = normals_and_uniforms(keys[1, 1], 5, 1, dtype)
    for one, two in zip(among, alone, strict=True):
        assert one.dtype == dtype
        np.testing.assert_allclose(one[1, 1], two, rtol=1e-6)
