"""Rows drawn with given probabilities, each at the cost of one look into a table.

Walker's alias method: a place is drawn uniformly, and holds either its own row, with the
probability `own`, or the one other row that it was given. n places of weight 1/n can be filled so
that every row gets its weight: a row that needs less than a place leaves the rest of it to one
that needs more.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, UInt32


class WeightedRows(eqx.Module):
    """Rows 0 ... n-1; `own` is None where all are equally likely.

    A place is a 32-bit number modulo n, so that a row's probability is off by n / 2^32 of itself.
    """

    own: Float[Array, " n"] | Float[np.ndarray, " n"] | None
    other: Int[Array, " n"] | Int[np.ndarray, " n"] | None
    num_rows: int = eqx.field(static=True)

    @classmethod
    def of(cls, weights: Float[np.ndarray, " n"]) -> "WeightedRows":
        """Rows in proportion to `weights`."""
        n = weights.size
        if np.all(weights == weights[0]):
            return cls(None, None, n)
        left = (weights * (n / weights.sum())).tolist()
        own, other = np.ones(n), np.arange(n)
        small = [i for i in range(n) if left[i] < 1.0]
        large = [i for i in range(n) if left[i] >= 1.0]
        while small and large:
            few, many = small.pop(), large[-1]
            own[few], other[few] = left[few], many
            left[many] -= 1.0 - left[few]
            if left[many] < 1.0:
                small.append(large.pop())
        return cls(own, other.astype(np.int32), n)

    def rows(self, bits: UInt32[Array, " m"], coins: Float[Array, " m"]) -> Int[Array, " m"]:
        """One row for each of the random `bits`, with `coins` uniform on (0, 1)."""
        place = (bits % jnp.uint32(self.num_rows)).astype(jnp.int32)
        if self.own is None or self.other is None:
            return place
        own, other = (jnp.asarray(leaf)[place] for leaf in (self.own, self.other))
        return jnp.where(coins < own, place, other)

    def probabilities(self) -> Float[np.ndarray, " n"]:
        """What the table gives to each row."""
        if self.own is None or self.other is None:
            return np.full(self.num_rows, 1 / self.num_rows)
        own = np.asarray(self.own, float)
        given = np.bincount(np.asarray(self.other), 1.0 - own, self.num_rows)
        return (own + given) / self.num_rows
