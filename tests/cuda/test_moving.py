"""Launches of arrays that move, beside the plain way: the same bytes of arguments, wherever the arrays are."""

from __future__ import annotations

import ctypes
import importlib
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from tests.counting import calls_in
from tilewright.cuda import moving, parameters
from tilewright.cuda.libcuda import LaunchConfiguration
from tilewright.cuda.moving import MovingLaunch, moving_launch
from tilewright.cuda.parameters import Parameters
from tilewright.errors import MachineError
from tilewright.gemm import SplitK, matmul
from tilewright.gemm.host import handle
from tilewright.gemm.operators import launches as launching
from tilewright.gemm.operators import prepared
from tilewright.ir.runtime import LaunchConfig
from tilewright.ir.tensormap import TensorMap
from tilewright.lang.launch.machine import register_machine

torch = pytest.importorskip("torch")
products = importlib.import_module("tilewright.gemm.operators.matmul")  # the package has a function of that name


def described(tensor_map: TensorMap) -> bytes:
    """Stands in for the driver's 128 bytes."""
    return repr(tensor_map).encode().ljust(128)[-128:]


class Kernel:
    """A kernel of a machine that takes addresses; ``log`` gets the bytes of each launch's arguments, and its way."""

    def __init__(self, function: Any, log: list[Any]) -> None:
        self.function, self.log = function, log
        self.parameters = Parameters(function.name, function.params)

    def on(self, device: str) -> Any:
        return self.launch

    def launch(self, config: LaunchConfig, values: Any) -> None:
        block = self.parameters.copy()
        block.pack(values)
        self.log.append(("plain", config.grid, bytes(block.buffer)))

    def configuration(self, config: LaunchConfig) -> LaunchConfiguration:
        return LaunchConfiguration(config.grid, config.block, 0)

    def driver_call(self, own: LaunchConfiguration, block: Parameters) -> Any:
        def call() -> int:
            self.log.append(("moved", tuple(own.grid), bytes(block.buffer)))
            return 0

        return call

    def moving(self, device: str, config: Any, values: Any, moved: Any, addresses: Any, distances: Any) -> Any:
        return moving_launch(self, config, values, moved, addresses, distances)


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """What a stand-in for a GPU, with arrays of the CPU, launches."""
    found: list[Any] = []
    module: Any = SimpleNamespace(
        machine=lambda: SimpleNamespace(load=lambda function, *_: Kernel(function, found), upload=lambda x: x)
    )
    sys.modules["moving_machine"] = module
    register_machine("cpu", "moving_machine")
    monkeypatch.setattr(handle, "_COMPILED", {})  # what is compiled for it stays here
    monkeypatch.setattr(prepared, "WORKSPACES", prepared.Workspaces())
    monkeypatch.setattr(moving, "encode", described)
    monkeypatch.setattr(parameters, "encoded", described)
    monkeypatch.setattr(launching, "current_stream", lambda device, apart: 7)
    monkeypatch.setattr(products, "REPEATED_PRODUCTS", {})
    monkeypatch.setattr(products, "_ROWS", {})
    yield found
    register_machine("cpu", "tilewright.sim.machine")


CASES = [
    ("hopper_bf16", torch.bfloat16, True),
    ("hopper_bf16", torch.bfloat16, False),
    ("tensorop_f16", torch.float16, True),
    ("simt_f32", torch.float32, False),
]


