"""A made posterior of three states over five columns, one of each kind, and a plain scorer of it.

The scorer shares nothing with the package: it goes row by row, cluster by cluster, cell by cell,
with SciPy's laws. A row is a dict of what the user would write; a value that is left out is
missing, and "new" is a categorical value never seen.
"""

import numpy as np
from scipy import stats

from temperance.crosscat.encoding.cells import empty_cells
from temperance.crosscat.encoding.features import Features
from temperance.crosscat.frames.schema import Column, Schema
from temperance.crosscat.questions.posterior import Posterior
from temperance.crosscat.views.predictive import (
    CategoricalPredictive,
    CountPredictive,
    RealPredictive,
    SpikePredictive,
    StatePredictive,
    ViewPredictive,
)

SCHEMA = Schema(
    (
        Column("colour", "categorical", values=("red", "green", "blue")),
        Column("flag", "boolean", values=(False, True)),
        Column("height", "real", centre=170.0, scale=8.0),
        Column("visits", "count"),
        Column("income", "spike", centre=3.0, scale=2.0, spike=0.0),
    )
)
NUM_ROWS = 7
# Which columns share a view, and how many clusters each view has, state by state.
VIEWS = (
    (((0, 2, 3), 2), ((1, 4), 3)),
    (((0, 1, 2, 3, 4), 3),),
    (((2, 1), 1), ((0, 4), 2), ((3,), 1)),
)


def made_posterior(seed: int, views=VIEWS) -> Posterior:
    rng = np.random.default_rng(seed)
    states = []
    for of_state in views:
        found = []
        for columns, num in of_state:
            laws = tuple(_law(SCHEMA.columns[column].kind, num + 1, rng) for column in columns)
            mass = np.log(rng.dirichlet(np.full(num + 1, 2.0)))
            labels = np.concatenate([np.arange(num), rng.integers(num, size=NUM_ROWS - num)])
            found.append(ViewPredictive(columns, mass, laws, labels.astype(np.int32)))
        states.append(StatePredictive(tuple(found), float(rng.normal())))
    return Posterior(SCHEMA, Features.of(SCHEMA), tuple(states))


def _law(kind, num, rng):
    def log_probs(size):
        return np.log(rng.dirichlet(np.ones(size), size=num))

    real = RealPredictive(
        2.0 * rng.normal(size=num), rng.uniform(0.3, 1.0, num), rng.uniform(1.5, 9.0, num)
    )
    match kind:
        case "categorical":
            return CategoricalPredictive(log_probs(4))
        case "boolean":
            return CategoricalPredictive(np.hstack([log_probs(2), np.full((num, 1), -np.inf)]))
        case "real":
            return real
        case "count":
            return CountPredictive(rng.uniform(0.5, 6.0, num), rng.uniform(0.2, 2.0, num))
        case _:
            return SpikePredictive(log_probs(2), real)


def cells_of(rows):
    """Rows as encoded cells."""
    features = Features.of(SCHEMA)
    cells = empty_cells(len(rows), features)
    for i, row in enumerate(rows):
        colours = [*SCHEMA.columns[0].values, "new", None]
        cells.narrow[i, 0] = colours.index(row.get("colour"))
        cells.narrow[i, 1] = {False: 0, True: 1, None: 3}[row.get("flag")]
        cells.real[i, 0] = (row.get("height", np.nan) - 170.0) / 8.0
        cells.count[i, 0] = row.get("visits", -1)
        income = row.get("income")
        cells.narrow[i, 2] = 3 if income is None else int(income == 0.0)
        cells.real[i, 1] = np.nan if income in (None, 0.0) else (income - 3.0) / 2.0
    return cells


def rows_of(drawn, num):
    """Drawn cells by column as rows, the inverse of `cells_of`."""
    rows = [{} for _ in range(num)]
    for column, cells in drawn.items():
        for i, row in enumerate(rows):
            name = SCHEMA.columns[column].name
            match name:
                case "colour" | "flag":
                    row[name] = SCHEMA.columns[column].values[cells.codes[i]]
                case "height":
                    row[name] = 170.0 + 8.0 * cells.numbers[i]
                case "visits":
                    row[name] = int(cells.numbers[i])
                case _:
                    row[name] = 0.0 if cells.codes[i] else 3.0 + 2.0 * cells.numbers[i]
    return rows


def cell_probability(law, k, name, value):
    """The probability or density, in the user's units, of one cell in cluster k."""
    match name:
        case "colour":
            return float(np.exp(law.log_probs[k, ["red", "green", "blue", "new"].index(value)]))
        case "flag":
            return float(np.exp(law.log_probs[k, int(value)]))
        case "height":
            z = (value - 170.0) / 8.0
            return stats.t.pdf(z, law.df[k], law.loc[k], law.scale[k]) / 8.0
        case "visits":
            return stats.nbinom.pmf(value, law.shape[k], law.rate[k] / (1.0 + law.rate[k]))
        case _:
            off, on = np.exp(law.log_probs[k])
            if value == 0.0:
                return float(on)
            z = (value - 3.0) / 2.0
            real = law.real
            return off * stats.t.pdf(z, real.df[k], real.loc[k], real.scale[k]) / 2.0


def view_joint(view, row) -> np.ndarray:
    """The joint probability of each cluster and the row's cells in one view."""
    joint = np.exp(view.log_mass)
    for k in range(len(joint)):
        for column, law in zip(view.columns, view.predictives, strict=True):
            name = SCHEMA.columns[column].name
            if name in row:
                joint[k] *= cell_probability(law, k, name, row[name])
    return joint


def state_probability(state, row) -> float:
    return float(np.prod([view_joint(view, row).sum() for view in state.views]))


def probability(posterior, row, given=None):
    """p(row | given), states averaged."""
    given = given or {}
    joint = np.mean([state_probability(state, row | given) for state in posterior.states])
    return joint / np.mean([state_probability(state, given) for state in posterior.states])


def plain_mean(posterior, name, given, value):
    """The mean over states and clusters of `value(law, k)`, given some cells."""
    column = SCHEMA.index(name)
    total = np.mean([state_probability(state, given) for state in posterior.states])
    found = 0.0
    for number, state in enumerate(posterior.states):
        view = posterior.view(number, column)
        joint = view_joint(view, given)
        law = view.predictives[view.columns.index(column)]
        mean = sum(w * value(law, k) for k, w in enumerate(joint)) / joint.sum()
        found += state_probability(state, given) / total * mean / len(posterior.states)
    return found
