"""Traces of simulated launches: what each warp and each asynchronous unit does when, in the time of a stated model.

:class:`Tracer` observes a launch and keeps a clock for each warp and unit (``clocks.py``), which advances by the costs
of ``costs.py``; a wait ends at the time of what ended it. The result is a :class:`Trace` of :class:`Span` and
:class:`Arrow` (``record.py``), which ``viz.timeline`` draws, ``stalls.py`` sums up and ``perfetto.py`` exports.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from tilewright.sim.events import observing
from tilewright.sim.tracing.record import Arrow, LaunchRecord, Phase, Span, Trace, overlap
from tilewright.sim.tracing.stalls import Stall, ended_by
from tilewright.sim.tracing.tracer import Tracer

__all__ = ["Arrow", "LaunchRecord", "Phase", "Span", "Stall", "Trace", "ended_by", "overlap", "trace"]


@contextmanager
def trace() -> Iterator[Trace]:
    """Trace the launches inside the block.

    The times are those of the model in :mod:`tilewright.sim.tracing.costs`; ``tilewright.viz.timeline`` draws them.

    >>> from tilewright.gemm import gemm
    >>> a = np.ones((64, 64), np.float16)
    >>> with trace() as seen:
    ...     _ = gemm(a, a, kernel="hopper_f16")
    >>> sorted({role for role in seen.roles.values() if role})
    ['loads', 'multiplies', 'multiplies, stores']
    >>> len(seen.of("load")) >= 2
    True
    """
    recorded = Trace()
    with observing(partial(Tracer, recorded)):
        yield recorded
