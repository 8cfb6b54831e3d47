"""A relaxed Boltzmann machine with many modes: log Z and moments, against the exact ones.

    python examples/continuous_tempering.py

Ten units make a density of up to nine dimensions whose modes are sign patterns. Mean-field fits give the
base; Gibbs continuous tempering and annealed importance sampling give weighted draws, whose answers are
compared with sums over all 1024 states.
"""

import numpy as np

import temperance as tp
from temperance.models.boltzmann import random_machine, relaxation


def main() -> None:
    relaxed = relaxation(random_machine(10, seed=1))
    fit = relaxed.fit()
    target = relaxed.target(fit.base)
    print(f"exact: log Z {relaxed.log_z:.4f};  the base's guess {fit.log_zeta:.4f}")
    for method in ("gibbs-ct", "ais"):
        tree = tp.sample(target, method=method, num_draws=250, num_warmup=200, progress=False)
        value, error = tp.log_evidence(tree)
        mean = tp.expectation(tree, "x")
        away = np.max(np.abs(mean.value - relaxed.mean) / mean.error)
        print(f"{method:9} log Z {value:.4f} +- {error:.4f};  worst mean {away:.1f} errors off")


if __name__ == "__main__":
    main()
