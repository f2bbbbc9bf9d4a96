from tilewright import Float32, cute


@cute.kernel
def add(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor) -> None:
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    i = block * 256 + thread
    if i < cute.size(a):
        c[i] = a[i] + b[i]


@cute.jit
def run(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor) -> None:
    add(a, b, c).launch(grid=(cute.ceil_div(cute.size(a), 256), 1, 1), block=(256, 1, 1))


# Arrays of any length: the type and the layout are all that a compilation needs.
array = cute.runtime.make_fake_compact_tensor(Float32, (cute.sym_int(),))
compiled = cute.compile(run, array, array, array)
