"""What a fit leaves behind, and its file."""

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from temperance.crosscat.encoding.cells import Cells
from temperance.crosscat.encoding.features import Features
from temperance.crosscat.encoding.table import Table
from temperance.crosscat.files.archive import read_model, write_model
from temperance.crosscat.files.predictive_arrays import state_arrays, state_from_arrays
from temperance.crosscat.frames.schema import Schema
from temperance.crosscat.views.predictive import StatePredictive
from temperance.errors import FileFormatError, TemperanceError


class Fitted(NamedTuple):
    """All of a fitted model but its settings.

    Attributes:
        table: The training rows, for rows that are appended later.
        states: What questions are asked of.
        kept: For each state, the arrays from which its kernels go on.
        traces: For each state, columns of equal length.
        num_features: The columns of the frame, without `y`.
        names: Their names, where the frame had any.
        target: The name of `y`'s column.
        backend: The kind of frame that was given.
    """

    table: Table
    states: tuple[StatePredictive, ...]
    kept: tuple[Mapping[str, np.ndarray], ...]
    traces: tuple[Mapping[str, Any], ...]
    num_features: int
    names: tuple[str, ...] | None
    target: str | None
    backend: str

    def trace_table(self) -> Any:
        """The states' traces in one pandas frame, with a column `state`."""
        import pandas as pd

        parts = [
            pd.DataFrame({"state": number, **{n: np.asarray(x) for n, x in trace.items()}})
            for number, trace in enumerate(self.traces)
            if trace
        ]
        return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame({"state": []})


def write_fitted(path: str | os.PathLike[str], fitted: Fitted, told: Mapping[str, Any]) -> None:
    """Write a fitted model with what else is to be told of it."""
    arrays = {f"cells/{name}": matrix for name, matrix in fitted.table.cells._asdict().items()}
    states = []
    for number, state in enumerate(fitted.states):
        said, found = state_arrays(state, f"state-{number}")
        arrays |= found
        arrays |= {f"kept-{number}/{name}": x for name, x in fitted.kept[number].items()}
        trace = fitted.traces[number]
        arrays |= {f"trace-{number}/{name}": np.asarray(x) for name, x in trace.items()}
        states.append(said)
    rest = {
        "schema": fitted.table.schema.to_json(),
        "states": states,
        "num_features": fitted.num_features,
        "names": fitted.names,
        "target": fitted.target,
        "backend": fitted.backend,
    }
    write_model(path, {**told, "fitted": rest}, arrays)


def read_fitted(path: str | os.PathLike[str]) -> tuple[Fitted, dict[str, Any]]:
    """What `write_fitted` wrote."""
    told, arrays = read_model(path)
    try:
        return _fitted(told["fitted"], arrays), told
    except (KeyError, TypeError, ValueError, TemperanceError) as error:
        raise FileFormatError(f"{path}: does not fit together ({error}): save again") from error


def _fitted(rest: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Fitted:
    schema = Schema.from_json(rest["schema"])
    numbers = range(len(rest["states"]))
    return Fitted(
        table=Table(
            schema,
            Features.of(schema),
            Cells(*(arrays[f"cells/{name}"] for name in Cells._fields)),
        ),
        states=tuple(
            state_from_arrays(rest["states"][number], arrays, f"state-{number}")
            for number in numbers
        ),
        kept=tuple(_under(arrays, f"kept-{number}/") for number in numbers),
        traces=tuple(_under(arrays, f"trace-{number}/") for number in numbers),
        num_features=rest["num_features"],
        names=None if rest["names"] is None else tuple(rest["names"]),
        target=rest["target"],
        backend=rest["backend"],
    )


def _under(arrays: Mapping[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    return {name.removeprefix(prefix): x for name, x in arrays.items() if name.startswith(prefix)}
