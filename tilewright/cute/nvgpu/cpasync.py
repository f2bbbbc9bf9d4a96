"""Asynchronous copies between global and shared memory: ``cp.async``."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.atoms.cp_async import CpAsync, LoadCacheMode
from tilewright.ir.types import ScalarType

__all__ = ["CopyG2SOp", "LoadCacheMode"]


@dataclass(frozen=True)
class CopyG2SOp:
    """``cp.async`` of 4, 8 or 16 bytes; with a predicate, false writes zeros (the instruction's source size is then 0).

    ``cache_mode`` GLOBAL bypasses L1 and needs 16 bytes.

    >>> from tilewright.ir.types import F16
    >>> CopyG2SOp(LoadCacheMode.GLOBAL).instruction(F16, 128)
    SM80_CP_ASYNC_CACHEGLOBAL_ZFILL<uint128_t>
    """

    cache_mode: LoadCacheMode = LoadCacheMode.ALWAYS

    def instruction(self, value_type: ScalarType, num_bits: int = 0) -> CpAsync:
        return CpAsync(num_bits or max(32, value_type.width), self.cache_mode, zero_fill=True)
