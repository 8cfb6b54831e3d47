"""What is exactly true of the paper's ten Boltzmann machine relaxations, and how good the mean-field fit is.

    python studies/continuous_tempering/boltzmann_truth.py --data FOLDER

FOLDER (or TEMPERANCE_DATA) has boltzmann/system_0.npz and so on, with `weights` and `biases`. The table
`results/boltzmann_truth.csv` has a line for each system, with

    diagonal, factor        D and Q of the relaxation, QQ' = W + D with the best D (equation 46)
    log_z_machine           log Z_B, from all 2^30 states
    log_z, mean, covariance of the relaxation, exact (equations 52 to 54)
    log_zeta, base_mean, base_covariance    the mean-field fits joined by their moments (equation 25)

and with the dimension, the number of fixed points and root mean square errors of the fit against the truth, over
entries of the mean and of the covariance. Figure 2 of the paper divides by these. `read_runs` of `results_table.py`
reads the table with its matrices.

Eigenvalues at both ends of W + D are multiple, so that another LAPACK may turn the axes of Q. Mean and covariance are
those of the `factor` beside them.
"""

import argparse
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
from rich.progress import track

from temperance.models.boltzmann import BoltzmannMachine, relaxation

HERE = Path(__file__).resolve().parent
NUM_SYSTEMS = 10
NUM_STARTS = 1000


def rms(found: Any, truth: Any) -> float:
    return float(np.sqrt(np.mean((np.asarray(found) - np.asarray(truth)) ** 2)))


def truth_of(path: Path, num_starts: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """What is true of a system, and how near the fit is."""
    with np.load(path) as stored:
        machine = BoltzmannMachine(stored["weights"], stored["biases"])
    began = time.perf_counter()
    relaxed = relaxation(machine)
    solved = time.perf_counter()
    exact = machine.exact()
    summed = time.perf_counter()
    fit = relaxed.fit(num_starts)
    fitted = time.perf_counter()
    base_covariance = np.asarray(fit.base.factor) @ np.asarray(fit.base.factor).T
    arrays = {
        "diagonal": relaxed.diagonal,
        "factor": relaxed.factor,
        "log_z_machine": exact.log_z,
        "log_z": relaxed.log_z,
        "mean": relaxed.mean,
        "covariance": relaxed.covariance,
        "log_zeta": fit.log_zeta,
        "base_mean": np.asarray(fit.base.mean),
        "base_covariance": base_covariance,
    }
    line = {
        "units": machine.num_units,
        "dimension": relaxed.dimension,
        "largest_eigenvalue": np.linalg.norm(relaxed.factor, 2) ** 2,
        "log_z_machine": exact.log_z,
        "log_z": relaxed.log_z,
        "log_zeta": fit.log_zeta,
        "best_bound": fit.local[0].bound,
        "fixed_points": len(fit.local),
        "rmse_log_z": abs(fit.log_zeta - relaxed.log_z),
        "rmse_mean": rms(fit.base.mean, relaxed.mean),
        "rmse_covariance": rms(base_covariance, relaxed.covariance),
        "seconds_diagonal": solved - began,
        "seconds_states": summed - solved,
        "seconds_fit": fitted - summed,
    }
    return arrays, line


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=os.environ.get("TEMPERANCE_DATA"))
    parser.add_argument("--out", type=Path, default=HERE / "results" / "boltzmann_truth.csv")
    parser.add_argument("--starts", type=int, default=NUM_STARTS, help="of the mean field")
    given = parser.parse_args()
    if given.data is None:
        parser.error("say where the data are: --data FOLDER, or TEMPERANCE_DATA")
    paths = [Path(given.data) / "boltzmann" / f"system_{i}.npz" for i in range(NUM_SYSTEMS)]
    if missing := [path.name for path in paths if not path.exists()]:
        parser.error(f"not in {given.data}/boltzmann: {', '.join(missing)}")
    for path in track(paths, "systems"):
        arrays, line = truth_of(path, given.starts)
        lists = {name: np.asarray(array).tolist() for name, array in arrays.items()}
        add_run(given.out, path.stem, line | lists)


if __name__ == "__main__":
    main()
