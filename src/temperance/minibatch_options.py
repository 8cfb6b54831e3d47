"""The options of `mint`: checked, and made into its move."""

from temperance._types import Options
from temperance.batch_law import implied_beta
from temperance.errors import ArgumentError
from temperance.move import AbstractMove
from temperance.moves.minibatch import Mint
from temperance.moves.mint import mint
from temperance.moves.pseudo_marginal import PseudoMarginal
from temperance.problem import Problem, Target


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
