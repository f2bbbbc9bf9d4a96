"""``complex_matmul``: products of complex matrices by the kernels for real ones.

A complex product is a real one of twice the columns and twice the depth,

    (Re D, Im D) = (Re A, Im A) @ ( Re B  Im B)
                                  (-Im B  Re B)

so one launch makes the four real products, and adds them up before it rounds once. Where real and imaginary parts take
turns in memory, A, C and D are read and written where they are; B is written out. Conjugates are signs in that matrix.
By Gauss's rule three real products of the plain size do: the sums of the parts are made before.
"""

from __future__ import annotations

import contextlib
import sys
from dataclasses import dataclass
from enum import Enum
from numbers import Complex
from typing import Any, NamedTuple

import numpy as np

from tilewright.errors import ArgumentError
from tilewright.gemm.arrays import Matrix
from tilewright.gemm.operators.arrays import framework, namespace
from tilewright.gemm.operators.forms import recorded_form
from tilewright.gemm.operators.matmul import PRECISIONS, matmul
from tilewright.gemm.operators.torch_state import any_recorded
from tilewright.lang.arguments.arrays import array_of


class ComplexTransform(Enum):
    """What is done to a complex operand before it is multiplied; the names are CUTLASS's.

    >>> ComplexTransform("conjugate")
    <ComplexTransform.kConjugate: 'conjugate'>
    """

    kNone = "none"
    kConjugate = "conjugate"


class PlanarComplex(NamedTuple):
    """A complex matrix as two real ones of one shape and type.

    >>> i = PlanarComplex(np.zeros((1, 1), np.float16), np.ones((1, 1), np.float16))
    >>> [part.item() for part in complex_matmul(i, i)]
    [-1.0, 0.0]
    """

    real: Any
    imag: Any


MATH = ("multiply_add_complex", "multiply_add_complex_gaussian")
"""By four real products, and by three."""
PLAIN = ("float16", "bfloat16", "float32", "float64")
"""Types of real and imaginary parts."""


def complex_matmul(
    a: Any,
    b: Any,
    out: Any = None,
    c: Any = None,
    *,
    alpha: complex = 1.0,
    beta: complex = 0.0,
    transform_a: ComplexTransform | str = ComplexTransform.kNone,
    transform_b: ComplexTransform | str = ComplexTransform.kNone,
    math: str = "multiply_add_complex",
    precision: str = "ieee",
) -> Any:
    """alpha * transform_a(a) @ transform_b(b) + beta * c, of complex matrices.

    Args:
        a: (..., M, K) of complex64 or complex128 (PyTorch also complex32): a PyTorch tensor, or a NumPy, CuPy or JAX
            array. Or a :class:`PlanarComplex`: two real arrays of floats of 16, 32 or 64 bits; then all operands and
            the result are.
        b: (..., K, N), as ``a``. Leading dimensions are broadcast.
        out: where the result (..., M, N) goes; made if it is None. It has the type of ``a``.
        c: of the result's shape and type, read only where ``beta`` is not 0; may be ``out``.
        alpha: the factor of the product; where it is not real it is multiplied into ``b`` before.
        beta: the factor of ``c``.
        transform_a, transform_b: a :class:`ComplexTransform` or its value: ``a`` or ``b`` as it is, or its conjugate.
        math: "multiply_add_complex" is one real product of twice the columns and twice the depth: four
            multiplications for each of the complex ones, sums rounded once. "multiply_add_complex_gaussian" is three
            real products of the plain size, of sums such as Re a + Im a: these are rounded to the operands' type, and
            the error of a small part is that of the large one.
        precision: as for :func:`matmul`: "tf32" multiplies parts of 32 bits on tensor cores.

    PyTorch tensors have gradients, as torch.matmul's have; torch.autocast has no effect, as on its complex
    products. torch.compile keeps the call of complex tensors as one node. Raises ArgumentError for operands that do
    not go together.

    >>> a = np.array([[1 + 2j, 3j]], np.complex64)
    >>> complex_matmul(a, a.T, transform_b="conjugate").tolist(), (a @ a.conj().T).tolist()
    ([[(14+0j)]], [[(14+0j)]])
    >>> complex_matmul(a, a.T, math="multiply_add_complex_gaussian").tolist()
    [[(-12+4j)]]
    """
    if math not in MATH:
        raise ArgumentError(f"math is one of {', '.join(MATH)}, not {math!r}")
    form = Planar if isinstance(a, tuple) else Interleaved
    arrays = {name: x for name, x in {"a": a, "b": b, "out": out, "c": c}.items() if x is not None}
    check(arrays, form is Planar)
    for name, factor in (("alpha", alpha), ("beta", beta)):
        if not isinstance(factor, (Complex, np.number)):
            raise ArgumentError(f"{name} is a number, not {factor!r}")
    if c is None and beta:
        raise ArgumentError(f"beta = {beta} without c: give c")
    if precision not in PRECISIONS:
        raise ArgumentError(f"precision is one of {', '.join(PRECISIONS)}, not {precision!r}")
    turned = {name: transform_of(name, x) for name, x in (("transform_a", transform_a), ("transform_b", transform_b))}
    factors = Factors(complex(alpha), complex(beta), *turned.values())
    torch = sys.modules.get("torch")
    if form is Interleaved and torch is not None and isinstance(a, torch.Tensor):
        if any_recorded(torch, *arrays.values()):
            names = (ComplexTransform(x).value for x in (transform_a, transform_b))
            return recorded_form("torch_complex").recorded(a, b, out, c, alpha, beta, *names, math, precision)
    run = by_four if math == MATH[0] else by_three
    made = form(framework(part(a), "a"), namespace(part(a)))
    if out is not None:
        made.check_written(out)
    with made.without_autocast(a):
        return run(made, a, b, out, c, factors, precision)


