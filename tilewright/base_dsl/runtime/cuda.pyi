# Made by `python tools/stubs.py` from tilewright/base_dsl/runtime/cuda.py; do not edit.
"""``cutlass.base_dsl.runtime.cuda``: results of the CUDA driver's bindings as Python's."""

from typing import Any
from tilewright.cuda.context import allocate as allocate
from tilewright.cuda.context import deallocate as deallocate
from tilewright.cuda.context import get_compute_capability_major_minor as get_compute_capability_major_minor
from tilewright.cuda.context import get_device_info as get_device_info
from tilewright.cuda.context import initialize_cuda_context as initialize_cuda_context
from tilewright.cuda.context import memcpy_d2h as memcpy_d2h
from tilewright.cuda.context import memcpy_h2d as memcpy_h2d
from tilewright.cuda.context import stream_create as stream_create
from tilewright.cuda.context import stream_destroy as stream_destroy
from tilewright.cuda.context import stream_sync as stream_sync
from tilewright.cuda.modules import get_kernel_function as get_kernel_function
from tilewright.cuda.modules import load_cubin_module as load_cubin_module
from tilewright.cuda.modules import load_cubin_module_data as load_cubin_module_data
from tilewright.cuda.modules import unload_cubin_module as unload_cubin_module
from tilewright.errors import MachineError as DSLCudaRuntimeError
from tilewright.lang.arguments.streams import default_stream as default_stream

def checkCudaErrors(result: tuple[Any, ...]) -> Any:
    """What a call of ``cuda.bindings`` gave besides its error code: nothing, one value or several.

    Raises MachineError (``DSLCudaRuntimeError``) where the code is not success.

    >>> checkCudaErrors((0, 5)), checkCudaErrors((0,)), checkCudaErrors((0, 1, 2))
    (5, None, (1, 2))
    """
    ...
