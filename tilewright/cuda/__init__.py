"""The GPU machine: kernels printed as CUDA C++, compiled by NVRTC (no CUDA toolkit, no GPU needed), launched by the driver."""
