"""``cutlass._mlir.extras.types``: the types of :class:`tilewright._mlir.ir.T` as functions of a module.

>>> from tilewright._mlir.extras import types as T
>>> T.i32(), T.f64()
(i32, f64)
"""

from tilewright._mlir.ir import T

__all__ = [name for name in vars(T) if not name.startswith("_")]
globals().update((name, getattr(T, name)) for name in __all__)
