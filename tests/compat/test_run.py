"""``tilewright run`` runs a program as it is: its imports, its arguments, its failures and exit code."""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import tilewright
import tilewright.cute
from tilewright import compat
from tilewright.cli import main
from tilewright.errors import ArgumentError

PROGRAM = """
import argparse, sys
import cuda.bindings.driver as cuda
import numpy as np
import cutlass
import cutlass.cute as cute
from cutlass.cute.runtime import from_dlpack

@cute.kernel
def scale(x: cute.Tensor, factor: cutlass.Float32):
    i, _, _ = cute.arch.thread_idx()
    x[i] = x[i] * factor

@cute.jit
def run(x: cute.Tensor, factor: cutlass.Float32, stream: cuda.CUstream):
    scale(x, factor).launch(grid=(1, 1, 1), block=(cute.size(x), 1, 1), stream=stream)

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--cpu", type=float, default=2.0)
    parser.add_argument("--end", default="0")
    arguments = parser.parse_args()
    (error,) = cuda.cuInit(0)
    assert error == cuda.CUresult.CUDA_SUCCESS
    _, stream = cuda.cuStreamCreate(cuda.CUstream_flags.CU_STREAM_NON_BLOCKING)
    x = np.arange(4, dtype=np.float32)
    run(from_dlpack(x), arguments.cpu, stream)
    print(x.tolist(), sys.argv[1:], sys.modules["__main__"].__file__ == sys.argv[0])
    if arguments.end == "raise":
        raise ValueError("its own")
    sys.exit(int(arguments.end) if arguments.end.isdigit() else arguments.end)
"""


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return str(path)


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    def call(*arguments: str) -> tuple[int, str, str]:
        code = main(["run", *arguments])
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return call


@pytest.fixture
def installed() -> Iterator[None]:
    compat.install()
    yield
    compat.uninstall()


def test_a_program_gets_its_arguments_and_runs(command: Any, program: str) -> None:
    code, out, err = command("--cpu", program, "--cpu", "3")
    assert (code, out) == (0, "[0.0, 3.0, 6.0, 9.0] ['--cpu', '3'] True\n")
    assert err == "tilewright: no GPU was used: 1 kernel launch ran in the simulator: scale\n"
    assert "cutlass" not in sys.modules and sys.modules["__main__"].__dict__.get("run") is None


def test_help_after_the_script_is_the_scripts(command: Any, program: str) -> None:
    code, out, _ = command("--cpu", program, "--help")
    assert code == 0 and out.startswith("usage: program.py [-h] [--cpu CPU]")


@pytest.mark.parametrize(("end", "code", "words"), [("7", 7, ""), ("went wrong", 1, "went wrong\n")])
def test_the_exit_code_is_the_scripts(command: Any, program: str, end: str, code: int, words: str) -> None:
    found, _, err = command("--cpu", program, "--end", end)
    assert found == code and err.startswith(words)


def test_a_failure_shows_the_scripts_own_traceback(command: Any, program: str) -> None:
    code, _, err = command("--cpu", program, "--end", "raise")
    lines = err.splitlines()
    line = PROGRAM.splitlines().index('        raise ValueError("its own")') + 1
    assert code == 1 and lines[:2] == [
        "Traceback (most recent call last):",
        f'  File "{program}", line {line}, in <module>',
    ]
    assert "ValueError: its own" in lines and "tilewright/compat" not in err


def test_annotations_are_evaluated_as_python_does(command: Any, tmp_path: Path) -> None:
    """The script has none of this package's `from __future__` imports."""
    script = tmp_path / "annotated.py"
    script.write_text("class Storage:\n    words: 2 + 3\nprint(Storage.__annotations__)\n")
    assert command(str(script))[:2] == (0, "{'words': 5}\n")


def test_a_missing_script_and_one_that_is_no_python(command: Any, tmp_path: Path) -> None:
    code, _, err = command(str(tmp_path / "none.py"))
    assert code == 2 and "can't open file" in err and "No such file or directory" in err
    bad = tmp_path / "bad.py"
    bad.write_text("x = (\n")
    code, _, err = command(str(bad))
    assert code == 1 and f'File "{bad}", line 1' in err and "SyntaxError: '(' was never closed" in err


