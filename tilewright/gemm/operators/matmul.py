"""``matmul``: a product of arrays of any framework, by whatever kernel, size and decomposition should be fastest."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from tilewright.errors import ArgumentError, TilewrightError
from tilewright.gemm.arrays import Matrix
from tilewright.gemm.choice.registry import KERNELS, candidates
from tilewright.gemm.choice.simulated import warn_if_slow
from tilewright.gemm.epilogue.activations import Activation, activation_of
from tilewright.gemm.epilogue.functions import Bias, Chain, EpilogueFunction, is_untransposed, stores_result
from tilewright.gemm.family.entry import KernelEntry
from tilewright.gemm.host.epilogue_operands import check_epilogue
from tilewright.gemm.host.handle import Handle
from tilewright.gemm.host.plan import Plan, simulated_gpu
from tilewright.gemm.host.problem import Problem
from tilewright.gemm.host.recorded import current, planned_alone, prepared_launch
from tilewright.gemm.host.scales import check_result, linear_combination
from tilewright.gemm.host.universal import MAY_PACK
from tilewright.gemm.operators.arrays import (
    Operands,
    Unseen,
    contiguous_bias,
    framework,
    is_traced,
    new_result,
    one_framework,
    operands,
    unwritten_result,
    view_of,
)
from tilewright.gemm.operators.call_arrays import CallArrays
from tilewright.gemm.operators.epilogues import (
    arrays_of,
    functions_of,
    in_place_of_result,
    key_of,
    lowered,
    seen_as_matrices,
    source_apart,
)
from tilewright.gemm.operators.forms import recorded_form
from tilewright.gemm.operators.launches import is_captured
from tilewright.gemm.operators.meanwhile import in_place_of, product_of
from tilewright.gemm.operators.permuted import PermutedOperand, as_arrays
from tilewright.gemm.operators.planned import by_few_kernels, by_the_model, for_functions
from tilewright.gemm.operators.prepared import Prepared
from tilewright.gemm.operators.repeated import (
    RepeatedProduct,
    Repetitions,
    Until,
    geometry,
    launch_repeated,
    torch_key,
)
from tilewright.gemm.operators.rows import LaunchesByRows, plan_for_rows, rows_are_free, rows_key, rows_of
from tilewright.gemm.operators.torch_state import any_recorded, autocast, materialised
from tilewright.gemm.schedule.splitk import SplitK
from tilewright.gemm.schedule.streamk import StreamK
from tilewright.gemm.tuning import store
from tilewright.gemm.tuning.stand_in import numeric_class
from tilewright.lang.arguments.arrays import array_of
from tilewright.lang.arguments.dlpack import from_dlpack
from tilewright.lang.launch.machine import machine_of
from tilewright.lang.numbers.numeric import Float32

PRECISIONS = ("ieee", "tf32")
TF32 = ("hopper_tf32", "tensorop_tf32")
REMEMBERED = 4096
"""Geometries of PyTorch products whose launches are kept; more than that are forgotten together."""


def matmul(
    a: Any,
    b: Any,
    out: Any = None,
    c: Any = None,
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    bias: Any = None,
    activation: str | None = None,
    out_dtype: Any = None,
    precision: str = "ieee",
    kernel: str | KernelEntry | None = None,
    decomposition: str | StreamK | SplitK = "auto",
    epilogue: EpilogueFunction | Sequence[EpilogueFunction] | None = None,
) -> Any:
    """activation(alpha * a @ b + beta * c + bias): arrays in, an array of the same framework on the same device out.

    ``a`` and ``b`` are PyTorch tensors, or NumPy, CuPy or JAX arrays, of one dtype, multiplied by torch.matmul's rules:
    vectors count as a row or a column, leading dimensions are broadcast. Arrays on a GPU are multiplied there on
    PyTorch's current stream (CuPy and JAX: on the default one), without waiting for the result; arrays on the CPU in
    the simulator. Kernel, tile, stages, cluster, decomposition and order of tiles are chosen by a model of time, or as
    ``tune`` found them for this problem.

    Args:
        a: (..., M, K), or a vector of K numbers; or a :class:`PermutedOperand`, an interleaved one say.
        b: (..., K, N), or a vector of K numbers, of ``a``'s dtype; or a :class:`PermutedOperand`.
        out: where the result (..., M, N) goes; made if it is None.
        c: of the result's shape; read only where ``beta`` is not 0. It may be ``out`` itself. Where the result is one
            matrix it may be of another type (float32 beside 16 bits, say); its elements are then read one by one.
        bias: a vector of N numbers, added to every row.
        activation: a name in ``gemm.epilogue.activations.ACTIVATIONS`` ("relu", "gelu", ...), applied last, before
            rounding.
        out_dtype: of the result: a framework's dtype or a numeric class. By default that of ``out``, of ``c``, or of
            ``a`` (int8: Int32; 8-bit floats: Float16).
        alpha: the factor of the product. Where it is 0 the product is ignored, as in BLAS: NaN and infinity in
            ``a`` and ``b`` have no effect.
        beta: the factor of ``c``.
        precision: of float32 arrays: "ieee" multiplies in full, "tf32" on tensor cores with 10-bit mantissas.
        kernel: a kernel's name, as ``tilewright show`` lists them, in place of the choice.
        decomposition: how tiles are dealt out to blocks, as for :func:`gemm`, in place of the choice.
        epilogue: a function of ``gemm.epilogue`` or of your own, or a sequence of them, applied to all of the above
            before rounding. Its arrays are fields of the function, of the framework and the device of ``a``: vectors
            of M or N numbers, matrices of the result's shape, some of which may be written. Where PyTorch records the
            call, for gradients, those of ``gemm.epilogue`` are PyTorch's, applied to the result; JAX refuses them.

    PyTorch tensors that ask for gradients, and calls inside torch.compile and torch.vmap, go through the operator
    ``torch.ops.tilewright.matmul``. Under torch.autocast operands are cast as torch.matmul's are. JAX arrays may be
    tracers of jax.jit, jax.grad and jax.vmap.

    Raises:
        ArgumentError: operands that do not go together; nothing is launched.

    >>> a, b = np.ones((2, 3, 64), np.float16), np.ones((64, 5), np.float16)
    >>> d = matmul(a, b, bias=np.arange(-66, -61).astype(np.float16), activation="relu")
    >>> d.shape, d[0, 0].tolist()
    ((2, 3, 5), [0.0, 0.0, 0.0, 1.0, 2.0])
    """
    torch = sys.modules.get("torch")
    if isinstance(a, PermutedOperand) or isinstance(b, PermutedOperand):
        a, b = as_arrays(a, b)
    if c is not None and (out is not None or out_dtype is not None):
        c, beta, activation, epilogue = source_apart(a, c, beta, activation, epilogue, out, out_dtype)
    functions: tuple[Any, ...] = ()
    more: tuple[Any, ...] = ()
    instead = None
    if epilogue is not None:
        functions = functions_of(epilogue)
        more, instead = tuple(arrays_of(functions)), in_place_of_result(functions, out)
    if torch is not None and isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        if out is None and torch._C._is_any_autocast_enabled() and torch.is_autocast_enabled(a.device.type):
            a, b, c, bias = autocast(torch, a, b, c, bias)
        if any_recorded(torch, a, b, c, bias, *more):
            if (kernel, decomposition, precision) != (None, "auto", "ieee"):
                raise ArgumentError(
                    "kernel, decomposition and precision cannot be given where PyTorch records the call: for gradients "
                    "(call matmul under torch.no_grad()), by torch.compile, or for tensors of another class"
                )
            recorded = recorded_form("torch_op").recorded
            if not functions:
                return recorded(a, b, out, c, alpha, beta, bias, activation, out_dtype)
            from tilewright.gemm.operators.torch_epilogues import applied_by_pytorch

            if out is not None:
                raise ArgumentError("PyTorch records this call, and its epilogue is PyTorch's: call it without out")
            result = applied_by_pytorch(functions, recorded(a, b, None, c, alpha, beta, bias, activation, out_dtype))
            return result if instead is None else instead
        options: Any = (alpha, beta, activation, out_dtype, precision, kernel, decomposition)
        result = multiplied(a, b, out, c, bias, options, functions, more)
        return result if instead is None else instead
    request = Request(
        a, b, out, c, alpha, beta, bias, activation, out_dtype, precision, kernel, decomposition, functions=functions
    )
    if is_traced(a, b, c, bias, *more):
        return recorded_form("jax_op").traced(request)
    result = request.run()
    return result if instead is None else instead


def multiplied(
    a: Any, b: Any, out: Any, c: Any, bias: Any, options: Any, functions: tuple[Any, ...] = (),
    more: tuple[Any, ...] = (),
) -> Any:  # fmt: skip
    """The product of PyTorch tensors that nothing records: as it was launched before, if it was. ``options`` are those
    of :func:`matmul`, from alpha to decomposition; ``functions`` its epilogue, whose arrays are ``more``."""
    key: Any = None
    kernel = options[5]
    if (kernel is None or isinstance(kernel, str)) and current() is None:
        try:
            key = product_key(a, b, out, c, bias, (*options, key_of(functions, torch_key)) if functions else options)
            repeated = REPEATED_PRODUCTS.get(key) or from_other_rows(key, a, b, out, c, bias)
        except (RuntimeError, TypeError, AttributeError):  # no strides, no hash: whatever it is, it is an error
            key = repeated = None
        if repeated is not None:
            result = launch_repeated(repeated, a, b, out, c, more if bias is None else (bias, *more))
            if result is not None:
                return result
    alpha, beta, activation, out_dtype, precision, kernel, decomposition = options
    request = Request(
        a, b, out, c, alpha, beta, bias, activation, out_dtype, precision, kernel, decomposition, functions=functions
    )
    return request.run(key)


# -- the long way ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Request:
    """A call of :func:`matmul`: its arguments, read and checked, and the plan."""

    a: Any
    b: Any
    out: Any
    c: Any
    alpha: float
    beta: float
    bias: Any
    activation: str | None
    out_dtype: Any
    precision: str
    kernel: str | KernelEntry | None
    decomposition: str | StreamK | SplitK
    functions: tuple[Any, ...] = field(default=(), kw_only=True)
    """The ``epilogue``'s."""

    def run(self, key: Any = None) -> Any:
        """Check, choose, compile and launch; with a ``key`` the launch is remembered where it can be repeated."""
        arrays = self.read()
        matrices, problem, result = arrays.operands, arrays.problem, arrays.result
        if problem.is_empty:
            return result.reshape(matrices.shape)
        until: Until = None
        plan = self.plan(problem, arrays.entries)
        if key is not None:
            passing = self.passing(key, plan, arrays)
            plan, until = self.meanwhile(passing[0], arrays) or passing
        if problem.machine == "cpu":
            warn_if_slow(plan.entry.name, plan.config, problem.shape)
        if isinstance(plan.shares, SplitK) and plan.shares.mode == "parallel":  # two kernels
            Handle.of(plan, problem, arrays.function, machine_of(problem.D.device))()
            key = None
        else:
            prepared = Prepared(problem, plan, arrays.function)
            addresses = [matrix.array.address for matrix in problem.matrices]
            addresses += [array_of(x).address for x in (*(x.source for x in problem.parts), *arrays.vectors)]
            prepared_launch(prepared, tuple(addresses))
        if arrays.copied:
            result[...] = arrays.D.reshape(matrices.shape)
        elif key is not None and arrays.may_be_repeated(self):
            remembered = RepeatedProduct.of(prepared, matrices.shape, result.dtype, arrays.vectors, until)
            prepared.release()
            self.remember(key, remembered, arrays.entries)
        if framework(self.a) == "jax" and problem.machine != "cpu":
            target: Any = machine_of("cuda")
            target.synchronize(int(problem.D.device.partition(":")[2]))  # JAX does not know the stream
        return result if tuple(result.shape) == matrices.shape else result.reshape(matrices.shape)

    def read(self) -> CallArrays:
        """The operands as kernels take them, checked; the result is made where it is not given."""
        kind = one_framework(self.given(), {})
        matrices = self.operands()
        entries = self.entries(array_of(matrices.a).dtype)
        if kind == "jax":
            result = new_result(self.a, matrices.stack, self.result_dtype(entries[0]))
            D: Any = Unseen(result)
            copied = False
        else:
            result, dtype = self.out, self.result_dtype(entries[0])
            if self.leaves_result(matrices):
                D, copied = unwritten_result(self.a, matrices.stack, dtype), False
                result = D.source
            else:
                result = new_result(self.a, matrices.shape, dtype) if result is None else result
                D, copied = self.stack("out", result, matrices)
        C, c_copied = self.stack("c", self.c, matrices)
        problem = Problem.of(self.operand_a(matrices), matrices.b, C, D)
        vectors = self.vectors(problem)
        self.check_result(entries[0], problem)
        function = self.function(entries[0], problem, vectors)
        if is_untransposed(function):
            entries = [entry.untransposed for entry in entries]
        return CallArrays(matrices, problem, result, D, copied, c_copied, vectors, entries, function)

    def leaves_result(self, matrices: Operands) -> bool:
        """Whether no kernel writes the result, whose memory is then not reserved. A K that is split may meet there."""
        if stores_result(Chain(self.functions)) or isinstance(self.decomposition, SplitK) or self.c is not None:
            return False
        return self.out is None and len(matrices.stack) == 2

    def operands(self) -> Operands:
        """A and B as kernels take them."""
        return operands(materialised(self.a), materialised(self.b))

    def operand_a(self, matrices: Operands) -> Any:
        """A for the problem: an array or a :class:`Matrix`."""
        return matrices.a

    def given(self) -> dict[str, Any]:
        arrays = {"a": self.a, "b": self.b, "out": self.out, "c": self.c, "bias": self.bias}
        if self.out is not None and framework(self.out) == "jax":
            raise ArgumentError("JAX arrays are immutable: call matmul without out, and use its result")
        more = {f"array {i} of the epilogue": x for i, x in enumerate(arrays_of(self.functions))}
        return {name: x for name, x in (arrays | more).items() if x is not None}

    def entries(self, dtype: Any) -> list[KernelEntry]:
        """The kernels that may be taken, the best first."""
        if self.precision not in PRECISIONS:
            raise ArgumentError(f"precision is one of {', '.join(PRECISIONS)}, not {self.precision!r}")
        if self.precision == "tf32":
            if dtype is not Float32:
                raise ArgumentError(f"precision 'tf32' is one of float32 arrays; a is {dtype.__name__}: leave it out")
            if self.kernel is None:
                return [KERNELS[name] for name in TF32]
            if getattr(self.kernel, "name", self.kernel) not in TF32:
                raise ArgumentError(
                    f"precision 'tf32' beside kernel {getattr(self.kernel, 'name', self.kernel)!r}, which multiplies "
                    f"otherwise: leave one of them out; {' and '.join(TF32)} are the kernels of that precision"
                )
        return candidates(dtype, self.kernel)

    def result_dtype(self, entry: KernelEntry) -> Any:
        """The numeric class of a result that is not given."""
        if self.out_dtype is None:
            return Matrix.of("c", self.c).dtype if self.c is not None else entry.config.c.dtype
        return numeric_class(self.out_dtype)

    def check_result(self, entry: KernelEntry, problem: Problem) -> None:
        """ArgumentError where D cannot take what the kernel computes."""
        check_result(entry, problem)

    def stack(self, name: str, x: Any, matrices: Operands) -> tuple[Any, bool]:
        """``x`` (out or c) as the kernel takes it, and whether it is a copy."""
        if x is None:
            return None, False
        if tuple(x.shape) != matrices.shape:
            raise ArgumentError(f"{name} must have the shape of the result, {matrices.shape}, not {tuple(x.shape)}")
        dtype = None if self.out_dtype is None else numeric_class(self.out_dtype)
        if name == "out" and dtype is not None and array_of(x).dtype is not dtype:
            raise ArgumentError(f"out is {array_of(x).dtype}, and out_dtype {self.out_dtype}: give one of them")
        view = view_of(x, matrices.stack)
        if view is not None:
            return view, False
        if name == "out":  # the result is copied into it
            Matrix(name, x, array_of(x)).check_written()
        return x.reshape(matrices.stack), True

    @property
    def given_vectors(self) -> tuple[Any, ...]:
        """The arrays that the epilogue reads beside C, as they were given."""
        return (*(() if self.bias is None else (self.bias,)), *arrays_of(self.functions))

    def vectors(self, problem: Problem) -> tuple[Any, ...]:
        """The same as the kernel takes it."""
        bias = () if self.bias is None else (contiguous_bias(self.bias, problem),)
        return (*bias, *seen_as_matrices(self.functions))

    def function(self, entry: KernelEntry, problem: Problem, vectors: tuple[Any, ...]) -> EpilogueFunction:
        """alpha and beta, the bias, the activation and the functions of the epilogue, applied in this order."""
        kinds = entry.config.acc_dtype, problem.D.dtype
        biases = 0 if self.bias is None else 1
        parts: list[Any] = [linear_combination(entry, problem, self.alpha, self.beta)]
        parts += [Bias(from_dlpack(vector).mark_layout_dynamic()) for vector in vectors[:biases]]
        if self.activation is not None:
            parts.append(activation_of(self.activation, *kinds))
        if self.functions:
            parts += lowered(self.functions, vectors[biases:], *kinds)
            check_epilogue(Chain(tuple(parts)), problem)
        return parts[0] if len(parts) == 1 else Chain(tuple(parts))

    def plan(self, problem: Problem, entries: list[KernelEntry]) -> Plan:
        """As tuning found it, if nothing was asked for; else by the model."""
        if self.kernel is None and self.decomposition == "auto" and not self.functions:
            stored = store.find(problem)
            if stored is not None and stored.kernel in [entry.name for entry in entries]:
                # What the file says may be a size of another version of the library.
                with contextlib.suppress(TilewrightError):
                    plan = stored.plan(problem, problem.machine, self.may_pack)
                    planned_alone()
                    return plan
        planner = self.planner(entries, self.may_pack)
        if isinstance(self.decomposition, str):
            return plan_for_rows(problem, planner)
        planned_alone()
        return planner(problem)

    def passing(self, key: Any, plan: Plan, arrays: CallArrays) -> tuple[Plan, Until]:
        """The plan, or, until it has been launched often, a plan with a kernel that serves many numbers of rows."""
        problem, kept = arrays.problem, kept_by_rows(key, self.a, self.b, self.out, self.c, self.bias)
        if kept is None or self.decomposition != "auto" or is_captured() or kept.is_tuned(problem.shape[0]):
            return plan, None
        before, rows = REPEATED_PRODUCTS.get(key), problem.shape[0]
        often = before is not None and isinstance(before.until, Repetitions)
        entries = for_functions(arrays.entries, self.applied, problem)
        substitute = by_few_kernels(plan, entries, problem, arrays.function) if kept.may_pass(rows, often) else None
        if substitute is None and not often:
            return plan, None
        kept.take(rows, substitute or plan, substitute is not None)
        return (plan, None) if substitute is None else (substitute, Repetitions())

    def meanwhile(self, plan: Plan, arrays: CallArrays) -> tuple[Plan, Until] | None:
        """A plan with a kernel that is compiled already, and the future to wait for before it is replaced."""
        if self.decomposition != "auto" or self.functions or is_captured():
            return None
        product = product_of(arrays.problem, self.bias, self.activation)
        return None if product is None else in_place_of(plan, arrays.entries, arrays.problem, arrays.function, product)

    @property
    def may_pack(self) -> str:
        """The matrices that may be copied: not D beside a bias, a vector as long as D's rows, and the like."""
        return MAY_PACK[self.bias is None and not self.functions]

    def planner(self, entries: list[KernelEntry], may_pack: str) -> Callable[[Problem], Plan]:
        """Plans problems of this kind by the model."""
        return partial(by_the_model, entries, self.decomposition, may_pack, self.applied)

    @property
    def applied(self) -> tuple[Any, ...]:
        """The activation and the functions of the epilogue."""
        return (*(() if self.activation is None else (Activation(self.activation),)), *self.functions)

    def remember(self, key: Any, repeated: RepeatedProduct, entries: list[KernelEntry]) -> None:
        """Keep a launch for products of the same geometry, and of other numbers of rows if these change nothing but
        extents."""
        remember(key, repeated)
        (_, options, machine), prepared = key, repeated.prepared
        rows = rows_key(self.a, self.b, self.out, self.c, self.bias)
        fixed = self.functions or not isinstance(self.decomposition, str)  # vectors and matrices grow with the rows
        if rows is None or fixed or not rows_are_free(prepared.problem):
            return
        plan = self.planner(entries, self.may_pack)
        kept = _ROWS.setdefault((rows, options, machine), LaunchesByRows(prepared.problem, plan, repeated.dtype))
        kept.learn(repeated)


