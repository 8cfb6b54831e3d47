"""Geometric ladders: from a base to the target by powers.

    power posterior  log pi_beta(x) = log p(x) + beta log L(x)              weights (1, beta)
    bridge           log pi_beta(x) = (1 - beta) log q(x) + beta log pi(x)  weights (1 - beta, beta)

Paper 1, equation (1), prints the power posterior with a minus sign before the log likelihood,
which repels from the data; the sign here is right. At beta = 0 both are a normalised density (the
prior p, the base q) whose exact draws, where a sampler for it is at hand, replace the move.
"""

from collections.abc import Callable, Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from temperance._types import Key, LogDensity, Numbers, Position, Scalar
from temperance.errors import ArgumentError
from temperance.ladders.ladder import AbstractUniformLadder, Rung, Rungs


class GeometricLadder(AbstractUniformLadder):
    """Rungs at increasing powers `betas`, the last of them 1.

    `hot` is the log density at beta = 0 and must be normalised for log evidence to mean anything;
    `cold` is the log likelihood (power posterior) or the log target (`bridge=True`).
    `draw_hot`, if given, must draw from exp(hot) exactly: it is used in place of a move at
    beta = 0, and a wrong sampler there biases every rung without any sign of it.
    """

    hot: LogDensity
    cold: LogDensity
    betas: Float[Array, " rungs"]
    bridge: bool = eqx.field(static=True)
    draw_hot: Callable[[Key], Position] | None
    exact_hottest: bool = eqx.field(static=True)

    def __init__(
        self,
        hot: LogDensity,
        cold: LogDensity,
        betas: Numbers,
        *,
        bridge: bool = False,
        draw_hot: Callable[[Key], Position] | None = None,
    ):
        values = check_betas(betas)
        self.hot = hot
        self.cold = cold
        self.betas = jnp.asarray(values)
        self.bridge = bridge
        self.draw_hot = draw_hot
        self.exact_hottest = draw_hot is not None and bool(values[0] == 0) and len(values) > 1

    @property
    def num_rungs(self) -> int:
        return self.betas.shape[0]

    def densities(self) -> Sequence[LogDensity]:
        return self.hot, self.cold

    def weights(self, rung: Rungs) -> Float[Array, " components"]:
        beta = self.betas[rung]
        return jnp.stack([1 - beta if self.bridge else jnp.ones_like(beta), beta])

    def weight_table(self) -> Float[Array, "rungs components"]:
        hot = 1 - self.betas if self.bridge else jnp.ones_like(self.betas)
        return jnp.stack([hot, self.betas], axis=1)

    def between(self, beta: Scalar, rest: Scalar) -> Rung:
        """The ladder at any beta, on a rung or not; `rest` is 1 - beta, with all its digits."""
        hot = rest if self.bridge else jnp.ones_like(beta)
        return Rung(self, jnp.stack([hot, beta]))

    def tilt(self, components: Float[Array, " components"]) -> Scalar:
        """Log density at beta = 1 over that at beta = 0, of a point whose components are known."""
        return components[1] - components[0] if self.bridge else components[1]

    def draw_hottest(self) -> Callable[[Key], Position] | None:
        return self.draw_hot if self.exact_hottest else None

    def with_betas(self, betas: Numbers) -> "GeometricLadder":
        """The same ladder with its rungs elsewhere; compiles nothing new if there are as many."""
        return GeometricLadder(
            self.hot, self.cold, betas, bridge=self.bridge, draw_hot=self.draw_hot
        )


def check_betas(betas: Numbers) -> np.ndarray:
    """`betas` as an array, if they can be a ladder's."""
    try:
        values = np.asarray(betas, float)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"betas: wanted numbers that increase to 1, got {betas!r}") from error
    if values.ndim != 1 or values.size < 2:
        raise ArgumentError(
            f"betas: a ladder needs at least two rungs in one vector, got shape {values.shape}; "
            "for a single rung use method='plain'"
        )
    if not np.isfinite(values).all() or (np.diff(values) <= 0).any():
        raise ArgumentError(
            f"betas must be finite and increasing (rung 0 is hottest), got {values}"
        )
    if values[0] < 0 or values[-1] != 1:
        raise ArgumentError(f"betas must lie in [0, 1] and end at 1, the target; got {values}")
    return values
