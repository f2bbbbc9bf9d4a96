"""``cutlass.base_dsl.runtime.cuda``: results of the CUDA driver's bindings as Python's."""

from typing import Any

from tilewright.cuda.context import (
    allocate as allocate, deallocate as deallocate,
    get_compute_capability_major_minor as get_compute_capability_major_minor, get_device_info as get_device_info,
    initialize_cuda_context as initialize_cuda_context, memcpy_d2h as memcpy_d2h, memcpy_h2d as memcpy_h2d,
    stream_create as stream_create, stream_destroy as stream_destroy, stream_sync as stream_sync,
)
from tilewright.cuda.modules import (
    get_kernel_function as get_kernel_function, load_cubin_module as load_cubin_module,
    load_cubin_module_data as load_cubin_module_data, unload_cubin_module as unload_cubin_module,
)
from tilewright.errors import MachineError
from tilewright.lang.arguments.streams import default_stream as default_stream

def checkCudaErrors(result: tuple[Any, ...]) -> Any:
    """What a call of ``cuda.bindings`` gave besides its error code: nothing, one value or several."""

DSLCudaRuntimeError = MachineError
