"""Python environments for the peers: the project's own, and one for each set of pins that cannot share it."""

import hashlib
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ENVIRONMENTS = HERE.parent / ".envs"


def interpreter(name):
    """The Python of an environment, made first if it is missing or its requirements have changed."""
    if name == "project":
        return sys.executable
    requirements = HERE / f"requirements-{name}.txt"
    folder = ENVIRONMENTS / name
    python = folder / "bin" / "python"
    # Written last: an installation that was cut short leaves no stamp, and is made again.
    stamp = folder / "requirements.sha256"
    wanted = hashlib.sha256(requirements.read_bytes()).hexdigest()
    if not stamp.exists() or stamp.read_text() != wanted:
        _run(sys.executable, "-m", "venv", "--clear", str(folder))
        _run(str(python), "-m", "pip", "install", "--quiet", "-r", str(requirements))
        stamp.write_text(wanted)
    return str(python)


def _run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines()
        errors = [line for line in lines if line.startswith("ERROR")]
        raise RuntimeError((errors or lines or ["no message"])[-1])
