"""The options of `mint`: checked, and made into its move."""

from temperance._types import Options
from temperance.moves.minibatch.batch_law import implied_beta
from temperance.problems.checks import check_count
from temperance.errors import ArgumentError
from temperance.moves.move import AbstractMove
from temperance.moves.minibatch.penalty import Mint
from temperance.moves.minibatch.mint import mint
from temperance.moves.minibatch.pseudo_marginal import PseudoMarginal
from temperance.problems.problem import Problem, Target


def mintee_options(
    problem: Problem | Target, options: Options, betas: tuple[float, ...] | None
) -> Options:
    """What method "mintee" is told beyond the equi-energy sampler."""
    if not isinstance(problem, Problem):
        raise ArgumentError(
            "method 'mintee' heats by mini-batches, and a Target has no rows: write it as a "
            "Problem with one term for each row, or use method='ee'"
        )
    alpha, sizes = options.get("alpha", 0.5), options.get("batch_sizes")
    implied_beta(problem.num_rows, problem.num_rows, alpha)
    if sizes is None:
        return {"alpha": float(alpha), "batch_sizes": None}
    if betas is None or len(sizes) != len(betas):
        raise ArgumentError(
            "batch_sizes: each belongs to a temperature; give as many temperatures, decreasing to 1"
        )
    counts = tuple(check_count("batch_sizes", size, 2) for size in sizes)
    if list(counts) != sorted(counts) or counts[-1] != problem.num_rows:
        raise ArgumentError(
            f"batch_sizes: wanted sizes that increase to all {problem.num_rows} rows, which is "
            f"what makes the target exact; got {counts}"
        )
    return {"alpha": float(alpha), "batch_sizes": counts}


def mint_move(problem: Problem | Target, proposal: AbstractMove, options: Options) -> AbstractMove:
    """The move of method "mint" on a problem's rows."""
    if not isinstance(problem, Problem):
        raise ArgumentError(
            "method 'mint' looks at a few rows a step, and a Target has none: write it as a "
            "Problem with one term for each row"
        )
    own = {name: value for name, value in options.items() if name != "sweeps_per_draw"}
    move = mint(proposal, **own)
    assert isinstance(move, Mint | PseudoMarginal)
    implied_beta(problem.num_rows, move.batch_size, move.alpha)
    return move
