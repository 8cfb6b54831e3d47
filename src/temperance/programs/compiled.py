"""How a loop becomes machine code: many kernels, or one if it is small.

On a CPU XLA runs a program as a list of kernels. A runtime starts them one by one and hands those
that do not wait for each other to several threads. That is right for arrays of millions; where a
sweep works on hundreds of numbers, starting kernels and waiting for threads is most of its time.
XLA can also turn a called function, loops and all, into one kernel on one thread. It does so of its
own accord for loops of a kilobyte, and for any call with the attribute `xla_cpu_small_call`. Here:

    small(jaxpr)     nothing in the program works on more than `MOST_WORK` numbers at once, and
                     nothing in it is a library's routine, which XLA cannot put inside a kernel
    one kernel       a small program on a CPU
    many kernels     everything else, and whatever XLA turns out not to be able to put into one

A program is traced once for its shapes and its static parts, and kept until `forget`.
"""

import functools
import math
from collections.abc import Callable, Hashable, Iterator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.xla_metadata import set_xla_metadata
from jax.extend import core
from jaxtyping import PyTree

# Where threads begin to gain more than starting them costs.
MOST_WORK = 2**11
# Inside a kernel whoever uses a gathered number gathers it again, so that rows taken from here and
# there are soon dearer than starting another kernel for them.
MOST_GATHERED = 2**9
# A product of matrices does this many multiplications in the time of one logarithm.
CHEAPER = 8
# Moving numbers is not working on them: the buffers for draws are large, and written row by row.
MOVES = {
    "broadcast_in_dim", "concatenate", "convert_element_type", "copy", "dynamic_slice",
    "dynamic_update_slice", "gather", "iota", "pad", "reshape", "select_n", "slice", "split",
    "squeeze", "stack", "transpose",
    "closed_call", "cond", "core_call", "custom_jvp_call", "custom_vjp_call",
    "custom_vmap_call", "jit", "scan", "while",
}  # fmt: skip
LIBRARY = {
    "cholesky", "conv_general_dilated", "eig", "eigh", "fft", "ffi_call", "householder_product",
    "io_callback", "lu", "pure_callback", "qr", "schur", "sort", "svd", "top_k",
    "triangular_solve", "tridiagonal_solve",
}  # fmt: skip
# XLA's library of fused products and sums has no place inside a kernel.
OPTIONS = {"xla_cpu_experimental_ynn_fusion_type": "", "xla_cpu_prefer_vector_width": 512}
# Inside a kernel a product of matrices is plain loops, which LLVM's level 3 makes much faster; to
# all else it brings nothing but two and a half times the time to compile.
LEVEL, LEVEL_FOR_PRODUCTS = 2, 3
# Programs kept; beyond this the oldest is forgotten, so that a long session does not only grow.
MOST_PROGRAMS = 256
# What XLA says of a program that it cannot put into one kernel, and of options it does not know.
REFUSALS = ("UNIMPLEMENTED", "No such compile option", "Failed to materialize symbols")

Leaf = jax.Array | np.ndarray | np.generic
_kept: list[dict[Hashable, Callable[..., Any]]] = []


def compiled(function: Callable[..., PyTree]) -> Callable[..., PyTree]:
    """`function`, compiled: arrays are traced, everything else is static and must be hashable.

    `prepared(*args)` of what comes back is the program alone and its arrays, for many calls that
    differ in arrays alone.
    """
    programs: dict[Hashable, Callable[..., Any]] = {}
    _kept.append(programs)

    @functools.wraps(function)
    def call(*args: Any) -> PyTree:
        program, leaves = prepared(*args)
        return program(*leaves)

    def prepared(*args: Any) -> tuple[Callable[..., Any], list[Leaf]]:
        """The program of these arguments, and the arrays that it takes, in their order."""
        arrays, static = eqx.partition(args, eqx.is_array)
        leaves, structure = jax.tree.flatten(arrays)
        key = (
            structure,
            jax.tree.structure(static),
            *jax.tree.leaves(static),
            *(jax.typeof(leaf) for leaf in leaves),
        )
        if key not in programs:

            def of_leaves(*leaves: Leaf) -> PyTree:
                return function(*eqx.combine(jax.tree.unflatten(structure, leaves), static))

            of_leaves.__name__ = function.__name__
            if len(programs) >= MOST_PROGRAMS:
                del programs[next(iter(programs))]
            programs[key] = _program(of_leaves, leaves)
        return programs[key], leaves

    setattr(call, "prepared", prepared)  # noqa: B010
    return call


