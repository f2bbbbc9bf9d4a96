"""Tools for authors of kernels: printing, timing, tuning, and what the GPU is."""