@pytest.mark.parametrize(("kernel", "dtype", "bias"), CASES)
def test_moving_launches_are_the_plain_ones(
    kernel: str, dtype: Any, bias: bool, log: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    sets = [[torch.zeros(n, dtype=dtype) for n in ((64, 128), (128, 64), (64, 64), (64,))] for _ in range(8)]
    sets += sets[-1:] + sets[:1]  # at the addresses of the launch before, and at others again

    def launches(moving_after: int) -> list[Any]:
        monkeypatch.setattr(launching, "MOVING_AFTER", moving_after)
        products.REPEATED_PRODUCTS.clear()
        products._ROWS.clear()
        log.clear()
        for a, b, out, vector in sets:
            matmul(a, b, out, bias=vector if bias else None, kernel=kernel)
        return list(log)

    plain, moved = launches(1000), launches(3)
    assert {way for way, *_ in plain} == {"plain"}
    assert [way for way, *_ in moved[-4:]] == ["moved"] * 4, "the first launches go the plain way"
    assert [rest for _, *rest in moved] == [rest for _, *rest in plain]
    monkeypatch.setattr(moving, "ACTIVE", [None])
    profiled = launches(3)
    assert [way for way, *_ in profiled[-4:]] == ["plain"] * 4, "a profile sees each launch"
    assert [rest for _, *rest in profiled] == [rest for _, *rest in plain]


def test_calls_in_a_repeated_product(log: list[Any]) -> None:
    """Of Python and of C; the stand-in's launch makes some, and the CPU asks for the simulated GPU."""
    a, b, out = (torch.zeros(n, dtype=torch.bfloat16) for n in ((64, 128), (128, 64), (64, 64)))
    elsewhere = a.clone()
    for _ in range(8):
        matmul(a, b, kernel="hopper_bf16")
        matmul(a, b, out, kernel="hopper_bf16")
    same, moved = (calls_in(lambda x=x: matmul(x, b, out, kernel="hopper_bf16")) for x in (a, elsewhere))
    assert log[-1][0] == "moved"
    made = calls_in(lambda: matmul(a, b, kernel="hopper_bf16"))  # its memory may be that of an earlier result, or not
    assert same <= 60 and max(moved, made) <= 90, "at other addresses operands are compared, and addresses written"


def test_other_differences_than_addresses_have_no_such_launch() -> None:
    from tilewright.ir.core import Value
    from tilewright.ir.types import F16, I32, MemSpace, PtrType

    params = [Value(PtrType(F16, MemSpace.GMEM, 2)), Value(I32)]
    kernel = Kernel(SimpleNamespace(name="k", params=params), [])
    config = LaunchConfig((1, 1, 1), (32, 1, 1), (1, 1, 1), None, 7, ())

    def launch(moved: tuple[int, int], at: int) -> MovingLaunch | None:
        return moving_launch(kernel, config, (0x1000, 3), moved, (at,), {0x100: 0})

    found = launch((0x1100, 3), 0x0FF0)
    assert found is not None and ctypes.sizeof(found.parameters.buffer) == 12
    assert launch((0x1100, 4), 0x1000) is None, "a number follows the address"
    assert launch((0x1200, 3), 0x1000) is None, "twice as far as the array"


def test_an_address_in_a_number_moves_as_a_pointer_does(monkeypatch: pytest.MonkeyPatch) -> None:
    from tilewright.ir.core import Value
    from tilewright.ir.types import F16, I64, MemSpace, PtrType

    log: list[Any] = []
    params = [Value(PtrType(F16, MemSpace.GMEM, 2)), Value(I64), Value(I64)]
    kernel = Kernel(SimpleNamespace(name="k", params=params), log)
    config = LaunchConfig((1, 1, 1), (32, 1, 1), (1, 1, 1), None, 7, ())
    distances = {0x100: 0, 0x300: 1}
    found = moving_launch(kernel, config, (0x1000, 0x2000, 5), (0x1100, 0x2300, 5), (0x1000, 0x2000), distances)
    assert found is not None
    found(0, (0x5000, 0x1_0000_0000_6000))
    kernel.launch(config, (0x5000, 0x1_0000_0000_6000, 5))
    assert log[0][2] == log[1][2]
    other = moving_launch(kernel, config, (0x1000, 0x2000, 5), (0x1100, 0x2300, 6), (0x1000, 0x2000), distances)
    assert other is None, "a number that follows no array"


def test_a_refused_tensor_map_leaves_no_half_written_arguments(log: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    first, other = ([torch.zeros(n, dtype=torch.bfloat16) for n in ((64, 128), (128, 64), (64, 64))] for _ in range(2))
    for _ in range(8):
        matmul(*first, kernel="hopper_bf16")

    def refuse_the_result(tensor_map: TensorMap) -> bytes:
        if tensor_map.address == other[2].data_ptr():
            raise MachineError("refused")
        return described(tensor_map)

    with monkeypatch.context() as patch:
        patch.setattr(moving, "encode", refuse_the_result)
        with pytest.raises(MachineError, match="refused"):
            matmul(*other, kernel="hopper_bf16")
    matmul(*first, kernel="hopper_bf16")
    assert log[-1] == log[-2] and log[-1][0] == "moved"


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("shape", "options"),
    [
        ((64, 64, 128), {}),
        ((1, 512, 1024), {}),
        ((256, 256, 4096), {"decomposition": "stream_k"}),
        ((128, 128, 2048), {"decomposition": SplitK(4, "parallel")}),
        ((37, 53, 71), {}),
        ((3, 64, 64, 128), {}),
    ],
    ids=["tiles", "a row", "Stream-K", "split-K", "unaligned", "a stack"],
)
def test_products_at_many_addresses_are_right(shape: tuple[int, ...], options: Any) -> None:
    *batch, m, n, k = shape
    generator = torch.Generator("cuda").manual_seed(0)

    def integers(*extents: int) -> Any:
        return torch.randint(-3, 4, extents, device="cuda", generator=generator).to(torch.bfloat16)

    sets = [(integers(*batch, m, k), integers(*batch, n, k).mT, integers(n)) for _ in range(12)]
    streams = torch.cuda.current_stream(), torch.cuda.Stream()
    for turn in range(3):
        with torch.cuda.stream(streams[turn % 2]):
            for a, b, bias in sets:
                found = matmul(a, b, bias=bias, **options)
                expected = a.double() @ b.double() + bias.double()
                assert torch.equal(found, expected.to(torch.bfloat16))
