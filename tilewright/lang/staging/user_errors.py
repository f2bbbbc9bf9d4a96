"""Errors that arise while a function is staged, brought to the user's line."""

from __future__ import annotations

import contextlib
import linecache
import opcode
import os
import re
import sys
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import NamedTuple

from tilewright.errors import MissingAttributeError, StagingError, TilewrightError, attribute_text, nearest
from tilewright.lang.staging.class_modules import module_of
from tilewright.lang.staging.location import PACKAGE, counts_as_user, is_ours
from tilewright.lang.staging.refusals import is_dynamic
from tilewright.layout.ints import UnhashableLeafError

_NAMES_A_LINE = re.compile(r"\.py:\d+|>:\d+")
# Messages of Python, PyTorch and NumPy
_KEYWORD = re.compile(r"([\w.]+)\(\) got an unexpected keyword argument '(\w+)'")
_ARGUMENTS = re.compile(r"([\w.]+)\(\) (?:missing \d+ required|takes .* positional arguments? but)")
_PYTHONS_ADVICE = re.compile(r"\. Did you mean '\w+'\?$")  # from Python 3.13 on, for functions in Python
_OPERANDS = re.compile(
    r"unsupported operand type|not supported between instances|bad operand type for|loop of ufunc does not support"
    r"|unsupported format string|required (positional|keyword-only) argument|positional arguments? but"
    r"|unexpected keyword argument|got multiple values for argument"
    r"|object is not subscriptable|object does not support item|object is not callable|object is not iterable"
)
_HOST_FUNCTION = re.compile(
    r"must be (?:Tensor|a?\s*real number|tuple of Tensors|number|[\w ,-]*number), (?:but )?not '?(\w+)"
    r"|type (\w+) doesn't define __\w+__ method|'(\w+)' object cannot be interpreted as an integer"
)
_NAMES = re.compile(r"\b[A-Z]\w*")


class UserLine(NamedTuple):
    """A line of user code that an error went through, and what raised the error."""

    file: str
    line: int
    called: bool
    """Whether a function of this package that the line called raised the error."""
    innermost: bool
    """Whether the line raised the error itself."""
    function: str
    """The name of the function that the line is in."""

    def __str__(self) -> str:
        source = linecache.getline(self.file, self.line).strip()
        return f"{self.file}:{self.line}" + (f": {source}" if source else "")


@contextlib.contextmanager
def blamed() -> Iterator[None]:
    """Add the user's line to errors of this package that lack it, and turn Python's errors about operands (a tensor
    added to a string), attributes of our objects and arguments of our functions into StagingErrors. Whatever else the
    user's code raises passes as it is."""
    try:
        yield
    except TilewrightError as wrong:
        place = place_of(wrong.__traceback__)
        if place is not None and place.called and isinstance(wrong, MissingAttributeError):
            call, takes = _call_of(wrong)
            wrong.args = (f"{call}{wrong}{takes}",)
        if place is not None and not _NAMES_A_LINE.search(str(wrong)):
            undecided = place.function == "<lambda>" and "no truth value" in str(wrong)
            advice = "; Python alone decides inside a lambda: write a `def`" if undecided else ""
            wrong.args = (f"{wrong}{advice}\n  at {place}",)
        raise
    except Exception as wrong:
        place = place_of(wrong.__traceback__)
        text = _explained(wrong, place) if place is not None else ""
        if not text:
            raise
        made = StagingError(f"{text}\n  at {place}").with_traceback(wrong.__traceback__)
        raise made from (wrong if _debugging() else None)


# -- explanations of Python's errors -----------------------------------------------------------------------------------


def _explained(wrong: Exception, place: UserLine) -> str:
    """The explanation of an error of Python; empty for those that are the user's own."""
    for explain in (
        _of_recursion,
        _of_pointer,
        _of_attribute,
        _of_operands,
        _of_host_function,
        _of_host_library,
        _of_key,
        _of_host_index,
        _of_call,
    ):
        text = explain(wrong, place)
        if text is not None:
            return text
    return ""


# Each explains one sort of errors: the text, empty for an error that is the user's own, None for other sorts.


def _of_recursion(wrong: Exception, place: UserLine) -> str | None:
    if not isinstance(wrong, RecursionError):
        return None
    return (
        "the function calls itself without end while staging: calls are inlined, so a recursion must end by Python "
        "values; write a loop where run-time values decide"
    )


def _of_pointer(wrong: Exception, place: UserLine) -> str | None:
    """A pointer where Python takes one element after the other."""
    if not (isinstance(wrong, TypeError) and "Pointer' " in str(wrong) and "not iterable" in str(wrong)):
        return None
    return f"{wrong}; a pointer has no length: a tensor at it has, cute.make_tensor(pointer, layout)"


