"""The demonstration of "MCMC using ensembles of states for problems with fast and slow variables" again, and more.

    python studies/ensembles/run.py              # short: about ten minutes on two cores
    python studies/ensembles/run.py --scale 1    # everything
    python studies/ensembles/run.py --redraw     # tables and figures of what is kept

A finished experiment is a line of a table, and a run skips those that it finds: stop it whenever you like and start it again. A
larger scale makes longer chains. The real regressions come from --data, or from the folder that TEMPERANCE_DATA names;
without it they are left out.
"""

import sys
from pathlib import Path

# What the studies share lies beside them.
sys.path.append(str(Path(__file__).parents[1]))

import demonstration
import others
import overhead
import regressions
from parts import run_parts

HERE = Path(__file__).parent
PARTS = {
    "demonstration": demonstration,
    "others": others,
    "overhead": overhead,
    "regressions": regressions,
}
TITLE = "Ensembles for fast and slow variables, rerun"
DEFAULT_SCALE, SHORTEST = 0.05, 1.0

if __name__ == "__main__":
    run_parts(__doc__, PARTS, TITLE, HERE / "results", DEFAULT_SCALE, SHORTEST)
