"""The mini-batch moves themselves leave the laws invariant that they name."""

from collections.abc import Iterable
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from tests.moves.minibatch import broken_mint as broken
from tests.moves.minibatch.minibatch_rows import (
    FEW,
    Step,
    fixed,
    many_rows,
    pair_statistics,
    pairs_of,
    sampler_of,
    tempered_normal,
)

import temperance as tp
from temperance.moves.minibatch.penalty import Mint
from temperance.moves.minibatch.pseudo_marginal import PseudoMarginal
from temperance.testing import Verdict, invariance, reversibility

# A batch of its own for each state: three of six rows.

SIZE, ALPHA = 3, 0.9


def pair(kind: type[PseudoMarginal] = PseudoMarginal, **options: Any) -> PseudoMarginal:
    settings = {"batch_size": SIZE, "alpha": ALPHA, "noise": "pseudo-marginal"}
    return as_kind(kind, tp.mint(**(settings | options)))


def as_kind(kind: Any, move: Any) -> Any:
    """The same settings in a class with a slip."""
    return kind(**{field.name: getattr(move, field.name) for field in fields(move)})


def verdict_on_pair(move: PseudoMarginal, seed: int, step: float = 1.0) -> Verdict:
    right = as_kind(PseudoMarginal, move)
    return invariance(
        Step(sampler_of(move, FEW, step)), pairs_of(right, FEW), pair_statistics, num_steps=10,
        seed=seed, num_replicates=4096, band=(0.02, 1.0),
    )  # fmt: skip


PAIRS: dict[str, dict[str, Any]] = {
    "fresh": {},
    "fresh, with replacement": {"replace": True},
    "fresh, prior as it is": {"temper_prior": False},
    "fresh, corrected": {"corrected": True},
    "fresh, corrected, with replacement": {"corrected": True, "replace": True, "alpha": 0.6},
    "fresh, by langevin": {"proposal": "mala"},
    "exchange": {"exchange": 2},
    "exchange, with replacement": {"exchange": 2, "replace": True},
    "exchange, corrected": {"exchange": 2, "corrected": True},
    "exchange, by langevin": {"exchange": 2, "proposal": "mala", "corrected": True},
}


@pytest.mark.parametrize("name", PAIRS)
def test_pairs_leave_their_law_invariant(name: str, seed: int):
    verdict = verdict_on_pair(pair(**PAIRS[name]), seed)
    assert verdict.passed, verdict


PAIR_TWINS: dict[str, tuple[type[PseudoMarginal], dict[str, Any]]] = {
    "the terms of a batch that was refused": (broken.PairThatStoresTheNewTerms, {}),
    "back by its own batch": (broken.PairThatComesBackByItsOwnBatch, {"proposal": "mala"}),
    "exchanged without a ratio": (broken.PairThatExchangesFreely, {"exchange": 1}),
    "a row twice": (broken.PairWithRowsTwice, {"exchange": 1}),
    "scaled to all rows": (broken.PairScaledToAllRows, {}),
    "prior not tempered": (broken.PairUnderTheOtherPrior, {}),
    "prior tempered": (broken.PairUnderTheOtherPrior, {"temper_prior": False}),
    "what is left forgotten": (broken.PairThatForgetsWhatIsLeft, {"corrected": True}),
}


@pytest.mark.parametrize("name", PAIR_TWINS)
def test_invariance_rejects_broken_pairs(name: str, seed: int):
    kind, options = PAIR_TWINS[name]
    verdict = verdict_on_pair(pair(kind, **options), seed)
    assert verdict.moving, verdict
    assert not verdict.lawful, verdict


def test_a_fresh_pair_is_reversible_and_an_exchange_after_a_move_says_it_is_not(seed: int):
    move = pair(proposal="mala")
    assert move.reversible
    assert not pair(exchange=1).reversible
    verdict = reversibility(
        Step(sampler_of(move, FEW, 1.0)), pairs_of(move, FEW), pair_statistics, seed=seed,
        band=(0.02, 1.0),
    )  # fmt: skip
    assert verdict.passed, verdict


