# Made by `python tools/stubs.py` from tilewright/lang/numbers/operator_types.py; do not edit.
# ruff: noqa: E501, F401, F403, I001, UP
"""The operators of numerics as type checkers see them; what they do is in ``operators.py`` and ``promote.py``.

Imported by type checkers only: :mod:`~tilewright.lang.numbers.numeric` puts the operators into the classes from one
table, which checkers cannot follow. The tests compare these types with what the operators give.
"""

from typing import Any
from typing import Self
from typing import TypeVar
from typing import overload
from tilewright.lang.numbers.numeric import Boolean
from tilewright.lang.numbers.numeric import Float
from tilewright.lang.numbers.numeric import Float4E2M1FN
from tilewright.lang.numbers.numeric import Float8E4M3FN
from tilewright.lang.numbers.numeric import Float8E5M2
from tilewright.lang.numbers.numeric import Float32
from tilewright.lang.numbers.numeric import Float64
from tilewright.lang.numbers.numeric import Int8
from tilewright.lang.numbers.numeric import Int16
from tilewright.lang.numbers.numeric import Int32
from tilewright.lang.numbers.numeric import Int64
from tilewright.lang.numbers.numeric import Integer
from tilewright.lang.numbers.numeric import TFloat32
from tilewright.lang.numbers.numeric import Uint8
from tilewright.lang.numbers.numeric import Uint16
from tilewright.lang.numbers.numeric import Uint32
from tilewright.lang.numbers.numeric import Uint64

Storage = Float4E2M1FN | Float8E4M3FN | Float8E5M2 | TFloat32  # these compute in Float32

Narrow = Boolean | Int8 | Int16 | Int32 | Uint8 | Uint16 | Uint32

Wide = Int64 | Uint64

F = TypeVar("F", bound=Float)