def traceable(tree: PyTree) -> PyTree:
    """`tree` with NumPy's arrays as JAX's, in the precision of this moment.

    A program takes JAX's arrays for its arguments, and everything else for static.
    """

    def of_leaf(leaf: Any) -> Any:
        if not isinstance(leaf, np.ndarray):
            return leaf
        floats = np.issubdtype(leaf.dtype, np.floating)
        return jnp.asarray(leaf, float) if floats else jnp.asarray(leaf)

    return jax.tree.map(of_leaf, tree)


def forget() -> None:
    """Let go of every program, as `jax.clear_caches` does of those of JAX."""
    for programs in _kept:
        programs.clear()


def _program(function: Callable[..., PyTree], leaves: list[Leaf]) -> Callable[..., PyTree]:
    closed, shapes = jax.make_jaxpr(function, return_shape=True)(*leaves)
    structure = jax.tree.structure(shapes)

    def alone(*leaves: Leaf) -> list[jax.Array]:
        return core.jaxpr_as_fun(closed)(*leaves)

    alone.__name__ = function.__name__
    programs = [jax.jit(alone)]
    if jax.default_backend() == "cpu" and small(closed.jaxpr):
        products = any(e.primitive.name == "dot_general" for e in equations(closed.jaxpr))
        level = LEVEL_FOR_PRODUCTS if products else LEVEL
        options = OPTIONS | {"xla_backend_optimization_level": level}
        programs.append(jax.jit(_one_kernel(alone), compiler_options=options))

    def call(*leaves: Leaf) -> PyTree:
        try:
            results = programs[-1](*leaves)
        except jax.errors.JaxRuntimeError as error:
            if len(programs) == 1 or not any(words in str(error) for words in REFUSALS):
                raise
            programs.pop()
            results = programs[0](*leaves)
        return jax.tree.unflatten(structure, results[: structure.num_leaves])

    return call


def _one_kernel(function: Callable[..., list[jax.Array]]) -> Callable[..., list[jax.Array]]:
    """`function`, called with the attribute that makes XLA compile it as one kernel.

    The arguments follow the results, because XLA stops the process at an argument that nothing
    uses, and what nothing uses is only known once it has simplified the program.
    """

    def inner(*leaves: Leaf) -> list[Leaf]:
        return [*function(*leaves), *leaves]

    return functools.wraps(function)(kept_apart(inner, xla_cpu_small_call="true"))


def kept_apart(
    function: Callable[..., list[Any]], **attributes: str
) -> Callable[..., list[jax.Array]]:
    """`function`, as a call that XLA does not inline, with `attributes` for XLA to read."""

    def call(*leaves: Leaf) -> list[jax.Array]:
        first, *others = jax.jit(function)(*leaves)
        # An attribute put on a result is put on the call that made it.
        first: Any = set_xla_metadata(first, inlineable="false", **attributes)
        return [first, *others]

    return call


def small(jaxpr: core.Jaxpr) -> bool:
    """Whether a program is worth one kernel on one thread."""
    if jaxpr.effects:
        return False
    for equation in equations(jaxpr):
        name = equation.primitive.name
        if name in LIBRARY or (name.startswith("scatter") and not _one_place(equation)):
            return False
        if name not in MOVES and _work(equation) > MOST_WORK:
            return False
        if name == "gather" and math.prod(_shape(equation.outvars[0])) > MOST_GATHERED:
            return False
    return True


def _one_place(scatter: core.JaxprEqn) -> bool:
    """Whether a scatter writes to one place, which XLA makes a slice of."""
    return math.prod(_shape(scatter.invars[1])[:-1]) == 1


def _work(equation: core.JaxprEqn) -> int:
    """About how many numbers an equation works on."""
    sizes = [math.prod(_shape(v)) for v in (*equation.invars, *equation.outvars)]
    if equation.primitive.name != "dot_general":
        return max(sizes)
    (contracted, _), _ = equation.params["dimension_numbers"]
    lengths = (_shape(equation.invars[0])[axis] for axis in contracted)
    return max(*sizes, sizes[-1] * math.prod(lengths) // CHEAPER)


def _shape(variable: Any) -> tuple[int, ...]:
    return getattr(variable.aval, "shape", ())


def equations(jaxpr: core.Jaxpr) -> Iterator[core.JaxprEqn]:
    """Every equation of a program, those of inner programs included."""
    for equation in jaxpr.eqns:
        yield equation
        for value in jax.tree.leaves(equation.params, is_leaf=_is_jaxpr):
            if _is_jaxpr(value):
                yield from equations(getattr(value, "jaxpr", value))


def _is_jaxpr(value: Any) -> bool:
    return isinstance(value, core.Jaxpr | core.ClosedJaxpr)
