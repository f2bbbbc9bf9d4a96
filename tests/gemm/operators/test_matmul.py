"""``matmul``: torch's rules for shapes, result types, epilogues, errors before a launch, repeated launches."""

from __future__ import annotations

import sys
import types

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright import Int32
from tilewright.errors import ArgumentError
from tilewright.gemm import SplitK, kernels, matmul
from tilewright.gemm.arrays import Matrix
from tilewright.gemm.epilogue.activations import ACTIVATIONS
from tilewright.gemm.epilogue.functions import LinearCombination
from tilewright.gemm.host.plan import Plan
from tilewright.gemm.host.problem import Problem
from tilewright.gemm.operators import prepared
from tilewright.gemm.operators.prepared import Prepared
from tilewright.gemm.schedule.streamk import StreamK

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.unchecked


def integers(seed: int, *shape: int, dtype: object = np.float16) -> np.ndarray:
    return np.random.default_rng(seed).integers(-3, 4, shape).astype(dtype)


SHAPES = [
    ((5, 40), (40, 7)),
    ((40,), (40, 7)),
    ((5, 40), (40,)),
    ((40,), (40,)),
    ((2, 5, 40), (40, 7)),
    ((2, 5, 40), (2, 40, 7)),
    ((5, 40), (3, 40, 7)),
    ((2, 1, 5, 40), (3, 40, 7)),
    ((40,), (3, 40, 7)),
    ((3, 5, 40), (40,)),
    ((2, 3, 5, 8), (8, 16)),
    ((0, 8), (8, 4)),
    ((4, 0), (0, 8)),
    ((2, 0, 8), (8, 8)),
]


