"""A function in two stages, of slow variables alone and of the rest, and what is kept between."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from temperance.moves.fast_slow.two_stage import _Packing, counted, stages

SLOW = {"a": jnp.asarray(0.7), "b": jnp.asarray([0.3, -0.2, 1.1])}
FAST = {"c": jnp.asarray(0.4), "d": jnp.asarray([2.0, -1.0])}


def several_numbers(slow: Any, fast: Any) -> Any:
    """Keeps three numbers and a vector between the stages, among them one that comes before it."""
    one, vector = jnp.exp(slow["a"]), jnp.sin(slow["b"])
    two, three = jnp.sum(vector), jnp.prod(vector)
    return one * fast["c"] + jnp.sum(fast["d"]) * two, three * vector * fast["c"]


def one_number(slow: Any, fast: Any) -> Any:
    return jnp.exp(slow["a"]) * fast["c"]


def numbers_of_two_kinds(slow: Any, fast: Any) -> Any:
    count = jnp.argmax(slow["b"])
    return jnp.exp(slow["a"]) * fast["c"] + fast["d"][count % 2] * jnp.sum(slow["b"])


def nothing_kept(slow: Any, fast: Any) -> Any:
    return fast["c"] ** 2


CASES = {
    "several numbers": (several_numbers, 2),
    "one number": (one_number, 1),
    "numbers of two kinds": (numbers_of_two_kinds, 3),
    "nothing": (nothing_kept, 0),
}


@pytest.mark.parametrize("case", CASES)
def test_both_stages_are_the_function_and_numbers_of_one_kind_are_kept_as_one(case: str):
    function, num_kept = CASES[case]
    taken = stages(function, SLOW, FAST)
    for shift in (0.0, 0.25):
        slow, fast = jax.tree.map(lambda leaf, shift=shift: leaf + shift, (SLOW, FAST))
        cache = taken.prepare(slow)
        assert len(cache) == num_kept
        jax.tree.map(
            lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-14),
            taken.finish(cache, fast),
            function(slow, fast),
        )


def test_what_is_slow_is_done_in_the_first_stage_alone():
    taken = stages(several_numbers, SLOW, FAST)
    assert counted(taken.slow)["exp"] == counted(taken.slow)["sin"] == 1
    assert counted(taken.fast)["exp"] == counted(taken.fast)["sin"] == 0


def test_members_share_one_cache():
    taken = stages(several_numbers, SLOW, FAST)
    cache = taken.prepare(SLOW)
    members = jax.tree.map(lambda leaf: jnp.stack([leaf, 2.0 * leaf, leaf - 1.0]), FAST)
    together = jax.vmap(lambda fast: taken.finish(cache, fast))(members)
    for i in range(3):
        alone = several_numbers(SLOW, jax.tree.map(lambda leaf, i=i: leaf[i], members))
        for a, b in zip(jax.tree.leaves(together), jax.tree.leaves(alone), strict=True):
            np.testing.assert_allclose(a[i], b, rtol=1e-14)


def test_packing_gives_back_what_it_was_given():
    arrays = [jnp.asarray(1.0), jnp.arange(3.0), jnp.asarray(2.0), jnp.ones((2, 2))]
    packed = _Packing((1, 3), (0, 2))
    for a, b in zip(packed.unpack(packed.pack(arrays)), arrays, strict=True):
        np.testing.assert_array_equal(a, b)
    # A packing that mistakes places gives back other numbers.
    mistaken = _Packing((1, 3), (2, 0))
    with pytest.raises(AssertionError):
        np.testing.assert_array_equal(mistaken.unpack(packed.pack(arrays))[0], arrays[0])
