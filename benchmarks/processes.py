"""Samplers in processes of their own: settings alike for all, rows as they come, CPU time and CSVs.

Nothing but the standard library, since some samplers live in environments of their own.
"""

import csv
import json
import math
import os
import subprocess
import tempfile
import threading
import time

# One thread for NumPy's linear algebra: few dimensions gain nothing from more, and idle ones are charged as CPU time.
# No cache of compiled programs on disk, so that the first run means the same for everyone.
SETTINGS = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "JAX_PLATFORMS": "cpu",
    "JAX_ENABLE_COMPILATION_CACHE": "false",
    "TEMPERANCE_CACHE": "off",
}


def cpu_seconds():
    """Of this process, all its threads, and the child processes that have ended."""
    t = os.times()
    return time.process_time() + t.children_user + t.children_system


def json_rows(command, max_seconds=0, settings=None):
    """Each line of JSON that a command prints; RuntimeError, with one line of words, if it fails or takes too long."""
    with tempfile.TemporaryFile("w+") as log:
        with subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env=os.environ | SETTINGS | (settings or {}),
        ) as process:
            late = threading.Event()

            def stop():
                late.set()
                process.kill()

            timer = threading.Timer(max_seconds, stop) if max_seconds else None
            if timer:
                timer.start()
            try:
                for line in process.stdout:
                    if line.startswith("{"):
                        yield json.loads(line)
            except BaseException:
                process.kill()
                raise
            finally:
                if timer:
                    timer.cancel()
        if late.is_set():
            raise RuntimeError(f"stopped after {max_seconds} s")
        if process.returncode:
            log.seek(0)
            lines = log.read().strip().splitlines()
            raise RuntimeError((lines or [f"exit status {process.returncode}"])[-1].strip())


def read_rows(path, numbers):
    """The rows of a CSV, with numbers as such: nan where a cell is empty."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        row.update({name: float(row[name] or "nan") for name in numbers})
    return rows


def write_rows(path, columns, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    # Written beside and moved over, so that an interruption cannot leave half a table.
    partial = path.with_suffix(".partial")
    with partial.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({name: _cell(row.get(name, "")) for name in columns})
    partial.replace(path)


def _cell(value):
    if value is None:
        return ""
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.6g}"
    return value
