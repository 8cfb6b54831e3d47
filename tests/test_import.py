"""`import temperance` is light, and what it offers is imported at the first use.

The whole of what is offered leaves JAX as it found it.
"""

import json
import subprocess
import sys

import pytest

PROBE = """
import json, sys
import jax
before = dict(jax.config.values)
from temperance import *
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


def modules_after(statement):
    return set(probe(f"import json, sys\n{statement}\nprint(json.dumps(list(sys.modules)))"))


def test_a_package_imports_nothing_until_it_is_asked():
    third_party = {"jax", "numpy", "scipy", "sklearn", "pandas", "narwhals", "equinox", "blackjax"}
    for statement in ("import temperance", "import temperance.crosscat"):
        modules = modules_after(statement)
        assert not heavy(modules) | third_party.intersection(modules), statement


def test_tables_need_no_jax_and_compile_nothing_before_a_fit():
    modules = modules_after("from temperance.crosscat import CrossCat, Schema, cross_validate")
    assert not {"jax", "equinox", "blackjax"}.intersection(modules) | heavy(modules)
    assert "sklearn" not in modules_after("from temperance.crosscat import Schema")
    assert "jax" in modules_after("from temperance import sample")


def test_a_heavy_import_and_a_flipped_flag_are_noticed():
    slip = 'import matplotlib; jax.config.update("jax_enable_x64", True)'
    found = probe(PROBE.replace("from temperance import *", slip))
    assert heavy(found["modules"]) == {"matplotlib"}
    assert found["changed"] == ["jax_enable_x64"]


ALONE = """
import json, sys
absent = ("blackjax", "arviz_base", "arviz_stats", "zarr", "xarray", "pandas", "pymc", "numpyro")
for name in absent:
    sys.modules[name] = None  # importing it raises
import jax
import jax.numpy as jnp
import temperance as tp
ladder = tp.GeometricLadder(
    tp.Gaussian([0.0], 4.0), lambda x: -0.5 * jnp.sum(x**2), [0.0, 1.0], bridge=True,
    draw_hot=tp.Gaussian([0.0], 4.0).draw,
)
params = tp.Params(jnp.ones((2, 1)), jnp.ones((2, 1)))
key = jax.random.key(0)
samplers = {
    "gibbs": tp.GibbsTempering(ladder, tp.hmc(2), params, jnp.zeros(2)),
    "ais": tp.AnnealedImportance(ladder, tp.hmc(2), params),
    "pt": tp.ParallelTempering(ladder, tp.hmc(2), params),
}
weights = {}
for name, sampler in samplers.items():
    state, _ = sampler.step(key, sampler.init(jnp.zeros(1)))
    weights[name] = [float(v) for v in sampler.trail(state).get("log_weight", jnp.zeros(1)).ravel()]
print(json.dumps(weights))
"""


@pytest.mark.slow
def test_samplers_run_beside_jax_and_equinox_alone():
    """As on a machine with an accelerator and little else; results and NUTS need the others."""
    weights = probe(ALONE)
    assert set(weights) == {"gibbs", "ais", "pt"}
