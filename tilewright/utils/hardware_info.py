"""``cutlass.utils.hardware_info``: what the GPU is."""

from tilewright.lang.tools.hardware import HardwareInfo

__all__ = ["HardwareInfo"]
