"""``cutlass.experimental``: of its modules, what libraries of kernels call is in ``primitives``."""

from tilewright.experimental import primitives as primitives
from tilewright.experimental import cuda as cuda
