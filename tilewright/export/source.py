"""The C launcher of an exported function: driver, kernels, arguments, host code, machine code."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from tilewright.cuda.limits import shared_bytes
from tilewright.export.arithmetic import Helpers
from tilewright.export.describe import describe
from tilewright.export.header import declaration
from tilewright.export.host import HostWriter, string
from tilewright.export.interface import CParameter
from tilewright.export.package import FORMAT, pack, words
from tilewright.export.tvm_ffi import symbol
from tilewright.ir.target import architecture

_BEGIN = """\
/* {prefix}: see {name}.h. Generated; do not edit. Any C compiler builds it: cc -c {name}.c */
#if !defined(_WIN32) && !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L
#endif
#include "{name}.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
{math}#ifdef _WIN32
#include <windows.h>
#else
#include <dlfcn.h>
#include <sched.h>
#endif

#define TW_KERNELS {kernels}

"""


def launcher(
    executor: Any, parameters: list[CParameter], prefix: str, name: str, compiled: dict[str, list[Any]]
) -> str:
    """The text of the C file. ``compiled``: the artifact of each kernel, by architecture."""
    helpers = Helpers()
    values = [value for p in parameters for value in p.values]
    writer = HostWriter(executor.host, executor.kernels, parameters, helpers)
    body = writer.write()
    codes = [made.cubin for artifacts in compiled.values() for made in artifacts]
    package, offsets = pack(describe(executor, prefix, list(compiled)), codes)
    tables = _tables(executor, compiled, offsets, package)
    fixed = piece("launcher.c").replace("@TABLES@", tables)
    fixed = fixed.replace("@PREFIX@", prefix).replace("@ARCHITECTURES@", ", ".join(compiled))
    pieces = [
        _BEGIN.format(
            prefix=prefix, name=name, kernels=len(executor.kernels), math="#include <math.h>\n" if helpers.math else ""
        ),
        fixed,
        piece("arguments.c"),
        piece("tensormap.c") if writer.templates else "",
        piece("launch.c"),
        "/* ---- the host function -------------------------------------------------------------------------------"
        "-------------- */\n",
        helpers.text(),
        *writer.templates,
        "",
        f"{declaration(parameters, prefix)} {{",
        "  tw_place *place = NULL;",
        *(f"  {check}" for p in parameters for check in p.checks),
        *_equal(executor, values),
        "  TW_TRY(tw_enter(module, &place));",
        *body,
        *(f"  (void){p.name};" for p in parameters),
        "  return 0;",
        "}",
        "",
        _packed(parameters, prefix),
        *_tvm_ffi(executor, parameters, prefix),
    ]
    return "\n".join(pieces) + "\n"


_PACKED = """\
/* ---- the same by pointers to the arguments, for CuteDSLRuntime.h: the last one is for the code ------------------ */

extern const int32_t cute_dsl_{prefix}_format;
const int32_t cute_dsl_{prefix}_format = {format};
int32_t cute_dsl_{prefix}_packed(void **arguments, int32_t count);
int32_t cute_dsl_{prefix}_packed_load(int32_t load);

static {prefix}_Kernel_Module_t tw_packed;

int32_t cute_dsl_{prefix}_packed(void **arguments, int32_t count) {{
  int32_t code;
  if (count != {count}) {{
    tw_fail(TW_INVALID_VALUE, "%d arguments are given; there are {count}: {names}", (int)count);
    return -1;
  }}
  code = cute_dsl_{prefix}_wrapper({given});
  *(int32_t *)arguments[{last}] = code;
  return code;
}}

int32_t cute_dsl_{prefix}_packed_load(int32_t load) {{
  return load ? {prefix}_Kernel_Module_Load(&tw_packed) : {prefix}_Kernel_Module_Unload(&tw_packed);
}}"""


def _packed(parameters: list[CParameter], prefix: str) -> str:
    """The function that takes pointers to its arguments."""
    arguments = ["&tw_packed"]
    for i, p in enumerate(parameters):
        kind = p.declaration.removesuffix(p.name).strip()
        arguments.append(f"({kind})arguments[{i}]" if p.fields else f"*({kind} *)arguments[{i}]")
    names = ", ".join([*(p.name for p in parameters), "the code"])
    return _PACKED.format(
        prefix=prefix,
        format=FORMAT,
        count=len(parameters) + 1,
        names=names,
        given=", ".join(arguments),
        last=len(parameters),
    )


def _tvm_ffi(executor: Any, parameters: list[CParameter], prefix: str) -> list[str]:
    """The function for TVM FFI, on systems whose linkers know weak symbols."""
    name = symbol(executor, parameters, prefix)
    return ["", "#ifdef __ELF__", piece("tvm_ffi.c").replace("@PREFIX@", prefix), name, "#endif"] if name else []


def _equal(executor: Any, values: list[str]) -> list[str]:
    """Checks of the numbers that one symbol stands for."""
    conditions = []
    for i, j in executor.equal_values:
        text = f"{executor.host.params[j].hint} is not {executor.host.params[i].hint}: the function was compiled with "
        conditions.append(f"  if ({values[i]} != {values[j]})")
        conditions.append(
            f'    return tw_fail(TW_INVALID_VALUE, "%s", {string(text + "one symbol (SymInt) for both")});'
        )
    return conditions


def _tables(executor: Any, compiled: dict[str, list[Any]], offsets: list[int], package: bytes) -> str:
    rows = []
    for kernel, made in zip(executor.kernels, next(iter(compiled.values())), strict=True):
        cluster = ", ".join(map(str, kernel.attrs.get("cluster") or (0, 0, 0)))
        threads = kernel.attrs.get("max_threads") or 0
        rows.append(f"  {{{string(made.name)}, {shared_bytes(kernel)}, {threads}, {{{cluster}}}}},")
    codes = []
    places = iter(offsets)
    for arch, artifacts in compiled.items():
        target = architecture(arch)
        starts = ", ".join(str(next(places)) for _ in artifacts)
        sizes = ", ".join(str(len(made.cubin)) for made in artifacts)
        exact, family = int(bool(target.suffix)), int(target.suffix == "f")
        codes.append(f"  {{{target.capability}, {exact}, {family}, {{{starts}}}, {{{sizes}}}}}, /* {arch} */")
    return "\n".join(
        [
            "static const tw_kernel tw_kernels[TW_KERNELS] = {",
            *rows,
            "};",
            "",
            f"/* A description for load_module, and the machine code: {len(package)} bytes. */",
            f"static const uint64_t tw_package[] = {{\n{words(package)}\n}};",
            "",
            "static const tw_code tw_codes[] = {",
            *codes,
            "};",
        ]
    )


@cache
def piece(name: str) -> str:
    return (Path(__file__).parent / name).read_text(encoding="utf-8")
