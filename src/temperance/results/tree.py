"""What comes back: a DataTree in ArviZ's schema, saved to netCDF or zarr and read back.

Log evidence is counted from the hottest rung, so it exists where that rung is a normalised density:
beta = 0, the prior or the base.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np

from temperance._version import __version__
from temperance.problems.constrain import constrained_draws
from temperance.estimates.diagnostics import left_behind
from temperance.errors import FileFormatError, ResultError
from temperance.estimates.evidence import bridges, mbar, stepping_stones
from temperance.engine.jobs import Finished
from temperance.problems.layout import Layout
from temperance.results.members import member_group
from temperance.moves.move import AbstractMove
from temperance.moves.combine import Repeat
from temperance.moves.fast_slow.ensemble import Ensemble
from temperance.moves.minibatch.penalty import Mint
from temperance.moves.minibatch.pseudo_marginal import PseudoMarginal
from temperance.ladders.prefix import PrefixLadder
from temperance.problems.problem import Problem, Target
from temperance.results.rings import ring_group
from temperance.samplers.annealing.importance import AnnealedImportance
from temperance.samplers.parallel.tempering import ParallelTempering
from temperance.samplers.plain import Plain
from temperance.results.travels import TRAVELLERS, travel_evidence, travel_group, weight_stats
from temperance.results.work import work

# Numbers that the evidence estimators hold at once; more draws than this are thinned for them.
MOST_NUMBERS = 3e7
FORMAT = "temperance run"
WEIGHTED = (*TRAVELLERS, AnnealedImportance)
ESTIMATORS = {"mbar": mbar, "stepping_stones": stepping_stones, "bridges": bridges}


def result_tree(
    problem: Problem | Target, layout: Layout, finished: Finished, attrs: dict[str, Any]
) -> Any:
    """The tree of a finished run."""
    from temperance.results.arviz import to_datatree

    draws = {name: np.moveaxis(array, 0, 1) for name, array in finished.draws.items()}
    sampler = finished.sampler
    position = layout.split(draws["position"])
    constrained = constrained_draws(problem.constrain, layout, draws["position"])
    evaluations = float(draws["num_evaluations"].sum()) * finished.sweeps_per_draw
    return to_datatree(
        position if constrained is None else constrained,
        _sample_stats(draws),
        _group(draws, finished, attrs["num_rows"]),
        _evidence(draws, sampler),
        problem.dims,
        problem.coords,
        attrs
        | {
            "format": FORMAT,
            "inference_library": "temperance",
            "inference_library_version": __version__,
            "sweeps_per_draw": finished.sweeps_per_draw,
            "num_evaluations": evaluations,
            "num_impossible": float(draws["impossible"].sum()) * finished.sweeps_per_draw,
            **work(draws, finished, attrs["num_rows"]),
        },
        None if constrained is None else position,
        _members(draws, sampler, layout, problem),
    )


def _members(
    draws: dict[str, np.ndarray], sampler: Any, layout: Layout, problem: Problem | Target
) -> dict[str, np.ndarray]:
    """What differs between the members of an ensemble move's draws."""
    if "members" not in draws:
        return {}
    move = sampler.move
    while isinstance(move, Repeat):
        move = move.move
    assert isinstance(move, Ensemble)
    return member_group(draws, layout, move.fast_index(layout), problem.constrain)


def _group(draws: dict[str, np.ndarray], finished: Finished, num_rows: int) -> dict[str, Any]:
    """What the temperatures did."""
    if isinstance(finished.sampler, Plain):
        return _minibatch(draws, finished.sampler, num_rows)
    if isinstance(finished.sampler, WEIGHTED):
        return travel_group(draws, finished)
    return _tempering(draws, finished)


