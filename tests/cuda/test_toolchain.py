"""Which NVRTC is taken: wheels of CUDA 12 and 13, toolkits, drivers of several ages, on Linux, Windows and macOS."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cuda.build import needs_nvrtc
from tests.cuda.test_text import saxpy
from tilewright.cuda import compile, libcuda, machine, nvrtc, toolchain
from tilewright.errors import CompileError, MachineError
from tilewright.ir.target import architecture

LAYOUTS = {
    ("linux", 12): "nvidia/cuda_nvrtc/lib/libnvrtc.so.12",
    ("linux", 13): "nvidia/cu13/lib/libnvrtc.so.13",
    ("win32", 12): "nvidia/cuda_nvrtc/bin/nvrtc64_120_0.dll",
    ("win32", 13): "nvidia/cu13/bin/x86_64/nvrtc64_130_0.dll",
}
"""Where the files are in NVIDIA's wheels."""
BESIDES = ["libnvrtc.alt.so.12", "libnvrtc-builtins.so.12.9", "nvrtc64_120_0.alt.dll", "nvrtc-builtins64_129.dll"]


class Computer:
    """A site folder with wheels, toolkits, and a driver."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, platform: str) -> None:
        self.site, self.patch, self.platform, self.versions = folder / "site", monkeypatch, platform, {}
        self.site.mkdir()
        monkeypatch.setattr(sys, "platform", platform)
        monkeypatch.setattr(sys, "path", [str(self.site), "", str(folder / "missing")])
        monkeypatch.delenv("CUDA_HOME", raising=False)
        monkeypatch.delenv("CUDA_PATH", raising=False)
        monkeypatch.setattr(toolchain, "version_of", lambda path: self.versions.get(path))
        if platform != "win32":
            monkeypatch.setattr(toolchain, "toolkits", lambda: [])
        self.driver(None)
        toolchain.installed.cache_clear()

    def wheel(self, version: str) -> Computer:
        major = int(version.split(".")[0])
        library = self.site / LAYOUTS[self.platform, major]
        library.parent.mkdir(parents=True, exist_ok=True)
        for name in (library.name, *BESIDES):
            (library.parent / name).write_bytes(b"")
        distribution = "nvidia_cuda_nvrtc_cu12" if major == 12 else "nvidia_cuda_nvrtc"
        (self.site / f"{distribution}-{version}.dist-info").mkdir()
        return self

    def driver(self, version: int | None) -> Computer:
        def known() -> int:
            if version is None:
                raise MachineError("no NVIDIA driver here")
            return version

        self.patch.setattr(libcuda, "driver_version", known)
        return self

    def taken(self, arch: str = "sm_90a") -> str:
        toolchain.installed.cache_clear()
        return toolchain.nvrtc_for(architecture(arch)).identity


@pytest.fixture
def computer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Computer]:
    yield lambda platform: Computer(tmp_path, monkeypatch, platform)
    monkeypatch.undo()
    toolchain.installed.cache_clear()


@pytest.mark.parametrize("platform", ["linux", "win32"])
@pytest.mark.parametrize(
    ("driver", "taken"),
    [(None, "13.5.37"), (13000, "13.5.37"), (13060, "13.5.37"), (12080, "cu12-12.9.86"), (12040, "cu12-12.9.86")],
)
def test_newest_wheel_of_the_drivers_cuda_version_is_chosen(
    computer: Callable[[str], Computer], platform: str, driver: int | None, taken: str
) -> None:
    here = computer(platform).wheel("12.9.86").wheel("13.5.37").driver(driver)
    assert here.taken().endswith(taken)
    library = toolchain.nvrtc_for(architecture("sm_90a")).path
    assert Path(library) == here.site / LAYOUTS[platform, 13 if taken.startswith("13") else 12]


def test_the_architecture_decides_too(computer: Callable[[str], Computer]) -> None:
    here = computer("linux").wheel("12.4.127").wheel("13.5.37").driver(12080)
    assert here.taken("sm_90a").endswith("12.4.127")
    assert here.taken("sm_120a").endswith("13.5.37"), "12.4 does not know it: the driver is asked whether it loads it"


def test_an_nvrtc_that_is_too_old_for_the_architecture_is_named(computer: Callable[[str], Computer]) -> None:
    here = computer("linux").wheel("12.4.127").driver(12080)
    text = r"NVRTC 12\.4 does not know sm_120a, CUDA 12\.8 does: `pip install 'nvidia-cuda-nvrtc-cu12>=12\.8,<13'`"
    with pytest.raises(MachineError, match=text):
        here.taken("sm_120a")
    text = r"does not know sm_110a, CUDA 13\.0 does: `pip install 'nvidia-cuda-nvrtc>=13'`"
    with pytest.raises(MachineError, match=text):
        here.taken("sm_110a")


@pytest.mark.parametrize(
    ("driver", "arch", "wheel"),
    [
        (None, "sm_90a", "nvidia-cuda-nvrtc"),
        (12040, "sm_90a", "nvidia-cuda-nvrtc-cu12"),
        (13000, "sm_90a", "nvidia-cuda-nvrtc"),
        (12080, "sm_110a", "nvidia-cuda-nvrtc"),
    ],
)
def test_a_missing_nvrtc_is_said_plainly(
    computer: Callable[[str], Computer], driver: int | None, arch: str, wheel: str
) -> None:
    here = computer("linux").driver(driver)
    with pytest.raises(MachineError, match=rf"NVRTC is missing .*pip install {wheel}`"):
        here.taken(arch)


def test_after_an_installation_the_compiler_is_found(computer: Callable[[str], Computer]) -> None:
    here = computer("linux")
    with pytest.raises(MachineError, match="missing"):
        toolchain.nvrtc_for(architecture("sm_80"))
    here.wheel("13.5.37")
    assert toolchain.nvrtc_for(architecture("sm_80")).version == (13, 5)


def test_the_usual_folder_of_toolkits_is_linuxs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_PATH", raising=False)
    monkeypatch.setenv("CUDA_HOME", "/opt/cuda")
    for platform, more in (("linux", [Path("/usr/local/cuda")]), ("win32", [])):
        monkeypatch.setattr(toolchain.sys, "platform", platform)
        assert toolchain.toolkits() == [Path("/opt/cuda"), *more]


def test_macos_has_no_compiler(computer: Callable[[str], Computer]) -> None:
    with pytest.raises(MachineError, match="no compiler .NVRTC. for macOS: kernels run in the simulator"):
        computer("darwin").taken()


def test_toolkits_are_found_with_their_version(
    computer: Callable[[str], Computer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, root = computer("linux"), tmp_path / "cuda-12.6"
    (root / "lib64").mkdir(parents=True)
    (root / "lib64" / "libnvrtc.so.12.6.85").write_bytes(b"")
    (root / "lib64" / "libnvrtc.so").symlink_to("libnvrtc.so.12.6.85")
    monkeypatch.setattr(toolchain, "toolkits", lambda: [root])
    assert here.taken().startswith(str(root / "lib64" / "libnvrtc.so.12.6.85"))
    assert {found.version for found in toolchain.installed()} == {(12, 6)}
    assert here.wheel("12.9.86").taken().endswith("12.9.86"), "the newer one"


def test_windows_toolkits_tell_their_version_in_a_list(
    computer: Callable[[str], Computer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, root = computer("win32"), tmp_path / "v12.9"
    library = root / "bin" / "nvrtc64_120_0.dll"
    library.parent.mkdir(parents=True)
    library.write_bytes(b"")
    monkeypatch.setenv("CUDA_PATH", str(root))
    here.versions[str(library)] = (12, 3)
    here.taken()
    assert toolchain.installed()[0].version == (12, 3), "the library itself says so"
    (root / "version.json").write_text('{"cuda_nvrtc": {"version": "12.9.86"}}', encoding="utf-8")
    here.taken()
    assert toolchain.installed()[0].version == (12, 9)


def test_a_library_that_only_the_loader_knows_says_its_version(computer: Callable[[str], Computer]) -> None:
    here = computer("linux")
    here.versions["libnvrtc.so.12"] = (12, 2)
    assert here.taken() == "libnvrtc.so.12-12.2"
    with pytest.raises(MachineError, match=r"NVRTC 12\.2 does not know sm_100a"):
        here.taken("sm_100a")


def test_code_that_the_driver_refuses_names_both_versions(
    computer: Callable[[str], Computer], monkeypatch: pytest.MonkeyPatch
) -> None:
    computer("linux").driver(12040)
    wheel = r"`pip install 'nvidia-cuda-nvrtc-cu12>=12\.4,<13'`, or update the driver"
    assert toolchain.mismatch("12.4") == toolchain.mismatch("12.2") == toolchain.mismatch("") == ""

    def refuse(device: int, cubin: bytes, name: str) -> int:
        raise MachineError("loading k on cuda:0: CUDA_ERROR_NO_BINARY_FOR_GPU (209)")

    monkeypatch.setattr(libcuda, "enter", lambda device: None)
    monkeypatch.setattr(libcuda, "load_module", refuse)
    function = saxpy().done()
    artifact = machine.Artifact("k", "sm_90a", "", b"", "", nvrtc="13.5")
    text = rf"\(209\).\nThe driver knows CUDA 12\.4, and the code is by NVRTC 13\.5: {wheel}"
    with pytest.raises(MachineError, match=text):
        machine.Placed(function, artifact, 0)


def test_toolchain_error_without_a_driver_names_no_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain, "driver_version", lambda: None)
    assert toolchain.mismatch("13.5") == ""


@pytest.mark.parametrize(("platform", "name"), [("linux", "libcuda.so.1"), ("win32", "nvcuda.dll"), ("darwin", None)])
def test_the_driver_is_called_as_on_each_platform(
    monkeypatch: pytest.MonkeyPatch, platform: str, name: str | None
) -> None:
    asked: list[str] = []

    def load(path: str) -> None:
        asked.append(path)
        raise OSError(f"{path}: not found")

    monkeypatch.delenv("TILEWRIGHT_LIBCUDA", raising=False)
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(libcuda.ctypes, "CDLL", load)
    with pytest.raises(MachineError, match=rf"no NVIDIA driver here \({name or 'NVIDIA has none'}.*the simulator"):
        libcuda.library.__wrapped__()
    assert asked[:1] == ([name] if name else [])


def test_a_compiled_kernel_says_by_which_nvrtc() -> None:
    needs_nvrtc()
    made = compile(saxpy().done(), "sm_80")
    assert made.nvrtc == nvrtc.version("sm_80") == compile(saxpy().done(), "sm_80").nvrtc
    with pytest.raises(CompileError, match="NVRTC refused --gpu-architecture=sm_81"):
        compile(saxpy().done(), "sm_81")


def test_text_needs_no_compiler(tmp_path: Path) -> None:
    """In a process that finds no NVRTC anywhere, CUDA C++ is printed all the same; PTX is refused."""
    program = (
        "import sys\n"
        "from tilewright.cuda import nvrtc_library, toolchain\n"
        "toolchain.installed = lambda: ()\n"
        "toolchain.installed.cache_clear = lambda: None\n"
        "def refused(*_): raise AssertionError('NVRTC was asked')\n"
        "nvrtc_library.library = refused\n"
        "import numpy as np\n"
        "from tilewright import cute\n"
        "from tilewright.cli import main\n"
        "from tilewright.cute.runtime import from_dlpack\n"
        "@cute.kernel\n"
        "def doubled(x: cute.Tensor):\n"
        "    x[0] = x[0] * 2\n"
        "@cute.jit\n"
        "def run(x: cute.Tensor):\n"
        "    doubled(x).launch(grid=(1, 1, 1), block=(1, 1, 1))\n"
        "text = cute.compile(run, from_dlpack(np.zeros(4, np.float32))).__cuda__\n"
        "assert 'void __launch_bounds__(1) doubled' in text, text\n"
        "assert main(['show', 'simt_f32', '--cuda', '--arch', 'sm_80']) == 0\n"
        "assert main(['show', 'simt_f32', '--ir']) == 0\n"
        "assert main(['show', 'simt_f32', '--ptx']) == 2\n"
    )
    script = tmp_path / "program.py"
    script.write_text(program, encoding="utf-8")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert 'extern "C" __global__ void' in done.stdout and "pip install nvidia-cuda-nvrtc" in done.stderr
