"""One rung, the target, and a move there: what the stages of `plain` and `mint` share."""

from dataclasses import dataclass

from temperance.ladders.ladder import AbstractLadder, SingleRung
from temperance.ladders.row_sums import rows_alone
from temperance.moves.move import Params
from temperance.samplers.plain import Plain
from temperance.warmup.rounds import Betas, RungsSideBySide


@dataclass(frozen=True)
class OneRung(RungsSideBySide):
    """The move alone, on the target or on what a few rows say of it."""

    def initial(self) -> Betas:
        return Betas((1.0,))

    def ladder(self, rungs: Betas, *, pilot: bool = False) -> AbstractLadder:
        call = self.call
        if call.move.reads_rows:
            return rows_alone(call.problem, call.densities)
        return SingleRung(call.densities.whole)

    def sampler(self, rungs: Betas, params: Params, *, pilot: bool = False) -> Plain:
        return Plain(self.ladder(rungs), self.call.move, params)
