"""The samplers of the paper's demonstration, with its settings.

    metropolis s        all variables at once, N(x, s^2 I)
    one at a time       each variable in turn: nu by 2, eta and sigma by 0.6
    extra               the same, and 49 updates more of eta and sigma each time
    spectral BASE       ensembles of 49 over eta and sigma, each nu in turn
    cholesky BASE       ensembles of 49 over eta, each nu and psi in turn

A *slow evaluation* is one after which a matrix is factored or reduced. As in the paper those of one-at-a-time Metropolis are
its updates of nu: eta and sigma could be had for nothing.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from neal_problem import NUM_INPUTS, PRIOR_SD, problem

import temperance as tp
from temperance.ladders.ladder import SingleRung
from temperance.problems.problem import densities_of

MEMBERS = 49
SLOW, FAST = 2.0, 0.6
# psi is known about as well as sigma.
RATIO = 0.6
BASES = ("independent", "exchangeable", "grid")
JOINT = (0.25, 0.35)


class Setting(NamedTuple):
    """A sampler, on which route it is, and how many slow evaluations one step of it counts."""

    sampler: tp.Plain
    route: str
    slow: int


def names() -> list[str]:
    return [
        *(f"metropolis {s}" for s in JOINT), "one at a time", "extra",
        *(f"{route} {base}" for route in ("spectral", "cholesky") for base in BASES),
    ]  # fmt: skip


def setting(name: str) -> Setting:
    """A sampler by its name."""
    kind, *rest = name.split()
    route = {"metropolis": "direct", "one": "direct", "extra": "spectral"}.get(kind, kind)
    target = problem(route)
    densities = densities_of(target)
    dimension = densities.layout.dimension
    fast, slow = np.full(2, FAST), np.full(NUM_INPUTS, SLOW)
    factor, step = np.append(slow, fast), 1.0
    if kind == "metropolis":
        move, count = tp.metropolis(metric="unit"), 1
        factor, step = np.ones(dimension), float(rest[0])
    elif kind == "one":
        move, count = tp.single_site(metric="unit"), NUM_INPUTS
    elif kind == "extra":
        move, count = tp.extra_updates(tp.single_site(), target.terms.fast, MEMBERS), NUM_INPUTS
    else:
        measures = {
            "independent": tp.independent(),
            "exchangeable": tp.exchangeable(np.full(len(target.terms.fast), 0.4 * PRIOR_SD)),
            "grid": tp.grid((1.0, 1.1), np.full(len(target.terms.fast), PRIOR_SD)),
        }
        move = tp.ensemble(members=MEMBERS, base=measures[rest[0]])
        count = dimension - len(target.terms.fast)
        factor = np.concatenate([slow, [RATIO], [FAST]]) if kind == "cholesky" else factor
    move = move.placed(target, densities.layout)
    sizes = jnp.full((1, len(move.step_sizes)), step)
    params = tp.Params(sizes, jnp.asarray(factor)[None])
    return Setting(tp.Plain(SingleRung(densities.whole), move, params), route, count)
