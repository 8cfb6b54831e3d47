"""A small table with holes: which columns depend, what the missing cells may be, which row is odd.

Species differ in size, weight and number of eggs; where a bird was seen goes with the weather, and has nothing to do with
its species. A tenth of the cells are missing. CrossCat finds the two groups of columns by itself, and answers from them.
"""

import numpy as np
import pandas as pd

from temperance.crosscat import CrossCat

NUM_ROWS = 300


def birds(seed: int = 0) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The table as it is, and the table as it was recorded."""
    rng = np.random.default_rng(seed)
    species = rng.choice(3, NUM_ROWS, p=[0.5, 0.3, 0.2])
    wet = rng.random(NUM_ROWS) < 0.4
    whole = pd.DataFrame(
        {
            "species": np.array(["tit", "thrush", "heron"])[species],
            "wingspan": np.round(rng.normal(np.array([20.0, 36.0, 180.0])[species], 4.0), 1),
            "weight": np.round(np.exp(rng.normal(np.log([18.0, 90.0, 1500.0])[species], 0.1))),
            "eggs": rng.poisson(np.array([9.0, 4.0, 3.0])[species]),
            "place": np.where(
                wet,
                rng.choice(["marsh", "river"], NUM_ROWS),
                rng.choice(["wood", "heath"], NUM_ROWS),
            ),
            "humidity": np.round(rng.normal(np.where(wet, 88.0, 60.0), 5.0)),
            "rain": np.where(
                rng.random(NUM_ROWS) < np.where(wet, 0.2, 0.95),
                0.0,
                np.round(rng.gamma(2.0, 3.0, NUM_ROWS), 1),
            ),
        }
    )
    return whole, whole.mask(rng.random(whole.shape) < 0.1)


if __name__ == "__main__":
    whole, recorded = birds()
    model = CrossCat(passes=20, num_states=8, random_state=0)
    model.fit(recorded, schema={"eggs": "count", "rain": "spike"})

    print(model.dependence().round(2).to_string())
    missing = recorded["species"].isna()
    filled = model.impute(recorded)
    right = np.mean(filled["species"][missing] == whole["species"][missing])
    print(f"missing species that are filled in rightly: {right:.2f}")
    off = np.abs(np.log(filled["weight"] / whole["weight"]))[recorded["weight"].isna()]
    print(f"missing weights: half of them are within {np.median(off):.0%}")

    asked = model.sample(500, given={"species": "heron"}, random_state=1)
    print(f"a heron's wingspan: {asked['wingspan'].median():.0f} cm")
    odd = whole.head(1).assign(species="tit", wingspan=180.0)
    usual, unusual = (float(model.score_samples(some)[0]) for some in (whole.head(1), odd))
    print(f"log density of a row, and of a tit with a heron's wings: {usual:.1f}, {unusual:.1f}")
