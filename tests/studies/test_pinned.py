"""An experiment of a study has a core of its own, with all threads that its libraries start."""

import os
from pathlib import Path

import pytest
from tests.studies.study_parts import STUDIES, part_of

part = part_of(STUDIES / "tempering_by_subsampling")
# BlackJAX has JAX find its devices while it is imported.
THREADS = (
    "[__import__('os').sched_getaffinity(int(thread)) for thread in "
    "[__import__('blackjax'), *__import__('os').listdir('/proc/self/task')][1:]]"
)
needs_linux = pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="asks Linux")


@needs_linux
def test_every_thread_keeps_to_the_core_of_its_process(part):
    pinned = part("pinned")
    before = os.sched_getaffinity(0), dict(os.environ)
    on = pinned.cores(2)
    pool = pinned.PinnedPool(on)
    try:
        futures = [pool.submit(eval, THREADS) for _ in range(4)]
        threads = [future.result() for future in futures]
        blas = pool.submit(os.getenv, "OPENBLAS_NUM_THREADS").result()
    finally:
        pool.close()
    assert (os.sched_getaffinity(0), dict(os.environ)) == before
    assert blas == "1"
    used = [frozenset().union(*those) for those in threads]
    assert all(len(cores) == 1 for cores in used), threads
    assert min(map(len, threads)) > 1
    assert set(used) <= {frozenset({core}) for core in on}


def test_what_fails_says_so_and_leaves_the_process_free(part):
    pinned = part("pinned")
    pool = pinned.PinnedPool(pinned.cores(1))
    try:
        with pytest.raises(ZeroDivisionError):
            pool.submit(eval, "1 / 0").result()
        assert pool.submit(eval, "1 + 1").result() == 2
    finally:
        pool.close()
