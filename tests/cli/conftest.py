"""A command runner, matrices on disk, and a stand-in for the GEMM library that counts nothing and fails on request."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tilewright.cli import main


@dataclass
class Outcome:
    code: int
    out: str
    err: str

    @property
    def complaint(self) -> str:
        """The one line that a user's mistake leaves on standard error."""
        assert self.code == 2, self
        lines = self.err.splitlines()
        assert len(lines) == 1 and lines[0].startswith("tilewright: "), self
        return lines[0]


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Outcome]:
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments: Any) -> Outcome:
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return run


@pytest.fixture
def save(tmp_path: Path) -> Callable[..., Path]:
    def save(name: str, array: np.ndarray) -> Path:
        path = tmp_path / name
        np.save(path, array)
        return path

    return save
