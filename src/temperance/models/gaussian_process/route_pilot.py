"""Which route to take for a Gaussian process with fast variables, by a pilot on this machine.

Each route evaluates the log likelihood of the data at hand some times in a compiled loop, with its
slow variables a little different every time. The routes take turns, and of each the least time
counts: whatever else the machine does can only add to it. Spectral is taken where it costs at most
`MOST` times as much, as in `fast_costs`, whose tables stand in for a pilot by default.
"""

import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array
from threadpoolctl import threadpool_limits

from temperance._types import Numbers
from temperance.models.gaussian_process.route_costs import MOST
from temperance.models.gaussian_process.fast_likelihood import ROUTES, FastArguments, log_likelihood
from temperance.models.gaussian_process.kernels import AbstractKernel

ROUNDS, NUM_TIMES = 5, 10


def piloted_route(
    kernel: AbstractKernel, nugget: float, inputs: Numbers, y: Numbers, most: float = MOST
) -> str:
    """The route that is worth its cost; `kernel` is the one with the constant."""
    with jax.enable_x64(True), threadpool_limits(1, "blas"):
        loops = [_loop(route, kernel, nugget, inputs, y) for route in ROUTES]
        rounds = [[_seconds(loop) for loop in loops] for _ in range(ROUNDS)]
    cholesky, spectral = (min(of_route) for of_route in zip(*rounds, strict=True))
    return "spectral" if spectral <= most * cholesky else "cholesky"


def _loop(
    route: str, kernel: AbstractKernel, nugget: float, inputs: Numbers, y: Numbers
) -> Callable[[], Array]:
    x, targets = jnp.asarray(inputs, float), jnp.asarray(y, float)
    log_length = jnp.log(jnp.std(x, axis=0) + 1e-9)

    def step(change: Array, _: None) -> tuple[Array, None]:
        given = FastArguments(log_length + change, jnp.zeros(()), jnp.zeros(()), x, targets)
        return 1e-9 * jnp.tanh(log_likelihood(route, kernel, nugget, given)), None

    loop = jax.jit(lambda start: jax.lax.scan(step, start, None, length=NUM_TIMES)[0])
    loop(jnp.zeros(())).block_until_ready()
    return lambda: loop(jnp.zeros(())).block_until_ready()


def _seconds(loop: Callable[[], Array]) -> float:
    start = time.perf_counter()
    loop()
    return time.perf_counter() - start
