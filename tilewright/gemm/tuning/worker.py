"""Measuring in another process: a configuration that hangs or breaks the GPU costs its time limit and no more."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import tilewright
from tilewright.errors import MachineError
from tilewright.gemm.tuning.candidate import Candidate

COMMAND = (sys.executable, "-m", "tilewright.gemm.tuning.measure")
START_SECONDS = 120.0  # importing PyTorch, making the operands


@dataclass(frozen=True)
class FailedCandidate:
    """Why a candidate has no time."""

    reason: str


class Worker:
    """``command`` measures candidates of the problem ``spec``; it is started when it is needed, and again after a
    candidate that had to be stopped."""

    def __init__(self, spec: dict[str, Any], command: Sequence[str] = COMMAND) -> None:
        self.spec, self.command = spec, list(command)
        self.process: subprocess.Popen[str] | None = None
        self.answers: queue.Queue[str | None] = queue.Queue()

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def us(self, candidate: Candidate, seconds: float) -> float | FailedCandidate:
        """Microseconds of the candidate, or why it has no time: also when it takes more than ``seconds``."""
        if self.process is None:
            self.start()
        answer = self.ask(candidate.to_json(), seconds)
        if answer is None:
            self.stop()
            return FailedCandidate(f"stopped after {seconds:.0f} seconds")
        if "us" in answer:
            return float(answer["us"])
        if "failure" not in answer:  # the process has ended
            self.stop()
        return FailedCandidate(str(answer.get("failure", answer.get("ended"))))

    def start(self) -> None:
        self.answers = queue.Queue()
        # The library may be one that this process found by other ways than being installed.
        paths = [str(Path(tilewright.__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
        self.process = subprocess.Popen(
            self.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
            encoding="utf-8",
        )
        threading.Thread(target=self.listen, args=(self.process, self.answers), daemon=True).start()
        answer = self.ask(self.spec, START_SECONDS)
        if answer is None or "ready" not in answer:
            self.stop()
            reason = "it did not start in time" if answer is None else answer.get("fatal", answer.get("ended"))
            raise MachineError(f"the process that measures cannot work: {reason}")

    @staticmethod
    def listen(process: subprocess.Popen[str], answers: queue.Queue[str | None]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            answers.put(line)
        answers.put(None)

    def ask(self, message: dict[str, Any], seconds: float) -> dict[str, Any] | None:
        """The answer to one line; None if it does not come in time."""
        assert self.process is not None and self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(message) + "\n")
            self.process.stdin.flush()
            line = self.answers.get(timeout=seconds)
        except queue.Empty:
            return None
        except OSError:
            line = None
        if line is None:
            return {"ended": f"the process that measures has ended (exit code {self.process.wait(10)})"}
        answer: dict[str, Any] = json.loads(line)
        return answer

    def stop(self) -> None:
        """End the process, whatever it does."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            for pipe in (self.process.stdin, self.process.stdout):
                if pipe is not None:
                    pipe.close()
            self.process = None
