"""The operands of ``tcgen05.mma`` as numbers: matrix descriptors, and instruction descriptors with their fields."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from tilewright.atoms.tcgen05_descriptor import ACCUMULATORS, FORMATS, InstructionDescriptor
from tilewright.errors import ConstraintError
from tilewright.ir.types import F32, scalar_of
from tilewright.lang.numbers.numeric import Int32, Int64, as_numeric, unwrap

_FIELD, _UNIT = 0x3FFF, 16


class _Word:
    """A number of the program with fields of its own, which sums and differences keep."""

    __slots__ = ()
    _kind: Any
    value: Any

    @property
    def word(self) -> Any:
        """The number alone."""
        return self._kind(self.value)

    def _combined(self, operation: Callable[[Any, Any], Any], other: Any) -> Any:
        made: Callable[[Any], Any] = type(self)  # which is a number's class, too
        return made(operation(self.word, self._kind(as_numeric(unwrap(other)))))

    def __add__(self, other: Any) -> Any:
        return self._combined(operator.add, other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self._combined(operator.sub, other)

    def __or__(self, other: Any) -> Any:
        return self._combined(operator.or_, other)


class Tcgen05SmemDesc(_Word, Int64):
    """A matrix descriptor of ``tcgen05`` (PTX ISA, "Shared memory descriptor"), a number of 64 bits. Added numbers go
    to its start address, in units of 16 bytes.

    >>> desc = lambda t: Tcgen05SmemDesc.build(
    ...     0x400 + 16 * t, leading_byte_offset=16, stride_byte_offset=1024, layout=2).advance_start_address(32)
    >>> [hex(x) for x in per_thread(lambda t: desc(t).word, 2, dtype=Int64)]
    ['0x4000404000010042', '0x4000404000010043']
    """

    __slots__ = ()
    _kind = Int64

    @classmethod
    def build(
        cls,
        start_address: Any,
        *,
        leading_byte_offset: Any,
        stride_byte_offset: int,
        layout: Any,
        version: int = 1,
        base_offset: int = 0,
        leading_dim_mode: int = 0,
        loc: Any = None,
        ip: Any = None,
    ) -> Tcgen05SmemDesc:
        """The descriptor of a tile at a pointer, array or address in shared memory. Offsets are in bytes, ``layout`` is
        a :class:`.Tcgen05SmemSwizzle`. ``leading_dim_mode=1``, of K = 96: ``leading_byte_offset`` is the address where
        the rows go on. ConstraintError for offsets that are not multiples of 16."""
        bits, go_on = 0, None
        if leading_dim_mode:
            go_on, leading_byte_offset = Int64((_address(leading_byte_offset) & 0x3FFFF) >> 4) << 16, 0
        for what, value, at in (
            ("leading_byte_offset", leading_byte_offset, 16),
            ("stride_byte_offset", stride_byte_offset, 32),
        ):
            number = unwrap(value)
            if not isinstance(number, int) or number % _UNIT or not 0 <= number // _UNIT <= _FIELD:
                raise ConstraintError(f"Tcgen05SmemDesc: {what} is a multiple of 16 bytes below 2^18, not {value!r}")
            bits |= number // _UNIT << at
        bits |= version << 46 | base_offset << 49 | leading_dim_mode << 52 | int(layout) << 61
        bits -= bits >> 63 << 64  # the swizzle's upper bit is the sign
        address = _address(start_address)
        word = Int64((address & 0x3FFFF) >> 4) | Int64(bits)
        return cls(word if go_on is None else word | go_on)

    def advance_start_address(self, byte_offset: Any, *, loc: Any = None, ip: Any = None) -> Tcgen05SmemDesc:
        """The same tile so many bytes further on, a multiple of 16."""
        offset = unwrap(byte_offset)
        if isinstance(offset, int) and offset % _UNIT:
            raise ConstraintError(f"advance_start_address: {offset} bytes are not a multiple of 16")
        return self + (offset // _UNIT if isinstance(offset, int) else Int64(Int32(offset) >> 4))


class Tcgen05InstrDesc(_Word, Int32):
    """The instruction descriptor of the kinds without block scales, a number of 32 bits.

    >>> from tilewright import BFloat16, Float32
    >>> hex(Tcgen05InstrDesc.build(c_dtype=Float32, a_dtype=BFloat16, b_dtype=BFloat16, m_dim=128, n_dim=64).word.value)
    '0x8100490'
    """

    __slots__ = ()
    _kind = Int32

    @classmethod
    def build(
        cls,
        *,
        c_dtype: Any,
        a_dtype: Any,
        b_dtype: Any,
        m_dim: int,
        n_dim: int,
        k_dim: int = 0,
        a_major: int = 0,
        b_major: int = 0,
        a_negate: bool = False,
        b_negate: bool = False,
        saturate: bool = False,
        sparse: bool = False,
        sparsity_selector: int = 0,
        max_shift: int = 0,
        loc: Any = None,
        ip: Any = None,
    ) -> Tcgen05InstrDesc:
        """The descriptor of an MMA with these types and extents (M and N in elements); majors are 0 (K) or 1 (MN).
        ``sparse``: A is, with the metadata that ``sparsity_selector`` selects; ``max_shift``: the most columns by which
        B is shifted, with ``.ws`` (0, 8, 16 or 32)."""
        a, b, c = (scalar_of(x) for x in (a_dtype, b_dtype, c_dtype))
        kind = next((k for k in ACCUMULATORS if {a, b} <= FORMATS[k].keys() and c in ACCUMULATORS[k]), None)
        if kind is None or kind.startswith("mx"):
            raise ConstraintError(f"Tcgen05InstrDesc: tcgen05.mma has no product of {a} and {b} into {c}")
        majors = tuple("K" if int(major) == 0 else "MN" for major in (a_major, b_major))
        negate = (bool(a_negate), bool(b_negate))
        rest = (bool(saturate), bool(sparse), sparsity_selector, max_shift)
        made = InstructionDescriptor(kind, a, b, c, m_dim, n_dim, (majors[0], majors[1]), negate, *rest)
        return cls(_signed(made.word))


class Tcgen05MxInstrDesc(_Word, Int32):
    """The instruction descriptor of the kinds with block scales.

    >>> from tilewright import Float8E4M3FN
    >>> word = Tcgen05MxInstrDesc.build(a_dtype=Float8E4M3FN, b_dtype=Float8E4M3FN, m_dim=128, n_dim=64).word
    >>> hex(word.value)
    '0x8900000'
    """

    __slots__ = ()
    _kind = Int32
    _packed = False

    @classmethod
    def build(
        cls,
        *,
        a_dtype: Any,
        b_dtype: Any,
        m_dim: int,
        n_dim: int,
        k_dim: int = 0,
        a_major: int = 0,
        b_major: int = 0,
        a_negate: bool = False,
        b_negate: bool = False,
        scale_format: int = 1,
        a_sf_id: int = 0,
        b_sf_id: int = 0,
        sparsity_version: int = 0,
        sparse: bool = False,
        loc: Any = None,
        ip: Any = None,
    ) -> Any:
        """``scale_format``: 1 for factors of Float8E8M0FNU, 0 for Float8E4M3FN; ``sparse``: A is."""
        a, b = scalar_of(a_dtype), scalar_of(b_dtype)
        majors = tuple("K" if int(major) == 0 else "MN" for major in (a_major, b_major))
        made = InstructionDescriptor(
            "mxf4nvf4" if cls._packed else "mxf8f6f4",
            a,
            b,
            F32,
            m_dim,
            n_dim,
            (majors[0], majors[1]),
            (bool(a_negate), bool(b_negate)),
            sparse=bool(sparse),
            scale="ue8m0" if int(scale_format) else "ue4m3",
            sfa_id=a_sf_id,
            sfb_id=b_sf_id,
            k_96=cls._packed and int(k_dim) in (1, 2, 96),
        )
        return cls(_signed(made.word))

    def set_sf_ids(self, a_sf_id: Any, b_sf_id: Any, *, loc: Any = None, ip: Any = None) -> Any:
        """The same with the bytes of the columns at which the factors of A and of B begin."""
        fields = _signed(3 << 29 | 3 << 4)
        return type(self)((self.word & ~Int32(fields)) | Int32(a_sf_id) << 29 | Int32(b_sf_id) << 4)


class Tcgen05MxOmmaInstrDesc(Tcgen05MxInstrDesc):
    """The instruction descriptor of the kinds of Float4E2M1FN with block scales.

    >>> from tilewright import Float4E2M1FN
    >>> types = {"a_dtype": Float4E2M1FN, "b_dtype": Float4E2M1FN}
    >>> hex(Tcgen05MxOmmaInstrDesc.build(**types, m_dim=128, n_dim=64, scale_format=0).word.value)
    '0x8100480'
    """

    __slots__ = ()
    _packed = True


def _address(x: Any) -> Any:
    """The address of a pointer or array, or the number."""
    return Int32(x.toint()) if hasattr(x, "toint") else Int32(x)


def _signed(word: int) -> int:
    return word - (word >> 31 << 32)
