"""The study of ensembles: its data, what it says of modes, and that it runs."""

import subprocess
import sys
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from tests.studies.study_parts import STUDIES, part_of

STUDY = STUDIES / "ensembles"
part = part_of(STUDY)


def test_inputs_are_correlated_as_the_paper_says(part):
    made = part("neal_problem")
    z, y = made.rows(num_rows=40_000)
    found = np.corrcoef(z.T)
    for h in range(3):
        assert found[h, 3 + h] == pytest.approx(0.99, abs=0.003)
        assert found[h, 6 + h] == pytest.approx(0.9, abs=0.01)
    assert found[0, 1] == pytest.approx(0.25, abs=0.03)
    assert np.abs(found[9:, :9]).max() < 0.03
    assert np.std(y - made.regression(z)) == pytest.approx(made.NOISE, abs=0.01)


def test_every_route_has_the_same_posterior(part):
    made, samplers = part("neal_problem"), part("neal_samplers")
    rng = np.random.default_rng(0)
    log_nu, log_eta, log_sigma = rng.normal(-1, 1, 12), 0.3, -0.8
    values = []
    for name in ("metropolis 0.25", "spectral grid", "cholesky independent"):
        chosen = samplers.setting(name)
        other = log_sigma - log_eta if chosen.route == "cholesky" else log_sigma
        x = jnp.concatenate([-log_nu - 0.5 * np.log(2), jnp.asarray([other, log_eta])])
        whole = chosen.sampler.ladder.densities()[0]
        values.append(float(whole(x)))
        told = np.asarray(made.named(x, chosen.route))
        assert told == pytest.approx([np.log(np.exp(log_nu).mean()), log_eta, log_sigma])
    assert values == pytest.approx([values[0]] * 3, rel=1e-9)


def test_a_mode_is_left_only_for_the_other(part):
    modes = part("modes")
    course = np.array([-1.2, -0.5, -1.0, -1.6, -0.5, -2.0, -1.0, -1.2, -3.0, -0.1])
    assert modes.side(course).tolist() == [-1, 1, 1, 1, 1, 0, 0, 0, 0, 1]
    points = np.zeros((20, 3))
    points[:, 2] = np.tile(course, 2)
    assert modes.facts(points)["switches"] == 4
    stuck = modes.facts(np.tile([0.0, 0.0, -0.5], (20, 1)))
    assert stuck["switches"] == 0
    assert np.isnan(stuck["noisy_error"])


def chain(sampler: str, seed: int, *, stuck: bool = False) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    log_sigma = rng.normal(size=200) * (0.01 if stuck else 1.0) + (3.0 * seed if stuck else 0.0)
    points = np.stack([log_sigma] * 3, 1).tolist()
    return {"sampler": sampler, "points": points, "num_slow": 1000, "switches": 0 if stuck else 7}


def test_chains_that_disagree_count_for_little(part):
    tables = part("demonstration_tables")
    good = [chain("spectral grid", seed) for seed in range(5)]
    stuck = [chain("metropolis 0.35", seed, stuck=True) for seed in range(5)]
    # 180 independent draws of 1000 slow evaluations; each stuck chain thinks it has as many.
    assert tables.rate(good, "ess").value == pytest.approx(18_000, rel=0.2)
    assert tables.rate(stuck, "ess").value < 300
    assert tables.rate(good, "switches") == (pytest.approx(700.0), pytest.approx(0.0))
    plain = [chain("one at a time", seed) for seed in range(5, 10)]
    by_name = {"metropolis 0.35": stuck, "one at a time": plain, "spectral grid": good}
    assert tables._best(by_name, "ess") == tables.rate(plain, "ess")
    gain = tables._gain(tables.rate(good, "ess"), tables._best(by_name, "ess"))
    assert gain.startswith(("0.9", "1.0", "1.1"))


@pytest.mark.slow
def test_a_little_of_everything(tmp_path):
    command = [sys.executable, str(STUDY / "run.py"), "--smoke", "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "tables.md").read_text()
    for title in ("demonstration", "other samplers", "What an ensemble costs", "Real regressions"):
        assert title in page
    assert (tmp_path / "figure4.png").exists()
    again = subprocess.run(
        [*command[:2], "--redraw", *command[3:]], capture_output=True, check=False
    )
    assert again.returncode == 0
