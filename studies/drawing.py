"""Run `sample` for some seconds of drawing.

The run goes through `sample` with a checkpoint: a first call compiles and makes the first draws, and
further calls append as many as there is time for. Seconds are those of drawing alone.
"""

import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

MOST_DRAWS = 40_000


def drawn_for(seconds: float, call: Callable[[int, Path], Any]) -> dict[str, Any]:
    """Draws made in about `seconds`, with the wall and CPU time of drawing them.

    The first call, of one draw, is not counted: it compiles and, with a method by name, warms up.
    """
    with TemporaryDirectory() as folder:
        checkpoint = Path(folder) / "run.zarr"
        began = time.perf_counter()
        tree = call(1, checkpoint)
        first = time.perf_counter() - began
        wall = cpu = 0.0
        done, more = 1, 7
        while wall < seconds and done < MOST_DRAWS:
            before = time.process_time()
            target = min(done + more, MOST_DRAWS)
            tree = call(target, checkpoint)
            wall += tree.attrs["seconds"]
            cpu += time.process_time() - before
            # Four times as many again at most: the first calls are too short to know the pace.
            more = int(np.clip((seconds - wall) * (target - 1) / wall, 1, 4 * target))
            done = target
    leaves = [np.asarray(tree["posterior"][name]) for name in tree["posterior"].data_vars]
    draws = np.concatenate([leaf.reshape(*leaf.shape[:2], -1) for leaf in leaves], axis=-1)
    share = (done - 1) / done
    result = {
        "draws": draws,
        "num_draws": done,
        "wall": wall,
        "cpu": cpu,
        "first_call": first,
        "rows": float(tree.attrs["num_row_evaluations"]) * share,
        "acceptance": float(np.mean(tree["sample_stats"]["acceptance_rate"])),
    }
    if "num_cubes" in tree.attrs:
        result["cubes"] = float(tree.attrs["num_cubes"]) * share
    tempering = tree["tempering"] if "tempering" in tree.children else {}
    for name in ("transition_rate", "swap_acceptance"):
        if name in tempering:
            result[name] = np.asarray(tempering[name]).tolist()
    return result
