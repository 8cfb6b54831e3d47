"""Boltzmann machines and their relaxations: targets with many modes, of which all is known."""

from temperance.boltzmann.diagonal import diagonal
from temperance.boltzmann.enumeration import Exact
from temperance.boltzmann.machine import BoltzmannMachine, random_machine
from temperance.boltzmann.relaxation import Relaxation, mean_field, relaxation

__all__ = [
    "BoltzmannMachine",
    "Exact",
    "Relaxation",
    "diagonal",
    "mean_field",
    "random_machine",
    "relaxation",
]
