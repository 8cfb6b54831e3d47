"""The samplers under study, each built by one function; what this library calls them is said here only.

A *walker* is a sampler with `init(position)`, `step(key, state) -> (state, info)` with `info.acceptance`,
`positions(state)` with a leading axis of one, and `params` with the step size, as `tp.Plain` has them.
`rows_evaluated` says how many terms it evaluated in a step.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

import temperance as tp

NOISES = ("penalty", "common", "pseudo-marginal")
# What a sampler of the study needs of the library, if it is not there yet.
NEEDS = {"mint": "mint", "tuna": "tuna", "delayed": "delayed"}
METHOD_NEEDS = {"ee": "ee", "mintee": "mintee"}


def available(sampler: str) -> bool:
    """Whether the library has what a sampler is built from."""
    first = sampler.split()[0]
    if first in METHOD_NEEDS:
        from temperance.methods import METHODS

        return METHOD_NEEDS[first] in METHODS
    return hasattr(tp, NEEDS.get(first, "sample"))


class Share(eqx.Module):
    """A log density over T."""

    density: Any
    temperature: float

    def __call__(self, position: Any) -> Array:
        return self.density(position) / self.temperature


class Total(eqx.Module):
    """The log likelihood of all rows."""

    terms: Any
    data: Any

    def __call__(self, position: Any) -> Array:
        return jnp.sum(self.terms(position, self.data))


def start_of(problem: tp.Problem) -> Array:
    """The prior's mean, where all walkers of a problem may start."""
    return jnp.zeros(sum(leaf.size for leaf in jax.tree.leaves(problem.example())))


def full_walker(
    problem: tp.Problem, temperature: float, root: Any = None, langevin: bool = False
) -> tp.Plain:
    """Random-walk Metropolis or Langevin steps on all rows, prior and likelihood both tempered.

    Steps follow `root`, a lower root of a covariance; without it they are the same in all directions.
    """
    data = jax.tree.map(jnp.asarray, problem.data)
    hot = Share(problem.log_prior, temperature)
    cold = Share(Total(problem.terms, data), temperature)
    # A ladder has two rungs at least, and Plain stays on the last.
    ladder = tp.GeometricLadder(hot, cold, [0.5, 1.0])
    factor = jnp.ones(start_of(problem).size) if root is None else jnp.asarray(root)
    params = tp.Params(jnp.ones((2, 1)), jnp.stack([factor, factor]))
    move = tp.mala if langevin else tp.metropolis
    return tp.Plain(ladder, move(1.0, metric="unit" if root is None else "dense"), params)


def mint_walker(
    problem: tp.Problem, noise: str, batch: int, alpha: float, langevin: bool = False
) -> Any:
    """MINT at T = n / batch^alpha, a random walk or Langevin steps, prior and likelihood both tempered."""
    proposal = tp.mala(1.0, metric="unit") if langevin else tp.metropolis(1.0, metric="unit")
    move = tp.mint(proposal, batch_size=batch, alpha=alpha, noise=noise)
    params = tp.Params(jnp.ones((1, 1)), jnp.ones((1, start_of(problem).size)))
    return tp.Plain(tp.RowLadder.of(problem), move, params)


def exact_move(name: str, design: Any, around: tp.Laplace, batch: int) -> tp.AbstractMove:
    """A move that is exact and looks at few rows, about the mode of a logistic regression."""
    if name == "tuna":
        return tp.tuna(tp.lipschitz(design, "logistic", around=around))
    return tp.delayed("hmc", batch_size=batch, around=around)


def walker(name: str, problem: tp.Problem, batch: int, alpha: float, root: Any = None) -> Any:
    """A walker by name: "mcmc", "tempered" or "mint NOISE", with "langevin" for steps that follow gradients."""
    words = name.split()
    langevin = "langevin" in words
    if words[0] == "mint":
        return mint_walker(problem, words[1], batch, alpha, langevin)
    heat = problem.num_rows / batch**alpha if words[0] == "tempered" else 1.0
    return full_walker(problem, heat, root, langevin)


def with_step(sampler: Any, step: Any) -> Any:
    """The same walker with another step size."""
    return eqx.tree_at(
        lambda s: s.params.step_size, sampler, jnp.full_like(sampler.params.step_size, step)
    )


def rows_evaluated(info: Any, num_rows: int) -> Array:
    """Terms that a step evaluated: of its batch, grown or not, at either end, or of all rows."""
    if info.batch_rows is not None:
        return info.batch_rows
    return jnp.sum(info.num_evaluations) * num_rows


def energy_options(name: str) -> dict[str, Any]:
    """What `sample` is told of "ee" and of "mintee": seven chains, as in the paper."""
    options: dict[str, Any] = {"num_rungs": 7, "max_temperature": 250.0}
    # The paper's batches are noisier than its rings are wide. At alpha = 0.5 they are not, but hold all rows at
    # every temperature up to 316; at 0.6 they hold a fifth of them at 250, and an energy over T varies by about 2.
    return options | {"alpha": 0.6} if name == "mintee" else options
