"""Effective samples a second against the number of rows: the paper's figure 3.

Its caption gives the right panel 15 parameters; the text gives every sweep of the Gaussian process
D = 18, that is 20. The caption is followed.
"""

from experiment import Experiment
from settings import SAMPLERS

# (problem, D, move): the numbers of rows.
PANELS = {
    ("normal", 50, "hmc"): (64, 128, 256, 512, 1024, 2048),
    ("gp", 18, "metropolis"): (64, 128, 256, 512, 1024),
    ("gp", 13, "hmc"): (64, 128, 256, 512, 1024),
}
SECONDS = {"normal": 120.0, "gp": 600.0}
# At a small scale the end that is cheap.
ALWAYS = {("normal", 2048)}


def experiments() -> list[Experiment]:
    """The points of the three panels."""
    return [
        Experiment("draws", problem, num_rows, dimension, move, sampler, SECONDS[problem],
                   least=0.0 if (problem, num_rows) in ALWAYS and move == "hmc" else 0.05)
        for (problem, dimension, move), many in PANELS.items()
        for num_rows in many
        for sampler in SAMPLERS
    ]  # fmt: skip
