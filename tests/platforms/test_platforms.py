"""Other platforms with stand-ins: modules that Windows lacks, consoles and files of other encodings, folders."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tilewright import own_files
from tilewright.cli import main

ROOT = Path(__file__).parents[2]
LACKING = """
import importlib, os, pkgutil, signal, subprocess, sys, tempfile
import ml_dtypes, numpy, pytest, rich.console  # built for this platform, not for the one that is played
try:
    import torch
except ImportError:
    pass
class Lacking:
    names = {"fcntl", "resource", "termios", "pwd", "grp", "pty", "tty", "syslog", "crypt"}
    def find_spec(self, name, path=None, target=None):
        if name in self.names:
            raise ModuleNotFoundError(f"No module named {name!r}")
sys.meta_path.insert(0, Lacking())
for name in Lacking.names:
    sys.modules.pop(name, None)
for name in ("fork", "forkpty", "getuid", "geteuid", "getgid", "getegid", "uname", "sysconf", "sched_getaffinity",
             "setsid", "killpg", "getpgid", "mkfifo", "O_NOFOLLOW", "O_NONBLOCK", "chown", "nice", "wait3", "wait4"):
    if hasattr(os, name):
        delattr(os, name)
for name in ("SIGALRM", "SIGKILL", "SIGHUP", "SIGUSR1", "alarm", "setitimer", "pthread_sigmask"):
    if hasattr(signal, name):
        delattr(signal, name)
"""
"""Makes of a Python for Unix one that lacks what Windows lacks."""
ENVIRONMENT = {
    "PYTHONUTF8": "0",
    "PYTHONCOERCECLOCALE": "0",
    "LC_ALL": "C",
    "PYTHONWARNDEFAULTENCODING": "1",
    "COLUMNS": "100",
}
"""Files are ASCII unless a call names another encoding, and calls without one give a warning."""


def run(program: str, folder: Path, **environment: str) -> bytes:
    script = folder / "program.py"
    script.write_text(program, encoding="utf-8")
    known = {**os.environ, "PYTHONPATH": str(ROOT), "TILEWRIGHT_CACHE_DIR": str(folder / "cache"), **environment}
    done = subprocess.run([sys.executable, script], cwd=folder, env=known, capture_output=True)
    assert done.returncode == 0, done.stderr.decode(errors="replace")[-3000:]
    return done.stdout


KERNEL = """
import numpy as np
from tilewright import cute
from tilewright.cute.runtime import from_dlpack

@cute.kernel
def größer(x: cute.Tensor):  # 2·x
    x[cute.arch.thread_idx()[0]] = x[cute.arch.thread_idx()[0]] * 2

@cute.jit
def run(x: cute.Tensor):
    größer(x).launch(grid=(1, 1, 1), block=(32, 1, 1))

