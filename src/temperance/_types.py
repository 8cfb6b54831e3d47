"""Names for what travels between the modules.

A *position* is any pytree of arrays; a *point* is a position with everything about it that does
not depend on the rung, so that changing rung changes weights and evaluates nothing twice.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

from jaxtyping import Array, ArrayLike, Float, Key as KeyOf, PRNGKeyArray, PyTree

Key: TypeAlias = PRNGKeyArray
Keys: TypeAlias = KeyOf[Array, " n"]
Position: TypeAlias = PyTree[Array]
Scalar: TypeAlias = Float[Array, ""]
LogDensity: TypeAlias = Callable[[Position], Scalar]
Data: TypeAlias = PyTree[Any]  # arrays, or sources of rows (source.py)
Terms: TypeAlias = Callable[[Position, Data], Float[Array, " n"]]
Numbers: TypeAlias = ArrayLike | Sequence[Any]  # what a user may write for an array
Options: TypeAlias = dict[str, Any]


class Point(NamedTuple):
    """A position and its components' values, with their gradients where a move uses them.

    `gradients[c]` is the gradient of component `c` in the position laid out as one vector. They are
    vectors of their own: stacked, they would be copied at every step of a trajectory. `memory` is
    what a move that acts on more than the position keeps with it, such as a batch of rows.
    """

    position: Position
    components: Float[Array, " components"]
    gradients: tuple[Float[Array, " d"], ...] | None
    memory: PyTree = None