@pytest.mark.parametrize(("a", "b"), SHAPES)
def test_shapes_are_those_of_numpy_matmul(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    x, y = integers(0, *a), integers(1, *b)
    expected = np.matmul(x.astype(np.float64), y.astype(np.float64))
    for d in (matmul(x, y), matmul(torch.from_numpy(x), torch.from_numpy(y)).numpy()):
        assert d.shape == expected.shape and d.dtype == np.float16
        np.testing.assert_array_equal(d.astype(np.float64), expected)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("turned", [False, True])
def test_narrower_results_of_float32(dtype: object, turned: bool) -> None:
    """A thread of the kernel with FMAs has four neighbours, half of what a vector of 16 bytes of these holds."""
    a, b, bias = integers(0, 40, 32, dtype=np.float32), integers(1, 32, 72, dtype=np.float32), np.arange(72) % 5
    out = np.empty((72, 40), dtype).T if turned else np.empty((40, 72), dtype)
    c = np.ones((40, 72), dtype)
    for found in (matmul(a, b, out, bias=bias.astype(np.float32)), matmul(a, b, c=c, beta=1.0, out_dtype=dtype)):
        more = bias if found is out else 1
        np.testing.assert_array_equal(found.astype(np.float64), a.astype(np.float64) @ b + more)


@settings(max_examples=8, deadline=None)
@given(st.integers(1, 80), st.integers(1, 80), st.integers(1, 100), st.booleans(), st.booleans(), st.booleans())
def test_any_extents_and_strides(m: int, n: int, k: int, a_t: bool, b_t: bool, step: bool) -> None:
    a, b = (integers(0, k, m).T if a_t else integers(0, m, k)), (integers(1, n, k).T if b_t else integers(1, k, n))
    out = np.zeros((m, 2 * n), np.float16)[:, ::2] if step else None
    d = matmul(a, b, out)
    assert out is None or d is out
    np.testing.assert_array_equal(d.astype(np.float64), a.astype(np.float64) @ b.astype(np.float64))


@pytest.mark.parametrize("activation", [None, *ACTIVATIONS])
def test_the_epilogue(activation: str | None) -> None:
    a, b = (torch.randn(s, dtype=torch.float16) for s in ((24, 64), (64, 16)))
    c, bias = torch.randn(24, 16), torch.randn(16)
    d = matmul(a, b, c=c, alpha=0.5, beta=-2.0, bias=bias, activation=activation)
    expected = 0.5 * (a.double() @ b.double()) - 2.0 * c.double() + bias.double()
    if activation is not None:
        expected = ACTIVATIONS[activation].of_torch(torch.nn.functional, expected)
    assert d.dtype == torch.float32
    torch.testing.assert_close(d.double(), expected, rtol=1e-5, atol=1e-5)


EIGHT = np.arange(16, dtype=np.float16)


@pytest.mark.parametrize(
    "bias", [EIGHT[::2], np.broadcast_to(EIGHT[3], (8,)), EIGHT[7::-1]], ids=["step", "broadcast", "reversed"]
)
def test_a_bias_of_any_stride(bias: np.ndarray) -> None:
    a, b = integers(0, 8, 64), integers(1, 64, 8)
    np.testing.assert_array_equal(matmul(a, b, bias=bias), matmul(a, b) + bias)


def test_types_of_the_result() -> None:
    a8, b8 = integers(0, 8, 64, dtype=np.int8), integers(1, 64, 16, dtype=np.int8)
    d = matmul(a8, b8)
    assert d.dtype == np.int32 and (d == a8.astype(int) @ b8.astype(int)).all()
    a, b = integers(0, 8, 64), integers(1, 64, 16)
    for out_dtype in (np.float32, torch.float32):
        d = matmul(a, b, out_dtype=out_dtype)
        assert d.dtype == np.float32 and (d == a.astype(float) @ b.astype(float)).all()
    e4m3 = ml_dtypes.float8_e4m3fn
    assert matmul(integers(0, 8, 64, dtype=e4m3), integers(1, 64, 16, dtype=e4m3)).dtype == np.float16
    one = torch.ones(8, 8, dtype=torch.bfloat16)
    assert matmul(one, one).dtype == torch.bfloat16
    for precision in ("ieee", "tf32"):
        a32, b32 = integers(0, 8, 64, dtype=np.float32), integers(1, 64, 16, dtype=np.float32)
        assert (matmul(a32, b32, precision=precision) == a32 @ b32).all()


def test_negated_tensors_and_results_in_place() -> None:
    a, b = torch.ones(8, 8, dtype=torch.float16), torch.ones(8, 8, dtype=torch.float16)
    turned = torch._neg_view(a)
    assert turned.is_neg()
    assert (matmul(turned, b) == -8).all()
    c = torch.full((8, 8), 3.0, dtype=torch.float16)
    assert matmul(a, b, c, c, beta=2.0) is c and (c == 14).all()
    stacked = torch.zeros(2, 3, 4, 8, dtype=torch.float16).transpose(0, 1)  # cannot be viewed as a stack of matrices
    matmul(torch.ones(3, 2, 4, 8, dtype=torch.float16), b, stacked)
    assert (stacked == 8).all()


x, y = np.ones((8, 16), np.float16), np.ones((16, 8), np.float16)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: matmul(x, x), "inner dimensions differ: a of shape"),
        (lambda: matmul(x, y.astype(np.float32)), "both must have one dtype"),
        (lambda: matmul(x, 3.0), "b is builtins.float, not an array of PyTorch"),
        (lambda: matmul(torch.float16, y), "a is torch.dtype, not an array of PyTorch"),
        (lambda: matmul(np.float16(2) * np.ones(()), y), "a is a number"),
        (lambda: matmul(np.ones((2, 8, 16), np.float16), np.ones((3, 16, 8), np.float16)), "cannot be broadcast"),
        (lambda: matmul(x, y, np.ones((8, 9), np.float16)), "out must have the shape of the result"),
        (lambda: matmul(x, y, c=np.ones((8, 9), np.float16)), "c must have the shape of the result"),
        (lambda: matmul(x, y, bias=np.ones(9, np.float16)), "bias must be a vector of 8 elements"),
        (lambda: matmul(x, y, activation="softmax"), "there is no activation 'softmax'"),
        (lambda: matmul(x, y, precision="half"), "precision is one of"),
        (lambda: matmul(x, y, beta=1.0), "beta = 1.0 needs a matrix c"),
        (lambda: matmul(x, torch.ones(16, 8, dtype=torch.float16)), "give all of one framework"),
        (lambda: matmul(x, y, kernel="nonsense"), "there is no kernel"),
        (lambda: matmul(x, y, np.ones((8, 8), np.float16), out_dtype=np.float32), "give one of them"),
        (lambda: matmul(x.astype(np.int8), y.astype(np.int8), activation="gelu"), "of integer sums"),
        (lambda: matmul(x, y, out_dtype=np.int32), "cannot be written as"),
    ],
)
def test_errors_come_before_anything_runs(call: object, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        call()


@pytest.mark.parametrize(("transposed", "same"), [(False, True), (True, False)])
def test_a_launch_is_repeated_on_other_arrays(transposed: bool, same: bool) -> None:
    """Of each operand the address is replaced, even where the first call had one array twice; the kernels share tiles,
    so their workspace stays."""
    entry = kernels()["hopper_f16"]
    size = next(c for c in entry.small if c.tile[:2] == (64, 32) and c.transposed == transposed)
    a, b = integers(0, 256, 256), integers(1, 256, 256)
    b = a if same else b
    first = np.zeros((256, 256), np.float32)
    problem = Problem.of(a, b, None, first)
    shares = StreamK.of((256, 256, 256), size.tile, multiprocessors=20, occupancy=1, fragments=1, shared=(32, 20))
    plan = Plan.of(problem, [entry.only(size)], shares, "cpu")
    assert plan.shares is not None and plan.shares.sk_blocks == 20
    prepared = Prepared(problem, plan, LinearCombination(size.acc_dtype(1), size.acc_dtype(0)))
    for seed in range(3):
        arrays = [integers(seed, 256, 256), integers(seed + 9, 256, 256), np.zeros((256, 256), np.float32)]
        addresses = [Matrix.of("x", x).array.address for x in arrays]
        prepared.launch((addresses[0], addresses[1], addresses[2], addresses[2], 0))
        np.testing.assert_array_equal(arrays[2], arrays[0].astype(np.float64) @ arrays[1].astype(np.float64))
    assert len(prepared.bindings) == 1 and not first.any()


class JaxArray(np.ndarray):
    """What matmul sees of a JAX array on the CPU."""

    device = "cpu"

    def block_until_ready(self) -> JaxArray:
        return self


JaxArray.__module__ = "jaxlib.fake"


def test_jax_arrays_are_read_and_made_but_not_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("jax.numpy")
    module.zeros = lambda shape, dtype, device: np.zeros(shape, dtype).view(JaxArray)
    module.broadcast_to = np.broadcast_to
    monkeypatch.setitem(sys.modules, "jax.numpy", module)
    a, b = integers(0, 2, 3, 5, 16), integers(1, 16, 8)
    d = matmul(a.view(JaxArray), b.view(JaxArray))
    assert type(d) is JaxArray
    np.testing.assert_array_equal(d, np.matmul(a.astype(np.float64), b.astype(np.float64)))
    with pytest.raises(ArgumentError, match="JAX arrays are immutable"):
        matmul(a.view(JaxArray), b.view(JaxArray), d)


@pytest.mark.gpu
def test_matmul_on_a_gpu() -> None:
    for shape_a, shape_b in SHAPES:
        for _ in range(2):
            a, b = (torch.randint(-3, 4, s, device="cuda").half() for s in (shape_a, shape_b))
            for turned in (False, True):
                left = a.mT.contiguous().mT if turned and a.ndim > 1 else a
                expected = (a.double() @ b.double()).half()
                assert torch.equal(matmul(left, b), expected)
                if len(shape_b) > 1:
                    bias = torch.ones(shape_b[-1], device="cuda").half()
                    assert torch.equal(matmul(left, b, bias=bias, activation="relu"), (expected + 1).relu())


@pytest.mark.gpu
@pytest.mark.parametrize(
    "shape", [(256, 256, 256), (136, 16384, 512), (219, 655, 128)]
)  # one wave; shared tiles; copies
def test_the_same_addresses_again_on_a_gpu(shape: tuple[int, int, int]) -> None:
    """After a few times only addresses are written anew: the operands' new numbers are multiplied, on the stream
    that is current, and into a graph where one is captured."""
    m, k, n = shape
    a, b = (torch.empty(s, device="cuda", dtype=torch.float16) for s in ((m, k), (k, n)))
    out, side = torch.empty(m, n, device="cuda", dtype=torch.float16), torch.cuda.Stream()
    graph = torch.cuda.CUDAGraph()
    for turn in range(8):
        a.copy_(torch.randint(-2, 3, a.shape))
        b.copy_(torch.randint(-2, 3, b.shape))
        out.fill_(-1)
        torch.cuda.synchronize()
        if turn == 6:
            with torch.cuda.graph(graph):
                matmul(a, b, out)
        if turn >= 6:
            graph.replay()
        else:
            with torch.cuda.stream(side if turn % 2 else torch.cuda.current_stream()):
                matmul(a, b, out)
        torch.cuda.synchronize()
        assert torch.equal(out, (a.double() @ b.double()).half()), turn


@pytest.mark.gpu
def test_graphs_and_streams_share_no_workspace() -> None:
    a, b = (torch.randn(s, device="cuda", dtype=torch.float16) for s in ((136, 16384), (16384, 512)))
    expected, outs = matmul(a, b), [torch.empty(136, 512, device="cuda", dtype=torch.float16) for _ in range(3)]
    graphs = []
    for out in outs[:2]:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(20):
                matmul(a, b, out)
        graphs.append(graph)
    streams = [torch.cuda.Stream() for _ in range(3)]
    for _ in range(20):
        for graph, stream in zip(graphs, streams, strict=False):
            with torch.cuda.stream(stream):
                graph.replay()
        with torch.cuda.stream(streams[2]):
            matmul(a, b, outs[2])
    torch.cuda.synchronize()
    assert all(torch.equal(out, expected) for out in outs)


def test_kept_workspaces_do_not_come_from_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its allocator may serve a CUDA graph from the graph's own memory, in which nothing may be kept."""
    made = []
    monkeypatch.setattr(torch.Tensor, "new_zeros", lambda *_, **__: made.append("zeros"))
    monkeypatch.setattr(prepared, "WORKSPACES", prepared.Workspaces())
    monkeypatch.setattr(sys.modules[matmul.__module__], "REPEATED_PRODUCTS", {})
    a, b = (torch.from_numpy(integers(i, *s)) for i, s in enumerate(((72, 320), (320, 104))))
    for _ in range(2):
        found = matmul(a, b, kernel="tensorop_f16", decomposition=SplitK(3))
        assert torch.equal(found.double(), a.double() @ b.double())
    assert prepared.WORKSPACES.buffers and not made
    machine = types.SimpleNamespace(zeros=lambda *what: what)
    zeros = prepared.zeros_apart(machine, types.SimpleNamespace(device="cuda:1", source=a))
    assert zeros(7, Int32) == (7, np.dtype(np.int32), "cuda:1") and not made


def test_a_larger_workspace_leaves_the_smaller_one_alive() -> None:
    import weakref

    from tilewright.gemm.operators.prepared import Workspaces

    made: list[np.ndarray] = []
    spaces = Workspaces()

    def beside(n: int, dtype: object) -> np.ndarray:
        made.append(np.zeros(n, np.int32))
        return made[-1]

    first = spaces.zeros("stream", beside)(10, np.int32)
    smaller = spaces.zeros("stream", beside)(7, np.int32)
    assert np.shares_memory(smaller, first) and smaller.shape == (7,) and len(made) == 1
    larger = spaces.zeros("stream", beside)(20, np.int32)
    assert not np.shares_memory(larger, first) and larger.shape == (20,) and len(made) == 2
    both = spaces.zeros("stream", beside)
    assert not np.shares_memory(both(20, np.int32), both(20, np.int32)) and len(made) == 3  # the roles of one launch
    spaces.zeros("another stream", beside)(20, np.int32)
    assert len(made) == 4
    alive = weakref.ref(made[0])
    made.clear()
    assert alive() is not None and first.shape == (10,)  # by what was given out


def test_remembered_launches_do_not_keep_tensors_alive() -> None:
    import gc
    import weakref

    from tilewright.gemm.operators.matmul import REPEATED_PRODUCTS

    a, b = torch.ones(24, 48, dtype=torch.float16), torch.ones(48, 8, dtype=torch.float16)
    before = set(REPEATED_PRODUCTS)
    d = matmul(a, b)
    (key,) = set(REPEATED_PRODUCTS) - before
    kept = [weakref.ref(x) for x in (a, b, d)]
    del a, b, d
    gc.collect()
    assert [ref() for ref in kept] == [None] * 3
    a, b = torch.full((24, 48), 2.0).half(), torch.full((48, 8), 3.0).half()
    assert (matmul(a, b) == 288).all() and set(REPEATED_PRODUCTS) - before == {key}
    REPEATED_PRODUCTS[key].prepared.bindings.clear()  # as on another stream
    assert (matmul(a, b) == 288).all()
