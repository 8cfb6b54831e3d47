"""Hunts with one slip each in their bound; the tests reject them all."""

from dataclasses import dataclass, replace

import numpy as np

from temperance.bases.hunt import FIRST_WAVE, THIRD, Hunt, hunt


def every_start_counts(climb, draw, rng, budget):
    """The points that are drawn towards the middle count as draws of the base."""
    found = hunt(climb, draw, rng, budget)
    return replace(found, num_checked=THIRD * found.num_draws, num_new=0)


@dataclass(frozen=True)
class _OfOneBasin(Hunt):
    @property
    def bound(self):
        return float(-np.expm1(np.log(0.05) / self.num_draws))


def each_basin_alone(climb, draw, rng, budget):
    """The bound of a single basin, which one of many basins exceeds."""
    return _OfOneBasin(**vars(hunt(climb, draw, rng, budget)))


def ends_beyond_the_last_do_not_count(climb, draw, rng, budget):
    """Draws that end at modes which are not kept are none of the new ones."""
    found = hunt(climb, draw, rng, budget)
    return replace(found, num_new=0)


def short_climbs_count(climb, draw, rng, budget):
    """Draws that were behind one that was given up, and ended at once, count as the others."""
    found = hunt(climb, draw, rng, budget)
    return replace(found, num_checked=FIRST_WAVE // 2, num_new=0)
