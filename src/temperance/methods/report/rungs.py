"""What every run says of its draws, every ladder of its rungs, and swaps of what they exchanged."""

from typing import Any

import numpy as np

from temperance.methods.report.piece import Arrays, Piece, tempering

# Statistics of a draw that a sampler or its move leave, by name.
LEFT = (
    "lp", "transition_acceptance", "log_ratio", "batch_variance", "batch_raised", "batch_trusted",
    "beta", "control", "rung",
)  # fmt: skip


class Draws(Piece):
    """Acceptance and divergences at the target, and what sampler and move leave of each draw."""

    def stats(self, run: Any) -> dict[str, np.ndarray]:
        draws = run.draws
        stats = {
            "acceptance_rate": draws["acceptance"][:, :, -1].mean(axis=-1),
            "diverging": draws["diverging"][:, :, -1] > 0,
        }
        stats |= {name: draws[name] for name in LEFT if name in draws}
        if "batch_rows" in draws:
            by_rung = draws["batch_rows"].ndim == 3
            stats["batch_rows"] = draws["batch_rows"].sum(-1) if by_rung else draws["batch_rows"]
        return stats


class Rungs(Piece):
    """Each rung's power, steps, acceptance and evaluations."""

    def arrays(self, run: Any) -> Arrays:
        draws, sampler = run.draws, run.sampler
        group: Arrays = {
            "step_size": (("rung", "part"), np.asarray(sampler.params.step_size)),
            "move_acceptance": (("rung", "part"), draws["acceptance"].mean(axis=(0, 1))),
            "diverging_rate": (("rung",), draws["diverging"].mean(axis=(0, 1))),
            "num_evaluations": (
                ("rung",),
                draws["num_evaluations"].sum(axis=(0, 1)) * run.sweeps_per_draw,
            ),
        }
        # A ladder of somebody's own need not be one of powers.
        betas = getattr(sampler.ladder, "betas", None)
        return group if betas is None else group | {"beta": (("rung",), np.asarray(betas))}

    def facts(self, tree: Any) -> dict[str, Any]:
        return {"rungs": tempering(tree).sizes["rung"]}


class Sizes(Piece):
    """Each rung's number of rows."""

    def arrays(self, run: Any) -> Arrays:
        return {"size": (("rung",), np.asarray(run.sampler.ladder.sizes))}

    def facts(self, tree: Any) -> dict[str, Any]:
        return {"rows by rung": tempering(tree)["size"].values}


# A pair that hardly swaps; round trips in all chains together, for each of them, that are few.
LOW_SWAP, FEW_TRIPS = 0.1, 5


class Swaps(Piece):
    """Acceptance by pair, the communication barrier, round trips, and where replicas are."""

    pictures = ("ladder", "replica paths")

    def arrays(self, run: Any) -> Arrays:
        draws = run.draws
        group: Arrays = {}
        if "refreshed" in draws:
            group["refresh_rate"] = ((), draws["refreshed"].mean())
        if "components" in draws:
            names = ("chain", "draw", "sweep", "rung", "component")
            group["components"] = (names, draws["components"])
        rejection = 1 - swap_rates(draws)
        return group | {
            "swap_acceptance": (("pair",), 1 - rejection),
            "barrier": ((), rejection.sum()),
            "round_trips": (("chain",), draws["round_trips"][:, -1] - draws["round_trips"][:, 0]),
            "replica": (("chain", "draw", "rung"), draws["replica"].astype(np.int32)),
        }

    def facts(self, tree: Any) -> dict[str, Any]:
        ladder = tempering(tree)
        return {
            "round trips by chain": ladder["round_trips"].values,
            "communication barrier": float(ladder["barrier"]),
            "swap acceptance": ladder["swap_acceptance"].values,
        }

    def warnings(self, tree: Any) -> list[str]:
        few = few_trips(tree, "draw more, or give more rungs")
        narrow, words = _narrowest(tree)
        if few and narrow < LOW_SWAP:
            num_rungs = tempering(tree).sizes["pair"] + 1
            words = f"{words}: replicas cannot pass; give more than {num_rungs} rungs"
            return [f"{words}, or warm up longer", *few]
        return few

    def notes(self, tree: Any) -> list[str]:
        narrow, words = _narrowest(tree)
        if narrow >= LOW_SWAP or few_trips(tree, ""):
            return []
        trips = int(tempering(tree)["round_trips"].sum())
        return [f"{words}, and still replicas made {trips} round trips; more rungs make it shorter"]


def _narrowest(tree: Any) -> tuple[float, str]:
    """The least swap acceptance of a pair, and which pair it is in words."""
    rates = tempering(tree)["swap_acceptance"].values
    worst = int(np.argmin(rates))
    return rates[worst], f"rungs {worst} and {worst + 1} hardly swap ({rates[worst]:.1%})"


def few_trips(tree: Any, what_to_do: str) -> list[str]:
    """A warning where round trips are few: five a chain on average, or none in one of them.

    Chains are independent, so that the modes' shares are known by the trips of all of them. In
    single chains of right runs numbers below five are common where the average is eight.
    """
    trips = tempering(tree)["round_trips"].values
    if trips.sum() >= FEW_TRIPS * trips.size and trips.min() > 0:
        return []
    draws = tree["posterior"].sizes["draw"]
    words = (
        f"few round trips from base to target and back: {int(trips.sum())} in all, and "
        f"{int(trips.min())} in one of {trips.size} chains of {draws} draws (want {FEW_TRIPS} a "
        f"chain): how often each mode is visited is not yet to be trusted; {what_to_do}"
    )
    return [words]


def swap_rates(draws: dict[str, np.ndarray]) -> np.ndarray:
    """Each pair's mean acceptance, over the sweeps in which it is known."""
    known = draws["swap_acceptance"].mean(axis=(0, 1))
    if "swap_tried" not in draws:
        return known
    often = np.minimum(draws["swap_tried"], 1.0).mean(axis=(0, 1))
    return known / np.where(often > 0, often, 1.0)
