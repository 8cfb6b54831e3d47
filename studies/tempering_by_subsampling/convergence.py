"""R-hat against draws and against seconds: the paper's figure 2.

A Gaussian process of 512 rows and 20 parameters, HMC within. The runs are those of table 1, whose
files keep the course of R-hat; each point is the R-hat of the second half of the draws so far.
"""

from experiment import Experiment
from settings import SAMPLERS

NUM_ROWS, DIMENSION, SECONDS = 512, 18, 1800.0
STAND_IN_ROWS, STAND_IN_MOST = 128, 0.05


def experiments() -> list[Experiment]:
    """One run a sampler, longer than those of the table."""
    rows = []
    for sampler in SAMPLERS:
        rows += [
            Experiment("draws", "gp", NUM_ROWS, DIMENSION, "hmc", sampler, SECONDS,
                       least=STAND_IN_MOST),
            Experiment("draws", "gp", STAND_IN_ROWS, DIMENSION, "hmc", sampler, SECONDS,
                       most=STAND_IN_MOST),
        ]  # fmt: skip
    return rows
