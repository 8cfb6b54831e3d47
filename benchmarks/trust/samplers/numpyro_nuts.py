"""NumPyro: NUTS, four chains from the base, 1000 draws after 1000 of warm-up. No log evidence.

A run counts as warned of where a reader of its printed summary would see it: R-hat above 1.01, an effective size
below 400, or divergences.
"""

import jax
import numpy as np
import numpyro
from numpyro.diagnostics import summary
from numpyro.infer import MCMC, NUTS

jax.config.update("jax_enable_x64", True)

PACKAGES = ["numpyro", "jax"]

NUM_CHAINS = 4


def run(case, seed):
    key_base, key = jax.random.split(jax.random.key(seed))
    draws = jax.vmap(case.base.draw)(jax.random.split(key_base, 1000))
    # It cannot start outside of the support.
    starts = draws[np.isfinite(jax.vmap(case.log_density)(draws))][:NUM_CHAINS]
    sampler = MCMC(
        NUTS(potential_fn=lambda x: -case.log_density(x)),
        num_warmup=1000,
        num_samples=1000,
        num_chains=NUM_CHAINS,
        chain_method="vectorized",
        progress_bar=False,
    )
    sampler.run(key, init_params=starts, extra_fields=("diverging",))
    found = np.asarray(sampler.get_samples(group_by_chain=True))
    table = summary(found)["Param:0"]
    divergences = int(sampler.get_extra_fields()["diverging"].sum())
    rhat, size = np.nanmax(table["r_hat"]), np.nanmin(table["n_eff"])
    warnings = []
    if not rhat <= 1.01:
        warnings.append(f"R-hat {rhat:.3f}")
    if not size >= 100 * NUM_CHAINS:
        warnings.append(f"effective size {size:.0f}")
    if divergences:
        warnings.append(f"{divergences} divergences")
    inside = case.event(found.reshape(-1, found.shape[-1]))
    return {"probability": float(inside.mean()), "warnings": warnings}


numpyro.set_host_device_count(1)
