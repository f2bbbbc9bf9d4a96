"""The one exception family of Tilewright.

Every mistake a user can make ends in a subclass of :class:`TilewrightError`; the message says what is wrong, where in
the user's Python, which layouts are involved (in CuTe notation) and, when it is known, how to fix it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar


class TilewrightError(Exception):
    """Base of every error that Tilewright raises for a user's mistake.

    >>> from tilewright.errors import TilewrightError
    >>> from tilewright.layout import Layout
    >>> try:
    ...     Layout((4, 8), (1, 2, 3))
    ... except TilewrightError as error:
    ...     print(error)
    Layout: the stride (1,2,3) does not have the profile of the shape (4,8)
    """


class LayoutError(TilewrightError, ValueError):
    """An operation of the layout algebra has no result for these operands.

    >>> from tilewright.layout import Layout, composition
    >>> composition(Layout((4, 3), (1, 8)), Layout(8, 3))
    Traceback (most recent call last):
        ...
    tilewright.errors.LayoutError: composition((4,3):(1,8), 8:3) does not exist: ...
    """


class ParseError(LayoutError):
    """Text that is not CuTe notation; ``position`` is the offset of the offending character.

    >>> from tilewright.layout import Layout
    >>> Layout.parse("(2,3):(1,")
    Traceback (most recent call last):
        ...
    tilewright.errors.ParseError: '(2,3):(1,': expected a number, ( or _ at 9, found the end
    """

    def __init__(self, message: str, text: str = "", position: int = 0) -> None:
        super().__init__(message)
        self.text = text
        self.position = position


class StagingError(TilewrightError):
    """A kernel cannot be staged: the Python in it has no meaning on the machine.

    >>> per_thread(lambda t: [10, 20, 30, 40][t], 4)
    Traceback (most recent call last):
        ...
    tilewright.errors.StagingError: a run-time Int32 cannot be used as a Python index: ...
    """


class VerifyError(TilewrightError):
    """The IR of a kernel breaks one of its own rules."""


class ConstraintError(TilewrightError, ValueError):
    """An instruction's constraint (dtype, layout, memory space, alignment, architecture) does not hold."""


class ArgumentError(TilewrightError, ValueError):
    """A host-side argument (shape, dtype, alignment, device, file) is not acceptable.

    >>> from tilewright.cute.runtime import from_dlpack
    >>> from_dlpack(np.zeros(4, np.complex64))
    Traceback (most recent call last):
        ...
    tilewright.errors.ArgumentError: kernels do not know the dtype complex64; known are bool, int8, ...
    """


class ArgumentTypeError(ArgumentError, TypeError):
    """An argument is of another kind than the compiled function takes."""


class CompileError(TilewrightError):
    """The device compiler rejected the emitted text."""


class MachineError(TilewrightError, RuntimeError):
    """The machine that was asked for is missing, or it failed while running a kernel.

    >>> from tilewright.cute import testing
    >>> @cute.jit
    ... def positive(n: cute.Int32):
    ...     testing.assert_(n > 0, "n is positive")
    >>> positive(-1)
    Traceback (most recent call last):
        ...
    tilewright.errors.MachineError: ... n is positive

    ``error_code`` is the number of the driver's error, 0 where there is no such number.
    """

    error_code = 0

    @classmethod
    def of_driver(cls, code: int, text: str) -> MachineError:
        """The error with the number that the driver gives."""
        made = cls(text)
        made.error_code = code
        return made


class LaunchError(StagingError, MachineError):
    """A kernel is to be launched in a shape that no machine has: too many threads, an extent of 0.

    >>> per_thread(lambda t: t, 2048)
    Traceback (most recent call last):
        ...
    tilewright.errors.LaunchError: ... block = (2048, 1, 1) has 2048 threads; a block holds 1024 at most
    """


class SimulationError(MachineError):
    """The simulator found a fault while running a kernel (bounds, alignment, barrier, deadlock), or its checks found
    something.

    ``findings``: of the checks (:class:`tilewright.sim.checks.Findings`), or None. ``what``: the fault's own text
    without them, empty where there is no fault. ``op``: the op at fault, where one is known; ``others``: further ones
    (in a deadlock, where the other warps wait).

    >>> per_thread(lambda t, p: arch.load(p + 100 * t), 2, memory=[0])
    Traceback (most recent call last):
        ...
    tilewright.errors.SimulationError: global load of i32 (4 bytes) out of bounds: ...
    """

    def __init__(self, message: str, findings: Any = None, op: Any = None, others: Any = ()) -> None:
        super().__init__(message)
        self.findings, self.op, self.others = findings, op, tuple(others)
        self.what = "" if findings is not None else message


class KeywordError(ArgumentError, TypeError):
    """A function was given a keyword argument that it does not have.

    >>> cute.make_layout((4, 8), strides=(8, 1))
    Traceback (most recent call last):
        ...
    tilewright.errors.KeywordError: make_layout() has no keyword argument 'strides'; did you mean 'stride'?
    """


class MissingNameError(TilewrightError, AttributeError):
    """A module was asked for a name that it does not have. ``text`` is called when the message is asked for: most of
    these errors are those of ``hasattr``.

    >>> cute.make_layuot
    Traceback (most recent call last):
        ...
    tilewright.errors.MissingNameError: module ... has no attribute 'make_layuot'; did you mean 'make_layout'?
    """

    def __init__(self, text: Callable[[], str]) -> None:
        super().__init__()
        self._text = text

    def __str__(self) -> str:
        if not self.args:
            self.args = (self._text(),)
        return str(self.args[0])

    def __reduce__(self) -> tuple[Any, ...]:
        return AttributeError, (str(self),)  # what another process receives


class MissingAttributeError(TilewrightError, AttributeError):
    """An object or class of the library was asked for an attribute that it does not have.

    >>> cute.make_layout((4, 8)).shpae
    Traceback (most recent call last):
        ...
    tilewright.errors.MissingAttributeError: Layout has no attribute 'shpae'; did you mean 'shape'?
    """

    def __init__(self, owner: Any, name: str) -> None:
        AttributeError.__init__(self, name=name, obj=owner)

    def __str__(self) -> str:
        """Made when it is asked for: most of these errors are those of ``hasattr``."""
        if not self.args:
            self.args = (attribute_text(self.obj, str(self.name)),)
        return str(self.args[0])


class MissingImportError(TilewrightError, ModuleNotFoundError):
    """An import names a module, or a name of a module, that does not exist.

    >>> from tilewright.cute import make_layuot
    Traceback (most recent call last):
        ...
    tilewright.errors.MissingImportError: module 'tilewright.cute' has no attribute 'make_layuot'; did you mean ...
    """


HOW_STATIC = (
    "an array that is passed as it is has a dynamic layout: from_dlpack(array) gives a static one; a number that "
    "layouts need while staging is an argument annotated cutlass.Constexpr"
)
"""Completes the errors of operations that need a static extent or layout."""


def byte_count(n: int) -> str:
    """A number of bytes in a message.

    >>> byte_count(1), byte_count(16)
    ('1 byte', '16 bytes')
    """
    return f"{n} byte{'' if n == 1 else 's'}"


OF_A_MODULE = 0.75
"""The likeness that :func:`nearest` asks of modules and of their names."""


def nearest(name: str, known: Iterable[str], likeness: float = 0.6) -> str:
    """The known name that ``name`` most resembles, to complete a message; empty where none does. ``likeness``:
    difflib's ratio that a name must have, 0 to 1. Lists of hundreds of names need a higher one: there, some name always
    has a few letters in common.

    >>> nearest("scop", ["sem", "scope"])
    "; did you mean 'scope'?"
    >>> nearest("nothing", ["typing"]), nearest("nothing", ["typing"], OF_A_MODULE)
    ("; did you mean 'typing'?", '')
    """
    import difflib

    matches = difflib.get_close_matches(name, list(known), 1, likeness)
    return f"; did you mean {matches[0]!r}?" if matches else ""


def unknown_keyword(function: str, name: str, known: Iterable[str]) -> KeywordError:
    """The error of ``function(name=...)`` where ``function`` has the keywords ``known``.

    >>> raise unknown_keyword("copy", "predicate", ("pred", "mbar_ptr"))
    Traceback (most recent call last):
        ...
    tilewright.errors.KeywordError: copy() has no keyword argument 'predicate'; did you mean 'pred'?
    """
    known = [k for k in known if k not in ("self", "cls")]
    hint = nearest(name, known) or (f"; it has {', '.join(known)}" if known else "; it takes no keywords")
    return KeywordError(f"{function}() has no keyword argument {name!r}{hint}")


def attribute_text(owner: Any, name: str) -> str:
    """The error for ``owner.name``: not here yet, or unknown (with the nearest attribute).

    >>> attribute_text(1, "bit_lenght")
    "int has no attribute 'bit_lenght'; did you mean 'bit_length'?"
    """
    from tilewright.foreign_names import of_tensor
    from tilewright.stand_in_names import is_attribute

    cls = owner if isinstance(owner, type) else type(owner)
    if is_attribute(cls, name):
        return f"{cls.__name__} has no {name!r} yet: the CuTe DSL has it, Tilewright does not"
    near = of_tensor(cls.__name__, name) or nearest(name, (n for n in dir(owner) if not n.startswith("_")))
    return f"{cls.__name__} has no attribute {name!r}{near}"


T = TypeVar("T", bound=type)


def explained(cls: T) -> T:
    """Decorator of a class whose objects say which attribute is nearest to one that they do not have. (A
    ``__getattr__`` in the class would make any attribute valid to type checkers.)

    >>> @explained
    ... class Tile:
    ...     rows = 64
    >>> Tile().row
    Traceback (most recent call last):
    ...
    tilewright.errors.MissingAttributeError: Tile has no attribute 'row'; did you mean 'rows'?
    """

    def refuse(self: Any, name: str) -> Any:
        if name.startswith("_"):  # Python and other libraries ask for such names
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        raise MissingAttributeError(self, name)

    cls.__getattr__ = refuse  # type: ignore[attr-defined]  # see above: not in the text of the class
    return cls
