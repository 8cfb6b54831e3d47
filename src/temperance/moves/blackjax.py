"""BlackJAX's kernels as moves: NUTS, slice, elliptical slice, and its own HMC as a reference.

BlackJAX keeps the density inside the kernel's state, so a state made at one rung runs silently
wrong at another. `from_blackjax` rebuilds the state from the point at every call and evaluates the
components where the kernel lands: always right, and two evaluations dearer than our own moves.
"""

import inspect
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from temperance._types import Key, Point, Position, Scalar
from temperance.errors import ArgumentError, UnknownNameError
from temperance.ladders.ladder import Rung
from temperance.moves.move import AbstractMove, Info, Params, checked_metric, checked_step
from temperance.problems.checks import check_count
from temperance.problems.gaussian import Gaussian

# The papers behind algorithms, by the name that a move has here.
REFERENCES = {
    "nuts": ("hoffman2014",),
    "slice": ("neal2003",),
    "elliptical_slice": ("murray2010",),
}


class BlackjaxMove(AbstractMove):
    """Whatever `algorithm` leaves invariant at the rung's density, `num_steps` times.

    `reversible` is the caller's word: HMC and NUTS with fresh momentum and both slice samplers
    satisfy detailed balance, a kernel that keeps its momentum (`ghmc`) does not.
    """

    algorithm: Callable[..., Any] = eqx.field(static=True)
    num_steps: int = eqx.field(static=True)
    fixed: dict[str, Any]
    prior: Gaussian | None
    step_sizes: tuple[float | None, ...] = eqx.field(static=True)
    metric: str = eqx.field(static=True)
    target_acceptance: tuple[float, ...] = eqx.field(static=True)
    takes_step: bool = eqx.field(static=True)
    takes_metric: bool = eqx.field(static=True)
    reversible: bool = eqx.field(static=True)
    name: str = eqx.field(static=True, default="")
    exact: bool = eqx.field(static=True, default=True)
    uses_gradient: bool = eqx.field(static=True, default=False)

    @property
    def references(self) -> tuple[str, ...]:
        return ("blackjax2024", *REFERENCES.get(self.name, ()))

    def step(self, key: Key, point: Point, rung: Rung, params: Params) -> tuple[Point, Info]:
        kernel = self._kernel(rung, params)
        state = kernel.init(point.position)

        def once(state: Any, key: Key) -> tuple[Any, Info]:
            state, info = kernel.step(key, state)
            return state, _read(info, point)

        state, infos = jax.lax.scan(once, state, jax.random.split(key, self.num_steps))
        landed = rung.evaluate(state.position, gradient=False)
        return landed, Info(
            jnp.mean(infos.acceptance, axis=0),
            jnp.any(infos.accepted),
            jnp.any(infos.diverging),
            jnp.sum(infos.num_evaluations) + 2,
        )

    def _kernel(self, rung: Rung, params: Params) -> Any:
        tuned: dict[str, Any] = {}
        if self.takes_step:
            tuned["step_size"] = params.step_size[0]
        if self.takes_metric:
            factor = params.factor
            tuned["inverse_mass_matrix"] = factor**2 if factor.ndim == 1 else factor @ factor.T
        prior = self.prior
        if prior is None:
            return self.algorithm(rung, **tuned, **self.fixed)

        def log_likelihood(x: Position) -> Scalar:
            return rung(x) - prior(x)

        return self.algorithm(log_likelihood, **tuned, **self.fixed)


