"""The disk cache: hits, keys, damage, bounds, concurrent writers."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cuda.build import needs_nvrtc
from tests.cuda.test_text import saxpy
from tilewright import disk_cache as cache
from tilewright.cuda import compile, nvrtc, toolchain
from tilewright.errors import ArgumentError
from tilewright.ir.target import architecture

needs_nvrtc()

ONE, TWO = cache.key("one"), cache.key("two")


@pytest.fixture
def compiler(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The architectures that NVRTC was asked for."""
    asked: list[str] = []
    real = nvrtc.compile_source

    def spy(source, arch, lineinfo=False, extra=()):
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
    found = toolchain.nvrtc_for(architecture("sm_90a"))
    monkeypatch.setattr("tilewright.cuda.compiler.nvrtc_for", lambda arch: replace(found, identity="another version"))
    compile(function, "sm_90a")
    assert len(compiler) == 5 == len(entries(own_cache))


def test_the_parts_of_a_key_are_kept_apart() -> None:
    keys = {cache.key(*parts) for parts in (("ab", "c"), ("a", "bc"), ("abc",), ("abc", ""), (b"abc", b"", b""))}
    assert len(keys) == 5 and cache.key("ab", "c") in keys


DAMAGES = {
    "emptied": lambda data, head, body: b"",
    "cut": lambda data, head, body: data[:-10],
    "changed": lambda data, head, body: data[:-1] + bytes([data[-1] ^ 1]),
    "other format": lambda data, head, body: b"x" + data,
    "no checksum": lambda data, head, body: cache.FORMAT + b"{}\n" + data,
    "no header": lambda data, head, body: cache.FORMAT + data.split(b"\n")[1] + b"\n",
    "sizes null": lambda data, head, body: head + b"null\n" + body,
    "sizes zero": lambda data, head, body: head + b'{"meta": 0, "log": 0, "ptx": 0, "cubin": 0}\n' + body,
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_entries_are_made_anew(own_cache: Path, compiler: list[str], damage: str) -> None:
    good = compile(saxpy().done(), "sm_90a")
    (path,) = entries(own_cache)
    data = path.read_bytes()
    kind, checksum, _, body = data.split(b"\n", 3)
    path.write_bytes(DAMAGES[damage](data, kind + b"\n" + checksum + b"\n", body))
    again = compile(saxpy().done(), "sm_90a")
    assert not again.cached and again.cubin == good.cubin and again.ptx == good.ptx
    assert cache.read(path.stem) is not None
    assert compile(saxpy().done(), "sm_90a").cached and len(compiler) == 2


def test_an_entry_under_another_name_is_not_taken(own_cache: Path) -> None:
    cache.write(ONE, {"data": b"of one"})
    (own_cache / f"{ONE}.bin").rename(own_cache / f"{TWO}.bin")
    assert cache.read(TWO) is None


def test_a_pipe_or_a_link_in_place_of_an_entry_is_not_read(own_cache: Path, tmp_path: Path) -> None:
    cache.write(ONE, {"data": b"sound"})
    os.mkfifo(own_cache / f"{TWO}.bin")
    assert cache.read(TWO) is None  # and does not wait for a writer
    cache.write(TWO, {"data": b"new"})
    assert cache.read(TWO) == {"data": b"new"}
    elsewhere = tmp_path / f"{ONE}.bin"
    (own_cache / f"{ONE}.bin").rename(elsewhere)
    (own_cache / f"{ONE}.bin").symlink_to(elsewhere)
    assert cache.read(ONE) is None


def test_an_entry_of_another_user_is_not_taken(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.write(ONE, {"data": b"mine"})
    real = os.fstat

    def of_another(handle: int) -> os.stat_result:
        status = list(real(handle))
        status[stat.ST_UID] += 1
        return os.stat_result(status)

    monkeypatch.setattr(cache.os, "fstat", of_another)
    assert cache.read(ONE) is None
    monkeypatch.undo()
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(own_cache.parent))
    assert cache.read(ONE) == {"data": b"mine"}
    (own_cache / f"{ONE}.bin").chmod(0o666)  # others may have written it
    assert cache.read(ONE) is None


def test_a_folder_of_another_user_is_not_used(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.write(ONE, {"data": b"mine"})
    me = os.geteuid()
    monkeypatch.setattr(cache.os, "geteuid", lambda: me + 1)
    assert cache.read(ONE) is None
    cache.write(TWO, {"data": b"not here"})
    assert [path.stem for path in entries(own_cache)] == [ONE]


def test_the_folder_is_closed_to_others(own_cache: Path) -> None:
    before = os.umask(0)
    try:
        cache.write(ONE, {"data": b"1"})
        made = [stat.S_IMODE(p.stat().st_mode) for p in (own_cache, own_cache.parent, own_cache / f"{ONE}.bin")]
        assert made == [0o700, 0o700, 0o600]
        own_cache.chmod(0o777)
        assert cache.read(ONE) is None, "others may have put it there"
        cache.write(TWO, {"data": b"2"})
        assert stat.S_IMODE(own_cache.stat().st_mode) == 0o700
    finally:
        os.umask(before)


def test_a_link_in_place_of_the_folder_is_not_followed(own_cache: Path, tmp_path: Path) -> None:
    cache.write(ONE, {"data": b"mine"})
    own_cache.rename(tmp_path / "elsewhere")
    own_cache.symlink_to(tmp_path / "elsewhere")
    assert cache.read(ONE) is None
    cache.write(TWO, {"data": b"2"})
    assert len(entries(tmp_path / "elsewhere")) == 1


def test_the_size_is_bounded_and_the_least_used_go_first(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_CACHE_MB", "0.01")
    names = [cache.key(str(number)) for number in range(5)]
    for number in range(4):
        cache.write(names[number], {"data": bytes(4000)})
        os.utime(own_cache / f"{names[number]}.bin", (number, number))
    assert entries(own_cache) == sorted(own_cache / f"{name}.bin" for name in names[2:4])
    assert cache.read(names[2]) == {"data": bytes(4000)}
    cache.write(names[4], {"data": bytes(4000)})
    assert entries(own_cache) == sorted(own_cache / f"{name}.bin" for name in (names[2], names[4]))


def test_eviction_deletes_only_what_the_cache_wrote(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own_cache.mkdir(parents=True, mode=0o700)
    foreign = [own_cache / "weights.bin", own_cache / "notes.tmp", own_cache.parent / f"{ONE}.bin"]
    for path in foreign:
        path.write_bytes(bytes(20000))
    monkeypatch.setenv("TILEWRIGHT_CACHE_MB", "0.01")
    for name in (ONE, TWO):
        cache.write(name, {"data": bytes(9000)})
        os.utime(own_cache / f"{name}.bin", (1, 1))
    assert all(path.exists() for path in foreign)
    assert cache.read(ONE) is None and cache.read(TWO) is not None


def test_the_bound_may_be_infinite_but_must_be_a_number(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for text in ("inf", "1e300"):
        monkeypatch.setenv("TILEWRIGHT_CACHE_MB", text)
        cache.write(ONE, {"data": b"1"})
        assert cache.read(ONE) == {"data": b"1"}
    for text in ("much", "nan", "-1"):
        monkeypatch.setenv("TILEWRIGHT_CACHE_MB", text)
        with pytest.raises(ArgumentError, match=f"TILEWRIGHT_CACHE_MB='{text}' is not a number of megabytes"):
            cache.write(ONE, {"data": b"1"})


def test_the_cache_can_be_turned_off(own_cache: Path, compiler: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    compile(saxpy().done(), "sm_90a", cache=False)
    monkeypatch.setenv("TILEWRIGHT_CACHE_MB", "0")
    compile(saxpy().done(), "sm_90a")
    assert len(compiler) == 2 and not own_cache.exists()
    monkeypatch.delenv("TILEWRIGHT_CACHE_MB")
    cache.write(ONE, {"data": b"1"})
    monkeypatch.setenv("TILEWRIGHT_CACHE_MB", "0")
    assert cache.read(ONE) is None


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path / "file"))
    assert not compile(saxpy().done(), "sm_90a").cached


def test_processes_may_write_the_same_entry_at_once(own_cache: Path) -> None:
    code = (
        "from tilewright import disk_cache as cache\n"
        "parts = {'a': bytes(range(256)) * 400, 'b': b'x' * 70000}\n"
        "name = cache.key('shared')\n"
        "for i in range(60):\n"
        "    cache.write(name, parts)\n"
        "    found = cache.read(name)\n"
        "    assert found == parts, i\n"
    )
    running = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(4)]
    assert [process.wait() for process in running] == [0] * 4
    assert [path.name for path in own_cache.iterdir()] == [f"{cache.key('shared')}.bin"]


def test_the_default_folder_follows_xdg(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TILEWRIGHT_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert cache.folder() == Path("/somewhere/tilewright/tilewright-cubins")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache.folder() == Path.home() / ".cache" / "tilewright" / "tilewright-cubins"


def test_the_compilers_identity_holds_its_version() -> None:
    toolchain.installed.cache_clear()
    identity = toolchain.nvrtc_for(architecture("sm_90a")).identity
    assert nvrtc.version() in identity or "libnvrtc" in identity
