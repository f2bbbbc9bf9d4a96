"""The C header of an exported function."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tilewright.export.interface import STREAM, CParameter, parameters_of

_HEADER = """\
/* {prefix}: a function compiled by Tilewright {version} for {architectures}. Generated; do not edit.

   {prefix}_Kernel_Module_Load once, then cute_dsl_{prefix}_wrapper as often as wanted, from any thread, then
   {prefix}_Kernel_Module_Unload. All give 0 or the code of an error (a CUresult, which as cudaError_t means the same);
   {prefix}_Get_Error_String says what was wrong in the calling thread's last failure. */
#ifndef {guard}
#define {guard}

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {{
#endif

struct CUstream_st; /* cudaStream_t and CUstream are pointers to it */

#ifndef CUTE_DSL_CUDA_ERROR_CHECK
#include <stdio.h>
#ifdef __CUDA_RUNTIME_API_H__ /* cuda_runtime.h came first: it knows the names */
#define CUTE_DSL_CUDA_ERROR_NAME(CODE) cudaGetErrorName((cudaError_t)(CODE))
#else
#define CUTE_DSL_CUDA_ERROR_NAME(CODE) ""
#endif
#define CUTE_DSL_CUDA_ERROR_CHECK(CODE)                                                                            \\
  do {{                                                                                                             \\
    const int32_t cute_dsl_code = (CODE);                                                                          \\
    if (cute_dsl_code != 0) {{                                                                                      \\
      fprintf(stderr, "%s:%d: CUDA error %d %s\\n", __FILE__, __LINE__, (int)cute_dsl_code,                         \\
              CUTE_DSL_CUDA_ERROR_NAME(cute_dsl_code));                                                            \\
    }}                                                                                                              \\
  }} while (0)
#endif

/* The kernels, loaded. */
typedef struct {{
  const void *code;
  int32_t device;
}} {prefix}_Kernel_Module_t;

/* Loads the kernels into the current context (without one, into that of device 0, the primary one, which becomes
   current). Other devices get them when a call is made there. The driver is found at run time: no CUDA toolkit. */
int32_t {prefix}_Kernel_Module_Load({prefix}_Kernel_Module_t *module);
int32_t {prefix}_Kernel_Module_Unload({prefix}_Kernel_Module_t *module);
const char *{prefix}_Get_Error_String(void);
{tensors}
{comment}
{signature};

#ifdef __cplusplus
}}
#endif

#endif /* {guard} */
"""


def signature(executor: Any, prefix: str) -> str:
    """The declaration of the function that calls ``executor``'s program from C."""
    return declaration(parameters_of(executor, prefix), prefix)


def declaration(parameters: list[CParameter], prefix: str) -> str:
    arguments = ", ".join([f"{prefix}_Kernel_Module_t *module", *(p.declaration for p in parameters)])
    return f"int32_t cute_dsl_{prefix}_wrapper({arguments})"


def header(
    parameters: list[CParameter],
    prefix: str,
    file_name: str,
    version: str,
    architectures: list[str],
    name: str,
    macros: Mapping[str, int],
) -> str:
    """The text of the header."""
    from tilewright.export.names import identifier

    tensors = "".join(f"\n#define {macro} INT64_C({value})" for macro, value in macros.items())
    tensors += "\n" * bool(macros) + "".join(_struct(p) for p in parameters if p.fields)
    lines = [f"   {p.name}: {p.comment}" for p in parameters]
    last = "" if any(p.declaration.startswith(STREAM) for p in parameters) else "   It launches on the default stream."
    comment = "\n".join([f"/* Launches {name}.", *lines, *([last] if last else [])]) + " */"
    return _HEADER.format(
        prefix=prefix,
        guard=f"{identifier(file_name).upper()}_H",
        version=version,
        architectures=", ".join(architectures),
        tensors=tensors,
        comment=comment,
        signature=declaration(parameters, prefix),
    )


def _struct(parameter: CParameter) -> str:
    fields = "".join(f"\n  {line}" for line in parameter.fields)
    text = f"\ntypedef struct {{ /* {parameter.comment} */{fields}\n}} {parameter.type};\n"
    if parameter.nbytes is None:
        return text
    size = f"{parameter.type.removesuffix('_t')}_BYTES"
    return text + f"#define {size} INT64_C({parameter.nbytes}) /* what data points to */\n"
