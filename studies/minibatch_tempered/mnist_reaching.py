"""MNIST: how soon 0.99 of the test images are put right, by walks whose steps adapt from the start.

In `mnist.py` a step is tuned in a run that is thrown away. Here nothing is: walks start at draws of the prior with
one and the same step, and change it after every step by the stochastic approximation that tunes it there, so that all
work that leads to a prediction is in its time. Two kinds of accuracy:

    draw    that of the current draw, as in the paper
    mean    that of predictions averaged over the second half of all draws so far, which is what one
            would predict by: a draw of a heated posterior is noisier than the mean over its draws

Langevin steps follow the gradient of the batch that decides about them. With `noise="common"`, the algorithm
as printed, draws have no law that could be stated, the less so above alpha = 1; the question is how soon they predict well.
"""

from pathlib import Path

import jax.numpy as jnp
import numpy as np
from experiment import Experiment, Result
from kernels import walker
from mnist_problem import DIMENSION, images, mnist
from scipy.special import expit
from walks import blocks

from temperance.programs.scope import scope

NUM_ROWS, BATCH = 13007, 100
GOOD = 0.99
FIRST_STEP = 0.05
SEEDS = range(10)
# CPU seconds for which a walk goes on at most.
SECONDS = 15.0
ALPHAS = (1.0, 1.25, 1.5, 1.75)
SAMPLERS = (
    "mcmc",
    "mcmc langevin",
    "tempered langevin 1.5",
    *(f"mint common langevin {alpha}" for alpha in ALPHAS),
    "mint penalty langevin 1.0",
)
# Steps between looks at the time.
COUNT = {"mcmc": 5, "tempered": 5, "mint": 25}
MOST_STEPS = 20_000


def experiments() -> list[Experiment]:
    """Walks by seed, all of one length."""
    return [
        Experiment(
            "reaching", "mnist", NUM_ROWS, DIMENSION, "adapting", name, SECONDS,
            seed=seed, least=0.0 if seed < 3 else 0.1,
        )
        for seed in SEEDS for name in SAMPLERS
    ]  # fmt: skip


def run_reaching(row: Experiment, data: Path) -> Result:
    """One walk: both accuracies by steps and seconds."""
    words = row.sampler.split()
    pixels, labels = images(data, "test")
    count = COUNT[words[0]]
    start = np.random.default_rng(row.seed).normal(size=DIMENSION)
    draws: list[tuple[float, ...]] = []
    means: list[tuple[float, ...]] = []
    sums = [np.zeros(len(labels))]
    rows = 0.0
    with scope("single"):
        alpha = float(words[-1]) if words[0] != "mcmc" else 1.0
        sampler = walker(row.sampler, mnist(data), BATCH, alpha)
        before = (0.0, 0.0)
        for block in blocks(
            sampler, NUM_ROWS, FIRST_STEP, jnp.asarray(start, float)[None], row.seed, row.seconds, count, 1,
            MOST_STEPS // count, adapts_to=0.574 if "langevin" in words else 0.3,
        ):  # fmt: skip
            logits = block["positions"][0] @ pixels.T
            rows += float(block["rows"].sum())
            now = (block["wall"], block["cpu"])
            for i, right in enumerate(np.mean((logits > 0) == labels, axis=1)):
                share = (i + 1) / count
                seconds = [a + share * (b - a) for a, b in zip(before, now, strict=True)]
                draws.append((count * (len(sums) - 1) + i + 1, *seconds, float(right)))
            before = now
            sums.append(sums[-1] + expit(logits).sum(axis=0))
            half = (len(sums) - 1) // 2
            mean = (sums[-1] - sums[half]) / (count * (len(sums) - 1 - half))
            means.append((draws[-1][0], *now, float(np.mean((mean > 0.5) == labels))))
    return {
        "rows_a_step": rows / len(draws),
        "num_steps": len(draws),
        "acceptance": block["acceptance"],
        "wall": before[0],
        "cpu": before[1],
        "draw": _told(draws),
        "mean": _told(means),
    }


def _told(curve: list[tuple[float, ...]]) -> Result:
    """(steps, wall, CPU) at which a curve first reaches its goal, and how it goes on."""
    good = np.array([point[3] >= GOOD for point in curve])
    first = int(np.argmax(good))
    thinned = np.unique(np.geomspace(1, len(curve), 60).astype(int)) - 1
    return {
        "first": list(curve[first][:3]) if good.any() else None,
        "share_after": float(good[first:].mean()),
        "last": float(np.mean([point[3] for point in curve[-len(curve) // 4 :]])),
        "curve": [list(curve[i]) for i in thinned],
    }
