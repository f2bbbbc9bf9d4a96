"""A kernel staged into IR, once for each specialisation in a host function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tilewright.errors import StagingError, VerifyError
from tilewright.ir.core import Block, Function, Location, Value, Variable
from tilewright.ir.passes.cse import eliminate_common_subexpressions
from tilewright.ir.passes.dce import eliminate_dead_code
from tilewright.ir.passes.settle import settle_registers
from tilewright.ir.passes.sink import sink_divisions
from tilewright.ir.target import MOST_SMEM
from tilewright.ir.types import PtrType
from tilewright.ir.verify import verify
from tilewright.lang.arguments.signature import adapt, is_constexpr, is_integer_tree, numeric_annotation
from tilewright.lang.launch.dependencies import Dependencies
from tilewright.lang.numbers.facts import Facts
from tilewright.lang.numbers.numeric import Integer, Numeric
from tilewright.lang.staging import objects
from tilewright.lang.staging import values as run_time
from tilewright.lang.staging.builder import HostBuilder, StagingBuilder
from tilewright.lang.staging.location import fail
from tilewright.lang.staging.values import Spec

if TYPE_CHECKING:
    from tilewright.lang.launch.kernel import KernelFunction


class StagedKernel(NamedTuple):
    """A kernel's IR, the numbers of the parameters that it reads, all parameters, and what it was staged from."""

    function: Function
    kept: list[int]
    params: list[Value]
    dependencies: Dependencies


def stage_kernel(
    kernel: KernelFunction[...], bound: Any, bounds: dict[str, Any], block_shape: tuple[int | None, ...] = ()
) -> tuple[list[Value], Function]:
    """The values that the kernel takes, and its IR; one function for equal specialisations.

    ``bounds`` are those that the compiler is told (``max_threads``, ``min_blocks``, ``cluster``).
    """
    builder = HostBuilder.now()
    given = [(name, note, adapt(name, value, note)) for name, note, value in kernel.signature.parameters(bound)]
    specs = [_spec(name, note, value) for name, note, value in given]
    values = [v for (name, _, value), spec in zip(given, specs, strict=True) for v in spec.conform(value, name)]
    key = (kernel.function, kernel.prefix, tuple(spec.key() for spec in specs), tuple(bounds.values()), block_shape)
    specialisations = builder.kernels.setdefault(key, [])
    made = next((one for one in reversed(specialisations) if one.dependencies.hold()), None)
    first = made is None
    if made is None:
        # The host function may change what the kernel reads before it launches it again: that is another kernel.
        # ``before`` leaves out what staging itself changes.
        fixed = [spec.value for spec in specs if isinstance(spec, run_time.StaticSpec)]
        before, start = Dependencies([kernel.function], fixed), len(builder.dependencies)
        function, kept, params = _trace(kernel, bound, given, specs, bounds, block_shape)
        functions = [kernel.function, *builder.dependencies[start:]]
        made = StagedKernel(function, kept, params, Dependencies(functions, fixed, before))
        specialisations.append(made)
    function, kept, params, _ = made
    # An extent need not be passed if an array of the launch has it; with several launches, if an array of each has it.
    fresh = _extents(values, kept, params)
    function.extents = fresh if first else {p: at for p, at in function.extents.items() if fresh.get(p) == at}
    return [values[i] for i in kept], function


def _extents(values: list[Value], kept: list[int], params: list[Value]) -> dict[Value, tuple[int, int]]:
    """The parameters that are not passed because they are extents of an array that is passed (:class:`Function`)."""
    arrays = {values[i].hint: at for at, i in enumerate(kept) if isinstance(values[i].type, PtrType)}
    extents = {}
    for i, value in enumerate(values):
        name = value.hint
        if i in kept or value.op is not None or not isinstance(name, run_time.ExtentName):
            continue
        if name.array in arrays and name.mode is not None:
            extents[params[i]] = (arrays[name.array], name.mode)
    return extents


def _spec(name: str, annotation: Any, value: Any) -> Spec:
    """The static part of an argument, and its run-time values."""
    if is_constexpr(annotation) or (type(value) is int and is_integer_tree(annotation)):
        return run_time.StaticSpec(value)
    if type(value) in objects.LITERALS:
        return run_time.NumberSpec(objects.number_class(value), True)
    cls = numeric_annotation(annotation)
    if cls is not None and not isinstance(value, Numeric):
        raise fail(f"kernel argument '{name}': expected a {cls.__name__}, got {objects.describe(value)}")
    spec = run_time.spec_of(value, promote=False)
    _learn(spec, value)
    return spec


