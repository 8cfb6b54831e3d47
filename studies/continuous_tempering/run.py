"""The experiments of "Continuously tempered Hamiltonian Monte Carlo" again, beside the paper's figures.

    python studies/continuous_tempering/run.py              # short: about ten minutes on two cores
    python studies/continuous_tempering/run.py --scale 1    # everything
    python studies/continuous_tempering/run.py --redraw     # tables and figures of what is kept

A finished experiment is a line of a table, and a run skips those that it finds: stop it whenever you like and start it again. A
larger scale makes more repetitions. The paper's systems come from --data, or from the folder that TEMPERANCE_DATA names;
without it the parts that need them are left out.
"""

import sys
from pathlib import Path

# What the studies share lies beside them.
sys.path.append(str(Path(__file__).parents[1]))

import bimodal
import boltzmann
import images
import radon
from parts import run_parts

HERE = Path(__file__).parent
PARTS = {
    "bimodal": bimodal,
    "boltzmann": boltzmann,
    "radon": radon,
    "iwae": images,
}
TITLE = "Continuously tempered HMC, rerun"
DEFAULT_SCALE = 0.1

if __name__ == "__main__":
    run_parts(__doc__, PARTS, TITLE, HERE / "results", DEFAULT_SCALE)
