"""The enumerations that the primitives take; each stands for its PTX qualifier, and its text stands for it."""

from __future__ import annotations

import enum
from typing import Any, TypeVar

from tilewright.errors import ConstraintError, nearest

E = TypeVar("E", bound=enum.Enum)


def chosen(kind: type[E], given: Any, what: str) -> E:
    """The member that ``given`` is, or names: ``"cta_1"`` for ``CTAGroup.CTA_1``. ConstraintError for others.

    >>> chosen(CTAGroup, "cta_2", "tcgen05_alloc")
    <CTAGroup.CTA_2: 2>
    """
    if isinstance(given, kind):
        return given
    word = str(getattr(given, "name", given)).upper().replace(".", "_")
    for member in kind:
        if word in (member.name, str(member.value).upper()):
            return member
    names = [member.name for member in kind]
    raise ConstraintError(
        f"{what}: {given!r} is not a {kind.__name__}; there are {', '.join(names)}{nearest(word, names)}"
    )


class CTAGroup(enum.Enum):
    """The blocks of one MMA."""

    CTA_1 = 1
    CTA_2 = 2


class Tcgen05MMAKind(enum.Enum):
    """The kinds of ``tcgen05.mma``."""

    F16 = "f16"
    TF32 = "tf32"
    F8F6F4 = "f8f6f4"
    I8 = "i8"
    MXF8F6F4 = "mxf8f6f4"
    MXF4 = "mxf4"
    MXF4NVF4 = "mxf4nvf4"


class MMABlockScaleKind(enum.Enum):
    """The kinds with block scales."""

    MXF8F6F4 = "mxf8f6f4"
    MXF4 = "mxf4"
    MXF4NVF4 = "mxf4nvf4"


class Tcgen05MMAScaleVecSize(enum.Enum):
    """Factors of a row that one instruction takes."""

    X1 = 1
    X2 = 2
    X4 = 4


class Tcgen05MMABlockScale(enum.Enum):
    """Elements that share a factor."""

    BLOCK16 = 16
    BLOCK32 = 32


class Tcgen05MMACollectorOp(enum.Enum):
    """What an MMA does with the buffer of the tensor core that keeps A, or B of ``.ws``."""

    FILL = "fill"
    USE = "use"
    LASTUSE = "lastuse"
    DISCARD = "discard"


class Tcgen05MMACollectorBBuffer(enum.Enum):
    """The buffers of B of ``tcgen05.mma.ws``."""

    B0 = "b0"
    B1 = "b1"
    B2 = "b2"
    B3 = "b3"


class Tcgen05CpSrcFormat(enum.Enum):
    """How narrow numbers are packed that ``tcgen05.cp`` makes bytes of."""

    B4X16_P64 = "b4x16_p64"
    B6X16_P32 = "b6x16_p32"


class Tcgen05Wait(enum.Enum):
    """What is waited for."""

    LOAD = "load"
    STORE = "store"


class Tcgen05Fence(enum.Enum):
    """The side of a synchronisation."""

    BEFORE_THREAD_SYNC = "before"
    AFTER_THREAD_SYNC = "after"


class Tcgen05LdStShape(enum.Enum):
    """The shapes of ``tcgen05.ld`` and ``st``."""

    SHAPE_32X32B = "32x32b"
    SHAPE_16X32BX2 = "16x32bx2"
    SHAPE_16X64B = "16x64b"
    SHAPE_16X128B = "16x128b"
    SHAPE_16X256B = "16x256b"


class Tcgen05CpShape(enum.Enum):
    """The shapes of ``tcgen05.cp``."""

    SHAPE_128X256B = "128x256b"
    SHAPE_4X256B = "4x256b"
    SHAPE_128X128B = "128x128b"
    SHAPE_64X128B = "64x128b"
    SHAPE_32X128B = "32x128b"


class Tcgen05CpMulticast(enum.Enum):
    """To which parts of the lanes ``tcgen05.cp`` copies."""

    NONE = ""
    WARPX4 = "warpx4"
    WARPX2_02_13 = "warpx2::02_13"
    WARPX2_01_23 = "warpx2::01_23"


class S2TCopyMode(enum.Enum):
    """The forms of ``tcgen05.cp``, shape and multicast together."""

    S2T_128x256b = "128x256b"
    S2T_4x256b = "4x256b"
    S2T_128x128b = "128x128b"
    S2T_64x128b_WARPX2_02_13 = "64x128b.warpx2::02_13"
    S2T_64x128b_WARPX2_01_23 = "64x128b.warpx2::01_23"
    S2T_32x128b_WARPX4 = "32x128b.warpx4"


class Tcgen05SmemSwizzle(enum.IntEnum):
    """Swizzles of a matrix descriptor of ``tcgen05``, by their code."""

    NONE = 0
    SWIZZLE_128B_BASE32B = 1
    SWIZZLE_128B = 2
    SWIZZLE_64B = 4
    SWIZZLE_32B = 6


class Proxy(enum.Enum):
    """Proxies that a fence orders."""

    ALIAS = "alias"
    ASYNC = "async"
    ASYNC_GLOBAL = "async.global"
    ASYNC_SHARED = "async.shared"
    GENERIC = "generic"
    TENSORMAP = "tensormap"


class SharedSpace(enum.Enum):
    """Shared memory of the block, or of the cluster."""

    shared_cta = "cta"
    shared_cluster = "cluster"


class MemScope(enum.Enum):
    """Who sees an access in order."""

    CTA = "cta"
    CLUSTER = "cluster"
    GPU = "gpu"
    SYS = "sys"


class MBarrierScope(enum.Enum):
    """Who sees an mbarrier's phase in order."""

    CTA = "cta"
    CLUSTER = "cluster"


class MemOrder(enum.Enum):
    """The order of an access."""

    WEAK = "weak"
    RELAXED = "relaxed"
    ACQUIRE = "acquire"
    RELEASE = "release"
    ACQ_REL = "acq_rel"


class MBarrierWait(enum.Enum):
    """``try_wait``, which may rest for a moment, or ``test_wait``."""

    TRY = "try"
    TEST = "test"


class SetMaxRegisterAction(enum.Enum):
    """What ``setmaxnreg`` does."""

    INCREASE = "inc"
    DECREASE = "dec"


class Shfl(enum.Enum):
    """From which lane a shuffle takes."""

    BFLY = "bfly"
    DOWN = "down"
    IDX = "idx"
    UP = "up"


class VoteSync(enum.Enum):
    """What a vote gives."""

    ALL = "all"
    ANY = "any"
    UNI = "uni"
    BALLOT = "ballot"


class TMALoadMode(enum.Enum):
    """How a box is found in a tensor."""

    TILE = "tile"
    IM2COL = "im2col"
    TILE_GATHER4 = "tile_gather4"


class TMAStoreMode(enum.Enum):
    """How a box is written to a tensor."""

    TILE = "tile"
    IM2COL = "im2col"
    TILE_SCATTER4 = "tile_scatter4"


class LoadCacheModifier(enum.Enum):
    """Caches of an asynchronous copy."""

    CA = "ca"
    CG = "cg"


class MMALayout(enum.Enum):
    """Matrices as they are, or transposed."""

    ROW = "row"
    COL = "col"
