"""What a user may type or hand to the command line: one line, exit code 2, and the output as it was."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tilewright.cli import main

ROOT = str(Path(__file__).parents[2])
HEADS = {
    "code": "__import__('os').system('echo broken')",
    "negative": "{'descr': '<f2', 'fortran_order': False, 'shape': (-8, 16), }",
    "huge": "{'descr': '<f2', 'fortran_order': False, 'shape': (1000000000, 1000000000), }",
    "objects": "{'descr': '|O', 'fortran_order': False, 'shape': (8, 16), }",
}


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    ones = np.ones((8, 16), np.float16)
    for name, array in {
        "a": ones,
        "b": ones.T,
        "b32": ones.T.astype(np.float32),
        "big": ones.astype(">f2"),
        "cube": ones[None],
        "row": ones[0],
        "complex": ones.astype(complex),
        "text": ones.astype(str),
        "whole": ones.astype(np.int64),
    }.items():
        np.save(f"{name}.npy", array)
    Path("cut.npy").write_bytes(Path("a.npy").read_bytes()[:-7])
    Path("head.npy").write_bytes(Path("a.npy").read_bytes()[:20])
    Path("empty.npy").write_bytes(b"")
    for name, head in HEADS.items():
        Path(f"{name}.npy").write_bytes(b"\x93NUMPY\x01\x00\x76\x00" + head.ljust(117).encode() + b"\n" + b"0" * 256)
    Path("folder").mkdir()
    Path("d.npy").write_bytes(b"kept")
    return tmp_path


def complaint(capfd: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(list(arguments)) == 2
    out, err = capfd.readouterr()
    assert out == "" and len(err.splitlines()) == 1 and err.startswith("tilewright: "), (out, err)
    return err


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ("missing.npy b.npy", "No such file"),
        ("folder b.npy", "Is a directory"),
        ("cut.npy b.npy", "truncated"),
        ("head.npy b.npy", "damaged"),
        ("empty.npy b.npy", "not a .npy file"),
        ("code.npy b.npy", "damaged"),
        ("negative.npy b.npy", "(-8, 16)"),
        ("huge.npy b.npy", "truncated"),
        ("objects.npy b.npy", "object"),
        ("cube.npy b.npy", "(1, 8, 16)"),
        ("row.npy b.npy", "(16,)"),
        ("complex.npy b.npy", "complex128"),
        ("text.npy b.npy", "real numbers"),
        ("whole.npy b.npy", "no kernel takes Int64 operands"),
        ("a.npy b32.npy", "one dtype"),
        ("a.npy a.npy", "inner dimensions"),
        ("a.npy b.npy --c a.npy", "the product is 8 x 8"),
        ("a.npy b.npy --kernel none", "there is no kernel 'none'"),
        ("a.npy b.npy --machine tpu", "tpu"),
        ("a.npy", "Missing argument"),
    ],
)
def test_gemm(files: Path, capfd: pytest.CaptureFixture[str], arguments: str, reason: str) -> None:
    assert reason in complaint(capfd, "gemm", *arguments.split(), "-o", "d.npy")
    assert Path("d.npy").read_bytes() == b"kept"


@pytest.mark.parametrize(
    ("output", "reason"), [("no/d.npy", "No such file"), ("folder", "not a regular file"), ("", "cannot write")]
)
def test_outputs_that_cannot_be_written(
    files: Path, capfd: pytest.CaptureFixture[str], output: str, reason: str
) -> None:
    before = sorted(files.rglob("*"))
    assert reason in complaint(capfd, "gemm", "a.npy", "b.npy", "-o", output)
    assert sorted(files.rglob("*")) == before


def test_a_gpu_that_is_not_there(files: Path) -> None:
    command = [sys.executable, "-m", "tilewright.cli", *"gemm a.npy b.npy -o d.npy --machine gpu".split()]
    environment = {**os.environ, "TILEWRIGHT_LIBCUDA": "libnone.so.1", "PYTHONPATH": ROOT}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 2 and done.stdout == "", done
    assert len(done.stderr.splitlines()) == 1 and "no NVIDIA driver here" in done.stderr
    assert Path("d.npy").read_bytes() == b"kept"


def test_bytes_of_the_other_order_are_read(files: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["gemm", "big.npy", "b.npy", "-o", "d.npy", "--machine", "cpu"]) == 0
    assert (np.load("d.npy") == 16).all()


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["layout", "(4,"], "position|expected|end"),
        (["layout", "composition((3,5):(2,7), 4:2)"], "composition"),
        (["layout", "__import__('os')"], "import|character|unknown"),
        (["layout", "nothing(4:1)"], "nothing"),
        (["atom", "SM80_none"], "SM80_none"),
        (["show", "none"], "none"),
        (["nothing"], "nothing"),
        (["layout", "8:1", "--svg", "folder"], "folder"),
    ],
)
def test_other_commands(files: Path, capfd: pytest.CaptureFixture[str], arguments: list[str], reason: str) -> None:
    assert main(arguments) == 2
    out, err = capfd.readouterr()
    assert re.search(reason, err) and err.startswith("tilewright: ") and "Traceback" not in err, (out, err)


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("is_injective((100000,100000):(7,100003))", "a table of all its 10000000000 elements is too large"),
        ("coalescing((100000,100000):(1,7), (100000,100000):(1,7), 32)", "too large"),
        ("is_injective(Sw<3,4,3> o 0 o (100000,100000):(1,100000))", "too large"),
        ("solve_swizzle((100000,100000):(64,1), (((8,8):(1,8),8)), 16)", "cannot access values 0..7 as one vector"),
        ("(" * 3000 + "1" + ")" * 3000, "parentheses nested more than 64 deep"),
        ("size(" * 3000 + "1" + ")" * 3000, "calls nested more than 64 deep"),
        ("4:1 o 0 o " * 3000 + "4:1", "layouts nested more than 64 deep"),
        ("4:1" + "@0" * 3000, "more than 64 nested modes"),
        ("4:1@99999999(1)", "99999999 is larger than 64"),
        ("repeat(1,20000000)", "20000000 modes are more than the 65536"),
        ("repeat(1,999999999999)", "more than the 65536"),
        ("repeat(repeat(1,60000),60000)", "repeat gives a tuple of more than 65536 numbers"),
        ("append(4:1, up_to_rank=99999999)", "99999999 modes are more than the 65536"),
        ("9" * 5000 + ":1", "999999999999999999999999... is larger than 9223372036854775808"),
        ("Sw<3,99999999999,3>(5)", "addresses do not have that many bits"),
    ],
    ids=lambda text: text[:24],
)
def test_large_expressions_are_refused_at_once(capfd: pytest.CaptureFixture[str], expression: str, reason: str) -> None:
    assert main(["layout", expression]) == 2
    out, err = capfd.readouterr()
    lines = err.splitlines()
    assert reason in lines[0] and err.startswith("tilewright: ") and out == "", (out, err[:500])
    assert len(lines) == 1 or lines[1:] == [f"  {expression}", "  ^".rjust(len(lines[2]))]


def test_a_layout_with_more_coordinates_than_offsets_needs_no_table(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["layout", "is_injective((100000,100000):(1,7))"]) == 0
    assert capfd.readouterr().out == "False\n"
