"""Which shapes ``tcgen05.mma`` has: M, N and K by kind, number of blocks, place of A, majors, sparsity.

ptxas cannot see them, for M, N and the types are in a run-time descriptor. Sources: PTX ISA, "tcgen05.mma: Kinds,
matrix shapes"; where CuTe's headers are narrower or wider, they decide (include/cute/arch/mma_sm100_umma.hpp and
include/cute/atom/mma_traits_sm100.hpp); ``.ws`` is PTX's alone.
"""

from __future__ import annotations

from typing import NamedTuple

from tilewright.atoms.tensor_memory_alloc import TCGEN05
from tilewright.errors import ConstraintError

SCALED_KINDS = ("mxf8f6f4", "mxf4", "mxf4nvf4")
"""The kinds with block scales."""
PACKED_KINDS = ("mxf4", "mxf4nvf4")
"""The kinds whose 4-bit numbers are two in a byte; those of f8f6f4 and mxf8f6f4 have gaps in shared memory."""
KINDS = ("f16", "tf32", "f8f6f4", "i8", *SCALED_KINDS)
K_OF_SM_103 = 96
"""K of the kinds of ``PACKED_KINDS`` on sm_103a, by a bit of the instruction descriptor (CuTe: ``SM103_MXF4_ULTRA`` in
include/cute/arch/mma_sm100_umma.hpp)."""
_K = {"f16": 16, "tf32": 8, "f8f6f4": 32, "i8": 32, "mxf8f6f4": 32, "mxf4": 64, "mxf4nvf4": 64}


class MmaForm(NamedTuple):
    """A form of ``tcgen05.mma``: ``kind`` is PTX's; ``ctas`` 1 or 2; ``weight_stationary`` is ``.ws``; ``k_96``: K is
    96, where it is 64 else.

    >>> print(MmaForm("f16", ctas=2, a_in_tmem=True))
    tcgen05.mma.cta_group::2.kind::f16 with A in tensor memory
    """

    kind: str
    ctas: int = 1
    a_in_tmem: bool = False
    sparse: bool = False
    weight_stationary: bool = False
    k_96: bool = False

    def __str__(self) -> str:
        return self.mnemonic + " with A in tensor memory" * self.a_in_tmem + " with K = 96" * self.k_96

    @property
    def k(self) -> int:
        """K of one instruction."""
        return K_OF_SM_103 if self.k_96 else instruction_k(self.kind, self.sparse)

    @property
    def features(self) -> tuple[int, ...]:
        """The compute capabilities whose architecture-specific targets have it (ptxas refuses it for others, except K =
        96, which it does not see)."""
        if self.k_96:
            return (103,)
        return tuple(n for n in TCGEN05 if n != 103) if self.kind == "i8" else TCGEN05

    @property
    def mnemonic(self) -> str:
        """PTX's name, as far as the form says it."""
        name = f"tcgen05.mma{'.ws' * self.weight_stationary}{'.sp' * self.sparse}.cta_group::{self.ctas}"
        return f"{name}.kind::{self.kind}"


class _Row(NamedTuple):
    """M, and the N that go with it: multiples of ``step`` up to 256, from ``first`` on where that is less than a step.

    ``step_mn``: the step where B is MN-major, if it is another.
    """

    m: tuple[int, ...]
    step: int
    step_mn: int = 0
    first: int = 0

    def columns(self, major_b: str) -> tuple[int, ...]:
        step = self.step_mn if self.step_mn and major_b == "MN" else self.step
        first = (self.first,) if self.first else ()
        return first + tuple(range(step, 257, step))


_ONE, _TWO = (64, 128), (128, 256)
_SHARED = {  # (kind, blocks): A and B in shared memory
    ("f16", 1): _Row(_ONE, 8),
    ("f16", 2): _Row(_TWO, 16),
    ("tf32", 1): _Row(_ONE, 8),
    ("tf32", 2): _Row(_TWO, 16),
    ("f8f6f4", 1): _Row(_ONE, 8, 16),
    ("f8f6f4", 2): _Row(_TWO, 16, 32),
    ("i8", 1): _Row(_ONE, 16, first=8),
    ("i8", 2): _Row(_TWO, 32),
    ("mxf8f6f4", 1): _Row((128,), 8),
    ("mxf8f6f4", 2): _Row((256,), 16),
    ("mxf4", 1): _Row((128,), 8),
    ("mxf4", 2): _Row(_TWO, 16),
    ("mxf4nvf4", 1): _Row((128,), 8),
    ("mxf4nvf4", 2): _Row(_TWO, 16),
}
_SPARSE = _SHARED | {
    ("f8f6f4", 1): _Row(_ONE, 16),
    ("f8f6f4", 2): _Row(_TWO, 32),
    ("mxf4", 2): _Row((256,), 16),
    ("mxf4nvf4", 2): _Row((256,), 16),
}
_K_96 = {1: _Row((128,), 16), 2: _Row((256,), 16)}
_A_IN_TMEM = {("i8", 1): (_Row(_ONE, 16, first=8),)}
_DENSE_A_IN_TMEM = {1: (_Row((64,), 8), _Row((128,), 16)), 2: (_Row(_TWO, 32),)}


