"""Kernels that other processes compile: the same ones, waited for, and of no harm where a process fails."""

from __future__ import annotations

import io
import os
import pickle
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.gemm.operators.test_rows import HOPPER, integers
from tilewright import sim
from tilewright.gemm import matmul
from tilewright.gemm.choice.registry import candidates
from tilewright.gemm.host import handle
from tilewright.gemm.host.plan import Plan
from tilewright.gemm.host.problem import Problem
from tilewright.gemm.operators import meanwhile
from tilewright.gemm.tuning import processes
from tilewright.gemm.tuning.jobs import Job, Product
from tilewright.lang.launch import specialise, stored

torch = pytest.importorskip("torch")
MODULE = sys.modules[matmul.__module__]


@pytest.fixture(autouse=True)
def on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Kernels are kept on an empty disk, none is compiled, and no process runs."""
    monkeypatch.setenv(stored.SWITCH, "1")
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("TILEWRIGHT_CACHE_MB", raising=False)
    monkeypatch.delenv(processes.SWITCH, raising=False)
    for module, name in (
        (handle, "_COMPILED"),
        (handle, "ELSEWHERE"),
        (MODULE, "REPEATED_PRODUCTS"),
        (MODULE, "_ROWS"),
    ):
        monkeypatch.setattr(module, name, {})
    monkeypatch.setattr(processes, "_POOL", [])


def plan_of(product: Product, **how: Any) -> Plan:
    problem = product.problem
    return Plan.of(problem, candidates(problem.A.dtype, None), how.get("decomposition", "auto"), "cpu")


PRODUCTS = {
    "plain": Product((40, 48, 64), "float16", "float16", "k", "n"),
    "majors": Product((40, 48, 64), "float16", "float16", "m", "k"),
    "bias": Product((40, 48, 64), "float16", "float16", "k", "k", "float16"),
    "activation": Product((40, 48, 64), "float16", "float32", "k", "n", "float32", "gelu"),
    "unaligned": Product((39, 47, 61), "float16", "float16", "k", "n"),
}


@pytest.mark.unchecked
@pytest.mark.parametrize("kind", PRODUCTS)
def test_a_job_is_the_kernel_that_the_product_asks_for(kind: str) -> None:
    product = PRODUCTS[kind]
    m, n, k = product.shape
    a = integers(0, m, k) if product.a_major == "k" else integers(0, k, m).mT
    b = integers(1, k, n) if product.b_major == "n" else integers(1, n, k).mT
    bias = None if product.bias is None else integers(2, n).to(getattr(torch, product.bias))
    with sim.options(**HOPPER):
        job = Job(product, plan_of(product), "sm_90a")
        matmul(a, b, bias=bias, activation=product.activation, out_dtype=getattr(torch, product.out_dtype))
        assert job.kinds() == list(handle._COMPILED)
        (problem,) = (x.prepared.problem for x in MODULE.REPEATED_PRODUCTS.values())
    assert meanwhile.product_of(problem, bias, product.activation) == product


def test_a_product_of_nothing_is_no_job() -> None:
    """``matmul`` asks on a GPU, whenever its kernel is not compiled yet."""
    for m, n, k in ((0, 16, 8), (16, 0, 8), (16, 16, 0)):
        a, b, d = np.zeros((m, k), np.float16), np.zeros((k, n), np.float16), np.zeros((m, n), np.float16)
        assert meanwhile.product_of(Problem.of(a, b, None, d), None, None) is None


def test_what_another_process_made_is_read_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Through the form in which jobs are sent, here in one process."""
    product = PRODUCTS["bias"]
    with sim.options(**HOPPER):
        job = Job(product, plan_of(product), "sm_90a")
        broken = processes.framed(pickle.dumps("no job"))
        answers = io.BytesIO()
        processes.serve(io.BytesIO(broken + processes.framed(pickle.dumps(job))), answers)
        assert answers.getvalue() == b".."
        assert all(map(processes.is_kept, job.kinds()))
        assert processes.compile_elsewhere(job) is None, "it is compiled already"
        handle._COMPILED.clear()
        assert processes.compile_elsewhere(job) is None, "it is on the disk"
        monkeypatch.setattr(specialise, "stage", lambda *_: pytest.fail("staged once more"))
        a, b, bias = integers(0, 40, 64), integers(1, 48, 64).mT, integers(2, 48)
        assert torch.equal(matmul(a, b, bias=bias).double(), a.double() @ b.double() + bias.double())


