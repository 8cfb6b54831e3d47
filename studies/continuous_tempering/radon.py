"""Figure 3: log marginal likelihood of the radon regression from two front ends, beside AIS, a bound and PyMC's SMC.

    joint-ct            NUTS on (x, u) heated towards a dense variational fit
    joint-ct diagonal   the same towards a diagonal one, which is the paper's base
    joint-ct start      as little as a call can draw: what compiling and warming up take
    ais K               anneals from the dense fit through K temperatures, for reference
    smc                 `pymc.sample_smc` with its own settings, from the prior

Seconds are wall and CPU seconds of one core, with compiling and without importing packages. Programs that an earlier
experiment compiled are forgotten first.
"""

import logging
import os
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np
from experiment import Experiment, Result
from pages import Rows
from radon_figure import draw, reference
from radon_model import NUM_COUNTIES, Radon, load, made, numpyro_model, pymc_model
from sections import table

import temperance as tp
from temperance.estimates.weighted import log_ratio, weighted_mean

FRONTS = ("numpyro", "pymc")
NUM_HOMES, FEW_HOMES, DIMENSION = 919, 60, NUM_COUNTIES + 7
NUM_SEEDS = 5
NUM_DRAWS, NUM_WARMUP, NUM_CHAINS, NUM_POINTS = 4000, 500, 4, 25
ACCEPTANCE = 0.9
# Of a call that is timed for its start, and of a smoke test.
FEW_DRAWS, FEW_WARMUP = 8, 20
# How many anneals through how many temperatures; many of them share what warm-up learns.
ANNEALS, ANNEAL_WARMUP = {2000: 500, 10_000: 100}, {2000: 100, 10_000: 300}
SMC_DRAWS = 2000
COMPILATION = {"radon": 110.0, "radon-ais": 200.0, "radon-smc": 150.0}


def experiments() -> list[Experiment]:
    kinds = [(front, name) for front in FRONTS for name in ("", " start", " diagonal")]
    found = [_row("radon", front, "nuts", f"joint-ct{name}") for front, name in kinds]
    found += [
        _row("radon", front, "nuts", "joint-ct", seed=seed, least=1.0)
        for seed in range(1, NUM_SEEDS)
        for front in FRONTS
    ]
    few, many = ANNEALS
    found += [
        _row("radon-ais", "numpyro", "hmc", f"ais {few}"),
        _row("radon-ais", "numpyro", "hmc", f"ais {many}", least=1.0),
        _row("radon-smc", "pymc", "metropolis", "smc"),
    ]
    return found


def _row(kind: str, front: str, move: str, sampler: str, **more: Any) -> Experiment:
    return Experiment(kind, front, NUM_HOMES, DIMENSION, move, sampler, 0.0, **more)


def smoke() -> list[Experiment]:
    """Homes that nobody measured, which need no data."""
    rows = (
        ("radon", "numpyro", "nuts", "joint-ct"),
        ("radon-ais", "numpyro", "hmc", "ais 5"),
        ("radon-smc", "pymc", "metropolis", "smc"),
    )
    return [
        Experiment(kind, front, FEW_HOMES, DIMENSION, move, sampler, 0.1)
        for kind, front, move, sampler in rows
    ]


def needs_data(row: Experiment) -> bool:
    return row.num_rows == NUM_HOMES


def homes(row: Experiment, data: Path | None) -> Radon:
    if not needs_data(row):
        return made(row.num_rows)
    assert data is not None
    return load(data)


