"""Two modes with a barrier between them: how long to anneal until the better one has its share.

The modes' energies differ by gamma N and a barrier of height delta N parts them, both growing with
the number of rows N. Let x be the mass of the mode of **lower** energy. At inverse temperature
beta a state climbs the barrier at the rate exp(-beta delta N) and falls down on either side by its
weight:

    dx/dt = exp(-beta delta N) (sigma(beta gamma N) - x),    sigma(u) = 1 / (1 + exp(-u)).    (1)

At beta fixed the law is (sigma(beta gamma N), sigma(-beta gamma N)). The truth is sigma(gamma N)
and the total variation distance |x - sigma(gamma N)|.

**Cold**, beta = 1: the distance falls as exp(-t exp(-delta N)), so a distance epsilon takes
exp(delta N) log(d / epsilon) from a distance d.

**Annealed**, beta = t / T: with

    tau(t) = exp(-(T / (N delta)) (exp(-N delta t / T) - exp(-N delta)))

which rises to one at t = T and has dtau/dt = tau exp(-beta delta N), (1) reads d(x tau) = sigma
dtau:

    x(T) = x(0) tau(0) + integral from tau(0) to 1 of sigma(beta(tau) gamma N) dtau,
    beta(tau) = -log(exp(-N delta) - (N delta / T) log tau) / (N delta).

With s = -log tau the integral is that of exp(-s) / (1 + (exp(-N delta) + N delta s / T)^(gamma /
delta)) from 0 to -log tau(0).

**Bound.** 1 - sigma(u) < exp(-u), and beta(tau) falls with 1 / tau, so the part of the integral
below tau = epsilon / 2 and the part above it are each within epsilon / 2 of the truth's if
exp(-beta(epsilon / 2) gamma N) < epsilon / 2, which is

    T > N delta log(2 / epsilon) / ((epsilon / 2)^(delta / gamma) - exp(-N delta)).

It needs N > log(2 / epsilon) / gamma. For large N, T > K N delta log(2 / epsilon) (2 /
epsilon)^(delta / gamma) with any K > 1 does: linear in N, where cold inference is exponential. At
the bound itself and with N large, the distance is at most (epsilon / 2) Gamma(1 + gamma / delta) /
log(2 / epsilon)^(gamma / delta).
"""

import itertools
import math
from dataclasses import dataclass

from scipy.integrate import quad, solve_ivp
from scipy.special import expit

from temperance.errors import ArgumentError


@dataclass(frozen=True)
class TwoModeEnergy:
    """Two modes of `num_rows` rows; `gap` is gamma and `barrier` delta, energies for each row.

    >>> from temperance.testing.bimodal import TwoModeEnergy
    >>> modes = TwoModeEnergy(num_rows=200, gap=0.1, barrier=0.1)
    >>> duration = modes.duration_for(0.05)
    >>> modes.distance(modes.annealed(duration)) < 0.05
    True
    >>> modes.cold_time(0.05) / duration > 1e4
    True
    """

    num_rows: int
    gap: float
    barrier: float

    def __post_init__(self) -> None:
        if self.num_rows < 1 or not self.gap > 0 or not self.barrier > 0:
            got = f"{self.num_rows} rows, gap {self.gap} and barrier {self.barrier}"
            raise ArgumentError(f"got {got}, wanted all three positive")

    @property
    def truth(self) -> float:
        """The mass of the mode of lower energy."""
        return float(expit(self.gap * self.num_rows))

    def distance(self, x: float) -> float:
        """The total variation distance of (x, 1 - x) from the truth."""
        return abs(x - self.truth)

    def slope(self, x: float, beta: float) -> float:
        """dx/dt at an inverse temperature: equation (1)."""
        rate = math.exp(-beta * self.barrier * self.num_rows)
        return rate * (float(expit(beta * self.gap * self.num_rows)) - x)

    def cold(self, time: float, start: float = 0.0) -> float:
        """The state after some time at beta = 1."""
        kept = math.exp(-time * math.exp(-self.barrier * self.num_rows))
        return self.truth + (start - self.truth) * kept

    def cold_time(self, epsilon: float, start: float = 0.0) -> float:
        """The time at beta = 1 until the distance is epsilon."""
        _check(epsilon)
        away = self.distance(start)
        return math.exp(self.barrier * self.num_rows) * max(0.0, math.log(away / epsilon))

    def tau(self, time: float, duration: float) -> float:
        """Natural time of the anneal of a duration."""
        height = self.num_rows * self.barrier
        left = math.exp(-height * time / duration) - math.exp(-height)
        return math.exp(-duration / height * left)

    def beta(self, tau: float, duration: float) -> float:
        """The inverse temperature at a natural time."""
        height = self.num_rows * self.barrier
        return -math.log(math.exp(-height) - height / duration * math.log(tau)) / height

    def annealed(self, duration: float, start: float = 0.0) -> float:
        """The state after an anneal with beta = t / duration, by quadrature in natural time."""
        height = self.num_rows * self.barrier
        power = self.gap / self.barrier

        def integrand(s: float) -> float:
            return math.exp(-s) / (1 + (math.exp(-height) + height * s / duration) ** power)

        longest = duration / height * -math.expm1(-height)
        # Beyond 50 the factor exp(-s) leaves nothing.
        ends = [
            0.0,
            *(end for end in (1e-6, 1e-3, 0.1, 1.0, 10.0) if end < longest),
            min(longest, 50.0),
        ]
        whole = 0.0
        for low, high in itertools.pairwise(ends):
            whole += quad(integrand, low, high, epsabs=1e-13, epsrel=1e-11)[0]
        return start * math.exp(-longest) + whole

    def annealed_by_steps(self, duration: float, start: float = 0.0) -> float:
        """The same by stepping equation (1) in time."""
        # In beta the interval is one whatever the duration.
        found = solve_ivp(
            lambda beta, x: [duration * self.slope(x[0], beta)],
            (0.0, 1.0), [start], method="LSODA", rtol=1e-10, atol=1e-12,
        )  # fmt: skip
        return float(found.y[0, -1])

    def duration_for(self, epsilon: float) -> float:
        """A duration after which the distance is below epsilon from any start."""
        _check(epsilon)
        height, power = self.num_rows * self.barrier, self.barrier / self.gap
        room = (epsilon / 2) ** power - math.exp(-height)
        if room <= 0:
            least = math.ceil(math.log(2 / epsilon) / self.gap)
            raise ArgumentError(
                f"epsilon: {epsilon} cannot be promised for {self.num_rows} rows and a gap of "
                f"{self.gap} a row; wanted more than {least} rows, or a larger epsilon"
            )
        return height * math.log(2 / epsilon) / room

    def simple_duration_for(self, epsilon: float, factor: float = 2.0) -> float:
        """The same for enough rows, linear in their number; `factor` is K > 1."""
        _check(epsilon)
        if not factor > 1:
            raise ArgumentError(f"factor: got {factor}, wanted more than one")
        height, power = self.num_rows * self.barrier, self.barrier / self.gap
        return factor * height * math.log(2 / epsilon) * (2 / epsilon) ** power


def _check(epsilon: float) -> None:
    if not 0.0 < epsilon < 1.0:
        raise ArgumentError(f"epsilon: got {epsilon}, wanted a distance between 0 and 1")
