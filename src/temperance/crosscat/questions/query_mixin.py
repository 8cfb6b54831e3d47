"""The questions of a fitted model as methods.

Answers are those of the average of the states in probability space, and what is given weighs the
states too. A frame may lack columns; those and missing cells are not known, and drop out. An array
has no names, so it needs all columns, in the order of the fit.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from temperance.crosscat.frames.frame import open_frame
from temperance.crosscat.frames.sklearn_input import as_table, check_width, with_target
from temperance.crosscat.questions.mutual_information import MutualInformation
from temperance.crosscat.questions.queries import Queries


class QueryMixin:
    """What can be asked of a fitted model."""

    _queries: Queries
    n_features_in_: int

    def _get_queries(self) -> Queries:
        check_is_fitted(self, "states_")
        return self._queries

    def _table(self, frame: Any) -> Any:
        check_is_fitted(self, "states_")
        table = as_table(frame)
        check_width(table, self.n_features_in_, type(self).__name__)
        return table

    def score_samples(self, frame: Any) -> NDArray[np.float64]:
        """Log probability or density of each row, in the units of its columns."""
        return self._get_queries().score_samples(self._table(frame))

    def score(self, frame: Any, y: Any = None) -> float:
        """The mean of `score_samples`; `y` is the column of that name where the fit had one."""
        asked = self._get_queries()
        opened = open_frame(self._table(frame), asked.schema)
        if asked.target is not None:
            opened, _ = with_target(opened, y, asked.target)
        return float(asked.score_samples(opened).mean())

    def logp(self, values: Any, given: Any = None) -> Any:
        """Log p(values | given): a number for dictionaries, an array for frames.

        A dictionary's values must be known ones; a column may not be in both. With a frame and a
        dictionary, the dictionary holds for every row.
        """
        return self._get_queries().logp(values, given)

    def predict(self, frame: Any, target: str | None = None, *, statistic: str = "median") -> Any:
        """The target's value given each row's other cells.

        Categorical and boolean: the most probable known value. Others: the median, or with
        `statistic="mean"` the mean. The default target is the `y` of the fit.
        """
        return self._get_queries().predict(self._table(frame), target, statistic)

    def predict_proba(self, frame: Any, target: str | None = None) -> NDArray[np.float64]:
        """Probabilities of a categorical or boolean target's known values, in the schema's order.

        Given each row's other cells, and that the value is a known one.
        """
        return self._get_queries().predict_proba(self._table(frame), target)

    def impute(
        self, frame: Any, columns: Any = None, *, uncertainty: bool = False, level: float = 0.9
    ) -> Any:
        """The frame with its missing cells filled in, each given the known cells of its row.

        Categorical and boolean cells get the most probable value, others the median. With
        `uncertainty`, a second frame has a line for each cell: its value, the probability and
        the entropy (nats) of a categorical one, and the ends of the central interval of `level`
        for a number; of a spike column, the probability is that of the spike.
        """
        return self._get_queries().impute(self._table(frame), columns, uncertainty, level)

    def transform(self, frame: Any) -> Any:
        """The same as `impute(frame)`, for pipelines."""
        return self.impute(frame)

    def sample(
        self,
        n: int = 1,
        columns: Any = None,
        given: Any = None,
        *,
        random_state: Any = None,
    ) -> Any:
        """New rows from the model, as a frame; cells that are given stand in every row.

        Each call draws anew, unless it brings a `random_state` of its own. Categorical cells are
        drawn given that their values are known ones.
        """
        return self._get_queries().sample(n, columns, given, random_state)

    def surprisal(self, frame: Any, columns: Any = None) -> Any:
        """-log p(cell | the row's other known cells) of each cell, in nats; NaN where missing.

        Of a real cell this is a density's, in the units of its column: compare it within a column.
        """
        return self._get_queries().surprisal(self._table(frame), columns)

    def anomaly(self, frame: Any, columns: Any = None) -> Any:
        """Another name of `surprisal`."""
        return self.surprisal(frame, columns)

    def similarity(self, rows: Any, among: Any = None, *, columns: Any = None) -> Any:
        """How probably rows share a cluster, over states and views: an array, rows by `among`.

        Both are numbers of training rows, or frames of new rows; `among` is every training row by
        default. With `columns`, only the views of those columns count.
        """
        return self._get_queries().similarity(rows, among, columns)

    def dependence(self) -> Any:
        """The share of states in which two columns share a view, as a pandas frame."""
        return self._get_queries().dependence()

    def mutual_information(
        self,
        a: str,
        b: str,
        given: Any = None,
        *,
        num_samples: int = 10_000,
        random_state: Any = None,
    ) -> MutualInformation:
        """The posterior mean of the mutual information of two columns, in nats.

        A sum for two categorical or boolean columns; else an average over draws, with its standard
        error.
        """
        return self._get_queries().mutual_information(a, b, given, num_samples, random_state)
