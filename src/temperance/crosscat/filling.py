"""A caller's own frame with its missing cells filled in, and all other cells as they were."""

from contextlib import suppress
from typing import Any

import narwhals as nw
import numpy as np

Fills = dict[str, tuple[np.ndarray, np.ndarray]]


def fill_frame(frame: Any, fills: Fills) -> Any | None:
    """A copy of `frame` in which `fills` gives, by column, rows and their values.

    None where the frame is no frame or array, but a file or a dictionary of columns.
    """
    if isinstance(frame, np.ndarray) and frame.ndim == 2 and not frame.dtype.names:
        return _fill_array(frame, fills)
    given: Any = frame
    try:
        known = nw.from_native(given)
    except TypeError:
        return None
    if isinstance(known, nw.LazyFrame):
        known = known.collect()
    names = {str(name): name for name in known.columns}
    if fills:
        known = known.with_columns(
            *(_fill_series(known.get_column(names[name]), *fill) for name, fill in fills.items())
        )
    return known.to_native()


def _fill_array(array: np.ndarray, fills: Fills) -> np.ndarray:
    filled = array.copy()
    for name, (rows, values) in fills.items():
        filled[rows, int(name.removeprefix("column_"))] = values
    return filled


def _fill_series(series: nw.Series[Any], rows: np.ndarray, values: np.ndarray) -> nw.Series[Any]:
    cells = series.to_list()
    for row, value in zip(rows.tolist(), values.tolist(), strict=True):
        cells[row] = value
    backend: Any = series.implementation
    filled = nw.new_series(series.name, cells, backend=backend)
    # A column of whole numbers may have to hold halves now.
    with suppress(TypeError, ValueError, nw.exceptions.NarwhalsError):
        filled = filled.cast(series.dtype)
    if nw.dependencies.is_pandas_series(native := series.to_native()):
        pandas: Any = filled.to_native()
        pandas.index = native.index
        filled = nw.from_native(pandas, series_only=True)
    return filled
