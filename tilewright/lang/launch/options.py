"""Options of ``cute.compile``: as types (``compile[OptLevel(2), KeepPTX](...)``) or as text
(``options="--keep-ptx"``)."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from importlib import import_module
from typing import Any, ClassVar

from tilewright.errors import ArgumentError, nearest
from tilewright.ir.core import Block, Function
from tilewright.ir.target import architecture
from tilewright.lang.launch.machine import MACHINES
from tilewright.lang.staging.ranges import HintWarning


@dataclass(frozen=True)
class CompileOptions:
    """The options as they were given.

    Attributes:
        opt_level: 0 to 3, ptxas' optimisation level.
        enable_assertions: whether the assertions of kernels and host functions are checked, on either machine.
        keep_ptx, keep_cubin, keep_sass: write each kernel's PTX, cubin or machine code as text into the folder that
            ``TILEWRIGHT_DUMP`` names, else into the current one, as ``cute.compile`` returns. The device compiler
            (NVRTC) must be installed; no GPU is needed. The executor's ``__ptx__``, ``__cubin__`` and ``__sass__`` have
            them in any case.
        dump_dir: the folder of these files, in place of the one that the environment names.
        generate_line_info: the machine code names the lines of the user's Python; so does ``TILEWRIGHT_LINEINFO=1``.
        ptxas_options: words for ptxas, such as ``"-v --maxrregcount=128"``.
        gpu_arch: compile for this architecture (``"sm_90a"``); a launch on a GPU that cannot run it is an error. Left
            out: that of the GPU where the kernel is launched.
        check: which checks its launches on the simulator run under (``"all"``, ``"races"``, ``"none"``:
            docs/checking.md); left out: those of ``tilewright.sim.options``. With any, a launch on a GPU is an error.
        enable_tvm_ffi: compiled functions take arrays of any framework as they are. They do so here always.
    """

    opt_level: int = 3
    enable_assertions: bool = True
    keep_ptx: bool = False
    keep_cubin: bool = False
    keep_sass: bool = False
    dump_dir: str = ""
    generate_line_info: bool = False
    ptxas_options: str = ""
    gpu_arch: str = ""
    check: str = ""
    enable_tvm_ffi: bool = True


class CompileOption:
    """One option, for ``compile[...]``; those that are flags may be given without being called."""

    field: ClassVar[str]
    default: ClassVar[Any]

    def __init__(self, value: Any = None) -> None:
        self.value = self.default if value is None else value
        check(self.field, self.value)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.value!r})"


def _option(name: str, field: str, default: Any = True) -> type[CompileOption]:
    text = field.replace("_", "-")
    doc = f"``--{text}``, as a type{'' if default is True else ' that is called with a value'}: {_explained(field)}"
    own = {"field": field, "default": default, "__module__": __name__, "__doc__": doc}
    return type(name, (CompileOption,), own)


def _explained(field: str) -> str:
    """What the docstring of CompileOptions says of an attribute.

    >>> _explained("opt_level")
    "0 to 3, ptxas' optimisation level."
    """
    words = " ".join((CompileOptions.__doc__ or "").partition("Attributes:")[2].split())
    names = "|".join(f"{f.name}(?:, \\w+)*" for f in fields(CompileOptions))
    parts = re.split(rf"(?:^| )((?:{names})): ", words)
    return next((doc for name, doc in zip(parts[1::2], parts[2::2], strict=True) if field in name.split(", ")), "")


OptLevel = _option("OptLevel", "opt_level", 3)
EnableAssertions = _option("EnableAssertions", "enable_assertions")
KeepPTX = _option("KeepPTX", "keep_ptx")
KeepCUBIN = _option("KeepCUBIN", "keep_cubin")
KeepSASS = _option("KeepSASS", "keep_sass")
DumpDir = _option("DumpDir", "dump_dir", "")
GenerateLineInfo = _option("GenerateLineInfo", "generate_line_info")
PtxasOptions = _option("PtxasOptions", "ptxas_options", "")
GPUArch = _option("GPUArch", "gpu_arch", "")
Check = _option("Check", "check", "all")
EnableTVMFFI = _option("EnableTVMFFI", "enable_tvm_ffi")


def check(field: str, value: Any) -> None:
    """ArgumentError unless ``value`` is acceptable for the option."""
    if field == "opt_level" and (isinstance(value, bool) or value not in (0, 1, 2, 3)):
        raise ArgumentError(f"opt-level is 0, 1, 2 or 3, not {value!r}")
    if field == "gpu_arch" and value:
        architecture(value)
    if field == "enable_tvm_ffi" and value is False:
        raise ArgumentError("enable-tvm-ffi cannot be switched off: compiled functions take the arrays as they are")
    field_type = type(getattr(CompileOptions(), field))
    if not isinstance(value, field_type):
        raise ArgumentError(f"{field.replace('_', '-')} takes a {field_type.__name__}, not {value!r}")


def warn_of_marks() -> None:
    """``options="iket"`` asks for the marks of ``cute.experimental.iket`` to be recorded."""
    warnings.warn(
        "options='iket': marks and ranges are not recorded here; tilewright.viz.timeline draws what warps do when",
        HintWarning,
        stacklevel=4,
    )


_TRUTH = {"": True, "1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}


def gather(base: CompileOptions, options: Any) -> CompileOptions:
    """``base`` with options given as types or instances, one or a tuple of them."""
    for option in options if isinstance(options, (tuple, list)) else (options,):
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
    if not isinstance(text, str):
        raise ArgumentError(f"options is a text such as '--opt-level 2', or cute.compile[OptLevel(2)], not {text!r}")
    import shlex  # few programs have such a text, and it takes 3 ms

    by_flag = {f.name.replace("_", "-"): f for f in fields(CompileOptions)}
    try:
        words = shlex.split(text)
    except ValueError as wrong:
        raise ArgumentError(f"options={text!r}: {wrong}") from None
    while words:
        word = words.pop(0)
        if word == "iket":
            warn_of_marks()
            continue
        name, _, value = word.removeprefix("--").partition("=")
        if not word.startswith("--") or name not in by_flag:
            hint = nearest(name, by_flag) or f"; there are {', '.join('--' + n for n in by_flag)}"
            raise ArgumentError(f"unknown option {word!r}{hint}")
        field = by_flag[name].name
        kind = type(getattr(base, field))
        if kind is bool:
            if value.lower() not in _TRUTH:
                raise ArgumentError(f"option --{name} is true or false, not {value!r}")
            parsed: Any = _TRUTH[value.lower()]
        else:
            if not value and not words:
                raise ArgumentError(f"option --{name} needs a value")
            value = value or words.pop(0)
            parsed = int(value) if kind is int and value.lstrip("-").isdigit() else value
        check(field, parsed)
        base = replace(base, **{field: parsed})
    return base


KEPT = ("ptx", "cubin", "sass")
"""The forms of a kernel that can be kept as files."""


def of_environment(base: CompileOptions) -> CompileOptions:
    """``base`` with what the documented variables ask for: ``CUTE_DSL_KEEP`` (``ptx,cubin,sass`` or ``all``), the older
    ``CUTE_DSL_KEEP_PTX`` and ``CUTE_DSL_KEEP_CUBIN``, ``CUTE_DSL_LINEINFO``."""
    tokens = {token.strip().lower() for token in os.environ.get("CUTE_DSL_KEEP", "").split(",")}
    unknown = tokens - {*KEPT, "all", "ir", "ir-debug", ""}
    if unknown:
        raise ArgumentError(f"CUTE_DSL_KEEP: {', '.join(sorted(unknown))!r} is not one of {', '.join(KEPT)}, all")
    changes: dict[str, Any] = {
        f"keep_{form}": True for form in KEPT if tokens & {form, "all"} or is_set(f"CUTE_DSL_KEEP_{form.upper()}")
    }
    if is_set("CUTE_DSL_LINEINFO"):
        changes["generate_line_info"] = True
    return replace(base, **changes) if changes else base


def is_set(variable: str) -> bool:
    """Whether a variable of the environment says yes."""
    return os.environ.get(variable, "0").lower() not in ("", "0", "false", "no")


def apply(options: CompileOptions, functions: Iterable[Function]) -> None:
    """Take the assertions out of staged functions where they are not wanted."""
    if options.enable_assertions:
        return
    for function in functions:
        _without_assertions(function.body)


def _without_assertions(block: Block) -> None:
    block.ops[:] = [op for op in block.ops if op.opcode != "assert" or op.attrs.get("simulated")]
    for op in block.ops:
        for region in op.regions:
            _without_assertions(region)


def keep(options: CompileOptions, kernels: Iterable[Function]) -> None:
    """Write the files that ``options`` ask for. Raises MachineError where there is no device compiler."""
    suffixes = [suffix for suffix in KEPT if getattr(options, f"keep_{suffix}")]
    if not suffixes:
        return
    compiler: Any = import_module(MACHINES["cuda"])  # not the machine: compiling needs no GPU
    from pathlib import Path

    folder = Path(options.dump_dir or os.environ.get("TILEWRIGHT_DUMP") or os.environ.get("CUTE_DSL_DUMP_DIR") or ".")
    for kernel in kernels:
        compiler.artifact(kernel, options).dump(folder, suffixes)
