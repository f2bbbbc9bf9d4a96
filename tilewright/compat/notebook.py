"""``%load_ext tilewright``: a notebook's ``import cutlass...`` resolves to Tilewright; where there is no GPU, the CPU
serves what the notebook says to one."""

from __future__ import annotations

from typing import Any

from tilewright import compat


def load(shell: Any) -> None:
    """Begin to serve the notebook. A second call does nothing."""
    cpu = not has_gpu()
    again = compat.is_installed()
    compat.install(cpu=cpu)
    if not again:
        where = 'kernels run in the simulator, and "cuda" is the CPU' if cpu else "kernels run where their arrays are"
        print(f"tilewright: `import cutlass` resolves to Tilewright; {where}")


def unload(shell: Any) -> None:
    """Stop serving it."""
    if notice := compat.served():
        print(f"tilewright: {notice}")
    compat.uninstall()


def has_gpu() -> bool:
    """Whether the CUDA driver has a device."""
    from tilewright.lang.tools.hardware import HardwareInfo

    return HardwareInfo().is_present
