"""Signatures of staged functions: annotations, ``Constexpr`` parameters, defaults."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import TYPE_CHECKING, Annotated, Any, ForwardRef, TypeVar, cast, get_args, get_origin

from tilewright.errors import ArgumentError
from tilewright.lang.numbers.numeric import NumericMeta
from tilewright.lang.staging import objects
from tilewright.lang.staging.location import fail
from tilewright.layout import ComposedLayout, Layout

if TYPE_CHECKING:
    T = TypeVar("T")
    Constexpr = Annotated[T, "known when the function is compiled"]  # a Constexpr[int] is an int
else:

    class Constexpr:
        """Annotation of a parameter whose value is fixed when the function is compiled: ``tile: cutlass.Constexpr``.

        ``Constexpr[int]`` names its type. The argument is not passed to a compiled function.

        >>> import tilewright as cutlass
        >>> @cute.kernel
        ... def fill(x: cute.Tensor, value: cutlass.Constexpr):
        ...     print("staged for", value)
        ...     x[cute.arch.thread_idx()[0]] = value
        >>> @cute.jit
        ... def run(x: cute.Tensor, value: cutlass.Constexpr):
        ...     fill(x, value).launch(grid=(1, 1, 1), block=(4, 1, 1))
        >>> x = np.zeros(4, np.int32)
        >>> for value in (3, 5, 3):  # compiled twice: the third call finds what the first has made
        ...     run(x, value)
        staged for 3
        staged for 5
        >>> x
        array([3, 3, 3, 3], dtype=int32)
        """

        def __class_getitem__(cls, item: Any) -> Any:
            return type("Constexpr", (Constexpr,), {"expected": item})


def is_constexpr(annotation: Any) -> bool:
    if isinstance(annotation, type) and issubclass(annotation, cast(type, Constexpr)):
        return True
    return isinstance(annotation, str) and "Constexpr" in annotation


def _without_annotations(signature: inspect.Signature) -> inspect.Signature:
    """For messages: the names say enough, and the full names of the types bury them."""
    empty = inspect.Parameter.empty
    parameters = [p.replace(annotation=empty) for p in signature.parameters.values()]
    return signature.replace(parameters=parameters, return_annotation=empty)


class Signature:
    """The parameters of a function, with annotations made into objects where that is possible."""

    def __init__(self, function: FunctionType) -> None:
        self.function = function
        self.python = signature_of(function)
        self.names = list(self.python.parameters)
        self.annotations = {name: _resolve(p.annotation, function) for name, p in self.python.parameters.items()}
        kinds = [p.kind for p in self.python.parameters.values()]
        self.variadic = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD} & set(kinds)
        self.constexpr = {name for name, a in self.annotations.items() if is_constexpr(a)}

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> inspect.BoundArguments:
        """Arguments by parameter, defaults filled in; ArgumentError when they do not fit."""
        try:
            bound = self.python.bind(*args, **kwargs)
        except TypeError as wrong:
            raise ArgumentError(f"{self.function.__qualname__}{_without_annotations(self.python)}: {wrong}") from None
        bound.apply_defaults()
        return bound

    def parameters(self, bound: inspect.BoundArguments) -> Iterator[tuple[str, Any, Any]]:
        """Name, annotation and value of each argument; ``*args`` and ``**kwargs`` one by one."""
        for name, value in bound.arguments.items():
            kind = self.python.parameters[name].kind
            annotation = self.annotations[name]
            if kind is inspect.Parameter.VAR_POSITIONAL:
                yield from ((f"{name}[{i}]", annotation, item) for i, item in enumerate(value))
            elif kind is inspect.Parameter.VAR_KEYWORD:
                yield from ((key, annotation, item) for key, item in value.items())
            else:
                yield name, annotation, value

    def call(self, function: Callable[..., Any], bound: inspect.BoundArguments, values: list[Any]) -> Any:
        """Call ``function`` with ``values`` in place of the arguments that :meth:`parameters` listed."""
        rest = iter(values)
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        for name, value in bound.arguments.items():
            kind = self.python.parameters[name].kind
            if kind is inspect.Parameter.VAR_POSITIONAL:
                args += [next(rest) for _ in value]
            elif kind is inspect.Parameter.VAR_KEYWORD:
                kwargs.update((key, next(rest)) for key in value)
            elif kind is inspect.Parameter.KEYWORD_ONLY:
                kwargs[name] = next(rest)
            else:
                args.append(next(rest))
        return function(*args, **kwargs)


def signature_of(function: Callable[..., Any]) -> inspect.Signature:
    """The signature; annotations that name what only type checkers know stay what they are. From Python 3.14 on they
    are evaluated when they are asked for, and asking must not stop the program."""
    if sys.version_info >= (3, 14):
        from annotationlib import Format

        return inspect.signature(function, annotation_format=Format.FORWARDREF)
    return inspect.signature(function)


def _resolve(annotation: Any, function: FunctionType) -> Any:
    if annotation is inspect.Parameter.empty:
        return None
    if isinstance(annotation, ForwardRef):
        annotation = annotation.__forward_arg__
    if not isinstance(annotation, str):
        return annotation
    closure = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    scope = {name: cell.cell_contents for name, cell in closure.items() if _filled(cell)}
    try:
        return eval(annotation, function.__globals__, scope)
    except Exception:  # a name that exists for type checkers only: an annotation must not stop the program
        return annotation


def _filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False


def numeric_annotation(annotation: Any) -> Any:
    """The numeric class that an annotation names, or None (``Numeric`` itself and unions name none)."""
    plain = {int: "Int32", float: "Float32", bool: "Boolean"}.get(annotation) if isinstance(annotation, type) else None
    if plain:
        from tilewright.lang.numbers import numeric

        return getattr(numeric, plain)
    return annotation if isinstance(annotation, NumericMeta) and hasattr(annotation, "ir_type") else None


def is_integer_tree(annotation: Any) -> bool:
    """Whether a parameter takes a shape, a stride, a tiler or a layout: integers that are static as Python's ints, and
    dynamic as numerics (``cute.Shape``, ``cute.Layout``, also as ``cute.Shape | None``)."""
    if get_origin(annotation) is Annotated:
        return "CuTe" in annotation.__metadata__
    return annotation in (Layout, ComposedLayout) or any(map(is_integer_tree, get_args(annotation)))


def adapt(name: str, value: Any, annotation: Any) -> Any:
    """A number passed to a staged function, as the type that its parameter names; other arguments as they are.

    The conversion is that of the types (``Int32(x)`` of an Int64), but a parameter that counts takes no fraction.
    """
    cls = numeric_annotation(annotation)
    value_class = objects.number_class(value)
    if cls is None or value_class is None or value_class is cls:
        return value
    if value_class.is_float and not cls.is_float:
        raise fail(
            f"argument '{name}': expected {cls.__name__}, got {objects.describe(value)}, which would lose its "
            f"fraction; convert it: {cls.__name__}(...)"
        )
    exact = annotation not in (int, float, bool)  # these name a kind of number, and no width
    return cls(value) if exact or value_class.is_float != cls.is_float else value
