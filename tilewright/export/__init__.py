"""Ahead-of-time export: compiled functions as a C header, a C launcher with the machine code of the kernels, and an
object file; and how they are loaded back. See docs/ahead_of_time.md.

- :mod:`interface`: the C parameters of a compiled function, and their checks; :mod:`host`: its body in C, with the
  expressions of :mod:`arithmetic`; :mod:`source` and :mod:`header`: the two files
- :mod:`package`, :mod:`describe`, :mod:`program`: the data stored next to the code, from which :mod:`load` makes a
  function again
- :mod:`tvm_ffi`: the same function in TVM FFI's calling convention

Start at :mod:`host`.

>>> import tempfile
>>> from tilewright import export
>>> @cute.kernel
... def fill(a: cute.Tensor, value: cute.Float32):
...     a[cute.arch.thread_idx()[0]] = value
>>> @cute.jit
... def run(a: cute.Tensor, value: cute.Float32):
...     fill(a, value).launch(grid=(1, 1, 1), block=(cute.size(a), 1, 1))
>>> n = cute.sym_int()
>>> compiled = cute.compile(run, cute.runtime.make_fake_compact_tensor(cute.Float32, (n,)), cute.Float32(1))
>>> print(export.signature(compiled, "fill"))
int32_t cute_dsl_fill_wrapper(fill_Kernel_Module_t *module, const fill_Tensor_a_t *a, float value)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tilewright.export.files import export_to_c as export_to_c
    from tilewright.export.header import signature as signature
    from tilewright.export.load import load_module as load_module

_HOMES = {"export_to_c": "files", "load_module": "load", "signature": "header"}
__all__ = ["export_to_c", "load_module", "signature"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'tilewright.export' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"tilewright.export.{_HOMES[name]}"), name)
