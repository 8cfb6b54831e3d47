"""Mini-batch tempered Metropolis on a finite space, summed over every batch.

Rows 0 ... n-1 have a term l_i(x) in each of the states x, and a batch is one of `all_batches`: a
set of m rows, or m rows in a row if they are drawn with replacement, all equally likely. With q a
proposal on the states there are matrices

    common            of states: one batch for both ends of a step, averaged over batches
    penalised         the same with the penalty for the noise, its variance taken from the batch
    noisy             of states, where the noise of log r is normal with a variance that is known
    own_batch         of states with a batch of their own: q and a fresh batch, together
    moved_on_batch    the same space: the state moved on the batch that it has
    exchanged         the same space: a row of the batch for any other, the state kept

and laws `tempered`, which is meant, and `extended` with its `state_marginal`, which own batches
have. States with batches are numbered with the batch fastest. What a step decides by is asked of
`BatchLaw`, as the moves do.
"""

from collections.abc import Callable, Sequence
from itertools import combinations, product

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from scipy import stats

from temperance.moves.minibatch.batch_law import BatchLaw, mean_acceptance, penalty
from temperance.testing.enumeration import (
    JointLaw,
    JointMatrix,
    Law,
    Matrix,
    kernel_of_moves,
    metropolis,
    normalised,
)
from temperance.testing.subsamples import Terms

Batch = tuple[int, ...]
LogPrior = Float[np.ndarray, " n"] | None
Weights = Float[np.ndarray, "n batches"]


def all_batches(law: BatchLaw) -> list[Batch]:
    """Every batch: sets of rows, or with replacement every row at every place."""
    rows, size = range(law.batches.num_rows), law.batch_size
    if law.batches.replace:
        return list(product(rows, repeat=size))
    return list(combinations(rows, size))


def tempered(law: BatchLaw, terms: Terms, log_prior: LogPrior = None) -> Law:
    """What is meant: the posterior to the power beta, with the prior to its own power."""
    with jax.enable_x64(True):
        mean = jnp.asarray(terms.mean(axis=0))
        return normalised(np.asarray(law.log_density(mean, _prior(terms, log_prior))))


def log_weights(
    law: BatchLaw, terms: Terms, log_prior: LogPrior = None, *, corrected: bool = False
) -> Weights:
    """Log f(x, S), for every state and every batch."""
    with jax.enable_x64(True):
        on_batches = jnp.asarray(np.moveaxis(terms[np.array(all_batches(law))], 2, 0))
        of_batch = jax.vmap(lambda t, p: law.log_weight(t, p, corrected), in_axes=(0, None))
        return np.asarray(jax.vmap(of_batch)(on_batches, _prior(terms, log_prior)))


def extended(weights: Weights) -> JointLaw:
    """f, summing to one."""
    return normalised(weights.reshape(-1))


def state_marginal(law: JointLaw, num_states: int) -> Law:
    """The law of the state without its batch: E_S f(x, S)."""
    return law.reshape(num_states, -1).sum(axis=1)


# One batch for both ends


def common(law: BatchLaw, terms: Terms, proposal: Matrix, log_prior: LogPrior = None) -> Matrix:
    """Paper 2's Algorithm 1: the batch's noise is left as it is."""
    return _compared(law, terms, proposal, log_prior, lambda d, p: law.log_density(d.mean(), p))


def penalised(law: BatchLaw, terms: Terms, proposal: Matrix, log_prior: LogPrior = None) -> Matrix:
    """With the penalty for the noise, on batches that do not grow."""

    def log_ratio(differences: jax.Array, prior: jax.Array) -> jax.Array:
        size = law.batch_size
        variance = law.variance(jnp.var(differences, ddof=1), size)
        return law.log_ratio(jnp.mean(differences), prior, variance, size)

    return _compared(law, terms, proposal, log_prior, log_ratio)


def noisy(
    proposal: Matrix,
    log_density: Float[np.ndarray, " n"],
    variance: Float[np.ndarray, "n n"],
    *,
    penalised: bool,
) -> Matrix:
    """Metropolis where log r has normal noise of known variance, averaged over the noise."""
    log_ratio = log_density[None, :] - log_density[:, None] + _way_back(proposal)
    # Where nothing is proposed the variance may be zero.
    used = np.where(proposal > 0, np.maximum(variance, 1e-300), 1.0)
    shift = 0.5 * used if penalised else np.zeros_like(used)
    with jax.enable_x64(True):
        chance = np.asarray(mean_acceptance(jnp.asarray(log_ratio - shift), jnp.asarray(used)))
    return kernel_of_moves(proposal * chance)


