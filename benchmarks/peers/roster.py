"""Who takes part, and in which environment each one lives."""

import ast
from typing import NamedTuple

from environments import HERE


class Entry(NamedTuple):
    label: str
    environment: str
    optional: bool = False  # it takes minutes a run, and joins only on request


ROSTER = {
    "temperance_pt": Entry("Temperance, parallel tempering", "project"),
    "temperance_smc": Entry("Temperance, sequential Monte Carlo", "project"),
    "blackjax_smc": Entry("BlackJAX, adaptive tempered SMC + HMC", "project"),
    "tfp_replica": Entry("TFP, replica exchange + HMC", "tfp"),
    "pymc_smc": Entry("PyMC, sample_smc", "project"),
    "reddemcee_pt": Entry("reddemcee, parallel tempering", "numpy"),
    "dynesty_nested": Entry("dynesty, nested sampling", "numpy"),
    "emcee_stretch": Entry("emcee", "numpy"),
    "blackjax_nuts": Entry("BlackJAX, NUTS", "project"),
    "pocomc_smc": Entry("pocoMC", "slow", optional=True),
    "nautilus_nested": Entry("nautilus", "slow", optional=True),
}


def settings(name):
    """What was set by hand, as the sampler's own file says it. Read, not imported: its packages may not be here."""
    text = ast.get_docstring(ast.parse((HERE / "samplers" / f"{name}.py").read_text()))
    return " ".join(text.split())
