"""Programs written for the CuTe DSL run as they are: ``import cutlass...`` resolves to Tilewright.

``tilewright run script.py`` does this for one script, ``%load_ext tilewright`` for a notebook, :func:`install` for a
program that asks for it. With ``cpu=True`` what a program says to a GPU through PyTorch and ``cuda.bindings`` is
served by the CPU as well: its kernels run in the simulator.

``aliases.py`` is the import hook. ``torch_patch.py``, ``torch_names.py`` and ``torch_autograd.py`` replace PyTorch's
CUDA device, ``driver.py`` and ``runtime.py`` are ``cuda.bindings`` over the CPU's memory (``memory.py``), and
``recording.py`` counts launches and records graphs. ``stubs.py`` writes type stubs of ``cutlass``. Start with
``aliases.py``.
"""

from __future__ import annotations

from tilewright.compat import aliases

__all__ = ["install", "is_installed", "served", "uninstall"]


def install(cpu: bool = False, replace: bool = False) -> None:
    """Make ``import cutlass...`` resolve to Tilewright in this process.

    ``cpu``: PyTorch's CUDA device (``device="cuda"``, ``.cuda()``, streams, events, graphs) and ``cuda.bindings`` are
    served by the CPU. ``replace``: also where a package ``cutlass`` is installed, which is then hidden.

    Raises ArgumentError where a package ``cutlass`` is installed, or imported already, and ``replace`` is not given.

    >>> install()
    >>> import cutlass.cute
    >>> print(cutlass.cute.make_layout((4, 8), stride=(8, 1)))
    (4,8):(8,1)
    >>> uninstall()
    """
    aliases.install(replace)
    from tilewright.compat import cuda_bindings

    cuda_bindings.install(always=cpu)
    if cpu:
        from tilewright.compat import recording, torch_cuda

        recording.install()
        torch_cuda.install()


def uninstall() -> None:
    """Undo :func:`install`; modules that a program has imported stay what they are in that program.

    >>> import sys
    >>> import tilewright.compat
    >>> tilewright.compat.install()
    >>> import cutlass
    >>> tilewright.compat.uninstall()
    >>> tilewright.compat.is_installed(), "cutlass" in sys.modules
    (False, False)
    """
    import sys

    for name in ("torch_cuda", "recording", "cuda_bindings"):
        if module := sys.modules.get(f"{__name__}.{name}"):
            module.uninstall()
    aliases.uninstall()


def is_installed() -> bool:
    """Whether ``import cutlass`` resolves to Tilewright.

    >>> import tilewright.compat
    >>> tilewright.compat.is_installed()
    False
    """
    return aliases.is_installed()


def served() -> str:
    """The work that the CPU did in place of a GPU since ``install(cpu=True)``, in a sentence; empty if nothing."""
    import sys

    recording = sys.modules.get(f"{__name__}.recording")
    return recording.summary() if recording else ""
