"""What comes back: a DataTree in ArviZ's schema, saved to netCDF or zarr and read back.

Log evidence is counted from the hottest rung, so it exists where that rung is a normalised density:
beta = 0, the prior or the base.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from temperance import __version__
from temperance.engine.run import Finished
from temperance.errors import FileFormatError, ResultError
from temperance.problems.constrain import constrained_draws
from temperance.problems.layout import Layout
from temperance.problems.problem import Problem, Target
from temperance.results.members import member_group
from temperance.results.modes import GROUP, modes_group, with_bridge

FORMAT = "temperance run"


def result_tree(
    problem: Problem | Target,
    layout: Layout,
    finished: Finished,
    report: Any,
    attrs: dict[str, Any],
) -> Any:
    """The tree of a finished run, with what the method's report makes of it."""
    from temperance.results.arviz import to_datatree

    draws = {name: np.moveaxis(array, 0, 1) for name, array in finished.draws.items()}
    run = replace(finished, draws=draws)
    position = layout.split(draws["position"])
    constrain, shown = problem.constrain, position
    if constrain is not None:
        shown = constrained_draws(constrain, layout, draws["position"])
    evidence = report.evidence(run)
    tree = to_datatree(
        shown,
        report.stats(run),
        report.arrays(run),
        evidence if run.reference is None else with_bridge(evidence, run),
        problem.dims,
        problem.coords,
        attrs
        | {
            "format": FORMAT,
            "inference_library": "temperance",
            "inference_library_version": __version__,
            "sweeps_per_draw": run.sweeps_per_draw,
            "num_evaluations": float(draws["num_evaluations"].sum()) * run.sweeps_per_draw,
            "num_impossible": float(draws["impossible"].sum()) * run.sweeps_per_draw,
            **report.work(run),
        },
        None if constrain is None else position,
        _members(run, layout, problem),
    )
    if run.reference is not None:
        tree[GROUP] = type(tree)(modes_group(run, layout))
    return tree


def _members(run: Finished, layout: Layout, problem: Problem | Target) -> dict[str, np.ndarray]:
    """What differs between the members of an ensemble move's draws."""
    if "members" not in run.draws:
        return {}
    fast = run.sampler.move.fast_index(layout)
    return member_group(run.draws, layout, fast, problem.constrain)


def log_evidence(tree: Any, estimator: str | None = None) -> tuple[float, float]:
    """Log evidence and its standard error.

    `estimator` is, after `pt` and `spt`, "mbar" (the default), "stepping_stones" or "bridges";
    where modes were hunted for, also "reference", a bridge from the reference's draws to the run's;
    after `ais` and `bdmc` "forward" (the default) or "reverse"; "weights" after `st` and both CTs.
    """
    if "evidence" not in tree.children:
        raise ResultError(
            f"a run of method {tree.attrs.get('method', '?')!r} with these options gives no log "
            "evidence: use method='pt' with betas that start at 0 (the normalised prior or base), "
            "'spt' with evidence=True, 'ais', or 'gibbs-ct'"
        )
    known = list(tree["evidence"]["estimator"].values)
    estimator = known[0] if estimator is None else estimator
    if estimator not in known:
        raise ResultError(f"estimator: wanted one of {known}, got {estimator!r}")
    row = tree["evidence"].dataset.sel(estimator=estimator)
    return float(row["log_evidence"]), float(row["error"])


def save(tree: Any, path: str | Path) -> Path:
    """Write a run to `path`: zarr if it ends in .zarr, netCDF otherwise."""
    path = Path(path)
    if path.suffix == ".zarr":
        # Version 2, because version 3 has no settled form for the text in coordinates.
        tree.to_zarr(path, mode="w", consolidated=False, zarr_format=2)
    else:
        tree.to_netcdf(path, engine="h5netcdf")
    return path


def load(path: str | Path) -> Any:
    """Read a run that `save` wrote. Nothing in the file is executed."""
    import xarray as xr

    path = Path(path)
    if not path.exists():
        raise FileFormatError(f"{path}: there is no such file")
    try:
        options: dict[str, Any] = (
            {"engine": "zarr", "consolidated": False}
            if path.suffix == ".zarr"
            else {"engine": "h5netcdf"}
        )
        with xr.open_datatree(path, **options) as opened:
            tree = opened.load()
    except (OSError, ValueError, KeyError, TypeError, json.JSONDecodeError) as error:
        raise FileFormatError(
            f"{path}: cannot be read as netCDF or zarr ({error}); wanted a file written by "
            "temperance.save or `temperance run --out`"
        ) from error
    if tree.attrs.get("format") != FORMAT or "posterior" not in tree.children:
        raise FileFormatError(f"{path}: was not written by temperance: it has no posterior of ours")
    tree.attrs = {n: v.item() if isinstance(v, np.generic) else v for n, v in tree.attrs.items()}
    return tree
