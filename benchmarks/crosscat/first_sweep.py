"""A first fit in a fresh process: prints seconds at the end of importing, of a first fit, and of one of another table.

The tables have a column of every kind, and holes.
"""

import time

START = time.perf_counter()

import numpy as np
import pandas as pd

from temperance.crosscat import CrossCat

IMPORTED = time.perf_counter()


def mixed(num_rows, num_more, seed):
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 3, num_rows)
    frame = {
        "colour": rng.choice(["red", "green", "blue"], num_rows),
        "yes": rng.random(num_rows) < 0.3 * (1 + group),
        "size": rng.normal(group, 0.3),
        "visits": rng.poisson(1 + 4 * group),
        "rain": np.where(rng.random(num_rows) < 0.8, 0.0, rng.gamma(2.0, 1.0, num_rows)),
        **{f"more {i}": rng.normal(group, 1.0) for i in range(num_more)},
    }
    made = pd.DataFrame(frame)
    made.loc[rng.random(num_rows) < 0.1, "size"] = np.nan
    return made


def fit(frame):
    model = CrossCat(strategy="sequential", passes=1, num_states=1, random_state=0)
    model.fit(frame, schema={"rain": "spike", "visits": "count"})


fit(mixed(60, 0, 0))
FITTED = time.perf_counter()
fit(mixed(90, 3, 1))
print(IMPORTED - START, FITTED - START, time.perf_counter() - START)
