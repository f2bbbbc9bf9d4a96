"""``cute.runtime.load_module``: exported functions, called from Python without being compiled again."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from tilewright.cuda.artifact import Artifact
from tilewright.cuda.limits import Limits
from tilewright.cuda.machine import CudaKernel, machine
from tilewright.errors import ArgumentError, MachineError, MissingNameError, nearest
from tilewright.export import program, simulated
from tilewright.export.describe import parameter_of
from tilewright.export.package import unpack
from tilewright.ir.core import Function, Location, Op
from tilewright.ir.target import architecture
from tilewright.lang.launch.executor import CompiledFunction
from tilewright.lang.launch.host import HostCode
from tilewright.lang.launch.machine import machine_of


def load_module(file_path: str | os.PathLike[str], *, enable_tvm_ffi: bool = False) -> ExportedModule:
    """The functions in a file that ``export_to_c`` wrote: an object file, a library or archive that such were linked
    into, or the C source itself. Each is an attribute, by its ``function_prefix``, and takes the arguments that the
    compiled function took. Arrays are on a GPU; or on the CPU, for the simulator, where this user exported the function
    on this computer (what the simulator runs is in Tilewright's cache on the disk).

    Nothing is compiled; the file's machine code is loaded by the driver at the first call on a device.
    ``enable_tvm_ffi`` is accepted: functions take arrays of any framework as they are.
    Raises ArgumentError for a file that cannot be read, holds no such function, is damaged or of another version of
    Tilewright; a call raises MachineError where there is no GPU, or none that the code was exported for.
    """
    path = Path(file_path)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ArgumentError(f"load_module: cannot read {str(path)!r}: {error.strerror or error}") from error
    functions: dict[str, ExportedFunction] = {}
    for description, codes in unpack(data, str(path)):
        functions.setdefault(description["prefix"], ExportedFunction(description, codes, str(path)))
    return ExportedModule(str(path), functions)


class ExportedModule:
    """The functions of one file, as attributes."""

    def __init__(self, path: str, functions: dict[str, ExportedFunction]) -> None:
        self._path, self._functions = path, functions

    def __getattr__(self, name: str) -> ExportedFunction:
        functions = self.__dict__.get("_functions", {})
        if name not in functions:
            hint = nearest(name, functions) or f"; it has {', '.join(functions)}"
            raise MissingNameError(lambda: f"{self.__dict__.get('_path')} has no exported function {name!r}{hint}")
        function: ExportedFunction = functions[name]
        return function

    def __getitem__(self, name: str) -> ExportedFunction:
        return self.__getattr__(name)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._functions]

    def __repr__(self) -> str:
        return f"<exported functions {', '.join(self._functions)} of {self._path}>"


class ExportedFunction(CompiledFunction):
    """One exported function; ``architectures`` are those that it has machine code for."""

    def __init__(self, description: dict[str, Any], codes: list[bytes], path: str) -> None:
        host, kernels = program.read(description["program"])
        self.name: str = description["prefix"]
        self.architectures: list[str] = description["architectures"]
        self.kernels = kernels
        rows = [codes[i : i + len(kernels)] for i in range(0, len(codes), len(kernels))]
        made = {
            kernel: {arch: row[i] for arch, row in zip(self.architectures, rows, strict=True)}
            for i, kernel in enumerate(kernels)
        }
        code = ExportedCode(host, made, f"{self.name} of {path}", partial(simulated.kept, description, codes))
        code.written = {i: Op("store", [], [], {}, [], Location(*loc)) for i, loc in description["written"]}
        code.equal = [(i, j) for i, j in description["equal"]]
        super().__init__(code, [parameter_of(item) for item in description["parameters"]])

    def __repr__(self) -> str:
        return f"<exported function {self.name} for {', '.join(self.architectures)}>"


class ExportedCode(HostCode):
    """Host code whose kernels are machine code: ``codes`` of each kernel, by architecture. ``simulated`` gives the
    kernels for the simulator, or None."""

    def __init__(
        self,
        function: Function,
        codes: dict[Function, dict[str, bytes]],
        label: str,
        simulated: Callable[[], list[Function] | None],
    ) -> None:
        super().__init__(function)
        self.codes, self.label, self.simulated = codes, label, simulated

    def load(self, device: str) -> list[Any]:
        archs = ", ".join(next(iter(self.codes.values())))
        if device == "cpu" and self.pointers:
            kernels = self.simulated()
            if kernels is None:
                raise MachineError(
                    f"{self.label} is machine code for GPUs ({archs}), and the arrays are on the CPU: move them to a "
                    "GPU. The simulator runs it where it was exported: nothing for the simulator is kept here"
                )
            self.loaded[device] = [machine_of(device).load(kernel, None) for kernel in kernels]
            return self.loaded[device]
        try:
            machine()
        except MachineError as error:
            raise MachineError(f"{self.label} is machine code for GPUs ({archs}), and {error}") from error
        self.loaded[device] = [ExportedKernel(kernel, self.codes[kernel], self.label) for kernel in self.kernels]
        return self.loaded[device]


class ExportedKernel(CudaKernel):
    """A kernel that was compiled before, by architecture."""

    def __init__(self, function: Function, codes: dict[str, bytes], label: str) -> None:
        super().__init__(function)
        self.codes, self.label = codes, label

    def compiled_for(self, device: Limits) -> Artifact:
        """The machine code for a device: of the newest architecture that runs there."""
        there = architecture(device.arch)
        fitting = [arch for arch in self.codes if architecture(arch).runs_on(there)]
        if not fitting:
            raise MachineError(
                f"{self.label} was exported for {', '.join(self.codes)}; {device.name} is {device.arch}: export it "
                f"with gpu_arch=({device.arch!r}, ...)"
            )
        best = max(fitting, key=lambda arch: (architecture(arch).capability, architecture(arch).suffix))
        return Artifact(self.function.name, best, "", self.codes[best], "")
