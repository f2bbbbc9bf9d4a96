"""D = A B^T on Hopper, a tile a block, one role: all warps multiply by wgmma, warp 0 also loads by TMA (multicast in
the cluster) and stores by TMA out of buffers that lie where A's stages were."""

import argparse
from typing import Tuple, Type

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute
import cutlass.cute.testing as testing
import cutlass.pipeline as pipeline
import cutlass.torch as cutlass_torch
import cutlass.utils as utils
import cutlass.utils.hopper_helpers as sm90_utils
import torch
from cutlass.cute.nvgpu import cpasync, warpgroup
from cutlass.cute.runtime import from_dlpack
from cutlass.pipeline import pipeline_init_arrive, pipeline_init_wait


class OneRoleGemm:
    """``tile_shape_mn``: 64 or 128 by 64, 128 or 256; the tile has 128 bytes of K."""

    def __init__(
        self,
        acc_dtype: Type[cutlass.Numeric],
        tile_shape_mn: Tuple[int, int],
        cluster_shape_mn: Tuple[int, int],
        group_size: int = 8,
    ):
        self.acc_dtype = acc_dtype
        self.tile_shape_mn = tile_shape_mn
        self.cluster_shape_mn = cluster_shape_mn
        self.group_size = group_size
        self.warp_groups = tile_shape_mn[0] // 64
        self.threads_per_cta = self.warp_groups * 128
        self.epi_stages = 4
        self.shared_storage = None

    @staticmethod
    def can_implement(mnk, a_dtype, b_dtype, acc_dtype, c_dtype, majors) -> bool:
        inputs = (cutlass.Float16, cutlass.BFloat16, cutlass.Float8E4M3FN, cutlass.Float8E5M2)
        if a_dtype not in inputs or b_dtype not in inputs or a_dtype.width != b_dtype.width:
            return False
        if acc_dtype not in (cutlass.Float16, cutlass.Float32):
            return False
        if acc_dtype is cutlass.Float16 and a_dtype is cutlass.BFloat16:
            return False
        if a_dtype.width == 8 and majors[:2] != "kk":
            return False
        m, n, k = mnk
        rows = {"m": m, "n": n, "k": k}
        dtypes = (a_dtype, b_dtype, c_dtype)
        return all(rows[major] * dtype.width % 128 == 0 for major, dtype in zip(majors, dtypes))

    def smem_layout(self, layout, dtype, tile, stages):
        """Out of atoms, as the helpers do it too."""
        k_major = layout.sm90_mma_major_mode() == cute.nvgpu.OperandMajorMode.K
        kind = sm90_utils.get_smem_layout_atom(layout, dtype, tile[1 if k_major else 0])
        atom = warpgroup.make_smem_layout_atom(kind, dtype)
        return cute.tile_to_shape(atom, cute.append(tile, stages), order=(0, 1, 2) if k_major else (1, 0, 2))

    @cute.jit
    def __call__(self, a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, stream: cuda.CUstream):
        self.a_dtype: Type[cutlass.Numeric] = a.element_type
        self.b_dtype: Type[cutlass.Numeric] = b.element_type
        self.c_dtype: Type[cutlass.Numeric] = c.element_type
        a_layout, b_layout = utils.LayoutEnum.from_tensor(a), utils.LayoutEnum.from_tensor(b)
        self.c_layout = utils.LayoutEnum.from_tensor(c)
        if cutlass.const_expr(self.a_dtype.width == 16 and self.a_dtype != self.b_dtype):
            raise TypeError(f"A and B have different types: {self.a_dtype}, {self.b_dtype}")
        tiled_mma = sm90_utils.make_trivial_tiled_mma(
            self.a_dtype,
            self.b_dtype,
            a_layout.sm90_mma_major_mode(),
            b_layout.sm90_mma_major_mode(),
            self.acc_dtype,
            (self.warp_groups, 1, 1),
            tiler_mn=(64, self.tile_shape_mn[1]),
        )
        tile_k = 4 * cute.size(tiled_mma.shape_mnk, mode=[2])
        self.tile_shape_mnk = (*self.tile_shape_mn, tile_k)
        tile_a = cute.slice_(self.tile_shape_mnk, (None, 0, None))
        tile_b = cute.slice_(self.tile_shape_mnk, (0, None, None))
        stage_bytes = cute.size(tile_a) * self.a_dtype.width // 8 + cute.size(tile_b) * self.b_dtype.width // 8
        self.ab_stages = (utils.get_smem_capacity_in_bytes("sm_90") - 2048) // stage_bytes
        self.epi_tile = (64 * self.warp_groups, 32)
        a_smem = self.smem_layout(a_layout, self.a_dtype, tile_a, self.ab_stages)
        b_smem = self.smem_layout(b_layout, self.b_dtype, tile_b, self.ab_stages)
        c_smem = sm90_utils.make_smem_layout_epi(self.c_dtype, self.c_layout, self.epi_tile, self.epi_stages)

        cluster_m, cluster_n = self.cluster_shape_mn
        tma_a, tensor_a = self.load_atom(a, a_smem, tile_a, cluster_n)
        tma_b, tensor_b = self.load_atom(b, b_smem, tile_b, cluster_m)
        # the tiler may be given as the layout of one tile's coordinates
        epi_coordinates = cute.composition(cute.make_identity_layout(c.shape), self.epi_tile)
        tma_c, tensor_c = cpasync.make_tiled_tma_atom(
            cpasync.CopyBulkTensorTileS2GOp(), c, cute.slice_(c_smem, (None, None, 0)), epi_coordinates
        )

        @cute.struct
        class SharedStorage:
            barriers: cute.struct.MemRange[cutlass.Int64, self.ab_stages * 2]
            sA: cute.struct.Align[cute.struct.MemRange[self.a_dtype, cute.cosize(a_smem)], 1024]
            sB: cute.struct.Align[cute.struct.MemRange[self.b_dtype, cute.cosize(b_smem)], 1024]

        self.shared_storage = SharedStorage
        tiles = cute.get(cute.zipped_divide(c, tiler=self.tile_shape_mn).layout, mode=[1]).shape
        clusters = cute.ceil_div(tiles, (cluster_m, cluster_n, 1))
        self.kernel(
            tma_a,
            tensor_a,
            tma_b,
            tensor_b,
            tma_c,
            tensor_c,
            tiled_mma,
            cute.make_layout((cluster_m, cluster_n, 1)),
            a_smem,
            b_smem,
            c_smem,
        ).launch(
            grid=(clusters[0] * cluster_m, clusters[1] * cluster_n, clusters[2]),
            block=[self.threads_per_cta, 1, 1],
            cluster=[cluster_m, cluster_n, 1],
            smem=self.shared_storage.size_in_bytes(),
            stream=stream,
        )
        return

    @staticmethod
    def load_atom(tensor, smem_layout, tile, sharers):
        if sharers > 1:
            op = cpasync.CopyBulkTensorTileG2SMulticastOp()
        else:
            op = cpasync.CopyBulkTensorTileG2SOp()
        stage = cute.select(smem_layout, mode=[0, 1])
        return cpasync.make_tiled_tma_atom(op, tensor, stage, tile, num_multicast=sharers)

    @cute.jit
    def tile_of_cluster(self):
        """Clusters walk down ``group_size`` rows of clusters before they go right; the last rows are a group of their
        own."""
        x, y, _ = cute.arch.cluster_idx()
        rows, columns, _ = cute.arch.cluster_dim()
        number = x + rows * y
        whole = (self.group_size, rows // self.group_size)
        grouped = cute.make_layout(
            (whole, columns), stride=((1, columns * self.group_size), self.group_size)
        )
        count = cute.size(grouped)
        # where there is no whole group, the remainder means nothing, and nobody uses it
        m, n = grouped.get_flat_coord(number % count)
        if number >= count:
            left = rows % self.group_size
            rest = cute.make_layout((left, columns), stride=(1, left))
            rest_m, n = rest.get_flat_coord(number - count)
            m = rows - left + rest_m
        return m, n

    @cute.kernel
    def kernel(
        self,
        tma_a: cute.CopyAtom,
        mA_mkl: cute.Tensor,
        tma_b: cute.CopyAtom,
        mB_nkl: cute.Tensor,
        tma_c: cute.CopyAtom,
        mC_mnl: cute.Tensor,
        tiled_mma: cute.TiledMma,
        cta_layout_mnk: cute.Layout,
        a_smem: cute.ComposedLayout,
        b_smem: cute.ComposedLayout,
        c_smem: cute.ComposedLayout,
    ):
        warp_idx = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        if warp_idx == 0:
            cpasync.prefetch_descriptor(tma_a)
            cpasync.prefetch_descriptor(tma_b)
        tidx, _, _ = cute.arch.thread_idx()
        _, _, batch = cute.arch.block_idx()
        cluster_m, cluster_n = self.tile_of_cluster()
        in_cluster = cute.arch.block_in_cluster_idx()
        tile_coord = (
            cluster_m * self.cluster_shape_mn[0] + in_cluster[0],
            cluster_n * self.cluster_shape_mn[1] + in_cluster[1],
            None,
            batch,
        )
        rank = cute.arch.make_warp_uniform(cute.arch.block_idx_in_cluster())
        cluster_coord = cta_layout_mnk.get_flat_coord(rank)
        share_a, share_b = self.cluster_shape_mn[1], self.cluster_shape_mn[0]
        mask_a = cute.make_layout_image_mask(cta_layout_mnk, cluster_coord, mode=1)
        mask_b = cute.make_layout_image_mask(cta_layout_mnk, cluster_coord, mode=0)
        mask_a = mask_a if share_a > 1 else 0
        mask_b = mask_b if share_b > 1 else 0
        stage_bytes = cute.size_in_bytes(self.a_dtype, cute.slice_(a_smem, (None, None, 0)))
        stage_bytes += cute.size_in_bytes(self.b_dtype, cute.slice_(b_smem, (None, None, 0)))

        smem = utils.SmemAllocator()
        storage = smem.allocate(self.shared_storage)
        arrivals = (share_a + share_b - 1) * (self.threads_per_cta // 32)
        mainloop = pipeline.PipelineTmaAsync.create(
            barrier_storage=storage.barriers.data_ptr(),
            num_stages=self.ab_stages,
            producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
            consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, arrivals),
            tx_count=stage_bytes,
            cta_layout_vmnk=cute.make_layout((1, *cta_layout_mnk.shape)),
            defer_sync=True,
        )
        pipeline_init_arrive(cluster_shape_mn=self.cluster_shape_mn, is_relaxed=True)

        sA = storage.sA.get_tensor(a_smem.outer, swizzle=a_smem.inner)
        sB = storage.sB.get_tensor(b_smem.outer, swizzle=b_smem.inner)
        # D goes where A was, under a swizzle of its own
        sC = cute.make_tensor(cute.recast_ptr(sA.iterator, c_smem.inner, dtype=self.c_dtype), c_smem.outer)
        gA = cute.local_tile(mA_mkl, self.tile_shape_mnk, tile_coord, proj=(1, None, 1))  # (M, K, tiles of K)
        gB = cute.local_tile(mB_nkl, self.tile_shape_mnk, tile_coord, proj=(None, 1, 1))  # (N, K, tiles of K)
        gC = cute.local_tile(mC_mnl, self.tile_shape_mnk, tile_coord, proj=(1, 1, None))  # (M, N)
        tAsA, tAgA = cpasync.tma_partition(
            tma_a,
            cluster_coord[1],
            cute.make_layout(cute.slice_(cta_layout_mnk, (0, None, 0)).shape),
            cute.group_modes(sA, 0, 2),
            cute.group_modes(gA, 0, 2),
        )
        tBsB, tBgB = cpasync.tma_partition(
            tma_b,
            cluster_coord[0],
            cute.make_layout(cute.slice_(cta_layout_mnk, (None, 0, 0)).shape),
            cute.group_modes(sB, begin=0, end=2),
            cute.group_modes(gB, begin=0, end=2),
        )
        group_idx = cute.arch.make_warp_uniform(tidx // 128)
        thr_mma = tiled_mma.get_slice(cute.make_layout(self.warp_groups, stride=128)(group_idx))
        tCrA = tiled_mma.make_fragment_A(thr_mma.partition_A(sA))
        tCrB = tiled_mma.make_fragment_B(thr_mma.partition_B(sB))
        acc = cute.make_rmem_tensor(thr_mma.partition_C(gC).shape, self.acc_dtype)
        k_tiles = cute.size(gA, mode=[2])
        pipeline_init_wait(cluster_shape_mn=self.cluster_shape_mn)

        write = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, self.ab_stages)
        if warp_idx == 0:
            for _ in cutlass.range(cutlass.min(self.ab_stages, k_tiles), unroll=1):
                self.load(mainloop, write, (tma_a, tAgA, tAsA, mask_a), (tma_b, tBgB, tBsB, mask_b))
                write.advance()
        read = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, self.ab_stages)
        release = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, self.ab_stages)
        tiled_mma.set(warpgroup.Field.ACCUMULATE, False)
        mainloop.consumer_wait(read)
        self.multiply(tiled_mma, acc, tCrA, tCrB, read.index)
        read.advance()
        ready = cutlass.Boolean(1)
        if read.count < k_tiles:
            ready = mainloop.consumer_try_wait(read)
        for _ in cutlass.range(1, k_tiles, 1, unroll=1):
            mainloop.consumer_wait(read, ready)
            self.multiply(tiled_mma, acc, tCrA, tCrB, read.index)
            warpgroup.wait_group(1)
            mainloop.consumer_release(release)
            release.advance()
            read.advance()
            ready = cutlass.Boolean(1)
            if read.count < k_tiles:
                ready = mainloop.consumer_try_wait(read)
            if warp_idx == 0 and write.count < k_tiles:
                self.load(mainloop, write, (tma_a, tAgA, tAsA, mask_a), (tma_b, tBgB, tBsB, mask_b))
                write.advance()
        warpgroup.wait_group(0)
        # the others in the cluster have stopped writing here
        if cute.size(self.cluster_shape_mn) > 1:
            cute.arch.cluster_arrive()
            cute.arch.cluster_wait()
        else:
            cute.arch.sync_threads()
        self.store(tiled_mma, acc, sC, cute.zipped_divide(gC, self.epi_tile), tma_c, tidx, warp_idx)

    @cute.jit
    def load(self, mainloop: pipeline.PipelineAsync, state: pipeline.PipelineState, *operands):
        mainloop.producer_acquire(state)
        for atom, tXgX, tXsX, mask in operands:
            cute.copy(
                atom,
                tXgX[(None, state.count)],
                tXsX[(None, state.index)],
                tma_bar_ptr=mainloop.producer_get_barrier(state),
                mcast_mask=mask,
            )
        mainloop.producer_commit(state)

    @cute.jit
    def multiply(
        self, tiled_mma: cute.TiledMma, acc: cute.Tensor, tCrA: cute.Tensor, tCrB: cute.Tensor, stage: cutlass.Int32
    ):
        warpgroup.fence()
        for k in cutlass.range(cute.size(tCrA, mode=[2]), unroll_full=True):
            cute.gemm(tiled_mma, acc, tCrA[(None, None, k, stage)], tCrB[(None, None, k, stage)], acc)
            tiled_mma.set(warpgroup.Field.ACCUMULATE, True)
        warpgroup.commit_group()

    @cute.jit
    def store(self, tiled_mma, acc, sC, gC_parts, tma_c, tidx, warp_idx):
        atom = sm90_utils.sm90_get_smem_store_op(self.c_layout, elem_ty_d=self.c_dtype, elem_ty_acc=self.acc_dtype)
        matrices = cute.make_copy_atom(
            cute.nvgpu.warp.StMatrix8x8x16bOp(self.c_layout.is_m_major_c(), 4), self.c_dtype
        )
        copy = cute.make_tiled_copy_S(atom, cute.make_tiled_copy_C_atom(matrices, tiled_mma))
        thr_copy = copy.get_slice(tidx)
        tRS_sC = thr_copy.partition_D(sC)  # (R2S, R2S_M, R2S_N, STAGE)
        tRS_rAcc = copy.retile(acc)
        layout = cute.make_layout(cute.shape(thr_copy.partition_S(sC))[:3])
        part = cute.make_rmem_tensor_like(layout, self.acc_dtype)
        bSG_sC, bSG_gC = cpasync.tma_partition(tma_c, 0, cute.make_layout(1), cute.group_modes(sC, 0, 2), gC_parts)
        rest = gC_parts.shape[1]
        order = cute.make_layout(rest, stride=(rest[1], 1))
        ring = pipeline.PipelineTmaStore.create(
            num_stages=self.epi_stages,
            producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, self.threads_per_cta),
        )
        for i in cutlass.range_constexpr(cute.size(rest)):
            for v in cutlass.range_constexpr(cute.size(part)):
                part[v] = tRS_rAcc[i * cute.size(part) + v]
            out = cute.make_rmem_tensor_like(layout, self.c_dtype)
            out.store(part.load().to(self.c_dtype))
            buffer = i % cute.size(tRS_sC, mode=[3])
            cute.copy(copy, out, tRS_sC[(None, None, None, buffer)])
            cute.arch.fence_proxy("async.shared", space="cta")
            pipeline.sync(barrier_id=1)
            if warp_idx == 0:
                cute.copy(tma_c, bSG_sC[(None, buffer)], bSG_gC[(None, order.get_hier_coord(i))])
                ring.producer_commit()
                ring.producer_acquire()
            pipeline.sync(barrier_id=1)
        if warp_idx == 0:
            ring.producer_tail()