def test_python_m_tilewright(program: str) -> None:
    done = subprocess.run([sys.executable, "-m", "tilewright", "run", "--cpu", program], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout == "[0.0, 2.0, 4.0, 6.0] [] True\n"


def test_both_names_give_one_module(installed: None) -> None:
    import cutlass.cute as theirs
    import cutlass.cute.nvgpu.cpasync as copies
    import cutlass.utils.hopper_helpers  # noqa: F401 - it binds `cutlass`

    from tilewright import cute as ours
    from tilewright.cute.nvgpu import cpasync

    assert theirs is ours and copies is cpasync
    assert ours.__spec__ is not None and ours.__spec__.name == "tilewright.cute"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("cutlass.nonsense", "there is no module 'cutlass.nonsense'; use what cutlass, cutlass.cute and"),
        ("cutlass.cute.tesing", "'cutlass.cute.tesing'; did you mean 'testing'"),
        ("cutlass.cute.nothing", "'cutlass.cute.nothing'; use what cutlass, cutlass.cute and cutlass.utils document$"),
        ("cutlass.utils.blackwell_helper", "did you mean 'blackwell_helpers'"),
        ("cutlass.experimental.cudaa", "did you mean 'cuda'"),
    ],
)
def test_missing_module_error_names_similar_modules(installed: None, name: str, words: str) -> None:
    with pytest.raises(ModuleNotFoundError, match=words) as caught:
        __import__(name)
    assert caught.value.name == name


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("import cutlass.cute.nothing", "there is no module 'cutlass.cute.nothing'; use what "),
        ("from cutlass.cute import nothing", "module 'cutlass.cute' has no attribute 'nothing', nor a stand-in for it"),
        ("from cutlass import cute; cute.nothing", "module 'cutlass.cute' has no attribute 'nothing', nor a stand-in"),
    ],
)
def test_the_traceback_of_a_missing_name_ends_in_the_program(
    command: Any, tmp_path: Path, line: str, words: str
) -> None:
    """Also where a module of the program asks; and no name that has little in common is offered."""
    (tmp_path / "part.py").write_text(f"import sys\n{line}\n")
    script = tmp_path / "whole.py"
    script.write_text("import part\n")
    code, _, err = command(str(script))
    assert code == 1 and words in err.splitlines()[-1] and "did you mean" not in err
    files = re.findall(r'File "([^"]*)", line', err)
    assert files == [str(script), str(tmp_path / "part.py")], err


def test_an_installed_cutlass_is_not_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Any) -> None:
    theirs = tmp_path / "cutlass"
    theirs.mkdir()
    (theirs / "__init__.py").write_text("who = 'theirs'")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ArgumentError, match=r"a package `cutlass` is installed .*replace=True"):
        compat.install()
    script = tmp_path / "which.py"
    script.write_text("import cutlass\nprint(cutlass.__name__, getattr(cutlass, 'who', ''))")
    code, out, err = command(str(script))
    assert code == 2 and not out and "tilewright run --replace" in err
    assert command("--replace", str(script))[:2] == (0, "cutlass \n")
    import cutlass

    assert cutlass.who == "theirs"
    with pytest.raises(ArgumentError, match="a package `cutlass` is installed"):
        compat.install()
    del sys.modules["cutlass"]


def test_a_folder_named_cutlass_is_no_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cutlass" / "include").mkdir(parents=True)
    monkeypatch.syspath_prepend(str(tmp_path))
    compat.install()
    try:
        import cutlass

        assert cutlass.Int32 is tilewright.Int32
    finally:
        compat.uninstall()


def test_the_module_cutlass_is_tilewright_but_for_its_version() -> None:
    """Libraries compare the version with those of nvidia-cutlass-dsl, and name their caches by it."""
    compat.install()
    try:
        import cutlass
        import cutlass.cute

        assert cutlass.__version__ == importlib.metadata.version("nvidia-cutlass-dsl") != tilewright.__version__
        assert cutlass.cute is tilewright.cute and cutlass.__all__ == tilewright.__all__ and dir(cutlass)
        scope: dict[str, Any] = {}
        exec("from cutlass import *", scope)
        assert scope["Float32"] is tilewright.Float32
        cutlass.mine = 3
        assert tilewright.mine == 3
        del cutlass.mine
        assert not hasattr(tilewright, "mine") and not hasattr(cutlass, "__wrapped__")
        with pytest.raises(AttributeError, match=r"module 'cutlass' has no attribute 'Float33'.*test_run.py:\d+; did"):
            _ = cutlass.Float33
        assert importlib.reload(cutlass).__version__ == cutlass.__version__
        compat.install()
    finally:
        compat.uninstall()


