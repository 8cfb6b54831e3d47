"""What a traced program costs before anyone has run it, by the shapes in it.

A multiplication with its addition counts as one, and so does any other operation on one number.

    product of m x k and k x n        m k n
    factor of an n x n matrix         n^3 / 6 (Cholesky) ... 25 n^3 / 2 (Schur)
    triangular solve                  n^2 / 2 for each right-hand side
    a loop of known length            as often as it runs; of unknown length, once
    a branch                          the dearest of them
    what only names or moves numbers  nothing

That is an estimate: an exponential is no multiplication, and a product runs nearer to a machine's
speed than a loop. It tells orders of magnitude apart, and factors are counted as they are.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from math import prod
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.extend import core

# Multiples of the cube, or of rows x columns x the fewer of both.
CUBES = {
    "cholesky": 1 / 6, "lu": 1 / 3, "qr": 2 / 3, "geqrf": 2 / 3, "geqp3": 2 / 3,
    "householder_product": 2 / 3, "ormqr": 1.0, "tridiagonal": 2 / 3, "hessenberg": 5 / 3,
    "eigh": 9 / 2, "svd": 10.0, "eig": 25 / 2, "schur": 25 / 2, "cholesky_update": 1.0,
}  # fmt: skip
FOREIGN = "ffi_call"
SOLVES = ("triangular_solve", "tridiagonal_solve")
NOTHING = {
    "broadcast_in_dim", "convert_element_type", "copy", "copy_p", "device_put", "expand_dims",
    "iota", "platform_index", "reshape", "slice", "squeeze", "stop_gradient", "transpose",
}  # fmt: skip
# These touch what they give, or what they are given last, and not all that they look at.
READS = {"dynamic_slice", "gather"}
WRITES = {"dynamic_update_slice", "scatter", "scatter-add", "scatter_add"}


class Cost(NamedTuple):
    """Multiplications, and how often each kind of factor or solve is found."""

    work: float
    factors: Counter[str]


def cost_of(equations: Iterable[core.JaxprEqn]) -> Cost:
    """The cost of some equations of a program, with all that they call."""
    costs = [_one(equation) for equation in equations]
    return Cost(sum(c.work for c in costs), sum((c.factors for c in costs), Counter()))


def _one(equation: core.JaxprEqn) -> Cost:
    name, params = equation.primitive.name, equation.params
    if name in CUBES or name in SOLVES or name == FOREIGN:
        return Cost(_factor(equation), Counter({name: 1}))
    if name == "cond":
        branches = [cost_of(_equations(branch)) for branch in params["branches"]]
        return max(branches, key=lambda cost: (cost.factors.total(), cost.work))
    if name == "custom_linear_solve":
        return cost_of(_equations(params["jaxprs"].solve))
    inner = list(_programs(params))
    if not inner:
        return Cost(_plain(equation), Counter())
    times = params["length"] if name == "scan" else 1
    cost = cost_of(e for program in inner for e in _equations(program))
    return Cost(times * cost.work, Counter({n: times * c for n, c in cost.factors.items()}))


def _factor(equation: core.JaxprEqn) -> float:
    name = equation.primitive.name
    if name == FOREIGN:
        # Nobody sees into it: a factor of the largest matrix that it takes or gives.
        shapes = [_shape(v) for v in (*equation.invars, *equation.outvars)]
        return max(prod(s) ** 1.5 / 3 if len(s) > 1 else float(prod(s)) for s in shapes)
    shape = _shape(equation.invars[0])
    if name == "triangular_solve":
        # A by b for n x n and n x k.
        return 0.5 * prod(_shape(equation.invars[1])) * shape[-1]
    if name == "tridiagonal_solve":
        return 5.0 * prod(_shape(equation.invars[-1]))
    return CUBES[name] * prod(shape) * min(shape[-2:])


def _plain(equation: core.JaxprEqn) -> float:
    name = equation.primitive.name
    taken, made = ([prod(_shape(v)) for v in vs] for vs in (equation.invars, equation.outvars))
    if name in NOTHING:
        return 0.0
    if name == "dot_general":
        (contracted, _), _ = equation.params["dimension_numbers"]
        left = _shape(equation.invars[0])
        return float(made[0] * prod(left[axis] for axis in contracted))
    if name in READS:
        return float(max(made))
    if name in WRITES:
        return float(min(taken[1:], default=0) if name == "dynamic_update_slice" else taken[-1])
    return float(max([*taken, *made], default=0))


def _shape(atom: Any) -> tuple[int, ...]:
    return tuple(np.shape(atom.val)) if isinstance(atom, core.Literal) else atom.aval.shape


def _equations(program: Any) -> list[core.JaxprEqn]:
    return getattr(program, "jaxpr", program).eqns


def _programs(params: dict[str, Any]) -> Iterator[Any]:
    """The programs that an equation calls."""

    def is_one(value: Any) -> bool:
        return isinstance(value, core.Jaxpr | core.ClosedJaxpr)

    return (value for value in jax.tree.leaves(params, is_leaf=is_one) if is_one(value))
