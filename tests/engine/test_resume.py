"""Runs that survive: killed, damaged, stopped or lengthened, the draws stay what they were."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.shared import small_runs
from tests.shared.small_runs import assert_identical, run, uninterrupted

import temperance as tp
from temperance.engine import conductor
from temperance.engine.checkpoint import CheckpointWarning
from temperance.engine.loop import traces
from temperance.errors import CheckpointError, InterruptedRunError
from temperance.estimates.diagnostics import effective_size
from temperance.sampling import RunWarning

ROOT = Path(__file__).parents[2]


def start(*arguments: str, **environment: str) -> "subprocess.Popen[str]":
    """A process of its own, which shares compiled programs with this one."""
    paths = os.pathsep.join([str(ROOT), str(Path(tp.__file__).parents[1])])
    shared = {"PYTHONPATH": paths, "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
    return subprocess.Popen(
        [sys.executable, *arguments],
        env=os.environ | shared | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


# -- killed --------------------------------------------------------------------------------------


def kill_in(phase: str, case: str, path: Path, delay: float) -> None:
    """Run `case` elsewhere and kill it a moment after a block of `phase` was kept."""
    process = start("-m", "tests.shared.small_runs", case, str(path))
    assert process.stdout is not None
    try:
        for line in process.stdout:
            if line.startswith(phase):
                time.sleep(delay)
                break
        else:
            raise AssertionError(f"{case} never came to {phase}: {process.communicate()[1]}")
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert process.returncode == -signal.SIGKILL


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "phases"),
    [
        ("pt", ["pilot-0", "warm", "draw"]),
        ("tt", ["warm", "draw"]),
        ("plain", ["warm"]),
        ("smc", ["temper", "draw"]),
    ],
)
def test_killed_again_and_again_the_draws_are_the_same(
    case: str, phases: list[str], tmp_path: Path, seed: int
) -> None:
    rng = random.Random(f"{seed} {case}")
    path = tmp_path / "run.zarr"
    for phase in phases:
        kill_in(phase, case, path, rng.uniform(0.0, 0.1))
    assert_identical(run(case, checkpoint=path), uninterrupted(case))


def test_a_sampler_built_by_hand_survives_too(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Its own arrays are made outside of `sample`, so in the precision that JAX has there.
    monkeypatch.setenv("JAX_ENABLE_X64", "1")
    path = tmp_path / "run.zarr"
    kill_in("draw", "hand", path, random.Random(seed).uniform(0.0, 0.1))
    assert_identical(run("hand", checkpoint=path), uninterrupted("hand"))


# -- lengthened, or already there ----------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, marks=[pytest.mark.slow] if case in small_runs.LONGER else [])
        for case in small_runs.CASES
        if case not in small_runs.WHOLE
    ],
)
def test_more_draws_and_fewer_from_a_finished_run(case: str, tmp_path: Path) -> None:
    path = tmp_path / "run.zarr"
    few, many = small_runs.SHORT["num_draws"], 70
    run(case, checkpoint=path)
    longer = run(case, checkpoint=path, num_draws=many)
    assert_identical(longer, uninterrupted(case, many))
    blocks, before = sorted(path.glob("block-*")), dict(traces)
    assert_identical(run(case, checkpoint=path, num_draws=many), longer)
    assert_identical(run(case, checkpoint=path, num_draws=few), uninterrupted(case))
    assert sorted(path.glob("block-*")) == blocks
    assert traces == before


def test_a_run_of_particles_is_of_so_many(tmp_path: Path) -> None:
    """Other particles would have met other temperatures; the same ones go on where they were."""
    path = tmp_path / "run.zarr"
    with pytest.raises(InterruptedRunError):
        run("smc", checkpoint=path, max_seconds=1e-9)
    with pytest.raises(CheckpointError, match="'num_draws': 40 in the checkpoint, 70 now"):
        run("smc", checkpoint=path, num_draws=70)
    # No steps warm up, so that their number is none of the run's.
    tree = run("smc", checkpoint=path, num_warmup=7)
    assert_identical(tree, uninterrupted("smc"))
    assert tree.attrs["num_warmup"] == 0
    blocks = sorted(path.glob("block-*"))
    assert_identical(run("smc", checkpoint=path), tree)
    assert sorted(path.glob("block-*")) == blocks


# -- another run ---------------------------------------------------------------------------------


def with_constant(values: Any) -> Callable[..., Any]:
    constant = jnp.asarray(values)
    return lambda x, rows: small_runs.terms(x, rows) + 0.0 * constant[0]


def other_formula(x: Any, rows: Any) -> Any:
    return 2.0 * small_runs.terms(x, rows)


def other_draw(key: Any) -> Any:
    return {"mean": 2.0 * jax.random.normal(key, (small_runs.DIMENSION,))}


OTHERS: dict[str, tuple[dict[str, Any], str]] = {
    "values of the data": ({"data": small_runs.ROWS + 1}, "the data array: other values"),
    "rows": ({"data": small_runs.ROWS[:5]}, r"float64\[6\] in the checkpoint, float64\[5\] now"),
    "formula": ({"terms": other_formula}, "'log_density': another formula"),
    "constant": ({"terms": with_constant([2.0, 1.0])}, "other values of what it closes over"),
    "prior": ({"draw_prior": other_draw}, "the model function 'draw'"),
    "method": ({"method": "tt"}, '\'method\': "pt" in the checkpoint, "tt" now'),
    "move": ({"move": "mala"}, "the option 'move'.*Metropolis.*Mala"),
    "move's option": ({"move": tp.metropolis(scale=2.0)}, r"the option 'move'.*2\.0"),
    "seed": ({"seed": 2}, "the seed: 1 in the checkpoint, 2 now"),
    "chains": ({"num_chains": 3}, "'num_chains': 2 in the checkpoint, 3 now"),
    "warm-up": ({"num_warmup": 61}, "'num_warmup': 60 in the checkpoint, 61 now"),
    "rungs": ({"num_rungs": 5}, "'num_rungs': null in the checkpoint, 5 now"),
    "betas": (
        {"betas": [0.0, 0.5, 1.0]},
        r"'betas': null in the checkpoint, \[0.0, 0.5, 1.0\] now",
    ),
    "min_beta": ({"min_beta": 0.01}, "'min_beta': 0.0 in the checkpoint, 0.01 now"),
    "scheme": ({"scheme": "seo"}, '\'scheme\': "deo" in the checkpoint, "seo" now'),
    "sweeps": ({"sweeps_per_draw": 1}, "'sweeps_per_draw': 8 in the checkpoint, 1 now"),
    "precision": ({"precision": "single"}, "64-bit numbers are enabled: true in the .*, false now"),
}


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Checkpoints of runs that were stopped at once, by what their terms are."""
    paths = {}
    for name, terms in {"plain": small_runs.terms, "closure": with_constant([1.0, 1.0])}.items():
        paths[name] = tmp_path_factory.mktemp(name) / "run.zarr"
        problem = small_runs.make_problem(terms=terms)
        with pytest.raises(InterruptedRunError):
            run("pt", problem=problem, checkpoint=paths[name], max_seconds=1e-9)
    return paths


