"""``cutlass_call``: a ``@cute.jit`` function as a JAX operation."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import prod
from typing import Any

from tilewright.errors import ArgumentError
from tilewright.jax import ffi
from tilewright.jax.specs import TensorSpec, compact
from tilewright.lang.arguments.arrays import Array
from tilewright.lang.arguments.streams import StreamHandle
from tilewright.lang.launch.compile import compile
from tilewright.lang.launch.jit import JitFunction
from tilewright.lang.numbers.dtypes import dtype as numeric

_numbers = itertools.count(1)
_known: dict[Any, int] = {}


def cutlass_call(
    fn: Callable[..., None],
    *,
    output_shape_dtype: Any,
    input_spec: Any = None,
    output_spec: Any = None,
    input_output_aliases: Mapping[int, int] | None = None,
    allow_cuda_graph: bool = True,
    compile_options: Any = None,
    use_static_tensors: bool = False,
    **kwargs: Any,
) -> Callable[..., Any]:
    """A function of JAX arrays that runs ``fn(stream, *inputs, *outputs, **kwargs)``; also inside ``jax.jit``. Outputs
    that share the buffer of an input are not among ``outputs``: ``fn`` writes that input.

    ``fn`` is a ``@cute.jit`` function (or a function that calls one). Its other inputs are read only; it writes the
    outputs, which the result holds in the structure of ``output_shape_dtype`` (``jax.ShapeDtypeStruct`` or a pytree of
    them).

    Kernels run in the simulator where JAX runs on the CPU, else on its GPU, in the stream that XLA gives.

    Args:
        input_spec, output_spec: a :class:`TensorSpec` or None for each array.
        input_output_aliases: input i and output o share one buffer: ``{i: o}``.
        allow_cuda_graph: accepted; XLA never puts the call into a CUDA graph, because this handler does not offer it.
        compile_options: as ``cute.compile(..., options=...)`` takes them.
        use_static_tensors: extents and strides become part of the compiled kernel where the spec does not say.
        kwargs: further keyword arguments of ``fn``: numbers and compile-time values.

    Raises ArgumentError for specs that do not fit the arrays. Where JAX knows the shapes while it traces the call,
    ``fn`` is staged then, and its errors are raised there.
    """
    import jax

    ffi.register()
    outputs, structure = jax.tree.flatten(output_shape_dtype)
    aliases = dict(input_output_aliases or {})

    def call(*inputs: Any) -> Any:
        arrays = jax.tree.leaves(inputs)
        specs = _specs("input_spec", input_spec, len(arrays)), _specs("output_spec", output_spec, len(outputs))
        _check_aliases(aliases, arrays, outputs)
        work = _StagedCall(fn, specs, use_static_tensors, compile_options, kwargs, aliases)
        shown = [_abstract(x) for x in (*arrays, *outputs)]
        if all(shape is not None for shape, _ in shown):
            work.prepare(shown)
        layouts = [
            [spec.order(len(x.shape)) for spec, x in zip(specs[k], many, strict=True)]
            for k, many in enumerate((arrays, outputs))
        ]
        run = jax.ffi.ffi_call(
            ffi.TARGET,
            [jax.ShapeDtypeStruct(o.shape, o.dtype) for o in outputs],
            vmap_method="sequential",
            input_output_aliases=aliases,
            input_layouts=layouts[0],
            output_layouts=layouts[1],
        )
        return jax.tree.unflatten(structure, run(*arrays, call=_numbered(work)))

    return call


def release_compile_cache() -> None:
    """Forget the functions that were compiled for calls. JAX programs that were traced before keep theirs."""
    _known.clear()


def _specs(name: str, given_specs: Any, count: int) -> tuple[TensorSpec, ...]:
    specs = (
        (given_specs,) * count
        if given_specs is None
        else (given_specs,)
        if isinstance(given_specs, TensorSpec)
        else tuple(given_specs)
    )
    if len(specs) != count:
        raise ArgumentError(f"cutlass_call: {name} has {len(specs)} specs for {count} arrays")
    return tuple(TensorSpec() if spec is None else spec for spec in specs)


def _check_aliases(aliases: Mapping[int, int], inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
    for i, o in aliases.items():
        if not (0 <= i < len(inputs) and 0 <= o < len(outputs)):
            raise ArgumentError(
                f"cutlass_call: input_output_aliases {{{i}: {o}}}; there are {len(inputs)} inputs and "
                f"{len(outputs)} outputs"
            )
        if (inputs[i].shape, inputs[i].dtype) != (outputs[o].shape, outputs[o].dtype):
            raise ArgumentError(
                f"cutlass_call: input {i} and output {o} share a buffer and differ: {inputs[i].shape} "
                f"{inputs[i].dtype}, {outputs[o].shape} {outputs[o].dtype}"
            )


def _abstract(x: Any) -> tuple[tuple[int, ...] | None, str]:
    """Shape and dtype of an array that JAX traces; the shape is None where it is symbolic."""
    shape = tuple(x.shape)
    return (shape if all(isinstance(n, int) for n in shape) else None), str(x.dtype)


def _numbered(work: _StagedCall) -> Any:
    """The number by which the handler finds ``work``; one number for equal calls, so that JAX compiles them once."""
    import numpy as np

    key = work.key()
    number = _known.get(key) if key is not None else None
    if number is None:
        number = next(_numbers)
        ffi.CALLS[number] = work.run
        if key is not None:
            _known[key] = number
    return np.int64(number)


class _StagedCall:
    """One call: a function with how it sees its arrays."""

    def __init__(
        self,
        fn: Any,
        specs: tuple[tuple[TensorSpec, ...], tuple[TensorSpec, ...]],
        static: bool,
        options: Any,
        kwargs: dict[str, Any],
        aliases: Mapping[int, int],
    ) -> None:
        self.fn, self.specs, self.static, self.kwargs, self.aliases = fn, specs, static, kwargs, aliases
        self.options = options
        self.executors: dict[Any, Callable[..., Any]] = {}

    def key(self) -> Any:
        # 2, 2.0 and True are equal, and so are 0.0 and -0.0; programs made of them are not.
        keywords = tuple((name, value, repr(value)) for name, value in sorted(self.kwargs.items()))
        key = (self.fn, self.specs, self.static, str(self.options), keywords, frozenset(self.aliases.items()))
        try:
            hash(key)
        except TypeError:
            return None
        return key

    def prepare(self, arrays: Sequence[Any]) -> None:
        """Stage the function for such arrays now: what is wrong with it is said where JAX traces the call."""
        split = len(self.specs[0])
        buffers = [ffi.Buffer(0, shape, dtype) for shape, dtype in arrays]
        self._executor(buffers[:split], buffers[split:], None)

    def run(self, inputs: list[ffi.Buffer], outputs: list[ffi.Buffer], stream: int | None) -> None:
        """Run with the buffers of one execution."""
        if stream is None:
            self._mark(inputs, outputs)
        run = self._executor(inputs, outputs, stream)
        run(StreamHandle(stream or 0), *self._tensors(inputs, outputs, stream))

    @staticmethod
    def _mark(inputs: list[ffi.Buffer], outputs: list[ffi.Buffer]) -> None:
        """XLA passes results as memory that nothing has written."""
        from tilewright.sim.empty_arrays import mark_made_at

        addresses = {buffer.address for buffer in inputs}
        for buffer in outputs:
            kind = numeric(buffer.dtype)
            if buffer.address not in addresses and kind.width >= 8:
                floating = kind.is_float and kind.width > 8
                mark_made_at(None, buffer.address, prod(buffer.shape) * kind.width // 8, "cutlass_call", floating)

    def _executor(self, inputs: list[ffi.Buffer], outputs: list[ffi.Buffer], stream: int | None) -> Callable[..., Any]:
        """The function compiled for such buffers. A function that is not marked ``@cute.jit`` calls one itself."""
        if not isinstance(self.fn, JitFunction):
            return partial(self.fn, **self.kwargs)
        key = tuple((b.shape, b.dtype) for b in (*inputs, *outputs))
        executor = self.executors.get(key)
        if executor is None:
            compiler = compile if self.options is None or isinstance(self.options, str) else compile[self.options]
            text = self.options if isinstance(self.options, str) else ""
            tensors = self._tensors(inputs, outputs, stream)
            made = compiler(self.fn, StreamHandle(stream or 0), *tensors, options=text, **self.kwargs)
            names = {p.name for p in made.parameters}
            executor = partial(made, **{k: v for k, v in self.kwargs.items() if k in names})
            self.executors[key] = executor
        return executor

    def _tensors(self, inputs: list[ffi.Buffer], outputs: list[ffi.Buffer], stream: int | None) -> list[Any]:
        device = "cpu" if stream is None else f"cuda:{ffi.current_gpu()}"
        groups = zip(self.specs, (inputs, outputs), (False, True), strict=True)
        tensors = []
        for specs, buffers, is_output in groups:
            for i, (spec, buffer) in enumerate(zip(specs, buffers, strict=True)):
                if is_output and i in self.aliases.values():
                    continue
                stride = compact(buffer.shape, spec.order(len(buffer.shape)))
                readonly = not is_output and i not in self.aliases
                array = Array(buffer.address, device, buffer.shape, stride, numeric(buffer.dtype), self, readonly)
                tensors.append(spec.tensor(array, self.static))
        return tensors