def penalty_residual(
    log_ratio: float, variance: float, count: int, series: Callable = penalty
) -> float:
    """Log a(D)/a(-D) - D where the variance is estimated from `count` normal differences.

    Zero would be detailed balance. The estimate is V chi^2 / (count - 1), independent of the mean;
    a is known for each estimate, and summed over them.
    """
    df = count - 1
    nodes = np.linspace(stats.chi2.ppf(1e-14, df), stats.chi2.isf(1e-14, df), 4001)
    weights = stats.chi2.pdf(nodes, df)
    with jax.enable_x64(True):
        estimates = jnp.asarray(variance * nodes / df)
        shift = np.asarray(series(estimates, count))
        chances = [
            np.asarray(
                mean_acceptance(jnp.asarray(sign * log_ratio - shift), jnp.asarray(variance))
            )
            for sign in (1.0, -1.0)
        ]
    there, back = (float(chance @ weights / weights.sum()) for chance in chances)
    return float(np.log(there / back) - log_ratio)


# A batch of its own for each state


def own_batch(weights: Weights, proposals: Matrix | Sequence[Matrix]) -> JointMatrix:
    """A state and a fresh batch proposed together: the pair is kept or replaced as a whole.

    `proposals` is one matrix, or one for each batch: then a step is proposed by the batch that the
    state has, and the way back by the batch that is proposed.
    """
    num_states, num_batches = weights.shape
    each = [proposals] * num_batches if isinstance(proposals, np.ndarray) else list(proposals)
    # (x, S, y): from a state with a batch to a state, with any batch.
    to_state = np.stack(each, axis=1)[..., None] / num_batches
    whole = np.broadcast_to(to_state, (num_states, num_batches, num_states, num_batches))
    return metropolis(whole.reshape(weights.size, weights.size), weights.reshape(-1))


def moved_on_batch(weights: Weights, proposal: Matrix) -> JointMatrix:
    """The state moved by Metropolis on the batch that it has."""
    return metropolis(np.kron(proposal, np.eye(weights.shape[1])), weights.reshape(-1))


def exchanged(law: BatchLaw, weights: Weights) -> JointMatrix:
    """Any row proposed for any place of the batch; one that is in a set already is refused."""
    batches = all_batches(law)
    place = {batch: at for at, batch in enumerate(batches)}
    moves = np.zeros((len(batches), len(batches)))
    for here, batch in enumerate(batches):
        for slot, row in product(range(law.batch_size), range(law.batches.num_rows)):
            other = (*batch[:slot], row, *batch[slot + 1 :])
            if not law.batches.replace:
                other = batch if row in batch else tuple(sorted(other))
            moves[here, place[other]] += 1.0 / (law.batch_size * law.batches.num_rows)
    return metropolis(np.kron(np.eye(weights.shape[0]), moves), weights.reshape(-1))


def normal_tilt(spread: float, size: int, *, corrected: bool) -> float:
    """Log E_S f over what is meant, for normal terms whose mean has scaled variance `spread`.

    V/2 without correction; by the law of a sample variance V/2 - (m-1)/2 log(1 + V/(m-1)) with it.
    """
    if not corrected:
        return 0.5 * spread
    return 0.5 * spread - 0.5 * (size - 1) * float(np.log1p(spread / (size - 1)))


def _compared(
    law: BatchLaw,
    terms: Terms,
    proposal: Matrix,
    log_prior: LogPrior,
    log_ratio: Callable[[jax.Array, jax.Array], jax.Array],
) -> Matrix:
    """Metropolis by the log ratio of each batch's differences, averaged over batches."""
    with jax.enable_x64(True):
        prior = _prior(terms, log_prior)
        steps = prior[None, :] - prior[:, None]
        way_back = jnp.asarray(_way_back(proposal))

        def of_batch(rows: jax.Array) -> jax.Array:
            differences = rows[:, None, :] - rows[:, :, None]
            pairs = jax.vmap(jax.vmap(log_ratio, in_axes=(1, 0)), in_axes=(1, 0))
            return jnp.exp(jnp.minimum(pairs(differences, steps) + way_back, 0.0))

        chances = jax.vmap(of_batch)(jnp.asarray(terms[np.array(all_batches(law))]))
        return kernel_of_moves(proposal * np.asarray(chances).mean(axis=0))


def _way_back(proposal: Matrix) -> Matrix:
    """Log q(y, x) - log q(x, y), where both are possible."""
    log_q = np.log(np.where(proposal > 0, proposal, 1.0))
    return np.where((proposal > 0) & (proposal.T > 0), log_q.T - log_q, -np.inf)


def _prior(terms: Terms, log_prior: LogPrior) -> jax.Array:
    return jnp.zeros(terms.shape[1]) if log_prior is None else jnp.asarray(log_prior)