@dataclass(frozen=True)
class Factors:
    """alpha, beta, and the signs of the imaginary parts of a and b."""

    alpha: complex
    beta: complex
    sign_a: int
    sign_b: int


def transform_of(name: str, transform: ComplexTransform | str) -> int:
    """The sign of the imaginary part."""
    try:
        return -1 if ComplexTransform(transform) is ComplexTransform.kConjugate else 1
    except ValueError:
        choices = " or ".join(repr(one.value) for one in ComplexTransform)
        raise ArgumentError(f"{name} is a ComplexTransform, {choices}, not {transform!r}") from None


def part(x: Any) -> Any:
    return x[0] if isinstance(x, tuple) else x


def check(arrays: dict[str, Any], planar: bool) -> tuple[int, ...]:
    """The shape of the result. ArgumentError for operands of different frameworks, forms, types or shapes, and for
    vectors."""
    kinds = {}
    for name, x in arrays.items():
        if isinstance(x, tuple) != planar or (planar and len(x) != 2):
            raise ArgumentError(
                f"a is {'a PlanarComplex' if planar else 'an array'}, and {name} is not: give all operands as complex "
                "arrays, or all as PlanarComplex(real, imag)"
            )
        for one in x if planar else (x,):
            kinds[name] = framework(one, name), str(one.dtype).removeprefix("torch.")
            if len(one.shape) < 2:
                raise ArgumentError(f"{name} has the shape {tuple(one.shape)}: complex_matmul multiplies matrices")
            if kinds[name] != kinds["a"]:
                (library, dtype), (first, first_dtype) = kinds[name], kinds["a"]
                raise ArgumentError(
                    f"a is {first_dtype} of {first}, and {name} {dtype} of {library}: give all of one type"
                )
        if planar and tuple(x[0].shape) != tuple(x[1].shape):
            raise ArgumentError(f"the parts of {name} have the shapes {tuple(x[0].shape)} and {tuple(x[1].shape)}")
    library, dtype = kinds["a"]
    if planar and dtype not in PLAIN:
        raise ArgumentError(f"parts of complex matrices are of {', '.join(PLAIN)}, not {dtype}")
    if not planar and not dtype.startswith("complex"):
        raise ArgumentError(f"a is {dtype}, not complex: call matmul, or give PlanarComplex(real, imag)")
    if library == "jax" and "out" in arrays:
        raise ArgumentError("JAX arrays are immutable: call complex_matmul without out, and use its result")
    return result_shape({name: tuple(part(x).shape) for name, x in arrays.items()})


