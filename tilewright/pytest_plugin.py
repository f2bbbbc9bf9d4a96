"""The pytest plugin: tests whose kernels run in the simulator, under its checks and without a GPU.

    pytest --tilewright-check                  # all checks; =default, =races,mbarriers... for some
    pytest --tilewright-check --tilewright-sarif findings.sarif

A launch in which something is found raises SimulationError, so its test fails. The marker
``@pytest.mark.tilewright_check("none")`` sets the checks of one test, class or module (``pytestmark``), whatever the
command line says. The fixture ``tilewright_check`` is for tests about the checks themselves::

    def test_the_race_is_found(tilewright_check):
        with tilewright_check("races") as report:
            kernel_with_a_race(x, y)
        assert report.rules == ["data-race"]

The plugin imports Tilewright's simulator only where one of these is used.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

MARKER = "tilewright_check"


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    # pytest rewrites the asserts of every package that comes with a plugin. Tilewright has none, and its 600 modules
    # are seconds of a first run. Where pytest has no such set any more, it rewrites them.
    getattr(pluginmanager.rewrite_hook, "_must_rewrite", set()).discard("tilewright")
    group = parser.getgroup("tilewright", "kernels in Tilewright's simulator")
    group.addoption(
        "--tilewright-check",
        nargs="?",
        const="all",
        default=None,
        metavar="CHECKS",
        help="run kernels under these checks of the simulator: all (when nothing is given), default, none, or names",
    )
    group.addoption(
        "--tilewright-sarif", default=None, metavar="FILE", help="write what the checks find as SARIF, for code review"
    )
    parser.addini("tilewright_check", "the checks of kernels in the simulator, as --tilewright-check", default="")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", f"{MARKER}(checks): the simulator's checks that this test's kernels run under")


def checks_of(item: pytest.Item) -> str:
    """The checks of a test: its marker's, the command line's, those of the ini file; empty: as they are."""
    marker = item.get_closest_marker(MARKER)
    if marker is not None:
        if len(marker.args) != 1 or marker.kwargs:
            raise pytest.UsageError(f'{item.nodeid}: @pytest.mark.{MARKER} takes one text, such as "none" or "races"')
        return str(marker.args[0])
    return str(item.config.getoption("--tilewright-check") or item.config.getini("tilewright_check"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> Any:
    check = checks_of(item)
    if not check:
        return (yield)
    from tilewright import sim

    with (
        sim.options(check=check),
        sim.marking_empty_arrays(sim.checks.enabled_checkers(check).get("uninitialised", False)),
    ):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[Any]) -> Any:
    report = yield
    error = call.excinfo.value if call.excinfo is not None else None
    findings = getattr(error, "findings", None)
    if findings is not None:
        from tilewright.sim.checks.formats import as_json

        # Plain values: a test worker sends its reports to the process that writes the file.
        report.tilewright_findings = [as_json(finding) | {"test": item.nodeid} for finding in findings]
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _gathered.extend(getattr(report, "tilewright_findings", ()))


_gathered: list[dict[str, Any]] = []


def pytest_sessionstart(session: pytest.Session) -> None:
    _gathered.clear()


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    path = config.getoption("--tilewright-sarif")
    if path is not None:
        from tilewright.sim.checks.formats import sarif

        Path(path).write_text(json.dumps(sarif(_gathered, config.rootpath), indent=1) + "\n", encoding="utf-8")
    if _gathered:
        tests = len({finding["test"] for finding in _gathered})
        where = f"; {path}" if path is not None else ""
        terminalreporter.write_line(
            f"tilewright: {len(_gathered)} findings of the simulator's checks in {tests} tests{where}", red=True
        )


@pytest.fixture
def tilewright_check() -> Iterator[Callable[[str], AbstractContextManager[Any]]]:
    """``with tilewright_check("all") as report:`` runs the launches inside under these checks; what they find goes into
    ``report`` (iterate it, or see ``report.rules``) and fails nothing."""
    from tilewright import sim

    @contextmanager
    def checking(check: str = "all") -> Iterator[Any]:
        from tilewright.sim.checks import collecting

        with sim.options(check=check), collecting() as report:
            yield report

    with sim.marking_empty_arrays():
        yield checking
