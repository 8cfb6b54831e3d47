"""The laws of two-urn runs by products of matrices, and a test of runs against them."""

import math

import numpy as np
from scipy.stats import chi2

from temperance.testing.urns import enumeration as enumerated
from temperance.testing.urns.model import TwoUrns

SMALL = TwoUrns(2, 3, p=0.45, alpha=0.5)
FEW = TwoUrns(4, 6, p=0.45, alpha=0.5)
LEVEL = 1e-4


def passes_chi_square(urns, counts, law):
    """Whether runs have a law over the states of all balls: a chi-square test at LEVEL."""
    states = np.array(enumerated.subsamples(urns, urns.num_balls))
    width = urns.num_blue + 1
    seen = np.bincount(counts @ [width, 1], minlength=width * (urns.num_red + 1))
    seen, expected = seen[states[:, :2] @ [width, 1]], law * len(counts)
    # Rare states are one.
    rare = expected < 20
    seen = np.append(seen[~rare], seen[rare].sum())
    expected = np.append(expected[~rare], expected[rare].sum())
    kept = expected > 0
    statistic = ((seen - expected)[kept] ** 2 / expected[kept]).sum()
    return chi2.sf(statistic, kept.sum() - 1) > LEVEL


def laws(urns):
    """The laws of the prior and of the posterior over the states of all balls."""
    states = enumerated.subsamples(urns, urns.num_balls)
    prior = [
        math.comb(urns.num_red, a) * math.comb(urns.num_blue, b)
        * urns.p ** (a + b) * (1 - urns.p) ** (c + d)
        for a, b, c, d in states
    ]  # fmt: skip
    return np.array(prior), enumerated.extended_law(urns, urns.num_balls)


def exact_law(urns, strategy, passes):
    """The law at a strategy's end, by products of matrices."""
    num = urns.num_balls
    prior, _ = laws(urns)
    gibbs = enumerated.gibbs(urns).toarray()
    law = enumerated.annealed(urns, passes - 1 if strategy == "anneal-subsample" else 0)
    if strategy == "sequential+gibbs":
        law = law @ np.linalg.matrix_power(gibbs, (passes - 1) * num)
    elif strategy == "prior+gibbs":
        law = prior @ np.linalg.matrix_power(gibbs, passes * num)
    elif strategy in ("prior", "anneal-energy", "anneal-stepsize", "anneal-both"):
        law = prior
    for t in range(1, passes * num + 1):
        beta = t / (passes * num)
        if strategy == "anneal-energy":
            law = law @ enumerated.gibbs(urns, beta).toarray()
        elif strategy in ("anneal-stepsize", "anneal-both"):
            size, share = int(1 / beta), 1 / beta % 1
            heat = beta if strategy == "anneal-both" else 1.0
            one, more = (enumerated.handful(urns, m, heat) for m in (size, size + 1))
            law = (1 - share) * law @ one + share * law @ more
    return law
