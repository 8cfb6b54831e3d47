"""`tuna`: exact mini-batch Metropolis by Poisson counts, with its arguments checked."""

import numpy as np

from temperance.errors import ArgumentError, unknown_name
from temperance.moves.metropolis import Metropolis, metropolis
from temperance.moves.minibatch.bounds import Bounds
from temperance.moves.minibatch.poisson import Tuna
from temperance.moves.minibatch.poisson_law import PoissonLaw
from temperance.moves.move import checked_step
from temperance.problems.checks import check_count, is_number
from temperance.rows.alias_table import WeightedRows

PROPOSALS = ("metropolis", "autoregressive")
# What a walk is tuned to accept, and what draws from the Gaussian may fall to before they shorten.
TARGET = {"metropolis": 0.234, "autoregressive": 0.4}
CHUNK = 32


def tuna(
    bounds: Bounds,
    proposal: str | Metropolis | None = None,
    *,
    step_size: float | int | None = None,
    chi: float | int | None = None,
    most_rows: int | None = None,
    chunk: int = CHUNK,
) -> Tuna:
    """Exact Metropolis for the posterior that reads a few rows a step.

    `bounds` are from `tp.lipschitz`, or `tp.Bounds` of your own: wrong ones bias the draws. A
    `proposal` is "autoregressive", about the Gaussian that the bounds are around (the default where
    there is one), or "metropolis", by name or with its own scale and metric. `step_size=None` is
    tuned in warm-up; that of an autoregressive step lies in (0, 1], and 1 draws from the Gaussian.

    `chi` trades rows for noise in the decision: a step reads t + chi t^2 rows, with t the sum of
    the bounds, and the noise has a variance below (the mean square share of a bound that rows
    use) / chi. The default is the bounds' `tightness`, a guess at that square, for a variance
    below one. A step that would read more than `most_rows` (default: all) reads all of them.
    Rows are read `chunk` at a time.
    """
    if not isinstance(bounds, Bounds):
        raise ArgumentError(
            f"bounds: wanted tp.lipschitz(design, family) or a tp.Bounds, got {bounds!r}"
        )
    walk = proposal if isinstance(proposal, Metropolis) else None
    if proposal is None:
        proposal = "metropolis" if bounds.around is None else "autoregressive"
    name = proposal if isinstance(proposal, str) else "metropolis"
    if name not in PROPOSALS or not isinstance(proposal, str | Metropolis):
        raise unknown_name("proposal of tuna", proposal, PROPOSALS)
    if name == "autoregressive" and bounds.around is None:
        raise ArgumentError(
            "proposal: 'autoregressive' steps are about the Gaussian at a mode; give bounds with "
            "around=tp.laplace(problem)"
        )
    if walk is not None and step_size is not None:
        raise ArgumentError("step_size: the Metropolis move given has its own scale")
    size = walk.step_sizes[0] if walk is not None else checked_step(step_size, "step_size")
    if name == "autoregressive" and size is not None and size > 1:
        raise ArgumentError(f"step_size: an autoregressive step lies in (0, 1], got {size!r}")
    if chi is None:
        chi = bounds.tightness
    if not is_number(chi) or not 0 < chi < np.inf:
        raise ArgumentError(f"chi: wanted a positive number or None, got {chi!r}")
    chunk = check_count("chunk", chunk, 1)
    most_rows = bounds.num_rows if most_rows is None else check_count("most_rows", most_rows, 1)
    metric = (walk or metropolis()).metric if name == "metropolis" else "unit"
    return Tuna(
        bounds=bounds,
        table=WeightedRows.of(np.asarray(bounds.scales)),
        law=PoissonLaw(float(chi)),
        proposal=name,
        chunk=min(chunk, bounds.num_rows),
        most_rows=most_rows,
        step_sizes=(size,),
        metric=metric,
        target_acceptance=(TARGET[name],),
    )
