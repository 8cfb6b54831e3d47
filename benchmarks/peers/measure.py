"""Time one sampler: one JSON line for each run, on standard output.

The first run pays for compilation and is reported as such; the others are the measurement. CPU time counts every
thread, and the child processes that have ended.
"""

import importlib
import importlib.metadata
import json
import sys
import time
from contextlib import redirect_stdout
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))

from processes import cpu_seconds

# Away from the seeds measured, so that the first run is of no use to them.
FIRST_SEED = 10_000


def measure(name, seeds):
    started_cpu, started = cpu_seconds(), time.perf_counter()
    with redirect_stdout(sys.stderr):
        sampler = importlib.import_module(f"samplers.{name}")
    versions = " ".join(
        f"{package} {importlib.metadata.version(package)}" for package in sampler.PACKAGES
    )
    for seed in [FIRST_SEED, *seeds]:
        with redirect_stdout(sys.stderr):
            weight, log_z, num_evaluations = sampler.run(seed)
        ended_cpu, ended = cpu_seconds(), time.perf_counter()
        yield {
            "sampler": name,
            "seed": seed,
            "weight": weight,
            "log_z": log_z,
            "num_evaluations": num_evaluations,
            "cpu_s": round(ended_cpu - started_cpu, 3),
            "wall_s": round(ended - started, 3),
            "versions": versions,
        }
        started_cpu, started = cpu_seconds(), time.perf_counter()


if __name__ == "__main__":
    for row in measure(sys.argv[1], [int(seed) for seed in sys.argv[2:]]):
        print(json.dumps(row), flush=True)
