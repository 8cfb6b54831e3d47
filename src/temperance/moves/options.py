"""Options that several moves have: a step size, fixed or tuned, and a metric."""

from temperance.errors import ArgumentError

METRICS = ("unit", "diagonal", "dense")


def checked_step(value: float | None, name: str) -> float | None:
    """A fixed step size, if it is one; None is tuned in warm-up."""
    if value is not None and not value > 0:
        raise ArgumentError(f"{name}: wanted a positive number or None (tuned), got {value!r}")
    return None if value is None else float(value)


def checked_metric(metric: str) -> str:
    """A known metric's name."""
    if metric not in METRICS:
        raise ArgumentError(f"metric: wanted 'diagonal', 'dense' or 'unit', got {metric!r}")
    return metric


def wider_metric(one: str, two: str) -> str:
    """The metric that has what both need."""
    return max(one, two, key=METRICS.index)
