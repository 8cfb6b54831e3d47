"""A NumPyro model as it is written, heated by leaving rows out and by powers.

The counties' levels have a common mean and spread. The model's own names, plates and constrained
values come back, and two ways to be hot agree about the evidence.
"""

import numpy as np
import numpyro
import numpyro.distributions as dist

import temperance as tp

COUNTIES, ROWS, WIDTH = 5, 200, 0.8


def model(county, y):
    mean = numpyro.sample("mean", dist.Normal(0.0, 3.0))
    spread = numpyro.sample("spread", dist.HalfNormal(2.0))
    epsilon = numpyro.sample("epsilon", dist.HalfNormal(2.0))
    with numpyro.plate("county", COUNTIES):
        level = numpyro.sample("level", dist.Normal(mean, spread))
    with numpyro.plate("rows", len(y)):
        numpyro.sample("y", dist.Normal(level[county], epsilon), obs=y)


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    levels = np.linspace(-1.0, 2.0, COUNTIES)
    county = rng.integers(0, COUNTIES, ROWS)
    y = levels[county] + WIDTH * rng.normal(size=ROWS)
    problem = tp.from_numpyro(model, county, y)
    options = {"num_draws": 500, "num_warmup": 500, "progress": False}
    tree = tp.sample(problem, "spt", sizes=(0, 10, 50, 200), evidence=True, **options)
    powers = tp.sample(problem, "pt", num_rungs=8, **options)
    posterior = tree["posterior"]
    highest = posterior["level"].isel(county=-1)
    log_z, error = tp.log_evidence(tree)
    print("variables:", ", ".join(sorted(posterior.data_vars)))
    print(
        f"level of the highest county {float(highest.mean()):.2f} +- {float(highest.std()):.2f}, known {levels[-1]:.2f}"
    )
    print(f"log Z {log_z:.2f} +- {error:.2f}, by powers {tp.log_evidence(powers)[0]:.2f}")
