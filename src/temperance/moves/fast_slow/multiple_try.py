"""Multiple-try Metropolis (Liu, Liang and Wong 2000).

With a proposal T(x, y), and lambda(x, y) any symmetric function that is positive where T is,

    w(x, y) = pi(x) T(x, y) lambda(x, y)
    tries      y_1 ... y_K from T(x, .), of which y is chosen with probability w(y_j, x) / sum
    against    x_1 ... x_{K-1} from T(y, .), and x_K = x
    accept     y with min(1, sum_j w(y_j, x) / sum_j w(x_j, y))

The current point belongs to those that stand against the tries: without it the ratio is biased.

    walk       T(x, .) = N(x, s^2 F F'),  lambda = 1 / T:               w(x, y) = pi(x)
    base       T(x, y) = zeta(y),  lambda = 1 / (zeta(x) zeta(y)):      w(x, y) = pi(x) / zeta(x)

A step evaluates 2 K - 1 densities. Where nothing makes them cheaper than as many steps of ordinary
Metropolis, those are the better bargain: this is here to be compared with. With a base it resembles
an ensemble of which all members are proposed afresh, which differs from it after a rejection: the
ensemble then chooses once more among its members, where this stays.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float

from temperance._types import Key, Point, Scalar
from temperance.errors import ArgumentError, MoveError
from temperance.ladders.ladder import Rung
from temperance.moves.accept import accept_or_stay
from temperance.moves.move import (
    AbstractMove,
    Info,
    Params,
    checked_metric,
    checked_step,
    colour,
    info_of,
)
from temperance.problems.checks import check_count
from temperance.problems.problem import Base
from temperance.programs.random_numbers import normals_and_uniforms

LogLambda = Callable[[Float[Array, " d"], Float[Array, " d"]], Scalar]
Vectors = Float[Array, "n d"]
Logs = Float[Array, " n"]


class MultipleTry(AbstractMove):
    """Leaves the rung's density invariant, and is reversible, for any step size and factor.

    A `log_lambda` that is not symmetric biases it without any sign of it in the output. A `base`
    has to be positive where the density is.
    """

    members: int = eqx.field(static=True)
    base: Base | None
    log_lambda: LogLambda | None
    step_sizes: tuple[float | None, ...] = eqx.field(static=True)
    metric: str = eqx.field(static=True)
    target_acceptance: tuple[float, ...] = eqx.field(static=True, default=(0.35,))
    reversible: bool = eqx.field(static=True, default=True)
    exact: bool = eqx.field(static=True, default=True)
    uses_gradient: bool = eqx.field(static=True, default=False)

    references = ("liu2000",)

    def step(self, key: Key, point: Point, rung: Rung, params: Params) -> tuple[Point, Info]:
        flat, unravel = ravel_pytree(point.position)
        here = point._replace(gradients=None)
        key_tries, key_choice, key_against, key_accept = jax.random.split(key, 4)

        def evaluate(vectors: Vectors) -> Point:
            points = jax.vmap(lambda v: rung.evaluate(unravel(v), gradient=False))(vectors)
            return points._replace(gradients=None)

        tries, log_back = self._proposed(key_tries, flat, self.members, params)
        points = evaluate(tries)
        log_tries = self._log_weights(jax.vmap(rung.log_density)(points), tries, flat, log_back)
        choice = jax.random.categorical(key_choice, log_tries)
        there = jax.tree.map(lambda leaf: leaf[choice], points)
        others, others_back = self._proposed(key_against, tries[choice], self.members - 1, params)
        # A walk is as likely back as forth; a draw is as likely as where it goes to.
        own_back = log_back[choice] if self.base is None else self.base(tries[choice])
        against = jnp.concatenate([others, flat[None]])
        logs = jnp.append(jax.vmap(rung.log_density)(evaluate(others)), rung.log_density(point))
        log_against = self._log_weights(
            logs, against, tries[choice], jnp.append(others_back, own_back)
        )
        uniform = jax.random.uniform(key_accept, dtype=flat.dtype)
        kept, tried = accept_or_stay(
            uniform, logsumexp(log_tries), self.standing(log_against), there, here
        )
        return kept, info_of(tried, jnp.asarray(2 * self.members - 1))

    def standing(self, log_against: Logs) -> Scalar:
        """What the tries have to beat; the last of them is the current point's."""
        return logsumexp(log_against)

    def _proposed(
        self, key: Key, center: Float[Array, " d"], count: int, params: Params
    ) -> tuple[Vectors, Logs]:
        """Draws from T(center, .), and for each the log of T from there to the center."""
        if self.base is None:
            normals, _ = normals_and_uniforms(key, count * center.size, 0, center.dtype)
            steps = normals.reshape(count, center.size)
            moved = jax.vmap(lambda z: colour(params.factor, z))(params.step_size[0] * steps)
            return center[None] + moved, -0.5 * jnp.sum(steps**2, axis=1)
        draws = jax.vmap(self.base.draw)(jax.random.split(key, count))
        if draws.shape[1:] != center.shape:
            raise MoveError(
                f"base: draws have shape {draws.shape[1:]}, and a position has {center.size} "
                "values in all"
            )
        return draws.astype(center.dtype), jnp.broadcast_to(self.base(center), (count,))

    def _log_weights(
        self, log_densities: Logs, vectors: Vectors, other: Float[Array, " d"], log_back: Logs
    ) -> Logs:
        """Log w(x, y) for each x of `vectors`, with `other` for y and log T(x, y) in `log_back`."""
        if self.log_lambda is not None:
            tilt = jax.vmap(self.log_lambda, in_axes=(0, None))(vectors, other)
            return log_densities + log_back + tilt
        if self.base is None:
            return log_densities
        return log_densities - jax.vmap(self.base)(vectors)


def multiple_try(
    members: int = 5,
    scale: float | None = None,
    metric: str = "diagonal",
    *,
    base: Base | None = None,
    log_lambda: LogLambda | None = None,
) -> MultipleTry:
    """Multiple-try Metropolis: `members` proposals a step, one of which is put to the test.

    Proposals are steps of a random walk; `scale=None` is tuned in warm-up. With a `base`, a density
    of the position laid out as one vector with a `draw(key)`, such as `tp.Gaussian`, they are draws
    from it. `log_lambda`, a symmetric function of two such vectors, chooses other weights
    pi(x) T(x, y) lambda(x, y) than the default pi(x), or pi(x) over the base's density.
    """
    if base is not None:
        checked_base(base)
        if scale is not None:
            raise ArgumentError(
                "scale and base: proposals are a walk or draws from a base, not both"
            )
    if log_lambda is not None and not callable(log_lambda):
        raise ArgumentError(f"log_lambda: wanted a function of two vectors, got {log_lambda!r}")
    size = checked_step(scale, "scale")
    return MultipleTry(
        members=check_count("members", members, 2),
        base=base,
        log_lambda=log_lambda,
        step_sizes=(size if base is None else 1.0,),
        metric=checked_metric(metric),
    )


def checked_base(base: object) -> None:
    """Raise if `base` is not a density that can be drawn."""
    if not isinstance(base, Base):
        raise ArgumentError(
            "base: wanted a normalised log density of a vector with a draw(key), such as "
            f"Gaussian(mean, covariance); got {base!r}"
        )