x = np.ones(32, np.float32)
run(from_dlpack(x))
print("·", int(x.sum()))
"""
NEXT = "---- code page 1252 ----"
COMMANDS = [
    ["--help"],
    ["gemm", "--help"],
    ["layout", "composition((4,8):(8,1), 8:2)"],
    ["layout", "(64,64):(64,1)"],
    ["layout", "(4,8):(8,1)", "--svg", "l.svg", "--tex", "l.tex"],
    ["atom"],
    ["atom", "SM80_16x8x16_F32F16F16F32_TN"],
    ["show"],
    ["show", "simt_f32", "--cuda"],
    ["gemm", "a.npy", "a.npy", "-o", "d.npy", "--check"],
    ["streamk", "128", "128", "64"],
    ["check", "kernel.py", "--check", "all"],
    ["check", "kernel.py", "--json", "f.json"],
    ["run", "kernel.py"],
    ["mutate", "kernel.py", "--json", "m.json"],
    ["check", "kernel.py", "--schedules", "2"],
]


def test_windows_and_consoles_of_other_encodings(tmp_path: Path) -> None:
    """With nothing that Windows lacks every module is imported, files are kept and read again, kernels are simulated
    and checked, and every command prints, first on a console of ASCII, then on one of code page 1252."""
    (tmp_path / "kernel.py").write_text(KERNEL, encoding="utf-8")
    program = LACKING + (
        "import warnings\n"
        "warnings.filterwarnings('error', category=EncodingWarning, module='tilewright')\n"
        "import tilewright\n"
        "for module in pkgutil.walk_packages(tilewright.__path__, 'tilewright.'):\n"
        "    if not module.name.endswith('__main__'):\n"
        "        try:\n"
        "            importlib.import_module(module.name)\n"
        "        except ModuleNotFoundError as missing:\n"
        "            assert missing.name in ('torch', 'jax', 'IPython', 'tvm_ffi'), missing\n"
        "from tilewright import own_files\n"
        "own_files.write(own_files.folder('x') / 'kept.bin', b'a\\r\\nb\\x1a')\n"
        "own_files.write(own_files.folder('x') / 'kept.bin', b'a\\r\\nc\\x1a')\n"
        "assert own_files.read(own_files.folder('x') / 'kept.bin', touch=True) == b'a\\r\\nc\\x1a'\n"
        "from tilewright.cli import main\n"
        "numpy.save('a.npy', numpy.ones((64, 64), numpy.float16))\n"
        "def each(commands):\n"
        "    for command in commands:\n"
        "        code = main(command)\n"
        "        assert code == 0, (command, code)\n"
        "    assert main(['layout', '(4,8):(·']) == 2\n"
        f"each({COMMANDS!r})\n"
        "assert (numpy.load('d.npy') == 64).all()\n"
        f"print({NEXT!r}, flush=True)\n"
        "sys.stdout.reconfigure(encoding='cp1252')\n"
        "sys.stderr.reconfigure(encoding='cp1252')\n"
        f"each({[*COMMANDS[:3], COMMANDS[9]]!r})\n"
    )
    printed = run(program, tmp_path, PYTHONIOENCODING="ascii", **ENVIRONMENT)
    for out, middle in zip(printed.split(NEXT.encode()), "*·", strict=True):
        text = out.decode("cp1252")
        assert f"D = alpha{middle}A{middle}B + beta{middle}C" in text
        assert "─" not in text and "+---" in text, "boxes are of ASCII where the console may not have lines"
    assert b"\n* 64\n" in printed


@pytest.mark.parametrize("folder", ["tilewright", "examples", "bench", "tools"])
def test_texts_are_read_and_written_with_an_encoding(folder: str) -> None:
    """Without one, Windows takes the code page of the country."""
    texts = {path: path.read_text(encoding="utf-8") for path in sorted((ROOT / folder).rglob("*.py"))}
    found = [
        f"{path.relative_to(ROOT)}:{call.lineno}: {ast.unparse(call)}"
        for path, text in texts.items()
        if re.search(r"_text\(|open\(|text=|universal_newlines", text)
        for call in of_no_encoding(ast.parse(text))
    ]
    assert not found, "\n".join(found)


def of_no_encoding(tree: ast.AST) -> Iterator[ast.Call]:
    """Calls that open texts, or pipes of text, without naming the encoding."""
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call):
            continue
        method = isinstance(call.func, ast.Attribute)
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        keywords = {keyword.arg: keyword.value for keyword in call.keywords}
        if "encoding" in keywords or None in keywords:
            continue
        if name in ("read_text", "write_text") and len(call.args) <= (name == "write_text"):
            yield call
        elif name in ("run", "Popen", "check_output") and {"text", "universal_newlines"} & keywords.keys():
            yield call
        elif name in ("open", "fdopen"):
            places = call.args[:1] if method and name == "open" else call.args[1:2]
            mode = keywords.get("mode", places[0] if places else ast.Constant("r"))
            if isinstance(mode, ast.Constant) and isinstance(mode.value, str) and "b" not in mode.value:
                yield call


def test_search_for_missing_encodings_finds_them() -> None:
    text = "p.read_text(); p.write_text(s); open(n); p.open('w'); os.fdopen(h, 'w'); subprocess.run(c, text=True)"
    good = "p.read_text(encoding='utf-8'); open(n, 'rb'); p.open('wb'); subprocess.run(c); loop.open(block)"
    assert len(list(of_no_encoding(ast.parse(text)))) == 6 and not list(of_no_encoding(ast.parse(good)))


# -- folders -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("environment", "expected"),
    [({}, "/home/u/.cache/tilewright"), ({"XDG_CACHE_HOME": "/x"}, "/x/tilewright")],
)
@pytest.mark.skipif(sys.platform != "linux", reason="platformdirs knows the folders of the other systems")
def test_cache_folder_on_each_platform(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], expected: str
) -> None:
    for name in ("TILEWRIGHT_CACHE_DIR", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"HOME": "/home/u", **environment}.items():
        monkeypatch.setenv(name, value)
    assert own_files.folder("cubins") == Path(expected, "cubins")


def test_cache_without_a_home_folder_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("TILEWRIGHT_CACHE_DIR", raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OSError, match="null"):
        own_files.write(own_files.folder("x") / "file", b"x")
    assert own_files.read(own_files.folder("x") / "file") is None and not list(tmp_path.iterdir())


def test_a_file_that_is_open_elsewhere_is_replaced_when_it_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On Windows a file cannot be replaced while it is open."""
    real, refusals = os.replace, 2

    def replace(source: str, target: Path) -> None:
        nonlocal refusals
        if refusals:
            refusals -= 1
            raise PermissionError(13, "The process cannot access the file")
        real(source, target)

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(PermissionError):  # elsewhere a refusal is final
        own_files.write(tmp_path / "kept" / "a.bin", b"old")
    assert not list((tmp_path / "kept").iterdir()), "no temporary file stays"
    monkeypatch.setattr(own_files, "PAUSES", (0.0, 0.0))
    refusals = 2
    own_files.write(tmp_path / "kept" / "a.bin", b"new")
    assert own_files.read(tmp_path / "kept" / "a.bin") == b"new" and refusals == 0


@pytest.mark.parametrize("where", ["file", "missing"])
def test_kernels_compile_where_nothing_can_be_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    """The cache's folder is a file, or below one: writing fails for root too."""
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path / "file" / ("" if where == "file" else "deeper")))
    from tilewright import disk_cache as cache

    name = cache.key("one")
    cache.write(name, {"part": b"1"})
    assert cache.read(name) is None


# -- the demo ----------------------------------------------------------------------------------------------------------


def test_the_demo_says_where_it_cannot_draw(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(path: Path, data: bytes) -> int:
        raise OSError(30, "Read-only file system", str(path))

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Path, "write_bytes", refuse)
    assert main(["demo", "--machine", "cpu"]) == 2
    text = capsys.readouterr()
    assert re.search(r"swizzled_tile\.svg: Read-only file system; work in a folder of yours, or .*--pictures", text.err)
    assert not text.out, "known before anything is computed"
