"""The GPU machine: kernels printed as CUDA C++, compiled by NVRTC, launched through the driver.

Compiling needs neither a CUDA toolkit nor a GPU. ``emitter.py`` prints a kernel (with ``control.py``, ``scalars.py``,
``vectors.py``, ``memory.py``), ``compiler.py`` asks the disk cache or ``nvrtc.py`` and gives an ``Artifact``
(``artifact.py``), ``machine.py`` loads and launches it through ``libcuda.py``. ``context.py`` and ``modules.py`` are
``cutlass.cuda``, the driver for host programs. Start with ``emitter.py``, then ``machine.py``. See docs/cuda.md.

>>> import tilewright.cuda
>>> artifact = tilewright.cuda.compile(kernel, arch="sm_90a")  # doctest: +SKIP
>>> artifact.registers, artifact.spills, artifact.sass  # doctest: +SKIP
"""

from tilewright._names import attach

attach(__name__)
