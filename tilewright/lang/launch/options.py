"""Options of ``cute.compile``: as types (``compile[OptLevel(2), KeepPTX](...)``) or as text
(``options="--keep-ptx"``)."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

from tilewright.errors import ArgumentError


@dataclass(frozen=True)
class CompileOptions:
    """What was asked for. The device compiler gets ``opt_level``, ``ptxas_options``, ``generate_line_info`` and
    ``gpu_arch``."""

    opt_level: int = 3
    enable_assertions: bool = False
    keep_ptx: bool = False
    keep_cubin: bool = False
    generate_line_info: bool = False
    ptxas_options: str = ""
    gpu_arch: str = ""
    enable_tvm_ffi: bool = False


class CompileOption:
    """One option; ``CompileOption`` subclasses that are flags may be given without being called."""

    field: ClassVar[str]
    default: ClassVar[Any] = True

    def __init__(self, value: Any = None) -> None:
        self.value = type(self).default if value is None else value
        check(self.field, self.value)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.value!r})"


def check(field: str, value: Any) -> None:
    """ArgumentError unless ``value`` is acceptable for the option."""
    if field == "opt_level" and (isinstance(value, bool) or value not in (0, 1, 2, 3)):
        raise ArgumentError(f"opt-level is 0, 1, 2 or 3, not {value!r}")
    wanted = type(getattr(CompileOptions(), field))
    if not isinstance(value, wanted):
        raise ArgumentError(f"{field.replace('_', '-')} takes a {wanted.__name__}, not {value!r}")


class OptLevel(CompileOption):
    field = "opt_level"
    default = 3


class EnableAssertions(CompileOption):
    field = "enable_assertions"


class KeepPTX(CompileOption):
    field = "keep_ptx"


class KeepCUBIN(CompileOption):
    field = "keep_cubin"


class GenerateLineInfo(CompileOption):
    field = "generate_line_info"


class PtxasOptions(CompileOption):
    field = "ptxas_options"
    default = ""


class GPUArch(CompileOption):
    field = "gpu_arch"
    default = ""


class EnableTVMFFI(CompileOption):
    field = "enable_tvm_ffi"


def gather(base: CompileOptions, given: Any) -> CompileOptions:
    """``base`` with options given as types or instances, one or a tuple of them."""
    for option in given if isinstance(given, (tuple, list)) else (given,):
        if isinstance(option, type) and issubclass(option, CompileOption):
            option = option()
        if not isinstance(option, CompileOption):
            raise ArgumentError(f"cute.compile[...] takes options such as KeepPTX or OptLevel(2), not {option!r}")
        base = replace(base, **{option.field: option.value})
    return base


def parse(base: CompileOptions, text: str) -> CompileOptions:
    """``base`` with the options of a text.

    >>> parse(CompileOptions(), "--opt-level 2 --keep-ptx").opt_level
    2
    """
    known = {f.name.replace("_", "-"): f for f in fields(CompileOptions)}
    try:
        words = shlex.split(text)
    except ValueError as wrong:
        raise ArgumentError(f"options={text!r}: {wrong}") from None
    while words:
        word = words.pop(0)
        name, _, value = word.removeprefix("--").partition("=")
        if not word.startswith("--") or name not in known:
            raise ArgumentError(f"unknown option {word!r}; there are {', '.join('--' + n for n in known)}")
        field = known[name].name
        kind = type(getattr(base, field))
        if kind is bool:
            parsed: Any = True if not value else value.lower() in ("1", "true", "yes")
        else:
            if not value and not words:
                raise ArgumentError(f"option --{name} needs a value")
            value = value or words.pop(0)
            parsed = int(value) if kind is int and value.lstrip("-").isdigit() else value
        check(field, parsed)
        base = replace(base, **{field: parsed})
    return base
