"""Does a kernel leave a law invariant, and is it reversible? Tests whose p-values are honest.

*Invariance.* Draw x ~ pi exactly, take k steps, and compare with y ~ pi drawn afresh. Over
replicates everything is independent, so two-sample tests hold however slowly the kernel mixes.
k is more than one on purpose: an error of 8 % in the temperature moves the law by next to nothing
in one step and by all of it in twenty. Each statistic is compared in its mean (Welch) and in its
law (Kolmogorov-Smirnov).

*Reversibility.* From x ~ pi a reversible kernel makes (x, x') exchangeable, so that
E[s_i(x) s_j(x') - s_j(x) s_i(x')] = 0 for all statistics i, j.

*False alarms* are budgeted by algorithm 3 of Gandy and Scott (2020, "Unit testing for MCMC and
other Monte Carlo methods"). With k stages, beta_1 = alpha/k, gamma = beta_1^(1/k), and q the
smallest p-value times their number, on fresh draws at each stage:

    q <= beta_i           reject
    q > gamma + beta_i    pass
    else                  go on, with more draws and beta_{i+1} = beta_i / gamma

Stage i is reached with probability at most gamma^(i-1), so that each costs at most alpha/k and all
of them alpha.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy import stats

from temperance._types import Key

State = TypeVar("State")
Step = Callable[[Key, State], State]
Draw = Callable[[Key], State]
Statistics = Callable[[State], Float[Array, " statistics"]]

ALPHA, STAGES, GROWTH = 1e-5, 7, 2
# Two programs that compute one statistic differ by rounding, which is not movement.
ROUNDING = 1e-9


class Verdict(NamedTuple):
    """What a test says. `passed` is `lawful and moving`.

    `p_values` are the last stage's, before Bonferroni; `sizes` the replicates of each stage;
    `moved` how often one step changes each statistic. A frozen kernel is lawful and does not pass.
    """

    passed: bool
    lawful: bool
    moving: bool
    p_values: np.ndarray
    sizes: tuple[int, ...]
    moved: np.ndarray


class Replicates(NamedTuple):
    """Statistics of exact draws, after one step, after all steps, and of a second exact batch."""

    before: np.ndarray
    once: np.ndarray
    after: np.ndarray
    fresh: np.ndarray

    @property
    def moved(self) -> np.ndarray:
        """How often one step changes each statistic, by more than rounding does."""
        jump = np.abs(self.once - self.before)
        size = np.abs(self.before) + self.before.std(axis=0)
        return np.mean(jump > ROUNDING * size, axis=0)


def invariance(
    step: Step,
    draw_exact: Draw,
    statistics: Statistics,
    *,
    num_steps: int = 10,
    seed: int = 0,
    num_replicates: int = 4096,
    band: tuple[float, float] = (0.05, 1.0),
    alpha: float = ALPHA,
) -> Verdict:
    """Whether `step` leaves the law of `draw_exact` invariant; a right kernel fails with `alpha`.

    Statistics should be bounded or light-tailed, and some should couple the state's parts: a
    kernel may be right in every marginal and wrong in the joint law. One step must change each of
    them with a probability within `band`, or the kernel is not moving and nothing was tested.
    """
    source = partial(replicates, step, draw_exact, statistics, num_steps, num_replicates)
    return _judge(source, compare, num_replicates, seed, band, alpha)


def reversibility(
    step: Step,
    draw_exact: Draw,
    statistics: Statistics,
    *,
    num_steps: int = 1,
    seed: int = 0,
    num_replicates: int = 4096,
    band: tuple[float, float] = (0.05, 1.0),
    alpha: float = ALPHA,
) -> Verdict:
    """Whether (x, x') is exchangeable for x ~ `draw_exact` and x' after `num_steps`.

    Give at least two statistics, roughly centred and different in kind (a coordinate and another's
    square): what is tested is whether a change in one leads or follows a change in the other.
    """
    source = partial(replicates, step, draw_exact, statistics, num_steps, num_replicates)
    return _judge(source, exchangeable, num_replicates, seed, band, alpha)


def replicates(
    step: Step,
    draw_exact: Draw,
    statistics: Statistics,
    num_steps: int,
    num_replicates: int,
    key: Key,
) -> Replicates:
    """`num_replicates` independent runs of `num_steps`.

    Drawing and stepping are two programs, so that many kernels share the first, and the number of
    steps is no part of either.
    """
    key_start, key_steps, key_fresh = jax.random.split(key, 3)
    start, before = _draw(draw_exact, statistics, jax.random.split(key_start, num_replicates))
    _, fresh = _draw(draw_exact, statistics, jax.random.split(key_fresh, num_replicates))
    keys = jax.random.split(key_steps, num_replicates)
    once, after = _advance(step, statistics, start, keys, jnp.asarray(num_steps))
    return Replicates(*map(np.asarray, (before, once, after, fresh)))


@eqx.filter_jit
def _draw(draw_exact: Any, statistics: Any, keys: Array) -> tuple[Any, Array]:
    states = jax.vmap(draw_exact)(keys)
    # A draw and a step may disagree about weak types, which a loop's carry may not.
    states = jax.tree.map(lambda leaf: leaf.astype(leaf.dtype), states)
    return states, jax.vmap(statistics)(states)


@eqx.filter_jit
def _advance(step: Any, statistics: Any, states: Any, keys: Array, num_steps: Array) -> Any:
    def one(state: Any, key: Key) -> tuple[Array, Array]:
        def body(i: Array, carry: tuple[Any, Array]) -> tuple[Any, Array]:
            state, first = carry
            state = step(jax.random.fold_in(key, i), state)
            return state, jnp.where(i == 0, statistics(state), first)

        end, first = jax.lax.fori_loop(0, num_steps, body, (state, statistics(state)))
        return first, statistics(end)

    return jax.vmap(one)(states, keys)


def compare(found: Replicates) -> np.ndarray:
    """p-values that the laws after the steps and of the fresh draws are one."""
    columns = zip(found.after.T, found.fresh.T, strict=True)
    return np.array([p for one, two in columns for p in _two_samples(one, two)])


def exchangeable(found: Replicates) -> np.ndarray:
    """p-values that (x, x') and (x', x) have one law."""
    before, after = found.before, found.after
    rows, columns = np.triu_indices(before.shape[1], 1)
    if not rows.size:
        raise ValueError("reversibility needs at least two statistics to set against each other")
    lead = before[:, rows] * after[:, columns] - before[:, columns] * after[:, rows]
    return np.array([_mean_zero(column) for column in lead.T])


def sequential(
    p_values: Callable[[int], np.ndarray],
    alpha: float = ALPHA,
    stages: int = STAGES,
    growth: int = GROWTH,
) -> tuple[bool, np.ndarray, list[int]]:
    """Gandy and Scott's rule: whether to pass, the last p-values, and each stage's size.

    `p_values(size)` must draw `size` times as many replicates as `p_values(1)`, all of them new.
    """
    beta = alpha / stages
    gamma = beta ** (1 / stages)
    sizes: list[int] = []
    found = np.ones(1)
    for stage in range(stages):
        sizes.append(growth**stage)
        found = np.asarray(p_values(sizes[-1]))
        q = float(found.min() * found.size)
        # What is not a number is no evidence for the kernel.
        if not q > beta:
            return False, found, sizes
        if q > gamma + beta:
            break
        beta /= gamma
    return True, found, sizes


def _judge(
    source: Callable[[Key], Replicates],
    p_values: Callable[[Replicates], np.ndarray],
    num_replicates: int,
    seed: int,
    band: tuple[float, float],
    alpha: float,
) -> Verdict:
    keys = iter_keys(seed)
    moved: list[np.ndarray] = []

    def stage(size: int) -> np.ndarray:
        parts = [source(next(keys)) for _ in range(size)]
        found = Replicates(*(np.concatenate(column) for column in zip(*parts, strict=True)))
        moved.append(found.moved)
        return p_values(found)

    lawful, found, sizes = sequential(stage, alpha)
    low, high = band
    moving = bool((moved[-1] >= low).all() and (moved[-1] <= high).all())
    counts = tuple(size * num_replicates for size in sizes)
    return Verdict(lawful and moving, lawful, moving, found, counts, moved[-1])


def iter_keys(seed: int) -> Any:
    """Keys without end from one seed."""
    root = jax.random.key(seed)
    i = 0
    while True:
        yield jax.random.fold_in(root, i)
        i += 1


def _two_samples(one: np.ndarray, two: np.ndarray) -> tuple[float, float]:
    if not (np.isfinite(one).all() and np.isfinite(two).all()):
        return 0.0, 0.0
    error = np.sqrt(one.var(ddof=1) / one.size + two.var(ddof=1) / two.size)
    same_law = stats.ks_2samp(one, two, method="asymp")
    return _normal_p(one.mean() - two.mean(), error), float(np.asarray(same_law)[1])


def _mean_zero(values: np.ndarray) -> float:
    if not np.isfinite(values).all():
        return 0.0
    return _normal_p(values.mean(), values.std(ddof=1) / np.sqrt(values.size))


def _normal_p(difference: float, error: float) -> float:
    if error == 0:
        return 1.0 if difference == 0 else 0.0
    return float(2 * stats.norm.sf(abs(difference) / error))
