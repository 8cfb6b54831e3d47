"""The four panels of figure 1."""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from bimodal_problem import base, ladder, log_target
from pages import STYLE, Rows, save

from temperance.ladders.joint import Heated
from temperance.programs.scope import scope

EDGES = np.linspace(-4.0, 4.0, 81)
CONTROLS = np.linspace(-6.0, 6.0, 121)
BETAS = np.linspace(0.0, 1.0, 101)


def draw(rows: Rows, folder: Path) -> None:
    """What the last run kept."""
    for row in rows[-1:]:
        with plt.rc_context(STYLE), scope("double"):
            _four(row, folder / "bimodal.png")


def _four(row: dict[str, Any], path: Path) -> None:
    x = 0.5 * (EDGES[1:] + EDGES[:-1])
    hot = np.asarray(jax.vmap(lambda v: base()(v[None]))(jnp.asarray(x)))
    cold = np.asarray(jax.vmap(log_target)(jnp.asarray(x)))
    figure, axes = plt.subplots(1, 4, figsize=(14.5, 3.4))
    _densities(axes[0], x, hot, cold)
    _potential(axes[1], x, row)
    _joint(axes[2], x, hot, cold, row)
    _histograms(axes[3], x, cold, row)
    save(figure, path)


def _densities(axis: Any, x: np.ndarray, hot: np.ndarray, cold: np.ndarray) -> None:
    axis.plot(x, np.exp(cold), label="target")
    axis.plot(x, np.exp(hot), color="C2", label="base")
    axis.set(title="(a) target and base", xlabel="x", ylabel="density")
    axis.legend()


def _potential(axis: Any, x: np.ndarray, row: dict[str, Any]) -> None:
    joint = ladder()

    def energy(x: jax.Array, u: jax.Array) -> jax.Array:
        return -joint.evaluate(Heated(x[None], u), gradient=False).components[0]

    grid = jax.vmap(jax.vmap(energy, (0, None)), (None, 0))(jnp.asarray(x), jnp.asarray(CONTROLS))
    axis.contourf(x, CONTROLS, np.minimum(grid, 16.0), levels=24, cmap="Blues_r")
    axis.plot(*np.transpose(row["trajectory"]), color="C2", lw=1.4)
    axis.set(title="(b) energy of (x, u), a trajectory", xlabel="x", ylabel="u", ylim=(-6, 6))


def _joint(
    axis: Any, x: np.ndarray, hot: np.ndarray, cold: np.ndarray, row: dict[str, Any]
) -> None:
    log_density = (1 - BETAS)[:, None] * hot + BETAS[:, None] * cold
    axis.contourf(x, BETAS, np.exp(log_density), levels=24, cmap="Blues")
    places, betas, weights = np.array(row["points"])
    axis.scatter(places, betas, s=9 * weights, facecolors="none", edgecolors="C3", linewidths=0.6)
    axis.set(
        title="(c) density of (x, beta), draws by weight", xlabel="x", ylabel="beta", ylim=(0, 1)
    )


def _histograms(axis: Any, x: np.ndarray, cold: np.ndarray, row: dict[str, Any]) -> None:
    wide = EDGES[1] - EDGES[0]
    for sign, name, label in ((1, "plain", "plain HMC"), (-1, "joint-ct", "joint CT, weighted")):
        axis.bar(x, sign * np.array(row["histograms"][name]), wide, label=label)
        axis.plot(x, sign * np.exp(cold), "k", lw=0.8)
    axis.axhline(0.0, color="k", lw=0.8)
    axis.set(title="(d) what two chains say", xlabel="x", ylabel="density, below: joint CT")
    axis.legend(fontsize=8)
