"""`import temperance` is light and leaves JAX as it found it."""

import json
import subprocess
import sys

PROBE = """
import json, sys
import jax
before = dict(jax.config.values)
import temperance
changed = [name for name, value in jax.config.values.items() if before.get(name) != value]
print(json.dumps({"modules": sorted(sys.modules), "changed": changed}))
"""


def probe(program):
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def heavy(modules):
    names = {"numba", "arviz", "arviz_base", "arviz_stats", "matplotlib", "pymc", "numpyro"}
    return names.intersection(modules)


def test_import_is_light_and_flips_no_flag():
    found = probe(PROBE)
    assert not heavy(found["modules"])
    assert found["changed"] == []


def test_a_heavy_import_and_a_flipped_flag_are_noticed():
    slip = 'import matplotlib; jax.config.update("jax_enable_x64", True)'
    found = probe(PROBE.replace("import temperance", slip))
    assert heavy(found["modules"]) == {"matplotlib"}
    assert found["changed"] == ["jax_enable_x64"]
