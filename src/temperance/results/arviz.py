"""Draws to a DataTree in ArviZ's schema: the only file that imports ArviZ.

posterior                the position's leaves by name, or what `constrain` makes of them,
                         (chain, draw, ...)
unconstrained_posterior  the position's leaves by name, where there is a `constrain`
sample_stats             lp, acceptance_rate, diverging, ... (chain, draw)
tempering                what the ladder did: betas, swap acceptance, replicas, round trips, barrier
ensemble                 what differs between the members of each draw's ensemble, and how likely
                         each was, (chain, draw, member, ...)
evidence                 log Z by each estimator, with its standard error
"""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import arviz_base
import numpy as np
import xarray as xr

RUNG, PAIR = "rung", "pair"


def to_datatree(
    posterior: Mapping[str, np.ndarray],
    sample_stats: Mapping[str, np.ndarray],
    tempering: Mapping[str, tuple[Sequence[str], Any]],
    evidence: Mapping[str, tuple[Sequence[str], Any]],
    dims: Mapping[str, Sequence[str]] | None,
    coords: Mapping[str, Sequence[Any]] | None,
    attrs: Mapping[str, Any],
    unconstrained: Mapping[str, np.ndarray] | None = None,
    ensemble: Mapping[str, np.ndarray] | None = None,
) -> xr.DataTree:
    """The tree of a run; draws and `sample_stats` lead with (chain, draw)."""
    named = {name: list(axes) for name, axes in (dims or {}).items()}
    with warnings.catch_warnings():
        # A run stopped early may well have more chains than draws.
        warnings.filterwarnings("ignore", "Found chain dimension to be longer", UserWarning)
        tree = arviz_base.from_dict(
            {"posterior": dict(posterior), "sample_stats": dict(sample_stats)},
            dims=named,
            coords={name: list(values) for name, values in (coords or {}).items()},
        )
        if unconstrained is not None:
            tree["unconstrained_posterior"] = xr.DataTree(
                arviz_base.dict_to_dataset(
                    dict(unconstrained), dims=_shared(named, posterior, unconstrained)
                )
            )
            tree["unconstrained_posterior"].attrs = {}
    if ensemble:
        tree["ensemble"] = xr.DataTree(_with_members(ensemble, named))
    if tempering:
        tree["tempering"] = xr.DataTree(xr.Dataset(dict(tempering)))
    if evidence:
        tree["evidence"] = xr.DataTree(xr.Dataset(dict(evidence)).set_coords("estimator"))
    for group in ("posterior", "sample_stats"):
        tree[group].attrs = {}
    tree.attrs = dict(attrs)
    return tree


def _with_members(ensemble: Mapping[str, np.ndarray], dims: Mapping[str, list[str]]) -> xr.Dataset:
    """Variables that lead with (chain, draw, member)."""
    found = {}
    for name, array in ensemble.items():
        own = dims.get(name, [f"{name}_dim_{i}" for i in range(array.ndim - 3)])
        found[name] = (("chain", "draw", "member", *own), array)
    return xr.Dataset(found)


def _shared(
    dims: Mapping[str, list[str]],
    posterior: Mapping[str, np.ndarray],
    unconstrained: Mapping[str, np.ndarray],
) -> dict[Any, Any]:
    """The names of axes that an unconstrained variable has too: a simplex loses an entry."""
    both = set(posterior) & set(unconstrained)
    same = {name for name in both if posterior[name].shape == unconstrained[name].shape}
    return {name: list(axes) for name, axes in dims.items() if name in same}


def summary_table(tree: xr.DataTree) -> Any:
    """ArviZ's own table: rank-normalised R-hat, bulk and tail ESS and the rest, unrounded."""
    import arviz_stats  # a second and more, which a run that is not summarised need not wait

    return arviz_stats.summary(tree, round_to="none")  # pyright: ignore[reportPrivateImportUsage, reportArgumentType]
