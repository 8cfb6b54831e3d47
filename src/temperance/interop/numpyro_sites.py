"""What a trace of a NumPyro model says of its sites: which kind each is, and where it lives.

A latent site with support S has a bijection t: R^d -> S. Its value is t(x), and log |det dt/dx|
goes beside it as a factor of the model, under a name of its own.
"""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro
from numpyro import distributions
from numpyro.distributions.transforms import biject_to

from temperance._types import Position
from temperance.errors import ModelError

Site = dict[str, Any]
Trace = dict[str, Site]
LOG_DET = "_{}_log_det"


def check_sites(sites: Trace) -> None:
    """That every site has a place here."""
    for name, site in sites.items():
        if site["type"] == "param":
            raise ModelError(
                f"model: {name!r} is a numpyro.param, which has no prior: make it a sample site"
            )
        if site["type"] == "plate" and site["args"][1] not in (None, site["args"][0]):
            raise ModelError(
                f"model: the plate {name!r} takes a random subsample of its {site['args'][0]} "
                "rows: leave subsample_size out. Methods 'spt', 'stt' and 'mint' leave rows out"
            )
        if is_latent(site) and site["fn"].support.is_discrete:
            raise ModelError(
                f"model: the latent site {name!r} is discrete, and the moves here propose real "
                "values: sum it out, for instance with MixtureSameFamily"
            )


def given(position: Position) -> Callable[[Site], Any]:
    """Values for the latent sites, and their Jacobians as factors beside them."""

    def substitute(site: Site) -> Any:
        name = site["name"]
        if name not in position or site["type"] != "sample":
            return None
        support, x = site["fn"].support, position[name]
        transform = biject_to(support)
        # Inside NumPyro's scan a site is one step of a sequence, and its position is all of it.
        step = site["infer"].get("_scan_current_index", None)
        shift = transform.codomain.event_dim - transform.domain.event_dim
        if step is not None and jnp.ndim(x) > len(site["fn"].shape()) - shift:
            x = x[step]
        value = transform(x)
        log_det = transform.log_abs_det_jacobian(x, value)
        # A transform may act on fewer axes than the site counts as one value.
        inner = jnp.ndim(log_det) - (jnp.ndim(value) - len(site["fn"].event_shape))
        axes = tuple(range(jnp.ndim(log_det) - inner, jnp.ndim(log_det)))
        numpyro.factor(LOG_DET.format(name), jnp.sum(log_det, axis=axes))
        return value

    return substitute


def unconstrained(sites: Trace, names: list[str]) -> Position:
    """The x whose t(x) are the values of these sites."""
    return {name: biject_to(sites[name]["fn"].support).inv(sites[name]["value"]) for name in names}


def is_latent(site: Site) -> bool:
    """Whether it is drawn."""
    return site["type"] == "sample" and not site["is_observed"]


def is_seen(site: Site) -> bool:
    """Whether it is observed, or a factor."""
    return site["type"] == "sample" and site["is_observed"]


def is_factor(site: Site) -> bool:
    """Whether it is a log density that belongs to no value."""
    return holds(site["fn"], distributions.Unit)


def holds(law: Any, kind: type) -> bool:
    """Whether a distribution is of a kind, under any number of wrappers."""
    while not isinstance(law, kind):
        law = getattr(law, "base_dist", None)
        if law is None:
            return False
    return True


def dims_of(site: Site, taken: set[str]) -> list[str]:
    """Names of a site's axes: those of its plates, where they are not `taken`."""
    shape = np.shape(site["value"])
    dims = [f"{site['name']}_dim_{axis}" for axis in range(len(shape))]
    frames = site.get("cond_indep_stack", ())
    if site["type"] == "deterministic":
        # Which of its axes are a plate's is not written anywhere, unless all are.
        batch = len(shape) if len(frames) == len(shape) else 0
    else:
        batch = len(shape) - len(site["fn"].event_shape)
    for frame in frames:
        axis = batch + frame.dim
        if 0 <= axis < batch and shape[axis] == frame.size and frame.name not in taken:
            dims[axis] = frame.name
    return dims