def from_blackjax(
    algorithm: Callable[..., Any],
    num_steps: int = 1,
    *,
    reversible: bool = True,
    step_size: float | None = None,
    metric: str = "diagonal",
    target_acceptance: float = 0.8,
    name: str = "",
    **fixed: Any,
) -> AbstractMove:
    """A BlackJAX sampling algorithm as a move, its state rebuilt from the point at each call.

    `fixed` are the algorithm's own options. If it takes a `step_size` or an
    `inverse_mass_matrix` that is not fixed here, warm-up tunes it.
    """
    names = _parameters(algorithm)
    unknown = sorted(set(fixed) - set(names))
    if unknown:
        raise UnknownNameError(f"unknown option {unknown[0]!r} of {algorithm}: known are {names}")
    takes_step = "step_size" in names
    takes_metric = "inverse_mass_matrix" in names and "inverse_mass_matrix" not in fixed
    prior = None
    if {"mean", "cov"} <= set(names):
        prior = Gaussian(fixed["mean"], fixed["cov"])
    return BlackjaxMove(
        algorithm=algorithm,
        num_steps=check_count("num_steps", num_steps, 1),
        fixed=fixed,
        prior=prior,
        step_sizes=(checked_step(step_size, "step_size") if takes_step else 1.0,),
        metric=checked_metric(metric) if takes_metric else "unit",
        target_acceptance=(target_acceptance,),
        takes_step=takes_step,
        takes_metric=takes_metric,
        reversible=reversible,
        name=name,
    )


def nuts(
    step_size: float | None = None,
    metric: str = "diagonal",
    target_acceptance: float = 0.8,
    max_num_doublings: int = 10,
) -> AbstractMove:
    """BlackJAX's No-U-Turn sampler; step size and mass matrix are tuned in warm-up."""
    import blackjax

    return from_blackjax(
        blackjax.nuts,
        step_size=step_size,
        metric=metric,
        target_acceptance=target_acceptance,
        max_num_doublings=max_num_doublings,
        name="nuts",
    )


def slice_sampling(num_steps: int = 1, width: float = 1.0) -> AbstractMove:
    """BlackJAX's slice sampler along random directions: no gradient, nothing to tune.

    The interval is stepped out. BlackJAX's default, doubling, evaluates its 22 ends at once,
    needed or not, and does not say how many more its acceptance test took.
    """
    import blackjax
    from blackjax.mcmc.slice import stepping_out

    return from_blackjax(
        blackjax.slice_sampling, num_steps, width=width, interval=stepping_out, name="slice"
    )


def elliptical_slice(mean: Any, covariance: Any, num_steps: int = 1) -> AbstractMove:
    """BlackJAX's elliptical slice sampler for a prior N(mean, covariance): nothing to tune.

    The rung's density need not have that prior: the ellipse's likelihood is the rung's density
    divided by it, so any Gaussian is right and the prior is only the efficient choice.
    """
    import blackjax

    # NumPy's arrays keep double precision until the run that uses them says otherwise.
    center = np.atleast_1d(np.asarray(mean, float))
    spread = np.asarray(covariance, float)
    matrix = spread if spread.ndim == 2 else np.diag(np.broadcast_to(spread, center.shape))
    return from_blackjax(
        blackjax.elliptical_slice, num_steps, mean=center, cov=matrix, name="elliptical_slice"
    )


def _parameters(algorithm: Callable[..., Any]) -> list[str]:
    try:
        signature = inspect.signature(getattr(algorithm, "differentiable", algorithm))
    except (TypeError, ValueError):
        raise ArgumentError(
            f"algorithm: wanted a BlackJAX algorithm such as blackjax.nuts, got {algorithm!r}"
        ) from None
    return list(signature.parameters)[1:]


def _read(info: Any, point: Point) -> Info:
    one = jnp.ones((), point.components.dtype)
    acceptance = jnp.asarray(getattr(info, "acceptance_rate", one), one.dtype)
    if hasattr(info, "num_shrink"):
        # Stepping out looks at both ends of the interval before it expands either.
        count = 2 + info.num_expansions + info.num_shrink
    else:
        count = getattr(info, "num_integration_steps", getattr(info, "subiter", 1))
    return Info(
        acceptance[None],
        jnp.asarray(getattr(info, "is_accepted", True)),
        jnp.asarray(getattr(info, "is_divergent", False)),
        jnp.asarray(count, int),
    )
