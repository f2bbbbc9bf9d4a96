"""The class of numeric classes: what is known of a type as such (``Float16.width``, ``Int32.is_integer``)."""

from __future__ import annotations

from typing import Any

from tilewright.errors import ArgumentError, MachineError, StagingError, explained
from tilewright.ir import types as ir
from tilewright.ir.types import ScalarType
from tilewright.lang.numbers.classes import CLASS_OF


def numeric_type(what: str, dtype: Any) -> Any:
    """``dtype``, which must be a numeric class; ArgumentError of ``what`` otherwise."""
    if not isinstance(dtype, NumericMeta):
        raise ArgumentError(
            f"{what}: a numeric type such as Float32 or Int8 is wanted, not {dtype!r} "
            "(cutlass.dtype(...) finds that of a PyTorch or NumPy dtype)"
        )
    return dtype


@explained
class NumericMeta(type):
    """The class of numeric classes: what is known of a type as such (``Float16.width``, ``Int32.is_integer``)."""

    ir_type: ScalarType

    def __new__(
        mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any], ir_type: ScalarType | None = None
    ) -> Any:
        cls = super().__new__(mcs, name, bases, namespace)
        if ir_type is not None:
            cls.ir_type = ir_type
            CLASS_OF[ir_type] = cls
        return cls

    def __init__(
        cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], ir_type: ScalarType | None = None
    ) -> None:
        super().__init__(name, bases, namespace)

    def __repr__(cls) -> str:
        return cls.__name__

    __str__ = __repr__

    @property
    def width(cls) -> int:
        """Bits of one element; a Boolean takes 8 in memory and counts as 1 here."""
        return cls.ir_type.width

    @property
    def bytes(cls) -> int:
        return cls.ir_type.bytes

    @property
    def mlir_type(cls) -> ScalarType:
        """The IR's type of this numeric (the CuTe DSL's name for it)."""
        return cls.ir_type

    @property
    def is_integer(cls) -> bool:
        return cls.ir_type.is_integer or cls.ir_type == ir.BOOL

    @property
    def is_float(cls) -> bool:
        return cls.ir_type.is_float

    @property
    def signed(cls) -> bool:
        return cls.ir_type.is_signed

    @property
    def dtype(cls) -> Any:
        """The NumPy dtype of one element."""
        return cls.ir_type.dtype

    numpy_dtype = dtype

    @property
    def torch_dtype(cls) -> Any:
        """The PyTorch dtype of one element. MachineError where PyTorch is not installed."""
        try:
            import torch
        except ImportError:
            raise MachineError("this needs PyTorch, which is not installed: `pip install torch`") from None

        dtype = getattr(torch, cls.ir_type.torch, None) if cls.ir_type.torch else None
        if dtype is None:
            raise StagingError(f"PyTorch has no dtype for {cls.__name__}")
        return dtype

    def is_same_kind(cls, other: Any) -> bool:
        """Whether both are integers or both are floats."""
        return (cls.is_integer, cls.is_float) == (other.is_integer, other.is_float)

    @property
    def zero(cls) -> int | float:
        return 0.0 if cls._is_of_floats() else 0

    @property
    def one(cls) -> int | float:
        return 1.0 if cls._is_of_floats() else 1

    def _is_of_floats(cls) -> bool:
        """Whether the numbers are floats, of the abstract classes ``Float`` and ``Integer`` too."""
        return cls.is_float if "ir_type" in cls.__dict__ else any(base.__name__ == "Float" for base in cls.__mro__)

    @property
    def inf(cls) -> float:
        if not cls.is_float or "inf" not in cls.ir_type.specials:
            raise AttributeError(f"{cls.__name__} has no infinity")
        return float("inf")

    @property
    def nan(cls) -> float:
        if not cls.is_float or "nan" not in cls.ir_type.specials:
            raise AttributeError(f"{cls.__name__} has no NaN")
        return float("nan")

    @property
    def min(cls) -> int | float:
        """The least finite number."""
        kind = cls.ir_type
        if kind.is_float:
            return -cls.max
        return -(1 << (kind.width - 1)) if kind.kind == "int" else 0

    @property
    def max(cls) -> int | float:
        """The largest finite number."""
        kind = cls.ir_type
        if kind.is_float:
            import ml_dtypes

            return float(ml_dtypes.finfo(kind.dtype).max)
        return (1 << (kind.width - (kind.kind == "int"))) - 1
