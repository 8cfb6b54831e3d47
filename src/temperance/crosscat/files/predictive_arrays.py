"""A state's predictive law as named arrays, and back, bit by bit."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from temperance.crosscat.views.predictive import (
    CategoricalPredictive,
    CountPredictive,
    Predictive,
    RealPredictive,
    SpikePredictive,
    StatePredictive,
    ViewPredictive,
)
from temperance.errors import FileFormatError

KINDS: dict[str, Any] = {
    "codes": CategoricalPredictive,
    "real": RealPredictive,
    "count": CountPredictive,
    "spike": SpikePredictive,
}


def state_arrays(state: StatePredictive, prefix: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """What goes into JSON, and the arrays by name."""
    arrays: dict[str, np.ndarray] = {}
    views = []
    for number, view in enumerate(state.views):
        here = f"{prefix}/view-{number}"
        arrays[f"{here}/log_mass"] = view.log_mass
        arrays[f"{here}/assignments"] = view.assignments
        kinds = []
        for place, law in enumerate(view.predictives):
            kinds.append(next(kind for kind, known in KINDS.items() if isinstance(law, known)))
            for name, array in _members(law).items():
                arrays[f"{here}/column-{place}/{name}"] = array
        views.append({"columns": [int(c) for c in view.columns], "kinds": kinds})
    return {"views": views, "log_joint": float(state.log_joint)}, arrays


def state_from_arrays(
    told: Mapping[str, Any], arrays: Mapping[str, np.ndarray], prefix: str
) -> StatePredictive:
    """The state that `state_arrays` took apart."""
    try:
        views = []
        for number, view in enumerate(told["views"]):
            here = f"{prefix}/view-{number}"
            laws = tuple(
                _law(kind, arrays, f"{here}/column-{place}")
                for place, kind in enumerate(view["kinds"])
            )
            found = ViewPredictive(
                tuple(view["columns"]), arrays[f"{here}/log_mass"], laws,
                arrays[f"{here}/assignments"],
            )  # fmt: skip
            _check(found, here)
            views.append(found)
        return StatePredictive(tuple(views), float(told["log_joint"]))
    except (KeyError, TypeError) as error:
        raise FileFormatError(f"model: {prefix} is incomplete ({error}): save again") from error


def _members(law: Predictive) -> dict[str, np.ndarray]:
    if isinstance(law, SpikePredictive):
        return {"log_probs": law.log_probs, **law.real._asdict()}
    return law._asdict()


def _law(kind: str, arrays: Mapping[str, np.ndarray], here: str) -> Predictive:
    if kind == "spike":
        real = RealPredictive(*(arrays[f"{here}/{name}"] for name in RealPredictive._fields))
        return SpikePredictive(arrays[f"{here}/log_probs"], real)
    known = KINDS[kind]
    return known(*(arrays[f"{here}/{name}"] for name in known._fields))


def _check(view: ViewPredictive, here: str) -> None:
    """Every law has an entry for each cluster, and every row a cluster that there is."""
    num = len(view.log_mass)
    sizes = {len(array) for law in view.predictives for array in _members(law).values()}
    labels = view.assignments
    if sizes - {num} or (labels.size and not 0 <= labels.min() <= labels.max() < num - 1):
        raise FileFormatError(f"model: {here} does not fit together: save the model again")
