"""``tilewright check``: a script's kernels on the simulator under the checks."""

from __future__ import annotations

import json
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from tilewright import compat, sim
from tilewright.cli.scripts import own_traceback, run_script
from tilewright.errors import ArgumentError, SimulationError
from tilewright.sim.checks import Finding, Report, collecting, enabled_checkers
from tilewright.sim.checks.formats import as_json, document, sarif
from tilewright.sim.events import observing

if TYPE_CHECKING:
    from collections.abc import Iterator


def run(
    script: Path,
    arguments: list[str],
    *,
    check: str = "all",
    seed: int = 0,
    json_file: Path | None = None,
    sarif_file: Path | None = None,
) -> int:
    """Run ``script`` as the main program with ``arguments``; the exit code is 1 when something was found.

    A note about speed is a finding, too; a script that launches no kernel is an error. The script runs to its end, or
    to the first launch that cannot go on: what its kernels do wrong is printed then.
    """
    console = Console(stderr=True)
    launched: list[str] = []
    with (
        own_traceback(script),
        sim.options(check=check, seed=seed),
        collecting() as report,
        observing(lambda kernel, _: launched.append(kernel)),
    ):
        try:
            with served(), sim.marking_empty_arrays(enabled_checkers(check).get("uninitialised", False)):
                run_script(script, arguments)
        except SimulationError as error:
            report.add_error(error)
        except BaseException:
            if list(report):  # findings may be the cause of the error in the script
                print_report(console, report)
            raise
        finally:
            write(report, json_file, sarif_file)
    if not launched:
        raise no_kernels(script)
    return print_report(console, report)


def no_kernels(script: Path) -> ArgumentError:
    return ArgumentError(
        f"{script} launched no kernel, so there was nothing to check: give a script that calls its @cute.jit functions"
    )


def print_report(console: Console, report: Report, folder: str = "") -> int:
    """Print the findings, without ``folder`` before the names of files; the exit code of a command that found them."""
    for finding in report:
        console.print(_coloured(finding, folder), soft_wrap=True, highlight=False)
    count = len(list(report))
    if count:
        console.print(f"{count} finding{'s' if count > 1 else ''}", style="bold red")
    else:
        console.print("nothing found", style="green")
    return 1 if count else 0


def _coloured(finding: Finding, folder: str) -> Text:
    """The finding's text with its parts told apart by colour."""
    lines = (str(finding).replace(folder, "") if folder else str(finding)).splitlines()
    rule, _, what = lines[0].partition(": ")
    text = Text(f"{rule}: ", "bold red" if finding.level == "error" else "bold blue")
    text.append(what, "bold")
    text.append(f"  (kernel {finding.kernel!r})" if finding.kernel else "", "dim")
    for line in lines[1:]:
        head, separator, tail = line.partition(": ")
        if separator and head.strip() in ("memory", "why"):
            text.append(f"\n{head}: ", "dim").append(tail)
        elif separator and head.strip() == "to fix":
            text.append(f"\n{head}: ", "green").append(tail, "green")
        else:
            before, at, place = line.partition(", at ")
            text.append(f"\n{before}").append(at).append(place, "cyan")
    return text


@contextmanager
def served() -> Iterator[None]:
    """``import cutlass`` and what a script says to a GPU are served by the simulator."""
    compat.install(cpu=True, replace=True)
    try:
        yield
    finally:
        compat.uninstall()


def write(report: Report, json_file: Path | None, sarif_file: Path | None, **more: Any) -> None:
    """``more``: further entries of the JSON document."""
    findings = [as_json(finding) for finding in report]
    for path, made in ((json_file, document), (sarif_file, sarif)):
        if path is not None:
            content: dict[str, Any] = made(findings)
            content |= more if path is json_file else {}
            path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
