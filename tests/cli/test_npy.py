"""Reading and replacing .npy files."""

from __future__ import annotations

import os
import resource
import stat
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.cli.npy import pending_output, read_array
from tilewright.errors import ArgumentError

DTYPES = [
    np.float16,
    np.float32,
    np.float64,
    np.int8,
    np.uint16,
    ml_dtypes.bfloat16,
    ml_dtypes.float8_e4m3fn,
    ml_dtypes.float8_e5m2,
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(3, 5), (0, 4), (1, 1), (7,), (2, 3, 4)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_npy_files_of_numpy_are_read_back(tmp_path: Path, dtype: type, shape: tuple[int, ...], order: str) -> None:
    array = np.asarray(np.arange(np.prod(shape)).reshape(shape).astype(dtype), order=order)
    path = tmp_path / "x.npy"
    np.save(path, array)
    read = read_array(path)
    assert read.dtype == array.dtype
    assert np.array_equal(read, array)


def test_foreign_byte_order_becomes_native(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(4, dtype=">f4"))
    read = read_array(tmp_path / "x.npy")
    assert read.dtype == np.dtype(np.float32) and read.dtype.isnative and read.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("dtype", DTYPES)
def test_written_arrays_are_read_back(tmp_path: Path, dtype: type) -> None:
    array = np.arange(12).reshape(3, 4).astype(dtype)
    with pending_output(tmp_path / "y.npy") as write:
        write(array)
    assert np.array_equal(read_array(tmp_path / "y.npy"), array)


@given(st.integers(min_value=0, max_value=400))
def test_a_file_cut_anywhere_is_a_clear_error(tmp_path_factory: pytest.TempPathFactory, kept: int) -> None:
    path = tmp_path_factory.mktemp("cut") / "x.npy"
    np.save(path, np.zeros((10, 10), np.float32))
    whole = path.read_bytes()
    path.write_bytes(whole[:kept])
    assert kept < len(whole)
    with pytest.raises(ArgumentError, match="x.npy is (truncated|damaged|not a .npy file)"):
        read_array(path)


@pytest.mark.parametrize(
    ("array", "reason"),
    [
        (np.zeros(3, complex), "complex128"),
        (np.array(["a"]), "<U1"),
        (np.zeros(2, [("x", "i4")]), "'x'"),
        (np.zeros(3, bool), "bool"),
    ],
)
def test_other_things_than_real_numbers_are_refused(tmp_path: Path, array: np.ndarray, reason: str) -> None:
    np.save(tmp_path / "x.npy", array)
    with pytest.raises(ArgumentError, match=reason):
        read_array(tmp_path / "x.npy")


def test_pickled_objects_are_refused_unopened(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([{}], object), allow_pickle=True)
    with pytest.raises(ArgumentError, match="object"):
        read_array(tmp_path / "x.npy")


def test_a_header_that_promises_too_much_reserves_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    header = repr({"descr": "<f4", "fortran_order": False, "shape": (10**12, 10**12)}).encode()
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
    with pytest.raises(ArgumentError, match="truncated"):
        read_array(path)


@pytest.mark.parametrize("what", ["missing", "folder"])
def test_files_that_cannot_be_opened(tmp_path: Path, what: str) -> None:
    path = tmp_path / "x.npy"
    if what == "folder":
        path.mkdir()
    with pytest.raises(ArgumentError, match="cannot read .*x.npy"):
        read_array(path)


ARRAY = np.arange(4.0)


def test_a_failure_leaves_the_old_file_and_no_litter(tmp_path: Path) -> None:
    path = tmp_path / "y.npy"
    path.write_bytes(b"old")
    with pytest.raises(KeyboardInterrupt), pending_output(path):
        assert len(os.listdir(tmp_path)) == 2
        raise KeyboardInterrupt
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["y.npy"]


def test_a_file_that_may_not_be_written_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "y.npy"
    path.write_bytes(b"old")
    monkeypatch.setattr(os, "access", lambda *_: False)  # what the system says, root or not
    with pytest.raises(ArgumentError, match=r"cannot write .*y.npy: permission denied"), pending_output(path):
        pass
    assert path.read_bytes() == b"old" and os.listdir(tmp_path) == ["y.npy"]


def test_the_bytes_are_on_the_disk_before_the_name_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, synced = tmp_path / "y.npy", []
    real = os.fsync

    def sync(descriptor: int) -> None:
        synced.append((os.fstat(descriptor).st_size, path.exists()))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", sync)
    with pending_output(path) as write:
        write(ARRAY)
    assert synced == [(path.stat().st_size, False)]


def test_a_disk_that_fills_up_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "y.npy"
    path.write_bytes(b"old")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with pytest.raises(ArgumentError, match="cannot write .*y.npy"), pending_output(path) as write:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
        try:
            write(np.zeros(100_000))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_bytes() == b"old" and os.listdir(tmp_path) == ["y.npy"]


def test_an_error_of_the_work_is_not_taken_for_one_of_the_file(tmp_path: Path) -> None:
    with pytest.raises(TimeoutError), pending_output(tmp_path / "y.npy"):
        raise TimeoutError


def test_the_mode_of_the_replaced_file_is_kept_and_a_new_one_follows_the_umask(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.touch()
    old.chmod(0o604)
    umask = os.umask(0o027)
    try:
        for path in (old, new):
            with pending_output(path) as write:
                write(ARRAY)
    finally:
        os.umask(umask)
    assert stat.S_IMODE(old.stat().st_mode) == 0o604
    assert stat.S_IMODE(new.stat().st_mode) == 0o640


def test_output_through_a_link_keeps_the_link(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to("real")
    with pending_output(tmp_path / "link") as write:
        write(ARRAY)
    assert (tmp_path / "link").is_symlink()
    assert np.array_equal(np.load(tmp_path / "real"), ARRAY)


@pytest.mark.parametrize("name", ["no/such/folder/y.npy", "", "pipe"])
def test_paths_that_cannot_be_written_are_refused_before_the_work(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ArgumentError, match="cannot write"), pending_output(tmp_path / name):
        pytest.fail("the block ran")
