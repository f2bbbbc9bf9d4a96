"""``cutlass.base_dsl.ast_helpers``: the loops and conditions of the language."""

from tilewright._names import attach

attach(__name__)
