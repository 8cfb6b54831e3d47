"""What a mini-batch step costs beyond reading its rows: ratios of CPU time to a bare loop.

    python benchmarks/minibatch/run.py

The bare loop draws as many row numbers, gathers those rows and evaluates the same terms at two
points, and nothing else: no proposal, no prior, no decision, no record. Goal: a step of `mint` with
a batch of 100 on a million rows costs at most 3 x that.
"""

import argparse
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console

# How loops take turns is known next door, and what machine this is one floor up.
sys.path += [str(Path(__file__).parents[1] / "overhead"), str(Path(__file__).parents[1])]

from compare import costs
from programs import Loop, logistic_terms, through_our_loop
from run_facts import machine, versions

import temperance as tp
from temperance.engine.loop import start_chains
from temperance.programs.compiled import compiled
from temperance.programs.scope import scope

NUM_ROWS, NUM_COEFFICIENTS, NUM_STEPS = 1_000_000, 20, 2000
GOAL = 3.0
RESULTS = Path(__file__).parents[1] / "results"


def mixture() -> tp.Problem:
    """The tied means of paper 2, section 4.1."""
    generator = np.random.default_rng(1707)
    rows = generator.normal(0.0, np.sqrt(2.0), NUM_ROWS) + (generator.random(NUM_ROWS) < 0.5)

    def terms(x, rows):
        apart = jnp.logaddexp(-0.25 * (rows - x[0]) ** 2, -0.25 * (rows - x[0] - x[1]) ** 2)
        return apart - 0.5 * jnp.log(16 * jnp.pi)

    scale = jnp.array([10.0, 1.0]) ** 0.5
    prior = tp.Gaussian(np.zeros(2), np.array([10.0, 1.0]))
    return tp.Problem(prior, terms, rows, lambda key: scale * jax.random.normal(key, (2,)))


def logistic() -> tp.Problem:
    generator = np.random.default_rng(1707)
    rows = generator.normal(size=(NUM_ROWS, NUM_COEFFICIENTS))
    labels = (generator.random(NUM_ROWS) < 0.5).astype(float)
    prior = tp.Gaussian(np.zeros(NUM_COEFFICIENTS), 1.0)
    return tp.Problem(prior, logistic_terms, (rows, labels), prior.draw)


PROBLEMS = {"mixture of two, 2 parameters": mixture, "logistic regression, 20": logistic}


def ours(problem: tp.Problem, noise: str, batch_size: int, num_chains: int) -> Loop:
    """The loop of `sample` with a step that is set by hand."""
    dimension = len(problem.example())
    move = tp.mint(tp.metropolis(0.3), batch_size=batch_size, noise=noise)
    params = tp.Params(jnp.full((1, 1), 0.3), jnp.ones((1, dimension)))
    sampler = tp.Plain(tp.RowLadder.of(problem), move, params)
    state = start_chains(sampler, jnp.zeros((num_chains, dimension)), False)
    return through_our_loop(sampler, state, NUM_STEPS, tuned=False)._replace(name=f"mint, {noise}")


def bare(problem: tp.Problem, batch_size: int, num_chains: int, one_kernel: bool) -> Loop:
    """Row numbers, rows and terms at two points, in a compiled loop."""
    data = jax.tree.map(jnp.asarray, problem.data)
    here = jnp.zeros(len(problem.example()))

    def loop(data, here, key, num_steps):
        def read(key):
            places = jax.random.randint(key, (batch_size,), 0, NUM_ROWS)
            rows = jax.tree.map(lambda leaf: leaf[places], data)
            first = jnp.sum(problem.terms(here, rows))
            return first + jnp.sum(problem.terms(here + 1e-9 * first, rows))

        def body(index, total):
            keys = jax.random.split(jax.random.fold_in(key, index), num_chains)
            return total + jnp.sum(jax.vmap(read)(keys))

        return jax.lax.fori_loop(0, num_steps, body, jnp.zeros(()))

    program = compiled(loop) if one_kernel else jax.jit(loop)

    def run(num_steps: int) -> None:
        jax.block_until_ready(program(data, here, jax.random.key(0), jnp.asarray(num_steps)))

    return Loop("bare, one kernel" if one_kernel else "bare, jax.jit", run)


def measured(num_rounds: int):
    """A line of the table for each loop; a ratio is to the faster of the bare ones."""
    for name, make in PROBLEMS.items():
        problem = make()
        for num_chains in (1, 4):
            barest = [bare(problem, 100, num_chains, kernel) for kernel in (False, True)]
            found = costs(barest, NUM_STEPS, num_rounds)
            barest.sort(
                key=lambda loop: -next(c.microseconds for c in found if c.name == loop.name)
            )
            loops = [ours(problem, noise, 100, num_chains) for noise in ("penalty", "common")]
            for cost in costs([*loops, *barest], NUM_STEPS, num_rounds):
                goal = GOAL if cost.name.startswith("mint") else ""
                yield (
                    f"| {name} | {num_chains} | {cost.name} | {cost.microseconds / num_chains:.2f} "
                    f"| {cost.ratio:.2f} ({cost.low:.2f} to {cost.high:.2f}) | {goal} |"
                )


INTRODUCTION = """\
A million rows, batches of 100, double precision, CPU time. The bare loop draws 100 row numbers,
gathers the rows and evaluates their terms at two points; it is compiled by `jax.jit`, and as one
kernel, as this library's loops are. A ratio is to the faster of the two, the median over rounds in
which the loops take turns, with its quartiles.
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=30, help="turns of each loop")
    parser.add_argument("--out", type=Path, default=RESULTS / "minibatch.md")
    given = parser.parse_args()
    console = Console()
    lines = ["# Mini-batch steps", "", f"{machine()}. {versions()}.", "", *INTRODUCTION.split("\n")]
    lines += ["| problem | chains | loop | us a step | ratio | goal |", "|---|---|---|---|---|---|"]
    with scope("double"):
        for line in measured(given.rounds):
            console.print(line)
            lines.append(line)
    given.out.write_text("\n".join(lines) + "\n")
    console.print(f"Wrote {given.out}", soft_wrap=True)


if __name__ == "__main__":
    main()
