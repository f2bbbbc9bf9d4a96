"""Every copy atom by CuTe's name."""

from __future__ import annotations

from tilewright.atoms.copy import CopyInstruction
from tilewright.atoms.cp_async import CpAsync, LoadCacheMode
from tilewright.atoms.ldmatrix import LdMatrix
from tilewright.atoms.movmatrix import MovMatrix
from tilewright.atoms.shuffle import ShuffleTranspose
from tilewright.atoms.stmatrix import StMatrix
from tilewright.atoms.universal import AutoVectorCopy, UniversalCopy

_WIDTHS = {
    "uint8_t": 8,
    "int8_t": 8,
    "uint16_t": 16,
    "int16_t": 16,
    "half_t": 16,
    "bfloat16_t": 16,
    "uint32_t": 32,
    "int32_t": 32,
    "int": 32,
    "float": 32,
    "tfloat32_t": 32,
    "uint64_t": 64,
    "int64_t": 64,
    "double": 64,
    "uint128_t": 128,
}


def _all() -> dict[str, CopyInstruction]:
    copies: dict[str, CopyInstruction] = {
        f"UniversalCopy<{name}>": UniversalCopy(bits) for name, bits in _WIDTHS.items()
    }
    copies |= {a.cute_name: a for a in (AutoVectorCopy(bits) for bits in (8, 16, 32, 64, 128))}
    copies |= {a.cute_name: a for a in (ShuffleTranspose(1), ShuffleTranspose(4), MovMatrix())}
    copies |= {"AutoVectorizingCopy": AutoVectorCopy(128), "DefaultCopy": AutoVectorCopy(8)}
    for n in (1, 2, 4):
        for transpose in (False, True):
            copies |= {a.cute_name: a for a in (LdMatrix(n, transpose), StMatrix(n, transpose))}
    for name, bits in _WIDTHS.items():
        for zero_fill in (False, True):
            fill = "_ZFILL" if zero_fill else ""
            if bits >= 32:
                copies[f"SM80_CP_ASYNC_CACHEALWAYS{fill}<{name}>"] = CpAsync(bits, LoadCacheMode.ALWAYS, zero_fill)
            if bits == 128:
                copies[f"SM80_CP_ASYNC_CACHEGLOBAL{fill}<{name}>"] = CpAsync(bits, LoadCacheMode.GLOBAL, zero_fill)
    return copies


COPIES = _all()
