"""NumPyro models as problems: one trace of the model gives prior, terms and constrained values.

A latent site with support S and bijection t: R^d -> S is replaced by t(x) for an unconstrained x.
With the sites' own log densities that gives

    log prior(x)  = sum over latent sites of  log p(t(x)) + log |det dt/dx|,
    terms_i(x)    = sum over observed sites of  log p(y_i | t(x)),

the second from the model run on the arguments' rows that are asked for. The prior is drawn from by
running the model forwards and undoing t.
"""

import inspect
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float
from numpyro import distributions, handlers
from numpyro.infer.initialization import init_to_uniform
from numpyro.infer.util import compute_log_probs

from temperance._types import Data, Key, Position, Scalar
from temperance.errors import ModelError
from temperance.interop.numpyro_sites import (
    LOG_DET,
    Trace,
    check_sites,
    dims_of,
    given,
    holds,
    is_factor,
    is_latent,
    is_seen,
    unconstrained,
)
from temperance.interop.row_detection import FAILURES


class Model:
    """A NumPyro model with its arguments, as functions of an unconstrained position."""

    def __init__(self, model: Any, args: tuple[Any, ...], kwargs: dict[str, Any]):
        self.model = _checked(model, args, kwargs)
        paths, self.structure = jax.tree.flatten_with_path((args, kwargs))
        named = _names(model, len(args))
        self.leaves = [leaf for _, leaf in paths]
        self.names = [_name(path, named) for path, _ in paths]
        self.sites: Trace = {}
        with jax.enable_x64(True):
            free = self._look()
        self.example = {name: np.zeros(leaf.shape) for name, leaf in free.items()}
        self.latent = list(self.example)
        seen = [name for name, site in self.sites.items() if is_seen(site)]
        self.factors = [name for name in seen if is_factor(self.sites[name])]
        self.observed = [name for name in seen if name not in self.factors]
        if not self.latent:
            raise ModelError("model: it has no latent sample site, so there is nothing to draw")
        if not seen:
            raise ModelError(
                "model: it observes nothing, so that its posterior is its prior; give the data "
                "as arguments, and obs= in the sample statements they belong to"
            )

    # -- densities -------------------------------------------------------------------------------

    def log_prior(self, position: Position) -> Scalar:
        found, _ = self._log_probs(position, self._arguments({}))
        dets = [LOG_DET.format(name) for name in self.latent]
        names = [name for name in (*self.latent, *dets) if name in found]
        return jnp.sum(jnp.stack([jnp.sum(found[name]) for name in names]))

    def log_density(self, position: Position) -> Scalar:
        found, _ = self._log_probs(position, self._arguments({}))
        return jnp.sum(jnp.stack([jnp.sum(values) for values in found.values()]))

    def terms(self, position: Position, data: Data) -> Float[Array, " n"]:
        found, _ = self._log_probs(position, self._arguments(data))
        n = np.shape(jax.tree.leaves(data)[0])[0]
        by_site = [jnp.reshape(found[name], (n, -1)) for name in self.observed]
        return jnp.sum(jnp.concatenate(by_site, axis=1), axis=1)

    # -- positions -------------------------------------------------------------------------------

    def draw_prior(self, key: Key) -> Position:
        """A forward run of the model: the data it observes have no influence on what it draws."""
        args, kwargs = self._arguments({})
        with jax.numpy_rank_promotion("allow"):
            model = handlers.seed(self.model, key)
            return unconstrained(handlers.trace(model).get_trace(*args, **kwargs), self.latent)

    def constrain(self, position: Position) -> dict[str, Array]:
        _, sites = self._log_probs(position, self._arguments({}))
        return {name: jnp.asarray(sites[name]["value"]) for name in self._shown()}

    def dims(self) -> dict[str, list[str]]:
        """Plates as the names of axes."""
        shown = self._shown()
        taken = {*shown, "chain", "draw"}
        return {name: dims_of(self.sites[name], taken) for name in shown}

    def coords(self) -> None:
        """Plates have no labels."""

    # -- rows ------------------------------------------------------------------------------------

    def data(self) -> tuple[dict[str, np.ndarray] | None, str]:
        """The arguments that carry the rows, or the reason why there are none."""
        if self.factors:
            return None, (
                f"numpyro.factor({self.factors[0]!r}) is not the density of a row: write it as an "
                "observed site if it is a product over rows"
            )
        lengths = {}
        for name in self.observed:
            site = self.sites[name]
            batch = np.ndim(site["value"]) - len(site["fn"].event_shape)
            shape = np.shape(site["value"])[:batch] or site["fn"].batch_shape
            if not shape:
                return None, (
                    f"the observed site {name!r} has one log density for all its values "
                    f"({type(site['fn']).__name__}), not one for each row"
                )
            lengths[name] = shape[0]
        if len(set(lengths.values())) > 1:
            return None, f"observed sites have unequal numbers of rows: {lengths}"
        n = next(iter(lengths.values()))
        rows = {
            name: np.asarray(leaf)
            for name, leaf in zip(self.names, self.leaves, strict=True)
            if isinstance(leaf, np.ndarray | jax.Array) and leaf.ndim and leaf.shape[0] == n
        }
        if not rows:
            return None, (
                f"no argument is an array with the {n} rows of {self.observed[0]!r} on its leading "
                "axis: give the observed values and covariates as arguments of the model"
            )
        return rows, ""

    def undrawn(self) -> str:
        """Why prior draws are not to be had, or nothing."""
        for name in self.latent:
            site = self.sites[name]
            scale = site["scale"]
            scaled = scale is not None and (isinstance(scale, Tracer) or np.any(scale != 1))
            if scaled or holds(site["fn"], distributions.MaskedDistribution):
                return (
                    f"the prior of {name!r} is scaled or masked, so that it is not the density "
                    "its draws have"
                )
        try:
            jax.eval_shape(self.draw_prior, jax.random.key(0))
        except FAILURES as error:
            why = str(error) or "a distribution without a sampler, such as an improper one"
            return f"the prior cannot be drawn from: {why}"
        return ""

    # -- traces ----------------------------------------------------------------------------------

    def _arguments(self, data: Data) -> tuple[tuple[Any, ...], dict[str, Any]]:
        pairs = zip(self.names, self.leaves, strict=True)
        leaves = [data[name] if name in data else _precise(leaf) for name, leaf in pairs]
        return jax.tree.unflatten(self.structure, leaves)

    def _look(self) -> dict[str, jax.ShapeDtypeStruct]:
        """One run of the model for its sites, and the shape of a position.

        Nothing is computed: the values at the sites are placeholders, good for their shapes alone.
        """
        args, kwargs = self._arguments({})
        model = handlers.substitute(handlers.seed(self.model, 0), substitute_fn=init_to_uniform())

        def run() -> Position:
            self.sites = handlers.trace(model).get_trace(*args, **kwargs)
            check_sites(self.sites)
            latent = [name for name, site in self.sites.items() if is_latent(site)]
            return unconstrained(self.sites, latent)

        try:
            with jax.numpy_rank_promotion("allow"):
                return jax.eval_shape(run)
        except ModelError:
            raise
        except FAILURES as error:
            raise ModelError(
                f"model: it fails on these arguments ({type(error).__name__}: {error})"
            ) from error

    def _log_probs(
        self, position: Position, arguments: tuple[tuple[Any, ...], dict[str, Any]]
    ) -> tuple[dict[str, Array], Trace]:
        # What is still to be drawn does not count: every latent site is given.
        model = handlers.seed(handlers.substitute(self.model, substitute_fn=given(position)), 0)
        with jax.numpy_rank_promotion("allow"):
            return compute_log_probs(model, *arguments, {}, sum_log_prob=False)

    def _shown(self) -> list[str]:
        return [
            name
            for name, site in self.sites.items()
            if name in self.latent or site["type"] == "deterministic"
        ]


