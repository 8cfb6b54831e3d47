"""Where a benchmark ran, and with which versions."""

import os
import platform
from importlib.metadata import version
from pathlib import Path

PACKAGES = ("temperance", "jax", "jaxlib", "blackjax", "equinox", "numpy")


def machine():
    model = platform.machine()
    information = Path("/proc/cpuinfo")
    if information.exists():
        lines = information.read_text().splitlines()
        model = next((li.split(":", 1)[1].strip() for li in lines if "model name" in li), model)
    return f"{model}, {os.cpu_count()} cores, {platform.system()}"


def versions():
    return f"Python {platform.python_version()}, " + ", ".join(
        f"{name} {version_of(name)}" for name in PACKAGES
    )


def version_of(name):
    from temperance import __version__

    return __version__ if name == "temperance" else version(name)
