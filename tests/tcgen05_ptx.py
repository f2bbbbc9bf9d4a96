"""Which text of PTX ptxas assembles for which Blackwell chip: ``tcgen05`` and what came with it, as one table.

A row is a form of an instruction and the targets that have it. In a form ``{a|b}`` is a choice, ``<...>`` may be left
out, ``R`` is a register or symbol, ``(R*4)`` a list of four in braces, ``#`` an integer. Types of registers are not
seen here. Found with ptxas 13.0 (PTX 9.0), or used by CuTe's headers for sm_100; what
the descriptors say, ptxas does not see (``tcgen05_validity`` has it).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from tilewright.atoms.tensor_memory_copy import REGISTERS, tmem_copy_layouts
from tilewright.errors import ConstraintError

TARGETS = ("sm_100a", "sm_100f", "sm_103a", "sm_110a", "sm_120a")
_TENSOR_MEMORY = TARGETS[:4]
_NO_FAMILY = ("sm_100a", "sm_103a", "sm_110a")
_INTEGER = ("sm_100a", "sm_110a")
_SCALED_INPUT = TARGETS[:3]
_REDUCING = ("sm_103a", "sm_110a")

_REDUCTION = "{min|max}{<.abs><.NaN>.f32|.u32|.s32}"
_OP = "{fill|use|lastuse|discard}"
_A, _FLOAT = "{R|[R]}", "{f16|tf32|f8f6f4}"
_ROWS: tuple[tuple[str, tuple[str, ...]], ...] = (
    # -- memory of columns ---------------------------------------------------------------------------------------------
    ("tcgen05.alloc.cta_group::{1|2}.sync.aligned<.shared::cta>.b32 [R], {R|32|64|128|256|512};", _TENSOR_MEMORY),
    (
        f"tcgen05.dealloc.cta_group::{{1|2}}.sync.aligned.b32 R, {{R|{'|'.join(map(str, range(32, 513, 32)))}}};",
        _TENSOR_MEMORY,
    ),
    ("tcgen05.relinquish_alloc_permit.cta_group::{1|2}.sync.aligned;", _TENSOR_MEMORY),
    ("tcgen05.wait::{ld|st}.sync.aligned;", _TENSOR_MEMORY),
    ("tcgen05.fence::{before|after}_thread_sync;", _TENSOR_MEMORY),
    ("tcgen05.commit.cta_group::{1|2}.mbarrier::arrive::one<.shared::cluster>.b64 [R];", _TENSOR_MEMORY),
    (
        "tcgen05.commit.cta_group::{1|2}.mbarrier::arrive::one<.shared::cluster>.multicast::cluster.b64 [R], R;",
        _TENSOR_MEMORY,
    ),
    ("tcgen05.shift.cta_group::{1|2}.down [R];", _NO_FAMILY),
    (
        "tcgen05.cp.cta_group::{1|2}.{128x256b|4x256b|128x128b|64x128b.warpx2::02_13|64x128b.warpx2::01_23|32x128b.warpx4}"
        "<.b8x16.{b6x16_p32|b4x16_p64}> [R], R;",
        _TENSOR_MEMORY,
    ),
    # -- what is not tcgen05 -------------------------------------------------------------------------------------------
    ("clusterlaunchcontrol.try_cancel.async<.shared::cta>.mbarrier::complete_tx::bytes.b128 [R], [R];", TARGETS),
    ("clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 R, R;", TARGETS),
    ("clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 (R*4), R;", TARGETS),
    ("clusterlaunchcontrol.query_cancel.get_first_ctaid::{x|y|z}.b32.b128 R, R;", TARGETS),
    *(
        (
            f"cp.async.bulk.tensor.{n}d<.cta_group::2>.shared::cluster.global<.tile>.mbarrier::complete_tx::bytes"
            f"<.multicast::cluster><.cta_group::2><.L2::cache_hint> [R], [R, (R*{n})], [R]<, R><, R>;",
            _TENSOR_MEMORY,
        )
        for n in range(1, 6)
    ),
    *(
        (
            f"cp.async.bulk.tensor.{n}d.im2col<.cta_group::2>.shared::cluster.global.mbarrier::complete_tx::bytes"
            f"<.multicast::cluster><.cta_group::2><.L2::cache_hint> [R], [R, (R*{n})], [R], (R*{n - 2})<, R><, R>;",
            _TENSOR_MEMORY,
        )
        for n in range(3, 6)
    ),
    (
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile::gather4.mbarrier::complete_tx::bytes<.multicast::cluster>"
        "<.cta_group::2><.L2::cache_hint> [R], [R, (R*5)], [R]<, R><, R>;",
        _TENSOR_MEMORY,
    ),
    (
        "cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes [R], [R, (R*5)], [R];",
        TARGETS,
    ),
    ("cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group [R, (R*5)], [R];", _TENSOR_MEMORY),
    ("{ld|st}.global.v8.{f32|b32} {(R*8), [R]|[R], (R*8)};", TARGETS),
    ("fma.{rn|rz|rm|rp}<.ftz>.f32x2 R, R, R, R;", TARGETS),
    ("{add|mul}.{rn|rz|rm|rp}<.ftz>.f32x2 R, R, R;", TARGETS),
    *((f"ldmatrix.sync.aligned.m16n16.x{n}.trans.shared<::cta>.b8 (R*{2 * n}), [R];", TARGETS) for n in (1, 2)),
    *((f"stmatrix.sync.aligned.m16n8.x{n}.trans.shared<::cta>.b8 [R], (R*{n});", TARGETS) for n in (1, 2, 4)),
)


_SCALED: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("mxf8f6f4", "<.block32>", _TENSOR_MEMORY),
    ("mxf4", "<.block32>", _TENSOR_MEMORY),
    ("mxf4nvf4", ".{block16|block32}", _TENSOR_MEMORY),
    ("mxf8f6f4", ".scale_vec::1X", _NO_FAMILY),
    ("mxf4", ".scale_vec::2X", _NO_FAMILY),
    ("mxf4nvf4", ".scale_vec::{2X|4X}", _NO_FAMILY),
)
"""Kinds with block scales: how the size of a block is spelled, and the targets."""


class PtxForm(NamedTuple):
    """A row: the form as it is written above, and the targets that have it."""

    text: str
    targets: tuple[str, ...]
    pattern: re.Pattern[str]


def ptx_targets(instruction: str) -> tuple[str, ...]:
    """The targets for which ptxas assembles an instruction, of ``TARGETS``.

    ConstraintError, with the forms of the instruction, if no form fits.

    >>> ptx_targets("tcgen05.mma.cta_group::1.kind::i8 [r0], d1, d2, r2, p0;")
    ('sm_100a', 'sm_110a')
    """
    plain = re.sub(r"\s+", " ", instruction.strip())
    found = {target for form in _forms() if form.pattern.fullmatch(plain) for target in form.targets}
    if not found:
        raise ConstraintError(f"ptxas assembles this for no target: {plain}\nWhat there is:\n{_nearest(plain)}")
    return tuple(target for target in TARGETS if target in found)


def check_ptx(instruction: str, target: str) -> None:
    """ConstraintError where ``target`` does not have an instruction: the targets that have it, or its forms.

    >>> check_ptx("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [smem], 64;", "sm_100a")
    """
    targets = ptx_targets(instruction)
    if target not in targets:
        raise ConstraintError(f"{target} has no {instruction.strip()}; {', '.join(targets)} have it")


@cache
def _forms() -> tuple[PtxForm, ...]:
    rows = (*_ROWS, *_products(), *_loads_and_stores())
    return tuple(PtxForm(text, targets, re.compile(_pattern(text))) for text, targets in rows)


def _products() -> Iterator[tuple[str, tuple[str, ...]]]:
    """``tcgen05.mma``: sparse ones have the address of the metadata; a pair masks twice as many lanes."""
    for sp, metadata in (("", ""), (".sp", " [R],")):
        for kind, targets in ((_FLOAT, _TENSOR_MEMORY), ("i8", _INTEGER)):
            for ctas in (1, 2):
                name, rest = f"tcgen05.mma{sp}.cta_group::{ctas}.kind::", f"{metadata} R,< (R*{4 * ctas}),> R"
                yield f"{name}{kind}<.collector::a::{_OP}> [R], {_A}, R,{rest};", targets
                yield f"{name}{kind}.ashift<.collector::a::{{lastuse|discard}}> [R], [R], R,{rest};", targets
                scaled_kind, scaled_targets = (kind, targets) if kind == "i8" else ("{f16|tf32}", _SCALED_INPUT)
                scale = "|".join(map(str, range(16)))
                yield f"{name}{scaled_kind}<.collector::a::{_OP}> [R], {_A}, R,{rest}, {{{scale}}};", scaled_targets
            buffer = f"<.collector::{{b0|b1|b2|b3}}::{_OP}>"
            yield f"tcgen05.mma.ws{sp}.cta_group::1.kind::{kind}{buffer} [R], {_A}, R,{metadata} R, R<, R>;", targets
        for kind, size, having in _SCALED:
            narrow = sp and not size.startswith(".scale_vec") and kind != "mxf8f6f4"
            yield (
                f"tcgen05.mma{sp}.cta_group::{{1|2}}.kind::{kind}.block_scale{size}<.collector::a::{_OP}> "
                f"[R], {_A}, R,{metadata} R, [R], [R], R;",
                _NO_FAMILY if narrow else having,
            )


def _loads_and_stores() -> Iterator[tuple[str, tuple[str, ...]]]:
    """``tcgen05.ld`` and ``st``: as many registers as a shape has, times a power of two, up to 128."""
    for shape in ("32x32b", "16x32bx2", "16x64b", "16x128b", "16x256b"):
        split = ", #" if shape == "16x32bx2" else ""
        each = tmem_copy_layouts(shape, 1).register_count
        for repeat in (1 << i for i in range(8)):
            count = each * repeat
            if count > REGISTERS:
                continue
            common = f"sync.aligned.{shape}.x{repeat}"
            yield f"tcgen05.ld.{common}<.pack::16b>.b32 (R*{count}), [R]{split};", _TENSOR_MEMORY
            yield f"tcgen05.st.{common}<.unpack::16b>.b32 [R]{split}, (R*{count});", _TENSOR_MEMORY
            if shape in ("32x32b", "16x32bx2") and repeat > 1:
                yield f"tcgen05.ld.red.{common}.{_REDUCTION} (R*{count}), R, [R]{split};", _REDUCING


def _pattern(text: str) -> str:
    """The regular expression of a form."""
    out = re.escape(text)
    for escaped, meaning in (
        (r"\{", "(?:"),
        (r"\}", ")"),
        (r"\|", "|"),
        ("<", "(?:"),
        (">", ")?"),
        (r"\#", r"-?\d+"),
    ):
        out = out.replace(escaped, meaning)
    out = re.sub(r"\\\(R\\\*(\d+)\\\)", lambda m: r"\{\ ?" + r",\ ?".join(["R"] * int(m[1])) + r"\ ?\}", out)
    return re.sub(r"(?<![A-Za-z_])R(?![A-Za-z_])", r"(?!-?\\d)[%$\\w]+(?:\\+\\d+)?", out)


def _nearest(instruction: str) -> str:
    """The forms that begin like an instruction, up to a dozen."""
    name = instruction.split(" ")[0]
    for length in range(name.count(".") + 1, 0, -1):
        start = ".".join(name.split(".")[:length]).rstrip(";")
        found = [form for form in _forms() if re.sub(r"[<>]", "", form.text).startswith(start)]
        if found:
            return "\n".join(f"  {form.text}  ({', '.join(form.targets)})" for form in found[:12])
    return "\n".join(sorted({f"  {form.text.split('.')[0]}" for form in _forms()}))
