"""``cute.typing``: the types that annotations name."""

from typing import Annotated, Any, Optional, Union

from tilewright._mlir.ir import T
from tilewright._names import attach
from tilewright.lang.arguments.fake import SymInt, sym_int, sym_int32, sym_int64
from tilewright.lang.numbers.numeric import (
    BFloat16,
    Boolean,
    Float,
    Float4E2M1FN,
    Float6E2M3FN,
    Float6E3M2FN,
    Float8E4M3FN,
    Float8E5M2,
    Float8E8M0FNU,
    Float16,
    Float32,
    Float64,
    Int8,
    Int16,
    Int32,
    Int64,
    Integer,
    Numeric,
    TFloat32,
    Uint8,
    Uint16,
    Uint32,
    Uint64,
)
from tilewright.lang.numbers.numeric_class import NumericMeta
from tilewright.lang.numbers.wide import Int128, Uint128
from tilewright.lang.tensors.pointer import AddressSpace, Pointer
from tilewright.lang.tensors.tensor import Tensor
from tilewright.layout import ComposedLayout, Coord, IntTuple, Layout, ScaledBasis, Shape, Stride

Int = int | Integer
Tiler = Annotated[Any, "CuTe", "Tiler"]
Tile = Annotated[Any, "CuTe", "Tile"]
XTuple = Any
Type = type

__all__ = [
    "AddressSpace",
    "BFloat16",
    "Boolean",
    "ComposedLayout",
    "Coord",
    "Float",
    "Float16",
    "Float32",
    "Float4E2M1FN",
    "Float64",
    "Float6E2M3FN",
    "Float6E3M2FN",
    "Float8E4M3FN",
    "Float8E5M2",
    "Float8E8M0FNU",
    "Int",
    "Int128",
    "Int16",
    "Int32",
    "Int64",
    "Int8",
    "IntTuple",
    "Integer",
    "Layout",
    "Numeric",
    "NumericMeta",
    "Optional",  # as programs import it, and Union
    "Pointer",
    "ScaledBasis",
    "Shape",
    "Stride",
    "SymInt",
    "T",
    "TFloat32",
    "Tensor",
    "Tile",
    "Tiler",
    "Type",
    "Uint128",
    "Uint16",
    "Uint32",
    "Uint64",
    "Uint8",
    "Union",
    "XTuple",
    "sym_int",
    "sym_int32",
    "sym_int64",
]

attach(__name__)