class Clock:
    """Wall and CPU seconds since it was made, and wall seconds of each phase."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.process_time()
        self._last = self._wall
        self.phases: dict[str, float] = {}

    def phase(self, name: str) -> None:
        """What was done since the last phase has this name."""
        now = time.perf_counter()
        self.phases[name] = now - self._last
        self._last = now

    def read(self) -> dict[str, Any]:
        return {
            "wall": time.perf_counter() - self._wall, "cpu": time.process_time() - self._cpu,
            "phases": self.phases, "load": os.getloadavg()[0],
        }  # fmt: skip


def problem_of(front: str, data: Radon) -> Any:
    if front == "numpyro":
        return tp.from_numpyro(numpyro_model, *data)
    return tp.from_pymc(pymc_model(data))


def fitted(row: Experiment, data: Path | None, family: str) -> tuple[Any, Any, Clock]:
    """The problem, its variational fit, and a clock that started before both."""
    survey = homes(row, data)
    jax.clear_caches()
    clock = Clock()
    problem = problem_of(row.problem, survey)
    clock.phase("front end")
    fit = tp.advi(problem, family=family, seed=row.seed, progress=False)
    clock.phase("advi")
    return problem, fit, clock


def run_joint(row: Experiment, data: Path | None) -> Result:
    """A fit and a joint chain on top of it: log Z, as draws grow, and where the time went."""
    plain = row.sampler.endswith("diagonal") or not needs_data(row)
    short = row.sampler.endswith("start") or not needs_data(row)
    problem, fit, clock = fitted(row, data, "diagonal" if plain else "dense")
    num_draws = FEW_DRAWS if short else NUM_DRAWS
    num_warmup = NUM_WARMUP if needs_data(row) else FEW_WARMUP
    tree = tp.sample(
        problem, method="joint-ct", move=tp.nuts(target_acceptance=ACCEPTANCE), base=fit,
        num_draws=num_draws, num_warmup=num_warmup, num_chains=NUM_CHAINS, sweeps_per_draw=1,
        seed=row.seed, cache=False, progress=False,
    )  # fmt: skip
    clock.phase("sampling")
    took = clock.read()
    stats, tempering = tree["sample_stats"], tree["tempering"]
    log_weight, log_base = (np.asarray(stats[n]) for n in ("log_weight", "log_weight_base"))
    return took | {
        "num_draws": num_draws, "num_warmup": num_warmup,
        "bound": [float(fit.log_zeta), float(fit.local[0].error)],
        "log_evidence": [float(number) for number in tp.log_evidence(tree)],
        "curve": curve(log_weight, log_base, float(tempering["log_zeta"])),
        "round_trips": int(np.sum(tempering["round_trips"])),
        "acceptance": float(np.mean(stats["acceptance_rate"])),
        "diverging": int(np.sum(stats["diverging"])),
        "kish": float(tempering["kish"]),
        "ess_log_sigma_beta": float(
            weighted_mean(np.log(tree["posterior"]["sigma_beta"]), log_weight).ess
        ),
    }  # fmt: skip


def curve(log_weight: np.ndarray, log_base: np.ndarray, log_zeta: float) -> list[list[float]]:
    """[draws of each chain, log Z, its error] from the first draws of all chains, more and more."""
    num_draws = log_weight.shape[1]
    ends = np.unique(np.geomspace(min(8, num_draws), num_draws, NUM_POINTS).round().astype(int))
    found = []
    for end in ends.tolist():
        value, error = log_ratio(log_weight[:, :end], log_base[:, :end], log_zeta)
        found.append([end, round(value, 4), round(error, 4)])
    return found


def run_ais(row: Experiment, data: Path | None) -> Result:
    """Anneals of HMC through many temperatures, which do not remember each other."""
    problem, fit, clock = fitted(row, data, "dense" if needs_data(row) else "diagonal")
    num_rungs = int(row.sampler.split()[1])
    num_anneals = ANNEALS.get(num_rungs, NUM_CHAINS)
    tree = tp.sample(
        problem, method="ais", base=fit, num_chains=num_anneals, num_draws=1, num_rungs=num_rungs,
        num_warmup=ANNEAL_WARMUP.get(num_rungs, FEW_WARMUP),
        seed=row.seed, cache=False, progress=False,
    )  # fmt: skip
    clock.phase("sampling")
    return clock.read() | {
        "num_anneals": num_anneals,
        "bound": [float(fit.log_zeta), float(fit.local[0].error)],
        "log_evidence": [float(number) for number in tp.log_evidence(tree)],
        "kish": float(tree["tempering"]["kish"]),
        "acceptance": float(np.mean(tree["sample_stats"]["acceptance_rate"])),
    }


def run_smc(row: Experiment, data: Path | None) -> Result:
    """PyMC's own, one estimate from each chain; the error is their spread over sqrt(chains)."""
    import pymc as pm

    logging.getLogger("pymc").setLevel(logging.ERROR)
    survey = homes(row, data)
    clock = Clock()
    with pymc_model(survey):
        clock.phase("front end")
        tree = pm.sample_smc(
            SMC_DRAWS if needs_data(row) else 50, chains=NUM_CHAINS, cores=1,
            random_seed=row.seed, progressbar=False, compute_convergence_checks=False,
        )  # fmt: skip
    clock.phase("sampling")
    # Only the last stage of a chain has a finite value, and chains differ in their number of stages.
    kept = tree.sample_stats["log_marginal_likelihood"].values
    stages = np.hstack(list(kept.ravel())).astype(float)
    log_z = stages[np.isfinite(stages)]
    return clock.read() | {
        "log_evidence": [float(log_z.mean()), float(log_z.std(ddof=1) / np.sqrt(log_z.size))],
        "chains": log_z.tolist(),
    }


def write(rows: Rows, folder: Path) -> list[str]:  # noqa: ARG001
    """Every run beside the anneals."""
    truth = reference(rows)
    full = [row for row in rows if not row["sampler"].endswith("start")]
    head = (
        "method", "model from", "seed", "log Z", "minus AIS", "bound of ADVI", "wall s", "CPU s", "of it front end",
        "ADVI", "sampling", "load", "accepted", "round trips", "size of log sigma_beta",
    )  # fmt: skip
    text = "One core for each, compiling included, importing packages not; load is that of the machine when a run ended."
    lines = [_line(row, truth) for row in sorted(full, key=_order)]
    return table("Radon regression", text, head, lines)


def _order(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["kind"], row["sampler"], row["problem"], row["seed"]


def _line(row: dict[str, Any], truth: dict[str, Any] | None) -> tuple[Any, ...]:
    log_z, error = row["log_evidence"]
    away = "" if truth in (None, row) else f"{log_z - truth['log_evidence'][0]:+.2f}"
    phases = row["phases"]
    times = [f"{phases[n]:.0f}" if n in phases else "" for n in ("front end", "advi", "sampling")]
    return (
        row["sampler"], row["problem"], row["seed"], f"{log_z:.2f} ± {error:.2f}", away,
        "{:.1f}".format(row["bound"][0]) if "bound" in row else "", f"{row['wall']:.0f}", f"{row['cpu']:.0f}", *times,
        f"{row['load']:.1f}", f"{row['acceptance']:.2f}" if "acceptance" in row else "", row.get("round_trips", ""),
        f"{row['ess_log_sigma_beta']:.0f}" if "ess_log_sigma_beta" in row else "",
    )  # fmt: skip


RUNNERS = {"radon": run_joint, "radon-ais": run_ais, "radon-smc": run_smc}
__all__ = ["COMPILATION", "RUNNERS", "draw", "experiments", "needs_data", "smoke", "write"]
