"""The members of a run's ensembles: what the result keeps of them, and averages over them.

A draw of an ensemble move is one of K members, selected with probabilities w_k. The mean over all
of them, sum_k w_k h(x_k), has the same expectation as h at the one that was selected, and no more
variance (Rao-Blackwell). The members share their slow variables, so that the result's `ensemble`
group holds what differs between them, (chain, draw, member, ...), and `log_weight`.

Where a draw x counts for the target with a weight W(x), as it does on a walk through temperatures,
both sums of the weighted mean are averaged so: member k counts with w_k W(x_k), the draw with the
sum of these. That is then what `log_weight` holds, and `log_weight_base` the same for the base.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from temperance.problems.constrain import constrained_draws
from temperance.problems.layout import Layout
from temperance.problems.problem import Constrain

GROUP, WEIGHT = "ensemble", "log_weight"
KEPT = {"member_log_weight": WEIGHT, "member_log_weight_base": "log_weight_base"}


def member_group(
    draws: dict[str, np.ndarray], layout: Layout, fast_index: np.ndarray, constrain: Constrain
) -> dict[str, np.ndarray]:
    """What differs between the members of each draw, by name; empty if no members were kept.

    That is the fast leaves and, of what `constrain` makes of a position, whatever they decide.
    """
    if "members" not in draws:
        return {}
    members = draws["members"]
    chains, num_draws, count, _ = members.shape
    whole = np.repeat(draws["position"][:, :, None], count, axis=2)
    whole[..., fast_index] = members
    flat = whole.reshape(chains, num_draws * count, -1)
    named = layout.split(flat)
    if constrain is not None:
        named |= constrained_draws(constrain, layout, flat)
    shaped = {n: v.reshape(chains, num_draws, count, *v.shape[2:]) for n, v in named.items()}
    differing = {n: v for n, v in shaped.items() if np.any(v != v[:, :, :1])}
    return differing | {name: draws[kept] for kept, name in KEPT.items() if kept in draws}


def log_totals(tree: Any, weight: str) -> np.ndarray:
    """What the members of each draw count for together, (chain, draw)."""
    return np.logaddexp.reduce(tree[GROUP].dataset[weight].values, axis=2)


def over_members(
    tree: Any, function: Callable[..., Any], variables: dict[str, Any], weight: str = WEIGHT
) -> np.ndarray:
    """The mean of a function over the members of each draw, (chain, draw, ...)."""
    group = tree[GROUP].dataset
    weights = np.exp(group[weight].values - log_totals(tree, weight)[:, :, None])
    chains, num_draws, count = weights.shape

    def spread(name: str, values: np.ndarray) -> np.ndarray:
        if name in group.data_vars:
            values = group[name].values
        else:
            values = np.repeat(values[:, :, None], count, axis=2)
        return values.reshape(chains, num_draws * count, *values.shape[3:])

    found = np.asarray(function(**{n: spread(n, v) for n, v in variables.items()}), float)
    found = found.reshape(chains, num_draws, count, *found.shape[2:])
    return np.einsum("cdm,cdm...->cd...", weights, found)