def make(batch, rows, columns, rows_contiguous, dtype):
    """(numbers, CuTe tensor, torch tensor on the GPU)"""
    shape = (batch, rows, columns) if rows_contiguous else (batch, columns, rows)
    order = (1, 2, 0) if rows_contiguous else (2, 1, 0)
    numbers = cutlass_torch.create_and_permute_torch_tensor(
        shape,
        torch.float32,
        permute_order=order,
        init_type=cutlass_torch.TensorInitType.RANDOM,
        init_config=cutlass_torch.RandomInitConfig(min_val=-2, max_val=2),
    )
    stored_as = torch.int8 if dtype.width == 8 else cutlass_torch.dtype(dtype)
    storage = torch.empty_strided(tuple(numbers.shape), numbers.stride(), dtype=stored_as, device="cuda")
    tensor = from_dlpack(storage, assumed_align=16)
    tensor.element_type = dtype
    tensor = tensor.mark_layout_dynamic(leading_dim=1 if rows_contiguous else 0)
    tensor = cutlass_torch.convert_cute_tensor(numbers.cuda(), tensor, dtype, is_dynamic_layout=True)
    return numbers, tensor, storage


def run(
    mnkl, a_dtype, b_dtype, c_dtype, acc_dtype, a_major, b_major, c_major, tile_shape_mn, cluster_shape_mn, tolerance,
    warmup_iterations, iterations, skip_ref_check, use_cold_l2,
):
    """Gives the microseconds of one product."""
    m, n, k, batch = mnkl
    if not OneRoleGemm.can_implement((m, n, k), a_dtype, b_dtype, acc_dtype, c_dtype, a_major + b_major + c_major):
        raise TypeError(f"cannot multiply {a_dtype} ({a_major}) by {b_dtype} ({b_major}) into {c_dtype} ({c_major})")
    torch.manual_seed(1)
    operands = ((m, k, a_major == "k", a_dtype), (n, k, b_major == "k", b_dtype), (m, n, c_major == "n", c_dtype))
    (a, tensor_a, torch_a), (b, tensor_b, torch_b), (_, tensor_c, torch_c) = (make(batch, *o) for o in operands)
    stream = cuda.CUstream(torch.cuda.Stream().cuda_stream)
    torch.cuda.synchronize()
    gemm = OneRoleGemm(acc_dtype, tile_shape_mn, cluster_shape_mn)
    compiled = cute.compile(gemm, tensor_a, tensor_b, tensor_c, stream)
    if not skip_ref_check:
        compiled(tensor_a, tensor_b, tensor_c, stream)
        torch.cuda.synchronize()
        expected = torch.einsum("mkl,nkl->mnl", a, b)
        if c_dtype.width == 8:
            result = torch_c.view(cutlass_torch.dtype(c_dtype)).cpu().float()
            expected = expected.to(cutlass_torch.dtype(c_dtype)).float()
        else:
            result = torch_c.cpu().float()
        torch.testing.assert_close(result, expected, atol=tolerance, rtol=1e-3)
    if iterations == 0:
        return 0.0

    def generate_tensors():
        return testing.JitArguments(*(make(batch, *operand)[1] for operand in operands), stream)

    workspace_count = 1
    if use_cold_l2:
        one = sum(t.numel() * t.element_size() for t in (torch_a, torch_b, torch_c))
        workspace_count = testing.get_workspace_count(one, warmup_iterations, iterations)
    return testing.benchmark(
        compiled,
        workspace_generator=generate_tensors,
        workspace_count=workspace_count,
        stream=stream,
        warmup_iterations=warmup_iterations,
        iterations=iterations,
    )