@pytest.mark.parametrize("what", OTHERS)
def test_the_checkpoint_of_another_run_is_refused(what: str, begun: dict[str, Path]) -> None:
    changes, match = OTHERS[what]
    parts = {n: v for n, v in changes.items() if n in ("data", "terms", "draw_prior")}
    options = {name: value for name, value in changes.items() if name not in parts}
    path = begun["closure" if what == "constant" else "plain"]
    before = dict(traces)
    with pytest.raises(CheckpointError, match=match) as caught:
        run("pt", problem=small_runs.make_problem(**parts), checkpoint=path, **options)
    first, *lines, last = str(caught.value).splitlines()
    assert "belongs to another run" in first
    assert "choose another path" in last
    # Another method has other defaults, and in another precision the program is another.
    assert len(lines) == 1 or parts or what in ("method", "precision")
    assert traces == before


def test_what_does_not_change_the_draws_is_not_another_run(begun: dict[str, Path]) -> None:
    """Options given as what they are by default, and functions of another name."""

    def renamed(position: Any, observed: Any) -> Any:
        return -0.5 * (observed - jnp.sum(position["mean"])) ** 2 - 0.5 * np.log(2 * np.pi)

    with pytest.raises(InterruptedRunError):
        run(
            "pt",
            problem=small_runs.make_problem(terms=renamed),
            checkpoint=begun["plain"],
            move=tp.metropolis(),
            num_rungs=None,
            min_beta=0,
            scheme="deo",
            sweeps_per_draw=8,
            num_draws=7,
            target_ess=3.0,
            max_seconds=1e-9,
        )


