"""Stand-ins for arguments when compiling ahead of the data: tensors of a shape and type without memory."""

from __future__ import annotations

from typing import Any

from tilewright.errors import ArgumentError
from tilewright.ir.runtime import DevicePointer
from tilewright.ir.types import MemSpace
from tilewright.lang.arguments.arrays import Array
from tilewright.lang.arguments.dlpack import HostTensor, _dynamic, _layout
from tilewright.lang.arguments.streams import ENVIRONMENT_STREAM, default_stream
from tilewright.lang.numbers.numeric import Int32 as Int32
from tilewright.lang.numbers.numeric import Integer
from tilewright.lang.tensors.host_pointer import HostPointer
from tilewright.lang.tensors.pointer import AddressSpace, element_bytes


class FakeTensor(HostTensor):
    """What :func:`make_fake_tensor` and :func:`make_fake_compact_tensor` give: a tensor of a shape and type without
    memory, to compile with. As an annotation it takes what ``cute.Tensor`` takes.

    >>> from tilewright import Float16
    >>> isinstance(make_fake_compact_tensor(Float16, (cute.sym_int(), 8)), FakeTensor)
    True
    """

    __slots__ = ()


def make_fake_tensor(
    dtype: Any,
    shape: tuple[Any, ...],
    stride: tuple[Any, ...],
    *,
    memspace: AddressSpace = AddressSpace.gmem,
    assumed_align: int | None = None,
    loc: Any = None,
    ip: Any = None,
) -> FakeTensor:
    """A tensor to compile with; in ``shape`` and ``stride``, ints are static and ``SymInt`` is passed at each call.

    One ``SymInt`` in several places (also of several tensors) is one number: a call with others is an error.

    >>> from tilewright import Float16
    >>> from tilewright.cute.runtime import make_fake_tensor
    >>> rows = cute.sym_int(divisibility=8)
    >>> make_fake_tensor(Float16, (rows, 64), (64, 1), assumed_align=16).type
    TensorType(element_type='f16', memspace='gmem', alignment=16, layout=(?{div=8},64):(64,1))
    """
    if memspace not in (AddressSpace.gmem, AddressSpace.generic):
        raise ArgumentError(f"make_fake_tensor: arguments must be in global memory (gmem), not in {memspace}")
    if len(shape) != len(stride):
        raise ArgumentError(f"make_fake_tensor: shape {shape} and stride {stride} differ in rank")
    align = assumed_align or element_bytes(dtype)
    leaves = tuple(_leaf(n) for n in shape), tuple(_leaf(d) for d in stride)
    numbers = [tuple(int(x.value) if isinstance(x, Integer) else x for x in part) for part in leaves]
    array = Array(0, "cpu", numbers[0], numbers[1], dtype, None)
    pointer = HostPointer(DevicePointer(0, "cpu", 0, 0, None), dtype, MemSpace.GMEM, align)
    made = FakeTensor(pointer, _layout(*leaves), array)
    made.symbols = tuple(x for x in (*shape, *stride) if _open(x))
    return made


