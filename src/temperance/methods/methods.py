"""The methods that `sample` knows by name, their options, and who found them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from temperance.errors import ArgumentError, unknown_name
from temperance.moves.move import AbstractMove
from temperance.moves.blackjax import nuts, slice_sampling
from temperance.moves.hmc import hmc
from temperance.moves.mala import mala
from temperance.moves.metropolis import metropolis
from temperance.moves.minibatch.mint import mint


@dataclass(frozen=True)
class Method:
    """A method's one-line description, its options and the papers it rests on.

    `base` is what it heats towards: nothing, the prior or base that the problem comes with, that or
    a fit where there is none, or a fit unless a Target comes with a base.
    """

    name: str
    summary: str
    options: Mapping[str, str]
    references: tuple[str, ...]
    base: Literal["none", "own", "own or fitted", "fitted"] = "own"
    evidence: bool = False
    move: str = "hmc"


LADDER_OPTIONS = {
    "num_rungs": "number of rungs (default: chosen from the measured barrier)",
    "betas": "the rungs' powers, increasing to 1; given betas are kept as they are",
    "hottest": "the smallest beta (default 0: the prior or base itself)",
}

SUBSAMPLE_OPTIONS = {
    "num_rungs": "number of rungs (default: chosen from the measured barrier)",
    "sizes": "rows of each rung, increasing to all of them, or shares to 1.0; kept as given",
    "hottest": "rows of the smallest subsample, or its share (default: from a pilot)",
    "strata": "a label for each row: every rung has its share of each label",
}

ENERGY_OPTIONS = {
    "num_rungs": "number of rungs (default: from the hottest temperature)",
    "hottest": "the highest temperature (default: from a pilot)",
    "temperatures": "the rungs' temperatures, decreasing to 1; kept as they are",
    "levels": "energies below which the hot rungs are flat, with temperatures; kept as they are",
    "jump_probability": "how often a step jumps (default 0.25)",
    "capacity": "states that an energy ring holds (default: as fits some megabytes)",
    "num_fill": "steps of each hot rung that fill its rings (default 4 num_warmup)",
    "sweeps_per_draw": "steps for each kept draw (default 8)",
}

BASE_OPTIONS = {
    "base": "what to heat towards: prior, advi, fits, a Fit, or a density with draw(key)",
}

CONTINUOUS_OPTIONS = BASE_OPTIONS | {
    "log_zeta": "a guess of log Z that is kept (default: learnt in warm-up)",
    "sweeps_per_draw": "steps for each kept draw (default 4)",
}

ANNEAL_OPTIONS = BASE_OPTIONS | {
    "num_rungs": "betas of an anneal (default: from the measured barrier)",
    "betas": "the betas themselves, from 0 to 1",
    "conditional_ess": "choose betas by their conditional effective size, such as 0.99",
    "by_rows": "add rows instead of heat: nested subsamples from the prior on",
    "sizes": "the rows of each such subsample, increasing to all of them; kept as given",
    "strata": "a label for each row: every subsample has its share of each label",
}

METHODS = {
    method.name: method
    for method in (
        Method("plain", "the inner move alone", {}, (), base="none"),
        Method(
            "pt",
            "parallel tempering, hot by powers",
            LADDER_OPTIONS
            | {
                "scheme": "swaps: deo (default), seo or sweep",
                "sweeps_per_draw": "sweeps for each kept draw (default 8)",
                "swaps_per_sweep": "rounds of swaps in a sweep (default 2; 1 for sweep)",
            },
            ("geyer1991", "syed2022", "shirts2008", "xie2011"),
            evidence=True,
        ),
        Method(
            "spt",
            "parallel tempering, hot by nested subsamples",
            SUBSAMPLE_OPTIONS
            | {
                "refresh": "exchanges of rows between subsamples a sweep (default 0; True: some)",
                "evidence": "log evidence (default: where the ladder starts at the prior)",
                "scheme": "swaps: deo (default), seo or sweep",
                "sweeps_per_draw": "sweeps for each kept draw (default 2)",
                "swaps_per_sweep": "rounds of swaps in a sweep (default 2; 1 for sweep)",
            },
            ("vandemeent2014", "geyer1991", "syed2022", "shirts2008", "xie2011"),
            evidence=True,
        ),
        Method(
            "tt", "tempered transitions, hot by powers", LADDER_OPTIONS, ("neal1996", "syed2022")
        ),
        Method(
            "stt",
            "tempered transitions, hot by fresh subsamples",
            SUBSAMPLE_OPTIONS,
            ("vandemeent2014", "neal1996", "syed2022"),
        ),
        Method(
            "joint-ct",
            "continuous tempering: position and temperature moved together, draws weighted",
            CONTINUOUS_OPTIONS,
            ("graham2017",),
            evidence=True,
            base="fitted",
        ),
        Method(
            "gibbs-ct",
            "continuous tempering: the temperature drawn exactly between moves, draws weighted",
            CONTINUOUS_OPTIONS,
            ("graham2017", "gelman1998"),
            evidence=True,
            base="fitted",
        ),
        Method(
            "st",
            "simulated tempering, Rao-Blackwellised: one chain walks the rungs, draws weighted",
            BASE_OPTIONS
            | {
                "num_rungs": "number of rungs (default: chosen from the measured barrier)",
                "betas": "the rungs' powers, from 0 to 1; kept as they are",
                "sweeps_per_draw": "steps for each kept draw (default 4)",
            },
            ("marinari1992", "carlson2016", "geyer1995"),
            evidence=True,
            base="own or fitted",
        ),
        Method(
            "ais",
            "annealed importance sampling: independent weighted draws, unbiased for Z",
            ANNEAL_OPTIONS,
            ("neal2001",),
            evidence=True,
            base="own or fitted",
        ),
        Method(
            "bdmc",
            "annealed importance sampling there and back: log Z from below and from above",
            ANNEAL_OPTIONS
            | {"exact": "an exact draw of the target, or a function of a key that makes them"},
            ("grosse2015", "neal2001"),
            evidence=True,
            base="own or fitted",
        ),
        Method(
            "mint",
            "mini-batch tempered Metropolis: the posterior to the power 1/T from few rows a step",
            {
                "batch_size": "rows of a batch (default 100)",
                "alpha": "T = n / batch_size^alpha (default 0.5)",
                "noise": "penalty (default), common or pseudo-marginal",
                "temper_prior": "temper the prior too (default), or the likelihood alone",
                "replace": "draw batches with replacement (default: without)",
                "most_rows": "how far a batch may grow where it is too noisy (penalty)",
                "corrected": "take the tilt out of the law (pseudo-marginal)",
                "exchange": "rows exchanged a step, in place of a fresh batch (pseudo-marginal)",
                "sweeps_per_draw": "steps for each kept draw (default 1)",
            },
            ("li2017", "ceperley1999"),
            base="none",
            move="metropolis",
        ),
        Method(
            "mintee",
            "equi-energy sampler whose hot rungs look at mini-batches",
            ENERGY_OPTIONS
            | {
                "alpha": "rows of a rung: m = (n / T)^(1/alpha) (default 0.5)",
                "batch_sizes": "rows of each rung, increasing to all of them, with temperatures",
                "sweeps_per_draw": "steps for each kept draw (default 1)",
            },
            ("li2017", "kou2006"),
        ),
        Method(
            "ee",
            "equi-energy sampler, hot by powers and truncated energies",
            ENERGY_OPTIONS,
            ("kou2006",),
            base="none",
        ),
    )
}

MOVES: dict[str, Callable[[], AbstractMove]] = {
    "metropolis": metropolis,
    "mala": mala,
    "hmc": hmc,
    "nuts": nuts,
    "slice": slice_sampling,
    "mint": mint,
}

# By what a move's repr says of it.
MOVE_REFERENCES = {
    "Metropolis(": ("metropolis1953",),
    "Mala(": ("roberts1996",),
    "Hmc(": ("duane1987", "neal2011"),
    "BlackjaxMove(": ("blackjax2024",),
    "Mint(": ("li2017", "ceperley1999"),
    "PseudoMarginal(": ("li2017", "andrieu2009"),
    "Tuna(": ("zhang2020",),
    "Delayed(": ("christen2005",),
    "Ensemble(": ("neal2010",),
    "SingleSite(": ("metropolis1953",),
    "FastUpdates(": ("lewis2002",),
    "RandomGrid(": ("neal2010",),
    "Dragging(": ("neal2004",),
    "MultipleTry(": ("liu2000",),
    "Multiset(": ("leman2009", "neal2010"),
    "name='nuts'": ("hoffman2014",),
    "name='slice'": ("neal2003",),
    "name='elliptical_slice'": ("murray2010",),
}


def method_named(name: Any) -> Method:
    """The method of that name."""
    if name not in METHODS:
        raise unknown_name("method", name, METHODS)
    return METHODS[name]


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


def check_options(method: Method, options: Mapping[str, Any]) -> None:
    """Only options that the method has."""
    for name in options:
        if name not in method.options:
            known = method.options or {"(none)": ""}
            raise unknown_name(f"option of method {method.name!r}", name, known)
