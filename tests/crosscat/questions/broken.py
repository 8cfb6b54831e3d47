"""Broken twins of the questions to a fitted table, each named after its slip."""

import numpy as np

from temperance.crosscat.questions.log_probability import log_by_state, log_mean_exp, log_score
from temperance.crosscat.questions.mutual_information import mutual_information
from temperance.crosscat.questions.posterior import Posterior
from temperance.crosscat.questions.predictive_sampling import draw_rows


def score_that_averages_logs(posterior, cells, known=None):
    """The states' mean in log space."""
    return log_by_state(posterior, cells, known).mean(axis=0)


def conditional_that_trusts_states_alike(posterior, cells, asked, given):
    """The mean of the states' own conditionals: what is given says nothing about states."""
    joint = log_by_state(posterior, cells, asked | given)
    return log_mean_exp(joint - log_by_state(posterior, cells, given))


def without_new_clusters(posterior: Posterior) -> Posterior:
    """A new row must join a cluster that there is."""
    states = tuple(
        state._replace(views=tuple(_old_only(view) for view in state.views))
        for state in posterior.states
    )
    return Posterior(posterior.schema, posterior.features, states)


def _old_only(view):
    mass = view.log_mass.copy()
    mass[-1] = -np.inf
    return view._replace(log_mass=mass - np.log(np.exp(mass).sum()))


def score_without_new_cluster(posterior, cells, known=None):
    return log_score(without_new_clusters(posterior), cells, known)


def draw_that_chooses_states_evenly(posterior, num, columns, given, known, rng):
    """Each state gives its share of the rows, whatever it thinks of what is given."""
    shares = rng.multinomial(num, np.full(posterior.num_states, 1.0 / posterior.num_states))
    parts = [
        draw_rows(
            Posterior(posterior.schema, posterior.features, (state,)),
            int(share),
            columns,
            given,
            known,
            rng,
        )
        for state, share in zip(posterior.states, shares, strict=True)
    ]
    return {column: _end_to_end([part[column] for part in parts]) for column in columns}


def draw_that_forgets_what_is_given(posterior, num, columns, given, known, rng):
    return draw_rows(posterior, num, columns, given, np.zeros_like(known), rng)


def _end_to_end(parts):
    joined = (
        None if members[0] is None else np.concatenate(members)
        for members in zip(*parts, strict=True)
    )
    return type(parts[0])(*joined)


def surprisal_of_cells_alone(posterior, cells):
    """-log p(cell), as if the rest of the row were not known."""
    found = []
    for column in range(posterior.num_columns):
        known = np.arange(posterior.num_columns) == column
        found.append(-log_score(posterior, cells, known))
    return np.array(found).T


def information_in_one_cluster(posterior, a, b, given, known, num_samples, rng):
    """The clusters' masses before anything is known."""
    return mutual_information(posterior, a, b, given, np.zeros_like(known), num_samples, rng)
