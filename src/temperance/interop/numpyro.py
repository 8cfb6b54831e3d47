"""NumPyro's door: models as problems, and its variational fits as bases.

A fit is a Gaussian on the unconstrained space, laid out as our vectors are, with the bound

    E_q[log p(x, y) - log q(x)] <= log Z

estimated anew from many draws once the fit is made.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpyro.infer import SVI, Trace_ELBO
from numpyro.infer.autoguide import AutoMultivariateNormal, AutoNormal
from numpyro.optim import Adam

from temperance.errors import ModelError, unknown_name
from temperance.bases.fit import Fit
from temperance.interop.variational_bound import fit_of
from temperance.interop.numpyro_model import Model
from temperance.interop.row_detection import Parts, assemble
from temperance.problems.layout import Layout
from temperance.problems.problem import Problem, Target

GUIDES = ("normal", "dense")
# Draws of the guide for each step's gradient.
PARTICLES = 8


def convert(model: Any, *args: Any, **kwargs: Any) -> Problem | Target:
    """What `temperance.from_numpyro` does."""
    parts = parts_of(Model(model, args, kwargs))
    with jax.enable_x64(True):
        return assemble(parts)


def parts_of(model: Model) -> Parts:
    """What the model is made of, and the reasons for what it lacks."""
    data, reason = model.data()
    undrawn = model.undrawn()
    return Parts.of(
        model,
        draw_prior=None if undrawn else model.draw_prior,
        undrawn=undrawn,
        terms=None if data is None else model.terms,
        data=data,
        reason=reason,
    )


def _rate(step: Any, *, first: float, num_steps: int) -> Any:
    return first * 0.01 ** (step / num_steps)


def autoguide_fit(
    model: Any,
    *args: Any,
    guide: str = "normal",
    num_steps: int = 3000,
    step_size: float | int = 0.05,
    seed: int = 0,
    **kwargs: Any,
) -> Fit:
    """A Gaussian base for a NumPyro model, by its stochastic variational inference.

    `guide` is "normal", independent coordinates, or "dense", a full covariance. The fit finds one
    mode: fits of several starts, by `seed`, combine with `temperance.bases.fit.match_moments`.
    """
    if guide not in GUIDES:
        raise unknown_name("guide", guide, GUIDES)
    ours = Model(model, args, kwargs)
    layout = Layout.of(ours.example)
    with jax.enable_x64(True), jax.numpy_rank_promotion("allow"):
        kind: Any = AutoNormal(model) if guide == "normal" else AutoMultivariateNormal(model)
        # Steps that grow smaller end nearer to the optimum than any one size does.
        rate = partial(_rate, first=float(step_size), num_steps=num_steps)
        inference = SVI(model, kind, Adam(rate), Trace_ELBO(num_particles=PARTICLES))
        key = jax.random.key(seed)
        found = inference.run(key, num_steps, *args, progress_bar=False, **kwargs).params
        if guide == "normal":
            parts = ("auto_loc", "auto_scale")
            named = [{name: found[f"{name}_{part}"] for name in ours.latent} for part in parts]
            mean, scale = (np.asarray(layout.ravel(leaves)) for leaves in named)
            covariance = scale**2
        else:
            law = kind.get_posterior(found)
            # Its vector has the sites in the order in which the model comes to them.
            places = kind._unpack_latent(jnp.arange(layout.dimension))
            order = np.concatenate([np.ravel(places[name]) for name in sorted(places)]).astype(int)
            mean = np.asarray(law.loc)[order]
            covariance = np.asarray(law.covariance_matrix)[np.ix_(order, order)]
        if not np.isfinite(mean).all():
            raise ModelError(
                "model: the variational fit did not converge: give a smaller step_size, now "
                f"{step_size}"
            )
        return fit_of(ours.log_density, layout, mean, covariance, seed)
