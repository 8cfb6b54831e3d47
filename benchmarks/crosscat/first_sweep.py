"""A first fit in a fresh process: prints CPU seconds at the end of importing, of a first fit, and of one of another table.

The tables have a column of every kind, and holes.
"""

import time
from typing import Any


def mixed(num_rows: int, num_more: int, seed: int) -> Any:
    import numpy as np
    import pandas as pd

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


def fit(frame: Any) -> None:
    from temperance.crosscat import CrossCat

    model = CrossCat(num_states=1, passes=1, random_state=0)
    model.fit(frame, schema={"rain": "spike", "visits": "count"})


if __name__ == "__main__":
    start = time.process_time()
    from temperance.crosscat import CrossCat  # noqa: F401

    imported = time.process_time()
    fit(mixed(300, 1, 0))
    fitted = time.process_time()
    fit(mixed(350, 4, 1))
    print(imported - start, fitted - start, time.process_time() - start)