def _of_attribute(wrong: Exception, place: UserLine) -> str | None:
    if not (place.innermost and isinstance(wrong, AttributeError)):
        return None
    if wrong.obj is None and wrong.name == "launch":
        return "there is nothing to launch: the function that was called is not marked @cute.kernel"
    if isinstance(wrong.obj, tuple) and wrong.name in ("x", "y", "z"):
        return f"a tuple has no .{wrong.name}: x, y, z = cute.arch.thread_idx(), and so block_idx() and the others"
    if not module_of(type(wrong.obj)).startswith("tilewright."):
        return ""
    return attribute_text(wrong.obj, str(wrong.name))


def _of_operands(wrong: Exception, place: UserLine) -> str | None:
    """Operands and arguments that Python refused."""
    text = str(wrong)
    if not (place.innermost and isinstance(wrong, TypeError) and _OPERANDS.search(text)):
        return None
    if unexpected := _KEYWORD.search(text):
        return f"{_PYTHONS_ADVICE.sub('', text)}{nearest(unexpected[2], _keywords_of(unexpected[1]))}"
    return f"{text}{_advice_on_operands(text)}"


def _of_host_function(wrong: Exception, place: UserLine) -> str | None:
    """A run-time number in a function of PyTorch or of Python's math."""
    match = _HOST_FUNCTION.search(str(wrong)) if isinstance(wrong, TypeError) else None
    if place.called or match is None or not _is_of_ours(match[match.lastindex or 0]):
        return None
    return (
        f"{wrong}; PyTorch and Python's math compute while staging and know no run-time values: take cute.math "
        "(cute.math.exp, cute.math.sqrt, ...) and the operators"
    )


def _of_host_library(wrong: Exception, place: UserLine) -> str | None:
    """A run-time number in another library."""
    kinds = (TypeError, ValueError, ArithmeticError)
    if place.called or not isinstance(wrong, kinds) or not _met_a_number(wrong):
        return None
    return (
        f"{wrong}; Python's libraries compute while staging and know no run-time values: take cute.math and the "
        "operators"
    )


def _of_key(wrong: Exception, place: UserLine) -> str | None:
    if not isinstance(wrong, UnhashableLeafError):
        return None
    return "a run-time number cannot be a key of a dict or set, which staging looks up; write `if n == 0: ...`"


def _of_host_index(wrong: Exception, place: UserLine) -> str | None:
    if not (place.innermost and isinstance(wrong, IndexError) and "valid indices" in str(wrong)):
        return None
    return "an array of the host has no run-time index: pass it to the kernel as an argument"


def _of_call(wrong: Exception, place: UserLine) -> str | None:
    """An error of Python inside a function of this package that the user called."""
    if not place.called:
        return None
    if isinstance(wrong, ArithmeticError):
        return str(wrong)
    if isinstance(wrong, AttributeError) and wrong.name in ("ir_type", "ir_value", "width"):
        return f"a numeric type such as Float32 or Int8 is wanted, not {wrong.obj!r}{_our_type(wrong.obj)}"
    if isinstance(wrong, (TypeError, AttributeError, ValueError, LookupError)):
        call, takes = _call_of(wrong)
        return f"{call}this cannot be done with what is given here ({type(wrong).__name__}: {wrong}){takes}"
    return None


def _call_of(wrong: Exception) -> tuple[str, str]:
    """The call in the user's line that ended in this error, with what it was given, and the types that it takes; empty
    texts where it has no name."""
    traceback, frame = wrong.__traceback__, None
    while traceback is not None:
        if counts_as_user(traceback.tb_frame.f_code):
            frame = None
        elif frame is None:
            frame = traceback.tb_frame
        traceback = traceback.tb_next
    if frame is None:
        return "", ""
    code, arguments = frame.f_code, frame.f_locals
    names = [n for n in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount] if n not in ("loc", "ip")]
    owner = type(arguments[names.pop(0)]) if names[:1] == ["self"] else None
    name = code.co_name if owner is None or code.co_name != "__init__" else owner.__name__
    if name.startswith("_") or name in ("wrapper", "<lambda>"):
        return "", ""
    function = frame.f_globals.get(name) if owner is None else getattr(owner, code.co_name, None)
    types = getattr(function, "__annotations__", {})
    shown = ", ".join(f"{n}={_short(arguments[n])}" for n in names if arguments.get(n) is not None)
    takes = ", ".join(f"{n}: {types[n]}" for n in names if types.get(n, "Any") != "Any")
    return f"{name}({shown}): ", takes and f"; it takes {takes}"


