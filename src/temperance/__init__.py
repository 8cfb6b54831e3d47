"""Tempered MCMC that makes heat cheap: exact draws, log evidence and diagnostics."""

from typing import TYPE_CHECKING

from temperance._version import __version__
from temperance.face import offer

if TYPE_CHECKING:
    from temperance.moves.minibatch.batch_law import implied_beta
    from temperance.bases.bootstrap import bootstrap
    from temperance.moves.minibatch.bounds import Bounds, lipschitz
    from temperance.results.cite import cite
    from temperance.ladders.joint import JointLadder
    from temperance.ladders.energies import EnergyLadder
    from temperance.errors import TemperanceError
    from temperance.results.expectations import expectation, resample
    from temperance.moves.fast_slow.explicit_stages import TwoStage, two_stage
    from temperance.moves.fast_slow.fastness import Fastness, fastness
    from temperance.bases.fit import Fit, LocalFit, match_moments
    from temperance.problems.gaussian import Gaussian
    from temperance.ladders.geometric import GeometricLadder
    from temperance.interop.front_ends import from_numpyro, from_pymc
    from temperance.ladders.ladder import AbstractLadder, AbstractUniformLadder
    from temperance.moves.minibatch.laplace import Laplace, laplace
    from temperance.moves.move import AbstractMove, Params
    from temperance.moves.fast_slow.base_measures import (
        constellation,
        exchangeable,
        grid,
        independent,
        markov,
    )
    from temperance.moves.blackjax import elliptical_slice, from_blackjax, nuts, slice_sampling
    from temperance.moves.combine import alternate, repeat
    from temperance.moves.minibatch.delayed import delayed
    from temperance.moves.fast_slow.dragging import dragging
    from temperance.moves.fast_slow.ensemble import ensemble
    from temperance.moves.fast_slow.extra_updates import extra_updates
    from temperance.moves.hmc import hmc
    from temperance.moves.mala import mala
    from temperance.moves.metropolis import metropolis
    from temperance.moves.minibatch.mint import mint
    from temperance.moves.fast_slow.multiple_try import multiple_try
    from temperance.moves.fast_slow.multiset import multiset
    from temperance.moves.fast_slow.random_grid import random_grid
    from temperance.moves.single_site import single_site
    from temperance.moves.minibatch.tuna import tuna
    from temperance.rows.files import open_rows
    from temperance.ladders.prefix import PrefixLadder
    from temperance.problems.problem import Problem, Target
    from temperance.reports import report
    from temperance.results.tree import load, log_evidence, save
    from temperance.ladders.row_sums import RowLadder
    from temperance.sampling import sample
    from temperance.samplers.annealing.importance import AnnealedImportance
    from temperance.samplers.continuous import GibbsTempering, JointTempering
    from temperance.samplers.equi_energy.all_rungs import EquiEnergy
    from temperance.samplers.parallel.tempering import ParallelTempering
    from temperance.samplers.plain import Plain
    from temperance.samplers.simulated import SimulatedTempering
    from temperance.samplers.transitions import TemperedTransitions
    from temperance.rows.source import ArrayRows, RowSource
    from temperance.results.summary import Summary, summary
    from temperance.models.gaussian_process.fast_regression import fast_gaussian_process
    from temperance.models.gaussian_process.regression import gaussian_process
    from temperance.models.gaussian_process.kernels import AbstractKernel, Matern32, Matern52, SquaredExponential
    from temperance.models.gaussian_process.prediction import Prediction, predict
    from temperance.models.gaussian_process.priors import (
        AbstractPrior,
        CorrelatedLogNormal,
        Gamma,
        HalfNormal,
        InverseGamma,
        LogNormal,
    )
    from temperance.bases.advi import advi, local_fits
    from temperance.estimates.weighted import Expectation

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
