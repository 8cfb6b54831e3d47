"""Random targets whose log evidence and one probability are known exactly.

    case = random_case(7)
    case.target         what a sampler is given: a Target with a Gaussian base, or a Problem
    case.log_z          the exact log evidence
    case.event(draws)   for draws (n, d): whether each is in the event of probability case.probability

Families take turns with the seed. A probability that is wrong by 0.1, or a log evidence that is
wrong by 0.25, means that a mode, a tail or the evidence was missed, and not that draws were few.
The base covers the target: no mode lies further than two or three of its standard deviations out,
except in `conflict`, where it is a prior that is far off.

"Exact" is a formula, or a quadrature whose error is below 1e-6. All but `labels` and the t
rows of `conflict` have exact draws too, which the tests use. A component s times narrower than the others in d
dimensions has d log s of at most 12 in mixtures, since no sampler finds a basin of nearly no mass.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement
from math import lgamma
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from benchmarks.trust.galaxies import VELOCITIES
from jax.scipy.special import gammaln, logsumexp
from scipy.special import betaln, log_ndtr, ndtr, ndtri, sici
from scipy.stats import beta, chi2, gamma, multivariate_normal, ncx2, ortho_group, t as student

import temperance as tp

LOG_2PI = float(np.log(2 * np.pi))


@dataclass(frozen=True, eq=False)
class Case:
    """A target and what is true of it.

    `base` is what the target is heated from: its own base, or the prior of a problem.
    """

    name: str
    family: str
    target: tp.Target | tp.Problem
    log_z: float
    event: Callable[[np.ndarray], np.ndarray]
    probability: float
    words: str
    base: tp.Gaussian
    draw: Callable[[np.random.Generator, int], np.ndarray] | None = None

    @property
    def dimension(self) -> int:
        return self.base.dimension

    def log_density(self, x: Any) -> Any:
        """Log of prior times likelihood, or of the target, not normalised."""
        if isinstance(self.target, tp.Problem):
            rows = jnp.sum(self.target.terms(x, self.target.data))
            return self.target.log_prior(x) + rows
        return self.target.log_density(x)

    def log_likelihood(self, x: Any) -> Any:
        """What the base is multiplied by, for samplers that speak of a prior and a likelihood."""
        if isinstance(self.target, tp.Problem):
            return jnp.sum(self.target.terms(x, self.target.data))
        return self.target.log_density(x) - self.base(x)


def random_case(seed: int) -> Case:
    """The case of a seed, the same on every machine."""
    family = list(FAMILIES)[seed % len(FAMILIES)]
    case = FAMILIES[family](np.random.default_rng([seed, 22]))
    return replace(case, name=f"{family}-{seed}")


# ---------------------------------------------------------------------------------------- mixtures


@dataclass(frozen=True, eq=False)
class Mixture:
    """sum_k w_k p_k, where p_k is N(m_k, L_k L_k') or the t law of that location and scale."""

    weights: np.ndarray
    centers: np.ndarray
    factors: np.ndarray
    freedom: float | None = None

    @property
    def dimension(self) -> int:
        return self.centers.shape[1]

    def log_density(self, x: Any) -> Any:
        d, nu = self.dimension, self.freedom
        inverses = np.linalg.inv(self.factors)
        z = jnp.einsum("kij,kj->ki", inverses, x[None, :] - self.centers)
        squares = jnp.sum(z**2, axis=1)
        if nu is None:
            logs = -0.5 * squares - 0.5 * d * LOG_2PI
        else:
            constant = gammaln((nu + d) / 2) - gammaln(nu / 2) - 0.5 * d * np.log(nu * np.pi)
            logs = constant - 0.5 * (nu + d) * jnp.log1p(squares / nu)
        _, volumes = np.linalg.slogdet(self.factors)
        return logsumexp(logs - volumes + np.log(self.weights))

    def draw(self, rng: np.random.Generator, num: int) -> np.ndarray:
        which = rng.choice(len(self.weights), num, p=self.weights)
        z = rng.standard_normal((num, self.dimension))
        if self.freedom is not None:
            z *= np.sqrt(self.freedom / rng.chisquare(self.freedom, (num, 1)))
        return self.centers[which] + np.einsum("nij,nj->ni", self.factors[which], z)

    def scales(self, direction: np.ndarray) -> np.ndarray:
        """The scale of each component along a direction."""
        return np.linalg.norm(np.einsum("kij,i->kj", self.factors, direction), axis=1)

    def beyond(self, direction: np.ndarray, threshold: float) -> float:
        """The probability that direction . x > threshold."""
        z = (self.centers @ direction - threshold) / self.scales(direction)
        each = ndtr(z) if self.freedom is None else student.cdf(z, self.freedom)
        return float(self.weights @ each)

    def parting(self, rng: np.random.Generator) -> tuple[np.ndarray, float]:
        """A half-space between two components, of probability 0.1 to 0.9 if there is one."""
        num = len(self.weights)
        pairs = [(i, j) for i in range(num) for j in range(num) if i != j]
        found = []
        for i, j in rng.permutation(pairs):
            direction = self.centers[i] - self.centers[j]
            direction = direction / np.linalg.norm(direction)
            middle = self.centers[[i, j]] @ direction
            scales = self.scales(direction)[[j, i]]
            threshold = float(middle @ scales / scales.sum())
            found.append((abs(self.beyond(direction, threshold) - 0.5), direction, threshold))
            if found[-1][0] < 0.4:
                return direction, threshold
        _, direction, threshold = min(found, key=lambda entry: entry[0])
        return direction, threshold


def half_space(direction: np.ndarray, threshold: float) -> Callable[[np.ndarray], np.ndarray]:
    return lambda draws: draws @ direction > threshold


def with_constant(density: Callable[..., Any], constant: float) -> Callable[..., Any]:
    """The same law with another normaliser."""
    return lambda x: density(x) + constant


def factor_of(rng: np.random.Generator, dimension: int, spread: float = 0.7) -> np.ndarray:
    """L of a random covariance of determinant one: semi-axes within exp(+-spread)."""
    logs = rng.uniform(-spread, spread, dimension)
    rotation = ortho_group.rvs(dimension, random_state=rng) if dimension > 1 else np.eye(1)
    return rotation * np.exp(logs - logs.mean())


def parted_centers(rng: np.random.Generator, extents: np.ndarray, dimension: int) -> np.ndarray:
    """Centres of which the nearest two are 3 to 5 of their summed extents apart."""
    num = len(extents)
    best, most = np.zeros((num, dimension)), -1.0
    for _ in range(50):
        centers = rng.standard_normal((num, dimension))
        centers -= centers.mean(axis=0)
        apart = np.linalg.norm(centers[:, None] - centers, axis=2)
        least = (apart / (extents[:, None] + extents) + 1e9 * np.eye(num)).min()
        if least / np.linalg.norm(centers) > most:
            best, most = centers / least, least / np.linalg.norm(centers)
    return best * rng.uniform(3, 5)


def covering(rng: np.random.Generator, centers: np.ndarray, extents: np.ndarray) -> tp.Gaussian:
    """A round base around everything."""
    d = centers.shape[1]
    middle = (centers.min(axis=0) + centers.max(axis=0)) / 2
    far = np.linalg.norm(centers - middle, axis=1)
    scale = max(np.sqrt(far**2 / d + extents**2).max(), far.max() / 2, 1.3 * extents.max())
    return tp.Gaussian(middle, float(scale * rng.uniform(1.0, 1.5)) ** 2)


def mixture_case(
    family: str, law: Mixture, base: tp.Gaussian, rng: np.random.Generator, words: str
) -> Case:
    direction, threshold = law.parting(rng)
    constant = float(rng.normal(0, 3))
    return Case(
        family,
        family,
        tp.Target(with_constant(law.log_density, constant), base=base),
        constant,
        half_space(direction, threshold),
        law.beyond(direction, threshold),
        words,
        base,
        law.draw,
    )


def gaussians(rng: np.random.Generator) -> Case:
    """Gaussians of unequal widths, shapes and weights."""
    d, num = int(rng.integers(2, 21)), int(rng.integers(2, 9))
    weights = 0.04 + (1 - 0.04 * num) * rng.dirichlet(np.ones(num))
    ratio = rng.uniform(0, min(np.log(5), 12 / d))
    widths = np.exp(-ratio * rng.permutation(np.r_[0, 1, rng.uniform(size=num - 2)]))
    widths *= rng.uniform(0.5, 2)
    factors = np.stack([width * factor_of(rng, d) for width in widths])
    extents = np.linalg.norm(factors, ord=2, axis=(1, 2))
    centers = parted_centers(rng, extents, d) + rng.normal(0, 1, d)
    law = Mixture(weights, centers, factors)
    words = f"{num} Gaussians in {d} dimensions, widths {np.exp(ratio):.1f} to 1"
    return mixture_case("gaussians", law, covering(rng, centers, extents), rng, words)


def spike(rng: np.random.Generator) -> Case:
    """A narrow Gaussian where a wide one is high. Climbing the wide one leads into the narrow one."""
    d = int(rng.integers(2, 11))
    ratio = float(np.exp(rng.uniform(np.log(5), np.log(30))))
    weight = float(rng.uniform(0.2, 0.8))
    # Where the spike is higher than the slab, in standard deviations of the slab.
    reach = np.sqrt(2 * d * np.log(ratio)) / ratio
    way = rng.standard_normal(d)
    offset = way / np.linalg.norm(way) * rng.uniform(0, 0.8) * reach
    return spike_in_slab(d, ratio, weight, offset, rng.uniform(1.5, 3.0), float(rng.normal(0, 3)))


def spike_in_slab(
    d: int, ratio: float, weight: float, offset: np.ndarray, base_scale: float, constant: float
) -> Case:
    """weight N(offset, ratio^-2 I) + (1 - weight) N(0, I); the event is to be near the spike."""
    factors = np.stack([np.eye(d), np.eye(d) / ratio])
    law = Mixture(np.array([1 - weight, weight]), np.stack([np.zeros(d), offset]), factors)
    base = tp.Gaussian(np.zeros(d), float(base_scale) ** 2)
    square = chi2.ppf(0.999, d) / ratio**2
    far = float(offset @ offset)
    inside = ncx2.cdf(square, d, far) if far > 0 else chi2.cdf(square, d)
    return Case(
        "spike",
        "spike",
        tp.Target(with_constant(law.log_density, constant), base=base),
        constant,
        lambda draws: ((draws - offset) ** 2).sum(axis=1) < square,
        float(0.999 * weight + inside * (1 - weight)),
        f"a spike of weight {weight:.2f} in a slab {ratio:.0f} times as wide, d = {d}",
        base,
        law.draw,
    )


def tails(rng: np.random.Generator) -> Case:
    """One t law of 2 to 3 degrees of freedom; the event is to be far out in one direction."""
    d, nu = int(rng.integers(1, 11)), float(rng.uniform(2, 3))
    law = Mixture(np.ones(1), rng.normal(0, 2, (1, d)), factor_of(rng, d)[None], nu)
    way = rng.standard_normal(d)
    way /= np.linalg.norm(way)
    probability = float(rng.uniform(0.1, 0.3))
    center = float(law.centers[0] @ way)
    threshold = float(law.scales(way)[0] * student.isf(probability / 2, nu))
    base = tp.Gaussian(np.zeros(d), float(rng.uniform(4, 8)) ** 2)
    constant = float(rng.normal(0, 3))
    return Case(
        "tails",
        "tails",
        tp.Target(with_constant(law.log_density, constant), base=base),
        constant,
        lambda draws: np.abs(draws @ way - center) > threshold,
        probability,
        f"a t law of {nu:.1f} degrees of freedom in {d} dimensions",
        base,
        law.draw,
    )


def two_tails(rng: np.random.Generator) -> Case:
    """Two t laws of unequal widths."""
    d, nu = int(rng.integers(1, 11)), float(rng.uniform(2, 3))
    ratio = float(np.exp(rng.uniform(0, min(np.log(4), 8 / d))))
    factors = np.stack([factor_of(rng, d), factor_of(rng, d) / ratio])
    extents = np.linalg.norm(factors, ord=2, axis=(1, 2))
    centers = 2 * parted_centers(rng, extents, d)
    weight = float(rng.uniform(0.15, 0.85))
    law = Mixture(np.array([weight, 1 - weight]), centers, factors, nu)
    words = f"two t laws of {nu:.1f} degrees of freedom in {d} dimensions, widths {ratio:.1f} to 1"
    return mixture_case("two_tails", law, covering(rng, centers, 3 * extents), rng, words)


# ---------------------------------------------------------------------------------------- geometry


def funnel(rng: np.random.Generator) -> Case:
    """Neal's: v ~ N(0, sd^2), the others N(0, exp(v)); the event is to be in the neck."""
    d, sd = int(rng.integers(3, 11)), float(rng.uniform(1, 3))
    probability = float(rng.uniform(0.1, 0.4))
    threshold = sd * float(ndtri(probability))
    constant = float(rng.normal(0, 3))
    width = np.exp(0.5 * sd * rng.uniform(1.5, 2.0))
    base = tp.Gaussian(np.zeros(d), np.r_[(1.5 * sd) ** 2, np.full(d - 1, width**2)])

    def log_density(x):
        v, others = x[0], x[1:]
        log_v = -0.5 * (v / sd) ** 2 - np.log(sd) - 0.5 * LOG_2PI
        return log_v - 0.5 * jnp.sum(others**2 * jnp.exp(-v) + v + LOG_2PI) + constant

    def draw(rng, num):
        v = sd * rng.standard_normal((num, 1))
        return np.hstack([v, np.exp(v / 2) * rng.standard_normal((num, d - 1))])

    return Case(
        "funnel",
        "funnel",
        tp.Target(log_density, base=base),
        constant,
        lambda draws: draws[:, 0] < threshold,
        probability,
        f"a funnel in {d} dimensions, standard deviation {sd:.1f}",
        base,
        draw,
    )


@dataclass(frozen=True, eq=False)
class Banana:
    """x = center + R y: y_i ~ N(0, sds_i^2), and y_1 has bend (y_0^2 - sds_0^2) added to it."""

    center: np.ndarray
    rotation: np.ndarray
    sds: np.ndarray
    bend: float

    def log_density(self, x: Any) -> Any:
        y = self.rotation.T @ (x - self.center)
        y = y.at[1].add(-self.bend * (y[0] ** 2 - self.sds[0] ** 2))
        return jnp.sum(-0.5 * (y / self.sds) ** 2 - np.log(self.sds) - 0.5 * LOG_2PI)

    def draw(self, rng: np.random.Generator, num: int) -> np.ndarray:
        y = self.sds * rng.standard_normal((num, len(self.sds)))
        y[:, 1] += self.bend * (y[:, 0] ** 2 - self.sds[0] ** 2)
        return self.center + y @ self.rotation.T

    def beyond(self, direction: np.ndarray, threshold: float) -> float:
        """P(direction . x > threshold): given y_0 it is a normal's; over y_0 by quadrature."""
        along = self.rotation.T @ direction
        z, weights = panels(-12, 12, 400)
        y = self.sds[0] * z
        mean = (
            self.center @ direction
            + along[0] * y
            + along[1] * self.bend * (y**2 - self.sds[0] ** 2)
        )
        sd = np.linalg.norm(along[1:] * self.sds[1:])
        return float(
            weights @ (np.exp(-0.5 * z**2 - 0.5 * LOG_2PI) * ndtr((mean - threshold) / sd))
        )


def panels(low: float, high: float, num: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of ten-point Gauss-Legendre quadrature on equal panels."""
    nodes, weights = np.polynomial.legendre.leggauss(10)
    edges = np.linspace(low, high, num + 1)
    half = (edges[1] - edges[0]) / 2
    return (edges[:-1, None] + half * (1 + nodes)).ravel(), np.tile(half * weights, num)


def bananas(rng: np.random.Generator) -> Case:
    """One banana or two, of unequal widths, turned at random."""
    d, num = int(rng.integers(2, 9)), int(rng.integers(1, 3))
    ratio = float(np.exp(rng.uniform(0, min(np.log(4), 6 / d)))) if num == 2 else 1.0
    parts, extents = [], []
    for width in (1.0, 1 / ratio)[:num]:
        sds = width * np.exp(rng.uniform(-0.3, 0.3, d))
        sds[:2] = width * np.array([rng.uniform(1.5, 3), rng.uniform(0.3, 0.7)])
        height = rng.uniform(2, 6) * sds[1]  # how far the arms rise, two deviations out
        rotation = ortho_group.rvs(d, random_state=rng)
        parts.append(Banana(np.zeros(d), rotation, sds, float(height / (4 * sds[0] ** 2))))
        extents.append(1.5 * sds[0])
    extents = np.array(extents)
    centers = parted_centers(rng, extents, d) if num == 2 else np.zeros((1, d))
    parts = [replace(part, center=c) for part, c in zip(parts, centers, strict=True)]
    weight = float(rng.uniform(0.2, 0.8)) if num == 2 else 1.0
    weights = np.array([weight, 1 - weight][:num])
    if num == 2:
        way = centers[0] - centers[1]
        threshold = float((centers.mean(axis=0)) @ way) / np.linalg.norm(way)
    else:
        # Between the two arms and what joins them, askew.
        way = parts[0].rotation @ np.r_[rng.normal(0, 0.5), 1.0, np.zeros(d - 2)]
        threshold = parts[0].sds[1] * rng.uniform(-0.5, 1.0)
    way = way / np.linalg.norm(way)
    probability = sum(
        w * part.beyond(way, threshold) for w, part in zip(weights, parts, strict=True)
    )
    constant = float(rng.normal(0, 3))
    base = covering(rng, centers, extents)

    def log_density(x):
        return constant + logsumexp(
            jnp.stack([part.log_density(x) for part in parts]) + np.log(weights)
        )

    def draw(rng, num):
        which = rng.choice(len(parts), num, p=weights)
        each = np.stack([part.draw(rng, num) for part in parts])
        return each[which, np.arange(num)]

    return Case(
        "bananas",
        "bananas",
        tp.Target(log_density, base=base),
        constant,
        half_space(way, threshold),
        float(probability),
        f"{num} banana(s) in {d} dimensions, widths {ratio:.1f} to 1",
        base,
        draw,
    )


def wells(rng: np.random.Generator) -> Case:
    """A product of double wells and normals; the event is that most wells are on their right."""
    m, others = int(rng.integers(2, 7)), int(rng.integers(0, 5))
    d = m + others
    heights, places = rng.uniform(3, 8, m), rng.uniform(1.5, 3, m)
    tilts = rng.uniform(-0.5, 0.5, m)
    sds = np.exp(rng.uniform(-0.5, 0.5, others))
    rotation = ortho_group.rvs(d, random_state=rng) if rng.uniform() < 0.5 else np.eye(d)

    def log_wells(x, array):
        u = x / places
        return -heights * array.square(array.square(u) - 1) + tilts * u

    def log_density(x):
        y = rotation.T @ x
        normals = -0.5 * (y[m:] / sds) ** 2 - np.log(sds) - 0.5 * LOG_2PI
        return jnp.sum(log_wells(y[:m], jnp)) + jnp.sum(normals)

    u, weights = panels(-4, 4, 400)
    values = np.exp(log_wells(u[:, None] * places, np)) * weights[:, None]
    masses = values.sum(axis=0)
    right = values[u > 0].sum(axis=0) / masses
    # The law of how many are on the right.
    law = np.ones(1)
    for p in right:
        law = np.convolve(law, [1 - p, p])
    probability = float(law[np.arange(m + 1) > m / 2].sum())
    scales = np.r_[places * rng.uniform(1.0, 1.4, m), 1.5 * sds]
    base = tp.Gaussian(np.zeros(d), (rotation * scales**2) @ rotation.T)

    def draw(rng, num):
        columns = []
        fine, steps = panels(-4, 4, 20_000)
        for i in range(m):
            cumulated = np.cumsum(np.exp(log_wells(fine[:, None] * places, np)[:, i]) * steps)
            columns.append(
                places[i] * np.interp(rng.uniform(0, cumulated[-1], num), cumulated, fine)
            )
        return np.column_stack([*columns, sds * rng.standard_normal((num, others))]) @ rotation.T

    return Case(
        "wells",
        "wells",
        tp.Target(log_density, base=base),
        float(np.log(masses * places).sum()),
        lambda draws: ((draws @ rotation)[:, :m] > 0).sum(axis=1) > m / 2,
        probability,
        f"{m} double wells and {others} normals, barriers {heights.min():.1f} to {heights.max():.1f}",
        base,
        draw,
    )


# ---------------------------------------------------------------------------------- at a boundary


@dataclass(frozen=True, eq=False)
class Edge:
    """A law of one number: its log density in JAX, its distribution function, and draws."""

    log_density: Callable[..., Any]
    cdf: Callable[[float], float]
    draw: Callable[[np.random.Generator, int], np.ndarray]
    threshold: float
    mean: float
    scale: float
    words: str


def log_where_positive(log_density: Callable[..., Any]) -> Callable[..., Any]:
    """-inf outside of the half-line, with gradients that are finite."""
    return lambda x: jnp.where(x > 0, log_density(jnp.where(x > 0, x, 1.0)), -jnp.inf)


def exponential(rng: np.random.Generator) -> Edge:
    scale = float(rng.uniform(0.3, 3))
    return Edge(
        log_where_positive(lambda x: -x / scale - np.log(scale)),
        lambda c: float(-np.expm1(-c / scale)),
        lambda rng, num: rng.exponential(scale, num),
        scale * float(rng.uniform(0.3, 1.5)),
        0.0,
        2.5 * scale,
        "exponential",
    )


def normal_beyond_zero(rng: np.random.Generator) -> Edge:
    mean = float(rng.uniform(-3, 0.5))
    low = ndtr(-mean)
    return Edge(
        log_where_positive(lambda x: -0.5 * (x - mean) ** 2 - 0.5 * LOG_2PI - log_ndtr(mean)),
        lambda c: float((ndtr(c - mean) - low) / ndtr(mean)),
        lambda rng, num: mean - ndtri(rng.uniform(0, ndtr(mean), num)),
        float(mean - ndtri(ndtr(mean) * rng.uniform(0.3, 0.8))),
        0.0,
        2.0,
        "normal, cut off",
    )


def edge_and_hump(rng: np.random.Generator) -> Edge:
    """One mode at the boundary, one inside."""
    weight, scale = float(rng.uniform(0.2, 0.8)), float(rng.uniform(0.1, 0.4))
    mean, sd = float(rng.uniform(4, 6)), float(rng.uniform(0.3, 0.7))
    kept = ndtr(mean / sd)

    def log_density(x):
        edge = np.log(weight) - x / scale - np.log(scale)
        hump = -0.5 * ((x - mean) / sd) ** 2 - 0.5 * LOG_2PI - np.log(sd * kept)
        return jnp.logaddexp(edge, np.log(1 - weight) + hump)

    def cdf(c):
        hump = (ndtr((c - mean) / sd) - ndtr(-mean / sd)) / kept
        return float(-weight * np.expm1(-c / scale) + (1 - weight) * hump)

    def draw(rng, num):
        hump = mean - sd * ndtri(rng.uniform(0, kept, num))
        return np.where(rng.uniform(size=num) < weight, rng.exponential(scale, num), hump)

    return Edge(log_where_positive(log_density), cdf, draw, 2.0, 2.0, 3.5, "exponential and hump")


def gamma_on_log(rng: np.random.Generator) -> Edge:
    shape = float(rng.uniform(0.4, 1.2))
    law = gamma(shape)
    return Edge(
        lambda y: shape * y - jnp.exp(y) - gammaln(shape),
        lambda c: float(law.cdf(np.exp(c))),
        # A gamma of shape a is one of shape a + 1 times U^(1/a): nothing underflows.
        lambda rng, num: (
            np.log(rng.gamma(shape + 1, size=num)) + np.log(rng.uniform(size=num)) / shape
        ),
        float(np.log(law.ppf(rng.uniform(0.2, 0.6)))),
        -1.0 / shape,
        2.0 / shape,
        f"log of a gamma of shape {shape:.1f}",
    )


def beta_on_logit(rng: np.random.Generator) -> Edge:
    a, b = (float(v) for v in rng.uniform(0.4, 1.2, 2))
    law = beta(a, b)

    def draw(rng, num):
        logs = [
            np.log(rng.gamma(shape + 1, size=num)) + np.log(rng.uniform(size=num)) / shape
            for shape in (a, b)
        ]
        return logs[0] - logs[1]

    threshold = float(law.ppf(rng.uniform(0.2, 0.8)))
    return Edge(
        lambda y: a * jax.nn.log_sigmoid(y) + b * jax.nn.log_sigmoid(-y) - betaln(a, b),
        lambda c: float(law.cdf(1 / (1 + np.exp(-c)))),
        draw,
        float(np.log(threshold) - np.log1p(-threshold)),
        0.0,
        2.0 / min(a, b),
        f"logit of a beta ({a:.1f}, {b:.1f})",
    )


EDGES = (exponential, normal_beyond_zero, edge_and_hump, gamma_on_log, beta_on_logit)


def boundary(rng: np.random.Generator) -> Case:
    """Independent numbers that pile up at boundaries; the event is about the first of them."""
    d = int(rng.integers(1, 7))
    edges = [EDGES[i](rng) for i in rng.integers(0, len(EDGES), d)]
    constant = float(rng.normal(0, 3))
    base = tp.Gaussian([e.mean for e in edges], [e.scale**2 for e in edges])

    def log_density(x):
        return sum((edge.log_density(x[i]) for i, edge in enumerate(edges)), start=constant)

    return Case(
        "boundary",
        "boundary",
        tp.Target(log_density, base=base),
        constant,
        lambda draws: draws[:, 0] < edges[0].threshold,
        edges[0].cdf(edges[0].threshold),
        "; ".join(edge.words for edge in edges),
        base,
        lambda rng, num: np.column_stack([edge.draw(rng, num) for edge in edges]),
    )


# ----------------------------------------------------------------------------------- with rows


def normal_prior(mean: np.ndarray, sd: float) -> dict[str, Any]:
    """Prior and its draws, as a Problem takes them, of independent normals."""
    d = len(mean)
    return {
        "log_prior": lambda x: jnp.sum(-0.5 * ((x - mean) / sd) ** 2 - np.log(sd) - 0.5 * LOG_2PI),
        "draw_prior": lambda key: mean + sd * jax.random.normal(key, (d,)),
    }


def labels(rng: np.random.Generator) -> Case:
    """Means of two or three normals of which the galaxies' velocities are a mixture.

    Standard deviations and weights are known, so that log evidence and the law of one mean are
    sums over a grid: the integrand is smooth, falls to nothing and is band-limited for all that
    a double can say, so that its sum over a grid is its integral.
    """
    num = int(rng.integers(2, 4))
    if num == 2:
        share, sds = rng.uniform(0.3, 0.7), rng.uniform(2, 5, 2)
        weights = np.array([share, 1 - share])
    else:
        weights, sds = np.full(3, 1 / 3), np.full(3, rng.uniform(2, 3.5))
    center, spread = 21.0, 10.0
    log_z, below = mixture_of_galaxies(weights, sds, center, spread)
    thresholds = np.linspace(12, 30, 181)
    chances = below(thresholds)
    best = int(np.argmin(np.abs(chances - rng.uniform(0.3, 0.7))))
    threshold, probability = float(thresholds[best]), float(chances[best])

    def terms(x, data):
        z = (data["velocity"][:, None] - x[None, :]) / sds[None, :]
        logs = np.log(weights / sds)[None, :] - 0.5 * z**2 - 0.5 * LOG_2PI
        return logsumexp(logs, axis=1)

    return Case(
        "labels",
        "labels",
        tp.Problem(
            terms=terms,
            data={"velocity": np.array(VELOCITIES)},
            **normal_prior(np.full(num, center), spread),
        ),
        log_z,
        lambda draws: draws[:, 0] < threshold,
        probability,
        f"the means of {num} normals in the galaxies, weights {np.round(weights, 2).tolist()}, "
        f"standard deviations {np.round(sds, 1).tolist()}",
        tp.Gaussian(np.full(num, center), spread**2),
    )


def mixture_of_galaxies(
    weights: np.ndarray, sds: np.ndarray, center: float, spread: float, step: float | None = None
) -> tuple[float, Callable[[np.ndarray], np.ndarray]]:
    """The log evidence, and the distribution function of the first mean.

    With f known on a grid and band-limited, its integral up to c is the sum over n of f_n h (1/2 +
    Si(pi (c - x_n) / h) / pi). Three equal components are alike, so each triple counts once, with the
    number of its orders.
    """
    num = len(weights)
    step = step or (0.2 if num == 2 else 0.25)
    low, high = (center - 6 * spread, center + 6 * spread) if num == 2 else (-2.0, 46.0)
    grid = np.arange(low, high, step)
    y = np.array(VELOCITIES)
    logs = [
        np.log(w / s) - 0.5 * ((y[:, None] - grid) / s) ** 2 - 0.5 * LOG_2PI
        for w, s in zip(weights, sds, strict=True)
    ]
    prior = -0.5 * ((grid - center) / spread) ** 2 - np.log(spread) - 0.5 * LOG_2PI
    if num == 2:
        places = np.indices((len(grid),) * 2).reshape(2, -1)
        orders = np.ones(places.shape[1])
    else:
        places = np.array(list(combinations_with_replacement(range(len(grid)), 3))).T
        i, j, k = places
        orders = np.where((i == j) & (j == k), 1.0, np.where((i == j) | (j == k), 3.0, 6.0))
    total = np.log(orders) + prior[places].sum(axis=0)
    for row in range(len(y)):
        each = [log[row][place] for log, place in zip(logs, places, strict=True)]
        total += np.logaddexp.reduce(each)
    top = total.max()
    mass = np.exp(total - top)
    law = np.zeros(len(grid))
    # Where all are alike, the first mean is any of them.
    for place in places[:1] if num == 2 else places:
        law += np.bincount(place, mass, len(grid))
    law /= law.sum()

    def below(c):
        sine, _ = sici(np.pi * (np.asarray(c)[..., None] - grid) / step)
        return (0.5 + sine / np.pi) @ law

    return float(top + np.log(mass.sum()) + num * np.log(step)), below


def conflict(rng: np.random.Generator) -> Case:
    """A normal regression whose prior is 5 to 20 of its standard deviations off."""
    if rng.uniform() < 0.3:
        return stubborn_rows(rng)
    d, n = int(rng.integers(1, 7)), int(rng.integers(10, 61))
    sigma, spread = float(np.exp(rng.uniform(-1.5, 1))), float(np.exp(rng.uniform(-1, 1)))
    columns = np.column_stack([np.ones(n), rng.normal(0, 1, (n, d - 1))])
    mean = rng.normal(0, 1, d)
    way = rng.standard_normal(d)
    truth = mean + way / np.linalg.norm(way) * spread * rng.uniform(5, 20)
    y = columns @ truth + sigma * rng.standard_normal(n)
    # Conjugate: precision, mean and evidence are formulas.
    precision = columns.T @ columns / sigma**2 + np.eye(d) / spread**2
    covariance = np.linalg.inv(precision)
    center = covariance @ (columns.T @ y / sigma**2 + mean / spread**2)
    marginal = sigma**2 * np.eye(n) + spread**2 * columns @ columns.T
    log_z = float(multivariate_normal.logpdf(y, columns @ mean, marginal))
    direction = rng.standard_normal(d)
    direction /= np.linalg.norm(direction)
    probability = float(rng.uniform(0.2, 0.8))
    sd = float(np.sqrt(direction @ covariance @ direction))
    factor = np.linalg.cholesky(covariance)

    def terms(x, data):
        residual = data["y"] - data["columns"] @ x
        return -0.5 * (residual / sigma) ** 2 - np.log(sigma) - 0.5 * LOG_2PI

    return Case(
        "conflict",
        "conflict",
        tp.Problem(terms=terms, data={"columns": columns, "y": y}, **normal_prior(mean, spread)),
        log_z,
        half_space(direction, float(direction @ center + sd * ndtri(1 - probability))),
        probability,
        f"a regression on {d} column(s) and {n} rows, "
        f"{np.linalg.norm(center - mean) / spread:.0f} prior standard deviations off",
        tp.Gaussian(mean, spread**2),
        lambda rng, num: center + rng.standard_normal((num, d)) @ factor.T,
    )


def stubborn_rows(rng: np.random.Generator) -> Case:
    """A location with a normal prior and t rows far from it: two modes, where each side has its way."""
    n, nu = int(rng.integers(3, 9)), float(rng.uniform(2, 3))
    scale = float(rng.uniform(0.3, 0.8))

    def log_rows(x, y, log1p, log_gamma):
        constant = log_gamma((nu + 1) / 2) - log_gamma(nu / 2) - 0.5 * np.log(nu * np.pi)
        return constant - np.log(scale) - 0.5 * (nu + 1) * log1p(((y - x) / scale) ** 2 / nu)

    # The further off the rows are, the more the prior's side has: where neither has less than 0.15.
    noise = scale * rng.standard_t(nu, n)
    x, weights = panels(-15, 45, 1200)

    def integrand(far):
        logs = log_rows(x[:, None], far + noise, np.log1p, lgamma).sum(axis=1)
        return logs - 0.5 * x**2 - 0.5 * LOG_2PI

    fars = np.linspace(5, 20, 61)
    shares = []
    for far in fars:
        mass = np.exp(integrand(far) - integrand(far).max()) * weights
        shares.append(mass[x > far / 2].sum() / mass.sum())
    far = float(fars[np.argmin(np.abs(np.array(shares) - rng.uniform(0.25, 0.75)))])
    logs = integrand(far)
    threshold = far / 2
    top = logs.max()
    mass = np.exp(logs - top) * weights
    edge_x, edge_weights = panels(threshold, 45, 1200)
    edge = log_rows(edge_x[:, None], far + noise, np.log1p, lgamma).sum(axis=1)
    edge = np.exp(edge - 0.5 * edge_x**2 - 0.5 * LOG_2PI - top) @ edge_weights

    def terms(x, data):
        return log_rows(x[0], data["y"], jnp.log1p, lgamma)

    return Case(
        "conflict",
        "conflict",
        tp.Problem(terms=terms, data={"y": far + noise}, **normal_prior(np.zeros(1), 1.0)),
        float(top + np.log(mass.sum())),
        lambda draws: draws[:, 0] > threshold,
        float(edge / mass.sum()),
        f"a location with {n} t rows, {far:.0f} prior standard deviations off",
        tp.Gaussian([0.0], 1.0),
    )


FAMILIES: dict[str, Callable[[np.random.Generator], Case]] = {
    "gaussians": gaussians,
    "spike": spike,
    "tails": tails,
    "funnel": funnel,
    "bananas": bananas,
    "two_tails": two_tails,
    "wells": wells,
    "labels": labels,
    "boundary": boundary,
    "conflict": conflict,
}


# ---------------------------------------------------------------------------------- fixed targets


def trust_table() -> list[Case]:
    """Three fixed targets, of log evidence zero, where powers of the density lose half of the mass."""
    far = spike_in_slab(10, 10.0, 0.5, np.zeros(10), 3.0, 0.0)
    return [
        two_widths(10, 0.25),
        two_widths(20, 0.5),
        replace(far, name="spike in a slab, d = 10", family="table"),
    ]


def two_widths(d: int, narrow: float) -> Case:
    """.5 N(-m, I) + .5 N(m, narrow^2 I) with |2 m| = 10; the event is the narrow mode's side."""
    m = np.full(d, 5 / np.sqrt(d))
    law = Mixture(np.full(2, 0.5), np.stack([-m, m]), np.stack([np.eye(d), narrow * np.eye(d)]))
    base = tp.Gaussian(np.zeros(d), 9.0)
    # Equally many standard deviations from both.
    direction, threshold = m / 5, 5 * (1 - narrow) / (1 + narrow)
    return Case(
        f"two widths, d = {d}, s = {narrow}",
        "table",
        tp.Target(law.log_density, base=base),
        0.0,
        half_space(direction, threshold),
        law.beyond(direction, threshold),
        f".5 N(-m, I) + .5 N(m, {narrow}^2 I), d = {d}, modes 10 apart",
        base,
        law.draw,
    )
