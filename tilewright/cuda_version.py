"""``cutlass.CUDA_VERSION``: the version of CUDA that kernels are compiled with."""

from __future__ import annotations

from functools import cached_property

from tilewright.errors import ArgumentError


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


def target_version(
    exact_version: str | None = None, *, min_version: str | None = None, max_version: str | None = None
) -> bool:
    """Whether kernels are compiled with this version of CUDA: exactly, at least, at most.

    >>> from tilewright import target_version
    >>> target_version(min_version="12.0"), target_version(max_version="11.8")
    (True, False)
    """
    here = CUDA_VERSION
    bounds = [(exact_version, here.__eq__), (min_version, here.__ge__), (max_version, here.__le__)]
    conditions = [(tuple(map(int, version.split(".")[:2])), meets) for version, meets in bounds if version is not None]
    if not conditions:
        raise ArgumentError('target_version: give an exact version ("12.9"), min_version= or max_version=')
    return all(meets(version) for version, meets in conditions)
