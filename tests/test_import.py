"""`import temperance` is light and leaves JAX as it found it."""

import json
import subprocess
import sys
from functools import cache

PROBE = """
import json, sys
import jax
before = dict(jax.config.values)
import temperance
changed = [name for name, value in jax.config.values.items() if before.get(name) != value]
print(json.dumps({"modules": sorted(sys.modules), "changed": changed}))
"""


@cache
def probe(program=PROBE):
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def heavy(modules):
    return {"numba", "arviz", "arviz_base", "arviz_stats", "matplotlib", "pymc", "numpyro"} & {
        *modules
    }


def test_import_is_light():
    assert not heavy(probe()["modules"])


def test_a_heavy_import_is_noticed():
    assert heavy(probe(PROBE.replace("import temperance", "import matplotlib"))["modules"])


def test_import_flips_no_flag():
    assert probe()["changed"] == []


def test_a_flipped_flag_is_noticed():
    flip = 'jax.config.update("jax_enable_x64", True)'
    assert probe(PROBE.replace("import temperance", flip))["changed"] == ["jax_enable_x64"]