def _checked(model: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Callable[..., Any]:
    if not callable(model):
        raise ModelError(f"model: wanted a NumPyro model, which is a function, got {model!r}")
    try:
        inspect.signature(model).bind(*args, **kwargs)
    except TypeError as error:
        raise ModelError(
            f"model: it cannot be called with these arguments: {error}; give them after the model, "
            "from_numpyro(model, x, y=y)"
        ) from None
    except ValueError:  # something without a signature
        pass
    return model


def _precise(leaf: Any) -> Any:
    """An array in the precision of this moment, and otherwise as it was given."""
    is_array = isinstance(leaf, np.ndarray | jax.Array)
    if not is_array or jnp.issubdtype(leaf.dtype, jax.dtypes.extended):  # a random key, for one
        return leaf
    return leaf.astype(jax.dtypes.canonicalize_dtype(leaf.dtype))


def _names(model: Any, num_positional: int) -> list[str]:
    try:
        names = list(inspect.signature(model).parameters)
    except (TypeError, ValueError):
        names = []
    return [names[i] if i < len(names) else f"args{i}" for i in range(num_positional)]


def _name(path: tuple[Any, ...], positional: list[str]) -> str:
    kind, first, *rest = path
    name = positional[first.idx] if kind.idx == 0 else first.key
    return name + jax.tree_util.keystr(tuple(rest))