def make_fake_compact_tensor(
    dtype: Any,
    shape: tuple[Any, ...],
    *,
    stride_order: tuple[int, ...] | None = None,
    memspace: AddressSpace = AddressSpace.gmem,
    assumed_align: int | None = None,
    use_32bit_stride: bool = False,
    loc: Any = None,
    ip: Any = None,
) -> FakeTensor:
    """A compact tensor to compile with; ``stride_order`` ranks the modes (0: fastest), by default in order.
    ``use_32bit_stride`` promises that strides fit in 32 bits, which each call checks with it or without.

    >>> from tilewright import Float32
    >>> from tilewright.cute.runtime import make_fake_compact_tensor
    >>> @cute.kernel
    ... def clear(x: cute.Tensor):
    ...     x[cute.arch.thread_idx()[0], cute.arch.block_idx()[0]] = 0.0
    >>> @cute.jit
    ... def run(x: cute.Tensor):
    ...     clear(x).launch(grid=(x.shape[1], 1, 1), block=(x.shape[0], 1, 1))
    >>> compiled = cute.compile(run, make_fake_compact_tensor(Float32, (cute.sym_int(), 8), stride_order=(1, 0)))
    >>> x = np.ones((3, 8), np.float32)
    >>> compiled(x)  # any number of rows
    >>> float(x.sum())
    0.0
    """
    order = tuple(stride_order) if stride_order is not None else tuple(range(len(shape)))
    stride: list[Any] = [None] * len(shape)
    step: Any = 1
    for mode in sorted(range(len(shape)), key=lambda m: order[m]):
        stride[mode] = step
        step = (
            SymInt(divisibility=_divisor(step) * _divisor(shape[mode]))
            if _open(step) or _open(shape[mode])
            else step * shape[mode]
        )
    return make_fake_tensor(dtype, shape, tuple(stride), memspace=memspace, assumed_align=assumed_align)


def make_fake_stream(*, use_tvm_ffi_env_stream: bool = False, loc: Any = None, ip: Any = None) -> Any:
    """A stream to compile with.

    With ``use_tvm_ffi_env_stream`` the compiled function has no stream among its arguments: it launches on the current
    stream of the framework whose arrays it is given.

    >>> from tilewright.cute.runtime import make_fake_stream
    >>> make_fake_stream()
    0
    """
    return ENVIRONMENT_STREAM if use_tvm_ffi_env_stream else default_stream()


class SymInt:
    """An extent or stride that is passed at each call; ``divisibility`` promises a divisor.

    >>> n = cute.SymInt(divisibility=8)
    >>> n, n * 4
    (?{i32 div=8}, ?{i32 div=32})
    """

    def __init__(self, width: int = 32, *, divisibility: int = 1) -> None:
        if width not in (32, 64) or not isinstance(divisibility, int) or divisibility < 1:
            raise ArgumentError(f"SymInt({width!r}, divisibility={divisibility!r}): 32 or 64 bits, a positive divisor")
        self.width, self.divisibility = width, divisibility

    def __repr__(self) -> str:
        return f"?{{i{self.width} div={self.divisibility}}}"

    def __mul__(self, other: Any) -> SymInt:
        return SymInt(self.width, divisibility=self.divisibility * _divisor(other))

    __rmul__ = __mul__


def sym_int(width: int = 32, *, divisibility: int = 1) -> SymInt:
    """An extent or stride of a stand-in tensor that is passed at each call, known to be a multiple of ``divisibility``.

    >>> make_fake_compact_tensor(Int32, (sym_int(divisibility=8), 4), stride_order=(1, 0)).layout
    (?{div=8},4):(4,1)
    """
    return SymInt(width, divisibility=divisibility)


def sym_int32(divisibility: int = 1) -> SymInt:
    """A :class:`SymInt` of 32 bits.

    >>> sym_int32(divisibility=8)
    ?{i32 div=8}
    """
    return SymInt(32, divisibility=divisibility)


def sym_int64(divisibility: int = 1) -> SymInt:
    """A :class:`SymInt` of 64 bits: strides of arrays with more elements than 32 bits count.

    >>> sym_int64(divisibility=16)
    ?{i64 div=16}
    """
    return SymInt(64, divisibility=divisibility)


def _open(x: Any) -> bool:
    return isinstance(x, SymInt)


def _divisor(x: Any) -> int:
    return x.divisibility if isinstance(x, SymInt) else int(x)


def _leaf(x: Any) -> Any:
    if isinstance(x, SymInt):
        return _dynamic(x.divisibility, x.divisibility, x.width == 64)
    if not isinstance(x, int):
        raise ArgumentError(f"a fake tensor has ints and sym_int() in its shape and stride, not {x!r}")
    return x
