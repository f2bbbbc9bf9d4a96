"""``cutlass.experimental``: modules whose names can be imported; using one is an error that says what to use."""

from tilewright._lazy import lazily

__getattr__, __dir__, __all__ = lazily(__name__, {}, ("cuda", "primitives", "task_scheduling"))
