"""The public names of Temperance, and the module that each one comes from."""

from . import crosscat as crosscat
from . import errors as errors
from . import testing as testing
from .bases.advi import (
    advi as advi,
)
from .bases.advi import (
    local_fits as local_fits,
)
from .bases.bootstrap import (
    bootstrap as bootstrap,
)
from .bases.fit import (
    Fit as Fit,
)
from .bases.fit import (
    LocalFit as LocalFit,
)
from .bases.fit import (
    match_moments as match_moments,
)
from .errors import (
    TemperanceError as TemperanceError,
)
from .estimates.weighted import (
    Expectation as Expectation,
)
from .interop.front_ends import (
    from_numpyro as from_numpyro,
)
from .interop.front_ends import (
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
)
from .ladders.ladder import (
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
)
from .models.gaussian_process.kernels import (
    Matern32 as Matern32,
)
from .models.gaussian_process.kernels import (
    Matern52 as Matern52,
)
from .models.gaussian_process.kernels import (
    SquaredExponential as SquaredExponential,
)
from .models.gaussian_process.prediction import (
    Prediction as Prediction,
)
from .models.gaussian_process.prediction import (
    predict as predict,
)
from .models.gaussian_process.priors import (
    AbstractPrior as AbstractPrior,
)
from .models.gaussian_process.priors import (
    CorrelatedLogNormal as CorrelatedLogNormal,
)
from .models.gaussian_process.priors import (
    Gamma as Gamma,
)
from .models.gaussian_process.priors import (
    HalfNormal as HalfNormal,
)
from .models.gaussian_process.priors import (
    InverseGamma as InverseGamma,
)
from .models.gaussian_process.priors import (
    LogNormal as LogNormal,
)
from .models.gaussian_process.regression import (
    gaussian_process as gaussian_process,
)
from .moves.blackjax import (
    elliptical_slice as elliptical_slice,
)
from .moves.blackjax import (
    from_blackjax as from_blackjax,
)
from .moves.blackjax import (
    nuts as nuts,
)
from .moves.blackjax import (
    slice_sampling as slice_sampling,
)
from .moves.combine import (
    alternate as alternate,
)
from .moves.combine import (
    repeat as repeat,
)
from .moves.fast_slow.base_measures import (
    constellation as constellation,
)
from .moves.fast_slow.base_measures import (
    exchangeable as exchangeable,
)
from .moves.fast_slow.base_measures import (
    grid as grid,
)
from .moves.fast_slow.base_measures import (
    independent as independent,
)
from .moves.fast_slow.base_measures import (
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
)
from .moves.fast_slow.explicit_stages import (
    two_stage as two_stage,
)
from .moves.fast_slow.extra_updates import (
    extra_updates as extra_updates,
)
from .moves.fast_slow.fastness import (
    Fastness as Fastness,
)
from .moves.fast_slow.fastness import (
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
)
from .moves.minibatch.bounds import (
    lipschitz as lipschitz,
)
from .moves.minibatch.delayed import (
    delayed as delayed,
)
from .moves.minibatch.laplace import (
    Laplace as Laplace,
)
from .moves.minibatch.laplace import (
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
)
from .moves.move import (
    Params as Params,
)
from .moves.single_site import (
    single_site as single_site,
)
from .problems.gaussian import (
    Gaussian as Gaussian,
)
from .problems.problem import (
    Problem as Problem,
)
from .problems.problem import (
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
)
from .results.expectations import (
    resample as resample,
)
from .results.summary import (
    Summary as Summary,
)
from .results.summary import (
    summary as summary,
)
from .results.tree import (
    load as load,
)
from .results.tree import (
    log_evidence as log_evidence,
)
from .results.tree import (
    save as save,
)
from .rows.files import (
    open_rows as open_rows,
)
from .rows.source import (
    ArrayRows as ArrayRows,
)
from .rows.source import (
    RowSource as RowSource,
)
from .samplers.annealing.importance import (
    AnnealedImportance as AnnealedImportance,
)
from .samplers.continuous import (
    GibbsTempering as GibbsTempering,
)
from .samplers.continuous import (
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
