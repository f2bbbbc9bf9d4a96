"""The GEMM library against float64 NumPy on both machines: exact for small integers, to rounding for normal inputs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.covering import covering
from tilewright.errors import ArgumentError, MachineError, TilewrightError
from tilewright.gemm import KernelEntry, gemm, kernels
from tilewright.gemm.operators import gemm as gemm_module
from tilewright.gemm.operators import repeated_call

KERNELS = {
    name: np.float32 if name == "tensorop_tf32" else entry.config.a.dtype.dtype.type
    for name, entry in kernels().items()
    if not name.startswith(
        ("hopper", "blackwell", "sm120", "small_m")
    )  # these want aligned operands or another GPU, and have tests of their own
}
OUT = {name: kernels()[name].config.c.dtype.dtype.type for name in KERNELS}
MACHINES = ["cpu", pytest.param("gpu", marks=pytest.mark.gpu)]
WIDE = [(128, 128, 32), (256, 128, 96), (64, 200, 8), (8, 264, 136)]  # rows that are copied in 16 bytes
NARROW = [(1, 1, 1), (129, 127, 33), (17, 5, 250), (130, 130, 0)]
SIZES = [
    *(("tensorop_f16", size) for size in (*WIDE, *NARROW)),
    *covering([name for name in KERNELS if name != "tensorop_f16"], WIDE, strength=1),
    *covering([name for name in KERNELS if name != "tensorop_f16"], NARROW, strength=1),
]
"""One kernel in every size; each other in two."""


def integers(rng: np.random.Generator, shape: tuple[int, ...], dtype: type, column_major: bool = False) -> np.ndarray:
    """Small integers: every product and sum below is exact in every dtype."""
    values = rng.integers(-2, 3, shape[::-1] if column_major else shape).astype(dtype)
    return values.T if column_major else values


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(("kernel", "size"), SIZES, ids=str)
def test_exact_for_integers(kernel: str, size: tuple[int, int, int], machine: str) -> None:
    m, n, k = size
    rng = np.random.default_rng(m * n + k)
    a, b = integers(rng, (m, k), KERNELS[kernel]), integers(rng, (k, n), KERNELS[kernel])
    expected = (a.astype(np.float64) @ b.astype(np.float64)).astype(OUT[kernel])
    report = gemm(a, b, kernel=kernel, machine=machine)
    np.testing.assert_array_equal(report.d.astype(np.float64), expected.astype(np.float64))
    assert report.machine == machine


@pytest.mark.unchecked
@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    ("kernel", *"abc"), covering(KERNELS, *3 * [(False, True)]), ids=lambda x: x if isinstance(x, str) else "NT"[x]
)
def test_gemm_of_all_majors_with_alpha_and_beta(kernel: str, a: bool, b: bool, c: bool, machine: str) -> None:
    m, n, k = 136, 72, 40
    rng = np.random.default_rng(1)
    types, majors = (KERNELS[kernel], KERNELS[kernel], OUT[kernel]), (a, b, c)
    x, y, z = (integers(rng, *how) for how in zip(((m, k), (k, n), (m, n)), types, majors, strict=True))
    expected = 2.0 * (x.astype(np.float64) @ y.astype(np.float64)) - 3.0 * z.astype(np.float64)
    out = np.full((n, m), 99, OUT[kernel]).T if c else np.full((m, n), 99, OUT[kernel])
    gemm(x, y, z, alpha=2.0, beta=-3.0, kernel=kernel, machine=machine, out=out)
    np.testing.assert_array_equal(out.astype(np.float64), expected.astype(OUT[kernel]).astype(np.float64))


@pytest.mark.unchecked
@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("kernel", KERNELS)
def test_strided_views_and_padding_stay_untouched(kernel: str, machine: str) -> None:
    rng = np.random.default_rng(2)
    a = integers(rng, (140, 90), KERNELS[kernel])[3:133:2, 1:86]
    b = integers(rng, (170, 66), KERNELS[kernel])[::2, 5:60]
    store = np.full((65, 80), 7, OUT[kernel])
    gemm(a, b, kernel=kernel, machine=machine, out=store[:, 11:66])
    expected = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_array_equal(store[:, 11:66].astype(np.float64), expected.astype(OUT[kernel]).astype(np.float64))
    assert (store[:, :11] == 7).all() and (store[:, 66:] == 7).all()


@pytest.mark.parametrize("machine", MACHINES)
def test_batched_and_in_place_c(machine: str) -> None:
    rng = np.random.default_rng(3)
    a, b, c = (integers(rng, s, np.float16) for s in ((3, 40, 24), (3, 24, 56), (3, 40, 56)))
    expected = a.astype(np.float64) @ b.astype(np.float64) + c
    gemm(a, b, c, beta=1.0, out=c, machine=machine)
    np.testing.assert_array_equal(c, expected.astype(np.float16))


@pytest.mark.unchecked
@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("kernel", KERNELS)
def test_normal_inputs_to_rounding(kernel: str, machine: str) -> None:
    """The operands are rounded to the kernel's type first (tf32 drops 13 bits), so only sums and the output round."""
    rng = np.random.default_rng(4)
    scale = 20 if OUT[kernel] is np.int32 else 1
    a, b = ((rng.standard_normal(s) * scale).astype(KERNELS[kernel]) for s in ((200, 300), (300, 180)))
    exact = [x.view(np.int32) & -0x2000 if kernel == "tensorop_tf32" else x for x in (a, b)]
    exact = [x.view(np.float32) if kernel == "tensorop_tf32" else x for x in exact]
    expected = exact[0].astype(np.float64) @ exact[1].astype(np.float64)
    d = gemm(a, b, kernel=kernel, machine=machine).d.astype(np.float64)
    epsilon = 1e-15 if OUT[kernel] is np.int32 else float(ml_dtypes.finfo(OUT[kernel]).eps)
    assert np.linalg.norm(d - expected) / np.linalg.norm(expected) < 8 * epsilon


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("out", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_output_of_another_type(out: type, machine: str) -> None:
    rng = np.random.default_rng(5)
    a, b, c = (integers(rng, s, t) for s, t in (((70, 40), np.float16), ((40, 90), np.float16), ((70, 90), out)))
    d = gemm(a, b, c, beta=1.0, machine=machine).d
    assert d.dtype == out
    np.testing.assert_array_equal(
        d.astype(np.float64), a.astype(np.float64) @ b.astype(np.float64) + c.astype(np.float64)
    )


def test_empty_output() -> None:
    assert gemm(np.zeros((0, 4), np.float32), np.zeros((4, 3), np.float32)).d.shape == (0, 3)


def configured(name: str, **changes: object) -> KernelEntry:
    """A kernel of the library with other parameters."""
    entry = kernels()[name]
    return entry.only(replace(entry.config, **changes))


VARIANTS = {
    "usual f16": ("tensorop_f16", {}),
    "usual bf16": ("tensorop_bf16", {}),
    "usual f16, f16 sums": ("tensorop_f16_f16", {}),
    "small f16": ("tensorop_f16", vars(kernels()["tensorop_f16"].small[0])),
    "half f16": ("tensorop_f16", vars(kernels()["tensorop_f16"].small[1])),
    "large f16": ("tensorop_f16", vars(kernels()["tensorop_f16"].large)),
    "large bf16": ("tensorop_bf16", vars(kernels()["tensorop_bf16"].large)),
    "two stages": ("tensorop_f16", {"stages": 2}),
    "one warp": ("tensorop_f16", {"tile": (64, 64, 32), "warps": (1, 1)}),
    "long k tile": ("tensorop_f16", {"tile": (128, 128, 64), "stages": 3}),
    "rows one by one": ("tensorop_f16", {"group": 1}),
    "small simt": ("simt_f32", {"tile": (64, 64, 8), "warps": (4, 1), "stages": 2}),
}


def test_operands_are_copied_to_another_machine_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gemm_module, "transfer", lambda *given: pytest.fail("a copy"))
    a, b = np.ones((40, 64), np.float16), np.ones((64, 48), np.float16)
    for machine in ("cpu", "auto"):
        assert (gemm(a, b, machine=machine).d == 64).all()
    monkeypatch.setattr(gemm_module, "machine_of", lambda device: None)
    assert gemm(a[:0], b, machine="gpu").d.shape == (0, 48)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(("variant", "transposed"), covering(VARIANTS, (False, True), strength=1))
