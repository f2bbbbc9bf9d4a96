"""``cutlass.experimental``: of its modules, what libraries of kernels call is in ``primitives``."""

from tilewright._names import attach

attach(__name__)
