"""`mint`: mini-batch tempered Metropolis, in the three versions that paper 2 can be read as."""

import math
from typing import Any

from temperance.errors import ArgumentError, MoveError, unknown_name
from temperance.moves.mala import Mala, mala
from temperance.moves.metropolis import Metropolis, metropolis
from temperance.moves.minibatch.penalty import Mint
from temperance.moves.minibatch.pseudo_marginal import PseudoMarginal
from temperance.moves.move import AbstractMove
from temperance.problems.checks import check_count, is_number

NOISES = ("penalty", "common", "pseudo-marginal")
PROPOSALS = {"metropolis": metropolis, "mala": mala}
# Noise takes its share of the acceptance that a plain walk or Langevin step is best tuned to.
TARGET = {Metropolis: 0.234, Mala: 0.4}


def mint(
    proposal: str | AbstractMove = "metropolis",
    *,
    batch_size: int = 100,
    alpha: float = 0.5,
    noise: str = "penalty",
    temper_prior: bool = True,
    replace: bool = False,
    most_rows: int | None = None,
    corrected: bool = False,
    exchange: int = 0,
) -> AbstractMove:
    """Metropolis on batches of rows, for the posterior to the power 1/T, T = n / batch_size^alpha.

    `proposal` is "metropolis" or "mala", or such a move. `noise` says what is done about the batch:

    - "penalty": a fresh batch for both ends of a step, and a penalty that makes its noise good
      where a batch's mean is normal. The batch grows to `most_rows` (default: all) where it is too
      noisy.
    - "common": the same without penalty, as paper 2 prints it. Its law is flatter than stated.
    - "pseudo-marginal": a state keeps its batch. Exact for the position with its batch, and tilted
      for the position alone, less so if `corrected`; it sticks unless `exchange` rows of the batch
      are exchanged at each step instead of drawing it anew.

    `alpha` is above 0, and at most what makes T = 1; noise grows with batch_size^(2 alpha - 1), and
    above one "common" has no law that could be stated, while "penalty" has larger batches.
    `temper_prior=False` tempers the likelihood alone. `replace` draws batches with replacement.
    """
    kernel = _proposal(proposal)
    if noise not in NOISES:
        raise unknown_name("noise", noise, NOISES)
    batch_size = check_count("batch_size", batch_size, 2)
    if not is_number(alpha) or not 0 < alpha < math.inf:
        raise ArgumentError(f"alpha: wanted a number above 0, got {alpha!r}")
    exchange = check_count("exchange", exchange, 0)
    if most_rows is not None:
        most_rows = check_count("most_rows", most_rows, batch_size)
    own = noise == "pseudo-marginal"
    if not own and (corrected or exchange):
        raise ArgumentError(
            f"corrected and exchange are for noise='pseudo-marginal', where a state keeps its "
            f"batch; noise is {noise!r}"
        )
    if noise != "penalty" and most_rows is not None:
        raise ArgumentError(
            f"most_rows: only noise='penalty' raises its batch, and noise is {noise!r}"
        )
    shared: dict[str, Any] = {
        "batch_size": batch_size,
        "alpha": float(alpha),
        "temper_prior": bool(temper_prior),
        "replace": bool(replace),
        "langevin": isinstance(kernel, Mala),
        "step_sizes": kernel.step_sizes,
        "metric": kernel.metric,
        "target_acceptance": (TARGET[type(kernel)],),
    }
    if own:
        return PseudoMarginal(
            corrected=corrected, exchange=exchange, reversible=exchange == 0, **shared
        )
    return Mint(noise=noise, most_rows=most_rows, reversible=noise == "penalty", **shared)


def _proposal(proposal: str | AbstractMove) -> Metropolis | Mala:
    if isinstance(proposal, str):
        if proposal not in PROPOSALS:
            raise unknown_name("proposal of mint", proposal, PROPOSALS)
        return PROPOSALS[proposal]()
    if not isinstance(proposal, Metropolis | Mala):
        raise MoveError(
            f"mint proposes by 'metropolis' or 'mala', and {proposal} is neither: a longer path "
            "through the noise of one batch does not follow the tempered law"
        )
    return proposal
