"""The toy half of the study of subsample annealing: its bins, its durations, and that it runs."""

import subprocess
import sys

import numpy as np
import pytest
from tests.studies.study_parts import STUDIES, part_of

from temperance.testing.urns.model import distance

STUDY = STUDIES / "subsample_annealing"
part = part_of(STUDY)


def test_coarse_bins_are_those_of_the_model(part, seed):
    runs = part("urn_runs")
    urns = runs.urns_of(500)
    counts = urns.draw(np.random.default_rng(seed), 200)
    fine = urns.binned(counts, runs.FINE_BINS)
    assert runs.coarse(fine, runs.NUM_BINS) == pytest.approx(urns.binned(counts, runs.NUM_BINS))
    assert (urns.num_red, urns.num_blue) == (200, 300)


def test_weighted_runs_are_nearer_than_unweighted(part, seed):
    runs = part("urn_runs")
    urns = runs.urns_of(50)
    counts, logs = urns.anneal(np.random.default_rng(seed), 1, 100_000)
    told = runs.weighed(urns, counts, logs, 5)
    truth = urns.binned_posterior(5)
    plain = distance(urns.binned(counts, 5), truth, len(counts)).value
    weighted = distance(np.array(told["weighted_bins"]), truth, len(counts)).value
    assert weighted < 0.5 * plain
    gap = abs(told["log_evidence"] - told["true_log_evidence"])
    assert gap < 5 * told["log_evidence_error"] < 1


def test_a_needed_duration_is_below_the_promised(part):
    scaling = part("scaling")
    row = next(r for r in scaling.experiments() if r.problem == "barrier-0.2" and r.num_rows == 300)
    found = scaling.run_modes(row, None)
    assert found["needed"] < found["promised"] < found["cold"]
    assert found["distance"] == pytest.approx(found["by_steps"], abs=1e-8)
    modes = scaling.TwoModeEnergy(row.num_rows, scaling.GAP, found["barrier"])
    assert modes.distance(modes.annealed(found["needed"])) == pytest.approx(scaling.EPSILON)


def test_relaxation_by_two_eigenvalues(part):
    scaling = part("scaling")
    row = next(r for r in scaling.experiments() if r.kind == "urn-relaxation" and r.num_rows == 40)
    assert scaling.run_relaxation(row, None)["relaxation"] / 1600 == pytest.approx(0.796, abs=5e-4)


@pytest.mark.slow
def test_a_little_of_everything(tmp_path):
    command = [sys.executable, str(STUDY / "run.py"), "--smoke", "--out", str(tmp_path)]
    command += ["--parts", "figure2", "scaling"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "tables.md").read_text()
    for title in ("Figure 2", "budget of 10 N", "Weighted annealing", "Relaxation", "barrier"):
        assert title in page
    assert (tmp_path / "figure2.png").exists()
    assert (tmp_path / "scaling.png").exists()
