"""The commands and their options; what they do is in the module named like the command, imported when it is called."""

from __future__ import annotations

import inspect
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    name="tilewright",
    help="CuTe in open Python: layouts, kernels and GEMM, on a checking CPU simulator or on an NVIDIA GPU.",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


class Decomposition(StrEnum):
    """How a product is shared among thread blocks; ``auto`` takes what should be faster."""

    auto = "auto"
    data_parallel = "data_parallel"
    dynamic = "dynamic"
    stream_k = "stream_k"


class Machine(StrEnum):
    """Where a kernel runs; ``auto`` takes the GPU if there is one."""

    auto = "auto"
    cpu = "cpu"
    gpu = "gpu"


MachineOption = Annotated[Machine, typer.Option("--machine", help="the simulator, a GPU, or whichever is here")]


@app.callback(invoke_without_command=True)
def common(version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False) -> None:
    if version:
        from tilewright import __version__

        typer.echo(f"tilewright {__version__}")
        raise typer.Exit


@app.command()
def gemm(
    a: Annotated[Path, typer.Argument(metavar="A.npy", help="m x k matrix")],
    b: Annotated[Path, typer.Argument(metavar="B.npy", help="k x n matrix")],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="D.npy", help="where to write the m x n result")
    ] = None,
    c: Annotated[Path | None, typer.Option("--c", metavar="C.npy", help="m x n matrix to add")] = None,
    alpha: Annotated[float, typer.Option(help="factor of A·B")] = 1.0,
    beta: Annotated[float | None, typer.Option(help="factor of C; 1 if --c is given")] = None,
    kernel: Annotated[str | None, typer.Option(help="a kernel by name (tilewright show lists them)")] = None,
    decomposition: Annotated[
        Decomposition, typer.Option(help="a tile for each block, tiles that blocks draw, or even shares")
    ] = Decomposition.auto,
    machine: MachineOption = Machine.auto,
    check: Annotated[bool, typer.Option("--check", help="compare with a float64 product before writing")] = False,
) -> None:
    """Compute D = alpha·A·B + beta·C from .npy files; write the result, compare it, or both.

    The dtypes are those the kernels know; NumPy's raw 2-byte records are read as bfloat16 and raw 1-byte ones as
    float8_e4m3fn, which is how numpy.save writes them. The file is written completely, or not at all.
    """
    from tilewright.cli.gemm import run

    run(
        a,
        b,
        output,
        c_path=c,
        alpha=alpha,
        beta=beta,
        kernel=kernel,
        decomposition=decomposition.value,
        machine=machine.value,
        check=check,
    )


class Product(StrEnum):
    """Products with other operands than matrices of one type."""

    scaled = "scaled"
    mixed = "mixed"
    sparse = "sparse"
    grouped = "grouped"


@app.command()
def product(
    kind: Annotated[Product, typer.Argument(metavar="KIND", help="scaled, mixed, sparse or grouped")],
    a: Annotated[Path, typer.Argument(metavar="A.npy", help="m x k; of sparse products two of four neighbours are 0")],
    b: Annotated[Path, typer.Argument(metavar="B.npy", help="k x n; mixed: the weight, n x k; grouped: a stack")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="D.npy", help="where to write the result")],
    scale_a: Annotated[Path | None, typer.Option(metavar="S.npy", help="float32 scales of A")] = None,
    scale_b: Annotated[Path | None, typer.Option(metavar="S.npy", help="float32 scales of B")] = None,
    scales: Annotated[Path | None, typer.Option(metavar="S.npy", help="mixed: n x k/group, of the weight")] = None,
    zeros: Annotated[Path | None, typer.Option(metavar="Z.npy", help="mixed: zero points of the weight")] = None,
    bits: Annotated[int | None, typer.Option(help="mixed: of the weight's integers, 4 or 8")] = None,
    offsets: Annotated[Path | None, typer.Option(metavar="O.npy", help="grouped: int32, where groups end")] = None,
    counts: Annotated[Path | None, typer.Option(metavar="C.npy", help="grouped: int32, rows of each group")] = None,
    bias: Annotated[Path | None, typer.Option(metavar="V.npy", help="n numbers, added to every row")] = None,
    activation: Annotated[str | None, typer.Option(help="relu, gelu, silu, ..., applied last")] = None,
    out_dtype: Annotated[str | None, typer.Option(help="of the result: float16, bfloat16, float32")] = None,
    machine: MachineOption = Machine.auto,
) -> None:
    """Compute a product that models run from .npy files: of 8-bit numbers with scales, of a weight of 4 or 8 bits, of a
    2:4 sparse matrix, or of groups.

    The arrays are those of scaled_matmul, mixed_matmul (with prepare_weight), sparse_matmul (with compress_2_4) and
    grouped_matmul or scaled_grouped_matmul. The file is written completely, or not at all.
    """
    from tilewright.cli.product import run

    run(
        kind.value,
        a,
        b,
        output,
        machine.value,
        out_dtype,
        scale_a=scale_a,
        scale_b=scale_b,
        scales=scales,
        zeros=zeros,
        bits=bits,
        offsets=offsets,
        counts=counts,
        bias=bias,
        activation=activation,
    )


