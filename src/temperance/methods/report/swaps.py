"""What swaps between rungs say: how often they are accepted, round trips, the barrier."""

from typing import Any

import numpy as np

from temperance.methods.report.piece import Arrays, Piece, tempering

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
        ladder, found = tempering(tree), []
        rates, trips = ladder["swap_acceptance"].values, ladder["round_trips"].values
        worst = int(np.argmin(rates))
        if rates[worst] < LOW_SWAP:
            found.append(
                f"rungs {worst} and {worst + 1} hardly swap ({rates[worst]:.1%}): replicas "
                f"cannot pass; give more than {len(rates) + 1} rungs, or warm up longer"
            )
        if trips.min() < FEW_TRIPS:
            found.append(
                f"a chain made {int(trips.min())} round trips in "
                f"{tree['posterior'].sizes['draw']} draws: how often it "
                "visits each mode is not yet to be trusted; draw more, or give more rungs"
            )
        return found


def swap_rates(draws: dict[str, np.ndarray]) -> np.ndarray:
    """Each pair's mean acceptance, over the sweeps in which it is known."""
    known = draws["swap_acceptance"].mean(axis=(0, 1))
    if "swap_tried" not in draws:
        return known
    often = np.minimum(draws["swap_tried"], 1.0).mean(axis=(0, 1))
    return known / np.where(often > 0, often, 1.0)
