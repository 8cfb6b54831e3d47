"""The loops of `run.py` under pytest-benchmark, and the counts, which must be exact."""

import sys
from pathlib import Path

import pytest

# The script beside this file imports its neighbours by their bare names, and so does this.
sys.path.insert(0, str(Path(__file__).parent))

import counts
import programs

from temperance.programs.scope import scope

PT = {
    "ours": lambda s, n: programs.pt_ours(s, n),
    "ours, tuned": lambda s, n: programs.pt_ours(s, n, tuned=True),
    "moves": lambda s, _: programs.pt_moves(s),
    "reinitialised": lambda s, n: programs.pt_reinitialised(s, n),
}
PLAIN = {
    "ours": lambda s, n: programs.plain_ours(s, n),
    "ours, tuned": lambda s, n: programs.plain_ours(s, n, tuned=True),
    "blackjax": lambda s, n: programs.plain_blackjax(s, n),
}


@pytest.mark.parametrize("loop", PT)
@pytest.mark.parametrize("num_chains", [1, 4])
def test_pt_sweeps(benchmark, loop, num_chains):
    benchmark.group = f"10 PT sweeps, {num_chains} chains"
    with scope("double"):
        run = PT[loop](programs.tempered(num_chains, exact_hottest=False), 10).run
        benchmark.pedantic(run, (10,), rounds=10, warmup_rounds=1)


@pytest.mark.parametrize("loop", PLAIN)
@pytest.mark.parametrize("num_chains", [1, 4])
@pytest.mark.parametrize("target", ["gaussian", "logistic"])
def test_plain_draws(benchmark, loop, num_chains, target):
    benchmark.group = f"100 plain draws, {target}, {num_chains} chains"
    with scope("double"):
        run = PLAIN[loop](programs.single(target, num_chains), 100).run
        benchmark.pedantic(run, (100,), rounds=20, warmup_rounds=1)


@pytest.mark.parametrize("exact_hottest", [True, False])
def test_a_sweep_evaluates_what_it_needs_and_no_more(exact_hottest):
    with scope("double"):
        found = counts.evaluations(exact_hottest)
    assert found["values"] == found["gradients"] == found["needed"]
