"""Which degree has the polynomial? Log evidence by islands of particles, where it is known exactly.

    python examples/sequential_monte_carlo.py

Particles go from the prior to the posterior by powers of the likelihood and, for the best degree,
by adding rows. Noise and prior are normal, so that the evidence has a formula.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm

import temperance as tp

ROWS, DEGREES, NOISE = 60, (1, 2, 3), 0.5
rng = np.random.default_rng(2)
X = rng.uniform(-1.5, 1.5, ROWS)
Y = 0.5 - X + 0.8 * X**2 + NOISE * rng.normal(size=ROWS)


def problem(degree: int) -> tp.Problem:
    """Normal rows around a polynomial, with coefficients that are N(0, 1) a priori."""
    powers = jnp.arange(degree + 1)

    def terms(x, rows):
        mean = (rows["x"][:, None] ** powers) @ x["coefficient"]
        return norm.logpdf(rows["y"], mean, NOISE)

    return tp.Problem(
        log_prior=lambda x: jnp.sum(norm.logpdf(x["coefficient"])),
        terms=terms,
        data={"x": X, "y": Y},
        draw_prior=lambda key: {"coefficient": jax.random.normal(key, (degree + 1,))},
    )


def exact(degree: int) -> float:
    design = X[:, None] ** np.arange(degree + 1)
    covariance = NOISE**2 * np.eye(ROWS) + design @ design.T
    _, log_determinant = np.linalg.slogdet(2 * np.pi * covariance)
    return -0.5 * float(Y @ np.linalg.solve(covariance, Y) + log_determinant)


def run(degree: int, **options):
    tree = tp.sample(problem(degree), "smc", num_chains=8, progress=False, **options)
    return tree, *tp.log_evidence(tree)


def main() -> None:
    for degree in DEGREES:
        tree, value, error = run(degree)
        print(f"degree {degree}: log Z {value:.3f} +- {error:.3f}, known {exact(degree):.3f}")
    degree = max(DEGREES, key=exact)
    sizes = [0, 2, 4, 7, 12, 20, 35, ROWS]
    tree, value, error = run(degree, sizes=sizes)
    print(f"by rows, {degree}: log Z {value:.3f} +- {error:.3f}, known {exact(degree):.3f}")
    print(tp.summary(tree))


if __name__ == "__main__":
    main()