def test_a_hand_built_sampler_is_known_by_its_parts(tmp_path: Path) -> None:
    path = tmp_path / "run.zarr"
    with pytest.raises(InterruptedRunError):
        run("hand", checkpoint=path, max_seconds=1e-9)
    with pytest.raises(CheckpointError, match=r"the option 'method'.*0\.7.*0\.9"):
        run("hand", checkpoint=path, method=small_runs.by_hand(0.9))
    sampler = small_runs.by_hand()
    ladder = tp.GeometricLadder(
        small_runs.log_prior, lambda x: 2.0 * small_runs.log_likelihood(x), sampler.ladder.betas
    )
    other = tp.ParallelTempering(ladder, sampler.move, sampler.params)
    with pytest.raises(CheckpointError, match=r"component 1 of the ladder.*another formula"):
        run("hand", checkpoint=path, method=other)


# -- damaged -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("finished") / "run.zarr"
    with small_runs.small_blocks():
        run("plain", checkpoint=path)
    return path


def first_block(path: Path, phase: str) -> Path:
    blocks = sorted(path.glob("block-*"))
    phases = [json.loads((b / "zarr.json").read_text())["attributes"]["phase"] for b in blocks]
    return blocks[next(i for i, name in enumerate(phases) if name.startswith(phase)) + 1]


def truncate(block: Path) -> None:
    largest = max((p for p in block.rglob("c*") if p.is_file()), key=lambda p: p.stat().st_size)
    largest.write_bytes(largest.read_bytes()[:-3])


def flip(block: Path) -> None:
    content = bytearray((block / "state-00000" / "c.0.0").read_bytes())
    content[-1] ^= 4
    (block / "state-00000" / "c.0.0").write_bytes(content)


@pytest.mark.parametrize("phase", ["warm-0", "draw-0"])
@pytest.mark.parametrize("damage", [truncate, flip, shutil.rmtree])
def test_after_damage_the_draws_are_the_same(
    phase: str, damage: Callable[[Path], None], finished: Path, tmp_path: Path
) -> None:
    path = tmp_path / "run.zarr"
    shutil.copytree(finished, path)
    damage(first_block(path, phase))
    with pytest.warns(CheckpointWarning, match=f"is damaged.*last good one.*{phase}"):
        tree = run("plain", checkpoint=path)
    assert_identical(tree, uninterrupted("plain"))
    assert_identical(run("plain", checkpoint=path), tree)


# -- stopped -------------------------------------------------------------------------------------


def after_block(
    monkeypatch: pytest.MonkeyPatch, drawing: bool, act: Callable[[conductor.Conductor], None]
) -> None:
    """Have `act` done once, after the second block of warm-up or of draws."""
    left = iter([False, True])

    def words(self: conductor.Conductor, draws: Any) -> str:
        if (draws is not None) == drawing and next(left, False):
            act(self)
        return ""

    monkeypatch.setattr(conductor.Conductor, "_words", words)


def press_ctrl_c(_: conductor.Conductor) -> None:
    signal.raise_signal(signal.SIGINT)


