"""``tcgen05.cp``: copies from shared to tensor memory, which bring scale factors to the MMAs behind them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from tilewright.atoms.matrix_descriptor import ADDRESS_BITS
from tilewright.atoms.tensor_memory import tmem_place
from tilewright.atoms.tensor_memory_cp import SmemToTmem, copy_descriptor, in_units
from tilewright.cute.nvgpu.tcgen05.mma_ops import CtaGroup
from tilewright.errors import ConstraintError
from tilewright.ir.builder import Builder
from tilewright.lang.device.warps import make_warp_uniform
from tilewright.lang.numbers.numeric import Int32
from tilewright.lang.tensors.descriptors import Descriptors
from tilewright.lang.tensors.pointer import AddressSpace, Pointer
from tilewright.lang.tensors.tensor import Tensor
from tilewright.lang.tensors.tensor_memory import TensorMemory
from tilewright.layout import Layout, is_static, make_layout, rank, recast_layout, size
from tilewright.layout.evaluate import static_offsets
from tilewright.layout.smem_atoms import BYTE_SWIZZLES
from tilewright.tiled.atom import CopyAtom
from tilewright.tiled.make_copy import make_cotiled_copy
from tilewright.tiled.tiled_copy import ThrCopy, TiledCopy


@dataclass(frozen=True)
class _Copy:
    """``src_fmt`` is PTX's: of ``"b4x16_p64"`` and ``"b6x16_p32"``, 16 numbers of 4 or 6 bits that fill the first of 16
    bytes, each gets a byte of tensor memory."""

    _shape: ClassVar[str]
    cta_group: CtaGroup
    src_fmt: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.cta_group, CtaGroup):
            raise ConstraintError(f"{type(self).__name__}: cta_group is CtaGroup.ONE or TWO, not {self.cta_group!r}")
        self.copy_instruction(None)

    def copy_instruction(self, value_type: Any, num_bits: int = 0) -> SmemToTmem:
        return SmemToTmem(self._shape, self.cta_group.value, self.src_fmt)


@dataclass(frozen=True)
class Cp128x256bOp(_Copy):
    """``tcgen05.cp`` of 128 rows of 32 bytes, a lane each.

    >>> Cp128x256bOp(CtaGroup.ONE).copy_instruction(None)
    SM100_UTCCP_128dp256bit_1cta
    """

    _shape = "128x256b"


@dataclass(frozen=True)
class Cp128x128bOp(_Copy):
    """``tcgen05.cp`` of 128 rows of 16 bytes, a lane each.

    >>> Cp128x128bOp(CtaGroup.TWO).copy_instruction(None)
    SM100_UTCCP_128dp128bit_2cta
    """

    _shape = "128x128b"


@dataclass(frozen=True)
class Cp4x256bOp(_Copy):
    """``tcgen05.cp`` of 4 rows of 32 bytes, one for each 32 lanes.

    >>> Cp4x256bOp(CtaGroup.ONE).copy_instruction(None)
    SM100_UTCCP_4dp256bit_1cta
    """

    _shape = "4x256b"


@dataclass(frozen=True)
class Cp4x32x128bOp(_Copy):
    """``tcgen05.cp`` of 32 rows of 16 bytes, which all four quarters of the lanes get: scale factors.

    >>> Cp4x32x128bOp(CtaGroup.ONE).copy_instruction(None)
    SM100_UTCCP_4x32dp128bit_1cta
    """

    _shape = "32x128b.warpx4"


@dataclass(frozen=True)
class Cp2x64x128b0213Op(_Copy):
    """``tcgen05.cp`` of 64 rows of 16 bytes, which both halves of the lanes get.

    >>> Cp2x64x128b0213Op(CtaGroup.ONE).copy_instruction(None)
    SM100_UTCCP_2x64dp128bit_02_13_1cta
    """

    _shape = "64x128b.warpx2::02_13"


@dataclass(frozen=True)
class Cp2x64x128b0123Op(_Copy):
    """``tcgen05.cp`` of 64 rows of 16 bytes: rows 0-31 in lanes 0-31 and 32-63, the others in the lanes after those.

    >>> Cp2x64x128b0123Op(CtaGroup.ONE).copy_instruction(None)
    SM100_UTCCP_2x64dp128bit_01_23_1cta
    """

    _shape = "64x128b.warpx2::01_23"


class S2tCopy(TiledCopy):
    """A tiled copy from shared to tensor memory: its source is a tensor of descriptors."""

    def stage_copy(self, src: Tensor, dst: Tensor, *, pred: Any = None) -> None:
        """``cute.copy`` with this copy: an instruction for each of the rest modes."""
        atom = self.instruction
        if pred is not None:
            raise ConstraintError(f"cute.copy: {atom} takes no pred")
        if not isinstance(src.engine, Descriptors) or not isinstance(dst.engine, TensorMemory):
            raise ConstraintError(
                f"cute.copy: {atom} copies from a tensor of descriptors (get_s2t_smem_desc_tensor of partition_S) to "
                f"tensor memory (partition_D), not from {src} to {dst}"
            )
        for x in (src, dst):
            if not is_static(x.linear) or rank(x.linear) < 1:
                raise ConstraintError(f"cute.copy: {atom}: the layout {x.linear} must be static: slice the stage")
        units, elements = (static_offsets(_rest(x.linear)) for x in (src, dst))
        if len(units) != len(elements):
            raise ConstraintError(
                f"cute.copy: {atom}: {src.linear} has {len(units)} copies after mode 0, {dst.linear} {len(elements)}"
            )
        width = dst.element_type.width
        places = [tmem_place(offset, width) for offset in elements]
        if any(lane or sub for lane, _, sub in places):
            raise ConstraintError(
                f"cute.copy: {atom}: the copies of {dst.linear} do not begin in lane 0 of whole columns"
            )
        steps = tuple((unit, column) for unit, (_, column, _) in zip(units, places, strict=True))
        low = Int32(src.engine.low + src.engine.offset).ir_value()
        Builder.current().call(atom, [dst.engine.value(), low], steps=steps, high=src.engine.high)

    def get_slice(self, thr_idx: Any, *, loc: Any = None, ip: Any = None) -> ThrCopy:
        return _ThrS2tCopy(self, thr_idx)


class _ThrS2tCopy(ThrCopy):
    def _whole(self, x: Any, side: str) -> Any:
        # The tile counts the rows that the lanes get several times; shared memory has each once.
        return x


def _rest(layout: Layout) -> Layout:
    return make_layout(*[layout[i] for i in range(1, rank(layout))]) if rank(layout) > 1 else Layout(1, 0)


def make_s2t_copy(atom: CopyAtom, tmem_tensor: Tensor, *, loc: Any = None, ip: Any = None) -> TiledCopy:
    """The tiled copy of ``tcgen05.cp`` for a tensor of tensor memory without zero strides (``filter_zeros``). One
    slice, ``get_slice(0)``, has all of a block's data.

    ConstraintError for other atoms, and where the instruction does not fit the tensor's layout.
    """
    instruction = atom.instruction
    if not isinstance(instruction, SmemToTmem):
        raise ConstraintError(
            f"make_s2t_copy takes an atom of tcgen05.cp (tcgen05.Cp4x32x128bOp...), not {instruction}"
        )
    places = recast_layout(atom.scalar.width, 1, instruction.layouts.places)
    blocks = Layout(instruction.ctas, 0)
    made = make_cotiled_copy(atom, make_layout(blocks, places), tmem_tensor.linear)
    return S2tCopy(atom, made.layout_tv_tiled, made.tiler)


def get_s2t_smem_desc_tensor(atom: CopyAtom, smem_tensor: Tensor, *, loc: Any = None, ip: Any = None) -> Tensor:
    """The descriptors of a partition ``partition_S`` in shared memory: what ``cute.copy`` takes as its source. Mode 0
    is one copy; slice the stage.

    ConstraintError for a partition whose rows no matrix descriptor names.
    """
    instruction, pointer = atom.instruction, smem_tensor.engine
    if not isinstance(instruction, SmemToTmem):
        raise ConstraintError(f"get_s2t_smem_desc_tensor takes an atom of tcgen05.cp, not {instruction}")
    if not isinstance(pointer, Pointer) or pointer.memspace is not AddressSpace.smem:
        raise ConstraintError(f"{instruction}: reads shared memory, not {smem_tensor}")
    layout = recast_layout(8, smem_tensor.element_type.width, smem_tensor.linear)
    if not is_static(layout) or size(layout[0]) < instruction.rows * instruction.row_bytes:
        raise ConstraintError(f"{instruction}: takes partition_S of a shared-memory tensor, not {smem_tensor.linear}")
    swizzle = pointer.swizzle
    masks = (0, 4, 3) if swizzle is None or not swizzle.bits else (swizzle.bits, swizzle.base, swizzle.shift)
    kinds = {(s.bits, s.base, s.shift): kind for kind, s in BYTE_SWIZZLES.items()}
    if masks not in kinds:
        raise ConstraintError(f"{instruction}: no matrix descriptor has the swizzle {swizzle}")
    descriptor = copy_descriptor(layout[0], kinds[masks], instruction)
    base, offset = pointer.unswizzled()
    address: Any = Int32((base + offset).toint())
    low = make_warp_uniform((address & ADDRESS_BITS) >> 4 | descriptor.low)
    return Tensor(Descriptors(low, descriptor.high, pointer.dtype), in_units(layout))
