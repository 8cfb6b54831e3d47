"""Tempered MCMC that makes heat cheap: exact draws, log evidence and diagnostics."""

from typing import TYPE_CHECKING

from temperance._version import __version__
from temperance.face import offer

if TYPE_CHECKING:
    from temperance.batch_law import implied_beta
    from temperance.bootstrap import bootstrap
    from temperance.bounds import Bounds, lipschitz
    from temperance.cite import cite
    from temperance.continuous import JointLadder
    from temperance.energy import EnergyLadder
    from temperance.errors import TemperanceError
    from temperance.expectations import expectation, resample
    from temperance.explicit_stages import TwoStage, two_stage
    from temperance.fastness import Fastness, fastness
    from temperance.fit import Fit, LocalFit, match_moments
    from temperance.gaussian import Gaussian
    from temperance.geometric import GeometricLadder
    from temperance.interop.front_ends import from_numpyro, from_pymc
    from temperance.ladder import AbstractLadder, AbstractUniformLadder
    from temperance.laplace import Laplace, laplace
    from temperance.move import AbstractMove, Params
    from temperance.moves.base_measures import (
        constellation,
        exchangeable,
        grid,
        independent,
        markov,
    )
    from temperance.moves.blackjax import elliptical_slice, from_blackjax, nuts, slice_sampling
    from temperance.moves.combine import alternate, repeat
    from temperance.moves.delayed import delayed
    from temperance.moves.dragging import dragging
    from temperance.moves.ensemble import ensemble
    from temperance.moves.extra_updates import extra_updates
    from temperance.moves.hmc import hmc
    from temperance.moves.mala import mala
    from temperance.moves.metropolis import metropolis
    from temperance.moves.mint import mint
    from temperance.moves.multiple_try import multiple_try
    from temperance.moves.multiset import multiset
    from temperance.moves.random_grid import random_grid
    from temperance.moves.single_site import single_site
    from temperance.moves.tuna import tuna
    from temperance.open_rows import open_rows
    from temperance.prefix import PrefixLadder
    from temperance.problem import Problem, Target
    from temperance.report import report
    from temperance.result import load, log_evidence, save
    from temperance.rows import RowLadder
    from temperance.sample import sample
    from temperance.samplers.annealing import AnnealedImportance
    from temperance.samplers.continuous import GibbsTempering, JointTempering
    from temperance.samplers.equi_energy import EquiEnergy
    from temperance.samplers.parallel import ParallelTempering
    from temperance.samplers.plain import Plain
    from temperance.samplers.simulated import SimulatedTempering
    from temperance.samplers.transitions import TemperedTransitions
    from temperance.source import ArrayRows, RowSource
    from temperance.summary import Summary, summary
    from temperance.terms.fast_gaussian_process import fast_gaussian_process
    from temperance.terms.gaussian_process import gaussian_process
    from temperance.terms.kernels import AbstractKernel, Matern32, Matern52, SquaredExponential
    from temperance.terms.prediction import Prediction, predict
    from temperance.terms.priors import (
        AbstractPrior,
        CorrelatedLogNormal,
        Gamma,
        HalfNormal,
        InverseGamma,
        LogNormal,
    )
    from temperance.variational import advi, local_fits
    from temperance.weighted import Expectation

__all__ = [
    "AbstractKernel", "AbstractLadder", "AbstractMove", "AbstractPrior", "AbstractUniformLadder",
    "AnnealedImportance", "ArrayRows", "Bounds", "CorrelatedLogNormal", "EnergyLadder",
    "EquiEnergy", "Expectation", "Fastness", "Fit", "Gamma", "Gaussian", "GeometricLadder",
    "GibbsTempering", "HalfNormal", "InverseGamma", "JointLadder", "JointTempering", "Laplace",
    "LocalFit", "LogNormal", "Matern32", "Matern52", "ParallelTempering", "Params", "Plain",
    "Prediction", "PrefixLadder", "Problem", "RowLadder", "RowSource", "SimulatedTempering",
    "SquaredExponential", "Summary", "Target", "TemperanceError", "TemperedTransitions", "TwoStage",
    "__version__", "advi", "alternate", "bootstrap", "cite", "constellation", "delayed", "dragging",
    "elliptical_slice", "ensemble", "exchangeable", "expectation", "extra_updates",
    "fast_gaussian_process", "fastness", "from_blackjax", "from_numpyro", "from_pymc",
    "gaussian_process", "grid", "hmc", "implied_beta", "independent", "laplace", "lipschitz",
    "load", "local_fits", "log_evidence", "mala", "markov", "match_moments", "metropolis", "mint",
    "multiple_try", "multiset", "nuts", "open_rows", "predict", "random_grid", "repeat", "report",
    "resample", "sample", "save", "single_site", "slice_sampling", "summary", "tuna", "two_stage",
]  # fmt: skip

offer(__name__)
