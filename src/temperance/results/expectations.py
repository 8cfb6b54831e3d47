"""What a run says of its target, and of its base: expectations with errors, and resampled draws."""

from collections.abc import Callable
from typing import Any

import numpy as np

from temperance.errors import ArgumentError, ResultError
from temperance.results.members import GROUP, log_totals, over_members
from temperance.estimates.resampling import systematic
from temperance.estimates.weighted import weighted_mean

UNDER = {"target": "log_weight", "base": "log_weight_base"}


def expectation(
    tree: Any,
    function: str | Callable[..., Any] | None = None,
    *,
    under: str = "target",
    members: bool = True,
) -> Any:
    """The expectation of something under the target, or under the base, of a run.

    `function` is a variable's name, or takes the posterior's variables by name as arrays (chain,
    draw, ...) and returns one; without it every variable is meant, and a dict by name comes back.
    Runs without weights are taken as they are. Each answer is an `Expectation`: value, standard
    error, standard deviation and effective size. After an ensemble move each draw counts as the
    mean over all members of its ensemble, which has less variance, and the standard deviation is
    that of these means; `members=False` takes the selected ones alone.
    """
    if under not in UNDER:
        raise ArgumentError(f"under: wanted 'target' or 'base', got {under!r}")
    posterior, stats = tree["posterior"].dataset, tree["sample_stats"].dataset
    if UNDER[under] in stats:
        logs = stats[UNDER[under]].values
    elif under == "base":
        raise ResultError(
            f"a run of method {tree.attrs.get('method', '?')!r} has no weights for the base: use "
            "'gibbs-ct', 'joint-ct' or 'st'"
        )
    else:
        logs = None
    apart = "log_weight_base" not in stats and logs is not None
    variables = {str(name): array.values for name, array in posterior.data_vars.items()}
    averaged = members and GROUP in tree.children
    if averaged and logs is not None:
        logs = log_totals(tree, UNDER[under])
    if function is None or isinstance(function, str):
        if function is not None and function not in variables:
            raise ArgumentError(f"function: wanted one of {sorted(variables)}, got {function!r}")
        if averaged:
            fast = [name for name in variables if name in tree[GROUP].data_vars]
            variables |= {n: over_members(tree, _named(n), variables, UNDER[under]) for n in fast}
        if isinstance(function, str):
            return weighted_mean(variables[function], logs, independent=apart)
        return {n: weighted_mean(v, logs, independent=apart) for n, v in variables.items()}
    wanted = (posterior.sizes["chain"], posterior.sizes["draw"])
    values = np.asarray(function(**variables), float)
    if values.shape[:2] != wanted:
        raise ArgumentError(
            "function: wanted one value for each chain and draw, shape "
            f"({wanted[0]}, {wanted[1]}, ...), got {values.shape}"
        )
    if averaged:
        values = over_members(tree, function, variables, UNDER[under])
    return weighted_mean(values, logs, independent=apart)


def _named(name: str) -> Callable[..., Any]:
    """The function that picks one variable."""
    return lambda **variables: variables[name]


def resample(tree: Any, num_draws: int | None = None, *, seed: int = 0) -> Any:
    """The posterior of a weighted run as equally weighted draws: an `xarray.Dataset`.

    Systematic resampling over all chains: a draw of large weight comes several times, so that there
    are no more different draws than before and no chain is left to speak of. For plots and for
    programs that know no weights; `expectation` does not need it.
    """
    import xarray as xr

    posterior, stats = tree["posterior"].dataset, tree["sample_stats"].dataset
    if "log_weight" not in stats:
        raise ResultError("this run has no weights: its posterior is equally weighted already")
    logs = stats["log_weight"].values
    count = logs.size if num_draws is None else num_draws
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise ArgumentError(f"num_draws: wanted a whole number of at least 1, got {num_draws!r}")
    chosen = systematic(logs, count, np.random.default_rng(seed).uniform())
    found = {}
    for name, array in posterior.data_vars.items():
        values = array.values.reshape(-1, *array.shape[2:])[chosen]
        found[name] = (("chain", "draw", *array.dims[2:]), values[None])
    coords = {n: c for n, c in posterior.coords.items() if n not in ("chain", "draw")}
    return xr.Dataset(found, coords={**coords, "chain": [0], "draw": np.arange(count)})
