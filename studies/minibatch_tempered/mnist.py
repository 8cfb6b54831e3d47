"""MNIST: accuracy against passes over the data and seconds, how normal a batch's mean is, and Table 1.

**Accuracy** is that of the current draw. Random walks with a step tuned to accept 0.3 of proposals, a batch of
100 rows, T = n / 100^alpha. The paper does not print alpha; its accepted steps of 1.50 (tempered) and 0.05 (MCMC)
are 30 to one, and a walk's step grows with sqrt(T), which makes T about 900 and alpha about 0.58. Its advice to
those who look for a mode is alpha = 0.99. Both 0.5 and 0.99 are run. Prior and likelihood are both tempered.
Lengths of accepted steps are told by coordinate, divided by sqrt(785), because that is what the paper's agree with.

The step is tuned in a run of its own, and that run is thrown away: all walks start at draws of the prior.

**Normality.** t = sqrt(m) (mean of a batch - mean of all rows), 5000 batches of 100: the distance of Kolmogorov
and Smirnov to a normal law of the same mean and variance, and the skewness. With 5000 draws of a normal law that
distance is 0.011 on average; above 0.02 is no accident. Asked at three points, because it depends on
where one stands: a draw of the prior, the end of a tempered walk, and the posterior's mode.

**Table 1.** Each test decides about the same kind of proposals: a walk at temperature T whose step the exact test
accepts 0.3 of, from the same start; rows used, averaged over steps, and their spread over ten runs.
"""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from acceptance_tests import austere, barker, confident, conservative_error, exact
from experiment import Experiment, Result
from kernels import NOISES, walker
from mnist_problem import DIMENSION, accuracy, best, images, log_terms, mnist
from scipy.stats import kstest, skew
from walks import blocks, tuned_step

from temperance.programs.scope import scope

NUM_ROWS, BATCH = 13007, 100
SEEDS = range(10)
ALPHAS = (0.5, 0.99)
NUM_BATCHES = 5000
GOOD = 0.99
MOST_STEPS = 2_000_000
FIRST_STEP = {"mcmc": 0.002}
TESTS = ("exact", "austere", "austere conservative", "confident", "barker")
TEMPERATURES = (1, 100)
ERROR = 0.05
NUM_DECISIONS, NUM_TABLE_RUNS = 5000, 10
LONGEST_WALK = 400


def experiments() -> list[Experiment]:
    """Walks by seed, normality, and the tests."""
    names = ["mcmc", *(f"tempered {a}" for a in ALPHAS)]
    names += [f"mint {noise} {a}" for noise in NOISES[:2] for a in ALPHAS]
    return [
        Experiment("normality", "mnist", NUM_ROWS, DIMENSION, "metropolis", "batches", 60.0),
        *(Experiment("batch", "mnist", NUM_ROWS, DIMENSION, f"T{t}", name, 600.0)
          for t in TEMPERATURES for name in TESTS),
        *(Experiment("accuracy", "mnist", NUM_ROWS, DIMENSION, "metropolis", name, 300.0, seed=seed,
                     least=0.0 if seed < 3 else 0.1)
          for name in names for seed in SEEDS),
    ]  # fmt: skip


def _start(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=DIMENSION)


def _walk(row: Experiment, data: Path) -> tuple[Any, float]:
    """A walker and its step, tuned from the start of another seed."""
    words = row.sampler.split()
    alpha = float(words[-1]) if len(words) > 1 else 1.0
    sampler = walker(row.sampler, mnist(data), BATCH, alpha)
    num_tuning = int(row.seconds * (300 if words[0] == "mint" else 20)) + 200
    step, _ = tuned_step(
        sampler, jax.random.key(1000 + row.seed), jnp.asarray(_start(1000 + row.seed), float),
        FIRST_STEP.get(words[0], 0.05), num_tuning,
    )  # fmt: skip
    return sampler, float(step)


