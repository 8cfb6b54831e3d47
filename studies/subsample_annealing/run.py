"""The experiments of "Scaling nonparametric Bayesian inference via subsample-annealing" again, and more.

    python studies/subsample_annealing/run.py              # short: some minutes on two cores
    python studies/subsample_annealing/run.py --scale 1    # everything
    python studies/subsample_annealing/run.py --redraw     # tables and figures of what is kept

A finished experiment is a line of a table, and a run skips those that it finds: stop it whenever you like and start it again. A
larger scale makes more runs of each strategy. The hospital and network tables come from --data, or from the folder that
TEMPERANCE_DATA names; without it they are left out.
"""

import sys
from pathlib import Path

# What the studies share lies beside them.
sys.path.append(str(Path(__file__).parents[1]))

import figure2
import figure3
import folds
import million
import scaling
from parts import run_parts

HERE = Path(__file__).parent
PARTS = {
    "figure2": figure2, "scaling": scaling, "figure3": figure3, "folds": folds, "million": million,
}  # fmt: skip
TITLE = "Subsample annealing, rerun"
DEFAULT_SCALE, SHORTEST = 0.1, 0.5

if __name__ == "__main__":
    run_parts(__doc__, PARTS, TITLE, HERE / "results", DEFAULT_SCALE, SHORTEST)
