"""PyTensor graphs as JAX functions: of values, of values and rows, and of a random key.

A constant with the rows on its leading axis becomes an input whose leading length is unknown, and
the graph above it is built anew, so that no length of it is written anywhere in the graph. Random
graphs take one state for each generator in them, made from a key.
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from pytensor.compile.mode import get_mode
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.traversal import ancestors, graph_inputs, toposort
from pytensor.link.jax.dispatch.basic import jax_funcify
from pytensor.tensor.basic import Alloc
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.random.type import RandomType
from pytensor.tensor.shape import SpecifyShape
from pytensor.tensor.type import tensor

from temperance._types import Key
from temperance.errors import ModelError

# A parameter out of its range gives a log density of minus infinity, as in PyMC's own functions.
REWRITES = ("local_check_parameter_to_ninf_switch", "local_remove_all_assert")
# Random variables whose samplers in JAX are tested against PyMC's own, after PyTensor's rewrites
# have made others from them: half-normal and log-normal from normal, inverse gamma from gamma, ...
# Others are not trusted: that of `categorical`, for one, draws from another law.
DRAWN = ("beta", "cauchy", "dirichlet", "exponential", "gamma", "gumbel", "laplace", "logistic",
         "multivariate_normal", "normal", "t", "uniform")  # fmt: skip


class NoSamplerError(Exception):
    """A distribution has no sampler in JAX that is known to be right."""


def jaxified(
    inputs: Sequence[Variable], outputs: Sequence[Variable]
) -> Callable[..., Sequence[Array]]:
    """A graph as a JAX function of its inputs, in their order."""
    return _function(_rewritten(inputs, outputs))


def draws_by_key(outputs: Sequence[Variable]) -> Callable[[Key], Sequence[Array]]:
    """A random graph as a JAX function of a key; `NoSamplerError` says what stands against it."""
    generators = [v for v in graph_inputs(outputs) if isinstance(v.type, RandomType)]
    graph = _rewritten(generators, outputs)
    unknown = sorted({op.name or type(op).__name__ for op in _random(graph)} - set(DRAWN))
    if unknown:
        raise NoSamplerError(
            f"there is no JAX sampler that is known to be right for the distribution {unknown[0]!r}"
        )
    try:
        function = _function(graph)
    except NotImplementedError as error:
        raise NoSamplerError(str(error)) from error

    def draw(key: Key) -> Sequence[Array]:
        keys = jax.random.split(key, len(generators))
        # A sampler writes the next state into the dictionary, so each call makes its own.
        return function(*({"jax_state": jax.random.key_data(k)} for k in keys))

    return draw


def is_random(outputs: Sequence[Variable]) -> bool:
    """Whether anything is drawn in a graph."""
    return any(isinstance(v.type, RandomType) for v in graph_inputs(outputs))


def row_constants(outputs: Sequence[Variable], num_rows: int) -> list[Constant]:
    """The constants that outputs are made of and that have `num_rows` entries in front."""
    return [
        v
        for v in ancestors(outputs)
        if isinstance(v, Constant)
        and isinstance(v.data, np.ndarray)
        and v.data.ndim
        and v.data.shape[0] == num_rows
    ]


def with_inputs(
    outputs: Sequence[Variable], constants: Sequence[Constant]
) -> tuple[list[Variable], list[Variable]]:
    """The graph with inputs in the place of constants, and those inputs."""
    inputs: list[Variable] = [
        tensor(dtype=str(c.data.dtype), shape=(None, *c.data.shape[1:])) for c in constants
    ]
    new: dict[Variable, Variable] = dict(zip(constants, inputs, strict=True))
    for node in toposort(outputs):
        if not any(v in new for v in node.inputs):
            continue
        if _only_says_the_shape(node):
            # How long an array was found to be is about to change.
            new[node.outputs[0]] = new.get(node.inputs[0], node.inputs[0])
            continue
        built = node.clone_with_new_inputs([new.get(v, v) for v in node.inputs], strict=False)
        new |= dict(zip(node.outputs, built.outputs, strict=True))
    return [new.get(v, v) for v in outputs], inputs


def _only_says_the_shape(node: Apply) -> bool:
    """Whether a node's output is its first input, which has the shape it asks for."""
    if isinstance(node.op, SpecifyShape):
        return True
    value, out = node.inputs[0], node.outputs[0]
    same = isinstance(node.op, Alloc) and value.type.shape == out.type.shape
    return same and None not in out.type.shape


def _rewritten(inputs: Sequence[Variable], outputs: Sequence[Variable]) -> FunctionGraph:
    graph = FunctionGraph(inputs=list(inputs), outputs=list(outputs), clone=True)
    mode: Any = get_mode("JAX")
    mode.including(*REWRITES).optimizer.rewrite(graph)
    return graph


def _function(graph: FunctionGraph) -> Callable[..., Sequence[Array]]:
    with warnings.catch_warnings():
        # Checks that cannot be kept inside a compiled program.
        warnings.filterwarnings("ignore", "Skipping", UserWarning)
        function = jax_funcify(graph)

    def call(*values: Any) -> Sequence[Array]:
        if jnp.result_type(float) != jnp.float64:
            raise ModelError(
                "a PyMC model's graphs have double precision written into them: use "
                "precision='double', or jax.enable_x64(True) around a call by hand"
            )
        with jax.numpy_rank_promotion("allow"), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Skipping", UserWarning)
            return function(*values)

    return call


def _random(graph: FunctionGraph) -> Iterator[RandomVariable]:
    """Every random variable in a graph, those of graphs inside it included."""
    for node in graph.apply_nodes:
        if isinstance(node.op, RandomVariable):
            yield node.op
        elif isinstance(inner := getattr(node.op, "fgraph", None), FunctionGraph):
            yield from _random(inner)
