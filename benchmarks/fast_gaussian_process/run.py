"""What a slow evaluation of a Gaussian process costs by each route, and 49 members over one.

    python benchmarks/fast_gaussian_process/run.py
    python benchmarks/fast_gaussian_process/run.py --rounds 30 --out elsewhere/fast.csv

The table goes beside the CSV as .md. Goals: 49 members by Cholesky at most 1.05 x one; by
tridiagonal form at most 1.7 x one by Cholesky, and at most 1.3 x LAPACK's own eigendecomposition.
The tables of `models/gaussian_process/route_costs.py` are the rows "factor" and "reduction".
"""

import argparse
import sys
import time
from collections import defaultdict
from pathlib import Path

# What the benchmarks share lies beside them.
sys.path.append(str(Path(__file__).parents[1]))

import jax
import jax.numpy as jnp
import numpy as np
from kept import keep_figures

import temperance as tp
from temperance.models.gaussian_process.linear_algebra.factorisation import cuts, whitened
from temperance.models.gaussian_process.linear_algebra.tridiagonal import reduced
from temperance.moves.fast_slow.two_stage import stages
from temperance.programs.scope import scope

HERE = Path(__file__).parent
COLUMNS = ("rows", "inputs", "what", "value", "unit", "goal")
PACKAGES = ("jax", "jaxlib", "numpy", "scipy")
SIZES, INPUTS, MEMBERS = (25, 50, 100, 200, 300, 500, 1000), 12, 49

TEXT = f"""\
Squared exponential kernel, double precision, one BLAS thread, CPU time: the least over
rounds in which all take turns, of one call inside a compiled loop. *One* is the log
posterior at one position, *{MEMBERS} members* at as many values of the fast variables for one of
the slow ones. *Factor* and *reduction* are those steps alone; *eigenvectors* and
*eigenvalues* are NumPy's `eigh` and `eigvalsh` of the same matrix."""


def loop_of(function, num_times):
    """`function` again and again in one program, as a sampler calls it."""

    def step(position, _):
        total = sum(jnp.sum(leaf) for leaf in jax.tree.leaves(function(position)))
        return jax.tree.map(lambda leaf: leaf + 1e-13 * jnp.tanh(total), position), None

    return jax.jit(lambda position: jax.lax.scan(step, position, None, length=num_times)[0])


class Looped:
    """A function of a position inside a compiled loop."""

    def __init__(self, function, position, num_times):
        self.num_times, self.position = num_times, position
        self.loop = loop_of(function, num_times)
        self.run()

    def run(self):
        start = time.process_time()
        jax.block_until_ready(self.loop(self.position))
        return (time.process_time() - start) / self.num_times


class Called:
    """A function of NumPy, called again and again."""

    def __init__(self, function, num_times):
        self.function, self.num_times = function, num_times

    def run(self):
        start = time.process_time()
        for _ in range(self.num_times):
            self.function()
        return (time.process_time() - start) / self.num_times


def density_of(inputs, y, route):
    """The log posterior of slow and fast leaves, with where to evaluate it."""
    problem = tp.fast_gaussian_process(inputs, y, route=route)
    data = jax.tree.map(jnp.asarray, problem.data)
    rest = "log_ratio" if route == "cholesky" else "log_noise"
    position = {
        "log_length": jnp.full(inputs.shape[1], 0.5),
        "log_scale": jnp.asarray(0.0),
        rest: jnp.asarray(-1.0),
    }
    fast = {name: position.pop(name) for name in problem.terms.fast}

    def density(slow, fast):
        return problem.log_prior(slow | fast) + problem.log_likelihood(slow | fast, data)

    return density, position, fast


def programs(num_rows):
    rng = np.random.default_rng(0)
    inputs, y = rng.normal(size=(num_rows, INPUTS)), rng.normal(size=num_rows)
    num_times = max(2, round(200 * (100 / num_rows) ** 2))
    made = {}
    for route in ("cholesky", "spectral"):
        density, slow, fast = density_of(inputs, y, route)
        both = stages(density, slow, fast)
        members = jax.tree.map(lambda leaf: leaf + jnp.linspace(-1.0, 1.0, MEMBERS), fast)
        finish = jax.vmap(both.finish, in_axes=(None, 0))

        def one(slow, density=density, fast=fast):
            return density(slow, fast)

        def many(slow, both=both, finish=finish, members=members):
            return finish(both.prepare(slow), members)

        made[f"{route}: one"] = Looped(one, slow, num_times)
        made[f"{route}: {MEMBERS} members"] = Looped(many, slow, num_times)
    scaled = inputs / np.exp(0.5)
    squares = ((scaled[:, None] - scaled[None]) ** 2).sum(-1)
    matrix = 1.0 + np.exp(-squares / 2) + 1e-4 * np.eye(num_rows)
    panels = tuple(jnp.asarray(matrix[a:b, a:]) for a, b in cuts(num_rows))
    data, share = jnp.asarray(y), jnp.asarray(0.1)
    made["factor"] = Looped(lambda x: whitened(panels, x, share), data, num_times)
    made["reduction"] = Looped(lambda x: reduced(panels, x), data, num_times)
    few = max(1, num_times // 10)
    made["eigenvectors"] = Called(lambda: np.linalg.eigh(matrix), few)
    made["eigenvalues"] = Called(lambda: np.linalg.eigvalsh(matrix), few)
    return made


def rows_of(sizes, num_rounds):
    for num_rows in sizes:
        made, found = programs(num_rows), defaultdict(list)
        for _ in range(num_rounds):
            for name, program in made.items():
                found[name].append(program.run())
        least = {name: 1e6 * min(times) for name, times in found.items()}
        for name, value in least.items():
            yield row(num_rows, name, value, "us", "")
        one, many = least["cholesky: one"], f"{MEMBERS} members"
        by_form = least[f"spectral: {many}"]
        yield row(num_rows, f"cholesky: {many} / one", least[f"cholesky: {many}"] / one, "x", 1.05)
        yield row(num_rows, f"spectral: {many} / one", by_form / least["spectral: one"], "x", "")
        yield row(num_rows, f"spectral: {many} / cholesky: one", by_form / one, "x", 1.7)
        yield row(
            num_rows, f"spectral: {many} / eigenvectors", by_form / least["eigenvectors"], "x", 1.3
        )


def row(num_rows, what, value, unit, goal):
    return dict(zip(COLUMNS, (num_rows, INPUTS, what, value, unit, goal), strict=True))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    out = HERE.parent / "results" / "fast_gaussian_process.csv"
    parser.add_argument("--out", type=Path, default=out)
    options = parser.parse_args()
    title = "Gaussian processes with fast variables"
    with scope("double"):
        keep_figures(rows_of(options.sizes, options.rounds), options.out, title, TEXT, PACKAGES)


if __name__ == "__main__":
    main()
