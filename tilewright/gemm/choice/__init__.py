"""The kernels of the library by name, and which of them suits a problem."""