def test_a_notebook_is_served(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    import tilewright
    from tilewright.compat import notebook

    monkeypatch.setattr(notebook, "has_gpu", lambda: False)
    before = sys.modules.get("cuda.bindings.driver")
    tilewright.load_ipython_extension(None)
    tilewright.load_ipython_extension(None)
    import cuda.bindings.driver
    import cutlass

    assert cutlass.cute.make_layout(4) is not None
    assert cuda.bindings.driver.__name__ == "tilewright.compat.driver"
    assert capsys.readouterr().out.count("resolves to Tilewright") == 1
    tilewright.unload_ipython_extension(None)
    assert not compat.is_installed() and sys.modules.get("cuda.bindings.driver") is before


def test_simulated_driver_allocates_and_copies(installed: None) -> None:
    import numpy as np

    from tilewright.compat import driver, runtime

    error, pointer = driver.cuMemAlloc(64)
    assert error == 0 and isinstance(pointer, driver.CUdeviceptr)
    given, back = np.arange(16, dtype=np.int32), np.zeros(16, np.int32)
    driver.cuMemcpyHtoD(pointer, given, 64)
    driver.cuMemsetD32(int(pointer) + 8, 7, 2)
    driver.cuMemcpyDtoH(back, pointer, 64)
    assert back.tolist() == [0, 1, 7, 7, *range(4, 16)]
    assert driver.cuMemFree(pointer) == (0,) and driver.cuMemFree(pointer) == (1,)
    _, first = driver.cuEventCreate(0)
    _, last = driver.cuEventCreate(0)
    assert driver.cuEventElapsedTime(first, last)[0] == driver.CUresult.CUDA_ERROR_INVALID_HANDLE
    driver.cuEventRecord(first, 0)
    driver.cuEventRecord(last, 0)
    assert driver.cuEventElapsedTime(first, last)[1] >= 0
    attribute = driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
    assert driver.cuDeviceGetAttribute(attribute, driver.cuDeviceGet(0)[1]) == (0, 132)
    assert driver.cuDeviceGet(1)[0] == driver.CUresult.CUDA_ERROR_INVALID_DEVICE
    assert runtime.cudaMalloc(0)[0] is runtime.cudaError_t.cudaErrorInvalidValue
    with pytest.raises(AttributeError, match="cuFoo is not served on the CPU"):
        _ = driver.cuFoo


def test_the_stand_ins_leave_no_modules(installed: None) -> None:
    assert isinstance(sys.modules["tilewright"], ModuleType)
    compat.uninstall()
    compat.uninstall()
    with pytest.raises(ModuleNotFoundError):
        __import__("cutlass")


def test_libraries_find_the_package_that_they_ask_for(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    asks = "from importlib.metadata import version\nprint(version('nvidia-cutlass-dsl').split('.')[0])\n"
    script = tmp_path / "asks.py"
    script.write_text(asks + "import cutlass.cute.tensor, cutlass.cute.atom\n")
    assert main(["run", str(script)]) == 0
    assert capsys.readouterr().out == "4\n"
    from importlib.metadata import PackageNotFoundError, distributions, version

    with pytest.raises(PackageNotFoundError):
        version("nvidia-cutlass-dsl")
    assert "nvidia-cutlass-dsl" not in {d.metadata["Name"] for d in distributions()}


def test_the_modules_of_an_installed_cuda_bindings_are_its_attributes(tmp_path: Path) -> None:
    package = tmp_path / "cuda" / "bindings"
    package.mkdir(parents=True)
    for name in ("__init__", "driver", "runtime"):
        (package / f"{name}.py").write_text(f"name = {name!r}\n")
    (package.parent / "__init__.py").touch()
    script = tmp_path / "script.py"
    script.write_text("import cutlass\nimport cuda.bindings as cuda\nprint(cuda.driver.name, cuda.runtime.name)\n")
    command = [sys.executable, "-m", "tilewright", "run", str(script)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(Path(__file__).parents[2])])}
    ran = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)
    assert (ran.stdout, ran.returncode) == ("driver runtime\n", 0), ran.stderr


