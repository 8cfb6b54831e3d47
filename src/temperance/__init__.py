"""Tempered MCMC that makes heat cheap: exact draws, log evidence and diagnostics.

The public names are listed in `__init__.pyi`, and each is imported at its first use (PEP 562).
"""

import lazy_loader

__version__ = "0.1.0"
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
