"""Occupancy: values worked out by hand, laws, and on a GPU the driver's own answers."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.analysis import MULTIPROCESSORS, Waves, occupancy
from tilewright.errors import ArgumentError

SOURCE = """
extern "C" __global__ void many(float const* x, float* y, int n) {
  float r[200];
#pragma unroll
  for (int i = 0; i < 200; ++i) r[i] = x[i * n + threadIdx.x];
  __syncthreads();
  for (int j = 0; j < n; ++j) {
#pragma unroll
    for (int i = 0; i < 200; ++i) r[i] = r[i] * r[(7 * i + 1) % 200] + x[j];
  }
  float sum = 0;
#pragma unroll
  for (int i = 0; i < 200; ++i) sum += r[i];
  y[threadIdx.x] = sum;
}
"""


@pytest.mark.parametrize(
    "threads,registers,smem,arch,blocks,limited_by",
    [
        (128, 244, 64 << 10, "sm_90", 2, ("registers",)),
        (128, 32, 0, "sm_80", 16, ("warps", "registers")),
        (32, 16, 0, "sm_80", 32, ("blocks",)),
        (32, 16, 0, "sm_89", 24, ("blocks",)),
        (1024, 64, 0, "sm_80", 1, ("registers",)),
        (1024, 32, 0, "sm_89", 1, ("warps",)),
        (256, 128, 48 << 10, "sm_80", 2, ("registers",)),
        (256, 64, 80 << 10, "sm_80", 2, ("shared memory",)),
        (256, 64, 81 << 10, "sm_80", 2, ("shared memory",)),
        (256, 64, (81 << 10) + 1, "sm_80", 1, ("shared memory",)),  # 1 KiB of each block is the system's
        (128, 128, 48 << 10, "sm_89", 2, ("shared memory",)),
        (384, 168, 200 << 10, "sm_90a", 1, ("registers", "shared memory")),
        (128, 255, 227 << 10, "sm_90", 1, ("shared memory",)),
        (128, 255, (227 << 10) + 1, "sm_90", 0, ("shared memory",)),
        (512, 255, 0, "sm_90", 0, ("registers",)),  # 2 warps a quarter are 8, the block has 16
        (96, 80, 0, "sm_90", 8, ("registers",)),  # 6 warps a quarter are 24
        (33, 129, 0, "sm_80", 6, ("registers",)),  # 2 warps of 136 registers a thread, 3 of them a quarter
    ],
)
def test_known_values(threads: int, registers: int, smem: int, arch: str, blocks: int, limited_by: tuple[str]) -> None:
    found = occupancy(threads, registers, smem, arch)
    assert (found.blocks, found.limited_by) == (blocks, limited_by)


@given(
    st.integers(1, 1024),
    st.integers(1, 255),
    st.integers(0, 227 << 10),
    st.sampled_from(["sm_80", "sm_86", "sm_89", "sm_90", "sm_110", "sm_120"]),
)
def test_resources_suffice_and_more_of_them_is_never_better(threads: int, registers: int, smem: int, arch: str) -> None:
    found = occupancy(threads, registers, smem, arch)
    unit = MULTIPROCESSORS[int(arch[3:])]
    assert found.blocks * registers * 32 * -(-threads // 32) <= 65536
    assert found.blocks * (smem + 1024) <= (unit.smem_kib + 1) * 1024
    assert found.warps <= unit.warps and 0 <= found.fraction <= 1
    for more in (
        (min(1024, threads + 32), registers, smem),
        (threads, min(255, registers + 8), smem),
        (threads, registers, smem + 128),
    ):
        assert occupancy(*more, arch).blocks <= found.blocks


def test_waves() -> None:
    found = occupancy(128, 128, 0, "sm_80")
    assert found.blocks == 4
    assert found.waves(432) == Waves(432, 108, 432) and found.waves(432).count == 1
    assert found.waves(433).count == 2 and found.waves(433).efficiency == 433 / 864
    assert str(found.waves(50, sms=10)) == "2 waves of 40 for 50 blocks: 62% full"
    with pytest.raises(ArgumentError, match="at least one block"):
        found.waves(0)
    with pytest.raises(ArgumentError, match="no block fits on a multiprocessor: too much of registers"):
        occupancy(1024, 255, 0, "sm_80").waves(1)


@pytest.mark.parametrize(
    "arguments,text",
    [
        ((0, 32, 0, "sm_80"), "1 to 1024 threads"),
        ((2048, 32, 0, "sm_80"), "1 to 1024 threads"),
        ((128, 256, 0, "sm_80"), "up to 255 registers"),
        ((128, 32, -1, "sm_80"), "-1 bytes"),
        ((128, 32, 0, "sm_75"), "sm_80, sm_86, .*sm_121"),
        ((128, 32, 0, "hopper"), "unknown architecture 'hopper'"),
    ],
)
def test_mistakes(arguments: Any, text: str) -> None:
    with pytest.raises(ArgumentError, match=text):
        occupancy(*arguments)


@pytest.mark.gpu
@pytest.mark.parametrize("most", [24, 40, 64, 80, 96, 128, 168, 200, 255])
def test_occupancy_equals_the_drivers(most: int) -> None:
    """A kernel of many registers, told to use at most so many: its blocks for every block size and shared memory."""
    from cuda.bindings import nvrtc

    from tilewright.cuda import libcuda
    from tilewright.cuda.limits import limits

    arch = limits(0).arch
    if int(arch[3:].rstrip("a")) not in MULTIPROCESSORS:
        pytest.skip(f"no rules for {arch}")
    _, program = nvrtc.nvrtcCreateProgram(SOURCE.encode(), b"many.cu", 0, [], [])
    options = [f"--gpu-architecture={arch}".encode(), f"--maxrregcount={most}".encode()]
    assert int(nvrtc.nvrtcCompileProgram(program, len(options), options)[0]) == 0
    cubin = b" " * nvrtc.nvrtcGetCUBINSize(program)[1]
    nvrtc.nvrtcGetCUBIN(program, cubin)
    driver = libcuda.library()
    function = ctypes.c_void_p(libcuda.load_module(0, cubin, "many"))
    registers, largest = libcuda.function_attribute(function.value or 0, 4), limits(0).smem
    wrong = []
    with libcuda.current(0):
        # 8 is CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        assert driver.cuFuncSetAttribute(function, 8, largest) == 0
        for threads in [1, 33, *range(32, 1025, 32)]:
            for smem in (0, 1, 1000, 4096, 10000, 32768, 65536, 75776, 75777, 100000, 115712, 115713, largest):
                blocks = ctypes.c_int()
                code = driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(
                    ctypes.byref(blocks), function, threads, ctypes.c_size_t(min(smem, largest))
                )
                ours = occupancy(threads, registers, min(smem, largest), arch).blocks
                if code != 0 or blocks.value != ours:
                    wrong.append((threads, registers, smem, code, blocks.value, ours))
    assert wrong == []