class NumericOperators:
    """A Python int takes the type of the numeric beside it, a Python float that of a float; Booleans count as Int32.
    Two numerics of different types meet in a type that depends on both: Any here."""
    @overload
    def __add__(self: Boolean, other: Boolean | int) -> Int32: ...  # type: ignore[misc]
    @overload
    def __add__(self: Storage, other: Storage | float | Integer) -> Float32: ...  # type: ignore[misc]
    @overload
    def __add__(self: F, other: float | Integer) -> F: ...  # type: ignore[misc]
    @overload
    def __add__(self, other: Self | int) -> Self: ...
    @overload
    def __add__(self: Integer, other: float) -> Float32: ...  # type: ignore[misc]
    @overload
    def __add__(self: Integer, other: F) -> F: ...  # type: ignore[misc]
    @overload
    def __add__(self, other: Any) -> Any: ...
    @overload
    def __radd__(self: Boolean, other: Boolean | int) -> Int32: ...  # type: ignore[misc]
    @overload
    def __radd__(self: Storage, other: Storage | float | Integer) -> Float32: ...  # type: ignore[misc]
    @overload
    def __radd__(self: F, other: float | Integer) -> F: ...  # type: ignore[misc]
    @overload
    def __radd__(self, other: Self | int) -> Self: ...
    @overload
    def __radd__(self: Integer, other: float) -> Float32: ...  # type: ignore[misc]
    @overload
    def __radd__(self: Integer, other: F) -> F: ...  # type: ignore[misc]
    @overload
    def __radd__(self, other: Any) -> Any: ...
    @overload
    def __sub__(self: Boolean, other: Boolean | int) -> Int32: ...  # type: ignore[misc]
    @overload
    def __sub__(self: Storage, other: Storage | float | Integer) -> Float32: ...  # type: ignore[misc]
    @overload
    def __sub__(self: F, other: float | Integer) -> F: ...  # type: ignore[misc]
    @overload
    def __sub__(self, other: Self | int) -> Self: ...
    @overload
    def __sub__(self: Integer, other: float) -> Float32: ...  # type: ignore[misc]
    @overload
    def __sub__(self: Integer, other: F) -> F: ...  # type: ignore[misc]
    @overload
    def __sub__(self, other: Any) -> Any: ...
    @overload
    def __rsub__(self: Boolean, other: Boolean | int) -> Int32: ...  # type: ignore[misc]
    @overload
    def __rsub__(self: Storage, other: Storage | float | Integer) -> Float32: ...  # type: ignore[misc]
    @overload
    def __rsub__(self: F, other: float | Integer) -> F: ...  # type: ignore[misc]
    @overload
    def __rsub__(self, other: Self | int) -> Self: ...
    @overload
    def __rsub__(self: Integer, other: float) -> Float32: ...  # type: ignore[misc]
    @overload
    def __rsub__(self: Integer, other: F) -> F: ...  # type: ignore[misc]
    @overload
    def __rsub__(self, other: Any) -> Any: ...
    @overload
    def __mul__(self: Boolean, other: Boolean | int) -> Int32: ...  # type: ignore[misc]
    @overload
    def __mul__(self: Storage, other: Storage | float | Integer) -> Float32: ...  # type: ignore[misc]
    @overload
    def __mul__(self: F, other: float | Integer) -> F: ...  # type: ignore[misc]
    @overload
    def __mul__(self, other: Self | int) -> Self: ...
    @overload
    def __mul__(self: Integer, other: float) -> Float32: ...  # type: ignore[misc]
    @overload
    def __mul__(self: Integer, other: F) -> F: ...  # type: ignore[misc]
    @overload
    def __mul__(self, other: Any) -> Any: ...
    @overload
    def __rmul__(self: Boolean, other: Boolean | int) -> Int32: ...  # type: ignore[misc]
    @overload
    def __rmul__(self: Storage, other: Storage | float | Integer) -> Float32: ...  # type: ignore[misc]
    @overload
    def __rmul__(self: F, other: float | Integer) -> F: ...  # type: ignore[misc]
    @overload
    def __rmul__(self, other: Self | int) -> Self: ...
    @overload
    def __rmul__(self: Integer, other: float) -> Float32: ...  # type: ignore[misc]
    @overload
    def __rmul__(self: Integer, other: F) -> F: ...  # type: ignore[misc]
    @overload
    def __rmul__(self, other: Any) -> Any: ...
    @overload
    def __pow__(self: Boolean, other: Boolean | int) -> Int32: ...  # type: ignore[misc]
    @overload
    def __pow__(self: Storage, other: Storage | float | Integer) -> Float32: ...  # type: ignore[misc]
    @overload
    def __pow__(self: F, other: float | Integer) -> F: ...  # type: ignore[misc]
    @overload
    def __pow__(self, other: Self | int) -> Self: ...
    @overload
    def __pow__(self: Integer, other: float) -> Float32: ...  # type: ignore[misc]
    @overload
    def __pow__(self: Integer, other: F) -> F: ...  # type: ignore[misc]
    @overload
    def __pow__(self, other: Any) -> Any: ...
    @overload
    def __rpow__(self: Boolean, other: Boolean | int) -> Int32: ...  # type: ignore[misc]
    @overload
    def __rpow__(self: Storage, other: Storage | float | Integer) -> Float32: ...  # type: ignore[misc]
    @overload
    def __rpow__(self: F, other: float | Integer) -> F: ...  # type: ignore[misc]
    @overload
    def __rpow__(self, other: Self | int) -> Self: ...
    @overload
    def __rpow__(self: Integer, other: float) -> Float32: ...  # type: ignore[misc]
    @overload
    def __rpow__(self: Integer, other: F) -> F: ...  # type: ignore[misc]
    @overload
    def __rpow__(self, other: Any) -> Any: ...
    @overload
    def __floordiv__(self: Boolean, other: Boolean | int) -> Int32: ...  # type: ignore[misc]
    @overload
    def __floordiv__(self: Storage, other: Storage | float | Integer) -> Float32: ...  # type: ignore[misc]
    @overload
    def __floordiv__(self: F, other: float | Integer) -> F: ...  # type: ignore[misc]
    @overload
    def __floordiv__(self, other: Self | int) -> Self: ...
    @overload
    def __floordiv__(self: Integer, other: float) -> Float32: ...  # type: ignore[misc]
    @overload
    def __floordiv__(self: Integer, other: F) -> F: ...  # type: ignore[misc]
    @overload
    def __floordiv__(self, other: Any) -> Any: ...
    @overload
    def __rfloordiv__(self: Boolean, other: Boolean | int) -> Int32: ...  # type: ignore[misc]
    @overload
    def __rfloordiv__(self: Storage, other: Storage | float | Integer) -> Float32: ...  # type: ignore[misc]
    @overload
    def __rfloordiv__(self: F, other: float | Integer) -> F: ...  # type: ignore[misc]
    @overload
    def __rfloordiv__(self, other: Self | int) -> Self: ...
    @overload
    def __rfloordiv__(self: Integer, other: float) -> Float32: ...  # type: ignore[misc]
    @overload
    def __rfloordiv__(self: Integer, other: F) -> F: ...  # type: ignore[misc]
    @overload
    def __rfloordiv__(self, other: Any) -> Any: ...
    @overload
    def __mod__(self: Boolean, other: Boolean | int) -> Int32: ...  # type: ignore[misc]
    @overload
    def __mod__(self: Storage, other: Storage | float | Integer) -> Float32: ...  # type: ignore[misc]
    @overload
    def __mod__(self: F, other: float | Integer) -> F: ...  # type: ignore[misc]
    @overload
    def __mod__(self, other: Self | int) -> Self: ...
    @overload
    def __mod__(self: Integer, other: float) -> Float32: ...  # type: ignore[misc]
    @overload
    def __mod__(self: Integer, other: F) -> F: ...  # type: ignore[misc]
    @overload
    def __mod__(self, other: Any) -> Any: ...
    @overload
    def __rmod__(self: Boolean, other: Boolean | int) -> Int32: ...  # type: ignore[misc]
    @overload
    def __rmod__(self: Storage, other: Storage | float | Integer) -> Float32: ...  # type: ignore[misc]
    @overload
    def __rmod__(self: F, other: float | Integer) -> F: ...  # type: ignore[misc]
    @overload
    def __rmod__(self, other: Self | int) -> Self: ...
    @overload
    def __rmod__(self: Integer, other: float) -> Float32: ...  # type: ignore[misc]
    @overload
    def __rmod__(self: Integer, other: F) -> F: ...  # type: ignore[misc]
    @overload
    def __rmod__(self, other: Any) -> Any: ...
    @overload
    def __truediv__(self: Wide, other: Integer | int) -> Float64: ...  # type: ignore[misc]
    @overload
    def __truediv__(self: Wide, other: float) -> Float32: ...  # type: ignore[misc]
    @overload
    def __truediv__(self: Narrow, other: Narrow | float) -> Float32: ...  # type: ignore[misc]
    @overload
    def __truediv__(self: Narrow, other: Wide) -> Float64: ...  # type: ignore[misc]
    @overload
    def __truediv__(self: Storage, other: Storage | float | Integer) -> Float32: ...  # type: ignore[misc]
    @overload
    def __truediv__(self: F, other: float | Integer) -> F: ...  # type: ignore[misc]
    @overload
    def __truediv__(self, other: Self) -> Self: ...
    @overload
    def __truediv__(self, other: Any) -> Any: ...
    @overload
    def __rtruediv__(self: Wide, other: Integer | int) -> Float64: ...  # type: ignore[misc]
    @overload
    def __rtruediv__(self: Wide, other: float) -> Float32: ...  # type: ignore[misc]
    @overload
    def __rtruediv__(self: Narrow, other: Narrow | float) -> Float32: ...  # type: ignore[misc]
    @overload
    def __rtruediv__(self: Narrow, other: Wide) -> Float64: ...  # type: ignore[misc]
    @overload
    def __rtruediv__(self: Storage, other: Storage | float | Integer) -> Float32: ...  # type: ignore[misc]
    @overload
    def __rtruediv__(self: F, other: float | Integer) -> F: ...  # type: ignore[misc]
    @overload
    def __rtruediv__(self, other: Self) -> Self: ...
    @overload
    def __rtruediv__(self, other: Any) -> Any: ...
    @overload
    def __neg__(self: Boolean) -> Int32: ...  # type: ignore[misc]
    @overload
    def __neg__(self: Storage) -> Float32: ...  # type: ignore[misc]
    @overload
    def __neg__(self) -> Self: ...
    @overload
    def __abs__(self: Boolean) -> Int32: ...  # type: ignore[misc]
    @overload
    def __abs__(self: Storage) -> Float32: ...  # type: ignore[misc]
    @overload
    def __abs__(self) -> Self: ...
    def __lt__(self, other: Any) -> Boolean:
        ...
    def __le__(self, other: Any) -> Boolean:
        ...
    def __gt__(self, other: Any) -> Boolean:
        ...
    def __ge__(self, other: Any) -> Boolean:
        ...
    def __eq__(self, other: object) -> Boolean:  # type: ignore[override]  # a numeric
        ...
    def __ne__(self, other: object) -> Boolean:  # type: ignore[override]  # a numeric
        ...

