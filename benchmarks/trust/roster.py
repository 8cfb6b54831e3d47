"""Who takes part: each sampler's label, its file in samplers/, and which commit's sources it runs."""

from typing import NamedTuple


class Entry(NamedTuple):
    label: str
    module: str
    commit: str = ""  # of this repository; empty for the working tree


ROSTER = {
    "temperance": Entry("Temperance, default call", "temperance_default"),
    "former": Entry(
        "Temperance, default call of commit 1e948b9", "temperance_default", commit="1e948b9"
    ),
    "blackjax_smc": Entry("BlackJAX, adaptive tempered SMC + HMC", "blackjax_smc"),
    "numpyro_nuts": Entry("NumPyro, NUTS", "numpyro_nuts"),
    "dynesty_nested": Entry("dynesty, nested sampling", "dynesty_nested"),
}
