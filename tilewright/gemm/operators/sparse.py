"""``sparse_matmul``: a 2:4 sparse matrix, compressed once by ``compress_2_4``, times a dense one, by wgmma.sp or
mma.sp."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tilewright import BFloat16, Float8E4M3FN, Float8E5M2, Float16, Float32, Int8, Int32
from tilewright.atoms.sparsity import (
    CHUNK,
    METADATA_K,
    METADATA_ROWS,
    SPARSITY,
    chunk_of,
    metadata_layout,
    word_k,
)
from tilewright.errors import ArgumentError
from tilewright.gemm.access import VECTOR
from tilewright.gemm.arrays import Matrix, SparseMatrix
from tilewright.gemm.choice.registry import sparse_kernels
from tilewright.gemm.config import Major
from tilewright.gemm.epilogue.functions import EpilogueFunction
from tilewright.gemm.family.entry import KernelEntry
from tilewright.gemm.host.plan import Plan, packing_for
from tilewright.gemm.host.problem import Problem, check_vector
from tilewright.gemm.host.universal import MAY_PACK
from tilewright.gemm.mainloop.tma import TmaMainloop
from tilewright.gemm.operators.arrays import Operands, as_jax, as_numpy, framework, namespace, row_major_copy
from tilewright.gemm.operators.epilogues import (
    arrays_of,
    dtype_key,
    functions_of,
    in_place_of_result,
    key_of,
    source_apart,
)
from tilewright.gemm.operators.forms import recorded_form
from tilewright.gemm.operators.matmul import Request, matmul
from tilewright.gemm.operators.repeated_call import is_torch, repeated_call
from tilewright.gemm.operators.torch_state import any_recorded, materialised
from tilewright.lang.arguments.arrays import array_of
from tilewright.lang.numbers.dtypes import numeric_of_dtype
from tilewright.layout import offsets

TYPES = (Float16, BFloat16, Float32, Float8E4M3FN, Float8E5M2, Int8)
THREADS, CHUNKS = 128, 8
"""Threads that hold the metadata of 64 x 64 elements, and the groups of four elements in the word of each."""


class CompressedMatrix(NamedTuple):
    """A 2:4 sparse matrix (M, K): the two stored ``values`` of each four neighbours of a row, (M, K / 2), and the
    ``metadata`` that say which these are, (ceil(K / 64), 128 * ceil(M / 64)) of int32 in the order in which the threads
    of wgmma.sp hold them. :func:`compress_2_4` makes it.

    >>> compress_2_4(np.zeros((64, 128), np.float16)).shape
    (64, 128)
    """

    values: Any
    metadata: Any

    @property
    def shape(self) -> tuple[int, int]:
        """(M, K)"""
        return int(self.values.shape[0]), SPARSITY * int(self.values.shape[1])

    def places(self) -> Any:
        """Where the stored elements are in their groups of four, (M, K / 4, 2) of int64; of Float32 in their pairs,
        (M, K / 2, 1)."""
        kind, width = framework(self.values), numeric_of_dtype(self.values.dtype).width
        (m, k), library = self.shape, namespace(self.values)
        down, across = -(-m // METADATA_ROWS), -(-k // word_k(width))
        rows, columns, shifts = word_places(width, self.values, kind, library)
        words = self.metadata.reshape(across, down, THREADS)
        of_threads = words.permute(2, 1, 0) if kind == "torch" else words.transpose(2, 1, 0)
        of_threads = (of_threads[:, None] >> shifts[:, None, None]) & 15  # (threads, groups of a word, down, across)
        blocks = library.zeros(
            (down, METADATA_ROWS, across, METADATA_K // CHUNK),
            dtype=library.int32 if kind == "jax" else library.int64,  # JAX has 64 bits where it is asked to
            **({"device": self.values.device} if kind == "torch" else {}),
        )
        if kind == "jax":  # its arrays do not change
            blocks = blocks.at[:, rows, :, columns].set(of_threads)
        else:
            blocks[:, rows, :, columns] = of_threads
        codes = blocks.reshape(down * METADATA_ROWS, across * METADATA_K // CHUNK)[:m, : k // chunk_of(width)]
        if width == 32:
            return (codes & 3)[..., None] // 2
        return library.stack((codes & 3, codes >> 2), -1)

    def to_dense(self) -> Any:
        """The matrix (M, K) with its zeros.

        >>> a = np.tile(np.array([0, 1, 0, 2], np.float16), (64, 16))
        >>> bool((compress_2_4(a).to_dense() == a).all())
        True
        """
        (m, k), places, kind = self.shape, self.places(), framework(self.values)
        chunk = chunk_of(numeric_of_dtype(self.values.dtype).width)
        if kind == "torch":
            stored = self.values.contiguous().view(bits_of(self.values)).reshape(places.shape)
            whole = stored.new_zeros(m, k // chunk, chunk).scatter_(2, places, stored)
            return whole.view(self.values.dtype).reshape(m, k)
        library, stored = namespace(self.values), self.values.reshape(places.shape)
        whole = library.zeros((m, k // chunk, chunk), self.values.dtype)
        if kind == "jax":
            return library.put_along_axis(whole, places, stored, 2, inplace=False).reshape(m, k)
        library.put_along_axis(whole, places, stored, 2)
        return whole.reshape(m, k)


def compress_2_4(a: Any) -> CompressedMatrix:
    """A matrix with at most two elements that are not zero in each four neighbours of a row, compressed on its device;
    of Float32, which the tensor cores read as TFloat32, with at most one in each two.

    Args:
        a: (M, K) of Float16, BFloat16, Float32, Float8E4M3FN, Float8E5M2 or Int8, K a multiple of 16 (of 32 for 8 bits,
            of 8 for 32): a PyTorch tensor, or a NumPy, CuPy or JAX array. Elements 4i to 4i + 3 of a row are
            neighbours, of Float32 2i and 2i + 1.

    Raises ArgumentError for others, with the first place that has too many.

    >>> a = np.zeros((64, 64), np.float16)
    >>> a[:, 1], a[:, 3] = 5, 6
    >>> values, metadata = compress_2_4(a)
    >>> values.shape, values[0, :4].tolist(), metadata.shape, hex(metadata[0, 0])  # places 1 and 3; 0 and 1
    ((64, 32), [5.0, 6.0, 0.0, 0.0], (1, 128), '0x444d444d')
    >>> a[7, 2] = 1
    >>> compress_2_4(a)
    Traceback (most recent call last):
    ...
    tilewright.errors.ArgumentError: a is not 2:4 sparse: row 7 has 3 elements that are not zero in columns 0 to 3
    """
    kind = framework(a, "a")
    if kind == "jax":
        return CompressedMatrix(*as_jax(a, *compress_2_4(as_numpy("a", a))))
    array = array_of(a)
    step = 8 * SPARSITY * VECTOR // array.dtype.width
    if array.dtype not in TYPES or len(array.shape) != 2 or array.shape[1] % step:
        choices = ", ".join(x.__name__ for x in TYPES)
        raise ArgumentError(
            f"a is an (M, K) matrix of PyTorch, NumPy, CuPy or JAX, of {choices}, K in {step}s, not "
            f"{array.dtype.__name__} of shape {tuple(array.shape)}: fill it up with zeros"
        )
    (m, k), library = array.shape, namespace(a)
    whole = materialised(a)
    each = chunk_of(array.dtype.width)
    nonzero = magnitudes(whole, array.dtype).reshape(m, k // each, each) != 0
    count = nonzero.sum(-1)
    if m and k and int(count.max()) > each // SPARSITY:
        many = (count > each // SPARSITY).reshape(-1)
        row, chunk = divmod(int(many.argmax() if kind != "torch" else many.int().argmax()), k // each)
        raise ArgumentError(
            f"a is not {each // SPARSITY}:{each} sparse: row {row} has {int(count[row, chunk])} elements that are not "
            f"zero in columns {each * chunk} to {each * chunk + each - 1}"
        )
    places = first_places(nonzero, kind)
    chunks = whole.reshape(m, k // each, each)
    if kind == "torch":
        values = chunks.view(bits_of(chunks)).gather(2, places).view(whole.dtype)
    else:
        values = library.take_along_axis(chunks, places, 2)
    if each == 2:  # the halves of an element
        places = (
            library.cat((2 * places, 2 * places + 1), -1)
            if kind == "torch"
            else library.concatenate((2 * places, 2 * places + 1), -1)
        )
    return CompressedMatrix(values.reshape(m, k // SPARSITY), words_of(places, array.dtype.width, kind, library))


def magnitudes(a: Any, dtype: Any) -> Any:
    """Numbers that are zero where the elements are; of 8-bit floats the bits but the sign."""
    if dtype not in (Float8E4M3FN, Float8E5M2):
        return a
    return a.view(namespace(a).uint8) & 0x7F


def bits_of(tensor: Any) -> Any:
    """The integers of PyTorch that are as long as a tensor's elements."""
    torch = sys.modules["torch"]
    return {1: torch.uint8, 2: torch.int16, 4: torch.int32}[tensor.element_size()]


