"""The GPU machine: kernels printed as CUDA C++, compiled by NVRTC, launched through the driver.

Compiling needs neither a CUDA toolkit nor a GPU.

>>> import tilewright.cuda
>>> artifact = tilewright.cuda.compile(kernel, arch="sm_90a")  # doctest: +SKIP
>>> artifact.registers, artifact.spills, artifact.sass  # doctest: +SKIP
"""

from tilewright.cuda.artifact import Artifact as Artifact
from tilewright.cuda.compiler import compile as compile
from tilewright.cuda.context import (
    DeviceInfo as DeviceInfo, allocate as allocate, context_destroy as context_destroy, deallocate as deallocate,
    get_compute_capability_major_minor as get_compute_capability_major_minor,
    get_current_device as get_current_device, get_device as get_device,
    get_device_attribute as get_device_attribute, get_device_info as get_device_info,
    get_driver_version as get_driver_version, initialize_cuda_context as initialize_cuda_context,
    memcpy_d2h as memcpy_d2h, memcpy_h2d as memcpy_h2d, stream_create as stream_create,
    stream_destroy as stream_destroy, stream_sync as stream_sync,
)
from tilewright.cuda.kernel_text import emit as emit
from tilewright.cuda.modules import (
    get_function_from_kernel as get_function_from_kernel, get_kernel_function as get_kernel_function,
    get_library_kernel as get_library_kernel, launch_kernel as launch_kernel,
    load_cubin_module as load_cubin_module, load_cubin_module_data as load_cubin_module_data,
    load_library as load_library, load_library_data as load_library_data,
    load_library_from_file as load_library_from_file, set_kernel_attribute as set_kernel_attribute,
    unload_cubin_module as unload_cubin_module, unload_library as unload_library,
)
from tilewright.lang.arguments.streams import default_stream as default_stream
