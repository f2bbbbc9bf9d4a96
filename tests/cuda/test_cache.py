"""The disk cache: hits, keys, damage, bounds, concurrent writers."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cuda.build import needs_nvrtc
from tests.cuda.test_text import saxpy
from tilewright.cuda import cache, compile, nvrtc, toolchain

needs_nvrtc()


@pytest.fixture
def compiler(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The architectures that NVRTC was asked for."""
    asked: list[str] = []
    real = nvrtc.compile_source

    def spy(source, arch, lineinfo=False, extra=()):  # type: ignore[no-untyped-def]
        asked.append(arch)
        return real(source, arch, lineinfo, extra)

    monkeypatch.setattr(nvrtc, "compile_source", spy)
    return asked


def entries(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.bin"))


def test_a_second_compile_is_a_hit(own_cache: Path, compiler: list[str]) -> None:
    first, second = compile(saxpy().done(), "sm_90a"), compile(saxpy().done(), "sm_90a")
    assert compiler == ["sm_90a"] and not first.cached and second.cached
    same = ("cubin", "ptx", "log", "cuda", "ir", "registers", "spills", "smem")
    assert all(getattr(first, name) == getattr(second, name) for name in same)
    assert len(entries(own_cache)) == 1
    assert not list(own_cache.glob(".*")), "no temporary files stay"


def test_a_hit_does_not_load_the_compiler(own_cache: Path) -> None:
    compile(saxpy().done(), "sm_90a")
    code = (
        "import sys\n"
        "from tests.cuda.test_text import saxpy\n"
        "import tilewright.cuda.compiler as c\n"
        "f = saxpy().done()\n"
        "assert c.compile(f, 'sm_90a').cached\n"
        "assert 'libnvrtc' not in open('/proc/self/maps').read()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_everything_that_decides_the_result_is_in_the_key(
    own_cache: Path, compiler: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    function = saxpy().done()
    compile(function, "sm_90a")
    compile(function, "sm_80")
    compile(function, "sm_90a", options=("--maxrregcount=64",))
    compile(function, "sm_90a", lineinfo=True)
    monkeypatch.setattr("tilewright.cuda.compiler.nvrtc_identity", lambda: "another version")
    compile(function, "sm_90a")
    assert len(compiler) == 5 == len(entries(own_cache))


def test_the_parts_of_a_key_are_kept_apart() -> None:
    keys = {cache.key(*parts) for parts in (("ab", "c"), ("a", "bc"), ("abc",), ("abc", ""), (b"abc", b"", b""))}
    assert len(keys) == 5 and cache.key("ab", "c") in keys


@pytest.mark.parametrize("damage", ("emptied", "cut", "changed", "other format", "bad header"))
def test_damaged_entries_are_made_anew(own_cache: Path, compiler: list[str], damage: str) -> None:
    good = compile(saxpy().done(), "sm_90a")
    (path,) = entries(own_cache)
    data = path.read_bytes()
    body = {
        "emptied": b"", "cut": data[:-10], "changed": data[:-1] + bytes([data[-1] ^ 1]), "other format": b"x" + data,
        "bad header": cache.FORMAT + b"{}\n" + data,
    }[damage]  # fmt: skip
    path.write_bytes(body)
    again = compile(saxpy().done(), "sm_90a")
    assert not again.cached and again.cubin == good.cubin
    assert path.read_bytes() == data or cache.read(path.stem) is not None
    assert compile(saxpy().done(), "sm_90a").cached and len(compiler) == 2


def test_the_size_is_bounded_and_the_least_used_go_first(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_CACHE_MB", "0.01")
    for number in range(4):
        cache.write(f"entry{number}", {"data": bytes(4000)})
        time.sleep(0.01)
    assert [path.stem for path in entries(own_cache)] == ["entry2", "entry3"]
    assert cache.read("entry2") == {"data": bytes(4000)}
    time.sleep(0.01)
    cache.write("entry4", {"data": bytes(4000)})
    assert [path.stem for path in entries(own_cache)] == ["entry2", "entry4"]


def test_the_cache_can_be_turned_off(own_cache: Path, compiler: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    compile(saxpy().done(), "sm_90a", cache=False)
    monkeypatch.setenv("TILEWRIGHT_CACHE_MB", "0")
    compile(saxpy().done(), "sm_90a")
    assert len(compiler) == 2 and not own_cache.exists()


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path / "file"))
    assert not compile(saxpy().done(), "sm_90a").cached


def test_processes_may_write_the_same_entry_at_once(own_cache: Path) -> None:
    code = (
        "from tilewright.cuda import cache\n"
        "parts = {'a': bytes(range(256)) * 400, 'b': b'x' * 70000}\n"
        "for i in range(60):\n"
        "    cache.write('shared', parts)\n"
        "    found = cache.read('shared')\n"
        "    assert found == parts, i\n"
    )
    running = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(4)]
    assert [process.wait() for process in running] == [0] * 4
    assert [path.name for path in own_cache.iterdir()] == ["shared.bin"]


def test_the_default_folder_follows_xdg(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TILEWRIGHT_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert cache.folder() == Path("/somewhere/tilewright")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache.folder() == Path.home() / ".cache" / "tilewright"


def test_the_compilers_identity_holds_its_version() -> None:
    toolchain.nvrtc_identity.cache_clear()
    identity = toolchain.nvrtc_identity()
    assert nvrtc.version() in identity or "libnvrtc" in identity
