"""A function of slow and fast variables, in two stages.

    f(slow, fast) = finish(prepare(slow), fast)

What a program computes from its slow variables alone is the first stage, and what it keeps for
the second is the *cache*. Traced, a program is a list of equations, each made of what earlier ones
made. An equation belongs to the second stage if anything it takes depends on the fast variables,
and to the first otherwise; programs inside programs are taken apart first, so that one that mixes
both does not count as a whole. A new value of the fast variables then costs the second stage alone.

`prepare` and `finish` are for values. They take apart what has a derivative of its own, so that
gradients belong to the function as it was given.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.extend import core
from jaxtyping import Array, PyTree

from temperance.programs.compiled import equations

Cache = list[Array]
# Calls of one program by another, and where it is in their parameters.
CALLS = {
    "jit": "jaxpr", "closed_call": "call_jaxpr", "core_call": "call_jaxpr",
    "custom_jvp_call": "call_jaxpr", "custom_vjp_call": "call_jaxpr", "checkpoint": "jaxpr",
    "remat2": "jaxpr", "custom_lin": "jaxpr",
}  # fmt: skip


class Stages(NamedTuple):
    """The two stages of a function; `slow` and `fast` are their programs."""

    prepare: Callable[[PyTree], Cache]
    finish: Callable[[Cache, PyTree], PyTree]
    slow: core.ClosedJaxpr
    fast: core.ClosedJaxpr


def stages(function: Callable[..., PyTree], slow: PyTree, fast: PyTree) -> Stages:
    """The stages of `function(slow, fast)`, for arguments shaped like these."""
    num_slow = len(jax.tree.leaves(slow))
    closed, shapes = jax.make_jaxpr(function, return_shape=True)(slow, fast)
    flat = jax.make_jaxpr(lambda *leaves: _inlined(closed.jaxpr, closed.consts, leaves))(
        *jax.tree.leaves((slow, fast))
    )
    program = flat.jaxpr
    later = set(program.invars[num_slow:])
    first: list[core.JaxprEqn] = []
    second: list[core.JaxprEqn] = []
    for equation in program.eqns:
        if any(v in later for v in _variables(equation.invars)):
            second.append(equation)
            later.update(equation.outvars)
        else:
            first.append(equation)
    known = {*program.invars[:num_slow], *(v for equation in first for v in equation.outvars)}
    wanted = [v for equation in second for v in _variables(equation.invars)]
    kept = list(dict.fromkeys(v for v in (*wanted, *_variables(program.outvars)) if v in known))
    consts = program.constvars
    early = _program(program, program.invars[:num_slow], kept, first, consts)
    late = _program(program, [*kept, *program.invars[num_slow:]], program.outvars, second, consts)
    slow_program = core.ClosedJaxpr(early, flat.consts)
    fast_program = core.ClosedJaxpr(late, flat.consts)
    structure = jax.tree.structure(shapes)
    packed = _packing([v.aval for v in kept])

    def prepare(slow: PyTree) -> Cache:
        return packed.pack(core.jaxpr_as_fun(slow_program)(*jax.tree.leaves(slow)))

    def finish(cache: Cache, fast: PyTree) -> PyTree:
        values = core.jaxpr_as_fun(fast_program)(*packed.unpack(cache), *jax.tree.leaves(fast))
        return jax.tree.unflatten(structure, values)

    return Stages(prepare, finish, slow_program, fast_program)


class _Packing(NamedTuple):
    """Which of several arrays are single numbers of one type, and are kept as one vector.

    A sampler carries a cache from step to step, and chooses between two of them: for each array
    that takes about as long, whatever its size.
    """

    alone: tuple[int, ...]
    together: tuple[int, ...]

    def pack(self, arrays: Sequence[Array]) -> Cache:
        vector = [jnp.stack([arrays[i] for i in self.together])] if self.together else []
        return [*(arrays[i] for i in self.alone), *vector]

    def unpack(self, cache: Cache) -> list[Array]:
        found = dict(zip(self.alone, cache, strict=False))
        found |= {i: cache[-1][place] for place, i in enumerate(self.together)}
        return [found[i] for i in range(len(found))]


def _packing(shapes: Sequence[Any]) -> _Packing:
    numbers = [i for i, each in enumerate(shapes) if each.shape == ()]
    dtypes = {shapes[i].dtype for i in numbers}
    together = tuple(numbers) if len(dtypes) == 1 and len(numbers) > 1 else ()
    return _Packing(tuple(i for i in range(len(shapes)) if i not in together), together)


def _program(
    whole: core.Jaxpr, invars: Any, outvars: Any, equations: Any, consts: Any
) -> core.Jaxpr:
    """A part of a program, as a program."""
    # Names of arguments and results belong to the whole.
    info = whole.debug_info._replace(
        arg_names=("",) * len(invars), result_paths=("",) * len(outvars)
    )
    return core.Jaxpr(consts, invars, outvars, equations, debug_info=info)


def _variables(atoms: Any) -> Iterator[Any]:
    return (atom for atom in atoms if not isinstance(atom, core.Literal))


def _inlined(program: core.Jaxpr, consts: Any, leaves: Any) -> list[Any]:
    """What a program gives, with the equations of those that it calls in place of the calls."""
    values: dict[Any, Any] = {}

    def read(atom: Any) -> Any:
        return atom.val if isinstance(atom, core.Literal) else values[atom]

    values.update(zip(program.constvars, consts, strict=True))
    values.update(zip(program.invars, leaves, strict=True))
    for equation in program.eqns:
        taken = [read(atom) for atom in equation.invars]
        inner = equation.params.get(CALLS.get(equation.primitive.name, ""))
        if inner is not None:
            closed = isinstance(inner, core.ClosedJaxpr)
            made = _inlined(inner.jaxpr if closed else inner, inner.consts if closed else (), taken)
        else:
            made = _alone(program, equation)(*map(read, dict.fromkeys(_variables(equation.invars))))
        values.update(zip(equation.outvars, made, strict=True))
    return [read(atom) for atom in program.outvars]


def _alone(program: core.Jaxpr, equation: core.JaxprEqn) -> Callable[..., list[Any]]:
    """One equation of a program, as a function of its variables."""
    taken = list(dict.fromkeys(_variables(equation.invars)))
    one = _program(program, taken, list(equation.outvars), [equation], consts=())
    return core.jaxpr_as_fun(core.ClosedJaxpr(one, ()))


def counted(program: core.ClosedJaxpr) -> Counter[str]:
    """How often each kind of equation is in a program, those of inner programs included."""
    found: Counter[str] = Counter()
    for equation in equations(program.jaxpr):
        found[equation.primitive.name] += 1
    return found
