"""What the tests of exported functions share: arrays on an imaginary GPU, C programs that call an exported function
with the values that Python would, and what either sends to a driver that writes everything down."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tilewright.export.arithmetic import literal
from tilewright.export.interface import CParameter, parameters_of
from tilewright.ir.core import Function
from tilewright.ir.runtime import DevicePointer
from tilewright.ir.types import PtrType, ScalarType, VecType

HERE = Path(__file__).parent
WARNINGS = ("-Wall", "-Wextra", "-Werror", "-pedantic")
COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C compiler here")


class GpuArray:
    """An array at any address of an imaginary GPU; ``stride`` in elements."""

    def __init__(self, address: int, shape: Sequence[int], typestr: str, stride: Sequence[int] | None = None) -> None:
        size, self.shape = int(typestr[2:]), tuple(shape)
        if stride is None:
            stride = [1] * len(shape)
            for i in reversed(range(len(shape) - 1)):
                stride[i] = stride[i + 1] * shape[i + 1]
        self.interface = {
            "data": (address, False),
            "shape": tuple(shape),
            "typestr": typestr,
            "version": 3,
            "strides": tuple(d * size for d in stride),
        }

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return self.interface


class Driver(NamedTuple):
    """The driver that writes down its calls: the folder of ``libcuda.so.1``, and where it writes."""

    folder: Path
    log: Path

    def calls(self) -> Calls:
        """What was called since the last time."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        self.log.write_text("")
        found: dict[str, list[str]] = {"load": [], "map": [], "attribute": [], "launch": [], "unload": []}
        for line in lines:
            found[line.partition(" ")[0]].append(line)
        return Calls(sorted(found["load"]), found["map"], found["attribute"], found["launch"], found["unload"])


class Calls(NamedTuple):
    loads: list[str]
    maps: list[str]
    attributes: list[str]
    launches: list[str]
    unloads: list[str] = []


def build_driver(folder: Path) -> Path:
    assert COMPILER
    library = folder / "libcuda.so.1"
    flags = ("-O1", "-shared", "-fPIC", "-pthread")
    subprocess.run([COMPILER, *flags, str(HERE / "driver.c"), "-o", str(library)], check=True)
    return library


def parameter_sizes(kernels: Sequence[Function]) -> str:
    """FAKE_PARAMETERS for these kernels."""
    rows = (f"{k.name}={','.join(str(_bytes(p.type)) for p in k.params)}" for k in kernels)
    return ";".join(rows)


def _bytes(kind: Any) -> int:
    if isinstance(kind, PtrType):
        return 8
    return kind.bytes if isinstance(kind, ScalarType) else kind.n * kind.elem.bytes if isinstance(kind, VecType) else 0


def run_c(
    source: str,
    folder: Path,
    names: Sequence[str],
    driver: Driver | None = None,
    cxx: bool = False,
    environment: dict[str, str] | None = None,
    link: str = ".o",
) -> subprocess.CompletedProcess[str]:
    """Build ``source`` with the exported files ``names`` of ``folder``, and run it."""
    main = folder / ("main.cpp" if cxx else "main.c")
    main.write_text(source)
    program = folder / "main"
    compiler = [shutil.which("c++") or shutil.which("g++") or "", "-std=c++11"] if cxx else [COMPILER, "-std=c99"]
    files = [str(folder / f"{name}{link}") for name in names]
    built = [*compiler, *WARNINGS, f"-I{folder}", str(main), *files, "-ldl", "-lm", "-pthread", "-o", str(program)]
    done = subprocess.run(built, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    more = {"LD_LIBRARY_PATH": str(driver.folder)} if driver else {}
    everything = {**os.environ, **more, **(environment or {})}
    return subprocess.run([str(program)], capture_output=True, encoding="utf-8", env=everything, timeout=120)


def program_text(executor: Any, prefix: str, args: Sequence[Any], calls: int = 1) -> str:
    """A C program that calls the exported function with the run-time values of ``args``."""
    parameters = parameters_of(executor, prefix)
    values = iter([v for p, a in zip(executor.parameters, args, strict=True) for v in p.argument.read(a)])
    kinds = iter([p.type for p in executor.host.params])
    lines, passed = [], ["&module"]
    for parameter in parameters:
        kind = [next(kinds) for _ in parameter.values][0]
        given = [next(values) for _ in parameter.values]
        if parameter.fields:
            lines += _tensor(parameter, given)
            passed.append(f"&{parameter.name}")
        else:
            passed.append(_plain(parameter, given[0], kind))
    assert next(values, None) is None
    call = f"code = cute_dsl_{prefix}_wrapper({', '.join(passed)});"
    return "\n".join(
        [
            "#include <stdio.h>",
            f'#include "{prefix}.h"',
            "int main(void) {",
            f"  {prefix}_Kernel_Module_t module;",
            "  int32_t code;",
            *lines,
            f"  code = {prefix}_Kernel_Module_Load(&module);",
            *[f"  if (code == 0) {call}"] * calls,
            f'  if (code != 0) return fprintf(stderr, "%s\\n", {prefix}_Get_Error_String()), 1;',
            f"  return {prefix}_Kernel_Module_Unload(&module);",
            "}",
        ]
    )


def _tensor(parameter: CParameter, given: list[Any]) -> list[str]:
    name = parameter.name
    pointer, *leaves = given
    lines = [f"  {parameter.type} {name};", f"  {name}.data = (void *)(uintptr_t){pointer.address}u;"]
    for field in parameter.fields[1:]:
        part, count = field.rstrip("];").split()[1].split("[")
        lines += [f"  {name}.{part}[{i}] = {leaves.pop(0)};" for i in range(int(count))]
    assert not leaves
    return lines


def _plain(parameter: CParameter, value: Any, kind: Any) -> str:
    if isinstance(value, DevicePointer):
        return f"(void *)(uintptr_t){value.address}u"
    if parameter.declaration.startswith("struct CUstream_st"):
        return f"(struct CUstream_st *)(uintptr_t){value}u"
    return literal(kind, value)
