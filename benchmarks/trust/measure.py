"""One sampler on one case: one JSON line on standard output.

    python benchmarks/trust/measure.py SAMPLER CASE

CASE is the number of a random case, or `table-ROW-RUN` for a fixed target. CPU time is that of the call and of what
is read from its result, compilation included; importing the packages and making the case come before.
"""

import importlib
import importlib.metadata
import json
import sys
import time
from contextlib import redirect_stdout

from benchmarks.processes import cpu_seconds
from benchmarks.trust.roster import ROSTER
from benchmarks.trust.targets import random_case, trust_table

# Away from the numbers of the cases, so that a sampler has another seed than its target.
FIRST_SEED = 10_000


def case_and_seed(name):
    if name.startswith("table-"):
        _, row, run = name.split("-")
        return trust_table()[int(row)], FIRST_SEED + int(run)
    return random_case(int(name)), FIRST_SEED + int(name)


def measure(sampler, name):
    module = importlib.import_module(f"benchmarks.trust.samplers.{ROSTER[sampler].module}")
    case, seed = case_and_seed(name)
    packages = [package for package in module.PACKAGES if package != "temperance"]
    versions = [f"{package} {importlib.metadata.version(package)}" for package in packages]
    started_cpu, started = cpu_seconds(), time.perf_counter()
    found = module.run(case, seed)
    ended_cpu, ended = cpu_seconds(), time.perf_counter()
    warnings = found.pop("warnings", None)
    return {
        "sampler": sampler,
        "case": name,
        "name": case.name,
        "family": case.family,
        "dimension": case.dimension,
        "seed": seed,
        "exact_probability": case.probability,
        "exact_log_z": case.log_z,
        **found,
        "num_warnings": None if warnings is None else len(warnings),
        "warnings": " | ".join(warnings or []),
        "cpu_s": round(ended_cpu - started_cpu, 3),
        "wall_s": round(ended - started, 3),
        "versions": " ".join(versions),
    }


if __name__ == "__main__":
    with redirect_stdout(sys.stderr):
        row = measure(*sys.argv[1:])
    print(json.dumps(row), flush=True)
