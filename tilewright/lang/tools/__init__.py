"""Tools for authors of kernels: printing, timing, tuning, and what the GPU is.

Start with :mod:`printing` (``printf``, ``print_tensor``) and :mod:`benchmark`; :mod:`tuning` measures configurations
and :mod:`autotune` is the decorator over it; :mod:`hardware` asks the GPU.
"""
