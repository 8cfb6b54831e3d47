"""Names of a result's variables and axes, checked before a run whose draws they would lose.

Every variable of a posterior leads with `chain` and `draw`. Then come the axes that `dims` names,
and `NAME_dim_0`, ... for those it does not. `dims` and `coords` are about the posterior's variables
and about nothing else in the result: a model may have a `beta` or an axis `rung` of its own.
"""

from collections.abc import Mapping
from typing import Any

from temperance.errors import ArgumentError
from temperance.problems.constrain import constrained_shapes
from temperance.problems.layout import Layout
from temperance.problems.problem import Coords, Dims, Problem, Target

LEADING = ("chain", "draw")
# What ensembles of moves add to their own group of the result.
MEMBER, WEIGHTS = "member", ("log_weight", "log_weight_base")

Shapes = Mapping[str, tuple[int, ...]]
Axes = dict[str, list[str]]


def given_axes(dims: Dims, shapes: Shapes) -> Axes:
    """The names that `dims` has for the axes of these variables."""
    return {name: list(axes) for name, axes in (dims or {}).items() if name in shapes}


def shared_axes(axes: Axes, posterior: Shapes, unconstrained: Shapes) -> Axes:
    """The names of axes that an unconstrained variable has too: a simplex loses an entry."""
    same = {n for n in unconstrained if n in posterior and posterior[n] == unconstrained[n]}
    return {name: names for name, names in axes.items() if name in same}


def check_names(problem: Problem | Target, layout: Layout, *, gathers: bool = False) -> None:
    """Raise if the result could not hold the problem's variables and axes under their names.

    `gathers` says that the result has a group of the members of each draw's ensemble as well.
    """
    positions = dict(zip(layout.names, layout.shapes, strict=True))
    shown = positions
    if problem.constrain is not None:
        shown = constrained_shapes(problem.constrain, layout)
    named = given_axes(problem.dims, shown)
    _check_group(shown, named, problem.coords)
    if problem.constrain is not None:
        _check_group(positions, shared_axes(named, shown, positions), None)
    if gathers:
        _check_members({**positions, **shown}, named)


def _check_group(shapes: Shapes, named: Axes, coords: Coords) -> None:
    """Of the variables of one group."""
    for name in shapes:
        if name in LEADING:
            raise ArgumentError(
                f"a variable is called {name!r}, which is an axis of every result: call it "
                "something else"
            )
    sizes: dict[str, tuple[int, str]] = {}
    for name, shape in shapes.items():
        axes = named.get(name, [])
        if len(axes) > len(shape):
            raise ArgumentError(
                f"dims: {name!r} has {len(shape)} axes, and {axes} names {len(axes)}; leave out "
                "chain and draw, which every variable has"
            )
        rest = [f"{name}_dim_{i}" for i in range(len(shape) - len(axes))]
        _check_axes(name, [*axes, *rest], shape, shapes, sizes)
    for axis, values in (coords or {}).items():
        if axis in sizes and len(values) != sizes[axis][0]:
            size, name = sizes[axis]
            raise ArgumentError(
                f"coords: {axis!r} has {len(values)} values, and the axis of {name!r} has {size} "
                "entries; give one for each"
            )


def _check_axes(
    name: str, axes: list[str], shape: tuple[int, ...], shapes: Shapes,
    sizes: dict[str, tuple[int, str]],
) -> None:  # fmt: skip
    """Of one variable, its axes noted in `sizes`: length, and who had it first."""
    for axis, size in zip(axes, shape, strict=True):
        if axis in LEADING or axes.count(axis) > 1:
            whose = "of every result" if axis in LEADING else "named twice"
            raise ArgumentError(
                f"dims: {name!r} has an axis {axis!r}, which is {whose}: call it something else"
            )
        if axis in shapes:
            raise ArgumentError(
                f"dims: the axis {axis!r} of {name!r} has the name of a variable: call one of them "
                "something else"
            )
        first, other = sizes.setdefault(axis, (size, name))
        if first != size:
            raise ArgumentError(
                f"dims: the axis {axis!r} has {first} entries in {other!r} and {size} in "
                f"{name!r}: call one of them something else"
            )


def _check_members(shapes: Shapes, named: Mapping[str, Any]) -> None:
    """What the group of members adds may not be there already."""
    for name in shapes:
        if name in (MEMBER, *WEIGHTS):
            raise ArgumentError(
                f"a variable is called {name!r}, and so is something that the result of an "
                "ensemble move has of its own: call it something else"
            )
        if MEMBER in named.get(name, []):
            raise ArgumentError(
                f"dims: {name!r} has an axis {MEMBER!r}, and so has every draw of an ensemble "
                "move: call it something else"
            )
