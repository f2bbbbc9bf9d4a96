"""What all tests share: the GPU marker, hypothesis profiles, and one BLAS thread per test worker."""

from __future__ import annotations

import ctypes
import gc
import os
from collections.abc import Generator, Iterator

if "PYTEST_XDIST_WORKER" in os.environ:  # before NumPy is imported: workers must not fight over the cores
    for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(variable, "1")

os.environ.setdefault("TILEWRIGHT_STORED_PROGRAMS", "0")  # tests stage with functions that they replace

import hypothesis
import pytest
from _pytest.runner import runtestprotocol
from hypothesis.internal.conjecture import engine

hypothesis.settings.register_profile("dev", deadline=None)
hypothesis.settings.register_profile("ci", max_examples=50, deadline=None, derandomize=True, database=None)
engine.MAX_SHRINKING_SECONDS = 20  # the default, 300 for each failing test, looks like a hang when compilation is slow
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "dev")


def gpu_count() -> int:
    """NVIDIA GPUs the driver shows; asks the driver itself, so that no CUDA package is needed to answer "none"."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return 0
    count = ctypes.c_int(0)
    if driver.cuInit(0) != 0 or driver.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return 0
    return count.value


@pytest.fixture
def values_unchecked() -> Iterator[None]:
    """For tests about poison and about integers that wrap around: with all checks chosen (TILEWRIGHT_SIM_CHECK=all)
    each of them would be a finding."""
    from tilewright import sim

    with sim.options(check=f"{sim.current_options().check},-uninitialised,-arithmetic"):
        yield


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if "TILEWRIGHT_SIM_CHECK" not in os.environ:  # the checks take longer than the products themselves
        for item in items:
            if item.get_closest_marker("unchecked") and not item.get_closest_marker("tilewright_check"):
                item.add_marker(pytest.mark.tilewright_check("none"))
    marked = [item for item in items if item.get_closest_marker("gpu")]
    if marked and gpu_count() == 0:
        for item in marked:
            item.add_marker(pytest.mark.skip(reason="no NVIDIA GPU here"))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What collection makes (modules, ten thousand tests, PyTorch) is not garbage: to look through it again and again
    took a tenth of the tests' time. And collections are rarer than by default, as memory is not a concern here."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(50_000, 20, 20)
        gc.enable()


class OneReport:
    """In a worker of pytest-xdist: of a test that did not fail, the report of its call alone. Those of its setup and
    teardown say nothing, and to send and count them took a fiftieth of the tests' time."""

    @pytest.hookimpl
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
        failed = any(report.failed for report in reports)
        for report in reports:
            if failed or report.when == "call" or report.skipped:
                item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True


def pytest_configure(config: pytest.Config) -> None:
    options = config.option
    if (
        "PYTEST_XDIST_WORKER" in os.environ
        and options.verbose <= 0
        and options.durations is None
        and not options.xmlpath
    ):
        config.pluginmanager.register(OneReport())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, object, object]:
    """Neither is what the tests of a file leave: caches keep their kernels."""
    result = yield
    if nextitem is None or nextitem.path != item.path:
        gc.collect(1)
        gc.freeze()
    return result
