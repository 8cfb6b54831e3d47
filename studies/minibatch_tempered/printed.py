"""What the paper prints, and nothing else."""

from typing import NamedTuple


class Printed(NamedTuple):
    """A row of Table 2: temperature, batch size and the percentage of draws in each ring."""

    temperature: float
    batch: int
    rings: tuple[float, ...]


# Average batch sizes and their standard deviation over ten runs.
TABLE_1 = {
    "mint": (100.0, 0.0),
    "barker": (125.4, 9.2),
    "austere": (973.8, 49.8),
    "austere conservative": (1924.3, 52.4),
    "confident": (10783.4, 78.9),
}
TABLE_2 = (
    Printed(1.00, 100_000, (51.08, 4.76, 6.45, 8.44, 10.00, 9.73, 9.55)),
    Printed(19.41, 5378, (40.15, 5.01, 7.14, 9.63, 12.20, 12.72, 13.16)),
    Printed(27.13, 3841, (34.80, 4.91, 7.16, 10.11, 13.09, 14.37, 15.57)),
    Printed(37.93, 2743, (29.93, 4.78, 7.05, 10.23, 13.97, 15.82, 18.22)),
    Printed(53.02, 1959, (22.20, 4.17, 6.42, 9.93, 14.40, 18.17, 24.71)),
    Printed(74.06, 1400, (13.60, 3.16, 5.12, 8.45, 13.69, 20.02, 35.96)),
    Printed(103.51, 1000, (6.08, 1.74, 3.07, 5.60, 10.44, 18.71, 54.37)),
)
# Average sizes of accepted steps in the logistic regression.
STEP_LENGTHS = {"mint": 1.71, "tempered": 1.50, "mcmc": 0.05}