def test_other_configurations(variant: str, transposed: bool, machine: str) -> None:
    name, changes = VARIANTS[variant]
    rng = np.random.default_rng(6)
    a, b = (integers(rng, s, KERNELS[name], transposed) for s in ((200, 104), (104, 296)))
    c = integers(rng, (200, 296), OUT[name])
    d = gemm(a, b, c, beta=1.0, kernel=configured(name, **changes), machine=machine).d
    expected = a.astype(np.float64) @ b.astype(np.float64) + c.astype(np.float64)
    np.testing.assert_array_equal(d.astype(np.float64), expected.astype(OUT[name]).astype(np.float64))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"stages": 1}, "at least 2 stages"),
        ({"warps": (0, 1)}, "must be positive"),
        ({"group": 0}, "must be positive"),
        ({"warps": (3, 1)}, "96 threads with 8 elements each cannot cover a tile of"),
        ({"tile": (128, 128, 16)}, "K tile of 16 is one step of the MMA"),
        ({"stages": 40}, "shared memory; a block has 232448 at most"),
    ],
)
def test_configurations_that_do_not_fit(changes: dict[str, object], message: str) -> None:
    a = np.zeros((64, 64), np.float16)
    with pytest.raises(TilewrightError, match=message):
        gemm(a, a, kernel=configured("tensorop_f16", **changes))