class IntegerOperators:
    """The bitwise operators, which integers alone have; of Booleans they are the logical ones."""
    @overload
    def __and__(self: Boolean, other: Boolean | bool) -> Boolean: ...  # type: ignore[misc]
    @overload
    def __and__(self: Boolean, other: int) -> Int32: ...  # type: ignore[misc]
    @overload
    def __and__(self, other: Self | int) -> Self: ...
    @overload
    def __and__(self, other: Integer) -> Any: ...  # type: ignore[overload-cannot-match]  # the last resort
    @overload
    def __rand__(self: Boolean, other: Boolean | bool) -> Boolean: ...  # type: ignore[misc]
    @overload
    def __rand__(self: Boolean, other: int) -> Int32: ...  # type: ignore[misc]
    @overload
    def __rand__(self, other: Self | int) -> Self: ...
    @overload
    def __rand__(self, other: Integer) -> Any: ...  # type: ignore[overload-cannot-match]  # the last resort
    @overload
    def __or__(self: Boolean, other: Boolean | bool) -> Boolean: ...  # type: ignore[misc]
    @overload
    def __or__(self: Boolean, other: int) -> Int32: ...  # type: ignore[misc]
    @overload
    def __or__(self, other: Self | int) -> Self: ...
    @overload
    def __or__(self, other: Integer) -> Any: ...  # type: ignore[overload-cannot-match]  # the last resort
    @overload
    def __ror__(self: Boolean, other: Boolean | bool) -> Boolean: ...  # type: ignore[misc]
    @overload
    def __ror__(self: Boolean, other: int) -> Int32: ...  # type: ignore[misc]
    @overload
    def __ror__(self, other: Self | int) -> Self: ...
    @overload
    def __ror__(self, other: Integer) -> Any: ...  # type: ignore[overload-cannot-match]  # the last resort
    @overload
    def __xor__(self: Boolean, other: Boolean | bool) -> Boolean: ...  # type: ignore[misc]
    @overload
    def __xor__(self: Boolean, other: int) -> Int32: ...  # type: ignore[misc]
    @overload
    def __xor__(self, other: Self | int) -> Self: ...
    @overload
    def __xor__(self, other: Integer) -> Any: ...  # type: ignore[overload-cannot-match]  # the last resort
    @overload
    def __rxor__(self: Boolean, other: Boolean | bool) -> Boolean: ...  # type: ignore[misc]
    @overload
    def __rxor__(self: Boolean, other: int) -> Int32: ...  # type: ignore[misc]
    @overload
    def __rxor__(self, other: Self | int) -> Self: ...
    @overload
    def __rxor__(self, other: Integer) -> Any: ...  # type: ignore[overload-cannot-match]  # the last resort
    @overload
    def __lshift__(self: Boolean, other: Integer | int) -> Int32: ...  # type: ignore[misc]
    @overload
    def __lshift__(self, other: Integer | int) -> Self: ...
    def __rlshift__(self, other: int) -> Any:
        ...
    @overload
    def __rshift__(self: Boolean, other: Integer | int) -> Int32: ...  # type: ignore[misc]
    @overload
    def __rshift__(self, other: Integer | int) -> Self: ...
    def __rrshift__(self, other: int) -> Any:
        ...
