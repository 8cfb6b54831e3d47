"""A table that is ready to be fitted: its schema, the layout of its features, its cells."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from temperance.crosscat.encoding.cells import Cells
from temperance.crosscat.encoding.encoder import encode
from temperance.crosscat.encoding.features import Features
from temperance.crosscat.encoding.schema_inference import guess_schema
from temperance.crosscat.frames.frame import open_frame
from temperance.crosscat.frames.schema import Schema


@dataclass(frozen=True)
class Table:
    """What the kernels see of a frame."""

    schema: Schema
    features: Features
    cells: Cells

    @property
    def num_rows(self) -> int:
        return self.cells.num_rows


def make_table(
    frame: Any, schema: Any = None, rng: np.random.Generator | None = None, *, seed: int = 0
) -> Table:
    """A table from any frame or file.

    `schema` is a whole `Schema`, which is used as it is, or what `guess_schema` takes as overrides.
    The dither comes from `rng`, or from a generator of its own with `seed`.
    """
    opened = open_frame(frame, schema if isinstance(schema, Schema) else None)
    found = schema if isinstance(schema, Schema) else guess_schema(opened, schema)
    rng = np.random.default_rng(seed) if rng is None else rng
    return Table(found, Features.of(found), encode(opened, found, rng, extra=True))
