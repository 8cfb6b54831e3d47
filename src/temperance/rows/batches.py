"""Which rows a mini-batch holds.

*Without replacement* a batch is the first m places of a random order of all n rows, and the order
is named by a random key: place i holds row p(i), with p a Feistel network (nested_subsamples.py)
whose round functions are hashes,

    (l, r)  ->  (r, (l + hash(r, k_j)) mod a),      i = a l + r,   a^2 >= n,

sent round again while it lands at n or beyond. No place needs another to be known, so that a batch
of m rows costs m hashes whatever n is, batches of one key are nested, and a key is all there is to
remember of a batch. *With replacement* every place holds a row drawn for itself.

The mean of l over a batch then has the variance

    Var = s^2 / m (1 - m/n)   without,       s^2 / m   with replacement,

with s^2 the rows' variance (over n - 1, or over n).
"""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, UInt32

from temperance._types import Key

# A round mixes by a function of a values; where a is small it takes more of them until every pair
# of rows is as likely as every other.
ROUNDS, ROUNDS_OF_FEW, FEW_ROWS = 6, 24, 4096


class Batches(eqx.Module):
    """Batches of rows 0 ... n-1, drawn uniformly."""

    num_rows: int = eqx.field(static=True)
    replace: bool = eqx.field(static=True, default=False)

    def places(self, key: Key, first: Int[Array, ""] | int, count: int) -> Int[Array, " count"]:
        """The rows at places `first` to `first + count` of the order that `key` names."""
        spots = jnp.asarray(first, jnp.int32) + jnp.arange(count, dtype=jnp.int32)
        if self.replace:
            bits = jax.random.bits(jax.random.fold_in(key, first), (count,), jnp.uint32)
            return (bits % jnp.uint32(self.num_rows)).astype(jnp.int32)
        rounds = ROUNDS if self.num_rows > FEW_ROWS else ROUNDS_OF_FEW
        return enciphered(jax.random.bits(key, (rounds,), jnp.uint32), spots, self.num_rows)

    def left(self, count: Int[Array, ""] | int) -> Float[Array, ""]:
        """1 - m/n, by which batches without replacement vary less; 1 with replacement."""
        share = jnp.asarray(count, float) / self.num_rows
        return jnp.ones_like(share) if self.replace else 1.0 - share


def enciphered(
    keys: UInt32[Array, " rounds"], spots: Int[Array, " count"], n: int
) -> Int[Array, " count"]:
    """p(i) for each of the places `spots`."""
    base = max(2, math.isqrt(max(n - 1, 0)) + 1)

    def once(index: Array) -> Array:
        left, right = index // base, index % base
        for key in keys:
            left, right = right, (left + _hash(right, key) % base) % base
        return left * base + right

    def walk(index: Array) -> Array:
        return jnp.where(index < n, index, once(index))

    index = once(spots.astype(jnp.uint32))
    index = jax.lax.while_loop(lambda index: jnp.any(index >= n), walk, index)
    return index.astype(jnp.int32)


def _hash(value: UInt32[Array, " count"], key: UInt32[Array, ""]) -> UInt32[Array, " count"]:
    """Bits of which each depends on every bit of `value` and `key`."""
    bits = value * jnp.uint32(0x9E3779B1) ^ key
    bits = (bits ^ (bits >> 15)) * jnp.uint32(0x2C1B3C6D)
    bits = (bits ^ (bits >> 12)) * jnp.uint32(0x297A2D39)
    return bits ^ (bits >> 15)
