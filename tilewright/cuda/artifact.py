"""The result of compiling one kernel, to look at and to load."""

from __future__ import annotations

import functools
import hashlib
import re
import subprocess
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilewright.cuda.kernel_text import emit
from tilewright.errors import MachineError
from tilewright.ir.core import Function
from tilewright.reports import Report, Row, folded

STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
REGISTERS = re.compile(r"Used (\d+) registers")
STATIC_SMEM = re.compile(r"(\d+) bytes smem")
MNEMONIC = re.compile(r"^\s*/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_.]*)", re.M)


@dataclass(frozen=True, repr=False)
class Artifact(Report):
    """One kernel compiled for one architecture.

    ``ir`` and ``cuda`` are texts, written when they are asked for, ``ptx`` NVIDIA's assembly, ``cubin`` the loadable
    binary, ``log`` ptxas' report. ``dynamic_smem`` are the bytes that the kernel's own allocations need. ``cached``: it
    came from the disk cache, ``seconds`` what it took; ``nvrtc``: the version of the compiler, ``"13.0"``.
    ``function`` None: machine code that was loaded, of which there are no texts.
    """

    name: str
    arch: str
    ptx: str
    cubin: bytes
    log: str
    dynamic_smem: int = 0
    cached: bool = False
    seconds: float = 0.0
    nvrtc: str = ""
    function: Function | None = None

    @functools.cached_property
    def ir(self) -> str:
        """The kernel's IR as text."""
        return "" if self.function is None else str(self.function)

    @functools.cached_property
    def cuda(self) -> str:
        """The kernel's CUDA C++."""
        return "" if self.function is None else emit(self.function, self.arch).text

    def heading(self) -> str:
        return f"kernel {self.name} for {self.arch}"

    def rows(self) -> list[Row]:
        rows = [
            ("registers a thread", str(self.registers)),
            ("bytes spilled a thread", str(self.spills)),
            ("bytes of stack a thread", str(self.stack)),
            ("shared memory a block", f"{self.smem:,} bytes"),
            ("cubin", f"{len(self.cubin):,} bytes" + (", from the cache" if self.cached else "")),
        ]
        return rows + [("warning", line) for line in self.warnings]

    def _repr_html_(self) -> str:
        parts = (("IR", self.ir), ("CUDA C++", self.cuda), ("PTX", self.ptx), ("compiler's report", self.log))
        return super()._repr_html_() + folded(parts)

    def __repr__(self) -> str:
        return f"<kernel {self.name} for {self.arch}: {self.registers} registers, {self.spills} bytes spilled>"

    @property
    def registers(self) -> int:
        """Registers a thread."""
        return self._number(REGISTERS, 1)

    @property
    def stack(self) -> int:
        """Bytes of local memory a thread (the stack frame; fragments indexed at run time are there)."""
        return self._number(STACK, 1)

    @property
    def spills(self) -> int:
        """Bytes of spill stores and loads a thread; 0 is what a fast kernel has."""
        return self._number(STACK, 2) + self._number(STACK, 3)

    @property
    def smem(self) -> int:
        """Shared memory a block in bytes, static and dynamic."""
        return self._number(STATIC_SMEM, 1) + self.dynamic_smem

    @property
    def warnings(self) -> list[str]:
        """The warnings of ptxas and NVRTC: serialised wgmma, for one."""
        return [
            line for line in self.log.splitlines() if "warning" in line.lower() or "performance loss" in line.lower()
        ]

    @functools.cached_property
    def sass(self) -> str:
        """The machine code as text. Raises MachineError where no disassembler is installed."""
        return disassemble(self.cubin)

    def mnemonics(self) -> dict[str, int]:
        """How often each machine instruction occurs in the kernel: ``{"LDG.E.128": 2, "HMMA.16816.F32": 64}``."""
        counts: dict[str, int] = {}
        for name in MNEMONIC.findall(self.sass):
            counts[name] = counts.get(name, 0) + 1
        return counts

    def dump(self, folder: str | Path, forms: Iterable[str] = ("ir", "cu", "ptx", "log", "cubin")) -> Path:
        """Write the ``forms`` into ``folder`` (with ``cu``, the device header too); gives the folder.

        The files are named by the kernel, a digest of its text and the architecture.
        """
        from tilewright.cuda.nvrtc import headers

        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        stem = f"{self.name}.{hashlib.sha256(self.cuda.encode()).hexdigest()[:8]}.{self.arch}"
        for form in forms:
            content: Any = getattr(self, {"cu": "cuda"}.get(form, form))
            (place / f"{stem}.{form}").write_bytes(content if isinstance(content, bytes) else content.encode())
            for name, header in headers().items() if form == "cu" else ():
                (place / name).write_bytes(header)
        return place

    def _number(self, pattern: re.Pattern[str], group: int) -> int:
        match = pattern.search(self.log)
        return int(match[group]) if match else 0


def disassemble(cubin: bytes) -> str:
    """The SASS of a cubin."""
    from tilewright.cuda.toolchain import disassembler

    tool = disassembler()
    with tempfile.TemporaryDirectory() as folder:  # Windows lets no second program open a file that is open
        file = Path(folder, "kernel.cubin")
        file.write_bytes(cubin)
        # -ndf: no analysis of the branch stack, which these kernels do not use; it is a quarter of nvdisasm's time.
        flags = ["-c", "-ndf"] if tool.stem == "nvdisasm" else ["-sass"]
        done = subprocess.run(
            [str(tool), *flags, str(file)], capture_output=True, text=True, encoding="utf-8", errors="replace"
        )
    if done.returncode:
        raise MachineError(f"{tool} failed: {done.stderr.strip()}")
    return done.stdout