def _sample_stats(draws: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    stats = {
        "acceptance_rate": draws["acceptance"][:, :, -1].mean(axis=-1),
        "diverging": draws["diverging"][:, :, -1] > 0,
    }
    names = ("lp", "transition_acceptance", "log_ratio", "batch_variance", "batch_raised")
    for name in (*names, "batch_trusted"):
        if name in draws:
            stats[name] = draws[name]
    if "batch_rows" in draws:
        by_rung = draws["batch_rows"].ndim == 3
        stats["batch_rows"] = draws["batch_rows"].sum(-1) if by_rung else draws["batch_rows"]
    return stats | weight_stats(draws)


def _minibatch(draws: dict[str, np.ndarray], sampler: Any, num_rows: int) -> dict[str, Any]:
    """What a tempered law seen through batches is, and how much noise there was."""
    if not isinstance(sampler.move, Mint | PseudoMarginal):
        return {}
    law = sampler.move.law(num_rows)
    means = {
        name: ((), draws[f"batch_{name}"].mean()) for name in ("variance", "raised", "trusted")
    }
    return {
        "beta": (("rung",), np.array([law.beta])),
        "size": (("rung",), np.array([law.batch_size])),
        "step_size": (("rung", "part"), np.asarray(sampler.params.step_size)),
        "move_acceptance": (("rung", "part"), draws["acceptance"].mean(axis=(0, 1))),
        "noise_variance": (*means["variance"], {"noise": _noise_of(sampler.move)}),
        "raised_rate": means["raised"],
        "trusted_rate": means["trusted"],
    }


def _noise_of(move: AbstractMove) -> str:
    return move.noise if isinstance(move, Mint) else "pseudo-marginal"


def _tempering(draws: dict[str, np.ndarray], finished: Finished) -> dict[str, Any]:
    sampler = finished.sampler
    group: dict[str, Any] = {
        "step_size": (("rung", "part"), np.asarray(sampler.params.step_size)),
        "move_acceptance": (("rung", "part"), draws["acceptance"].mean(axis=(0, 1))),
        "diverging_rate": (("rung",), draws["diverging"].mean(axis=(0, 1))),
        "num_evaluations": (
            ("rung",),
            draws["num_evaluations"].sum(axis=(0, 1)) * finished.sweeps_per_draw,
        ),
    }
    betas = getattr(sampler.ladder, "betas", None)
    if betas is not None:
        group["beta"] = (("rung",), np.asarray(betas))
    if isinstance(sampler.ladder, PrefixLadder):
        group["size"] = (("rung",), np.asarray(sampler.ladder.sizes))
    if "refreshed" in draws:
        group["refresh_rate"] = ((), draws["refreshed"].mean())
    if "transition_accepted" in draws:
        group["transition_rate"] = ((), draws["transition_accepted"].mean())
    if finished.left is not None:
        left = left_behind(draws["position"], finished.left, np.asarray(betas))
        group["left_behind"] = (("chain", "rung"), left)
    group |= ring_group(draws, finished)
    if "swap_acceptance" not in draws:
        return group
    if "components" in draws:
        names = ("chain", "draw", "sweep", "rung", "component")
        group["components"] = (names, draws["components"])
    rejection = 1 - _swap_rates(draws)
    return group | {
        "swap_acceptance": (("pair",), 1 - rejection),
        "barrier": ((), rejection.sum()),
        "round_trips": (("chain",), draws["round_trips"][:, -1] - draws["round_trips"][:, 0]),
        "replica": (("chain", "draw", "rung"), draws["replica"].astype(np.int32)),
    }


def _swap_rates(draws: dict[str, np.ndarray]) -> np.ndarray:
    """Each pair's mean acceptance, over the sweeps in which it is known."""
    known = draws["swap_acceptance"].mean(axis=(0, 1))
    if "swap_tried" not in draws:
        return known
    often = np.minimum(draws["swap_tried"], 1.0).mean(axis=(0, 1))
    return known / np.where(often > 0, often, 1.0)


def _evidence(draws: dict[str, np.ndarray], sampler: Any) -> dict[str, Any]:
    if isinstance(sampler, WEIGHTED):
        return travel_evidence(draws, sampler)
    normalised = getattr(sampler.ladder, "betas", np.ones(1))[0] == 0
    if not (isinstance(sampler, ParallelTempering) and normalised and "components" in draws):
        return {}
    # Between powers MBAR says all that a bridge does; subsamples overlap less, and get both.
    subsampled = isinstance(sampler.ladder, PrefixLadder)
    weights = np.asarray(sampler.ladder.weight_table(), float)
    # Several sweeps of each draw count, and not only those whose position is kept.
    components = np.asarray(draws["components"], float)
    chains, rungs = components.shape[0], components.shape[3]
    components = components.reshape(chains, -1, *components.shape[3:])
    stride = int(np.ceil(components.shape[1] * chains * rungs**2 / MOST_NUMBERS))
    record = _log_densities(components[:, ::stride], weights)
    names = [name for name in ESTIMATORS if name != "bridges" or subsampled]
    estimates = [ESTIMATORS[name](record) for name in names]
    return {
        "estimator": (("estimator",), names),
        "log_evidence": (("estimator",), [e.value for e in estimates]),
        "error": (("estimator",), [e.error for e in estimates]),
        "log_ratio": (("estimator", "pair"), [e.per_step for e in estimates]),
    }


def _log_densities(components: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The log density of every sample (chain, draw, rung) at every rung, the last axis."""
    samples = components.reshape(-1, components.shape[-1])
    if np.isfinite(samples.sum()):
        by_rung = weights @ samples.T
    else:
        # A component of weight zero contributes zero, whatever its value.
        shares = np.zeros((len(weights), *samples.shape))
        counts = weights[:, None] != 0
        by_rung = np.multiply(weights[:, None], samples, out=shares, where=counts).sum(axis=-1)
    return np.moveaxis(by_rung.reshape(-1, *components.shape[:-1]), 0, -1)


def log_evidence(tree: Any, estimator: str | None = None) -> tuple[float, float]:
    """Log evidence and its standard error.

    `estimator` is, after `pt` and `spt`, "mbar" (the default), "stepping_stones" or "bridges";
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