# One batch for both ends: many rows, whose differences are normal.


def verdict_on_mint(
    move: Mint, rows: np.ndarray, seed: int, reach: float, num_replicates: int = 4096
) -> Verdict:
    """`reach` is the step in standard deviations of the tempered law."""
    law = tempered_normal(rows, move.batch_size, move.alpha, temper_prior=move.temper_prior)
    return invariance(
        Step(sampler_of(move, rows, reach * law.deviation)), law, fixed, num_steps=12, seed=seed,
        num_replicates=num_replicates,
    )  # fmt: skip


def some_slow(names: Iterable[str], *slow: str) -> list[Any]:
    """The names, some of them for the slow tests."""
    marked = {name: pytest.param(name, marks=pytest.mark.slow) for name in slow}
    return [marked.get(name, name) for name in names]


def batch(kind: type[Mint] = Mint, **options: Any) -> Mint:
    return as_kind(kind, tp.mint(**options))


MANY = many_rows(400)
MINTS: dict[str, dict[str, Any]] = {
    "half of the power": {"batch_size": 40, "alpha": 0.5, "temper_prior": False},
    "nearly all of it": {"batch_size": 40, "alpha": 0.9},
    "with replacement": {"batch_size": 40, "alpha": 0.9, "replace": True},
    "half of all rows": {"batch_size": 200, "alpha": 0.9},
    "by langevin": {"batch_size": 40, "alpha": 0.9, "proposal": "mala"},
    "grown": {"batch_size": 40, "alpha": 1.0},
    "grown far": {"batch_size": 40, "alpha": 1.0},
    "rows that count twice": {"batch_size": 40, "alpha": 1.2},
}
# Rows that vary by more than the model says: most steps need a larger batch.
WIDE = {
    name: many_rows(400, 2.0)
    for name in ("grown far", "no penalty, wide rows", "decided by the first rows")
}
# Steps in standard deviations of the tempered law.
REACH = {"by langevin": 1.5}


@pytest.mark.parametrize(
    "name", some_slow(MINTS, "half of all rows", "rows that count twice", "grown")
)
def test_penalised_batches_leave_the_tempered_law_invariant(name: str, seed: int):
    verdict = verdict_on_mint(
        batch(**MINTS[name]), WIDE.get(name, MANY), seed, REACH.get(name, 2.4)
    )
    assert verdict.passed, verdict


MINT_TWINS: dict[str, tuple[type[Mint], dict[str, Any]]] = {
    "no penalty": (Mint, {"batch_size": 40, "alpha": 0.9, "noise": "common"}),
    "no penalty, by langevin": (
        Mint, {"batch_size": 40, "alpha": 0.9, "noise": "common", "proposal": "mala"}
    ),
    "scaled to all rows": (broken.MintScaledToAllRows, {"batch_size": 40, "alpha": 0.5}),
    "prior not tempered": (broken.MintUnderTheOtherPrior, {"batch_size": 40, "alpha": 0.5}),
    "prior tempered": (
        broken.MintUnderTheOtherPrior, {"batch_size": 40, "alpha": 0.5, "temper_prior": False}
    ),
    "what is left forgotten": (
        broken.MintThatForgetsWhatIsLeft, {"batch_size": 320, "alpha": 1.0}
    ),
    "no penalty, wide rows": (Mint, {"batch_size": 40, "alpha": 1.0, "noise": "common"}),
    "decided by the first rows": (
        broken.MintThatDecidesByItsFirstBatch, {"batch_size": 40, "alpha": 1.0}
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    "name", some_slow(MINT_TWINS, "decided by the first rows", "prior tempered")
)
def test_invariance_rejects_broken_batches(name: str, seed: int):
    kind, options = MINT_TWINS[name]
    verdict = verdict_on_mint(
        batch(kind, **options), WIDE.get(name, MANY), seed, REACH.get(name, 2.4)
    )
    assert verdict.moving, verdict
    assert not verdict.lawful, verdict
