"""The public names of Temperance, and the module that each one comes from."""

from . import crosscat as crosscat, errors as errors, methods as methods, testing as testing
from .bases.advi import (
    advi as advi,
    local_fits as local_fits,
)
from .bases.bootstrap import (
    bootstrap as bootstrap,
)
from .bases.fit import (
    Fit as Fit,
    LocalFit as LocalFit,
    match_moments as match_moments,
)
from .engine.method import (
    Method as Method,
)
from .errors import (
    TemperanceError as TemperanceError,
)
from .estimates.weighted import (
    Expectation as Expectation,
)
from .interop.front_ends import (
    from_numpyro as from_numpyro,
    from_pymc as from_pymc,
)
from .ladders.energies import (
    EnergyLadder as EnergyLadder,
)
from .ladders.geometric import (
    GeometricLadder as GeometricLadder,
)
from .ladders.joint import (
    JointLadder as JointLadder,
)
from .ladders.ladder import (
    AbstractLadder as AbstractLadder,
    AbstractUniformLadder as AbstractUniformLadder,
)
from .ladders.prefix import (
    PrefixLadder as PrefixLadder,
)
from .ladders.row_sums import (
    RowLadder as RowLadder,
)
from .models.gaussian_process.fast_regression import (
    fast_gaussian_process as fast_gaussian_process,
)
from .models.gaussian_process.kernels import (
    AbstractKernel as AbstractKernel,
    Matern32 as Matern32,
    Matern52 as Matern52,
    SquaredExponential as SquaredExponential,
)
from .models.gaussian_process.prediction import (
    Prediction as Prediction,
    predict as predict,
)
from .models.gaussian_process.priors import (
    AbstractPrior as AbstractPrior,
    CorrelatedLogNormal as CorrelatedLogNormal,
    Gamma as Gamma,
    HalfNormal as HalfNormal,
    InverseGamma as InverseGamma,
    LogNormal as LogNormal,
)
from .models.gaussian_process.regression import (
    gaussian_process as gaussian_process,
)
from .moves.auto_step import (
    auto_step as auto_step,
)
from .moves.blackjax import (
    elliptical_slice as elliptical_slice,
    from_blackjax as from_blackjax,
    nuts as nuts,
    slice_sampling as slice_sampling,
)
from .moves.combine import (
    alternate as alternate,
    repeat as repeat,
)
from .moves.fast_slow.base_measures import (
    constellation as constellation,
    exchangeable as exchangeable,
    grid as grid,
    independent as independent,
    markov as markov,
)
from .moves.fast_slow.dragging import (
    dragging as dragging,
)
from .moves.fast_slow.ensemble import (
    ensemble as ensemble,
)
from .moves.fast_slow.explicit_stages import (
    TwoStage as TwoStage,
    two_stage as two_stage,
)
from .moves.fast_slow.extra_updates import (
    extra_updates as extra_updates,
)
from .moves.fast_slow.fastness import (
    Fastness as Fastness,
    fastness as fastness,
)
from .moves.fast_slow.multiple_try import (
    multiple_try as multiple_try,
)
from .moves.fast_slow.multiset import (
    multiset as multiset,
)
from .moves.fast_slow.random_grid import (
    random_grid as random_grid,
)
from .moves.hmc import (
    hmc as hmc,
)
from .moves.mala import (
    mala as mala,
)
from .moves.metropolis import (
    metropolis as metropolis,
)
from .moves.minibatch.batch_law import (
    implied_beta as implied_beta,
)
from .moves.minibatch.bounds import (
    Bounds as Bounds,
    lipschitz as lipschitz,
)
from .moves.minibatch.delayed import (
    delayed as delayed,
)
from .moves.minibatch.laplace import (
    Laplace as Laplace,
    laplace as laplace,
)
from .moves.minibatch.mint import (
    mint as mint,
)
from .moves.minibatch.tuna import (
    tuna as tuna,
)
from .moves.move import (
    AbstractMove as AbstractMove,
    Params as Params,
)
from .moves.single_site import (
    single_site as single_site,
)
from .problems.gaussian import (
    Gaussian as Gaussian,
)
from .problems.mixture import (
    Mixture as Mixture,
)
from .problems.problem import (
    Problem as Problem,
    Target as Target,
)
from .reports import (
    report as report,
)
from .results.cite import (
    cite as cite,
)
from .results.expectations import (
    expectation as expectation,
    resample as resample,
)
from .results.found_modes import (
    FoundModes as FoundModes,
    modes as modes,
)
from .results.summary import (
    Summary as Summary,
    summary as summary,
)
from .results.tree import (
    load as load,
    log_evidence as log_evidence,
    save as save,
)
from .rows.files import (
    open_rows as open_rows,
)
from .rows.source import (
    ArrayRows as ArrayRows,
    RowSource as RowSource,
)
from .samplers.annealing.importance import (
    AnnealedImportance as AnnealedImportance,
)
from .samplers.annealing.smc import (
    SequentialMonteCarlo as SequentialMonteCarlo,
)
from .samplers.continuous import (
    GibbsTempering as GibbsTempering,
    JointTempering as JointTempering,
)
from .samplers.equi_energy.all_rungs import (
    EquiEnergy as EquiEnergy,
)
from .samplers.parallel.tempering import (
    ParallelTempering as ParallelTempering,
)
from .samplers.plain import (
    Plain as Plain,
)
from .samplers.simulated import (
    SimulatedTempering as SimulatedTempering,
)
from .samplers.transitions import (
    TemperedTransitions as TemperedTransitions,
)
from .sampling import (
    sample as sample,
)

__version__: str