def _short(value: object) -> str:
    """A value in some words of a message."""
    try:
        text = repr(value)
    except Exception:  # the mistake may be in the value
        text = ""
    return text if text and len(text) <= 60 and "\n" not in text else f"<{type(value).__name__}>"


def _advice_on_operands(text: str) -> str:
    """How to repair an operation of Python, or a call of one of our functions, that Python refused with ``text``."""
    if "ufunc" in text:
        return "; NumPy computes while staging and knows no run-time values: take cute.math and the operators"
    if "'NoneType'" in text:
        return "; None stands here: an argument that was given None, or a function that returned nothing"
    if "'Tensor'" in text and text.startswith("unsupported operand"):
        return (
            "; one element is t[i]; all elements of a static shape are t.load(), with which operators compute, and "
            "t.store(...) writes them"
        )
    if match := _ARGUMENTS.match(text):
        names = [name for name in _keywords_of(match[1]) if name not in ("self", "loc", "ip")]
        return f": {match[1].rpartition('.')[2]}({', '.join(names)})" if names else ""
    return ""


def _our_type(dtype: object) -> str:
    """The numeric class of a type of NumPy, PyTorch or Python, or of its name, to complete a message."""
    numbers = sys.modules["tilewright.lang.numbers.dtypes"]
    try:
        return f": write {numbers.dtype(dtype if isinstance(dtype, (str, type)) else getattr(dtype, 'dtype', dtype))}"
    except TilewrightError:
        return ""


def _met_a_number(wrong: Exception) -> bool:
    """Whether a library that the user called raised the error because of a run-time number: one is in a variable
    of its function, or the message of its C code names the class of one."""
    innermost = wrong.__traceback__
    while innermost is not None and innermost.tb_next is not None:
        innermost = innermost.tb_next
    if innermost is None:
        return False
    code = innermost.tb_frame.f_code
    if not counts_as_user(code):
        return any(map(is_dynamic, innermost.tb_frame.f_locals.values()))
    raised = code.co_code[innermost.tb_lasti] == opcode.opmap["RAISE_VARARGS"]
    return not raised and any(map(_is_of_ours, _NAMES.findall(str(wrong))))


def _is_of_ours(name: str) -> bool:
    """Whether a class of the language that run-time values have is called ``name``."""
    values = (
        "lang.numbers.numeric",
        "lang.numbers.wide",
        "lang.tensors.tensor",
        "lang.tensors.tensor_ssa",
        "lang.tensors.pointer",
        "lang.tensors.host_pointer",
    )
    return any(hasattr(sys.modules.get(f"tilewright.{module}"), name) for module in values)


def _keywords_of(function: str) -> Iterable[str]:
    """The parameters of the function of this package with this qualified name, as Python's message gives it."""
    first, *rest = function.split(".")
    for name, module in list(sys.modules.items()):
        target = vars(module).get(first) if name.startswith("tilewright.") else None
        for attribute in rest:
            target = getattr(target, attribute, None)
        code = getattr(target, "__code__", None)
        if code is not None and target.__module__ == name:
            return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return ()


def place_of(traceback: TracebackType | None) -> UserLine | None:
    """The innermost line of user code that an error went through."""
    line: UserLine | None = None
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if counts_as_user(code):
            line = UserLine(code.co_filename, traceback.tb_lineno, False, traceback.tb_next is None, code.co_name)
        elif line is not None:
            line = line._replace(called=code.co_filename.startswith(PACKAGE))
        traceback = traceback.tb_next
    return line


def show_users_frames(error: Exception) -> None:
    """Leave the user's frames in the traceback of ``error``, which the function that the user called raises again.

    An error that neither is for the user nor was raised by the user's code is a mistake in this package, and keeps all
    frames; so do all errors while ``TILEWRIGHT_DEBUG`` is set.
    """
    frames = []
    traceback = error.__traceback__
    while traceback is not None:
        frames.append(traceback)
        traceback = traceback.tb_next
    if not _debugging() and (isinstance(error, TilewrightError) or not is_ours(frames[-1].tb_frame.f_code)):
        if isinstance(
            error, TilewrightError
        ):  # behind the user's last line: what this package calls, as Python's `ast`
            while frames and not counts_as_user(frames[-1].tb_frame.f_code):
                frames.pop()
        kept = None
        for frame in reversed(frames):
            code = frame.tb_frame.f_code
            # ``contextlib`` has frames in between: ``blamed`` is a generator.
            if not is_ours(code) and code.co_filename != contextlib.__file__:
                kept = TracebackType(kept, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
        error.__traceback__ = kept


def _debugging() -> bool:
    return bool(os.environ.get("TILEWRIGHT_DEBUG"))
