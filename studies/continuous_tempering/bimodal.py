"""Figure 1: continuous tempering of a density with two modes in one dimension, where all of it can be seen.

The target is a mixture of two Gaussians that plain HMC does not go between, the base the Gaussian of its mean and
variance, and log zeta = log Z = 0. What is kept: a Hamiltonian trajectory in (x, u), some draws of a joint chain with
their weights, histograms of it and of plain HMC, and the mode's share by both with its standard error.
"""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from bimodal_figure import EDGES, draw
from bimodal_problem import CENTERS, SHARES, base, ladder, log_target
from experiment import Experiment, Result
from pages import Rows
from sections import table

import temperance as tp
from temperance.estimates.weighted import relative
from temperance.ladders.joint import Heated
from temperance.programs.scope import scope

# Draws, and how many of them are kept as points of the figure.
NUM_DRAWS, FEW_DRAWS, NUM_WARMUP, NUM_KEPT = 10_000, 300, 1000, 500
STEP, NUM_STEPS, MOST_TRAJECTORIES = 0.05, 300, 200
COMPILATION = {"bimodal": 30.0}


def experiments() -> list[Experiment]:
    return [Experiment("bimodal", "mixture", 0, 1, "hmc", "joint-ct", 0.0)]


def smoke() -> list[Experiment]:
    return [Experiment("bimodal", "mixture", 0, 1, "hmc", "joint-ct", 0.1)]


def needs_data(row: Experiment) -> bool:  # noqa: ARG001
    return False


def run_bimodal(row: Experiment, data: Path | None) -> Result:  # noqa: ARG001
    """One joint chain and one plain chain, as long at every scale but that of a smoke test."""
    num_draws = NUM_DRAWS if row.seconds >= 1 else FEW_DRAWS
    target = tp.Target(lambda x: log_target(x["x"]), base(), example={"x": np.zeros(())})
    apart = tp.Target(lambda x: log_target(x["x"]), example={"x": np.array(CENTERS[1])})
    told: dict[str, Any] = {
        "num_draws": num_draws, "num_warmup": NUM_WARMUP, "num_chains": 1, "seed": row.seed, "progress": False,
    }  # fmt: skip
    joint = tp.sample(target, "joint-ct", log_zeta=0.0, **told)
    plain = tp.sample(apart, "plain", **told)
    stats = joint["sample_stats"]
    x, log_weight = (np.ravel(a) for a in (joint["posterior"]["x"], stats["log_weight"]))
    kept = np.linspace(0, x.size - 1, min(NUM_KEPT, x.size)).astype(int)
    log_z, log_z_error = tp.log_evidence(joint)
    with scope("double"):
        path, tried = trajectory(row.seed)
    return {
        "num_draws": num_draws,
        "shares": {name: _share(tree) for name, tree in (("plain", plain), ("joint-ct", joint))},
        "truth": float(SHARES[1]),
        "log_evidence": [float(log_z), float(log_z_error)],
        "round_trips": int(np.sum(joint["tempering"]["round_trips"])),
        "kish": float(joint["tempering"]["kish"]),
        "points": np.round(
            [x[kept], np.ravel(stats["beta"])[kept], np.exp(log_weight[kept])], 4
        ).tolist(),
        "histograms": {
            "plain": np.histogram(plain["posterior"]["x"], EDGES, density=True)[0].tolist(),
            "joint-ct": np.histogram(
                x, EDGES, density=True, weights=relative(log_weight, log_weight.shape)
            )[0].tolist(),
        },
        "trajectory": np.round(path, 3).tolist(),
        "trajectories_tried": tried,
    }  # fmt: skip


def _share(tree: Any) -> list[float]:
    """The weight of the right mode: its estimate and standard error."""
    found = tp.expectation(tree, lambda x: x > 0)
    return [float(found.value), float(found.error)]


def trajectory(seed: int) -> tuple[np.ndarray, int]:
    """A Hamiltonian trajectory from the left mode at u = 2, and its number.

    Momenta are drawn until one of them takes the other mode in: a third of the way up, in u, neither mode is left.
    """
    joint = ladder()

    @jax.jit
    def follow(momentum: jax.Array) -> jax.Array:
        def kick(z: jax.Array, point: Any, time: float) -> jax.Array:
            return z + time * point.gradients[0]

        def leapfrog(carry: tuple[jax.Array, Any], _: None) -> tuple[Any, jax.Array]:
            z, point = carry
            z = kick(z, point, 0.5 * STEP)
            here = Heated(point.position.x + STEP * z[:1], point.position.u + STEP * z[1])
            point = joint.evaluate(here, gradient=True)
            return (kick(z, point, 0.5 * STEP), point), jnp.append(here.x, here.u)

        start = Heated(jnp.asarray(CENTERS[:1]), jnp.asarray(2.0))
        carry = momentum, joint.evaluate(start, gradient=True)
        return jax.lax.scan(leapfrog, carry, length=NUM_STEPS)[1]

    rng = np.random.default_rng(seed)
    path = np.zeros((NUM_STEPS, 2))
    for tried in range(1, MOST_TRAJECTORIES + 1):
        path = np.asarray(follow(jnp.asarray(rng.normal(size=2))))
        if np.any((path[:, 0] > CENTERS[1] - 0.5) & (path[:, 1] > 0)):
            return path, tried
    return path, MOST_TRAJECTORIES


def write(rows: Rows, folder: Path) -> list[str]:  # noqa: ARG001
    """The shares of the right mode."""
    lines = []
    for row in rows[-1:]:
        for name, (share, error) in row["shares"].items():
            ours = name == "joint-ct"
            log_z = "{:.3f} ± {:.3f}".format(*row["log_evidence"]) if ours else ""
            trips = row["round_trips"] if ours else ""
            lines.append(
                (name, row["num_draws"], f"{share:.3f} ± {error:.3f}", row["truth"], log_z, trips)
            )
    head = (
        "method",
        "draws",
        "weight of the right mode",
        "truth",
        "log Z (truth 0)",
        "round trips",
    )
    text = "One chain each; plain HMC starts in the right mode."
    return table("Two modes in one dimension", text, head, lines)


RUNNERS = {"bimodal": run_bimodal}
__all__ = ["COMPILATION", "RUNNERS", "draw", "experiments", "needs_data", "smoke", "write"]
