"""``cutlass.base_dsl.runtime``."""

from tilewright.base_dsl.runtime import cuda as cuda