def integers(text: str) -> Tuple[int, ...]:
    try:
        return tuple(int(x) for x in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"numbers with commas between them, not {text!r}")


SMALL = (136, 136, 160, 2)

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mnkl", type=integers, default=SMALL)
    parser.add_argument("--tile_shape_mn", type=integers, default=(128, 128))
    parser.add_argument("--cluster_shape_mn", type=integers, default=(2, 1))
    parser.add_argument("--a_dtype", type=cutlass.dtype, default=cutlass.Float16)
    parser.add_argument("--b_dtype", type=cutlass.dtype, default=cutlass.Float16)
    parser.add_argument("--c_dtype", type=cutlass.dtype, default=cutlass.Float16)
    parser.add_argument("--acc_dtype", type=cutlass.dtype, default=cutlass.Float32)
    parser.add_argument("--a_major", choices=["k", "m"], default="k")
    parser.add_argument("--b_major", choices=["k", "n"], default="k")
    parser.add_argument("--c_major", choices=["n", "m"], default="n")
    parser.add_argument("--tolerance", type=float, default=1e-1)
    parser.add_argument("--warmup_iterations", type=int, default=0)
    parser.add_argument("--iterations", type=int, default=1)
    parser.add_argument("--skip_ref_check", action="store_true")
    parser.add_argument("--use_cold_l2", action="store_true", default=False)
    args = parser.parse_args()
    if torch.cuda.get_device_capability()[0] != 9:
        raise RuntimeError("Hopper is required")
    arguments = vars(args)
    time = run(**arguments)
    print(f"{args.mnkl}, {args.tile_shape_mn}, {args.cluster_shape_mn}:", "timed" if time > 0 else "no time")
    if args.mnkl == SMALL:
        e4m3, f16, f32 = cutlass.dtype("Float8E4M3FN"), cutlass.Float16, cutlass.Float32
        for changes in (
            dict(a_dtype=e4m3, b_dtype=e4m3, c_dtype=e4m3, mnkl=(64, 256, 256, 1), tile_shape_mn=(64, 128),
                 cluster_shape_mn=(1, 2), use_cold_l2=True, warmup_iterations=1),
            dict(a_major="m", b_major="n", c_dtype=f32, mnkl=(128, 64, 72, 1), tile_shape_mn=(64, 64),
                 cluster_shape_mn=(1, 1), iterations=0),
            dict(acc_dtype=f16, c_major="m", mnkl=(576, 64, 64, 1), tile_shape_mn=(64, 64), cluster_shape_mn=(1, 1),
                 iterations=0),
        ):
            run(**{**arguments, **changes})
        try:
            run(**{**arguments, "a_dtype": e4m3, "b_dtype": e4m3, "a_major": "m"})
        except TypeError as error:
            print(error)
    print("PASS")