ECHO = "import sys; r = sys.stdin.buffer\nwhile (n := r.read(8)): r.read(int.from_bytes(n, 'little')); {}"
ANSWER = "sys.stdout.buffer.write(b'.'); sys.stdout.flush()"


@pytest.mark.parametrize(
    ("body", "job"),
    [(ANSWER, PRODUCTS["plain"]), ("sys.exit(1)", PRODUCTS["plain"]), (None, None), (ANSWER, lambda: None)],
    ids=["answers", "dies", "cannot start", "cannot be sent"],
)
def test_a_future_is_done_whatever_the_process_does(
    body: str | None, job: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "IDLE_SECONDS", 0.2)
    command = ["/nowhere/python"] if body is None else [sys.executable, "-c", ECHO.format(body)]
    monkeypatch.setattr(processes, "COMMAND", command)
    pool = processes.Processes(1)
    for _ in range(2):
        assert pool.submit(job).result(20) is None
    waited = time.monotonic() + 20
    while (pool.threads or pool.running) and time.monotonic() < waited:
        time.sleep(0.02)
    assert pool.threads == 0 and not pool.running, "a process stays though there are no jobs"
    assert pool.submit(job).result(20) is None, "no process comes back"
    pool.stop()


def test_a_kernel_under_way_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    product = PRODUCTS["plain"]
    with sim.options(**HOPPER):
        job = Job(product, plan_of(product), "sm_90a")
        future: Any = processes.Future()
        monkeypatch.setattr(processes, "pool", lambda: type("Pool", (), {"submit": lambda self, job: future})())
        assert processes.compile_elsewhere(job) is future
        assert processes.compile_elsewhere(job) is None, "it is under way"
        a, b, done = integers(0, 40, 64), integers(1, 64, 48), []
        thread = threading.Thread(target=lambda: done.append(matmul(a, b)))
        thread.start()
        thread.join(0.3)
        assert thread.is_alive() and not handle._COMPILED
        future.set_result(None)
        thread.join(60)
    assert torch.equal(done[0].double(), a.double() @ b.double())


@pytest.mark.parametrize("variable", [processes.SWITCH, stored.SWITCH, "TILEWRIGHT_CACHE_MB"])
def test_switches(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert processes.is_on()
    monkeypatch.setenv(variable, "0")
    assert not processes.is_on()


def test_a_future_is_done_without_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(self: Any) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refused)
    assert processes.Processes(2).submit(PRODUCTS["plain"]).done()


def test_programs_that_have_python_in_them_start_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    assert processes.is_on()
    for name, value in (("executable", "/opt/app"), ("executable", ""), ("executable", None), ("frozen", True)):
        with monkeypatch.context() as patch:
            patch.setattr(sys, name, value, raising=False)
            assert not processes.is_on()


def test_files_beside_the_program_are_not_modules_of_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "queue.py").write_text("import pathlib; pathlib.Path('here').touch()")
    monkeypatch.chdir(tmp_path)
    process = processes.start()
    try:
        assert processes.answered(process, PRODUCTS["plain"])
    finally:
        processes.end(process)
    assert not (tmp_path / "here").exists()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_the_child_of_a_fork_has_no_processes_of_its_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "COMMAND", [sys.executable, "-c", ECHO.format(ANSWER)])
    pool = processes.Processes(1)
    processes._POOL.append(pool)
    handle.ELSEWHERE["kernel"] = processes.Future()
    process = processes.start()
    pool.running.add(process)
    held = handle._COMPILING.setdefault("kernel", threading.Lock())
    held.acquire()
    child = os.fork()
    if child == 0:
        pool.stop()  # what is registered to be called at the end
        os._exit(len(processes._POOL) + len(handle.ELSEWHERE) + len(handle._COMPILING))
    assert os.waitpid(child, 0)[1] == 0
    assert processes._POOL and handle.ELSEWHERE
    assert handle._COMPILING.pop("kernel") is held
    assert processes.answered(process, PRODUCTS["plain"]), "the child ended a process of its parent"
    processes.end(process)


