"""Whether the fast leaves of a density are fast: a proof from its program, and how to rewrite it.

The density is traced and taken apart into what depends on the slow leaves alone and what does not
(`moves/fast_slow/two_stage.py`). Everything that a new value of the fast leaves costs is in the second part, so
that a matrix that is factored there is factored again for every member of an ensemble, and one
that is not there never is. Nothing is run.

Which leaf is to blame is read off the same program: what an equation makes depends on every leaf
that anything it takes depends on.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import core
from jaxtyping import Array

from temperance.problems.slow_fast_vector import fast_leaves
from temperance.errors import ArgumentError
from temperance.moves.fast_slow.fast_variables import checked_fast, said_fast
from temperance.moves.fast_slow.program_cost import FOREIGN, SOLVES, cost_of
from temperance.problems.problem import Problem, Target, densities_of
from temperance.moves.fast_slow.two_stage import stages

# Of an evaluation, for one more member: twenty of them for the price of one.
SMALL = 0.05
GUIDE = "docs/how-to/fast-and-slow.md"


@dataclass(frozen=True)
class Fastness:
    """What an evaluation costs in its slow and in its fast stage.

    Factorisations are counted by the name of their operation, and work is in multiplications, an
    estimate (`temperance.moves.fast_slow.program_cost`). `cache_size` numbers are kept from the slow stage for
    the fast one. `advice` says what to rewrite, and is empty where nothing has to be.
    """

    fast: tuple[str, ...]
    slow_factorisations: dict[str, int]
    fast_factorisations: dict[str, int]
    slow_work: float
    fast_work: float
    cache_size: int
    advice: tuple[str, ...]

    @property
    def share(self) -> float:
        """The cost of one more member, of that of an evaluation."""
        return self.fast_work / max(self.slow_work + self.fast_work, 1.0)

    @property
    def holds(self) -> bool:
        """Whether new values of the fast leaves factor nothing and cost little."""
        return not set(self.fast_factorisations).difference(SOLVES) and self.share <= SMALL

    def __str__(self) -> str:
        slow, quick = map(_counted, (self.slow_factorisations, self.fast_factorisations))
        kept = f"{self.cache_size:,} numbers kept"
        lines = [
            f"{', '.join(self.fast)}: {'fast' if self.holds else 'not fast'}",
            f"  slow stage: {slow}; {self.slow_work:,.0f} multiplications, {kept}",
            f"  fast stage: {quick}; {self.fast_work:,.0f} multiplications",
            f"  one more member costs {100 * self.share:.2g} % of an evaluation",
        ]
        return "\n".join([*lines, *(f"- {words}" for words in self.advice)])


def fastness(problem: Problem | Target, fast: str | Sequence[str] | None = None) -> Fastness:
    """Whether the leaves named in `fast` are fast, from the program of the density.

    By default they are those of which the problem says so itself. A `Problem` is seen as its log
    prior and its log likelihood, a `Target` as its log density.
    """
    if not isinstance(problem, Problem | Target):
        raise ArgumentError(f"problem: wanted a Problem or a Target, got {problem!r}")
    densities = densities_of(problem)
    layout = densities.layout
    names = checked_fast(fast) or said_fast(problem)
    is_fast = dict(zip(layout.names, fast_leaves(layout, names), strict=True))
    parts = (densities.hot, densities.cold) if isinstance(problem, Problem) else (densities.cold,)
    leaves = {
        name: jax.ShapeDtypeStruct((prod(shape),), jnp.result_type(float))
        for name, shape in zip(layout.names, layout.shapes, strict=True)
    }

    def components(slow: dict[str, Array], fast: dict[str, Array]) -> list[Array]:
        both: Any = _Leaves([(slow | fast)[name] for name in layout.names])
        return [density(both) for density in parts if density is not None]

    slow = {name: leaf for name, leaf in leaves.items() if not is_fast[name]}
    quick = {name: leaf for name, leaf in leaves.items() if is_fast[name]}
    found = stages(components, slow, quick)
    early, late = _needed(found.slow.jaxpr), _needed(found.fast.jaxpr)
    before, after = cost_of(early), cost_of(late)
    share = after.work / max(before.work + after.work, 1.0)
    return Fastness(
        fast=tuple(quick),
        slow_factorisations=dict(before.factors),
        fast_factorisations=dict(after.factors),
        slow_work=before.work,
        fast_work=after.work,
        cache_size=sum(prod(np.shape(v.aval)) for v in found.slow.jaxpr.outvars),
        advice=_advice(late, _blamed(found.fast.jaxpr, sorted(quick)), share),
    )


class _Leaves:
    """A vector in pieces, one for each leaf, so that each can be told from the others."""

    def __init__(self, leaves: list[Array]):
        self.leaves = leaves

    def pieces(self) -> list[Array]:
        return self.leaves


def _needed(program: core.Jaxpr) -> list[core.JaxprEqn]:
    """The equations without which the results could not be had."""
    wanted, kept = set(_variables(program.outvars)), []
    for equation in reversed(program.eqns):
        if wanted.intersection(equation.outvars):
            wanted.update(_variables(equation.invars))
            kept.append(equation)
    return kept[::-1]


def _variables(atoms: Sequence[Any]) -> list[Any]:
    return [atom for atom in atoms if not isinstance(atom, core.Literal)]


def _blamed(program: core.Jaxpr, names: list[str]) -> dict[Any, frozenset[str]]:
    """The fast leaves on which each variable depends; they come last among the arguments."""
    places = program.invars[len(program.invars) - len(names) :]
    found = {place: frozenset({name}) for place, name in zip(places, names, strict=True)}
    for equation in program.eqns:
        sets = [found.get(v, frozenset()) for v in _variables(equation.invars)]
        found.update(dict.fromkeys(equation.outvars, frozenset().union(*sets)))
    return found


def _advice(
    equations: list[core.JaxprEqn], blamed: dict[Any, frozenset[str]], share: float
) -> tuple[str, ...]:
    """What to rewrite: factors first, solves if there are none, and else what is dearest."""
    factors: dict[str, None] = {}
    solves: dict[str, None] = {}
    for equation in equations:
        leaves = _leaves_of(equation, blamed)
        for name in cost_of([equation]).factors:
            if name == FOREIGN:
                factors[_foreign(leaves)] = None
            elif name in SOLVES:
                solves[_solved(name, leaves)] = None
            else:
                factors[_factored(name, leaves)] = None
    if factors or share <= SMALL:
        return tuple(factors)
    if solves:
        return tuple(solves)
    dearest = max(equations, key=lambda equation: cost_of([equation]).work)
    return (_dear(dearest, _leaves_of(dearest, blamed), share),)


def _dear(equation: core.JaxprEqn, leaves: str, share: float) -> str:
    shapes = " and ".join(str(tuple(v.aval.shape)) for v in _variables(equation.invars))
    return (
        f"{equation.primitive.name} of {shapes} depends on {leaves} and is the dearest part of one "
        f"more member, which costs {100 * share:.2g} % of an evaluation: sum or multiply what does "
        f"not depend on {leaves} first, or take no more than about {max(2, round(1 / share))} "
        f"members ({GUIDE})"
    )


def _factored(name: str, leaves: str) -> str:
    return (
        f"{name}: the matrix that is factored depends on {leaves}, so that every member factors "
        f"one of its own. Factor it without {leaves}, and bring that in afterwards: a scale s of "
        "s^2 A = (s L)(s L)' multiplies the factor, and s A + v I for any s and v needs one "
        f"eigendecomposition of A, or one tridiagonal form ({GUIDE})"
    )


def _solved(name: str, leaves: str) -> str:
    return (
        f"{name}: its right-hand side depends on {leaves}. It is linear: solve once for each part "
        f"that does not depend on {leaves}, and put the solutions together afterwards ({GUIDE})"
    )


def _foreign(leaves: str) -> str:
    return (
        f"{FOREIGN}: a foreign function takes what depends on {leaves}, and is called again for "
        f"every member. Give it what does not depend on {leaves} ({GUIDE})"
    )


def _leaves_of(equation: core.JaxprEqn, blamed: dict[Any, frozenset[str]]) -> str:
    return " and ".join(sorted(blamed[equation.outvars[0]]))


def _counted(factors: dict[str, int]) -> str:
    return str(dict(Counter(factors))).strip("{}").replace("'", "") or "no factorisation"
