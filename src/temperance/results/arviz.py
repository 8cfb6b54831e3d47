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

from temperance.problems.named_axes import given_axes, shared_axes

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
    """The tree of a run; draws and `sample_stats` lead with (chain, draw).

    `dims` and `coords` are about the posterior's variables: what other groups hold may have the
    same names, and axes of its own.
    """
    named = given_axes(dims, _shapes(posterior))
    labels = {name: list(values) for name, values in (coords or {}).items()}
    tree = xr.DataTree()
    tree["posterior"] = _draws(posterior, named, labels)
    tree["sample_stats"] = _draws(sample_stats, {}, {})
    if unconstrained is not None:
        same = shared_axes(named, _shapes(posterior), _shapes(unconstrained))
        tree["unconstrained_posterior"] = _draws(unconstrained, same, {})
    if ensemble:
        tree["ensemble"] = xr.DataTree(_with_members(ensemble, named))
    if tempering:
        tree["tempering"] = xr.DataTree(xr.Dataset(dict(tempering)))
    if evidence:
        tree["evidence"] = xr.DataTree(xr.Dataset(dict(evidence)).set_coords("estimator"))
    tree.attrs = dict(attrs)
    return tree


def _draws(
    arrays: Mapping[str, np.ndarray], named: Mapping[str, list[str]], labels: Mapping[str, Any]
) -> xr.DataTree:
    """A group of variables that lead with (chain, draw)."""
    with warnings.catch_warnings():
        # A run stopped early may well have more chains than draws.
        warnings.filterwarnings("ignore", "Found chain dimension to be longer", UserWarning)
        axes: dict[Any, Any] = dict(named)
        found = arviz_base.dict_to_dataset(dict(arrays), dims=axes, coords=dict(labels))
    found.attrs = {}
    return xr.DataTree(found)


def _shapes(arrays: Mapping[str, np.ndarray]) -> dict[str, tuple[int, ...]]:
    """Of a single draw."""
    return {name: array.shape[2:] for name, array in arrays.items()}


def _with_members(ensemble: Mapping[str, np.ndarray], dims: Mapping[str, list[str]]) -> xr.Dataset:
    """Variables that lead with (chain, draw, member)."""
    found = {}
    for name, array in ensemble.items():
        own = dims.get(name, [])
        rest = [f"{name}_dim_{i}" for i in range(array.ndim - 3 - len(own))]
        found[name] = (("chain", "draw", "member", *own, *rest), array)
    return xr.Dataset(found)


def summary_table(tree: xr.DataTree) -> Any:
    """ArviZ's own table: rank-normalised R-hat, bulk and tail ESS and the rest, unrounded."""
    import arviz_stats  # a second and more, which a run that is not summarised need not wait

    return arviz_stats.summary(tree, round_to="none")  # pyright: ignore[reportPrivateImportUsage, reportArgumentType]
