"""The products as PyTorch and JAX record them: as operators with gradients, and as operations of a traced program.

These forms (``torch_sparse.py``, ``jax_products.py``) are made of the products themselves, so no product imports them:
a call that is recorded finds its form by name.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from tilewright.gemm import operators

LOADED: set[str] = set()


def recorded_form(name: str) -> ModuleType:
    """The module of a form, loaded at its first use: ``"torch_sparse"``, ``"jax_products"``."""
    load(name)
    form: ModuleType = getattr(operators, name)
    return form


def load(name: str) -> bool:
    """Import a form, unless it is there: to import it again at each call takes 1 us.

    torch.compile does not follow an import by name, and guards what it saw absent. It takes the result of this function
    as a constant, so it makes the call while it traces, and sees the form in its package."""
    if name not in LOADED:
        import_module(f"tilewright.gemm.operators.{name}")
        LOADED.add(name)
    return True


load._dynamo_marked_constant = True  # type: ignore[attr-defined]  # torch.compiler.assume_constant_result, without torch
