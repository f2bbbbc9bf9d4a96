"""The instruction descriptor of ``tcgen05.mma``: the 32-bit operand that says types, shape, majors and more.

Of the kinds without and with block scales (PTX ISA, "Instruction descriptor"; CuTe:
include/cute/arch/mma_sm100_desc.hpp, ``InstrDescriptor`` and ``InstrDescriptorBlockScaled``)::

    bits      0-1       2       3         4-5       7-9      10-12    13     14     15     16     17-22   23     24-28
    dense     selector  sparse  saturate  D format  A format B format -A     -B     major A major B N/8    -      M/16
    scaled    selector  sparse  -         SFB id    A format B format -A     -B     major A major B N/8    scales M/16

    dense:  bits 30-31  the most rows that ``.ws`` shifts (0 none, 1 8, 2 16, 3 32)
    scaled: bits 29-30  SFA id     bit 31  K (0: 64 or 32, 1: 96, of dense mxf4 and mxf4nvf4 on sm_103)

M and N are those of the whole MMA, of both blocks of a pair. Majors: 0 K, 1 MN. An id of scale factors is the byte
of its columns in which the factors of this MMA begin: bits 30-31 of the address that CuTe's tensors of scale factors
have.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from tilewright.atoms.value_types import shown
from tilewright.errors import ConstraintError
from tilewright.ir.types import BF16, E2M1, E2M3, E3M2, E4M3, E5M2, F16, F32, I8, I32, TF32, U8, ScalarType

_FLOATS = {E4M3: 0, E5M2: 1, E2M3: 3, E3M2: 4, E2M1: 5}
FORMATS: Mapping[str, Mapping[ScalarType, int]] = {
    "f16": {F16: 0, BF16: 1},
    "tf32": {TF32: 2},
    "f8f6f4": _FLOATS,
    "i8": {U8: 0, I8: 1},
    "mxf8f6f4": _FLOATS,
    "mxf4": {E2M1: 1},
    "mxf4nvf4": {E2M1: 1},
}
"""The formats of A and B of each kind, and their codes."""
ACCUMULATORS: Mapping[str, Mapping[ScalarType, int]] = {
    "f16": {F16: 0, F32: 1},
    "tf32": {F32: 1},
    "f8f6f4": {F16: 0, F32: 1},
    "i8": {I32: 2},
    "mxf8f6f4": {F32: 1},
    "mxf4": {F32: 1},
    "mxf4nvf4": {F32: 1},
}
"""The formats of D of each kind, and their codes; the descriptors of kinds with block scales do not contain them."""
SCALES: Mapping[str, Mapping[str, int]] = {
    "mxf8f6f4": {"ue8m0": 1},
    "mxf4": {"ue8m0": 1},
    "mxf4nvf4": {"ue4m3": 0, "ue8m0": 1},
}
"""The formats of the scale factors of each kind with block scales, and their codes."""
MAX_SHIFTS = (0, 8, 16, 32)
_MAJORS = ("K", "MN")
_DENSE = {
    "selector": (0, 2),
    "sparse": (2, 1),
    "saturate": (3, 1),
    "d": (4, 2),
    "a": (7, 3),
    "b": (10, 3),
    "negate_a": (13, 1),
    "negate_b": (14, 1),
    "major_a": (15, 1),
    "major_b": (16, 1),
    "n": (17, 6),
    "m": (24, 5),
    "max_shift": (30, 2),
}
_SCALED = {name: place for name, place in _DENSE.items() if name not in ("saturate", "d", "max_shift")} | {
    "sfb_id": (4, 2),
    "scale": (23, 1),
    "sfa_id": (29, 2),
    "k_96": (31, 1),
}


class InstructionDescriptor(NamedTuple):
    """What an instruction descriptor says, in the words of the language; ``word`` is the operand itself.

    ``kind`` is PTX's (``"f16"``, ``"mxf4nvf4"``), which the instruction names and the word does not. ``m``, ``n`` are
    those of both blocks of a pair; ``majors`` are A's and B's. ``scale``: the format of the scale factors, ``"ue8m0"``
    or ``"ue4m3"``, None without; ``sfa_id``, ``sfb_id``: in which byte of their columns they begin. ``selector`` is the
    sparsity selector. ``max_shift`` is in rows.

    >>> from tilewright.ir.types import BF16, E2M1, F32
    >>> hex(InstructionDescriptor("f16", BF16, BF16, F32, 128, 256).word)
    '0x8400490'
    >>> scaled = InstructionDescriptor("mxf4nvf4", E2M1, E2M1, F32, 256, 192, scale="ue4m3", sfb_id=2)
    >>> hex(scaled.word), InstructionDescriptor.of_word("mxf4nvf4", scaled.word) == scaled
    ('0x103004a0', True)
    """

    kind: str
    type_a: ScalarType
    type_b: ScalarType
    type_d: ScalarType
    m: int
    n: int
    majors: tuple[str, str] = ("K", "K")
    negate: tuple[bool, bool] = (False, False)
    saturate: bool = False
    sparse: bool = False
    selector: int = 0
    max_shift: int = 0
    scale: str | None = None
    sfa_id: int = 0
    sfb_id: int = 0
    k_96: bool = False

    @property
    def fields(self) -> dict[str, int]:
        """The fields as they are stored, by name. ConstraintError for what the kind does not have.

        >>> from tilewright.ir.types import F16
        >>> InstructionDescriptor("f16", F16, F16, F16, 64, 80).fields["n"]
        10
        """
        self._check()
        scaled = self.kind in SCALES
        values = {
            "selector": self.selector,
            "sparse": self.sparse,
            "saturate": self.saturate,
            "d": ACCUMULATORS[self.kind][self.type_d],
            "a": FORMATS[self.kind][self.type_a],
            "b": FORMATS[self.kind][self.type_b],
            "negate_a": self.negate[0],
            "negate_b": self.negate[1],
            "major_a": _MAJORS.index(self.majors[0]),
            "major_b": _MAJORS.index(self.majors[1]),
            "n": self.n // 8,
            "m": self.m // 16,
            "max_shift": MAX_SHIFTS.index(self.max_shift),
            "sfa_id": self.sfa_id,
            "sfb_id": self.sfb_id,
            "k_96": self.k_96,
            "scale": SCALES[self.kind][self.scale or ""] if scaled else 0,
        }
        return {name: int(values[name]) for name in (_SCALED if scaled else _DENSE)}

    @property
    def word(self) -> int:
        """The 32 bits."""
        places = _SCALED if self.kind in SCALES else _DENSE
        return sum(value << places[name][0] for name, value in self.fields.items())

    @classmethod
    def of_word(cls, kind: str, word: int) -> InstructionDescriptor:
        """What a word says to an instruction of ``kind``. ConstraintError for a code that the kind does not have.

        >>> InstructionDescriptor.of_word("f16", 0x08400490).type_a
        bf16
        """
        _check_kind(kind)
        places = _SCALED if kind in SCALES else _DENSE
        got = {name: word >> at & (1 << bits) - 1 for name, (at, bits) in places.items()}
        if sum(value << places[name][0] for name, value in got.items()) != word:
            raise ConstraintError(f"the instruction descriptor 0x{word:08x} of kind::{kind} has bits that must be 0")
        d = _decoded(ACCUMULATORS[kind], got["d"], kind, "D") if "d" in got else F32
        return cls(
            kind=kind,
            type_a=_decoded(FORMATS[kind], got["a"], kind, "A"),
            type_b=_decoded(FORMATS[kind], got["b"], kind, "B"),
            type_d=d,
            m=16 * got["m"],
            n=8 * got["n"],
            majors=(_MAJORS[got["major_a"]], _MAJORS[got["major_b"]]),
            negate=(bool(got["negate_a"]), bool(got["negate_b"])),
            saturate=bool(got.get("saturate", 0)),
            sparse=bool(got["sparse"]),
            selector=got["selector"],
            max_shift=MAX_SHIFTS[got.get("max_shift", 0)],
            scale=_decoded(SCALES[kind], got["scale"], kind, "scale factors") if "scale" in got else None,
            sfa_id=got.get("sfa_id", 0),
            sfb_id=got.get("sfb_id", 0),
            k_96=bool(got.get("k_96", 0)),
        )

    def _check(self) -> None:
        """ConstraintError for what no word of this kind can say. Whether the kind has the shape is
        ``tcgen05_validity``'s."""
        _check_kind(self.kind)
        for problem in (self._problem_of_types(), self._problem_of_options(), self._problem_of_fields()):
            if problem:
                raise ConstraintError(f"tcgen05.mma.kind::{self.kind}: {problem}")

    def _problem_of_types(self) -> str:
        """What is wrong with the types of the operands and of the scale factors; empty where nothing is."""
        roles = (("A", self.type_a, FORMATS), ("B", self.type_b, FORMATS), ("D", self.type_d, ACCUMULATORS))
        for role, type_, formats in roles:
            codes = formats[self.kind]
            if type_ not in codes:
                return f"{role} is {shown(type_)}; it can be {', '.join(map(shown, codes))}"
        scales = SCALES.get(self.kind, {})
        if self.scale in scales if scales else self.scale is None:
            return ""
        return f"the scale factors are {self.scale}; they can be {', '.join(scales) or 'None: it has none'}"

    def _problem_of_options(self) -> str:
        """What is set that the kind does not have."""
        unknown: tuple[tuple[str, int], ...]
        if self.kind in SCALES:
            unknown = (("saturate", self.saturate), ("max_shift", self.max_shift))
            why = ", which kinds with block scales do not have"
        else:
            unknown = (("sfa_id", self.sfa_id), ("sfb_id", self.sfb_id), ("k_96", self.k_96))
            why = ", but the kind has no block scales"
        for name, value in unknown:
            if value:
                return f"{name} is {value}{why}"
        if self.saturate and self.kind != "i8":
            return "only kind::i8 saturates"
        if any(self.negate) and self.kind == "i8":
            return "only floats are negated"
        return ""

    def _problem_of_fields(self) -> str:
        """What does not fit into its bits of the word."""
        if self.max_shift not in MAX_SHIFTS:
            return f"max_shift is {self.max_shift} rows; it can be 0, 8, 16, 32"
        for name, value in (("selector", self.selector), ("sfa_id", self.sfa_id), ("sfb_id", self.sfb_id)):
            if not 0 <= value < 4:
                return f"{name} is {value}; it has two bits"
        if any(major not in _MAJORS for major in self.majors):
            return f"the majors are {self.majors}; each is K or MN"
        if self.m % 16 or self.n % 8 or not 0 < self.m <= 256 or not 0 < self.n <= 256:
            return f"M x N is {self.m}x{self.n}; M is a multiple of 16, N one of 8, both at most 256"
        return ""


def scale_factor_id(address: int) -> int:
    """The id of scale factors at an address of CuTe's tensors (bits 30-31): the byte of the columns they begin in.

    >>> scale_factor_id(0x80000114)
    2
    """
    return address >> 30 & 3


def _check_kind(kind: str) -> None:
    if kind not in FORMATS:
        raise ConstraintError(f"tcgen05.mma has no kind::{kind}; it has {', '.join(FORMATS)}")


def _decoded(codes: Mapping[Any, int], code: int, kind: str, role: str) -> Any:
    for meaning, candidate in codes.items():
        if candidate == code:
            return meaning
    raise ConstraintError(f"an instruction descriptor of kind::{kind} has no format {code} of {role}")