def first_places(nonzero: Any, kind: str) -> Any:
    """The places of the elements that are stored of each group, (..., half of it), rising: those that are not zero, and
    as many others as are missing, the first ones."""
    library, each = namespace(nonzero), nonzero.shape[-1]
    stored = each // SPARSITY
    where = library.arange(each, dtype=library.uint8, **({"device": nonzero.device} if kind == "torch" else {}))
    keys = where + each * (nonzero == 0)  # elements that are zero come last
    if kind == "torch":
        return (keys.to(library.uint8).sort(-1).values[..., :stored] % each).sort(-1).values.long()
    return library.sort(library.sort(keys, -1)[..., :stored] % each, -1).astype(library.int64)


def word_places(width: int, beside: Any, kind: str, library: Any) -> tuple[Any, Any, Any]:
    """The rows and the groups of columns of 64 x 64 elements whose metadata the word of each thread has, (threads,
    groups of a word), and by how many bits each group is shifted; on the device of ``beside``."""
    where = offsets(metadata_layout(width)).reshape(4 * CHUNKS, THREADS).T[:, ::CHUNK]  # (thread, group of its word)
    places = where % METADATA_ROWS, where // METADATA_ROWS // CHUNK, CHUNK * np.arange(CHUNKS)
    if kind == "torch":
        rows, columns, shifts = (library.from_numpy(np.ascontiguousarray(x)).to(beside.device) for x in places)
    else:
        rows, columns, shifts = places if library is np else map(library.asarray, places)
    return rows, columns, shifts