def result_shape(shapes: dict[str, tuple[int, ...]]) -> tuple[int, ...]:
    """The shape of the product of a and b. ArgumentError for shapes that do not go together."""
    a, b = shapes["a"], shapes["b"]
    if a[-1] != b[-2]:
        raise ArgumentError(f"a of shape {a} has {a[-1]} columns, and b of shape {b} has {b[-2]} rows: they must agree")
    try:
        shape = (*np.broadcast_shapes(a[:-2], b[:-2]), a[-2], b[-1])
    except ValueError:
        raise ArgumentError(f"the leading dimensions of a {a} and b {b} cannot be broadcast") from None
    for name in ("out", "c"):
        if shapes.get(name, shape) != shape:
            raise ArgumentError(f"{name} must have the shape of the result, {shape}, not {shapes[name]}")
    return shape


@dataclass(frozen=True)
class Interleaved:
    """Arrays of complex numbers: real and imaginary parts take turns along a row."""

    library: str
    functions: Any
    """The module with the framework's functions."""

    def without_autocast(self, a: Any) -> contextlib.AbstractContextManager[Any]:
        """Where PyTorch casts no operands: as of its own complex products."""
        if self.library != "torch":
            return contextlib.nullcontext()
        context: Any = self.functions.autocast(part(a).device.type, enabled=False)
        return context

    def parts(self, x: Any) -> tuple[Any, Any]:
        """Real and imaginary parts."""
        if self.library == "torch":
            return tuple(self.functions.view_as_real(x.resolve_conj()).unbind(-1))
        return x.real, x.imag

    def rows(self, x: Any) -> Any:
        """(..., M, 2 K) of real numbers; a view where ``x`` allows it."""
        view = self.view(x)
        return joined(self, self.parts(x), -1) if view is None else view

    def view(self, x: Any) -> Any:
        """The real numbers of ``x``, a row with its parts in turns, in the same memory; None where it has none."""
        if self.library == "torch":
            if x.is_conj() or x.is_neg() or (x.stride(-1) != 1 and x.shape[-1] != 1):
                return None
            return self.functions.view_as_real(x).flatten(-2)
        if self.library == "jax" or x.shape[-1] == 0 or x.strides[-1] != x.itemsize:
            return None
        return x.view(x.real.dtype)

    def joined(self, parts: Any, mode: int) -> Any:
        """Real and imaginary parts in turns along ``mode``, -1 or -2."""
        return joined(self, parts, mode)

    def whole(self, rows: Any) -> Any:
        """The complex matrix of the real numbers (..., M, 2 N)."""
        if self.library == "torch":
            pairs = rows.reshape((*rows.shape[:-1], rows.shape[-1] // 2, 2))
            return self.functions.view_as_complex(pairs.contiguous())
        if self.library == "jax":
            return rows[..., 0::2] + 1j * rows[..., 1::2]
        return rows.view(self.functions.result_type(rows.dtype, self.functions.complex64))

    def of_parts(self, real: Any, imag: Any) -> Any:
        return self.whole(joined(self, (real, imag), -1))

    def check_written(self, out: Any) -> None:
        """ArgumentError where ``out`` cannot take a result."""
        if self.library == "torch":
            plain = out.conj() if out.is_conj() else out
            plain = self.functions._neg_view(plain) if plain.is_neg() else plain
            array = array_of(self.functions.view_as_real(plain.detach()))
        else:
            real = array_of(out.real)
            array = real._replace(shape=(*real.shape, 2), stride=(*real.stride, 1))
        Matrix("out", out, array).check_written()

    def into(self, out: Any, result: Any) -> Any:
        out[...] = result
        return out

    def dtype(self, x: Any) -> Any:
        return self.parts(x)[0].dtype


class Planar(Interleaved):
    """Pairs of real arrays: along a row all real parts come before all imaginary ones."""

    def parts(self, x: Any) -> tuple[Any, Any]:
        return x[0], x[1]

    def view(self, x: Any) -> Any:
        return None

    def rows(self, x: Any) -> Any:
        return self.joined(x, -1)

    def joined(self, parts: Any, mode: int) -> Any:
        if self.library == "torch":
            return self.functions.cat(tuple(parts), mode)
        return self.functions.concatenate(tuple(parts), mode)

    def whole(self, rows: Any) -> PlanarComplex:
        n = rows.shape[-1] // 2
        return PlanarComplex(rows[..., :n], rows[..., n:])

    def of_parts(self, real: Any, imag: Any) -> PlanarComplex:
        return PlanarComplex(real, imag)

    def check_written(self, out: Any) -> None:
        real, imag = (Matrix("out", x, array_of(x)) for x in out)
        apart, rest = divmod(imag.array.address - real.array.address, real.dtype.bytes)
        if real.overlaps(imag) and (rest or real.stride != imag.stride):
            raise ArgumentError("the real and imaginary parts of out overlap: give them memory of their own")
        real.check_written()
        imag.check_written()
        if real.stride == imag.stride:  # parts of one layout may take turns in memory
            both = real.array._replace(shape=(*real.shape, 2), stride=(*real.stride, apart))
            Matrix("out", out, both).check_written()

    def into(self, out: Any, result: Any) -> Any:
        for target, x in zip(out, result, strict=True):
            target[...] = x
        return out


def joined(form: Interleaved, parts: Any, mode: int) -> Any:
    """Two real arrays in turns along ``mode``, -1 or -2."""
    stacked = form.functions.stack(tuple(parts), mode)
    shape = tuple(stacked.shape)
    at = len(shape) + mode - 1
    return stacked.reshape((*shape[:at], shape[at] * shape[at + 1], *shape[at + 2 :]))


def by_four(form: Interleaved, a: Any, b: Any, out: Any, c: Any, factors: Factors, precision: str) -> Any:
    """One real product of twice the columns and twice the depth."""
    alpha, beta = factors.alpha, factors.beta
    real, imag = form.parts(b)
    imag = imag if factors.sign_b > 0 else -imag
    if alpha.imag:
        real, imag = alpha.real * real - alpha.imag * imag, alpha.real * imag + alpha.imag * real
        alpha = complex(1.0)
    below = (-imag, real) if factors.sign_a > 0 else (imag, -real)
    # Contiguous along K, as every kernel reads it: (..., 2 N, 2 K), transposed.
    turned = [tuple(swapped(x) for x in pair) for pair in ((real, imag), below)]
    right = swapped(form.joined([form.joined(pair, -2) for pair in turned], -1))
    source = None
    if beta:
        source = form.rows(scaled(form, c, beta) if beta.imag else c)
        beta = complex(1.0) if beta.imag else beta
    target = form.view(out) if out is not None else None
    rows = matmul(
        form.rows(a),
        right,
        target,
        source,
        alpha=alpha.real,
        beta=beta.real if source is not None else 0.0,
        out_dtype=form.dtype(a),
        precision=precision,
    )
    if target is not None:
        return out
    result = form.whole(rows)
    return result if out is None else form.into(out, result)


def by_three(form: Interleaved, a: Any, b: Any, out: Any, c: Any, factors: Factors, precision: str) -> Any:
    """Gauss's rule: with p = (Re a + Im a) Re b, Re d = p - Im a (Re b + Im b) and Im d = p + Re a (Im b - Re b)."""
    (x, y), (u, v) = form.parts(a), form.parts(b)
    y, v = (one if sign > 0 else -one for one, sign in ((y, factors.sign_a), (v, factors.sign_b)))
    kind = form.dtype(a)
    wide = form.functions.float32 if str(kind).endswith("float16") else kind  # the products are added before rounding

    def product(left: Any, right: Any, source: Any = None, sign: float = 1.0) -> Any:
        plus = 0.0 if source is None else 1.0
        return matmul(left, right, None, source, alpha=sign, beta=plus, out_dtype=wide, precision=precision)

    shared = product(x + y, u)
    real, imag = product(y, u + v, shared, -1.0), product(x, v - u, shared)
    alpha, beta = factors.alpha, factors.beta
    if alpha != 1:
        real, imag = alpha.real * real - alpha.imag * imag, alpha.real * imag + alpha.imag * real
    if beta:
        p, q = form.parts(c)
        real, imag = real + (beta.real * p - beta.imag * q), imag + (beta.real * q + beta.imag * p)
    result = form.of_parts(*(x.to(kind) if form.library == "torch" else x.astype(kind) for x in (real, imag)))
    return result if out is None else form.into(out, result)


def swapped(x: Any) -> Any:
    """Rows and columns exchanged."""
    return x.swapaxes(-1, -2)


def scaled(form: Interleaved, x: Any, factor: complex) -> Any:
    """``factor`` times the matrix, in its own form."""
    p, q = form.parts(x)
    return form.of_parts(factor.real * p - factor.imag * q, factor.real * q + factor.imag * p)
