"""Tensors: pointers, registers and the tensors over them, the layout algebra and elementwise arithmetic on them."""
