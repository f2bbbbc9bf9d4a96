"""Worker processes that compile kernels while this process goes on.

Staging holds Python's lock, so threads that stage delay the thread that does not wait for them; NVRTC takes most of a
second a kernel. A worker does both, and keeps the results on the disk. In this process a job costs some milliseconds;
a launch that needs its kernels waits for it (:data:`tilewright.gemm.host.handle.ELSEWHERE`) and reads them. A job that
fails, and workers that cannot be started, change nothing: kernels are compiled where they are needed.

Workers start with the first job, end after a while without jobs, and end with this process.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
from concurrent.futures import Future, wait
from pathlib import Path
from typing import IO, Any

import tilewright
from tilewright import disk_cache
from tilewright.gemm.host import handle
from tilewright.gemm.tuning.jobs import Job
from tilewright.lang.launch import stored

SWITCH = "TILEWRIGHT_COMPILE_AHEAD"
MOST = 4
IDLE_SECONDS = 20.0
COMMAND = (sys.executable, "-m", "tilewright.gemm.tuning.processes")


class Processes:
    """Up to ``count`` processes, each with a thread here that gives it jobs and waits for its answers."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.jobs: queue.SimpleQueue[tuple[Job, Future[None]]] = queue.SimpleQueue()
        self.lock = threading.Lock()
        self.running: set[subprocess.Popen[bytes]] = set()
        self.threads = 0

    def submit(self, job: Job) -> Future[None]:
        """A future that is done when the job is, well or badly."""
        future: Future[None] = Future()
        self.jobs.put((job, future))
        with self.lock:
            while self.threads < self.count:  # all at once: the first job of each takes longest
                thread = threading.Thread(target=self.feed, name="tilewright-compiler", daemon=True)
                try:
                    thread.start()
                except RuntimeError:  # there are too many threads, or Python is about to end
                    break
                self.threads += 1
            if not self.threads:
                self.jobs.get_nowait()
                future.set_result(None)
        return future

    def feed(self) -> None:
        """One process from its start to its end."""
        process = None
        with contextlib.suppress(Exception):  # whatever a system refuses a process with
            process = start()
            self.running.add(process)
        while True:
            try:
                job, future = self.jobs.get(timeout=IDLE_SECONDS)
            except queue.Empty:
                with self.lock:
                    if self.jobs.empty():  # a job that comes later finds that there is a thread less
                        self.threads -= 1
                        break
                continue
            if process is not None and not answered(process, job):
                end(process)
                self.running.discard(process)
                process = None
            future.set_result(None)
        if process is not None:
            end(process)
            self.running.discard(process)

    def stop(self) -> None:
        """End all processes at once; jobs under way are done."""
        for process in list(self.running):
            process.kill()

    def let_go(self) -> None:
        """In the child of a fork: end nothing, and hold no pipe open by whose end a process of the parent knows that it
        is alone."""
        nowhere = os.open(os.devnull, os.O_RDWR)
        for process in self.running:
            for pipe in (process.stdin, process.stdout):
                if pipe is not None and not pipe.closed:
                    os.dup2(nowhere, pipe.fileno())
        os.close(nowhere)
        self.running.clear()


def start() -> subprocess.Popen[bytes]:
    # The library may be one that this process found by other ways than being installed.
    paths = [str(Path(tilewright.__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
    return subprocess.Popen(
        COMMAND,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        # Without the working directory, where a program's files may have the names of modules.
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONSAFEPATH": "1"},
    )


def answered(process: subprocess.Popen[bytes], job: Job) -> bool:
    """Whether the process is still there after the job."""
    assert process.stdin is not None and process.stdout is not None
    try:
        process.stdin.write(framed(pickle.dumps(job)))
        process.stdin.flush()
        return bool(process.stdout.read(1))
    except Exception:  # the process is gone, or the job cannot be sent
        return False


def end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()


def framed(data: bytes) -> bytes:
    return len(data).to_bytes(8, "little") + data


# -- the pool of this process ------------------------------------------------------------------------------------------

_POOL: list[Processes] = []
_LOCK = threading.Lock()


def pool() -> Processes | None:
    """The processes; None where there are no cores for them."""
    with _LOCK:
        if not _POOL:
            cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
            _POOL.append(Processes(min(MOST, cores - 1)))
            atexit.register(_POOL[0].stop)
        return _POOL[0] if _POOL[0].count > 0 else None


def forget() -> None:
    """In the child of a fork: its parent's threads are not there, and its processes are not its own."""
    global _LOCK
    _LOCK = threading.Lock()
    for processes in _POOL:
        processes.let_go()
    _POOL.clear()
    handle.ELSEWHERE.clear()
    handle._COMPILING.clear()  # locks that a thread of the parent may hold


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=forget)


def is_on() -> bool:
    """Whether jobs are given to other processes: what they make has to be kept on the disk."""
    on = os.environ.get(SWITCH) != "0" and os.environ.get(stored.SWITCH) != "0"
    return on and is_python() and disk_cache.limit() > 0


def is_python() -> bool:
    """Whether this process runs by an interpreter that can be started again: not a program that has Python in it, which
    would begin from its start."""
    return Path(sys.executable or "").name.lower().startswith(("python", "pypy")) and not hasattr(sys, "frozen")


def is_kept(kind: Any) -> bool:
    """Whether the program of this key is on the disk."""
    name = stored.name_of(kind)
    return name is not None and disk_cache.has(name)


def compile_elsewhere(job: Job) -> Future[None] | None:
    """Begin to compile the job's kernels, unless they are here, on the disk, or under way."""
    missing = [kind for kind in job.kinds() if kind not in handle._COMPILED and kind not in handle.ELSEWHERE]
    missing = [kind for kind in missing if stored.name_of(kind) is not None and not is_kept(kind)]
    processes = pool() if missing else None
    if processes is None:
        return None
    future = processes.submit(job)
    handle.ELSEWHERE.update(dict.fromkeys(missing, future))
    return future


def wait_until_done() -> None:
    """Wait for everything that is under way: what benchmarks do between the first call of a shape and the others."""
    wait(list(handle.ELSEWHERE.values()), handle.MOST_SECONDS)


# -- the other process -------------------------------------------------------------------------------------------------


def serve(jobs: IO[bytes], answers: IO[bytes]) -> None:
    """Run jobs until there are no more."""
    while len(size := jobs.read(8)) == 8:
        with contextlib.suppress(Exception):  # which the product itself will raise
            job: Any = pickle.loads(jobs.read(int.from_bytes(size, "little")))
            job.run()
        answers.write(b".")
        answers.flush()


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent's to answer
    # What a library prints is not an answer.
    taken = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    serve(sys.stdin.buffer, taken)
