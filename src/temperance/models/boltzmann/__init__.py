"""Boltzmann machines and their relaxations: targets with many modes, of which all is known."""

from temperance.models.boltzmann.diagonal import diagonal
from temperance.models.boltzmann.enumeration import Exact
from temperance.models.boltzmann.machine import BoltzmannMachine, random_machine
from temperance.models.boltzmann.relaxation import Relaxation, mean_field, relaxation

__all__ = [
    "BoltzmannMachine",
    "Exact",
    "Relaxation",
    "diagonal",
    "mean_field",
    "random_machine",
    "relaxation",
]
