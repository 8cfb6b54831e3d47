"""Models of whole tables, in scikit-learn's manner.

`fit` draws `num_states` states from the posterior of a table and keeps each one's predictive law,
of which everything else is asked.

    CrossCat                  columns in views by a Pitman-Yor process, rows by one in each view
    PitmanYorMixture          all columns in one view
    DirichletProcessMixture   all columns in one view, discount 0
"""

import os
from collections.abc import Callable
from importlib import import_module
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import TransformerTags
from sklearn.utils.validation import check_is_fitted

from temperance.crosscat.encoding.encoder import encode
from temperance.crosscat.encoding.table import Table, make_table
from temperance.crosscat.files.model_file import Fitted, read_fitted, write_fitted
from temperance.crosscat.frames.frame import open_frame
from temperance.crosscat.frames.sklearn_input import as_table, has_names, with_target
from temperance.crosscat.questions.posterior import Posterior
from temperance.crosscat.questions.queries import Queries
from temperance.crosscat.questions.query_mixin import QueryMixin
from temperance.crosscat.random_state import seed_sequence
from temperance.errors import ArgumentError, FileFormatError


def kernels() -> Any:
    """The module that fits, which compiles: it is imported when a model is first fitted."""
    return import_module("temperance.crosscat.annealing.fitting")


