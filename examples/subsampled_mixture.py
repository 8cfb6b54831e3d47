"""Hot by leaving rows out: the means of two groups that nobody has labelled.

Exchange the two means and the likelihood is the same, so the posterior has two modes; the prior says
how likely each is. Given a handful of rows the modes are one, and a handful of rows is cheap. Both
numbers at the end are known, by summation over a grid.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm

import temperance as tp

NUM_ROWS = 200
CENTRE = np.array([-0.3, 0.3])
SIZES = [0, 5, 14, 40, 90, NUM_ROWS]


def simulate():
    draws = np.random.default_rng(3)
    return np.where(draws.random(NUM_ROWS) < 0.5, -1.5, 1.5) + draws.normal(size=NUM_ROWS)


def log_prior(position):
    return jnp.sum(norm.logpdf(position["mean"], CENTRE, 2.0))


def draw_prior(key):
    return {"mean": CENTRE + 2.0 * jax.random.normal(key, (2,))}


def terms(position, rows):
    """log p(y_i | means), one for each of the rows that are given: all of them, or a few."""
    first, second = position["mean"][0], position["mean"][1]
    return jnp.logaddexp(norm.logpdf(rows, first), norm.logpdf(rows, second)) - jnp.log(2.0)


def problem() -> tp.Problem:
    return tp.Problem(log_prior, terms, simulate(), draw_prior, dims={"mean": ["group"]})


def known() -> tuple[float, float]:
    """The weight of the mode whose first mean is the smaller one, and log Z."""
    axis = np.linspace(-4.0, 4.0, 321)
    one, two = axis[:, None], axis[None, :]
    logs = -((one - CENTRE[0]) ** 2 + (two - CENTRE[1]) ** 2) / 8 - np.log(2 * np.pi * 4)
    for y in simulate():
        logs = logs + np.logaddexp(-0.5 * (y - one) ** 2, -0.5 * (y - two) ** 2)
    logs -= NUM_ROWS * (np.log(2.0) + 0.5 * np.log(2 * np.pi))
    density = np.exp(logs - logs.max())
    log_z = logs.max() + np.log(density.sum() * (axis[1] - axis[0]) ** 2)
    return float(density[one < two].sum() / density.sum()), float(log_z)


if __name__ == "__main__":
    tree = tp.sample(
        problem(), "spt", sizes=SIZES, num_draws=1500, num_warmup=300, sweeps_per_draw=4,
        progress=False,
    )  # fmt: skip
    mean = tree["posterior"]["mean"]
    first = float((mean.isel(group=0) < mean.isel(group=1)).mean())
    weight, log_z = known()
    value, error = tp.log_evidence(tree)
    rungs = tree["tempering"]
    print(f"weight of the first mode {first:.3f}, known {weight:.3f}")
    print(f"log Z {value:.3f} +- {error:.3f}, known {log_z:.3f}")
    print("rows of each rung:", rungs["size"].values)
    print("swaps accepted:", np.round(rungs["swap_acceptance"].values, 2))
    share = tree.attrs["num_row_evaluations"] / (NUM_ROWS * tree.attrs["num_evaluations"])
    print(f"rows evaluated, of what as many evaluations on all rows would take: {share:.2f}")
