"""Leaves: the entries of a shape or a stride.

A *static* leaf is a plain Python ``int``. A *run-time* leaf is an instance of :class:`RuntimeInt`: its value is known
only when the program runs, but it may carry a known divisor. The algebra is written once over both: it decides with
static leaves, and with run-time leaves it decides only what their divisors prove.
"""

from __future__ import annotations

from typing import Any, TypeAlias, TypeVar

from tilewright.errors import LayoutError

UNDECIDED = "is not known before run time; tell the divisor with assume(..., divby=...)"


class UnhashableLeafError(TypeError):
    """A run-time int has no value to hash; key a table by ``id(x)`` instead."""


class RuntimeInt:
    """Base of every integer known only at run time; the language front subclasses it.

    A subclass overloads ``+ - * // %`` (with their reflections) and the comparisons, yielding run-time ints and
    run-time booleans; ``divisibility`` is a known divisor of the value. Run-time ints are never hashed and never
    compared with ``if``: two leaves are the same when :func:`same_int` says so.
    """

    __slots__ = ()
    divisibility: int = 1
    bits: int = 32

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        # A subclass that overloads == loses or replaces __hash__; caches of static results rely on this one.
        cls.__hash__ = RuntimeInt.__hash__  # type: ignore[method-assign]  # what __eq__ took away

    def __hash__(self) -> int:
        raise UnhashableLeafError("a run-time int cannot be hashed: key by id(x) instead")

    def is_same(self, other: IntLike) -> bool:
        """Whether ``other`` is provably the same value (identity unless a subclass knows better)."""
        return self is other

    def known_quotient(self, other: IntLike) -> IntLike | None:
        """``self / other`` where the division is provably exact although ``divisibility`` does not show it."""
        return None

    def minimum(self, other: IntLike) -> IntLike | None:
        """The lesser of the two, where this kind of run-time int can compute it; else None."""
        return None

    def require(self, condition: Any, text: str) -> None:
        """``condition`` must hold when the program runs, or what was computed from it is wrong: ``text`` says why."""

    def __add__(self, other: Any) -> Any:
        raise NotImplementedError

    __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __add__
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __add__


IntLike: TypeAlias = int | RuntimeInt


def is_static_int(x: object) -> bool:
    """Whether ``x`` is an int known now.

    >>> from tilewright.layout import SymbolicInt
    >>> is_static_int(8), is_static_int(SymbolicInt("m"))
    (True, False)
    """
    return isinstance(x, int)


def same_int(a: Any, b: Any) -> bool:
    """Equality of two leaves: the same object, equal static ints, or a run-time int that is known to be the other.

    >>> from tilewright.layout import SymbolicInt
    >>> m = SymbolicInt("m")
    >>> same_int(4, 4), same_int(m, m), same_int(m, 4)
    (True, True, False)
    """
    if a is b:
        return True
    if isinstance(a, RuntimeInt):
        return a.is_same(b)
    if isinstance(b, RuntimeInt):
        return b.is_same(a)
    return bool(a == b)


def divisor_of(x: IntLike) -> int:
    """The largest divisor known of a leaf.

    >>> from tilewright.layout import SymbolicInt
    >>> divisor_of(12), divisor_of(SymbolicInt("m", divisibility=8))
    (12, 8)
    """
    return abs(x) if isinstance(x, int) else x.divisibility


def exact_quotient(a: IntLike, b: IntLike) -> IntLike | None:
    """``a / b`` if it is provably a whole number, else None.

    >>> from tilewright.layout import SymbolicInt
    >>> exact_quotient(12, 4), exact_quotient(12, 5), exact_quotient(SymbolicInt("m", divisibility=8), 4)
    (3, None, m//4)
    """
    if isinstance(b, int):
        if b == 0:
            return None
        if b == 1:
            return a
    if isinstance(a, RuntimeInt):
        quotient = 1 if a.is_same(b) else a.known_quotient(b)
        if quotient is not None:
            return quotient
    if isinstance(b, int) and divisor_of(a) % b == 0:
        return a // b
    return 0 if isinstance(a, int) and a == 0 else None


def ceil_div_int(a: Any, b: Any) -> Any:
    """``a / b`` rounded up; run-time operands with a known divisor divide exactly.

    >>> from tilewright.layout import SymbolicInt
    >>> ceil_div_int(29, 8), ceil_div_int(SymbolicInt("m", divisibility=8), 8), ceil_div_int(SymbolicInt("m"), 8)
    (4, m//8, (m+7)//8)
    """
    if isinstance(a, int) and isinstance(b, int):
        if b == 0:
            raise LayoutError(f"ceil_div({a}, 0): division by zero")
        return -(-a // b)
    quotient = exact_quotient(a, b) if isinstance(a, int | RuntimeInt) else None
    return (a + (b - 1)) // b if quotient is None else quotient


def format_int(x: object) -> str:
    """A leaf as text: run-time ints print as ``?``; with a known divisor ``?{div=8}``, of 64 bits ``?{i64 div=8}``."""
    if isinstance(x, RuntimeInt):
        facts = (["i64"] if x.bits == 64 else []) + ([f"div={x.divisibility}"] if x.divisibility != 1 else [])
        return f"?{{{' '.join(facts)}}}" if facts else "?"
    return str(x)


I = TypeVar("I", bound=IntLike)  # noqa: E741 - a name for one line: an int


def assume(src: I, divby: int | None = None, *, loc: Any = None, ip: Any = None) -> I:
    """``src`` with the promise that ``divby`` divides it; a static ``src`` is checked here and now.

    >>> from tilewright.layout import SymbolicInt
    >>> assume(SymbolicInt("m"), divby=8).divisibility
    8
    """
    if isinstance(src, int):
        if divby and src % divby:
            raise LayoutError(f"assume({src}, divby={divby}): {src} is not divisible by {divby}")
        return src
    with_divisibility = getattr(src, "with_divisibility", None)
    if with_divisibility is None:
        raise LayoutError(f"assume: {type(src).__name__} cannot carry a divisor")
    return with_divisibility(1 if divby is None else divby)  # type: ignore[no-any-return]  # a method of the given type