@app.command()
def tune(
    m: Annotated[int, typer.Argument(metavar="M", min=1, help="rows of A")],
    n: Annotated[int, typer.Argument(metavar="N", min=1, help="columns of B")],
    k: Annotated[int, typer.Argument(metavar="K", min=1, help="columns of A")],
    dtype: Annotated[str, typer.Option(help="of A and B: float16, bfloat16, float8_e4m3fn, int8, ...")] = "float16",
    out_dtype: Annotated[str | None, typer.Option(help="of the result, if not the usual one")] = None,
    a_major: Annotated[str, typer.Option(help="k: rows of A are contiguous; m: its columns")] = "k",
    b_major: Annotated[str, typer.Option(help="n: rows of B are contiguous; k: its columns")] = "n",
    batch: Annotated[int, typer.Option(help="how many products", min=1)] = 1,
    candidates: Annotated[int, typer.Option(help="how many ways to measure", min=1)] = 48,
    seconds: Annotated[float, typer.Option(help="the bound on the whole", min=1.0)] = 120.0,
) -> None:
    """Measure which size and decomposition multiplies fastest on this GPU, and remember it for matmul."""
    from tilewright.cli.tune import run

    run((m, n, k, batch), dtype, out_dtype, a_major, b_major, candidates, seconds)


@app.command()
def streamk(
    m: Annotated[int, typer.Argument(metavar="M", min=1, help="rows of A")] = 512,
    n: Annotated[int, typer.Argument(metavar="N", min=1, help="columns of B")] = 512,
    k: Annotated[int, typer.Argument(metavar="K", min=1, help="columns of A")] = 512,
    sms: Annotated[int | None, typer.Option(help="multiprocessors to plan for; the GPU's, or 132", min=1)] = None,
    avail_sms: Annotated[int | None, typer.Option(help="of them, how many Stream-K balances over", min=1)] = None,
    occupancy: Annotated[int | None, typer.Option(help="blocks a multiprocessor; the kernel's", min=1)] = None,
    tile: Annotated[str | None, typer.Option(help="of a block, MxNxK; the kernel's")] = None,
    split: Annotated[int | None, typer.Option(help="tile-splitting factor: split-K alone (2 among all)", min=2)] = None,
    alpha: Annotated[float, typer.Option(help="factor of the product")] = 1.0,
    beta: Annotated[float, typer.Option(help="factor of C")] = 0.0,
    iterations: Annotated[int, typer.Option(help="timed launches on a GPU", min=1)] = 10,
    kernel: Annotated[
        str, typer.Option(help="tensorop_f16, tensorop_f16_f16 with float16 sums, or hopper_f16")
    ] = "tensorop_f16",
    picture: Annotated[Path | None, typer.Option(help="draw the schedules into this SVG file")] = None,
    machine: MachineOption = Machine.auto,
) -> None:
    """Compare data-parallel, split-K and Stream-K on one product of small integers; with a split, split-K alone.

    Each result is compared bit by bit with a reference (with alpha and beta, to the last bit). On a GPU times are
    measured; without one the simulator computes the results and times are modelled. The picture always shows the model.
    """
    from tilewright.cli.streamk import run

    run(
        (m, n, k),
        sms=sms,
        available=avail_sms,
        occupancy=occupancy,
        tile=tile,
        split=split,
        scales=(alpha, beta),
        iterations=iterations,
        kernel=kernel,
        picture=picture,
        machine=machine.value,
    )


@app.command()
def show(
    kernel: Annotated[str | None, typer.Argument(help="name of a kernel; without it, they are listed")] = None,
    ir: Annotated[bool, typer.Option("--ir", help="the staged program")] = False,
    cuda: Annotated[bool, typer.Option("--cuda", help="the CUDA C++ it prints")] = False,
    ptx: Annotated[bool, typer.Option("--ptx", help="the PTX that NVRTC makes of it")] = False,
    sass: Annotated[bool, typer.Option("--sass", help="the machine code")] = False,
    resources: Annotated[bool, typer.Option("--resources", help="registers and spills")] = False,
    arch: Annotated[str | None, typer.Option(help="sm_80 to sm_121a; the kernel's own by default")] = None,
) -> None:
    """Show a shipped kernel at any stage of its life. No GPU is needed."""
    from tilewright.cli.show import run

    chosen = {"ir": ir, "cuda": cuda, "ptx": ptx, "sass": sass, "resources": resources}
    run(kernel, [name for name, wanted in chosen.items() if wanted], arch)


