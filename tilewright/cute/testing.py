"""``cute.testing``: benchmarks, tuning, conversions and run-time assertions."""

from tilewright._names import attach

attach(__name__)
