"""Configurations for the layouts of a product's matrices."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from math import gcd
from typing import Any

from tilewright.gemm.config import LEAST_ASYNCHRONOUS, AnyConfig, Major, Operand
from tilewright.gemm.family.accesses import ProductOperands
from tilewright.gemm.family.base import family_of
from tilewright.gemm.family.entry import KernelEntry


def with_operands(entry: KernelEntry, product: ProductOperands) -> AnyConfig:
    """The entry's configuration for the layouts of the product's matrices."""
    return of_operands(entry, *product.operands(*reading(entry.config)))


def reading(config: AnyConfig) -> tuple[bool, Any, bool]:
    """How a kernel sees a product's operands: the arguments of their ``operands``."""
    return config.transposed, config.a.dtype, family_of(config).whole_rows


def of_operands(entry: KernelEntry, a: Operand, b: Operand, c: Operand) -> AnyConfig:
    """The entry's configuration for these operands, which are seen by its :func:`reading`."""
    bM, bN, bK = entry.config.tile
    a = limited(a, bK if a.major is Major.K else bM)
    b = limited(b, bK if b.major is Major.K else bN)
    return with_these(entry, a, b, limited(c, bN if c.major is Major.K else bM))


def limited(operand: Operand, extent: int) -> Operand:
    """With accesses that go into the tile's ``extent`` along the contiguous mode."""
    vector = gcd(operand.vector, extent)
    return operand if vector == operand.vector else replace(operand, copy_bits=vector * operand.dtype.width)


@lru_cache(maxsize=4096)
def with_these(entry: KernelEntry, a: Operand, b: Operand, c: Operand) -> AnyConfig:
    return entry.with_operands(a, b, c)


def suited_entry(entry: KernelEntry, product: ProductOperands) -> KernelEntry:
    """The entry for the layouts of the product's matrices; in its form for narrow accesses or for granules where they
    force these."""
    if product.D.dtype.width == 8:
        sizes = [size for size in entry.sizes if entry.family.writes(with_operands(entry.only(size), product))]
        if sizes and len(sizes) < len(entry.sizes):
            entry = replace(entry.only(sizes[0]), small=tuple(sizes[1:]), narrow=entry.narrow, granular=entry.granular)
    config = with_operands(entry, product)
    if min(x.copy_bits for x in (config.a, config.b, config.c)) == 128:
        return entry
    rows = [x for x in (config.a, config.b) if x.major is Major.K and x.copy_bits < LEAST_ASYNCHRONOUS]
    granules = entry.granular and rows and all(x.granules for x in rows)
    narrow = entry.for_granules if granules else entry.for_narrow
    config, *small = (with_operands(narrow.only(c), product) for c in (narrow.config, *narrow.small))
    return replace(narrow, config=config, small=tuple(small))
