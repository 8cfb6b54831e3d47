"""What a log likelihood and its gradient cost, size by size."""

import time
from collections import defaultdict

import jax
import jax.numpy as jnp
import numpy as np

import temperance as tp
from temperance.models.gaussian_process.covariance import panels_of
from temperance.models.gaussian_process.kernels import SquaredExponential
from temperance.models.gaussian_process.linear_algebra.factorisation import inverted, whitened
from temperance.moves.hmc import in_single

# The paper's rungs: 1024 * 2^(-m/2).
LADDER = (1024, 724, 512, 362, 256, 181, 128)


def data_of(num_rows, num_inputs, seed=0):
    """Rows from the prior predictive of the paper: hyperparameters of the order of one."""
    rng = np.random.default_rng(seed)
    lengths = np.exp(rng.normal(0.5, 0.5, num_inputs))
    inputs = lengths.mean() * rng.normal(size=(num_rows, num_inputs))
    scaled = inputs / lengths
    squares = ((scaled[:, None, :] - scaled[None, :, :]) ** 2).sum(-1)
    covariance = 4.0 * np.exp(-squares / 2) + 0.25 * np.eye(num_rows)
    return inputs, np.linalg.cholesky(covariance) @ rng.normal(size=num_rows)


def plain_density(position, data):
    """The same log likelihood as one would write it: JAX differentiates the factorisation."""
    scaled = data["inputs"] * jnp.exp(-position["log_length"])
    norms = jnp.sum(scaled**2, 1)
    squares = norms[:, None] + norms[None, :] - 2.0 * scaled @ scaled.T
    covariance = jnp.exp(2 * position["log_scale"] - squares / 2)
    noise = jnp.exp(2 * position["log_noise"]) + 1e-8
    factor = jnp.linalg.cholesky(covariance + noise * jnp.eye(len(norms)))
    z = jax.scipy.linalg.solve_triangular(factor, data["y"], lower=True)
    return -0.5 * z @ z - jnp.sum(jnp.log(jnp.diag(factor))) - len(norms) / 2 * jnp.log(2 * jnp.pi)


def loop_of(function, num_times):
    """`function` again and again in one program, as a sampler calls it."""

    def step(position, _):
        total = sum(jnp.sum(leaf) for leaf in jax.tree.leaves(function(position)))
        return jax.tree.map(lambda leaf: leaf + 1e-12 * jnp.tanh(total), position), None

    return jax.jit(lambda position: jax.lax.scan(step, position, None, length=num_times)[0])


MATRICES = {"factor": whitened, "inverse": inverted}


def matrix_alone(done, num_inputs, data):
    """What is done with a covariance, without computing its entries or making a gradient of it."""
    panels, _ = panels_of(
        SquaredExponential(), jnp.full(num_inputs, 0.6), data["inputs"], slopes=False
    )

    def function(position, data):
        results = done(panels, data["y"], jnp.exp(2 * position["log_noise"]))
        return [result[-1] for result in results]

    return function


class Program:
    """One function at one size, timed a call."""

    def __init__(self, kind, num_rows, num_inputs):
        inputs, y = data_of(num_rows, num_inputs)
        problem = tp.gaussian_process(inputs, y)
        data = jax.tree.map(jnp.asarray, problem.data)
        if kind in MATRICES:
            function = matrix_alone(MATRICES[kind], num_inputs, data)
        else:
            density = plain_density if kind == "autodiff" else problem.log_likelihood
            function = density if kind == "value" else jax.value_and_grad(density)
        if kind == "single":
            data = in_single(data)
        self.num_times = max(2, round(3 * (1024 / num_rows) ** 2))
        seen = in_single if kind == "single" else lambda position: position
        self.loop = loop_of(lambda position: function(seen(position), data), self.num_times)
        self.position = {
            "log_length": jnp.full(num_inputs, 0.6),
            "log_scale": jnp.asarray(0.7),
            "log_noise": jnp.asarray(-0.7),
        }
        self.run()

    def run(self):
        start = time.process_time()
        jax.block_until_ready(self.loop(self.position))
        return (time.process_time() - start) / self.num_times


def milliseconds(kinds, sizes, num_inputs, num_rounds):
    """The least CPU time a call over rounds in which all take turns, by (kind, size)."""
    programs = {(k, n): Program(k, n, num_inputs) for n in sizes for k in kinds}
    found = defaultdict(list)
    for _ in range(num_rounds):
        for name, program in programs.items():
            found[name].append(program.run())
    return {name: 1e3 * min(times) for name, times in found.items()}
