"""A Gaussian process's value and gradient on an accelerator, beside this machine's CPU.

    python benchmarks/gaussian_process/accelerator.py --out elsewhere/gaussian_process_accelerator.md

Needs JAX with an accelerator. Times are wall time of one call in a queue of many, double precision;
the last column is how far the two devices' gradients are apart.
"""

import argparse
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from temperance.models.gaussian_process.covariance import Arguments, log_likelihood
from temperance.models.gaussian_process.kernels import SquaredExponential

SIZES, NUM_INPUTS, NUM_CALLS, JITTER = (256, 512, 1024, 2048, 4096), 8, 20, 1e-8
DEFAULT = Path(__file__).parent.parent / "results" / "gaussian_process_accelerator.md"


def density(log_length, inputs, y):
    zero = jnp.zeros((), y.dtype)
    return log_likelihood(
        SquaredExponential(), JITTER, Arguments(log_length, zero, zero, inputs, y)
    )


def milliseconds(function, arguments):
    jax.block_until_ready(function(*arguments))
    began = time.perf_counter()
    jax.block_until_ready([function(*arguments) for _ in range(NUM_CALLS)])
    return 1e3 * (time.perf_counter() - began) / NUM_CALLS


def measured(num_rows, devices):
    """For each device the milliseconds of a value and of a value with gradient; the difference."""
    generator = np.random.default_rng(0)
    inputs, y = generator.normal(size=(num_rows, NUM_INPUTS)), generator.normal(size=num_rows)
    value, both = jax.jit(density), jax.jit(jax.value_and_grad(density))
    times, gradients = [], []
    for device in devices:
        arguments = jax.device_put((np.full(NUM_INPUTS, 0.7), inputs, y), device)
        times += [milliseconds(value, arguments), milliseconds(both, arguments)]
        gradients.append(np.asarray(both(*arguments)[1]))
    one, other = gradients
    return times, np.abs(one - other).max() / np.abs(other).max()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=DEFAULT)
    given = parser.parse_args()
    accelerator, cpu = jax.devices()[0], jax.devices("cpu")[0]
    if accelerator.platform == "cpu":
        raise SystemExit("JAX sees no accelerator here")
    lines = [
        "# Gaussian processes on an accelerator", "",
        f"{accelerator.device_kind} beside the CPU of its machine. jax {jax.__version__}. Squared "
        f"exponential kernel, {NUM_INPUTS} inputs, double precision, milliseconds of wall time.", "",
        "| rows | value | value and gradient | value, CPU | value and gradient, CPU | gradients differ by |",
        "|---|---|---|---|---|---|",
    ]  # fmt: skip
    with jax.enable_x64(True):
        for num_rows in SIZES:
            times, apart = measured(num_rows, (accelerator, cpu))
            cells = " | ".join(f"{one:.3g}" for one in times)
            lines.append(f"| {num_rows} | {cells} | {apart:.1g} |")
    given.out.write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
