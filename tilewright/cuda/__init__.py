"""The GPU machine: kernels printed as CUDA C++, compiled by NVRTC, launched through the driver.

Compiling needs neither a CUDA toolkit nor a GPU.

>>> import tilewright.cuda
>>> artifact = tilewright.cuda.compile(kernel, arch="sm_90a")  # doctest: +SKIP
>>> artifact.registers, artifact.spills, artifact.sass  # doctest: +SKIP
"""

from tilewright._lazy import lazily

__getattr__, __dir__, __all__ = lazily(
    __name__,
    {
        "tilewright.cuda.artifact": "Artifact",
        "tilewright.cuda.compiler": "compile",
        "tilewright.cuda.emitter": "emit",
        "tilewright.cuda.context": (
            "DeviceInfo allocate context_destroy deallocate get_compute_capability_major_minor get_current_device "
            "get_device get_device_attribute get_device_info get_driver_version initialize_cuda_context memcpy_d2h "
            "memcpy_h2d stream_create stream_destroy stream_sync"
        ),
        "tilewright.cuda.modules": (
            "get_function_from_kernel get_kernel_function get_library_kernel launch_kernel load_cubin_module "
            "load_cubin_module_data load_library load_library_data load_library_from_file set_kernel_attribute "
            "unload_cubin_module unload_library"
        ),
        "tilewright.lang.arguments.streams": "default_stream",
    },
)
