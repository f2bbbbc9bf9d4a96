"""``@cute.kernel`` and ``kernel(args...).launch(...)``: what a launch may ask for, and the op of the host function that
it becomes. :mod:`.stage_kernel` stages the kernel."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Concatenate, Never, NoReturn, TypeAlias, overload

from tilewright.errors import LaunchError, StagingError
from tilewright.ir.builder import Builder
from tilewright.ir.core import Constant, Function, Value
from tilewright.ir.launch import OWN_SMEM, LaunchOperands
from tilewright.ir.runtime import cluster_fault, fallback_fault
from tilewright.ir.target import MOST_BLOCK, MOST_GRID, MOST_SMEM, MOST_THREADS
from tilewright.ir.types import I32, I64
from tilewright.lang.arguments.streams import stream_handle
from tilewright.lang.launch.marked import MarkedFunction, P, Q, mark
from tilewright.lang.launch.stage_kernel import stage_kernel
from tilewright.lang.launch.tensor_maps import check_tensor_maps
from tilewright.lang.numbers.numeric import Boolean, Int32, Integer, Numeric
from tilewright.lang.staging.builder import HostBuilder
from tilewright.lang.staging.expressions import if_
from tilewright.lang.staging.location import fail, here, user_frame
from tilewright.lang.staging.ranges import HintWarning

LIMITS = {"grid": MOST_GRID, "block": MOST_BLOCK, "cluster": (16, 16, 16), "fallback_cluster": (16, 16, 16)}
_LATER = ("async_deps",)  # documented; accepted while they ask for nothing


Extents: TypeAlias = int | Integer | Sequence[int | Integer]
"""Up to three numbers, along x, y and z."""


class KernelFunction(MarkedFunction[P, Any]):
    """A function marked ``@cute.kernel``. Call it in a ``@cute.jit`` function, then ``launch`` the result."""

    word = "kernel"

    @property
    def name(self) -> str:
        """The kernel's name in CUDA and in profiles: ``Gemm_kernel`` for a method ``kernel`` of ``Gemm``."""
        return self.prefix + self.function.__qualname__.rpartition("<locals>.")[2].replace(".", "_")

    def received(self, argument: Any) -> Any:
        """An argument as the kernel's code gets it."""
        return argument

    if TYPE_CHECKING:  # what the base class has, with the types of this one

        @overload
        def __get__(self, owner: None, cls: Any = None) -> KernelFunction[P]: ...
        @overload
        def __get__(self: KernelFunction[Concatenate[Any, Q]], owner: object, cls: Any = None) -> KernelFunction[Q]: ...
        def __get__(self, owner: Any, cls: Any = None) -> Any: ...

    @overload  # two signatures, for the same reason as in JitFunction
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> KernelCall: ...
    @overload
    def __call__(self, *args: Any, **kwargs: Any) -> KernelCall: ...
    def __call__(self, *args: Any, **kwargs: Any) -> KernelCall:
        if not Builder.active() or not isinstance(Builder.current(), HostBuilder):
            name = self.function.__name__
            way = f"write {name}(arguments).launch(grid=(x, y, z), block=(x, y, z)) in one"
            caller = user_frame(2)
            if caller is not None and caller.f_code.co_name.isidentifier():  # not <module>, <lambda>
                way = f"mark {caller.f_code.co_name}, which calls it, with @cute.jit, or {way}"
            if Builder.active():
                way = f"a kernel cannot launch kernels; mark {name} with @cute.jit to call it as a function"
            raise StagingError(
                f"the kernel {self.function.__qualname__} can only be launched from a @cute.jit function on the host: "
                f"{way}"
            )
        return KernelCall(self, args, kwargs)

    def __getitem__(self, configuration: Any) -> NoReturn:
        name = self.function.__name__
        raise StagingError(
            f"{name}[...]: a kernel is launched by {name}(arguments).launch(grid=(x, y, z), block=(x, y, z)) in a "
            "@cute.jit function"
        )

    def __repr__(self) -> str:
        return f"<kernel {self.function.__qualname__}>"


