"""Slips of looking for factorisations in a program, named after what is forgotten."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import jax
from jax.extend import core

from temperance.moves.fast_slow.program_cost import CUBES


def at_the_top_alone(density: Callable[..., Any], position: dict[str, Any]) -> Counter[str]:
    """Factorisations among a program's own equations, and not in those of what it calls."""
    program = jax.make_jaxpr(density)(position)
    return Counter(e.primitive.name for e in program.eqns if e.primitive.name in CUBES)


def whatever_depends(
    density: Callable[..., Any], position: dict[str, Any], fast: tuple[str, ...]
) -> Counter[str]:
    """Factorisations in a call that sees a fast leaf, whether they see it or not."""
    leaves = {name: leaf for name, leaf in position.items() if name not in fast}
    program = jax.make_jaxpr(lambda f: jax.jit(density)(leaves | f))(
        {name: position[name] for name in fast}
    )
    return Counter(n for e in program.eqns for n in _named(e.params) if n in CUBES)


def _named(params: dict[str, Any]) -> list[str]:
    def is_one(value: Any) -> bool:
        return isinstance(value, core.Jaxpr | core.ClosedJaxpr)

    found = []
    for value in jax.tree.leaves(params, is_leaf=is_one):
        if is_one(value):
            for equation in getattr(value, "jaxpr", value).eqns:
                found += [equation.primitive.name, *_named(equation.params)]
    return found