@app.command()
def analyse(
    kernel: Annotated[str | None, typer.Argument(help="name of a kernel; without it, they are listed")] = None,
    arch: Annotated[
        str | None, typer.Option(help="sm_80 to sm_121a; by default sm_90a, or the kernel's own if that is newer")
    ] = None,
    grid: Annotated[int | None, typer.Option(help="thread blocks of a launch, for its waves", min=1)] = None,
    sms: Annotated[int | None, typer.Option(help="multiprocessors, if not those of the usual device", min=1)] = None,
) -> None:
    """Say what a shipped kernel takes: registers, spills, shared memory, occupancy, fragments. No GPU is needed."""
    from tilewright.cli.analyse import run

    run(kernel, arch, grid, sms)


@app.command()
def layout(
    expression: Annotated[str, typer.Argument(metavar="EXPR", help="e.g. 'composition((4,8):(13,1), 8:2)'")],
    svg: Annotated[Path | None, typer.Option(help="draw it into this file: .svg, .png or .pdf")] = None,
    tex: Annotated[Path | None, typer.Option(help="draw it into this LaTeX (TikZ) file")] = None,
    explain: Annotated[bool, typer.Option("--explain", help="work the outermost operation out step by step")] = False,
) -> None:
    """Evaluate an expression of the layout algebra, and draw the layout it yields.

    Operands are in CuTe notation: layouts (4,8):(13,1), tuples, `_`, swizzles Sw<3,3,3>, swizzled layouts
    Sw<3,3,3> o 0 o (8,64):(64,1). A layout can be called: right_inverse((4,8):(8,1))(5).
    """
    from tilewright.cli.layout import run

    run(expression, svg, tex, explain)


@app.command()
def atom(
    name: Annotated[
        str | None, typer.Argument(help="CuTe's name of an instruction; without it, they are listed")
    ] = None,
    value_bits: Annotated[int, typer.Option(help="width of the elements that a copy moves", min=1)] = 16,
    svg: Annotated[Path | None, typer.Option(help="draw it into this file: .svg, .png or .pdf")] = None,
    tex: Annotated[Path | None, typer.Option(help="draw it into this LaTeX (TikZ) file")] = None,
    load: Annotated[
        str | None,
        typer.Option(help="of a tcgen05.mma: draw tensor memory, with the threads that this tcgen05.ld loads into"),
    ] = None,
    factors: Annotated[
        str | None, typer.Option(help="of a block-scaled tcgen05.mma: draw the scale factors of A or B")
    ] = None,
) -> None:
    """Print the thread-value layouts of an MMA or copy instruction, and draw them."""
    from tilewright.cli.atom import run

    run(name, value_bits, svg, tex, load, factors)


@app.command()
def demo(
    machine: MachineOption = Machine.auto,
    pictures: Annotated[Path, typer.Option(help="folder for the pictures; the current one by default")] = Path("."),
    verbose: Annotated[bool, typer.Option("--verbose", help="with the instructions that the product executed")] = False,
) -> None:
    """Multiply two matrices, find a race in a kernel, and draw a timeline and a swizzled shared-memory tile."""
    from tilewright.cli.demo import run

    run(machine.value, pictures, verbose)


@app.command()
def explore(
    port: Annotated[int, typer.Option(help="of the local server; 0 takes a free one", min=0, max=65535)] = 8765,
    runtime: Annotated[Path | None, typer.Option(help="folder of Pyodide's npm package")] = None,
    browser: Annotated[bool, typer.Option(help="whether to open the page")] = True,
    write: Annotated[Path | None, typer.Option(help="write the page into this folder instead of serving it")] = None,
) -> None:
    """Explore layouts, swizzles, threads and values, TMA boxes, Stream-K and kernels in the browser.

    The page runs Tilewright itself by Pyodide (`npm install pyodide`); nothing leaves this computer.
    """
    from tilewright.cli.explore import run

    run(port, runtime, browser, write)


