"""Scale and noise of a Gaussian process, 25 values of both for each value of its length scales.

Once the covariance has been brought into tridiagonal form, a new scale and a new noise cost one
pass over 2n numbers. `fastness` proves it from the program, an ensemble makes use of it, and
expectations are averages over all members of every draw.
"""

import numpy as np

import temperance as tp

ROWS, MEMBERS, NOISE = 40, 25, 0.2


def simulate() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(2)
    inputs = rng.uniform(-2.0, 2.0, size=(ROWS, 2))
    return inputs, np.sin(2.0 * inputs[:, 0]) + NOISE * rng.normal(size=ROWS)


if __name__ == "__main__":
    problem = tp.fast_gaussian_process(*simulate(), route="spectral")
    print(tp.fastness(problem))
    move = tp.ensemble(members=MEMBERS, base="grid")
    tree = tp.sample(problem, "plain", move, num_draws=2000, num_warmup=400, progress=False)
    print(tp.summary(tree))
    averaged = tp.expectation(tree, "log_noise")
    selected = tp.expectation(tree, "log_noise", members=False)
    print(f"log noise {averaged.value:.3f} +- {selected.sd:.3f}, known {np.log(NOISE):.3f}")
    print(f"error over members {averaged.error:.4f}, without them {selected.error:.4f}")
