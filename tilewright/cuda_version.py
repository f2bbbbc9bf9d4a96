"""``cutlass.CUDA_VERSION``: the version of CUDA that kernels are compiled with."""

from __future__ import annotations

from functools import cached_property


class CudaVersion:
    """The version of NVRTC, which compiles the kernels: ``major`` and ``minor``; the newest one where several are
    installed. Compares with tuples ``(major, minor)``. It is looked for when it is asked for.

    MachineError where no NVRTC is installed, with the command that installs one.

    >>> from tilewright import CUDA_VERSION
    >>> CUDA_VERSION >= (12, 4), CUDA_VERSION == (CUDA_VERSION.major, CUDA_VERSION.minor)
    (True, True)
    """

    @cached_property
    def _parts(self) -> tuple[int, int]:
        from tilewright.cuda.nvrtc import version

        major, minor = map(int, version().split("."))
        return major, minor

    @property
    def major(self) -> int:
        return self._parts[0]

    @property
    def minor(self) -> int:
        return self._parts[1]

    def __eq__(self, other: object) -> bool:
        return self._parts == _parts(other)

    def __lt__(self, other: object) -> bool:
        return self._parts < _parts(other)

    def __le__(self, other: object) -> bool:
        return self._parts <= _parts(other)

    def __gt__(self, other: object) -> bool:
        return self._parts > _parts(other)

    def __ge__(self, other: object) -> bool:
        return self._parts >= _parts(other)

    def __hash__(self) -> int:
        return hash(self._parts)

    def __repr__(self) -> str:
        return f"CUDA {self.major}.{self.minor}"


def _parts(other: object) -> tuple[int, ...]:
    return other._parts if isinstance(other, CudaVersion) else tuple(other)  # type: ignore[arg-type]  # else a TypeError


CUDA_VERSION = CudaVersion()
