"""What every move on mini-batches of a tempered law is told, and the law that this makes."""

import equinox as eqx

from temperance.moves.minibatch.batch_law import BatchLaw, implied_beta
from temperance.rows.batches import Batches
from temperance.moves.move import AbstractMove


class AbstractBatchMove(AbstractMove):
    """A move for the posterior to the power 1/T, T = n / batch_size^alpha, that reads few rows."""

    batch_size: int = eqx.field(static=True)
    alpha: float = eqx.field(static=True)
    temper_prior: bool = eqx.field(static=True)
    replace: bool = eqx.field(static=True)
    langevin: bool = eqx.field(static=True)

    @property
    def reads_rows(self) -> bool:
        return True

    def law(self, num_rows: int) -> BatchLaw:
        """What is meant to be sampled from."""
        implied_beta(num_rows, self.batch_size, self.alpha)
        batches = Batches(num_rows, self.replace)
        return BatchLaw(batches, self.batch_size, self.alpha, self.temper_prior)