def _learn(spec: Spec, value: Any) -> None:
    """Facts about run-time integers of the host hold inside the kernel."""
    if isinstance(spec, run_time.NumberSpec) and isinstance(value, Integer) and not value.is_static:
        spec.facts = Facts(value.facts.nonneg, value.facts.divisibility, value.facts.bound)
    elif isinstance(spec, run_time.CompoundSpec):
        for part, item in zip(spec.parts, spec.split(value), strict=True):
            _learn(part, item)


def _trace(
    kernel: KernelFunction[...],
    bound: Any,
    given: list[Any],
    specs: list[Spec],
    bounds: dict[str, Any],
    block_shape: tuple[int | None, ...],
) -> tuple[Function, list[int], list[Value]]:
    """The kernel's IR, the numbers of the parameters that it reads, and all parameters."""
    host = HostBuilder.now()
    params = _parameters(given, specs)
    function = Function(_name(host, kernel.name), "kernel", Block(list(params)))
    host.dependencies.append(kernel.function)
    shape = (*block_shape, 1, 1)[:3] if block_shape else None
    builder = StagingBuilder(function.body, host.dependencies, shape, host.given)
    _run_body(kernel, bound, [name for name, _, _ in given], specs, params, function, builder)
    function.attrs.update(bounds, smem_bytes=builder.smem_bytes, source=kernel.function.__code__.co_filename)
    if any(op.opcode == "call" and op.attrs["atom"].caps_registers for op in function.walk()):
        function.attrs["min_blocks"] = bounds["min_blocks"] or 1  # without it the compiler ignores setmaxnreg
    if builder.smem_bytes > MOST_SMEM:
        raise fail(
            f"the kernel {function.name} allocates {builder.smem_bytes} bytes of shared memory; "
            f"a block has {MOST_SMEM} at most"
        )
    _finish(function)
    used = {operand for op in function.walk() for operand in op.operands}
    kept = [i for i, p in enumerate(params) if p in used]
    function.body.args[:] = [params[i] for i in kept]
    return function, kept, params


def _parameters(given: list[Any], specs: list[Spec]) -> list[Value]:
    """The run-time values of all arguments, with the names that they have in IR and CUDA text."""
    params: list[Value] = []
    for (name, _, value), spec in zip(given, specs, strict=True):
        labels = run_time.value_names(spec, value, name)
        params += [Value(t, label) for t, label in zip(spec.types(), labels, strict=True)]
    return params


def _run_body(
    kernel: KernelFunction[...],
    bound: Any,
    names: list[str],
    specs: list[Spec],
    params: list[Value],
    function: Function,
    builder: StagingBuilder,
) -> None:
    """Call the kernel's code with handles of the parameters; its operations are recorded in ``function``."""
    code = kernel.function.__code__
    start = Location(code.co_filename, code.co_firstlineno)
    rest = iter(params)
    function.variables = builder.variables
    with builder.activate():
        received = [kernel.received(spec.rebuild(rest)) for spec in specs]
        builder.variables += [Variable(name, x, start) for name, x in zip(names, received, strict=True)]
        result = kernel.signature.call(kernel.code, bound, received)
    if result is not None:
        raise StagingError(
            f"the kernel {kernel.function.__qualname__} returns {result!r}; a kernel returns nothing: "
            "write results into a tensor that it takes"
        )


def _name(host: HostBuilder, base: str) -> str:
    """``base``, or ``base_1``, ``base_2``, ... where kernels of the host function have it."""
    taken = {made.function.name for specialisations in host.kernels.values() for made in specialisations}
    return base if base not in taken else next(n for i in range(1, 1 << 20) if (n := f"{base}_{i}") not in taken)


def _finish(function: Function) -> None:
    """Run the passes, and verify what they leave."""
    eliminate_common_subexpressions(function)
    eliminate_dead_code(function)
    sink_divisions(function)
    settle_registers(function)
    try:
        verify(function)
    except VerifyError as wrong:
        if "outside its scope" not in str(wrong):
            raise
        raise StagingError(
            f"{wrong}\na run-time value is used where it does not exist: values of the host reach a kernel only as its "
            "arguments, and values made inside a run-time branch or loop leave it only through variables "
            "assigned before it"
        ) from None