@pytest.mark.gpu
@pytest.mark.parametrize("home", ["cpu", "cuda"])
def test_torch_matrices_travel_to_the_other_machine(home: str) -> None:
    torch = pytest.importorskip("torch")
    a = torch.arange(64, device=home).reshape(8, 8).to(torch.bfloat16) % 5
    d = gemm(a, a, machine="gpu" if home == "cpu" else "cpu").d
    assert d.device.type == home and d.dtype == torch.bfloat16
    assert torch.equal(d.float().cpu(), (a.float() @ a.float()).cpu())


half = np.zeros((8, 8), np.float16)
bytes_ = np.zeros((8, 8), np.int8)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: gemm(np.zeros(4, np.float16), half), "2 or 3 dimensions"),
        (lambda: gemm(half, np.zeros((4, 4), np.float16)), "inner dimensions differ: a is 8 x 8, b is 4 x 4"),
        (lambda: gemm(half, half.astype(np.float32)), "one dtype"),
        (lambda: gemm(half.astype(np.int32), half.astype(np.int32)), "Int32"),
        (lambda: gemm(half, half, kernel="simt_f32"), "simt_f32 takes Float16"),
        (lambda: gemm(half, half, kernel="nope"), "there is no kernel 'nope'"),
        (lambda: gemm(half, half, beta=1.0), "needs a matrix c"),
        (lambda: gemm(half, half, np.zeros((4, 4), np.float16)), "c must be 8 x 8"),
        (lambda: gemm(half, half, out=np.zeros((4, 8), np.float16)), "out must be 8 x 8"),
        (lambda: gemm(half, half, out=half), "out overlaps a"),
        (lambda: gemm(half, half, out=np.zeros((8, 8), np.int32)), "cannot be written as Int32"),
        (
            lambda: gemm(half, half, half.astype(np.int8), out=half * 0, beta=1),
            "c is Int8, which is not added to sums of Float32",
        ),
        (lambda: gemm(bytes_, bytes_, alpha=float("nan")), "alpha is nan: a scale must be finite"),
        (lambda: gemm(half, half, alpha="2"), "alpha must be a number, got '2'"),
        (lambda: gemm(bytes_, bytes_, alpha=0.5), "alpha = 0.5: kernel hopper_i8 computes with integers"),
        (lambda: gemm(half, half, machine="tpu"), "auto, cpu or gpu"),
        (lambda: gemm(half, half, alpha=10**400), "alpha is beyond what Float32 holds"),
        (lambda: gemm(bytes_, bytes_, alpha=2**31), "alpha is beyond what Int32 holds"),
        (lambda: gemm(half, half, kernel=3), "name of a kernel or an entry"),
        (lambda: gemm([[1.0]], half), "a must be a matrix"),
    ],
)
def test_bad_input_is_one_clear_error(call: object, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        call()


@pytest.mark.unchecked
@pytest.mark.parametrize("home", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_a_call_that_is_repeated_is_not_planned_again(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its report is that of a first call, but for the time; with other options it is planned."""
    torch = pytest.importorskip("torch")
    planned: list[str] = []
    ready = gemm_module.GemmUniversal.ready

    def counted(self: Any, *given: Any) -> Any:
        planned.append(self.kernel)
        return ready(self, *given)

    monkeypatch.setattr(gemm_module.GemmUniversal, "ready", counted)
    monkeypatch.setattr(gemm_module, "REPORTS", {})
    monkeypatch.setattr(repeated_call, "CALLS", {})
    out = torch.empty(40, 24, dtype=torch.float16, device=home)
    reports = []
    for seed in range(3):
        torch.manual_seed(seed)
        a, b, c = (torch.randint(-3, 4, shape).half().to(home) for shape in ((40, 16), (16, 24), (40, 24)))
        exact = a.float() @ b.float()
        done: list[float] = []
        reports.append(gemm(a, b, alpha=2.0, progress=done.append))
        assert torch.equal(reports[-1].d.float(), 2 * exact) and done[-1] == 1.0
        assert torch.equal(gemm(a, b, c, beta=1.0, out=out).d.float(), exact + c.float())
    assert len(planned) == 2 and reports[0].d is not reports[2].d
    first, last = (replace(report, d=None, seconds=0.0) for report in (reports[0], reports[2]))
    assert first == last and 0 < reports[2].seconds and last.grid != (0, 0, 0)
    gemm(a, b, alpha=2.0, kernel="tensorop_f16")
    gemm(a[:, :8], b[:8], alpha=2.0)
    repeated_call.forget()  # as after a result was tuned
    assert torch.equal(gemm(a, b, alpha=2.0).d.float(), 2 * exact) and len(planned) == 5
    with pytest.raises(ArgumentError):
        gemm(a, b[:8], alpha=2.0)
    with pytest.raises(ArgumentError if home == "cpu" else MachineError, match="nonsense"):
        gemm(a, b, alpha=2.0, check="nonsense")
    elsewhere = "gpu" if home == "cpu" else "cpu"
    call = gemm_module.GemmCall(a, b, None, None, 2.0, 0.0, None, "auto", "auto", None, None)
    assert call.key() is not None and replace(call, machine=elsewhere).key() is None, "copies are there and back"
