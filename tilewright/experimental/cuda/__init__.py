"""``cutlass.experimental.cuda``: tensor maps as kernel parameters."""

from tilewright._names import attach

attach(__name__)
