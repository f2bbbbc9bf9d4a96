"""``tcgen05.mma``: matrix instructions of the tensor cores of sm_100, whose accumulators are in tensor memory.

One thread issues it for its block. B, and A in the SS form, is in shared memory; A in the TS form and D are in tensor
memory (PTX ISA, "tcgen05.mma"; CuTe: include/cute/atom/mma_traits_sm100.hpp). It is asynchronous: ``tcgen05.commit``
lets an mbarrier know that all that this thread has issued is done.

Operands of a call ``[d, a, b, accumulate]``, the first three i32: the address of D; the low word of the matrix
descriptor of A, or its address in tensor memory; the low word of B's; ``accumulate`` is an i1, whether the first
instruction along K adds to D or overwrites it. Attributes: ``d_layout (V, M, N)`` in elements of tensor memory;
``a_layout (1, M, K)`` and ``b_layout (1, N, K)`` in units of 16 bytes, with the descriptors' high words ``a_high``,
``b_high``; of A in tensor memory ``a_layout (V, M, K)`` in elements.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

from tilewright.atoms.matrix_descriptor import TCGEN05 as DESCRIPTORS
from tilewright.atoms.matrix_descriptor import DescriptorFormat
from tilewright.atoms.mma import DescriptorMma, check_rest_modes
from tilewright.atoms.tcgen05_descriptor import InstructionDescriptor
from tilewright.atoms.tcgen05_layouts import CtaLayouts, a_fragment, accumulator_fragment, cta_layouts, issue_order
from tilewright.atoms.tcgen05_validity import K_OF_SM_103, PACKED_KINDS, MmaForm, check_mma_shape
from tilewright.atoms.tensor_memory import MMA
from tilewright.atoms.value_types import BY_NAME
from tilewright.ir.computed import computed, computed_once
from tilewright.ir.core import Op
from tilewright.ir.effects import Access
from tilewright.ir.instruction import Emitter, Lanes, lacking_features, need
from tilewright.ir.target import WARP, Architecture
from tilewright.ir.types import BOOL, I32, U8, MemSpace, ScalarType
from tilewright.layout import Layout
from tilewright.layout.evaluate import static_offsets
from tilewright.layout.tuples import product

AGENT = MMA
_NAMES = {t: name for name, t in BY_NAME.items()}


@dataclass(frozen=True, repr=False)
class Tcgen05Mma(DescriptorMma):
    """The data of one ``tcgen05.mma`` of one block or a pair. ``kind`` is PTX's; ``shape_mnk`` that of the whole MMA;
    ``source``: ``SS`` or ``TS``, where A is; ``majors`` are A's and B's; ``ctas``: how many blocks work on it.

    >>> from tilewright.ir.types import BF16, F32
    >>> Tcgen05Mma("f16", (128, 256, 16), F32, BF16, BF16)
    SM100_128x256x16_F32BF16BF16_SS<K,K>
    >>> Tcgen05Mma("f16", (256, 256, 16), F32, BF16, BF16, ctas=2).layout_b
    (2,(128,16)):(128,(1,256))
    """

    kind: str
    shape_mnk: tuple[int, int, int]
    type_d: ScalarType
    type_a: ScalarType
    type_b: ScalarType
    source: str = "SS"
    majors: tuple[str, str] = ("K", "K")
    saturate: bool = False
    ctas: int = 1

    name = "tcgen05.mma"
    min_arch = 100
    stationary: ClassVar[bool] = False
    """Whether it is ``tcgen05.mma.ws``, whose B is what stays in the tensor core."""
    fields: ClassVar[tuple[str, ...]] = ("accum_c",)
    descriptor_format: ClassVar[DescriptorFormat | None] = DESCRIPTORS

    def __post_init__(self) -> None:
        assert self.descriptor  # it checks kind and types
        check_mma_shape(self.form, self.shape_mnk, self.majors)

    @property
    def further(self) -> tuple[str, ...]:
        """The operands of one instruction behind whether it accumulates."""
        return ()

    @property
    def form(self) -> MmaForm:
        """Which of PTX's forms it is."""
        k_96 = self.shape_mnk[2] == K_OF_SM_103
        return MmaForm(self.kind, self.ctas, self.source == "TS", self.sparsity > 1, self.stationary, k_96)

    @property
    def rows_go_on(self) -> bool:  # type: ignore[override]  # a constant of other instructions
        return self.form.k_96

    @property
    def descriptor(self) -> InstructionDescriptor:
        """The instruction descriptor. ConstraintError for types that the kind does not have."""
        m, n, _ = self.shape_mnk
        types = (self.type_a, self.type_b, self.type_d)
        made = InstructionDescriptor(
            self.kind, *types, m, n, self.majors, saturate=self.saturate, sparse=self.sparsity > 1
        )
        assert made.fields
        return made

    @computed_once
    def accesses(self) -> tuple[Access, ...]:
        return self.products

    @property
    def products(self) -> tuple[Access, ...]:
        """The accesses to D, A and B."""
        tile = Access("read", "B", (MemSpace.SMEM,), 2, align=16, agent=AGENT, proxy="async")
        tmem = Access("read", "A", (MemSpace.TMEM,), 1, agent=AGENT)
        return (
            Access("update", "D", (MemSpace.TMEM,), 0, agent=AGENT),
            replace(tile, role="A", operand=1) if self.source == "SS" else tmem,
            tile,
        )

    @cached_property
    def layouts(self) -> CtaLayouts:
        return cta_layouts(self.shape_mnk, self.ctas)

    @computed
    def thr_id(self) -> Layout:
        return self.layouts.thr_id

    @computed
    def layout_a(self) -> Layout:
        return self.layouts.a

    @computed
    def layout_b(self) -> Layout:
        return self.layouts.b

    @computed
    def layout_c(self) -> Layout:
        return self.layouts.c

    @property
    def cute_name(self) -> str:
        types = "".join(_NAMES[t] for t in (self.type_d, self.type_a, self.type_b))
        shape = "x".join(map(str, self.shape_mnk))
        pair = "2x1SM_" if self.ctas == 2 else ""
        form = f"{'WS_' * self.stationary}{self.source}{'_SPARSE' * (self.sparsity > 1)}"
        name = f"SM100_{shape}_{types}_{pair}{form}<{','.join(self.majors)}>"
        return f"{name}_SATURATE" if self.saturate else name

    @property
    def threads(self) -> int:
        return WARP  # the warp elects one of them

    def reads_shared(self, operand: str) -> bool:
        return operand == "B" or operand == "A" and self.source == "SS"

    def stored_type(self, operand: str) -> ScalarType:
        """The type of the tensors in memory: bytes for numbers of 4 and 6 bits of kinds f8f6f4 and mxf8f6f4, as 16
        numbers take 16 bytes in shared memory, and each number one in tensor memory (``container_shift``)."""
        type_ = super().stored_type(operand)
        return U8 if type_.width < 8 and self.kind not in PACKED_KINDS else type_

    def in_tensor_memory(self, operand: str) -> bool:
        return operand == "C" or operand == "A" and self.source == "TS"

    def tensor_memory(self, operand: str, shape: Any) -> Layout:
        if operand == "A":
            return a_fragment(shape, self.stored_type("A").width, self.ctas)
        return accumulator_fragment(shape, self.type_d.width, self.ctas, self.source == "TS")

    def issued(self, op: Op) -> Iterator[tuple[int, int, int]]:
        """The tiles (m, n, k) of a call in the order in which their instructions are issued."""
        d, a = op.attrs["d_layout"], op.attrs["a_layout"]
        for k in range(product(a[2].shape)):
            for m, n in issue_order(product(d[1].shape), product(d[2].shape), self.source == "TS"):
                yield m, n, k

    # -- checks, action, text --------------------------------------------------------------------------------------

    def verify(self, op: Op) -> None:
        need(
            op,
            [v.type for v in op.operands[:4]] == [I32, I32, I32, BOOL],
            f"{self}: takes the place of D in tensor memory, of A and of B (i32), and whether it accumulates (i1)",
        )
        layouts = [op.attrs[f"{x}_layout"] for x in "dab"]
        check_rest_modes(self, op)
        m, n, k = self.shape_mnk
        self._verify_place(op, "D", "C", layouts[0], (m // self.ctas, n))
        if self.source == "TS":
            self._verify_place(op, "A", "A", layouts[1], (m // self.ctas, k // self.sparsity))

    def _verify_place(self, op: Op, role: str, operand: str, layout: Layout, tile: tuple[int, int]) -> None:
        """Lanes and columns of one instruction's tile are the hardware's choice."""
        required = self.tensor_memory(operand, (tile, 1, 1))
        same_count = product(layout[0].shape) == product(required[0].shape)
        need(
            op,
            same_count and static_offsets(layout[0]) == static_offsets(required[0]),
            f"{self}: the {tile[0]}x{tile[1]} elements of {role} are at {required[0]} in tensor memory, but the tensor "
            f"given has {layout[0]}: make it with the layout of make_fragment_{operand}",
        )

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        from tilewright.atoms.tcgen05_action import issue

        issue(self, lanes, op, operands)
        return ()

    def product_of(self, lanes: Lanes, operands: list[Any]) -> Any:
        """What makes the simulator's product of a warp, of its row and the rest of its arguments."""
        from tilewright.atoms.tcgen05_action import Product

        return lambda row, *rest: Product(self, lanes, *rest)

    def emit(self, out: Emitter, op: Op) -> None:
        from tilewright.atoms.tcgen05_text import emit_mma

        emit_mma(self, out, op)

    def lacking(self, arch: Architecture, op: Op | None = None) -> str:
        return lacking_features(self.form.features, arch)

    def mnemonic(self) -> str:
        return self.form.mnemonic
