"""The pictures under the module name that layout-drawing programs import: ``from tilewright.cute_viz import ...``."""

from tilewright._names import attach

attach(__name__)
