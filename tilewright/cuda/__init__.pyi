# Made by `python tools/stubs.py` from tilewright/cuda/__init__.py; do not edit.
"""The GPU machine: kernels printed as CUDA C++, compiled by NVRTC, launched through the driver.

Compiling needs neither a CUDA toolkit nor a GPU.

>>> import tilewright.cuda
>>> artifact = tilewright.cuda.compile(kernel, arch="sm_90a")  # doctest: +SKIP
>>> artifact.registers, artifact.spills, artifact.sass  # doctest: +SKIP
"""

from tilewright.cuda.artifact import Artifact as Artifact
from tilewright.cuda.compiler import compile as compile
from tilewright.cuda.context import DeviceInfo as DeviceInfo
from tilewright.cuda.context import allocate as allocate
from tilewright.cuda.context import context_destroy as context_destroy
from tilewright.cuda.context import deallocate as deallocate
from tilewright.cuda.context import get_compute_capability_major_minor as get_compute_capability_major_minor
from tilewright.cuda.context import get_current_device as get_current_device
from tilewright.cuda.context import get_device as get_device
from tilewright.cuda.context import get_device_attribute as get_device_attribute
from tilewright.cuda.context import get_device_info as get_device_info
from tilewright.cuda.context import get_driver_version as get_driver_version
from tilewright.cuda.context import initialize_cuda_context as initialize_cuda_context
from tilewright.cuda.context import memcpy_d2h as memcpy_d2h
from tilewright.cuda.context import memcpy_h2d as memcpy_h2d
from tilewright.cuda.context import stream_create as stream_create
from tilewright.cuda.context import stream_destroy as stream_destroy
from tilewright.cuda.context import stream_sync as stream_sync
from tilewright.cuda.emitter import emit as emit
from tilewright.cuda.modules import get_function_from_kernel as get_function_from_kernel
from tilewright.cuda.modules import get_kernel_function as get_kernel_function
from tilewright.cuda.modules import get_library_kernel as get_library_kernel
from tilewright.cuda.modules import launch_kernel as launch_kernel
from tilewright.cuda.modules import load_cubin_module as load_cubin_module
from tilewright.cuda.modules import load_cubin_module_data as load_cubin_module_data
from tilewright.cuda.modules import load_library as load_library
from tilewright.cuda.modules import load_library_data as load_library_data
from tilewright.cuda.modules import load_library_from_file as load_library_from_file
from tilewright.cuda.modules import set_kernel_attribute as set_kernel_attribute
from tilewright.cuda.modules import unload_cubin_module as unload_cubin_module
from tilewright.cuda.modules import unload_library as unload_library
from tilewright.lang.arguments.streams import default_stream as default_stream