def instruction_k(kind: str, sparse: bool = False) -> int:
    """K of one instruction: 256 bits of A, but 32 numbers for every width of f8f6f4; sparse: twice, zeros counted.

    >>> [instruction_k(kind) for kind in KINDS], instruction_k("f16", sparse=True)
    ([16, 8, 32, 32, 32, 64, 64], 32)
    """
    _check_kind(kind)
    return _K[kind] << sparse


def mma_columns(form: MmaForm, m: int, majors: tuple[str, str] = ("K", "K")) -> tuple[int, ...]:
    """The N that an MMA of M rows can have; none: it has no such M or majors. M, N are those of both blocks of a pair.

    ConstraintError for a form that does not exist, such as block scales with ``.ws``.

    >>> mma_columns(MmaForm("f16", ctas=2), 256)[:3], mma_columns(MmaForm("f16"), 32)
    ((16, 32, 48), ())
    """
    if not _has_majors(form, majors):
        return ()
    for row in _rows(form):
        if m in row.m:
            return _stationary_columns(form) if form.weight_stationary else row.columns(majors[1])
    return ()


def check_mma_shape(form: MmaForm, shape_mnk: tuple[int, int, int], majors: tuple[str, str] = ("K", "K")) -> None:
    """ConstraintError, with the table of what fits, for a shape or majors that the form does not have.

    >>> check_mma_shape(MmaForm("f16"), (128, 256, 16), ("K", "MN"))
    """
    m, n, k = shape_mnk
    if not _has_majors(form, majors):
        where = "A in tensor memory is" if form.a_in_tmem and form.kind not in ("mxf4", "mxf4nvf4") else "A and B are"
        raise ConstraintError(
            f"{form}: A is {majors[0]}-major and B {majors[1]}-major, but {where} K-major; transpose on the way into "
            f"{'tensor' if where.startswith('A in') else 'shared'} memory"
        )
    if k == form.k and n in mma_columns(form, m, majors):
        return
    raise ConstraintError(f"{form}: it has no shape {m}x{n}x{k}. What fits:\n{shape_table(form, majors)}")


def shape_table(form: MmaForm, majors: tuple[str, str] = ("K", "K")) -> str:
    """The shapes of a form, a line for each set of M.

    >>> print(shape_table(MmaForm("i8")))
      M 64 or 128, N 8, 16 to 256 in steps of 16, K 32
    """
    lines = []
    for row in _rows(form):
        columns = row.columns(majors[1])
        step = columns[-1] - columns[-2]
        first = f"{row.first}, " if row.first else ""
        of_n = f"{first}{step} to 256 in steps of {step}"
        if form.weight_stationary:
            *others, last = map(str, _stationary_columns(form))
            of_n = f"{', '.join(others)} or {last}"
        lines.append(f"  M {' or '.join(map(str, row.m))}, N {of_n}, K {form.k}")
    return "\n".join(lines)


def _stationary_columns(form: MmaForm) -> tuple[int, ...]:
    """The N of ``.ws`` (PTX ISA, "Matrix Shape")."""
    return (64, 128) if form.sparse else (64, 128, 256)


def _rows(form: MmaForm) -> tuple[_Row, ...]:
    _check_kind(form.kind)
    if form.ctas not in (1, 2):
        raise ConstraintError(f"tcgen05.mma: one MMA is the work of 1 or 2 blocks, not of {form.ctas}")
    if form.k_96:
        if form.kind not in PACKED_KINDS or form.sparse or form.a_in_tmem:
            raise ConstraintError(f"{form}: that is for {' and '.join(PACKED_KINDS)}, A dense and in shared memory")
        return (_K_96[form.ctas],)
    if form.weight_stationary:
        if form.ctas == 2 or form.kind in SCALED_KINDS:
            raise ConstraintError(f"{form}: .ws is for one block, and for kinds without block scales")
        return (_Row((32, 64, 128), 64),)
    if form.a_in_tmem and not form.sparse and form.kind not in SCALED_KINDS:
        return _A_IN_TMEM.get((form.kind, form.ctas), _DENSE_A_IN_TMEM[form.ctas])
    return ((_SPARSE if form.sparse else _SHARED)[form.kind, form.ctas],)


def _has_majors(form: MmaForm, majors: tuple[str, str]) -> bool:
    if any(major not in ("K", "MN") for major in majors):
        raise ConstraintError(f"{form}: the majors are {majors}; each is K or MN")
    if form.kind in ("mxf4", "mxf4nvf4"):
        return majors == ("K", "K")
    return majors[0] == "K" or not form.a_in_tmem


def _check_kind(kind: str) -> None:
    if kind not in KINDS:
        raise ConstraintError(f"tcgen05.mma has no kind::{kind}; it has {', '.join(KINDS)}")
