"""What programs ask of the DSL as a whole: ``BaseDSL._get_dsl().get_arch_enum()``."""

from __future__ import annotations

import os
import warnings
from types import SimpleNamespace

from tilewright.base_dsl.arch import Arch


class BaseDSL:
    """The one object of settings. Programs read the architecture from it to choose what a kernel contains.

    The architecture is that of the variable ``CUTE_DSL_ARCH``, else of the first GPU, else ``sm_90a``.

    >>> BaseDSL._get_dsl() is CuTeDSL._get_dsl(), BaseDSL._get_dsl().get_arch_enum() >= Arch.sm_80
    (True, True)
    """

    _one: BaseDSL | None = None

    def __init__(self) -> None:
        self._said: set[str] = set()

    @classmethod
    def _get_dsl(cls) -> BaseDSL:
        if BaseDSL._one is None:
            BaseDSL._one = BaseDSL()
        return BaseDSL._one

    @property
    def envar(self) -> SimpleNamespace:
        """The architecture by name: ``envar.arch``."""
        from tilewright.cuda.machine import default_architecture

        return SimpleNamespace(arch=os.environ.get("CUTE_DSL_ARCH") or default_architecture())

    def get_arch_enum(self) -> Arch:
        """The architecture that kernels are compiled for."""
        return Arch.from_string(self.envar.arch)

    def print_warning(self, message: str) -> None:
        """A Python warning; libraries put a filter of their own in this method's place."""
        warnings.warn(message, stacklevel=2)

    def print_warning_once(self, message: str) -> None:
        """The same, for each message once."""
        if message not in self._said:
            self._said.add(message)
            warnings.warn(message, stacklevel=2)


CuTeDSL = BaseDSL
