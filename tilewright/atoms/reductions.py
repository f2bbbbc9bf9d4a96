"""The reductions of TMA: how what arrives is combined with what is in memory, and of which element types (PTX ISA,
``cp.reduce.async.bulk`` and ``cp.reduce.async.bulk.tensor``)."""

from __future__ import annotations

from tilewright.ir.types import SCALARS, ScalarType

_ADD = {
    "u32": "u32",
    "i32": "s32",
    "u64": "u64",
    "i64": "u64",
    "f16": "noftz.f16",
    "bf16": "noftz.bf16",
    "f32": "f32",
    "f64": "f64",
}
_MIN = {"u32": "u32", "i32": "s32", "u64": "u64", "i64": "s64", "f16": "f16", "bf16": "bf16"}
_INC = {"u32": "u32"}
_AND = {"u32": "b32", "i32": "b32", "u64": "b64", "i64": "b64"}
WRITTEN = {"add": _ADD, "min": _MIN, "max": _MIN, "inc": _INC, "dec": _INC, "and": _AND, "or": _AND, "xor": _AND}
"""For each reduction the element types, with what PTX calls them."""
REDUCTIONS = tuple(WRITTEN)


def reduction_type(kind: str, element: ScalarType | None) -> str:
    """The type's name in ``cp.reduce.async.bulk``; empty where PTX has no such type.

    >>> reduction_type("add", SCALARS["f16"]), reduction_type("max", SCALARS["f32"])
    ('noftz.f16', '')
    """
    return WRITTEN[kind].get(element.name, "") if element is not None else ""


def reduction_element(kind: str, text: str) -> ScalarType | None:
    """The element type of a bulk reduction that PTX writes ``kind.text``; None where there is no such reduction."""
    names = (name for name, written in WRITTEN.get(kind, {}).items() if written == text)
    return next((SCALARS[name] for name in names), None)


def tensor_types(kind: str) -> list[str]:
    """The types of a tensor map's elements that TMA reduces, which are those in memory without doubles; of signed
    numbers of 64 bits it has the minimum and maximum only.

    >>> tensor_types("inc"), tensor_types("and")
    (['u32'], ['u32', 'i32', 'u64'])
    """
    return [name for name in WRITTEN[kind] if name != "f64" and (name != "i64" or kind in ("min", "max"))]


def tensor_element(kind: str, element: ScalarType) -> ScalarType:
    """What a tensor map for a reduction has in place of ``element``: unsigned numbers, where the sign does not matter
    and only those are there.

    >>> tensor_element("add", SCALARS["i64"]), tensor_element("max", SCALARS["i64"])
    (u64, i64)
    """
    unsigned = f"u{element.width}"
    lacks = kind and element.name not in tensor_types(kind)
    same = lacks and element.is_integer and WRITTEN[kind].get(element.name) == WRITTEN[kind].get(unsigned, "")
    return SCALARS[unsigned] if same else element