def let_time_pass(running: conductor.Conductor) -> None:
    running.began -= 1e6


STOPS = {"interrupted": (press_ctrl_c, None), "max_seconds": (let_time_pass, 1e5)}


@pytest.mark.parametrize("why", STOPS)
def test_stopped_among_the_draws_keeps_them(
    why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    act, limit = STOPS[why]
    handler = signal.getsignal(signal.SIGINT)
    path, wanted = tmp_path / "run.zarr", small_runs.SHORT["num_draws"]
    with monkeypatch.context() as patch, small_runs.small_blocks():
        after_block(patch, True, act)
        with pytest.warns(RunWarning, match=rf"(interrupted|out of time) after \d+ of {wanted}"):
            tree = run("pt", checkpoint=path, max_seconds=limit)
    got = tree["posterior"].sizes["draw"]
    assert tree.attrs["stopped"] == why
    assert 2 <= got < wanted
    assert_identical(tree, uninterrupted("pt"), draws=got)
    assert signal.getsignal(signal.SIGINT) is handler
    whole = run("pt", checkpoint=path, max_seconds=limit)
    assert whole.attrs["stopped"] == ""
    assert_identical(whole, uninterrupted("pt"))


@pytest.mark.parametrize("why", STOPS)
def test_stopped_before_the_first_draw_there_is_nothing_to_give(
    why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    act, limit = STOPS[why]
    path = tmp_path / "run.zarr"
    with monkeypatch.context() as patch, small_runs.small_blocks():
        after_block(patch, False, act)
        with pytest.raises(InterruptedRunError, match="run the same call again to go on"):
            run("plain", checkpoint=path, max_seconds=limit)
    assert sorted(path.glob("block-*"))
    assert_identical(run("plain", checkpoint=path), uninterrupted("plain"))
    with pytest.raises(InterruptedRunError, match="give checkpoint= to be able to go on"):
        run("plain", max_seconds=1e-9)


def test_a_second_ctrl_c_does_not_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def twice(running: conductor.Conductor) -> None:
        press_ctrl_c(running)
        press_ctrl_c(running)

    path = tmp_path / "run.zarr"
    with monkeypatch.context() as patch, small_runs.small_blocks():
        after_block(patch, True, twice)
        with pytest.raises(KeyboardInterrupt):
            run("plain", checkpoint=path)
    assert_identical(run("plain", checkpoint=path), uninterrupted("plain"))


def test_enough_effective_draws_end_a_run(tmp_path: Path) -> None:
    path, wanted = tmp_path / "run.zarr", 60.0
    with small_runs.small_blocks():
        tree = run("plain", checkpoint=path, num_draws=2000, target_ess=wanted)
    got = tree["posterior"].sizes["draw"]
    assert tree.attrs["stopped"] == "target_ess"
    assert got < 500
    assert tree["posterior"]["mean"].shape == (2, got, small_runs.DIMENSION)
    sizes = effective_size(tree["posterior"]["mean"].values)
    assert sizes.min() >= wanted
    # Without its last block it was not enough: a run that stops late wastes.
    last = json.loads((max(path.glob("block-*")) / "zarr.json").read_text())["attributes"]
    earlier = tree["posterior"]["mean"].values[:, : last["start"]]
    assert not effective_size(earlier).min() >= wanted
    again = run("plain", checkpoint=path, num_draws=2000, target_ess=wanted)
    assert_identical(again, tree)


def test_nobody_else_may_use_a_checkpoint_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, seen = tmp_path / "run.zarr", []

    def intrude(_: conductor.Conductor) -> None:
        with pytest.raises(CheckpointError, match="in use") as caught:
            run("plain", checkpoint=path)
        seen.append(caught)

    with monkeypatch.context() as patch:
        after_block(patch, False, intrude)
        assert_identical(run("plain", checkpoint=path), uninterrupted("plain"))
    assert len(seen) == 1
