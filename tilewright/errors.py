"""The one exception family of Tilewright.

Every mistake a user can make ends in a subclass of :class:`TilewrightError`; the message says what is wrong, where in
the user's Python, which layouts are involved (in CuTe notation) and, when it is known, how to fix it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any


class TilewrightError(Exception):
    """Base of every error that Tilewright raises for a user's mistake."""


class LayoutError(TilewrightError, ValueError):
    """An operation of the layout algebra has no result for these operands."""


class ParseError(LayoutError):
    """Text that is not CuTe notation; ``position`` is the offset of the offending character."""

    def __init__(self, message: str, text: str = "", position: int = 0) -> None:
        super().__init__(message)
        self.text = text
        self.position = position


class StagingError(TilewrightError):
    """A kernel cannot be staged: the Python in it has no meaning on the machine."""


class VerifyError(TilewrightError):
    """The IR of a kernel breaks one of its own rules."""


class ConstraintError(TilewrightError, ValueError):
    """An instruction's constraint (dtype, layout, memory space, alignment, architecture) does not hold."""


class ArgumentError(TilewrightError, ValueError):
    """A host-side argument (shape, dtype, alignment, device, file) is not acceptable."""


class ArgumentTypeError(ArgumentError, TypeError):
    """An argument is of another kind than the compiled function takes."""


class CompileError(TilewrightError):
    """The device compiler rejected the emitted text."""


class MachineError(TilewrightError, RuntimeError):
    """The machine that was asked for is missing, or it failed while running a kernel."""


class LaunchError(StagingError, MachineError):
    """A kernel is to be launched in a shape that no machine has: too many threads, an extent of 0."""


class SimulationError(MachineError):
    """The simulator found a fault while running a kernel (bounds, alignment, barrier, deadlock), or its checks found
    something.

    ``findings``: of the checks (:class:`tilewright.sim.checks.Findings`), or None. ``what``: the fault's own text
    without them, empty where there is no fault. ``op``: the op at fault, where one is known; ``others``: further ones
    (in a deadlock, where the other warps wait).
    """

    def __init__(self, message: str, findings: Any = None, op: Any = None, others: Any = ()) -> None:
        super().__init__(message)
        self.findings, self.op, self.others = findings, op, tuple(others)
        self.what = "" if findings is not None else message


class KeywordError(ArgumentError, TypeError):
    """A function was given a keyword argument that it does not have."""


class MissingNameError(TilewrightError, AttributeError):
    """A module was asked for a name that it does not have. ``text`` is called when the message is asked for: most of
    these errors are those of ``hasattr``."""

    def __init__(self, text: Callable[[], str]) -> None:
        super().__init__()
        self._text = text

    def __str__(self) -> str:
        if not self.args:
            self.args = (self._text(),)
        return str(self.args[0])

    def __reduce__(self) -> tuple[Any, ...]:
        return AttributeError, (str(self),)  # what another process is told


class MissingAttributeError(TilewrightError, AttributeError):
    """An object or class of the library was asked for an attribute that it does not have."""

    def __init__(self, thing: Any, name: str, text: Callable[[Any, str], str]) -> None:
        AttributeError.__init__(self, name=name, obj=thing)
        self._text = text

    def __str__(self) -> str:
        """Made when it is asked for: most of these errors are those of ``hasattr``."""
        if not self.args:
            self.args = (self._text(self.obj, str(self.name)),)
        return str(self.args[0])


class MissingImportError(TilewrightError, ModuleNotFoundError):
    """An import names a module, or a name of a module, that is not there."""


def byte_count(n: int) -> str:
    """A number of bytes in a message.

    >>> byte_count(1), byte_count(16)
    ('1 byte', '16 bytes')
    """
    return f"{n} byte{'' if n == 1 else 's'}"


def nearest(name: str, known: Iterable[str]) -> str:
    """The known name that ``name`` most resembles, to complete a message; empty where none does.

    >>> nearest("scop", ["sem", "scope"])
    "; did you mean 'scope'?"
    """
    import difflib

    found = difflib.get_close_matches(name, list(known), 1)
    return f"; did you mean {found[0]!r}?" if found else ""


def unknown_keyword(function: str, name: str, known: Iterable[str]) -> KeywordError:
    """The error of ``function(name=...)`` where ``function`` has the keywords ``known``."""
    known = [k for k in known if k not in ("self", "cls")]
    hint = nearest(name, known) or (f"; it has {', '.join(known)}" if known else "; it has none")
    return KeywordError(f"{function}() has no keyword argument {name!r}{hint}")
