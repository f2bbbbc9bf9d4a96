"""Special registers beside a thread's indices: its multiprocessor, masks of lanes, clocks (PTX ISA, "Special
Registers")."""

from __future__ import annotations

from typing import Any

from tilewright.ir.builder import Builder
from tilewright.lang.device.inline_ptx import inline_asm
from tilewright.lang.device.threads import WARP_SIZE
from tilewright.lang.numbers.facts import Facts
from tilewright.lang.numbers.numeric import Int32, Int64, Uint32, wrap


def smid(*, loc: Any = None, ip: Any = None) -> Int32:
    """The multiprocessor that runs the block; in the simulator each resident block has its own.

    >>> per_thread(lambda t: arch.smid(), 1, blocks=3)
    [0, 1, 2]
    """
    return wrap(Builder.current().sreg("smid"), Facts(True, 1, None))


def physical_warp_id(*, loc: Any = None, ip: Any = None) -> Int32:
    """The warp's place on its multiprocessor (``%warpid``), which need not be its place in the block.

    >>> per_thread(lambda t: arch.physical_warp_id() < 64, 1)
    [1]
    """
    return _read("warpid", Int32, effects=True)


def nsmid(*, loc: Any = None, ip: Any = None) -> Int32:
    """A bound of :func:`smid`: no multiprocessor has this number or a greater one (``%nsmid``). In the simulator the
    grid's number of blocks.

    >>> per_thread(lambda t: arch.nsmid(), 1, blocks=3)
    [3, 3, 3]
    """
    return _read("nsmid", Int32)


def nwarpid(*, loc: Any = None, ip: Any = None) -> Int32:
    """A bound of :func:`physical_warp_id`: the warps that a multiprocessor holds (``%nwarpid``).

    >>> per_thread(lambda t: arch.physical_warp_id() < arch.nwarpid(), 1)
    [1]
    """
    return _read("nwarpid", Int32)


def gridid(*, loc: Any = None, ip: Any = None) -> Int64:
    """The launch's number (``%gridid``), for debugging: launches that follow each other have different ones.

    >>> first, second = (per_thread(lambda t: arch.gridid(), 2) for _ in range(2))
    >>> first[0] == first[1] < second[0]
    True
    """
    return _read("gridid", Int64)


def total_smem_size(*, loc: Any = None, ip: Any = None) -> Int32:
    """Bytes of shared memory that each block of this launch has, its static and dynamic allocations rounded up to 128
    (``%total_smem_size``).

    >>> from tilewright import Int32
    >>> per_thread(lambda t: (arch.alloc_smem(Int32, 33), arch.total_smem_size())[1], 1)
    [256]
    """
    return _read("total_smem_size", Int32)


def aggr_smem_size(*, loc: Any = None, ip: Any = None) -> Int32:
    """:func:`total_smem_size` and the bytes that the system keeps for each block (``%aggr_smem_size``, sm_90).

    >>> from tilewright import Int32
    >>> per_thread(lambda t: (arch.alloc_smem(Int32, 33), arch.aggr_smem_size())[1], 1)
    [1280]
    """
    return _read("aggr_smem_size", Int32)


def warpsize(*, loc: Any = None, ip: Any = None) -> Int32:
    """The lanes of a warp, 32.

    >>> per_thread(lambda t: arch.warpsize(), 1)
    [32]
    """
    return Int32(WARP_SIZE)


def lanemask_eq(*, loc: Any = None, ip: Any = None) -> Uint32:
    """The bit of the lane.

    >>> per_thread(lambda t: arch.lanemask_eq(), 4)
    [1, 2, 4, 8]
    """
    return _read("lanemask_eq", Uint32)


def lanemask_lt(*, loc: Any = None, ip: Any = None) -> Uint32:
    """The bits of the lanes before this one.

    >>> per_thread(lambda t: arch.lanemask_lt(), 4)
    [0, 1, 3, 7]
    """
    return _read("lanemask_lt", Uint32)


def lanemask_le(*, loc: Any = None, ip: Any = None) -> Uint32:
    """The bits of this lane and of those before.

    >>> per_thread(lambda t: arch.lanemask_le(), 4)
    [1, 3, 7, 15]
    """
    return _read("lanemask_le", Uint32)


def lanemask_ge(*, loc: Any = None, ip: Any = None) -> Uint32:
    """The bits of this lane and of those behind.

    >>> per_thread(lambda t: arch.lanemask_ge() & 15, 4)
    [15, 14, 12, 8]
    """
    return _read("lanemask_ge", Uint32)


def lanemask_gt(*, loc: Any = None, ip: Any = None) -> Uint32:
    """The bits of the lanes behind this one.

    >>> per_thread(lambda t: arch.lanemask_gt() & 15, 4)
    [14, 12, 8, 0]
    """
    return _read("lanemask_gt", Uint32)


def activemask(*, loc: Any = None, ip: Any = None) -> Uint32:
    """The bits of the lanes that run with this one just now.

    >>> per_thread(lambda t: arch.activemask(), 2)
    [3, 3]
    """
    return wrap(inline_asm(Uint32.ir_type, [], "activemask.b32 $0;", "=r", has_side_effects=True))


def clock64(*, loc: Any = None, ip: Any = None) -> Int64:
    """The multiprocessor's cycle counter; in the simulator it counts its readings.

    >>> per_thread(lambda t: (start := arch.clock64(), arch.clock64() >= start)[1], 2)
    [1, 1]
    """
    return _read("clock64", Int64, effects=True)


def globaltimer(*, loc: Any = None, ip: Any = None) -> Int64:
    """The device's time in nanoseconds; in the simulator it counts the readings of clocks.

    >>> per_thread(lambda t: (start := arch.globaltimer(), arch.globaltimer() >= start)[1], 2)
    [1, 1]
    """
    return _read("globaltimer", Int64, effects=True)


def globaltimer_lo(*, loc: Any = None, ip: Any = None) -> Int32:
    """The low 32 bits of :func:`globaltimer`.

    >>> per_thread(lambda t: (start := arch.globaltimer_lo(), arch.globaltimer_lo() - start >= 0)[1], 2)
    [1, 1]
    """
    return _read("globaltimer_lo", Int32, effects=True)


def _read(name: str, kind: Any, *, effects: bool = False) -> Any:
    letter = "l" if kind.width == 64 else "r"
    text = f"mov.u{kind.width} $0, %{name};"
    return wrap(inline_asm(kind.ir_type, [], text, f"={letter}", has_side_effects=effects))