def run_accuracy(row: Experiment, data: Path) -> Result:
    """One walk: accuracy by passes over the rows and CPU seconds."""
    with scope("single"):
        sampler, step = _walk(row, data)
        start = jnp.asarray(_start(row.seed), float)[None]
        # About a pass in a block, while batches do not grow.
        count = round(NUM_ROWS / (2 * BATCH)) if row.sampler.startswith("mint") else 1
        curve, moved, accepted = [[0.0, 0.0, float(accuracy(data, _start(row.seed)))]], [], []
        num_steps, num_passes, last = 0, 0.0, np.asarray(start)
        block = {"wall": 0.0, "cpu": 0.0}
        for block in blocks(
            sampler, NUM_ROWS, step, start, row.seed, row.seconds, count, 1, MOST_STEPS // count
        ):
            before = block["cpu"] - curve[-1][1]
            found = accuracy(data, block["positions"][0])
            passes = num_passes + np.cumsum(block["rows"][0]) / NUM_ROWS
            # Every step of the first passes, and then the last of a pass.
            every = range(count) if num_steps < 3 * count else (count - 1,)
            for i in every:
                second = block["cpu"] - before * (count - 1 - i) / count
                curve.append([float(passes[i]), second, float(found[i])])
            path = np.concatenate([last, block["positions"][0]])
            jumps = np.linalg.norm(np.diff(path, axis=0), axis=1)
            moved += jumps[jumps > 0].tolist()
            last = path[-1:]
            accepted.append(block["acceptance"])
            num_steps, num_passes = num_steps + count, float(passes[-1])
    reached = next((point for point in curve if point[2] >= GOOD), None)
    return {
        "step_size": step,
        "num_steps": num_steps,
        "acceptance": float(np.mean(accepted)),
        "wall": block["wall"],
        "cpu": block["cpu"],
        "length": float(np.mean(moved)) if moved else float("nan"),
        "reached": reached[:2] if reached else None,
        "last": float(np.mean([point[2] for point in curve[-len(curve) // 4 :]])),
        "best_accuracy": float(accuracy(data, best(data))),
        "curve": _thinned(curve),
    }


def _thinned(curve: list[list[float]], num_points: int = 60) -> list[list[float]]:
    ends = np.unique(np.geomspace(1, len(curve), num_points).astype(int)) - 1
    return [curve[i] for i in ends]


def run_normality(row: Experiment, data: Path) -> Result:
    """The law of a batch's mean at three points."""
    with scope("single"):
        sampler = walker("tempered", mnist(data), BATCH, ALPHAS[0])
        start = jnp.asarray(_start(0), float)
        _, walked = tuned_step(sampler, jax.random.key(0), start, 0.05, LONGEST_WALK)
    points = {"prior": _start(0), "tempered": np.asarray(walked, float), "mode": best(data)}
    generator = np.random.default_rng(row.seed)
    found: Result = {}
    for name, point in points.items():
        terms = log_terms(data, point)
        means = [
            terms[generator.choice(terms.size, BATCH, replace=False)].mean()
            for _ in range(NUM_BATCHES)
        ]
        t = np.sqrt(BATCH) * (np.array(means) - terms.mean())
        found[name] = {
            "ks": float(kstest((t - t.mean()) / t.std(), "norm").statistic),
            "skewness": float(skew(t)),
            "skewness_of_terms": float(skew(terms)),
            "sd": float(t.std()),
            "accuracy": float(accuracy(data, point)),
            "quantiles": np.quantile(t, (np.arange(100) + 0.5) / 100).tolist(),
        }
    return {"points": found}


def run_batch(row: Experiment, data: Path) -> Result:
    """How many rows a test looks at, at a temperature, over ten runs."""
    heat = float(row.move[1:])
    with scope("single"):
        sampler = walker("tempered", mnist(data), BATCH, np.log(NUM_ROWS / heat) / np.log(BATCH))
        begin = jnp.asarray(best(data), float)
        step, walked = tuned_step(
            sampler, jax.random.key(0), begin, 0.05 * heat**0.5 / 20, LONGEST_WALK
        )
    step, start = float(step), np.asarray(walked, float)
    longest = float(np.max(np.linalg.norm(images(data, "train")[0], axis=1)))
    generators = [np.random.default_rng([row.seed, run]) for run in range(NUM_TABLE_RUNS)]
    # A whole pass over the rows for each decision, whatever the test looks at, is what takes the time.
    num_decisions = int(min(NUM_DECISIONS, max(5, row.seconds * 60 / NUM_TABLE_RUNS)))
    sizes, accepted = np.zeros(NUM_TABLE_RUNS), np.zeros(NUM_TABLE_RUNS)
    last = []
    for run, generator in enumerate(generators):
        theta, terms = start, log_terms(data, start)
        for _ in range(num_decisions):
            proposal = theta + step * generator.normal(size=DIMENSION)
            new = log_terms(data, proposal)
            prior = 0.5 * float(theta @ theta - proposal @ proposal)
            d = generator.permutation(new - terms)
            width = 2 * longest * float(np.linalg.norm(proposal - theta))
            yes, used = _decide(row.sampler, d, prior, heat, width, generator)
            sizes[run] += used / num_decisions
            accepted[run] += yes / num_decisions
            if yes:
                theta, terms = proposal, new
        last.append(float(accuracy(data, theta)))
    return {
        "rows_used": float(sizes.mean()),
        "spread": float(sizes.std(ddof=1)),
        "acceptance": float(accepted.mean()),
        "num_decisions": num_decisions,
        "step_size": step,
        "last": float(np.mean(last)),
    }


def _decide(
    name: str, d: np.ndarray, prior: float, heat: float, width: float, generator: Any
) -> Any:
    if name == "barker":
        return barker(d, prior, heat, BATCH, generator)
    psi = (heat * np.log(generator.uniform()) - prior) / d.size
    if name == "exact":
        return exact(d, psi)
    if name == "confident":
        return confident(d, psi, width, ERROR, BATCH)
    error = conservative_error(d.size, BATCH, ERROR) if "conservative" in name else ERROR
    return austere(d, psi, error, BATCH)