SPAWNS = """
import multiprocessing, subprocess, sys
import cutlass
import cutlass.cute as cute

@cute.jit
def double(n: cutlass.Int32) -> cutlass.Int32:
    return n * 2

def work(n, queue):
    queue.put(double(n))

if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    child = context.Process(target=work, args=(21, queue))
    child.start()
    print(queue.get(timeout=60))
    child.join()
    code = "import cutlass.cute as c; import sitecustomize; print(c.make_layout(4), sitecustomize.own)"
    print(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
"""


def test_the_processes_that_a_script_starts_are_served_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "script.py").write_text(SPAWNS)
    (tmp_path / "sitecustomize.py").write_text("import sys\nown = 'own'\nsys.modules['sitecustomize'].own = own\n")
    path = os.pathsep.join([str(tmp_path), str(Path(__file__).parents[2])])
    monkeypatch.setenv("PYTHONPATH", path)
    command = [sys.executable, "-m", "tilewright", "run", str(tmp_path / "script.py")]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (ran.stdout.split(), ran.returncode) == (["42", "4:1", "own"], 0), ran.stderr


def test_the_environment_is_as_it_was_after_a_script(tmp_path: Path) -> None:
    before = dict(os.environ)
    (tmp_path / "script.py").write_text("import os\nassert 'TILEWRIGHT_SERVED' in os.environ\n")
    assert main(["run", str(tmp_path / "script.py")]) == 0
    assert dict(os.environ) == before


SEEN = """
import sys
import torch
from cutlass.utils import HardwareInfo, get_smem_capacity_in_bytes
from cutlass.base_dsl.dsl import BaseDSL
properties = torch.cuda.get_device_properties(0)
capability = properties.major, properties.minor
assert torch.cuda.get_device_capability() == HardwareInfo().get_compute_capability() == capability
assert HardwareInfo().get_device_multiprocessor_count() == properties.multi_processor_count
assert get_smem_capacity_in_bytes() == properties.shared_memory_per_block_optin
print(properties.major, properties.minor, properties.multi_processor_count, BaseDSL._get_dsl().get_arch_enum().name)
"""


@pytest.mark.parametrize(
    ("arguments", "named", "seen"),
    [
        ((), "", "9 0 132 sm_90a"),
        ((), "# from cutlass.cute.nvgpu import tcgen05", "10 0 148 sm_100a"),
        ((), "# tcgen05 and warpgroup.MmaF16BF16Op", "9 0 132 sm_90a"),
        ((), "# for sm_120", "12 0 170 sm_120a"),
        (("--arch", "sm_103a"), "", "10 3 148 sm_103a"),
    ],
)
def test_the_gpu_that_a_program_sees(
    command: Any, tmp_path: Path, arguments: tuple[str, ...], named: str, seen: str
) -> None:
    script = tmp_path / "seen.py"
    script.write_text(f"{named}\n{SEEN}")
    code, out, err = command("--cpu", *arguments, str(script))
    assert (code, out.strip()) == (0, seen), err
    assert "CUTE_DSL_ARCH" not in os.environ


FOR_BLACKWELL = """
import cutlass.cute as cute

@cute.kernel
def kernel():
    cute.arch.tcgen05_fence_before_thread_sync()

@cute.jit
def host():
    kernel().launch(grid=(1, 1, 1), block=(32, 1, 1))

host()
print("ran")
"""


@pytest.mark.parametrize("arch", ["", "sm_90", "sm_100", "sm_103a", "sm_120"])
def test_instructions_that_the_gpu_of_arch_lacks(command: Any, tmp_path: Path, arch: str) -> None:
    script = tmp_path / "script.py"
    script.write_text(FOR_BLACKWELL)
    code, out, err = command("--cpu", *(("--arch", arch) if arch else ()), str(script))
    if arch in ("sm_90", "sm_120"):
        assert code and f"needs sm_100a, sm_103a or sm_110a; the kernel is meant for {arch}a" in err
    else:
        assert (code, out.strip()) == (0, "ran"), err
    assert "TILEWRIGHT_SIM_ARCH" not in os.environ


def test_unknown_architecture_is_refused(command: Any, tmp_path: Path) -> None:
    script = tmp_path / "seen.py"
    script.write_text(SEEN)
    code, _, err = command("--cpu", "--arch", "sm_999", str(script))
    assert code and "sm_999" in err
