"""Broken twins of an anneal over a barrier, named after their slips."""

import math

import numpy as np

from temperance.testing.bimodal import TwoModeEnergy


class TauOfTheOtherSign(TwoModeEnergy):
    """Natural time with the print's sign: it falls to one, where it is to rise."""

    def tau(self, time, duration):
        return 1.0 / super().tau(time, duration)


class TauFromZero(TwoModeEnergy):
    """The print's integral from 0 to 1, where it begins at tau(0)."""

    def annealed(self, duration, start=0.0):
        height, power = self.num_rows * self.barrier, self.gap / self.barrier
        s = np.linspace(0.0, 60.0, 2_000_001)
        values = np.exp(-s) / (1 + (math.exp(-height) + height * s / duration) ** power)
        return float(np.trapezoid(values, s))


class LowModeForHigh(TwoModeEnergy):
    """x as the mass of the mode of higher energy, as the print's energy levels have it."""

    def slope(self, x, beta):
        rate = math.exp(-beta * self.barrier * self.num_rows)
        return rate * (1 / (1 + math.exp(beta * self.gap * self.num_rows)) - x)