REPEATED_PRODUCTS: dict[Any, RepeatedProduct] = {}
"""Products that are repeated, by their geometry and by what was asked for."""
_ROWS: dict[Any, LaunchesByRows] = {}


def product_key(a: Any, b: Any, out: Any, c: Any, bias: Any, options: Any) -> Any:
    """The key of a product of PyTorch tensors, of which ``options`` are the options."""
    tensors = (  # what torch_key gives, in three quarters of the time
        geometry(a),
        geometry(b),
        None if out is None else geometry(out),
        None if c is None else geometry(c),
        None if bias is None else geometry(bias),
    )
    return tensors, options, simulated_gpu() if a.is_cpu else None


def remembered_product(a: Any, b: Any, options: Any) -> RepeatedProduct | None:
    """What is kept of a product of these two tensors."""
    return REPEATED_PRODUCTS.get(product_key(a, b, None, None, None, options))


def remember(key: Any, repeated: RepeatedProduct) -> None:
    if len(REPEATED_PRODUCTS) >= REMEMBERED:
        forget()
    REPEATED_PRODUCTS[key] = repeated


def forget() -> None:
    """Forget all launches: the next product of each geometry is planned again."""
    REPEATED_PRODUCTS.clear()
    _ROWS.clear()


store.when_kept(forget)


def from_other_rows(key: Any, a: Any, b: Any, out: Any, c: Any, bias: Any) -> RepeatedProduct | None:
    """Launch a product for the first time by the kept launch of a product that differs only in its number of rows."""
    kept = kept_by_rows(key, a, b, out, c, bias)
    repeated = None if kept is None else kept.product(rows_of(a), (*a.shape[:-1], b.shape[1]))
    if repeated is not None:
        remember(key, repeated)
    return repeated


def kept_by_rows(key: Any, a: Any, b: Any, out: Any, c: Any, bias: Any) -> LaunchesByRows | None:
    """The launches of a product that differ in their number of rows, if that is open and there are some."""
    _, options, machine = key
    rows = rows_key(a, b, out, c, bias)
    return None if rows is None else _ROWS.get((rows, options, machine))