@app.command(
    context_settings={
        "allow_extra_args": True,
        "ignore_unknown_options": True,
        "allow_interspersed_args": False,
    }
)
def check(
    context: typer.Context,
    script: Annotated[Path, typer.Argument(metavar="SCRIPT.py", help="a program that launches kernels")],
    check: Annotated[str, typer.Option(help="the checks: all, default, names of checkers, -name to leave out")] = "all",
    seed: Annotated[int, typer.Option(help="of the order in which warps run")] = 0,
    json: Annotated[Path | None, typer.Option(help="write the findings into this JSON file")] = None,
    sarif: Annotated[Path | None, typer.Option(help="write them into this SARIF file, for code review")] = None,
    schedules: Annotated[int, typer.Option(help="how many drawn schedules each kernel runs under", min=0)] = 0,
    systematic: Annotated[bool, typer.Option("--systematic", help="all orders of synchronisation that matter")] = False,
    limit: Annotated[int, typer.Option(help="schedules that --systematic runs at most", min=1)] = 2000,
    compare: Annotated[bool, typer.Option(help="whether another result is a failure of a schedule")] = True,
) -> None:
    """Run a script's kernels on the simulator with all checks; what follows its name are its own arguments.

    Kernels of the CuTe DSL (`import cutlass`) and arrays "on a GPU" are served by the CPU. The exit code is 1 when
    something was found, notes about speed included (--check all,-performance leaves them out).

    With --schedules each kernel is run again under schedules in which warps are stopped at any access and copies arrive
    at any time; one that fails is printed with its switches and its seed. With --systematic every order of the
    synchronisation of a small kernel is run.
    """
    if schedules or systematic:
        from tilewright.cli.schedules import run as under_schedules

        raise typer.Exit(
            under_schedules(
                script,
                context.args,
                check=check,
                seed=seed,
                schedules=schedules,
                systematic=systematic,
                limit=limit,
                compare=compare,
                json_file=json,
                sarif_file=sarif,
            )
        )
    from tilewright.cli.check import run

    raise typer.Exit(run(script, context.args, check=check, seed=seed, json_file=json, sarif_file=sarif))


@app.command(
    context_settings={
        "allow_extra_args": True,
        "ignore_unknown_options": True,
        "allow_interspersed_args": False,
    }
)
def run(
    context: typer.Context,
    script: Annotated[str, typer.Argument(metavar="SCRIPT.py", help="a program that says `import cutlass`")],
    cpu: Annotated[bool, typer.Option("--cpu", help="let the CPU serve what the program says to a GPU")] = False,
    replace: Annotated[bool, typer.Option("--replace", help="also where a package `cutlass` is installed")] = False,
    arch: Annotated[str, typer.Option(help="with --cpu: the GPU that the program sees, such as sm_100a")] = "",
) -> None:
    """Run a program written for the CuTe DSL as it is: `import cutlass` resolves to Tilewright.

    What follows the script's name are its own arguments; the exit code is its own. With --cpu, PyTorch's CUDA device
    and cuda.bindings are served by the CPU, kernels run in the simulator, and a note at the end says so. The program
    sees the GPU of --arch, or of the variable CUTE_DSL_ARCH; without both a B200 where it names tcgen05, an RTX 5090
    where it names sm_120, else an H100.
    """
    from tilewright.cli.run import run

    raise typer.Exit(run(script, context.args, cpu, replace, arch))


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def mutate(
    context: typer.Context,
    script: Annotated[Path, typer.Argument(metavar="SCRIPT.py", help="a program that launches kernels")],
    seed: Annotated[int, typer.Option(help="of the order in which warps run")] = 0,
    schedules: Annotated[int, typer.Option(help="drawn for each mutant that one schedule misses", min=0)] = 4,
    every: Annotated[bool, typer.Option("--every", help="every op, not the first and last of those of a line")] = False,
    launches: Annotated[int, typer.Option(help="launches of each kernel that are studied", min=1)] = 1,
    known: Annotated[Path | None, typer.Option(help="JSON file of mutants known to be equivalent")] = None,
    json: Annotated[Path | None, typer.Option(help="write all outcomes into this JSON file")] = None,
    verbose: Annotated[bool, typer.Option("--verbose", help="list the noticed mutants, too")] = False,
) -> None:
    """Leave out or weaken each synchronisation operation of a script's kernels, and tell which changes the checks
    notice."""
    from tilewright.cli.mutate import run

    raise typer.Exit(
        run(
            script,
            context.args,
            seed=seed,
            schedules=schedules,
            every=every,
            launches=launches,
            known=known,
            json=json,
            verbose=verbose,
        )
    )


@app.command()
def stubs(folder: Annotated[Path, typer.Argument(metavar="DIRECTORY", help="`typings`, where pyright looks")]) -> None:
    """Write type stubs of `cutlass`, so that mypy and pyright know a program that says `import cutlass`."""
    from tilewright.compat.stubs import write

    print(f"wrote {len(write(folder))} stubs under {folder / 'cutlass'}")


def unwrapped(text: str) -> str:
    """A docstring with one line for each paragraph: Typer prints its line breaks, and the terminal has its own width.

    >>> unwrapped("Do this\\n    and that.\\n\\n    More.")
    'Do this and that.\\n\\nMore.'
    """
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))


for command in app.registered_commands:
    command.help = unwrapped(inspect.getdoc(command.callback) or "")
