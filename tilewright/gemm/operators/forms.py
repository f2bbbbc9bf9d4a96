"""The products as PyTorch and JAX record them: as operators with gradients, and as operations of a traced program.

These forms (``torch_sparse.py``, ``jax_products.py``) are made of the products themselves, so no product imports them:
a call that is recorded finds its form by name.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType


def recorded_form(name: str) -> ModuleType:
    """The module of a form, loaded at its first use: ``"torch_sparse"``, ``"jax_products"``. To import it again at each
    call takes 1 us."""
    path = f"tilewright.gemm.operators.{name}"
    return sys.modules.get(path) or import_module(path)
