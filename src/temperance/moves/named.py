"""The moves that `sample` knows by name."""

from collections.abc import Callable

from temperance.errors import ArgumentError, unknown_name
from temperance.moves.auto_step import auto_step
from temperance.moves.blackjax import nuts, slice_sampling
from temperance.moves.hmc import hmc
from temperance.moves.mala import mala
from temperance.moves.metropolis import metropolis
from temperance.moves.minibatch.mint import mint
from temperance.moves.move import AbstractMove

MOVES: dict[str, Callable[[], AbstractMove]] = {
    "metropolis": metropolis,
    "mala": mala,
    "hmc": hmc,
    "autostep": auto_step,
    "nuts": nuts,
    "slice": slice_sampling,
    "mint": mint,
}


def move_named(move: str | AbstractMove | None, default: str = "hmc") -> AbstractMove:
    """A move, by name or as it is."""
    move = default if move is None else move
    if isinstance(move, AbstractMove):
        return move
    if not isinstance(move, str):
        raise ArgumentError(
            f"move: wanted a name or a Move such as hmc(num_steps=10), got {move!r}"
        )
    if move not in MOVES:
        raise unknown_name("move", move, MOVES)
    return MOVES[move]()