class TableModel(QueryMixin, BaseEstimator):
    """What the models share: fitting, appending rows, saving and loading."""

    model: ClassVar[str]
    strategy: str
    passes: float
    num_states: int
    schedule: str
    churn: str
    final_sweeps: float
    num_auxiliary: int
    stratify: str | None
    executor: Any
    num_workers: int | None
    random_state: Any

    def __init__(
        self,
        strategy: Any = "anneal",
        passes: Any = 20,
        num_states: Any = 8,
        *,
        schedule: Any = "accelerating",
        churn: Any = "window",
        final_sweeps: Any = 2,
        num_auxiliary: Any = 4,
        stratify: Any = None,
        executor: Any = None,
        num_workers: Any = None,
        random_state: Any = None,
    ) -> None:
        self.strategy = strategy
        self.passes = passes
        self.num_states = num_states
        self.schedule = schedule
        self.churn = churn
        self.final_sweeps = final_sweeps
        self.num_auxiliary = num_auxiliary
        self.stratify = stratify
        self.executor = executor
        self.num_workers = num_workers
        self.random_state = random_state

    def fit(
        self,
        frame: Any,
        y: Any = None,
        *,
        schema: Any = None,
        callback: Callable[..., Any] | None = None,
        max_seconds: float | int | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> "TableModel":
        """Draw `num_states` states from the posterior given a frame or file.

        `y` is one more column, which `predict` predicts where no other is named. `schema` is a
        `Schema`, or a dictionary from names to kinds where the guessed ones are not right.
        `callback` hears of progress, and ends the fit soon by returning true. A fit that runs into
        `max_seconds` keeps what it has. In the folder `checkpoint` states are kept while they are
        fitted, and the same fit goes on from there.
        """
        self._check_settings()
        frame = as_table(frame)
        opened = open_frame(frame)
        whole, target = with_target(opened, y)
        *seeds, dither, draws = seed_sequence(self.random_state).spawn(self.num_states + 2)
        table = make_table(whole, schema, np.random.default_rng(dither))
        states = kernels().fit_states(
            table,
            self._settings(),
            seeds,
            callback=callback,
            max_seconds=max_seconds,
            executor=self.executor,
            num_workers=self.num_workers,
            checkpoint=checkpoint,
        )
        fitted = Fitted(
            table=table,
            states=tuple(state.predictive() for state in states),
            kept=tuple(state.arrays() for state in states),
            traces=tuple(state.trace for state in states),
            num_features=len(opened.names),
            names=opened.names if has_names(frame) else None,
            target=target,
            backend=opened.backend,
        )
        return self._keep(fitted, np.random.default_rng(draws))

    def append_rows(
        self,
        frame: Any,
        *,
        callback: Callable[..., Any] | None = None,
        max_seconds: float | int | None = None,
    ) -> "TableModel":
        """Learn from more rows, from the states as they are, by the columns' old kinds."""
        check_is_fitted(self, "states_")
        *seeds, dither = seed_sequence(self._queries.rng).spawn(len(self.states_) + 1)
        rows = encode(as_table(frame), self.schema_, np.random.default_rng(dither), partial=True)
        old = self._fitted
        table, states = kernels().append_rows(
            old.table,
            old.kept,
            rows,
            self._settings(),
            seeds,
            callback=callback,
            max_seconds=max_seconds,
        )
        fitted = old._replace(
            table=table,
            states=tuple(state.predictive() for state in states),
            kept=tuple(state.arrays() for state in states),
            traces=tuple(state.trace for state in states),
        )
        return self._keep(fitted, self._queries.rng)

    def fit_transform(self, frame: Any, y: Any = None) -> Any:
        """`fit`, then `transform`."""
        self.fit(frame, y)
        return self.transform(frame)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to one file, without pickle. `load` reads it."""
        check_is_fitted(self, "states_")
        told = {
            "class": type(self).__name__,
            "params": {name: _plain(value) for name, value in self.get_params().items()},
            "rng": self._queries.rng.bit_generator.state,
        }
        write_fitted(path, self._fitted, told)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Any:
        """A model that `save` wrote, which answers every question as it did, bit by bit."""
        fitted, told = read_fitted(path)
        kinds = (CrossCat, PitmanYorMixture, DirichletProcessMixture)
        kind = {known.__name__: known for known in kinds}.get(told.get("class", ""))
        if kind is None or not issubclass(kind, cls):
            raise FileFormatError(f"{path}: holds a {told.get('class')}, not a {cls.__name__}")
        rng = np.random.Generator(np.random.PCG64())
        try:
            rng.bit_generator.state = told["rng"]
            return kind(**told["params"])._keep(fitted, rng)
        except (KeyError, TypeError, ValueError) as error:
            raise FileFormatError(f"{path}: cannot be restored ({error}): save again") from error

    def _keep(self, fitted: Fitted, rng: np.random.Generator) -> "TableModel":
        table: Table = fitted.table
        posterior = Posterior(table.schema, table.features, fitted.states)
        names = table.schema.names
        self._fitted = fitted
        self._queries = Queries(posterior, rng, fitted.target, fitted.backend)
        self.schema_ = table.schema
        self.states_ = fitted.states
        self.trace_ = fitted.trace_table()
        self.column_partition_ = [
            [[names[column] for column in view.columns] for view in state.views]
            for state in fitted.states
        ]
        self.row_assignments_ = [[v.assignments for v in state.views] for state in fitted.states]
        self.n_features_in_ = fitted.num_features
        if fitted.names is not None:
            self.feature_names_in_ = np.array(fitted.names, object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        return self

    def _check_settings(self) -> None:
        if isinstance(self.num_states, bool) or not isinstance(self.num_states, int | np.integer):
            raise ArgumentError(f"num_states: wanted a whole number, got {self.num_states!r}")
        if self.num_states < 1:
            raise ArgumentError(f"num_states: wanted at least 1, got {self.num_states}")
        if not self.passes >= 1:
            raise ArgumentError(f"passes: wanted a number of at least 1, got {self.passes}")

    def _settings(self) -> dict[str, Any]:
        """What the kernels need to know."""
        names = (
            "strategy", "passes", "schedule", "churn", "final_sweeps", "num_auxiliary", "stratify"
        )  # fmt: skip
        return {"model": self.model} | {name: getattr(self, name) for name in names}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags = TransformerTags(preserves_dtype=[])
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags


def _plain(value: Any) -> Any:
    """A setting as JSON has it; what JSON cannot hold is for this process alone."""
    if isinstance(value, np.integer | np.floating):
        return value.item()
    return value if value is None or isinstance(value, str | int | float | bool) else None


class CrossCat(TableModel):
    """Cross-categorization: columns in views, and rows in clusters of their own in each view.

    `strategy` is how states are found: "anneal", "sequential" or "prior". With "anneal" the rows
    that are seen grow from none to all and are churned all the while: `schedule`
    "accelerating" churns `passes` sqrt(4000 / n) times after row n, "linear" `passes` - 1 times, so
    that each row is visited `passes` times. `churn` is "window", "random", or the exact
    "metropolis" or "weighted" (exact_churn.py). In the end all rows are swept `final_sweeps` times.
    `stratify` names a column of categories whose rare values are to be seen early.
    `num_auxiliary` is the number of views that stand ready to be founded when columns move.

    States are fitted in turn, or side by side with `executor` "threads", "processes" or anything
    with `map`, such as a Dask client, and `num_workers`: the same `random_state` gives the same
    states either way.
    """

    model = "crosscat"


class PitmanYorMixture(TableModel):
    """A Pitman-Yor mixture: one view, so that every column shares the clusters of the rows."""

    model = "pitman-yor"


class DirichletProcessMixture(TableModel):
    """A Dirichlet-process mixture: one view, and a Pitman-Yor discount of 0."""

    model = "dirichlet-process"
