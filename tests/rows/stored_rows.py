"""Rows of a logistic regression in memory and in files, for tests of sources.

python -m tests.rows.stored_rows PATH LIMIT    samples from the file PATH with no more than LIMIT
                                               bytes of memory, then tries without a source
"""

import resource
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import temperance as tp

NUM_ROWS = 3000
SHORT: dict[str, Any] = {
    "method": "mint",
    "batch_size": 8,
    "num_draws": 30,
    "num_warmup": 40,
    "num_chains": 2,
    "progress": False,
}


def make_rows(seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=NUM_ROWS)
    return {"label": (rng.random(NUM_ROWS) < 1 / (1 + np.exp(-x))).astype(np.int64), "x": x}


def store(folder: Path, kind: str, rows: dict[str, np.ndarray]) -> Any:
    """The rows in a file of that kind, as they come back from it."""
    if kind == "memmap":
        for name, values in rows.items():
            np.save(folder / f"{name}.npy", values)
        return {name: tp.open_rows(folder / f"{name}.npy") for name in rows}
    if kind == "zarr":
        import zarr

        group = zarr.open_group(folder / "rows.zarr", mode="w")
        for name, values in rows.items():
            group.create_array(name, data=values, chunks=(700,))
        return tp.open_rows(folder / "rows.zarr")
    import pyarrow as pa
    from pyarrow import parquet

    parquet.write_table(pa.table(rows), folder / "rows.parquet", row_group_size=900)
    return tp.open_rows(folder / "rows.parquet")


def log_prior(x):
    return -0.5 * jnp.sum(x**2)


def terms(x, rows):
    signs = 2.0 * rows["label"] - 1.0
    return -jnp.logaddexp(0.0, -signs * (x[0] + x[1] * rows["x"]))


def draw_prior(key):
    return jax.random.normal(key, (2,))


def make_problem(rows: Any) -> tp.Problem:
    return tp.Problem(log_prior, terms, rows, draw_prior)


def main(path: str, limit: str) -> None:
    jnp.zeros(()).block_until_ready()  # what the process needs before it has seen any data
    resource.setrlimit(resource.RLIMIT_DATA, (int(limit), int(limit)))
    mapped = tp.open_rows(path)

    def one_column(x, rows):
        return -0.5 * (rows - x[0]) ** 2

    def run(data: Any) -> Any:
        problem = tp.Problem(log_prior, one_column, data, draw_prior)
        return tp.sample(problem, **SHORT)

    draws = run(mapped)["posterior"]
    assert all(np.isfinite(draws[name]).all() for name in draws)
    print("sampled", flush=True)
    from tests.rows.broken_source import SourceThatReadsEverything

    try:
        np.array(mapped)
    except MemoryError:
        print("could not be loaded", flush=True)
    try:
        run(SourceThatReadsEverything(mapped))
    except (MemoryError, jax.errors.JaxRuntimeError) as error:
        print("could not read everything:", "Unable to allocate" in str(error), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
