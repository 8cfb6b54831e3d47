"""A narrow mode beside a wide one, which powers of the density alone lose.

Two Gaussians in ten dimensions share the mass equally, ten units apart; one is four times narrower.
At beta = 1/2 the narrow one holds a thousandth of the mass, so that hot rungs hardly ever visit it.
By default the modes are hunted for first, and rungs lead from a mixture with a part for each mode.
Three numbers are known: log Z is 0, and each mode holds a half.
"""

import jax.numpy as jnp
from jax.scipy.stats import norm

import temperance as tp

DIMENSION, NARROW = 10, 0.25
OFFSET = 5 / DIMENSION**0.5


def log_density(x):
    """0.5 N(-offset, I) + 0.5 N(offset, 0.25^2 I), normalised."""
    wide = jnp.sum(norm.logpdf(x, -OFFSET, 1.0))
    narrow = jnp.sum(norm.logpdf(x, OFFSET, NARROW))
    return jnp.logaddexp(wide, narrow) + jnp.log(0.5)


def problem() -> tp.Target:
    return tp.Target(log_density, base=tp.Gaussian(jnp.zeros(DIMENSION), 6.0**2))


if __name__ == "__main__":
    found = tp.modes(problem(), progress=False)
    print(found.table()[["share", "error", "found"]])
    print(f"unseen basins hold less than {found.bound:.1g} of the base's mass (95 %)")

    tree = tp.sample(problem(), progress=False)
    print(tree.attrs["why"])
    told = tp.summary(tree)
    print(told.modes)
    print("\n".join(told.warnings) or "no warnings")

    narrow = float((tree["posterior"]["x"].sum("x_dim_0") > 0).mean())
    log_z, error = tp.log_evidence(tree)
    print(f"weight of the narrow mode {narrow:.3f}, known 0.500")
    print(f"log Z {log_z:.3f} +- {error:.3f}, known 0")