class KernelCall:
    """A kernel with its arguments, waiting for ``launch``."""

    def __init__(self, kernel: KernelFunction[...], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.kernel = kernel
        self.bound = kernel.signature.bind(args, kwargs)
        self.waiting = HostBuilder.now().waiting
        self.waiting[self] = here(2)

    def launch(
        self,
        *,
        grid: Extents = (1, 1, 1),
        block: Extents | None = None,
        cluster: Extents | None = None,
        fallback_cluster: Extents | None = None,
        smem: int | Integer | None = None,
        stream: Any = None,
        min_blocks_per_mp: int | None = None,
        max_number_threads: Extents | None = None,
        use_pdl: bool | Boolean = False,
        cooperative: bool = False,
        non_portable_cluster: bool = False,
        smem_merge_branch_allocs: bool = False,
        preferred_smem_carveout: int | None = None,
        **other: Never,
    ) -> None:
        """Append the launch to the host function. An extent is an int, or up to three ints or run-time integers along
        x, y and z; what is left out is 1.

        Args:
            grid: blocks along x, y and z, at most 2**31 - 1, 65535 and 65535. A grid with a 0 launches nothing.
            block: threads of a block along x, y and z, at most 1024, 1024 and 64, and 1024 in all. Left out, one
                thread; a kernel that asks for its thread, or synchronises threads, is then warned of.
            cluster: blocks of a cluster along x, y and z; 8 in all, and ``grid`` must be a multiple of them.
                None: no clusters.
            fallback_cluster: the clusters of blocks for which the GPU finds no room in clusters of ``cluster``, which
                are preferred then, and whole multiples of it along x, y and z (sm_100). The kernel asks which it is in
                (``cute.arch.block_in_cluster_dim()``); the simulator runs half of the grid in either.
            smem: dynamic shared memory in bytes. None, or less than that: what the kernel's allocations need.
            stream: a CUDA stream argument. None: the caller's current stream.
            min_blocks_per_mp: the compiler uses so few registers that as many blocks fit on a multiprocessor.
            max_number_threads: the most threads of a block, where ``block`` is not known while staging.
            use_pdl: the kernel may begin before the one before it in the stream has ended, and waits for it with
                ``cute.arch.griddepcontrol_wait`` (before sm_90, and with drivers before CUDA 12.3, it begins after it).
                A Boolean that is known at the launch only makes two launches, one of which is executed.
            cooperative: all blocks run at once, or the launch fails.
            non_portable_cluster: allow clusters of 9 to 16 blocks, which not every GPU with clusters has.
            smem_merge_branch_allocs, preferred_smem_carveout: hints, which are not followed; a ``HintWarning`` says so.

        Raises:
            LaunchError: an extent beyond these limits.
            StagingError: an option that is not known, or not of its type.
        """
        name = self.kernel.name
        self.waiting.pop(self, None)
        unknown: dict[str, Any] = other
        for option, value in unknown.items():
            if option not in _LATER or value:
                known = (
                    "grid, block, cluster, fallback_cluster, smem, stream, min_blocks_per_mp, max_number_threads, "
                    "use_pdl, cooperative, non_portable_cluster, smem_merge_branch_allocs and preferred_smem_carveout"
                )
                raise fail(f"launch of {name}: {option}={value!r} is not known; there are {known}")
        _warn_of_hints(smem_merge_branch_allocs, preferred_smem_carveout, name)
        given = {
            "grid": grid,
            "block": (1, 1, 1) if block is None else block,
            "cluster": (1, 1, 1) if cluster is None else cluster,
        }
        shape = {what: _dim3(dims, what, name) for what, dims in given.items()}
        extents = {what: tuple(map(_known, items)) for what, items in shape.items()}
        if isinstance(use_pdl, Boolean) and use_pdl.is_static:
            use_pdl = bool(use_pdl.value)
        at_launch = isinstance(use_pdl, Boolean)
        options = {"use_pdl": at_launch or use_pdl, "cooperative": cooperative}
        attributes = _attributes(options | {"non_portable_cluster": non_portable_cluster}, name)
        _check_cluster(extents, attributes, name)
        fallback = _fallback(fallback_cluster, extents, name)
        if min_blocks_per_mp is not None and (not isinstance(min_blocks_per_mp, int) or min_blocks_per_mp < 0):
            raise fail(f"launch of {name}: min_blocks_per_mp = {min_blocks_per_mp!r} is not a number of blocks")
        bounds = {
            "max_threads": _most_threads(max_number_threads, extents["block"], name),
            "min_blocks": min_blocks_per_mp,
            "cluster": _cluster_bound(extents["cluster"], fallback),
        }
        values, function = stage_kernel(self.kernel, self.bound, bounds, extents["block"])
        HostBuilder.now().smem_bytes_of[self.kernel.function] = function.attrs["smem_bytes"]
        check_tensor_maps(function, values)
        if block is None and (what := _asks_for_threads(function)):
            warnings.warn(
                f"launch of {name} without block=: blocks of one thread, and the kernel uses {what}. Write "
                "block=(threads, 1, 1), or block=1 where one thread is meant",
                HintWarning,
                stacklevel=2,
            )
        operands = LaunchOperands(
            _run_time(shape["grid"]),
            _run_time(shape["block"]),
            _run_time(shape["cluster"]),
            _smem(smem, function.attrs["smem_bytes"], name),
            None if stream is None else _stream(stream),
            values,
        )
        about = {"kernel": function, "has_stream": stream is not None}
        about |= {"fallback": fallback} if fallback is not None else {}
        _emit(operands, about, attributes, use_pdl if at_launch else None)

    __call__ = launch


def _warn_of_hints(merge: Any, carveout: Any, name: str) -> None:
    """What a launch may ask of shared memory without changing what the program means."""
    if not isinstance(merge, bool):
        raise fail(f"launch of {name}: smem_merge_branch_allocs = {merge!r} is not a bool")
    percent = isinstance(carveout, int) and not isinstance(carveout, bool) and 0 <= carveout <= 100
    if carveout is not None and not percent:
        raise fail(f"launch of {name}: preferred_smem_carveout = {carveout!r} is not a percentage, 0 to 100, or None")
    notes = {
        f"smem_merge_branch_allocs={merge}: allocations of all branches have places of their own": merge,
        f"preferred_smem_carveout={carveout}: the driver divides L1 and shared memory": percent,
    }
    for note in (note for note, asked in notes.items() if asked):
        warnings.warn(f"launch of {name}: {note}", HintWarning, stacklevel=3)


def _emit(operands: LaunchOperands, about: dict[str, Any], attributes: tuple[str, ...], use_pdl: Any) -> None:
    """The launch with these attributes; where ``use_pdl`` is a number of the run time, with that one or without it."""

    def emit(attributes: tuple[str, ...]) -> None:
        asked = {"attributes": attributes} if attributes else {}
        Builder.current().emit("launch", operands.flat, (), about | asked)

    if use_pdl is None:
        emit(attributes)
    else:
        without = tuple(x for x in attributes if x != "use_pdl")
        if_(use_pdl, lambda: emit(attributes), lambda: emit(without))


def _asks_for_threads(function: Function) -> str:
    """The name of an operation of the kernel that has no effect in a block of one thread; "" without such a one."""
    for op in function.walk():
        if op.opcode == "sreg" and op.attrs["name"].startswith(("tid.", "laneid", "warpid")):
            return "the thread's index"
        if op.opcode == "call" and (op.attrs["atom"].whole_block or op.attrs["atom"].shuffles):
            return f"the instruction {op.attrs['atom'].mnemonic()}"
    return ""


def _sole(item: Any) -> Any:
    """The number in a tuple of one: a mode of rank 1, as ``cute.tiled_divide(vector, (n,)).shape[1]`` is."""
    while isinstance(item, tuple) and len(item) == 1:
        item = item[0]
    return item


def _dim3(extents: Any, what: str, name: str) -> list[Any]:
    items = [_sole(item) for item in extents] if isinstance(extents, (tuple, list)) else [extents]
    if not 1 <= len(items) <= 3:
        raise fail(f"launch of {name}: {what} takes one to three numbers, got {len(items)}")
    for item in items:
        if not isinstance(item, (int, Integer)):
            raise fail(f"launch of {name}: {what} = {extents!r}: {item!r} is not an integer (// divides integers)")
    known_extents = [_known(item) for item in items]
    shown = f"launch of {name}: {what} = {tuple('?' if n is None else n for n in known_extents)}".replace("'", "")
    threads = math.prod(1 if n is None else n for n in known_extents)
    if what == "block" and threads > MOST_THREADS:
        raise LaunchError(str(fail(f"{shown} has {threads} threads; a block holds {MOST_THREADS} at most")))
    for n, most in zip(known_extents, LIMITS[what], strict=False):
        if n is not None and n < (what != "grid"):
            raise LaunchError(str(fail(f"{shown} has an extent of {n}")))
        if n is not None and n > most:
            raise LaunchError(str(fail(f"{shown} exceeds the machine's limits {LIMITS[what]}")))
    return [*items, *[1] * (3 - len(items))]


def _run_time(extents: Sequence[Any]) -> list[Value]:
    return [Int32(n).ir_value() for n in extents]


def _known(item: Any) -> int | None:
    if isinstance(item, Numeric):
        return int(item.value) if item.is_static else None
    return int(item)


def _attributes(switches: dict[str, Any], name: str) -> tuple[str, ...]:
    """The names of the launch attributes that are set (``ir.runtime.LAUNCH_ATTRIBUTES``)."""
    for option, value in switches.items():
        if not isinstance(value, bool):
            raise fail(f"launch of {name}: {option}={value!r}; it is True or False, known while staging")
    return tuple(option for option, value in switches.items() if value)


def _most_threads(max_threads: Any, block: tuple[int | None, ...], name: str) -> int | None:
    """The bound on the threads of a block that the kernel is compiled for."""
    threads = _product(block)
    if max_threads is None:
        return threads
    extents = [_known(x) for x in max_threads] if isinstance(max_threads, (tuple, list)) else [_known(max_threads)]
    most = _product(extents)
    if most is None or not 1 <= most <= MOST_THREADS:
        raise fail(f"launch of {name}: max_number_threads={max_threads!r}; ints whose product is 1 to {MOST_THREADS}")
    if threads is not None and threads > most:
        raise fail(f"launch of {name}: a block of {threads} threads, but max_number_threads={max_threads!r}")
    return most if threads is None else threads


def _product(extents: Sequence[int | None]) -> int | None:
    """None where an extent is known only when the kernel is launched."""
    known_extents = [n for n in extents if n is not None]
    return math.prod(known_extents) if len(known_extents) == len(extents) else None


def _check_cluster(known_shapes: dict[str, tuple[int | None, ...]], attributes: tuple[str, ...], name: str) -> None:
    """Refuse clusters that no launch can have; extents of the grid that are not known yet are taken as fitting. Those
    of a cluster are looked at by the launch."""
    clusters = known_shapes["cluster"]
    if None in clusters:
        return
    grid = [c if g is None else g for g, c in zip(known_shapes["grid"], clusters, strict=True)]
    if fault := cluster_fault(grid, clusters, attributes):  # type: ignore[arg-type]  # no None in them
        raise fail(f"launch of {name}: {fault}")


def _cluster_bound(cluster: tuple[int | None, ...], fallback: tuple[int, ...] | None) -> tuple[int | None, ...] | None:
    """The shape of the clusters that a kernel is compiled for; None without clusters, for two shapes, and for a shape
    that only the launch knows."""
    return None if cluster == (1, 1, 1) or None in cluster or fallback is not None else cluster


def _fallback(fallback: Any, known_shapes: dict[str, tuple[int | None, ...]], name: str) -> tuple[int, ...] | None:
    """The extents of ``fallback_cluster``; None where all clusters are of one shape."""
    if fallback is None:
        return None
    shape = tuple(map(_known, _dim3(fallback, "fallback_cluster", name)))
    if None in shape:
        raise fail(f"launch of {name}: fallback_cluster must be known while staging")
    clusters = known_shapes["cluster"]
    if None in clusters:
        raise fail(f"launch of {name}: cluster must be known while staging where there is a fallback_cluster")
    grid = [c if g is None else g for g, c in zip(known_shapes["grid"], clusters, strict=True)]
    if fault := fallback_fault(grid, clusters, shape):  # type: ignore[arg-type]  # no None in them
        raise fail(f"launch of {name}: {fault}")
    return None if shape == clusters else shape  # type: ignore[return-value]  # no None in it


def _smem(smem: Any, needed: int, name: str) -> Value:
    if smem is None:
        return OWN_SMEM
    if not isinstance(smem, (int, Integer)) or (_known(smem) or 0) < 0:
        raise fail(f"launch of {name}: smem = {smem!r} is not a number of bytes")
    known_size = _known(smem)
    if known_size is None:
        return Int32(smem).ir_value()
    size = max(known_size, needed)
    if size > MOST_SMEM:
        raise fail(f"launch of {name}: {size} bytes of shared memory; a block has {MOST_SMEM} at most")
    return Constant(I32, size)


def _stream(stream: Any) -> Value:
    values = getattr(stream, "__extract_mlir_values__", None)
    if values is not None:
        return values()[0]
    handle = stream_handle(stream)
    if handle is None:
        raise fail(f"launch: {stream!r} is not a CUDA stream")
    return Constant(I64, handle)


@overload
def kernel(function: Callable[P, Any], *, preprocessor: bool = True) -> KernelFunction[P]: ...
@overload
def kernel(*, preprocessor: bool = True) -> Callable[[Callable[P, Any]], KernelFunction[P]]: ...
def kernel(function: Any = None, *, preprocessor: bool = True, **unknown: Any) -> Any:
    """Decorator: a function that runs on every thread of a launch. Also ``@kernel(preprocessor=False)``.

    >>> @cute.kernel
    ... def iota(x: cute.Tensor):
    ...     thread, _, _ = cute.arch.thread_idx()
    ...     block, _, _ = cute.arch.block_idx()
    ...     x[block * 4 + thread] = block * 10 + thread
    >>> @cute.jit
    ... def run(x: cute.Tensor):
    ...     iota(x).launch(grid=(2, 1, 1), block=(4, 1, 1))
    >>> x = np.zeros(8, np.int32)
    >>> run(x)
    >>> x
    array([ 0,  1,  2,  3, 10, 11, 12, 13], dtype=int32)
    >>> iota(x)
    Traceback (most recent call last):
        ...
    tilewright.errors.StagingError: the kernel iota can only be launched from a @cute.jit function ...: ...
    """
    return mark(KernelFunction, function, preprocessor, unknown)
