"""Executors: compiled host functions that are called with run-time arguments only."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from importlib import import_module
from os import PathLike
from typing import Any

from tilewright.errors import ArgumentError
from tilewright.ir.core import Function
from tilewright.lang.arguments.kinds import Argument, CompoundArgument, OmittedArgument, StaticArgument
from tilewright.lang.arguments.signature import Signature
from tilewright.lang.launch.calls import Calls, Parameter
from tilewright.lang.launch.host import HostCode
from tilewright.lang.launch.machine import MACHINES
from tilewright.lang.launch.options import CompileOptions
from tilewright.lang.launch.stage import Program, python_result
from tilewright.lang.staging.user_errors import show_users_frames
from tilewright.reports import folded, preformatted

EXPORTER = "tilewright.export"
"""By name: export needs the device compiler, which is in a layer above this package."""


class CompiledFunction:
    """Host code that is called with run-time arguments only; they are checked against what it was compiled for: dtype,
    rank, static extents, alignment, device.

    ``host`` is the host function (``ir.Function``, print it to read it), ``source`` the Python that runs at each call.
    """

    def __init__(self, code: HostCode, parameters: list[Parameter]) -> None:
        self.host: Function = code.function
        self._code = code
        self._loaded = code.loaded
        self.source = code.source
        self.parameters = parameters
        self._count = len(parameters)
        self._result: Any = None

    @cached_property
    def _call(self) -> Callable[..., Any]:
        # 2 ms, which products that launch by values alone need not spend.
        return Calls(self._code, self.parameters).call

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        try:
            if kwargs or len(args) != self._count:
                args = self.arrange(args, kwargs)
            values = self._call(*args)
            return None if self._result is None else self.result(values)
        except Exception as error:
            show_users_frames(error)
            raise

    def arrange(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """Arguments in the order of the parameters, defaults filled in."""
        if len(args) > len(self.parameters):
            names = ", ".join(p.name for p in self.parameters)
            raise ArgumentError(
                f"{self.host.name} was compiled to take {len(self.parameters)} arguments ({names}), got {len(args)}; "
                "Constexpr arguments are part of the compiled function and are not passed again"
            )
        values, rest = list(args), dict(kwargs)
        passed = [
            p for p in self.parameters if not (isinstance(p.argument, StaticArgument) and p.argument.value is None)
        ]
        if not rest and len(args) == len(passed) < len(self.parameters):  # arguments that were None need not be passed
            positional = iter(args)
            return tuple([next(positional) if p in passed else None for p in self.parameters])
        for parameter in self.parameters[len(args) :]:
            if parameter.name in rest:
                values.append(rest.pop(parameter.name))
            elif parameter.default is not inspect.Parameter.empty:
                values.append(parameter.default)
            else:
                raise ArgumentError(f"{self.host.name}: the argument '{parameter.name}' is missing")
        if rest:
            raise ArgumentError(f"{self.host.name} has no run-time argument {', '.join(map(repr, rest))}")
        return tuple(values)

    def bind(self, *args: Any, **kwargs: Any) -> Callable[[], Any]:
        """The call with these arguments, which are read and checked now: of the call itself only the launch is left.

        Arrays are remembered by what they are now (address, extents, strides) and kept alive by the callable.
        """
        arguments = self.arrange(args, kwargs)
        read = (p.argument.read(a) for p, a in zip(self.parameters, arguments, strict=True))
        return partial(self.run, [value for values in read for value in values])

    def configurations(self, *args: Any, **kwargs: Any) -> list[Any]:
        """How the kernels would be launched with these arguments, a ``LaunchConfig`` for each launch: the host code
        runs with kernels that only note it."""
        arguments = self.arrange(args, kwargs)
        values = [x for p, a in zip(self.parameters, arguments, strict=True) for x in p.argument.read(a)]
        configurations: list[Any] = []
        noting = [lambda config, _: configurations.append(config) for _ in self._code.kernels]
        device = next((values[i].device for i in self._code.pointers), "cpu")
        self._code.body(noting, device, *values)
        return configurations

    def run(self, values: list[Any]) -> Any:
        """Run with the flat run-time values of all arguments, which were checked before."""
        __tracebackhide__ = True
        try:
            return self.result(self._code.run(values))
        except Exception as error:
            show_users_frames(error)
            raise

    def result(self, values: Any) -> Any:
        return None if self._result is None else python_result(self._result, iter(values))


class Executor(CompiledFunction):
    """What ``cute.compile`` gives. ``kernels`` are the staged kernels. Arguments that are ``Constexpr`` (and a bound
    ``self``) are not passed again."""

    def __init__(
        self, program: Program, signature: Signature, bound: inspect.BoundArguments, skip: int, options: CompileOptions
    ) -> None:
        code = HostCode(program.host, options)
        code.equal = _equal_values(program.arguments)
        super().__init__(code, _runtime_parameters(signature, bound, program.arguments, skip))
        self.kernels: list[Function] = program.kernels
        self.options = options
        self.signature = signature
        self._program = program
        result = program.result
        self._result = None if not result.types() and result.rebuild(iter(())) is None else result

    def direct(self, bound: inspect.BoundArguments) -> Any:
        """A function of all arguments, in order, that runs this program if they are of exactly its kind, else MISS."""
        listed = zip(self.signature.parameters(bound), self._program.arguments, strict=True)
        every = [Parameter(name, argument) for (name, _, _), argument in listed]
        return Calls(self._code, every, exact=True).call

    def release(self) -> None:
        """Drop the arrays that the program was compiled with."""
        for argument in self._program.arguments:
            argument.release()

    def __repr__(self) -> str:
        kernels = ", ".join(kernel.name for kernel in self.kernels) or "no kernels"
        return f"<compiled {self.host.name} ({kernels})>"

    def _repr_html_(self) -> str:
        """The IR of the kernels and of the host function, each under its name."""
        functions = [(f"kernel {kernel.name}", str(kernel)) for kernel in self.kernels]
        return preformatted(repr(self)) + folded([*functions, (f"host function {self.host.name}", str(self.host))])

    def export_to_c(
        self,
        file_path: str | PathLike[str] | None = None,
        file_name: str | None = None,
        function_prefix: str = "",
        *,
        object_file_path: str | PathLike[str] | None = None,
        function_name: str = "",
        gpu_arch: str | Sequence[str] = (),
        constants: Mapping[str, int] | None = None,
    ) -> None:
        """Write the function as C, to be built into a program that has no Python (docs/ahead_of_time.md).

        Files in the folder ``file_path``: ``{file_name}.h``, the C interface; ``{file_name}.c``, the launcher with the
        kernels' machine code in it, which any C compiler builds without CUDA's headers or libraries; and
        ``{file_name}.o``, if there is a C compiler (``CC``, cc, gcc or clang; else a warning says that none was found).
        Files of that name are overwritten. The names of the C functions begin with ``function_prefix``, by default
        the ``file_name``. ``cute.runtime.load_module`` loads the function back.

        The kernels are compiled for the architectures ``gpu_arch`` (``"sm_90a"``, or several: ``("sm_80", "sm_90a")``;
        by default that of ``cute.compile``'s ``--gpu-arch``, else that of the GPU here, else sm_90a); no GPU is needed.
        ``export_to_c(object_file_path="folder/name.o", function_name="prefix")`` is the same in one path; a path that
        ends otherwise gets the object file alone, as caches of libraries want it.
        ``constants``: numbers that the C program needs, such as ``{"WORKSPACE_BYTES": n}``: a macro
        ``{prefix}_WORKSPACE_BYTES`` of the header.

        Raises before a file is written: ArgumentError for a prefix that is not a C name or is another file's in the
        folder, for arguments and host code that have no C form, and for a folder that cannot be written;
        ConstraintError for an instruction that an architecture lacks; CompileError and MachineError from the
        compilers.
        """
        __tracebackhide__ = True
        write: Any = import_module(EXPORTER).export_to_c
        if (file_path is None) == (object_file_path is None) or (
            object_file_path is not None and file_name is not None
        ):
            raise ArgumentError(
                "export_to_c: give file_path (and file_name), or object_file_path, the path of the .o file"
            )
        more: dict[str, Any] = {"function_name": function_name, "gpu_arch": gpu_arch, "constants": constants}
        more["object_file"] = object_file_path is not None
        write(self, object_file_path or file_path, file_name, function_prefix, **more)

    @property
    def equal_values(self) -> list[tuple[int, int]]:
        """Pairs of run-time values, by position, that a stand-in's symbol says are one number."""
        return self._code.equal

    @property
    def written(self) -> dict[int, Any]:
        """The run-time values, by position, whose memory is written, with an operation that does."""
        return self._code.written

    def _artifact(self, name: str) -> Any:
        """A product of the device compiler, of the first kernel: text for one, a list for several."""
        compiler: Any = import_module(MACHINES["cuda"])  # not the machine: compiling needs no GPU
        texts = [getattr(compiler.artifact(kernel, self.options), name) for kernel in self.kernels]
        return texts[0] if len(texts) == 1 else texts

    @property
    def __cuda__(self) -> Any:
        """The CUDA C++ of the kernel (a list for several), which needs no compiler."""
        compiler: Any = import_module(MACHINES["cuda"])
        texts = [compiler.text(kernel, self.options) for kernel in self.kernels]
        return texts[0] if len(texts) == 1 else texts

    @property
    def __ptx__(self) -> Any:
        """The PTX of the kernel (a list for several)."""
        return self._artifact("ptx")

    @property
    def __cubin__(self) -> Any:
        """The cubin of the kernel (a list for several)."""
        return self._artifact("cubin")

    @property
    def __sass__(self) -> Any:
        """The machine code of the kernel as text (a list for several); ``nvdisasm`` must be installed."""
        return self._artifact("sass")

    @property
    def __mlir__(self) -> str:
        """The IR of the host function and its kernels as text."""
        return "\n".join(map(str, (self.host, *self.kernels)))


def _equal_values(arguments: list[Argument]) -> list[tuple[int, int]]:
    """Pairs of run-time values (by position) that are one symbol of stand-in tensors."""
    first: dict[int, int] = {}
    pairs: list[tuple[int, int]] = []
    at = 0
    for argument in [leaf for argument_tree in arguments for leaf in _leaves(argument_tree)]:
        symbols = getattr(getattr(argument, "template", None), "symbols", ())
        for k, symbol in enumerate(symbols, at + 1):  # the first value is the pointer
            if first.setdefault(id(symbol), k) != k:
                pairs.append((first[id(symbol)], k))
        at += len(argument.types())
    return pairs


def _leaves(argument: Argument) -> list[Argument]:
    return (
        [leaf for part in argument.parts for leaf in _leaves(part)]
        if isinstance(argument, CompoundArgument)
        else [argument]
    )


def _runtime_parameters(
    signature: Signature, bound: inspect.BoundArguments, arguments: list[Argument], skip: int
) -> list[Parameter]:
    parameters = []
    listed = list(signature.parameters(bound))
    for i, ((name, _, _), argument) in enumerate(zip(listed, arguments, strict=True)):
        if i < skip or name.partition("[")[0] in signature.constexpr:
            if argument.types():
                raise ArgumentError(f"argument '{name}': a bound object with run-time parts cannot be compiled")
            continue
        if isinstance(argument, OmittedArgument):
            continue
        declared = signature.python.parameters.get(name)
        default = declared.default if declared is not None else inspect.Parameter.empty
        parameters.append(Parameter(name, argument, default))
    return parameters