# -- a kernel that is here, meanwhile ----------------------------------------------------------------------------------


@pytest.fixture
def futures(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Of the kernels that are compiled elsewhere; products in the simulator count as those of a GPU."""
    found: list[Any] = []

    def begin(job: Job) -> Any:
        found.append(processes.Future())
        handle.ELSEWHERE.update(dict.fromkeys(job.kinds(), found[-1]))
        return found[-1]

    monkeypatch.setattr(meanwhile, "compile_elsewhere", begin)
    monkeypatch.setattr(meanwhile, "COMPILING", ("cpu",))
    monkeypatch.setattr(meanwhile, "MOST_TIMES_SLOWER", 50.0)
    return found


def multiplied(rows: int, k: int, n: int) -> Any:
    """The plan by which an exact product was multiplied, and what was remembered of it."""
    a, b = integers(rows, rows, k), integers(n, k, n)
    result = matmul(a, b)
    assert torch.equal(result.double(), a.double() @ b.double())
    (kept,) = (x for x in MODULE.REPEATED_PRODUCTS.values() if x.shape == (rows, n))
    return kept


@pytest.mark.unchecked
def test_a_kernel_that_is_here_multiplies_until_the_better_one_is(futures: list[Any]) -> None:
    with sim.options(**HOPPER):
        first = multiplied(128, 64, 256)
        assert first.until is None and not futures, "no kernel was there that could multiply"
        other = multiplied(64, 64, 96)
        assert other.until is futures[0] and other.prepared.plan.config == first.prepared.plan.config
        assert multiplied(64, 64, 96) is other, "it is not asked for once more"
        beside = multiplied(61, 64, 96)
        assert beside.until is futures[0] and beside.prepared.plan == other.prepared.plan and len(futures) == 1
        futures[0].set_result(None)
        better = multiplied(64, 64, 96)
        assert multiplied(61, 64, 96).until is None and multiplied(62, 64, 96).until is None
        assert better.until is None and len(futures) == 1
        assert better.prepared.plan.config == plan_of(Product((64, 96, 64), "float16", "float16", "k", "n")).config
        assert better.prepared.plan.config != first.prepared.plan.config


@pytest.mark.unchecked
@pytest.mark.parametrize("why", ["captured", "slow", "off", "epilogue"])
def test_products_that_wait_for_their_own_kernel(why: str, futures: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    with sim.options(**HOPPER):
        multiplied(128, 64, 256)
        if why == "captured":  # a graph would keep the kernel
            monkeypatch.setattr(MODULE, "is_captured", lambda: True)
        elif why == "slow":
            monkeypatch.setattr(meanwhile, "MOST_TIMES_SLOWER", 0.0)
        elif why == "off":
            monkeypatch.setenv(processes.SWITCH, "0")
        elif why == "epilogue":
            a, b = integers(0, 64, 64), integers(1, 64, 96)
            matmul(a, b, activation="relu")
            assert not futures
            return
        assert multiplied(64, 64, 96).until is None and not futures


def test_plans_that_add_up_in_another_order_are_waited_for() -> None:
    product = PRODUCTS["plain"]
    with sim.options(**HOPPER):
        assert meanwhile.adds_in_order(plan_of(product, decomposition="data_parallel"))
        assert not meanwhile.adds_in_order(plan_of(product, decomposition="dynamic"))
        wide = Product((128, 128, 4096), "float16", "float16", "k", "n")
        assert not meanwhile.adds_in_order(plan_of(wide, decomposition="stream_k"))
