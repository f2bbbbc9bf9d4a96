"""The parameters of the Hopper kernel whose A is a prepared weight of 4 or 8 bits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from tilewright import BFloat16, Float4E2M1FN, Float8E4M3FN, Float8E5M2, Float16, Float32, Int4, Int8
from tilewright.gemm.config import HopperConfig, Rule, require

COLUMNS, DEPTH, LANES, WORDS = 8, 128, 32, 4
"""Rows and elements of K of the weight that a warp of the kernel for few rows loads at once; its threads, and the words
of 32 bits of each."""

KINDS = Int4, Int8, Float8E4M3FN, Float4E2M1FN
"""What the numbers of a weight may be."""

NARROW = Int4, Float8E4M3FN, Float4E2M1FN
"""Those that Float8E4M3FN has all of: rows of 8-bit floats are multiplied by them as such."""

BLOCK = 64
"""Rows of an instruction of wgmma."""

TMA_STEP = 128
"""Bytes at whose multiples TMA writes to shared memory."""


@dataclass(frozen=True)
class MixedHopperConfig(HopperConfig):
    """A Hopper kernel whose A is a prepared weight (``kernel.mixed_hopper``): ``a`` says the type of its numbers, ``b``
    that of the activations, which the weight is converted to in registers. The product is the transposed one. A row of
    the weight has a scale of type ``scale_dtype`` for each ``scale_k`` elements of K and, with ``zeros``, a zero
    point. With 8-bit activations the numbers become Float8E4M3FN without their scales, by which the sums of each
    ``scale_k`` elements are multiplied before they are added to others (``promote`` is 1)."""

    transposed: bool = True
    scale_dtype: Any = BFloat16
    scale_k: int = DEPTH
    zeros: bool = False

    math: ClassVar[str] = "wgmma_mixed"

    @property
    def narrow(self) -> bool:
        """Whether the activations, and so the numbers that enter wgmma, are 8-bit floats."""
        return self.b.dtype in (Float8E4M3FN, Float8E5M2)

    @property
    def instruction_k(self) -> int:
        """K of one wgmma: 32 bytes of the activations."""
        return 256 // self.b.dtype.width

    @property
    def loads(self) -> int:
        """Loads of a warp of ``mma.sync`` for 8 rows and a k tile: blocks of 128 words."""
        return self.a.dtype.width // 4

    @property
    def words(self) -> tuple[int, int]:
        """The words of the weight in a stage: for each 8 rows so many."""
        return self.tile[0] // COLUMNS, LANES * WORDS * self.loads

    @property
    def groups(self) -> int:
        """Scales of a row in a stage."""
        return self.tile[2] // self.scale_k

    def vector_stride(self, dtype: Any) -> int:
        """Elements from the scales or zero points of one stage to those of the next."""
        step = TMA_STEP * 8 // dtype.width
        return -(-self.tile[0] * self.groups // step) * step

    @property
    def stage_bytes(self) -> int:
        """Bytes of the weight, the activations, the scales and the zero points in one stage."""
        bits = self.vector_stride(self.scale_dtype) * self.scale_dtype.width
        return super().stage_bytes + bits // 8 + (-(-self.tile[0] * self.groups // TMA_STEP) * TMA_STEP * self.zeros)

    def check(self) -> None:
        """Raise ConstraintError when the parameters do not fit together."""
        require("a Hopper GEMM of a prepared weight", self._weight_rules())
        super().check()

    def _weight_rules(self) -> Iterator[Rule]:
        """What a stage of the weight is, and who multiplies it."""
        yield self.a.dtype in KINDS, f"numbers of {', '.join(x.__name__ for x in KINDS)}, not {self.a.dtype.__name__}"
        yield (
            self.b.dtype in (Float16, BFloat16) or (self.narrow and self.a.dtype in NARROW),
            f"rows of Float16 or BFloat16 or, of numbers of {', '.join(x.__name__ for x in NARROW)}, of Float8E4M3FN "
            f"or Float8E5M2; not {self.b.dtype.__name__}",
        )
        yield (
            self.promote == int(self.narrow) and (self.part[0] == BLOCK or not self.narrow),
            f"sums of a k tile that are added to others (promote=1) for 8-bit rows alone, of {BLOCK} rows a warpgroup; "
            f"not promote={self.promote} for {self.b.dtype.__name__} and {self.part[0]} rows",
        )
        yield self.tile[2] == DEPTH, f"a K tile of {DEPTH}, not {self.tile[2]}"
        yield (
            self.scale_k in (32, 64, 128) and self.scale_dtype in (Float16, BFloat16, Float32),
            f"a scale of Float16, BFloat16 or Float32 for 32, 64 or 128 elements, not {self.scale_dtype.__name__} for "
            f"{self.scale_k}",
        )
        plain = self.producers and not self.pingpong and self.transposed
        yield (
            bool(plain) and self.boxes(0) == 1 and self.cluster[1] == 1,
            "a transposed product, a warpgroup that loads, no turns (pingpong), at most 256 rows and clusters along "
            "these",
        )
