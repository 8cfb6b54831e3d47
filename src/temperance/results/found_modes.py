"""`modes(problem)`: the hunt alone, for those who only want to look."""

from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from temperance.bases.modes import find_reference
from temperance.bases.reference import Reference
from temperance.errors import ArgumentError
from temperance.problems.checks import check_count, check_problem
from temperance.problems.problem import Problem, Target, densities_of
from temperance.programs.random_streams import Run, stream
from temperance.programs.scope import across_precisions, scope
from temperance.rows.source import refuse_sources


@dataclass(frozen=True, eq=False)
class FoundModes:
    """What a hunt found. `str` of it is a table and a sentence.

    `centers` are the modes by variable, (mode, ...), best first. `shares` and `errors` say how much
    of the mass each holds, by independent draws of `reference`; the estimate can be trusted where
    `reference.shape` is below 0.7. `found` counts the draws of the base whose climbs ended there,
    and `bound` is what the basin of a further mode could hold of the base's mass, with 95 %
    confidence. Give `reference` to `sample` as `base=`.
    """

    centers: dict[str, np.ndarray]
    shares: np.ndarray
    errors: np.ndarray
    found: np.ndarray
    log_evidence: float
    bound: float
    num_draws: int
    num_missed: int
    num_evaluations: int
    reference: Reference

    def __len__(self) -> int:
        return len(self.shares)

    def table(self) -> Any:
        """The modes as a frame."""
        import pandas as pd

        columns: dict[str, Any] = {"share": self.shares, "error": self.errors, "found": self.found}
        for name, values in self.centers.items():
            flat = values.reshape(len(values), -1)
            single = values.ndim == 1
            columns |= {
                name if single else f"{name}[{i}]": flat[:, i] for i in range(flat.shape[1])
            }
        return pd.DataFrame(columns).rename_axis("mode")

    def __str__(self) -> str:
        """The table, and what may have been missed."""
        table = self.table().to_string(float_format=lambda value: f"{value:.3g}")
        return (
            f"{table}\n\nA further mode would have to hold less than {self.bound:.2g} of the "
            f"base's mass (95 %): {self.num_draws} of its draws were followed uphill"
            + (f", and {self.num_missed} ended at none of these." if self.num_missed else ".")
        )


@across_precisions
def modes(
    problem: Problem | Target,
    *,
    seed: int = 0,
    precision: str = "double",
    progress: bool = True,
) -> FoundModes:
    """Hunt for the modes of `problem`, and say how much of its mass each of them holds.

    Draws of the prior or base, and points nearer to its middle, are followed uphill; short chains
    then tell how wide the modes are (docs/explanation/modes.md). It takes about as long as a tenth
    of a run.
    """
    if not isinstance(problem, Problem | Target):
        raise ArgumentError(f"problem: wanted a Problem or a Target, got {type(problem).__name__}")
    seed = check_count("seed", seed, 0)
    if isinstance(problem, Problem):
        refuse_sources(problem.data, "modes")
    with scope(precision):
        densities = densities_of(problem)
        check_problem(problem, densities)
        with jax.enable_x64(True):
            key = jax.random.key(seed)
        reference = find_reference(problem, densities, stream(key, Run.HUNT), progress=progress)
        found = np.zeros(reference.num_modes, int)
        found[: reference.hunt.num_modes] = reference.hunt.counts()
        return FoundModes(
            densities.layout.split(reference.centers), reference.shares, reference.share_errors,
            found, reference.log_zeta, reference.hunt.bound, reference.hunt.num_draws,
            reference.hunt.num_missed,            reference.num_evaluations, reference,
        )  # fmt: skip
