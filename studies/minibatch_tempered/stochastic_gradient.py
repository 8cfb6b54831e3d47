"""SGLD and SGHMC of BlackJAX as walkers: mini-batch gradients, no acceptance, steps that fall.

The schedule is that of Welling and Teh (2011), e_t = a (b + t)^(-0.55), which falls a hundredfold in the
10^6 steps of the paper. They had 100 rows and steps of 0.01; curvature grows with the rows, so steps here
start at 1 / n. BlackJAX moves by e g + sqrt(2 e) z, where Welling and Teh have e / 2 and sqrt(e).

A batch of m rows adds e^2 n^2 V / m to the injected 2 e, V the variance of a row's score: with
n = 10^6, m = 1000 and V = 1/2 that is 250 times as much at e = 10^-6 and 2.5 times at 10^-8. The first
steps are therefore far hotter than the posterior, and still far colder than what joins its modes.

SGHMC makes 10 steps of h = sqrt(e) / 10 with one batch and a friction of 10 sqrt(n), 10^4 here, which is more
than what the gradient's noise adds, h n^2 V / (2 m), once h is below 4 10^-5.
"""

from typing import Any, NamedTuple

import blackjax
import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

import temperance as tp

POWER = 0.55
NUM_STEPS, FALL = 10**6, 100.0
OFFSET = NUM_STEPS / (FALL ** (1 / POWER) - 1)
NUM_INTEGRATION = 10


class GradientState(NamedTuple):
    """A position and how many steps were made."""

    position: Array
    count: Array


class GradientInfo(NamedTuple):
    """Nothing is ever refused."""

    acceptance: Array
    batch_rows: Array


class StochasticGradient(eqx.Module):
    """SGLD or SGHMC on mini-batches with replacement; its law is not the posterior's."""

    problem: Any = eqx.field(static=True)
    data: Any
    params: tp.Params
    batch: int = eqx.field(static=True)
    kind: str = eqx.field(static=True)

    def init(self, position: Array) -> GradientState:
        return GradientState(position, jnp.zeros(()))

    def positions(self, state: GradientState) -> Array:
        return state.position[None]

    def step(self, key: Array, state: GradientState) -> tuple[GradientState, GradientInfo]:
        key_rows, key_step = jax.random.split(key)
        num_rows = self.problem.num_rows
        chosen = jax.random.randint(key_rows, (self.batch,), 0, num_rows)
        rows = jax.tree.map(lambda leaf: leaf[chosen], self.data)

        def term(position: Array, row: Any) -> Array:
            one = jax.tree.map(lambda leaf: leaf[None], row)
            return self.problem.terms(position, one)[0]

        gradient = blackjax.sgmcmc.gradients.grad_estimator(self.problem.log_prior, term, num_rows)
        size = self.params.step_size[0, 0] * (1 + state.count / OFFSET) ** -POWER
        if self.kind == "sgld":
            new = blackjax.sgld(gradient).step(key_step, state.position, rows, size)
        else:
            kernel = blackjax.sghmc(gradient, NUM_INTEGRATION, alpha=10 * num_rows**0.5)
            new = kernel.step(key_step, state.position, rows, jnp.sqrt(size) / 10)
        rows_evaluated = self.batch * (NUM_INTEGRATION if self.kind == "sghmc" else 1)
        info = GradientInfo(jnp.ones(()), jnp.asarray(rows_evaluated, float))
        return GradientState(new, state.count + 1), info


def gradient_walker(kind: str, problem: tp.Problem, batch: int, dimension: int) -> Any:
    """SGLD ("sgld") or SGHMC ("sghmc") with the schedule above."""
    data = jax.tree.map(jnp.asarray, problem.data)
    params = tp.Params(jnp.full((1, 1), 1.0 / problem.num_rows), jnp.ones((1, dimension)))
    return StochasticGradient(problem, data, params, batch, kind)
