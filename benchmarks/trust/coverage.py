"""How often 95 % intervals of log Z and of mode shares hold the truth, over runs with other seeds.

    python -m benchmarks.trust.coverage [--runs 200] [--draws 500] [--warmup 500] [--target NAME]

Each run is a default call of `sample`. Prints one line for each target: the share of intervals,
value +- 1.96 errors, that hold the truth, and how many runs were warned of.
"""

import argparse

import jax.numpy as jnp
import numpy as np

import temperance as tp

NORMAL = 1.96


def normals(weights, centers, scales):
    """A normalised mixture of round normal densities."""
    w, m, s = (jnp.asarray(values, float) for values in (weights, centers, scales))
    d = m.shape[1]
    constants = jnp.log(w) - d * jnp.log(s) - 0.5 * d * np.log(2 * np.pi)

    def density(x):
        square = jnp.sum((x[None] - m) ** 2, axis=1) / s**2
        values = constants - 0.5 * square
        top = jnp.max(values)
        return top + jnp.log(jnp.sum(jnp.exp(values - top)))

    return density


def along_first(places, dimension):
    centers = np.zeros((len(places), dimension))
    centers[:, 0] = places
    return centers


# Each: weights, middles along the first axis, scales, dimension.
TARGETS = {
    "two equal": ([0.3, 0.7], [-5.0, 5.0], [1.0, 1.0], 5),
    "two unequal": ([0.5, 0.5], [-5.0, 5.0], [1.0, 0.25], 10),
    "spike in a slab": ([0.5, 0.5], [0.0, 0.0], [1.0, 0.1], 10),
    "four": ([0.1, 0.2, 0.3, 0.4], [-9.0, -3.0, 3.0, 9.0], [1.0, 0.5, 1.0, 0.3], 3),
}


def covered(name, num_runs, **counts):
    """How often intervals held log Z = 0 and each mode's share; how many runs were warned of."""
    weights, places, scales, dimension = TARGETS[name]
    centers = along_first(places, dimension)
    base = tp.Gaussian(np.zeros(dimension), 36.0)
    target = tp.Target(normals(weights, centers, scales), base)
    evidence, shares, warned = [], [], 0
    for seed in range(num_runs):
        tree = tp.sample(target, seed=seed, progress=False, **counts)
        value, error = tp.log_evidence(tree)
        evidence.append(abs(value) < NORMAL * error)
        warned += bool(tp.summary(tree).warnings)
        group = tree["modes"].dataset
        # Modes that lie at one place, such as a spike and its slab, are one.
        for center, share, its_error in zip(
            group["center_x"].values, group["share"].values, group["error"].values, strict=True
        ):
            near = np.abs(np.asarray(places) - center[0]) < 1.5
            if near.any() and not near.all():
                shares.append(abs(share - np.asarray(weights)[near].sum()) < NORMAL * its_error)
    return np.mean(evidence), np.mean(shares) if shares else np.nan, warned


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--draws", type=int, default=500)
    parser.add_argument("--warmup", type=int, default=500)
    parser.add_argument("--target", choices=TARGETS)
    given = parser.parse_args()
    for name in [given.target] if given.target else TARGETS:
        evidence, shares, warned = covered(
            name, given.runs, num_draws=given.draws, num_warmup=given.warmup
        )
        print(
            f"{name}: log Z {evidence:.3f}, shares {shares:.3f}, warned of {warned} of {given.runs}",
            flush=True,
        )


if __name__ == "__main__":
    main()
