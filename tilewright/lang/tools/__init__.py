"""Tools of whoever writes kernels: printing, timing, tuning, and what the GPU is."""