def words_of(places: Any, width: int, kind: str, library: Any) -> Any:
    """The metadata of ``places`` (M, K / 4, 2): the 4 bits of each group of four, where the layout of the metadata has
    them; rows and columns that fill up blocks of 64 x 64 have the places 0 and 1."""
    m, groups, _ = places.shape
    down, across = -(-m // METADATA_ROWS), -(-groups * CHUNK // METADATA_K)
    codes = library.full(
        (down * METADATA_ROWS, across * METADATA_K // CHUNK),
        4,
        dtype=library.int64,
        **({"device": places.device} if kind == "torch" else {}),
    )
    codes[:m, :groups] = places[..., 0] | places[..., 1] << 2
    rows, columns, shifts = word_places(width, places, kind, library)
    blocks = codes.reshape(down, METADATA_ROWS, across, METADATA_K // CHUNK)
    of_threads = blocks[:, rows, :, columns]  # (threads, groups of a word, down, across)
    words = (of_threads << shifts[:, None, None]).sum(1)
    words = (words ^ 1 << 31) - (1 << 31)  # as int32 has it
    if kind == "torch":
        return words.permute(2, 1, 0).reshape(across, down * THREADS).to(library.int32).contiguous()
    return library.ascontiguousarray(words.transpose(2, 1, 0).reshape(across, down * THREADS)).astype(library.int32)


def sparse_matmul(
    a: CompressedMatrix,
    b: Any,
    out: Any = None,
    c: Any = None,
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    bias: Any = None,
    activation: str | None = None,
    out_dtype: Any = None,
    kernel: str | KernelEntry | None = None,
    decomposition: Any = "auto",
    epilogue: EpilogueFunction | Sequence[EpilogueFunction] | None = None,
) -> Any:
    """activation(alpha * a @ b + beta * c + bias), for a 2:4 sparse ``a`` on sparse tensor cores: by wgmma.sp on
    Hopper, by mma.sp from sm_80 on (8-bit floats: sm_89) with a K in 64s (of
    Float32 in 32s). Float32 is multiplied as TFloat32, with 10-bit mantissas.

    Args:
        a: what :func:`compress_2_4` gives for an (M, K) matrix. Of a layer whose weight (N, K) is sparse, ``a`` is the
            weight, ``b`` the transposed rows of the layer's input, and the result is transposed, too.
        b: (K, N) of the type of ``a``; of 8 and 32 bits it is copied where its columns are not contiguous.
        kernel: a name or an entry of ``gemm.choice.registry.sparse_kernels()``, in place of the choice.

    The other arguments are those of :func:`matmul`. ``torch.compile`` keeps the call as one node,
    ``torch.ops.tilewright.sparse_matmul``. Of 16- and 32-bit elements it has gradients, by dense products: of
    ``b``, ``c``, the bias, the arrays of the epilogue, which is PyTorch's there, and of the stored elements
    ``a.values``, whose places stay. With JAX arrays it is an operation of JAX, also in ``jax.jit`` and ``jax.vmap``,
    with the same gradients but those of an epilogue, which it refuses there.

    Raises ArgumentError, before anything is launched, for operands that do not go together.

    >>> a = np.tile(np.array([0, 1, 0, 2], np.float16), (64, 16))
    >>> sparse_matmul(compress_2_4(a), np.ones((64, 8), np.float16))[0, :3].tolist()  # 16 * (1 + 2)
    [48.0, 48.0, 48.0]
    """
    if not isinstance(a, CompressedMatrix):
        raise ArgumentError(f"a is {type(a).__name__}: compress it with compress_2_4 first")
    if framework(a.values, "a.values") and len(a.values.shape) != 2:
        raise ArgumentError(f"the stored elements of a are a matrix (M, K / 2), not of shape {tuple(a.values.shape)}")
    if c is not None and (out is not None or out_dtype is not None):
        c, beta, activation, epilogue = source_apart(a.values, c, beta, activation, epilogue, out, out_dtype)
    functions, instead = (), None
    if epilogue is not None:
        functions = functions_of(epilogue)
        instead = in_place_of_result(functions, out)

    def request() -> SparseRequest:
        return SparseRequest(
            *(a.values, b, out, c, alpha, beta, bias, activation, out_dtype, "ieee", kernel, decomposition),
            functions=functions,
            metadata=a.metadata,
        )

    def run() -> Any:
        if a.shape[1]:
            return request().run()
        options: dict[str, Any] = {"alpha": alpha, "beta": beta, "bias": bias, "activation": activation}
        empty = out_dtype or request().empty_dtype  # nothing is stored, and so nothing is sparse
        return matmul(a.values, b, out, c, **options, out_dtype=empty, epilogue=epilogue)

    if is_torch(a.values):
        tensors = *a, b, out, c, bias, *arrays_of(functions)
        if any_recorded(sys.modules["torch"], *tensors):
            if (kernel, decomposition) != (None, "auto"):
                raise ArgumentError(
                    "kernel and decomposition cannot be given where PyTorch records the call: by torch.compile, or for "
                    "tensors that ask for a gradient or are of another class"
                )
            result = recorded_form("torch_sparse").recorded(
                a, b, out, c, (alpha, beta), bias, activation, out_dtype, functions
            )
        elif kernel is None or isinstance(kernel, str):
            call_options = (
                alpha,
                beta,
                activation,
                out_dtype,
                kernel,
                decomposition,
                key_of(functions, dtype_key) if functions else (),
            )
            result = repeated_call("sparse_matmul", tensors, out, call_options, run)
        else:
            result = run()
    elif framework(a.values, "a.values") == "jax":
        return recorded_form("jax_products").of_request(request())
    else:
        result = run()
    return result if instead is None else instead


@dataclass(frozen=True)
class SparseRequest(Request):
    """A call of :func:`sparse_matmul`; ``a`` are the stored elements."""

    metadata: Any

    def given(self) -> dict[str, Any]:
        return {**super().given(), "the metadata": self.metadata}

    @property
    def empty_dtype(self) -> Any:
        """The type of a result without an element of K, where neither ``out`` nor ``c`` says it."""
        if self.out is not None or self.c is not None:
            return None
        return self.result_dtype(self.entries(array_of(self.a).dtype)[0])

    def operands(self) -> Operands:
        """The stored elements and B: two matrices, of which B of 8 and 32 bits is contiguous along K."""
        a, b = materialised(self.a), materialised(self.b)
        if len(a.shape) == 2 and not TmaMainloop.access(array_of(a).dtype).takes(Matrix.of("a", a), Major.K):
            a = row_major_copy(a)
        shape = sparse_shape(a, b)
        if array_of(b).dtype.width != 16 and Matrix.of("b", b).transposed().major() is not Major.K:
            b = row_major_copy(b.T).T
        return Operands(a, b, shape, shape)

    def operand_a(self, matrices: Operands) -> SparseMatrix:
        stored, metadata = Matrix.of("a", matrices.a), Matrix.of("the metadata", self.metadata)
        m, k = stored.shape[0], SPARSITY * stored.shape[1]
        required = -(-k // word_k(stored.dtype.width)), THREADS * -(-m // METADATA_ROWS)
        array = metadata.array
        rows_follow = (
            array.stride[:2] == (required[1], 1) or array.shape[0] == 1 and array.stride[1] == 1 or 0 in required
        )
        if array.dtype is not Int32 or tuple(self.metadata.shape) != required or not rows_follow:
            raise ArgumentError(
                f"the metadata of a sparse matrix {(m, k)} are int32 of shape {required}, contiguous, not "
                f"{array.dtype.__name__} of shape {tuple(self.metadata.shape)}: make them with compress_2_4"
            )
        if array.device != stored.device:
            raise ArgumentError(f"the metadata are on {array.device}, the stored elements on {stored.device}")
        return SparseMatrix(stored.name, stored.source, stored.array, metadata)

    def entries(self, dtype: Any) -> list[KernelEntry]:
        return sparse_entries(dtype, self.kernel)

    def vectors(self, problem: Problem) -> tuple[Any, ...]:
        check_vector("the metadata", array_of(self.metadata), problem)
        return super().vectors(problem)

    def plan(self, problem: Problem, entries: list[KernelEntry]) -> Plan:
        """By the model; B, C and D are copied to aligned rows where TMA cannot read them as they are, but for a D whose
        rows would become longer than what is read for each column."""
        may_pack = "BCD" if self.may_pack == MAY_PACK[True] else "Bcd"
        how, machine = self.decomposition, problem.machine
        if packing_for(entries[0], problem, how, machine, None, may_pack) is None:
            return self.planner(entries, "")(problem)
        return Plan.with_copies(problem, entries[0], how, machine, may_pack)


def sparse_shape(stored: Any, b: Any) -> tuple[int, int]:
    """The result's shape, for the stored elements and B; ArgumentError where they do not go together."""
    if len(stored.shape) != 2 or len(b.shape) != 2 or SPARSITY * stored.shape[1] != b.shape[0]:
        whole = (*map(int, stored.shape[:-1]), SPARSITY * int(stored.shape[-1]))
        raise ArgumentError(
            f"sparse_matmul multiplies two matrices: a of shape {whole}, of which half is stored, and b of shape "
            f"{tuple(b.shape)}"
        )
    return int(stored.shape[0]), int(b.shape[1])


def sparse_entries(dtype: Any, kernel: str | KernelEntry | None) -> list[KernelEntry]:
    """The kernels for a sparse matrix of ``dtype``, or the one that is asked for."""
    kernels = sparse_kernels()
    if isinstance(kernel, KernelEntry):
        requested = [kernel]
    elif kernel is not None and kernel not in kernels:
        raise ArgumentError(f"there is no kernel {kernel!r} of sparse_matmul; there are {', '.join(kernels)}")
    else:
        requested = list(kernels.values()) if kernel is None else [kernels[kernel]]
    entries = [entry for entry in requested if entry.accepts(dtype)]
    if not entries:
        taken = ", ".join(entry.config.a.dtype.__name__ for entry in requested)
        raise ArgumentError(f"a is {dtype.__name__}; sparse_matmul multiplies {taken}")
    return entries
