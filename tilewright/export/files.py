"""``export_to_c``: writes a compiled function as C."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tilewright.cuda.limits import shared_bytes
from tilewright.cuda.machine import artifact, default_architecture
from tilewright.errors import ArgumentError, CompileError
from tilewright.export import simulated
from tilewright.export.describe import describe
from tilewright.export.header import header
from tilewright.export.interface import parameters_of
from tilewright.export.names import check_prefix
from tilewright.export.source import launcher
from tilewright.ir.core import Function
from tilewright.ir.target import architecture
from tilewright.ir.types import WIDE

C_FLAGS = ("-std=c99", "-O2", "-fPIC", "-ffp-contract=off", "-c")
MARK = "a function compiled by Tilewright"


def export_to_c(
    executor: Any,
    file_path: str | os.PathLike[str],
    file_name: str | None = None,
    function_prefix: str = "",
    *,
    object_file: bool = False,
    function_name: str = "",
    gpu_arch: str | Sequence[str] = (),
    constants: Mapping[str, int] | None = None,
) -> None:
    """See :meth:`tilewright.lang.launch.executor.Executor.export_to_c`."""
    folder, name, prefix = _places(file_path, file_name, function_prefix or function_name, object_file)
    archs = _architectures(gpu_arch, executor)
    _check(executor, folder, name, prefix)
    parameters = parameters_of(executor, prefix)
    macros = _macros(constants or {}, prefix)
    compiled = {arch: [_compiled(kernel, executor.options, arch) for kernel in executor.kernels] for arch in archs}
    from tilewright import __version__

    codes = [made.cubin for artifacts in compiled.values() for made in artifacts]
    simulated.keep(describe(executor, prefix, archs), codes, executor.kernels)
    files = {
        f"{name}.h": header(parameters, prefix, name, __version__, archs, executor.host.name, macros),
        f"{name}.c": launcher(executor, parameters, prefix, name, compiled),
    }
    _write(folder, name, files, Path(file_path).name if object_file and Path(file_path).suffix != ".o" else None)


def _places(file_path: Any, file_name: str | None, prefix: str, object_file: bool) -> tuple[Path, str, str]:
    """The folder, the base name of the files, and the prefix. A path that ends in ``.o`` names the object file, as any
    path does that is given for one (``object_file``)."""
    path = Path(file_path)
    if file_name is None:
        if path.suffix != ".o" and not object_file:
            raise ArgumentError(
                f"export_to_c: file_path={str(path)!r} is a folder, so file_name is needed, the base name of the files "
                "in it (or give the path of the object file: 'name.o')"
            )
        path, file_name = path.parent, path.name.removesuffix(".o")
    if not isinstance(file_name, str) or not file_name or Path(file_name).name != file_name or file_name in (".", ".."):
        raise ArgumentError(f"export_to_c: file_name={file_name!r} is the base name of files, without a folder")
    what = "function_prefix" if prefix else "file_name (which is the function_prefix where none is given)"
    check_prefix(prefix or file_name, what)
    return path, file_name, prefix or file_name


def _macros(constants: Mapping[str, int], prefix: str) -> dict[str, int]:
    """The constants by the names of their macros."""
    for name, value in constants.items():
        check_prefix(name, "a name of constants")
        if isinstance(value, bool) or not isinstance(value, int) or not -(1 << 63) < value < 1 << 63:
            raise ArgumentError(f"export_to_c: constants[{name!r}] is {value!r}; an integer of 64 bits")
    return {f"{prefix}_{name}": value for name, value in constants.items()}


def _architectures(gpu_arch: str | Sequence[str], executor: Any) -> list[str]:
    names = [gpu_arch] if isinstance(gpu_arch, str) and gpu_arch else list(gpu_arch)
    names = names or [executor.options.gpu_arch or default_architecture()]
    return list(dict.fromkeys(str(architecture(name)) for name in names))


def _check(executor: Any, folder: Path, name: str, prefix: str) -> None:
    if not executor.kernels:
        raise ArgumentError(f"export_to_c: {executor.host.name} launches no kernel, so there is nothing to export")
    if executor.host.body.ops[-1].operands:
        raise ArgumentError(
            f"export_to_c: {executor.host.name} returns a number to Python; an exported function gives the code of an "
            "error only: write the number into an array in a kernel"
        )
    host = executor.host
    if any(value.type in WIDE for value in (*host.params, *(r for op in host.body.walk() for r in op.results))):
        raise ArgumentError(
            f"export_to_c: {host.name} has numbers of 128 bits in host code, for which standard C has no type: pass "
            "two Uint64, and put them together in the kernel"
        )
    if folder.exists() and not folder.is_dir():
        raise ArgumentError(f"export_to_c: file_path={str(folder)!r} is a file, not a folder")
    there, first = folder / f"{name}.h", f"/* {prefix}: {MARK}"
    if there.exists() and not there.read_text(encoding="utf-8", errors="replace").startswith(first):
        raise ArgumentError(f"export_to_c: {there} is of another module, and would be overwritten; take another name")


def _compiled(kernel: Function, options: Any, arch: str) -> Any:
    """The kernel for ``arch``; refused with the architecture's name where it has no code for it."""
    smem, most = shared_bytes(kernel), architecture(arch).smem
    if smem > most:
        raise ArgumentError(
            f"export_to_c: {kernel.name} cannot run on {arch}: its blocks take {smem} bytes of shared memory, and "
            f"{arch} has {most}; take smaller tiles or fewer stages"
        )
    return artifact(kernel, replace(options, gpu_arch=arch))


def _write(folder: Path, name: str, files: dict[str, str], alone: str | None) -> None:
    """All files or none: they are written to a temporary folder next to it, then moved. ``alone``: the name of the
    object file where it is the only file that is kept."""
    if alone is not None and not compiler():
        raise CompileError(f"export_to_c: no C compiler (cc) here, so {str(folder / alone)!r} cannot be made")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{name}.", dir=folder) as made:
            for file, text in files.items():
                Path(made, file).write_text(text, encoding="utf-8", newline="\n")
            _compile_object(Path(made), name)
            if alone is not None:
                os.replace(Path(made, f"{name}.o"), folder / alone)
                return
            for file in sorted(os.listdir(made)):
                os.replace(Path(made, file), folder / file)
    except OSError as error:
        raise ArgumentError(f"export_to_c: cannot write to file_path={str(folder)!r}: {error}") from error


def compiler() -> list[str]:
    """The C compiler: ``CC`` (with options, if it has any), else cc, gcc or clang; empty without a compiler."""
    if command := shlex.split(os.environ.get("CC", "")):
        if shutil.which(command[0]) is None:
            raise CompileError(f"export_to_c: the C compiler that CC names is not here: {command[0]!r}")
        return command
    return next(([path] for name in ("cc", "gcc", "clang") if (path := shutil.which(name))), [])


def _compile_object(folder: Path, name: str) -> None:
    """``name.o`` from ``name.c``, where there is a C compiler."""
    cc = compiler()
    if not cc:
        warnings.warn(
            f"export_to_c: no C compiler (cc) here, so {name}.o was not made; compile {name}.c where the program is "
            "built. load_module takes the .c file, too",
            stacklevel=5,
        )
        return
    command = [*cc, *C_FLAGS, f"{name}.c", "-o", f"{name}.o"]
    done = subprocess.run(command, cwd=folder, capture_output=True, encoding="utf-8", errors="replace")
    if done.returncode:
        raise CompileError(f"export_to_c: {' '.join(command)} failed:\n{done.stderr.strip()}")
