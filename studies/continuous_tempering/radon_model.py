"""Radon in 919 homes of 85 counties: the paper's hierarchical regression, in PyMC and in NumPyro.

    sigma_alpha, sigma_beta, epsilon ~ HalfCauchy(2.5);   mu_alpha, mu_beta ~ N(0, 1);   n_alpha, n_beta ~ N(0, 1)
    alpha = mu_alpha + sigma_alpha n_alpha (85 counties);   beta = mu_beta + sigma_beta n_beta (floor, uranium)
    log radon ~ N(alpha[county] + floor beta_0 + uranium beta_1, epsilon)

92 parameters, scales on the log.
"""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

FILE = "radon/radon.csv"
NUM_COUNTIES = 85


class Radon(NamedTuple):
    """One entry for each home."""

    county: np.ndarray
    floor: np.ndarray
    uranium: np.ndarray
    radon: np.ndarray


def load(folder: Path) -> Radon:
    """The survey, from a table with named columns."""
    table = np.genfromtxt(folder / FILE, delimiter=",", names=True)
    return Radon(
        table["county"].astype(int), table["floor"], table["log_uranium"], table["log_radon"]
    )


def made(num_homes: int = 60, num_counties: int = NUM_COUNTIES, seed: int = 0) -> Radon:
    """Homes of nowhere, for tests."""
    rng = np.random.default_rng(seed)
    county = rng.integers(num_counties, size=num_homes)
    floor = rng.integers(2, size=num_homes).astype(float)
    uranium = rng.normal(size=num_counties)[county]
    radon = 1.3 + 0.3 * rng.normal(size=num_counties)[county] - 0.7 * floor + 0.7 * uranium
    return Radon(county, floor, uranium, radon + 0.7 * rng.normal(size=num_homes))


def numpyro_model(county: Any, floor: Any, uranium: Any, radon: Any) -> None:
    import numpyro
    import numpyro.distributions as dist

    sigma_alpha = numpyro.sample("sigma_alpha", dist.HalfCauchy(2.5))
    sigma_beta = numpyro.sample("sigma_beta", dist.HalfCauchy(2.5))
    epsilon = numpyro.sample("epsilon", dist.HalfCauchy(2.5))
    mu_alpha = numpyro.sample("mu_alpha", dist.Normal(0.0, 1.0))
    mu_beta = numpyro.sample("mu_beta", dist.Normal(0.0, 1.0))
    with numpyro.plate("county", NUM_COUNTIES):
        n_alpha = numpyro.sample("n_alpha", dist.Normal(0.0, 1.0))
    with numpyro.plate("regressor", 2):
        n_beta = numpyro.sample("n_beta", dist.Normal(0.0, 1.0))
    alpha = mu_alpha + sigma_alpha * n_alpha
    beta = mu_beta + sigma_beta * n_beta
    mean = alpha[county] + floor * beta[0] + uranium * beta[1]
    with numpyro.plate("home", len(radon)):
        numpyro.sample("radon", dist.Normal(mean, epsilon), obs=radon)


def pymc_model(data: Radon) -> Any:
    import pymc as pm

    with pm.Model(coords={"county": np.arange(NUM_COUNTIES)}) as model:
        sigma_alpha = pm.HalfCauchy("sigma_alpha", 2.5)
        sigma_beta = pm.HalfCauchy("sigma_beta", 2.5)
        epsilon = pm.HalfCauchy("epsilon", 2.5)
        mu_alpha = pm.Normal("mu_alpha", 0.0, 1.0)
        mu_beta = pm.Normal("mu_beta", 0.0, 1.0)
        n_alpha = pm.Normal("n_alpha", 0.0, 1.0, dims="county")
        n_beta = pm.Normal("n_beta", 0.0, 1.0, shape=2)
        alpha = mu_alpha + sigma_alpha * n_alpha
        beta = mu_beta + sigma_beta * n_beta
        mean = alpha[data.county] + data.floor * beta[0] + data.uranium * beta[1]
        pm.Normal("radon", mean, epsilon, observed=data.radon)
    return model
