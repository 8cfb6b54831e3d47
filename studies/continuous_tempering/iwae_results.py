"""Tables of a run of `iwae.py` on an accelerator.

estimates.csv   every estimate of the sum of log p(x): model, method, seed, transitions, seconds, acceptance, total
bounds.csv      the device and the bounds of each model
speed.csv       leapfrog steps a second of each loop, by the number of chains
"""

import sys
from pathlib import Path
from typing import Any

# What the studies share lies beside them.
sys.path.append(str(Path(__file__).parents[1]))

from results_table import Record, read_table, write_table

FOLDER = Path(__file__).parent / "results" / "iwae"


def keep_model(found: Record, folder: Path) -> None:
    """Put all of a model into the tables, in place of what they have of it."""
    model = {"model": found["model"]}
    bounds = model | {"device": found["device"]} | found["bounds"]
    _replace(folder / "bounds.csv", [bounds])
    _replace(folder / "estimates.csv", [model | row for row in found["rows"]])


def keep_speed(rows: list[Record], folder: Path) -> None:
    """Put the throughput of a model into its table, in place of what it has of it."""
    _replace(folder / "speed.csv", rows)


def read_models(names: tuple[str, ...], folder: Path = FOLDER) -> list[Record]:
    """`model`, `device`, `bounds` and `rows` of each model that was run, in this order of names."""
    bounds = {row.pop("model"): row for row in read_table(folder / "bounds.csv")}
    estimates = read_table(folder / "estimates.csv")
    return [
        {
            "model": name,
            "device": bounds[name].pop("device"),
            "bounds": bounds[name],
            "rows": [_without_model(row) for row in estimates if row["model"] == name],
        }
        for name in names
        if name in bounds
    ]


def read_speed(folder: Path = FOLDER) -> list[Record]:
    return read_table(folder / "speed.csv")


def _replace(path: Path, rows: list[Record]) -> None:
    models = {row["model"] for row in rows}
    others = [row for row in read_table(path) if row["model"] not in models]
    write_table(path, [*others, *rows])


def _without_model(row: Record) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != "model"}
