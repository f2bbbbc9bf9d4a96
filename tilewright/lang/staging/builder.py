"""The builder of a staged function: what is known while it is recorded."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Sequence
from types import FrameType, FunctionType
from typing import Any

from tilewright.errors import StagingError
from tilewright.ir.builder import Builder
from tilewright.ir.core import Block, Location, Value
from tilewright.ir.types import ScalarType, Type
from tilewright.lang.staging import printing
from tilewright.lang.staging.location import STAGED_LIBRARY_CODE, USER_FILES, is_user_file, located


class StagingBuilder(Builder):
    """A builder that finds the user's location; ``dependencies``: the functions that the program was staged from;
    ``given``: the objects that the program was called with, which have names outside of it."""

    def __init__(
        self,
        block: Block,
        dependencies: list[FunctionType] | None = None,
        block_shape: tuple[int | None, ...] | None = None,
        given: Sequence[Any] = (),
    ) -> None:
        super().__init__(block)
        self.dependencies = dependencies if dependencies is not None else []
        self.block_shape = block_shape
        self.given = given
        self.lasting: dict[tuple[str, int], Any] = {}
        """See :func:`~tilewright.lang.staging.lasting.gathered`."""

    @contextlib.contextmanager
    def activate(self) -> Iterator[Builder]:
        try:
            with super().activate():
                yield self
        finally:
            printing.show()  # also where staging ended in an error

    def checkpoint(self) -> dict[str, Any]:
        return {**super().checkpoint(), "printed": printing.count()}

    def go_back(self, to: dict[str, Any]) -> None:
        super().go_back(to)
        printing.forget(to["printed"])

    @property
    def loc(self) -> Location | None:
        frame: FrameType | None = sys._getframe(2)
        while frame is not None:  # every op asks: the look-up of `counts_as_user` is written out
            code = frame.f_code
            is_user = USER_FILES.get(code.co_filename)
            if is_user or id(code) in STAGED_LIBRARY_CODE or (is_user is None and is_user_file(code.co_filename)):
                return located(code.co_filename, frame.f_lineno)
            frame = frame.f_back
        return None

    @loc.setter
    def loc(self, value: Location | None) -> None:
        del value  # the base class starts without a location


class HostBuilder(StagingBuilder):
    """The builder of a host function: it also collects the ``kernels`` by specialisation (``StagedKernel``), one for
    each state of what they read; ``waiting`` are those that were called and not yet launched, with the line of the
    call. ``smem_bytes_of``: of the kernels that were launched, by their function, at the last launch.
    ``on_cpu``: its arguments are arrays of the CPU, which print as ``generic`` memory."""

    def __init__(self, block: Block, on_cpu: bool = False, given: Sequence[Any] = ()) -> None:
        super().__init__(block, given=given)
        self.on_cpu = on_cpu
        self.kernels: dict[Any, list[Any]] = {}
        self.waiting: dict[Any, Location | None] = {}
        self.smem_bytes_of: dict[Any, int] = {}

    @classmethod
    def now(cls) -> HostBuilder:
        """The builder of the host function that is being staged."""
        builder = Builder.current()
        assert isinstance(builder, HostBuilder)
        return builder

    def checkpoint(self) -> dict[str, Any]:
        kernels = {key: [*made] for key, made in self.kernels.items()}
        launched = {"kernels": kernels, "waiting": {**self.waiting}, "smem_bytes_of": {**self.smem_bytes_of}}
        return {**super().checkpoint(), **launched}

    def go_back(self, to: dict[str, Any]) -> None:
        super().go_back(to)
        for name in ("kernels", "waiting", "smem_bytes_of"):  # the dicts stay: calls of kernels hold them
            held = getattr(self, name)
            held.clear()
            held.update(to[name])

    # Host code runs once, as a single thread. A kernel's body that is written here by mistake would compute thread 0's
    # part and no other, so what only a grid of threads has is refused.

    def sreg(self, name: str) -> Value:
        raise _of_kernels(f"{name} is an index or extent of a kernel's threads, and host code has none")

    def smem_alloc(self, offset: int, size: int, align: int, elem: ScalarType, hint: str | None = None) -> Value:
        raise _of_kernels("host code has no shared memory")

    def call(self, atom: Any, operands: Sequence[Value], results: Sequence[Type] = (), **attrs: Any) -> list[Value]:
        if atom.blocking or atom.shuffles or atom.whole_block:
            raise _of_kernels(f"{atom.mnemonic()} is for the threads of a kernel, and host code has none")
        return super().call(atom, operands, results, **attrs)


def _of_kernels(what: str) -> StagingError:
    return StagingError(
        f"{what}: mark the function that has this line with @cute.kernel, and launch it from a @cute.jit function: "
        "f(arguments).launch(grid=(x, y, z), block=(x, y, z))"
    )


def depth() -> int:
    """How many run-time regions are open."""
    return len(Builder.current().regions) if Builder.active() else 0
