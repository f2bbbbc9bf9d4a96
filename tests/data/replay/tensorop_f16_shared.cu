#include "tilewright.cuh"

template <class T>
__device__ __forceinline__ T tw_rematerialize(T value) {
  asm volatile("mov.b32 %0, %0;" : "+r"(value));
  return value;
}

__device__ __forceinline__ void cp_async_cg_16_zfill(uint32_t target, void const* source, int source_bytes) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], %2, %3;" : : "r"(target), "l"(source), "n"(16), "r"(source_bytes) : "memory");
}

__device__ __forceinline__ void ldmatrix_x4(uint32_t address, uint32_t& r0, uint32_t& r1, uint32_t& r2, uint32_t& r3) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3) : "r"(address));
}

__device__ __forceinline__ void ldmatrix_x4_trans(uint32_t address, uint32_t& r0, uint32_t& r1, uint32_t& r2, uint32_t& r3) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3) : "r"(address));
}

__device__ __forceinline__ void mma_16x8x16_f32f16f16f32_tn(float& d0, float& d1, float& d2, float& d3, uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3, uint32_t b0, uint32_t b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3)
               : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

__device__ __forceinline__ void tw_st_release_gpu_u32(void* pointer, unsigned value) {
  asm volatile("st.release.gpu.u32 [%0], %1;" :: "l"(pointer), "r"(value) : "memory");
}

template <class To, class From>
__device__ __forceinline__ To tw_bits(const From& from) {
  static_assert(sizeof(To) == sizeof(From), "same size");
  To to;
  memcpy(&to, &from, sizeof(To));
  return to;
}

__device__ __forceinline__ unsigned tw_ld_acquire_gpu_u32(const void* pointer) {
  unsigned value;
  asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(value) : "l"(pointer) : "memory");
  return value;
}

__device__ __forceinline__ void tw_st_relaxed_gpu_u32(void* pointer, unsigned value) {
  asm volatile("st.relaxed.gpu.u32 [%0], %1;" :: "l"(pointer), "r"(value) : "memory");
}

extern "C" __global__ void __launch_bounds__(256)
MultistageGemm_kernel(tw::f16* mA, int mA_shape0, int mA_shape1, int mA_stride0, int mA_stride2, tw::f16* mB, int mB_shape0, int mB_shape1, int mB_stride1, int mB_stride2, tw::f16* mC, int mC_stride0, int mC_stride2, tw::f16* mD, int mD_shape0, int mD_shape1, int mD_stride0, int mD_stride2, float function_alpha, float function_beta, float* decomposition_workspace, int32_t* decomposition_flags, int decomposition_plan_iters_per_tile, int decomposition_plan_sk_tiles, int decomposition_plan_sk_regions, int decomposition_plan_sk_blocks_per_region, int decomposition_plan_sk_big_blocks_per_region, int decomposition_plan_sk_iters_per_normal_block, int decomposition_plan_sk_iters_per_region) {
  extern __shared__ __align__(1024) unsigned char smem[];
  #if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
  #endif
  #if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
  #endif
  const int bidx = blockIdx.x;
  const int bidz = blockIdx.z;
  uint8_t* smem_1 = reinterpret_cast<uint8_t*>(smem);
  tw::f16* p = reinterpret_cast<tw::f16*>(smem_1);
  tw::f16* p_1 = p + 32768;
  tw::f16* p_2 = mA + bidz * mA_stride2;
  tw::f16* p_3 = mB + bidz * mB_stride2;
  tw::f16* p_4 = mC + bidz * mC_stride2;
  tw::f16* p_5 = mD + bidz * mD_stride2;
  const int t = tw::multiply(decomposition_plan_sk_regions, decomposition_plan_sk_blocks_per_region);
  const int t_1 = decomposition_plan_sk_tiles > 0 ? t : 0;
  const int begin = tw::multiply(tw::subtract(tw::add(decomposition_plan_sk_tiles, bidx), t_1), decomposition_plan_iters_per_tile);
  const int end = tw::add(begin, decomposition_plan_iters_per_tile);
  int begin_1;
  int end_1;
  if (bidx < t_1) {
    const int t_2 = tw::floormod<int32_t>(bidx, decomposition_plan_sk_blocks_per_region);
    const int t_3 = tw::multiply(tw::floordiv<int32_t>(bidx, decomposition_plan_sk_blocks_per_region), decomposition_plan_sk_iters_per_region);
    const int t_4 = tw::add(t_3, tw::multiply(t_2, decomposition_plan_sk_iters_per_normal_block));
    const int begin_2 = tw::add(t_4, min(t_2, decomposition_plan_sk_big_blocks_per_region));
    const int t_5 = tw::add(t_2, 1);
    const int t_6 = tw::add(t_3, tw::multiply(t_5, decomposition_plan_sk_iters_per_normal_block));
    const int end_2 = tw::add(t_6, min(t_5, decomposition_plan_sk_big_blocks_per_region));
    begin_1 = begin_2;
    end_1 = end_2;
  } else {
    begin_1 = begin;
    end_1 = end;
  }
  int end_3 = end_1;
  while (end_3 > begin_1) {
    const int tile = tw::floordiv<int32_t>(tw::subtract(end_3, 1), decomposition_plan_iters_per_tile);
    const int start = tw::multiply(tile, decomposition_plan_iters_per_tile);
    const int t_7 = max(tw::subtract(begin_1, start), 0);
    const int t_8 = tw::subtract(end_3, start);
    const int t_9 = (mD_shape0 + 127) / 128;
    const int t_10 = (mD_shape1 + 127) / 128;
    const int tidx = threadIdx.x;
    alignas(16) float acc[64];
    #pragma unroll
    for (int e = 0; e < 64; ++e) acc[e] = 0.0f;
    int t_11;
    t_11 = tw_rematerialize(t_9);
    int t_12;
    t_12 = tw_rematerialize(t_10);
    const int t_13 = 8 * t_12;
    const int t_14 = tw::floordiv<int32_t>(tile, t_13);
    const int t_15 = tw::multiply(t_14, 8);
    const int t_16 = min(tw::subtract(t_11, t_15), 8);
    const int t_17 = tw::subtract(tile, tw::multiply(t_14, t_13));
    const int t_18 = tw::add(t_15, tw::floormod<int32_t>(t_17, t_16));
    const int t_19 = tw::floordiv<int32_t>(t_17, t_16);
    const int t_20 = mA_shape1 - (mA_shape1 + 63) / 64 * 64;
    const int t_21 = mB_shape1 - (mB_shape1 + 63) / 64 * 64;
    const int t_22 = 64 * mB_stride1;
    int t_23;
    t_23 = tw_rematerialize(tidx);
    const int t_24 = 32 * mA_stride0;
    const int t_25 = t_23 % 8;
    const int t_26 = t_23 / 8;
    const int t_27 = t_25 * 8;
    tw::f16* p_6 = p_2 + t_20 + t_18 * (128 * mA_stride0) + (t_27 + t_26 * mA_stride0);
    const int t_28 = t_27 + t_26 * 64;
    const int t_29 = tw::add(tw::multiply(128, t_18), t_26);
    alignas(4) bool r[4];
    alignas(4) bool r_1[4];
    const bool t_30 = t_29 < mA_shape0;
    r[0] = t_30;
    const int t_31 = tw::multiply(64, t_7);
    const bool t_32 = tw::add(t_20 + 8 * t_25, t_31) >= 0;
    r_1[0] = t_30 && t_32;
    const bool t_33 = tw::add(t_29, 32) < mA_shape0;
    r[1] = t_33;
    r_1[1] = t_33 && t_32;
    const bool t_34 = tw::add(t_29, 64) < mA_shape0;
    r[2] = t_34;
    r_1[2] = t_34 && t_32;
    const bool t_35 = tw::add(t_29, 96) < mA_shape0;
    r[3] = t_35;
    r_1[3] = t_35 && t_32;
    const int t_36 = 16 * mB_stride1;
    const int t_37 = t_23 % 16;
    const int t_38 = t_23 / 16;
    tw::f16* p_7 = p_3 + t_21 * mB_stride1 + t_19 * 128 + (t_37 * 8 + t_38 * mB_stride1);
    const int t_39 = t_26 / 2;
    const int t_40 = t_27 + t_26 % 2 * 512 + t_39 % 8 * 64 + t_39 / 8 * 1024;
    const int t_41 = t_21 + t_38;
    bool r_2[1];
    alignas(4) bool r_3[4];
    const bool t_42 = tw::add(tw::multiply(128, t_19), 8 * t_37) < mB_shape0;
    r_2[0] = t_42;
    r_3[0] = t_42 && tw::add(t_41, t_31) >= 0;
    r_3[1] = t_42 && tw::add(t_41, tw::add(16, t_31)) >= 0;
    r_3[2] = t_42 && tw::add(t_41, tw::add(32, t_31)) >= 0;
    r_3[3] = t_42 && tw::add(t_41, tw::add(48, t_31)) >= 0;
    alignas(16) tw::f16 tCrA[128];
    alignas(16) tw::f16 tCrB[64];
    const int t_43 = t_38 % 2;
    const int t_44 = t_38 / 2;
    const int t_45 = t_37 * 64 + t_43 * 8 + t_44 % 2 * 1024;
    const int t_46 = t_37 % 8 * 64 + t_37 / 8 * 1024 + t_43 * 32 + t_44 / 2 * 8;
    if (t_8 > t_7) {
      tw::f16* p_8 = p_6 + t_7 * 64;
      const bool t_47 = r_1[0];
      const bool t_48 = r_1[1];
      const bool t_49 = r_1[2];
      const bool t_50 = r_1[3];
      const int t_51 = 2 * t_24;
      const int t_52 = 3 * t_24;
      const int t_53 = t_28 ^ ((t_28 & 448) >> 3);
      tw::f16* p_9 = p + t_53;
      cp_async_cg_16_zfill(tw::shared_address(p_9), p_8, t_47 ? 16 : 0);
      cp_async_cg_16_zfill(tw::shared_address(p_9 + 2048), (p_8 + t_24), t_48 ? 16 : 0);
      cp_async_cg_16_zfill(tw::shared_address(p_9 + 4096), (p_8 + t_51), t_49 ? 16 : 0);
      cp_async_cg_16_zfill(tw::shared_address(p_9 + 6144), (p_8 + t_52), t_50 ? 16 : 0);
      tw::f16* p_10 = p_7 + t_7 * t_22;
      const bool t_54 = r_3[0];
      const bool t_55 = r_3[1];
      const bool t_56 = r_3[2];
      const bool t_57 = r_3[3];
      const int t_58 = 2 * t_36;
      const int t_59 = 3 * t_36;
      const int t_60 = t_40 ^ ((t_40 & 448) >> 3);
      tw::f16* p_11 = p_1 + t_60;
      cp_async_cg_16_zfill(tw::shared_address(p_11), p_10, t_54 ? 16 : 0);
      cp_async_cg_16_zfill(tw::shared_address(p_11 + 2048), (p_10 + t_36), t_55 ? 16 : 0);
      cp_async_cg_16_zfill(tw::shared_address(p_11 + 4096), (p_10 + t_58), t_56 ? 16 : 0);
      cp_async_cg_16_zfill(tw::shared_address(p_11 + 6144), (p_10 + t_59), t_57 ? 16 : 0);
      asm volatile("cp.async.commit_group;" : : : "memory");
      const int t_61 = tw::add(t_7, 1);
      if (t_61 >= t_8) {
        #pragma unroll
        for (int e = 0; e < 4; ++e) r[e] = false;
        #pragma unroll
        for (int e = 0; e < 4; ++e) r_2[0] = false;
      }
      const int t_62 = tw::subtract(t_8, 1);
      const int t_63 = min(t_61, t_62);
      tw::f16* p_12 = p_6 + t_63 * 64;
      const bool t_64 = r[0];
      const bool t_65 = r[1];
      const bool t_66 = r[2];
      const bool t_67 = r[3];
      cp_async_cg_16_zfill(tw::shared_address(p_9 + 8192), p_12, t_64 ? 16 : 0);
      cp_async_cg_16_zfill(tw::shared_address(p_9 + 10240), (p_12 + t_24), t_65 ? 16 : 0);
      cp_async_cg_16_zfill(tw::shared_address(p_9 + 12288), (p_12 + t_51), t_66 ? 16 : 0);
      cp_async_cg_16_zfill(tw::shared_address(p_9 + 14336), (p_12 + t_52), t_67 ? 16 : 0);
      tw::f16* p_13 = p_7 + t_63 * t_22;
      const bool t_68 = r_2[0];
      cp_async_cg_16_zfill(tw::shared_address(p_11 + 8192), p_13, t_68 ? 16 : 0);
      cp_async_cg_16_zfill(tw::shared_address(p_11 + 10240), (p_13 + t_36), t_68 ? 16 : 0);
      cp_async_cg_16_zfill(tw::shared_address(p_11 + 12288), (p_13 + t_58), t_68 ? 16 : 0);
      cp_async_cg_16_zfill(tw::shared_address(p_11 + 14336), (p_13 + t_59), t_68 ? 16 : 0);
      asm volatile("cp.async.commit_group;" : : : "memory");
      const int t_69 = tw::add(t_7, 2);
      if (t_69 >= t_8) {
        #pragma unroll
        for (int e = 0; e < 4; ++e) r[e] = false;
        #pragma unroll
        for (int e = 0; e < 4; ++e) r_2[0] = false;
      }
      const int t_70 = min(t_69, t_62);
      tw::f16* p_14 = p_6 + t_70 * 64;
      const bool t_71 = r[0];
      const bool t_72 = r[1];
      const bool t_73 = r[2];
      const bool t_74 = r[3];
      cp_async_cg_16_zfill(tw::shared_address(p_9 + 16384), p_14, t_71 ? 16 : 0);
      cp_async_cg_16_zfill(tw::shared_address(p_9 + 18432), (p_14 + t_24), t_72 ? 16 : 0);
      cp_async_cg_16_zfill(tw::shared_address(p_9 + 20480), (p_14 + t_51), t_73 ? 16 : 0);
      cp_async_cg_16_zfill(tw::shared_address(p_9 + 22528), (p_14 + t_52), t_74 ? 16 : 0);
      tw::f16* p_15 = p_7 + t_70 * t_22;
      const bool t_75 = r_2[0];
      cp_async_cg_16_zfill(tw::shared_address(p_11 + 16384), p_15, t_75 ? 16 : 0);
      cp_async_cg_16_zfill(tw::shared_address(p_11 + 18432), (p_15 + t_36), t_75 ? 16 : 0);
      cp_async_cg_16_zfill(tw::shared_address(p_11 + 20480), (p_15 + t_58), t_75 ? 16 : 0);
      cp_async_cg_16_zfill(tw::shared_address(p_11 + 22528), (p_15 + t_59), t_75 ? 16 : 0);
      asm volatile("cp.async.commit_group;" : : : "memory");
      if (tw::add(t_7, 3) >= t_8) {
        #pragma unroll
        for (int e = 0; e < 4; ++e) r[e] = false;
        #pragma unroll
        for (int e = 0; e < 4; ++e) r_2[0] = false;
      }
      asm volatile("cp.async.wait_group 2;" : : : "memory");
      __syncthreads();
      const int t_76 = t_45 ^ ((t_45 & 448) >> 3);
      tw::f16* p_16 = p + t_76;
      ldmatrix_x4(tw::shared_address(p_16), tw::reg32(tCrA[0]), tw::reg32(tCrA[2]), tw::reg32(tCrA[4]), tw::reg32(tCrA[6]));
      ldmatrix_x4(tw::shared_address(p_16 + 2048), tw::reg32(tCrA[32]), tw::reg32(tCrA[34]), tw::reg32(tCrA[36]), tw::reg32(tCrA[38]));
      ldmatrix_x4(tw::shared_address(p_16 + 4096), tw::reg32(tCrA[64]), tw::reg32(tCrA[66]), tw::reg32(tCrA[68]), tw::reg32(tCrA[70]));
      ldmatrix_x4(tw::shared_address(p_16 + 6144), tw::reg32(tCrA[96]), tw::reg32(tCrA[98]), tw::reg32(tCrA[100]), tw::reg32(tCrA[102]));
      const int t_77 = t_46 ^ ((t_46 & 448) >> 3);
      tw::f16* p_17 = p_1 + t_77;
      ldmatrix_x4_trans(tw::shared_address(p_17), tw::reg32(tCrB[0]), tw::reg32(tCrB[2]), tw::reg32(tCrB[4]), tw::reg32(tCrB[6]));
      ldmatrix_x4_trans(tw::shared_address(p_17 + 512), tw::reg32(tCrB[8]), tw::reg32(tCrB[10]), tw::reg32(tCrB[12]), tw::reg32(tCrB[14]));
      int write = 3;
      int read = 0;
      #pragma unroll 1
      for (int k_tile = t_7; k_tile < t_8; ++k_tile) {
        const int ahead = min(tw::add(k_tile, 3), t_62);
        const int t_78 = read * 8192;
        tw::f16* p_18 = p + t_78;
        tw::f16* p_19 = p_18 + (t_76 ^ 16);
        ldmatrix_x4(tw::shared_address(p_19), tw::reg32(tCrA[8]), tw::reg32(tCrA[10]), tw::reg32(tCrA[12]), tw::reg32(tCrA[14]));
        ldmatrix_x4(tw::shared_address(p_19 + 2048), tw::reg32(tCrA[40]), tw::reg32(tCrA[42]), tw::reg32(tCrA[44]), tw::reg32(tCrA[46]));
        ldmatrix_x4(tw::shared_address(p_19 + 4096), tw::reg32(tCrA[72]), tw::reg32(tCrA[74]), tw::reg32(tCrA[76]), tw::reg32(tCrA[78]));
        ldmatrix_x4(tw::shared_address(p_19 + 6144), tw::reg32(tCrA[104]), tw::reg32(tCrA[106]), tw::reg32(tCrA[108]), tw::reg32(tCrA[110]));
        tw::f16* p_20 = p_1 + t_78 + t_77;
        ldmatrix_x4_trans(tw::shared_address(p_20 + 2048), tw::reg32(tCrB[16]), tw::reg32(tCrB[18]), tw::reg32(tCrB[20]), tw::reg32(tCrB[22]));
        ldmatrix_x4_trans(tw::shared_address(p_20 + 2560), tw::reg32(tCrB[24]), tw::reg32(tCrB[26]), tw::reg32(tCrB[28]), tw::reg32(tCrB[30]));
        tw::f16* p_21 = p_6 + ahead * 64;
        const int t_79 = write * 8192;
        const bool t_80 = r[0];
        const bool t_81 = r[1];
        const bool t_82 = r[2];
        const bool t_83 = r[3];
        tw::f16* p_22 = p + t_79 + t_53;
        cp_async_cg_16_zfill(tw::shared_address(p_22), p_21, t_80 ? 16 : 0);
        cp_async_cg_16_zfill(tw::shared_address(p_22 + 2048), (p_21 + t_24), t_81 ? 16 : 0);
        cp_async_cg_16_zfill(tw::shared_address(p_22 + 4096), (p_21 + t_51), t_82 ? 16 : 0);
        cp_async_cg_16_zfill(tw::shared_address(p_22 + 6144), (p_21 + t_52), t_83 ? 16 : 0);
        tw::f16* p_23 = p_7 + ahead * t_22;
        const bool t_84 = r_2[0];
        tw::f16* p_24 = p_1 + t_79 + t_60;
        cp_async_cg_16_zfill(tw::shared_address(p_24), p_23, t_84 ? 16 : 0);
        cp_async_cg_16_zfill(tw::shared_address(p_24 + 2048), (p_23 + t_36), t_84 ? 16 : 0);
        cp_async_cg_16_zfill(tw::shared_address(p_24 + 4096), (p_23 + t_58), t_84 ? 16 : 0);
        cp_async_cg_16_zfill(tw::shared_address(p_24 + 6144), (p_23 + t_59), t_84 ? 16 : 0);
        asm volatile("cp.async.commit_group;" : : : "memory");
        #pragma unroll
        for (int m = 0; m < 4; ++m) {
          #pragma unroll
          for (int n = 0; n < 4; ++n) {
            int const s = m & 1 ? 3 - n : n;
            mma_16x8x16_f32f16f16f32_tn(acc[4 * m + 16 * s], acc[4 * m + 16 * s + 1], acc[4 * m + 16 * s + 2], acc[4 * m + 16 * s + 3], tw::reg32(tCrA[32 * m]), tw::reg32(tCrA[32 * m + 2]), tw::reg32(tCrA[32 * m + 4]), tw::reg32(tCrA[32 * m + 6]), tw::reg32(tCrB[4 * s]), tw::reg32(tCrB[4 * s + 2]));
          }
        }
        tw::f16* p_25 = p_18 + (t_76 ^ 32);
        ldmatrix_x4(tw::shared_address(p_25), tw::reg32(tCrA[16]), tw::reg32(tCrA[18]), tw::reg32(tCrA[20]), tw::reg32(tCrA[22]));
        ldmatrix_x4(tw::shared_address(p_25 + 2048), tw::reg32(tCrA[48]), tw::reg32(tCrA[50]), tw::reg32(tCrA[52]), tw::reg32(tCrA[54]));
        ldmatrix_x4(tw::shared_address(p_25 + 4096), tw::reg32(tCrA[80]), tw::reg32(tCrA[82]), tw::reg32(tCrA[84]), tw::reg32(tCrA[86]));
        ldmatrix_x4(tw::shared_address(p_25 + 6144), tw::reg32(tCrA[112]), tw::reg32(tCrA[114]), tw::reg32(tCrA[116]), tw::reg32(tCrA[118]));
        ldmatrix_x4_trans(tw::shared_address(p_20 + 4096), tw::reg32(tCrB[32]), tw::reg32(tCrB[34]), tw::reg32(tCrB[36]), tw::reg32(tCrB[38]));
        ldmatrix_x4_trans(tw::shared_address(p_20 + 4608), tw::reg32(tCrB[40]), tw::reg32(tCrB[42]), tw::reg32(tCrB[44]), tw::reg32(tCrB[46]));
        #pragma unroll
        for (int m_1 = 0; m_1 < 4; ++m_1) {
          #pragma unroll
          for (int n_1 = 0; n_1 < 4; ++n_1) {
            int const s_1 = m_1 & 1 ? 3 - n_1 : n_1;
            mma_16x8x16_f32f16f16f32_tn(acc[4 * m_1 + 16 * s_1], acc[4 * m_1 + 16 * s_1 + 1], acc[4 * m_1 + 16 * s_1 + 2], acc[4 * m_1 + 16 * s_1 + 3], tw::reg32(tCrA[32 * m_1 + 8]), tw::reg32(tCrA[32 * m_1 + 8 + 2]), tw::reg32(tCrA[32 * m_1 + 8 + 4]), tw::reg32(tCrA[32 * m_1 + 8 + 6]), tw::reg32(tCrB[4 * s_1 + 16]), tw::reg32(tCrB[4 * s_1 + 16 + 2]));
          }
        }
        tw::f16* p_26 = p_18 + (t_76 ^ 48);
        ldmatrix_x4(tw::shared_address(p_26), tw::reg32(tCrA[24]), tw::reg32(tCrA[26]), tw::reg32(tCrA[28]), tw::reg32(tCrA[30]));
        ldmatrix_x4(tw::shared_address(p_26 + 2048), tw::reg32(tCrA[56]), tw::reg32(tCrA[58]), tw::reg32(tCrA[60]), tw::reg32(tCrA[62]));
        ldmatrix_x4(tw::shared_address(p_26 + 4096), tw::reg32(tCrA[88]), tw::reg32(tCrA[90]), tw::reg32(tCrA[92]), tw::reg32(tCrA[94]));
        ldmatrix_x4(tw::shared_address(p_26 + 6144), tw::reg32(tCrA[120]), tw::reg32(tCrA[122]), tw::reg32(tCrA[124]), tw::reg32(tCrA[126]));
        ldmatrix_x4_trans(tw::shared_address(p_20 + 6144), tw::reg32(tCrB[48]), tw::reg32(tCrB[50]), tw::reg32(tCrB[52]), tw::reg32(tCrB[54]));
        ldmatrix_x4_trans(tw::shared_address(p_20 + 6656), tw::reg32(tCrB[56]), tw::reg32(tCrB[58]), tw::reg32(tCrB[60]), tw::reg32(tCrB[62]));
        #pragma unroll
        for (int m_2 = 0; m_2 < 4; ++m_2) {
          #pragma unroll
          for (int n_2 = 0; n_2 < 4; ++n_2) {
            int const s_2 = m_2 & 1 ? 3 - n_2 : n_2;
            mma_16x8x16_f32f16f16f32_tn(acc[4 * m_2 + 16 * s_2], acc[4 * m_2 + 16 * s_2 + 1], acc[4 * m_2 + 16 * s_2 + 2], acc[4 * m_2 + 16 * s_2 + 3], tw::reg32(tCrA[32 * m_2 + 16]), tw::reg32(tCrA[32 * m_2 + 16 + 2]), tw::reg32(tCrA[32 * m_2 + 16 + 4]), tw::reg32(tCrA[32 * m_2 + 16 + 6]), tw::reg32(tCrB[4 * s_2 + 32]), tw::reg32(tCrB[4 * s_2 + 32 + 2]));
          }
        }
        const int t_85 = tw::add(write, 1);
        const int write_1 = t_85 == 4 ? 0 : t_85;
        const int t_86 = tw::add(read, 1);
        const int read_1 = t_86 == 4 ? 0 : t_86;
        asm volatile("cp.async.wait_group 2;" : : : "memory");
        __syncthreads();
        const int t_87 = read_1 * 8192;
        tw::f16* p_27 = p + t_87 + t_76;
        ldmatrix_x4(tw::shared_address(p_27), tw::reg32(tCrA[0]), tw::reg32(tCrA[2]), tw::reg32(tCrA[4]), tw::reg32(tCrA[6]));
        ldmatrix_x4(tw::shared_address(p_27 + 2048), tw::reg32(tCrA[32]), tw::reg32(tCrA[34]), tw::reg32(tCrA[36]), tw::reg32(tCrA[38]));
        ldmatrix_x4(tw::shared_address(p_27 + 4096), tw::reg32(tCrA[64]), tw::reg32(tCrA[66]), tw::reg32(tCrA[68]), tw::reg32(tCrA[70]));
        ldmatrix_x4(tw::shared_address(p_27 + 6144), tw::reg32(tCrA[96]), tw::reg32(tCrA[98]), tw::reg32(tCrA[100]), tw::reg32(tCrA[102]));
        tw::f16* p_28 = p_1 + t_87 + t_77;
        ldmatrix_x4_trans(tw::shared_address(p_28), tw::reg32(tCrB[0]), tw::reg32(tCrB[2]), tw::reg32(tCrB[4]), tw::reg32(tCrB[6]));
        ldmatrix_x4_trans(tw::shared_address(p_28 + 512), tw::reg32(tCrB[8]), tw::reg32(tCrB[10]), tw::reg32(tCrB[12]), tw::reg32(tCrB[14]));
        #pragma unroll
        for (int m_3 = 0; m_3 < 4; ++m_3) {
          #pragma unroll
          for (int n_3 = 0; n_3 < 4; ++n_3) {
            int const s_3 = m_3 & 1 ? 3 - n_3 : n_3;
            mma_16x8x16_f32f16f16f32_tn(acc[4 * m_3 + 16 * s_3], acc[4 * m_3 + 16 * s_3 + 1], acc[4 * m_3 + 16 * s_3 + 2], acc[4 * m_3 + 16 * s_3 + 3], tw::reg32(tCrA[32 * m_3 + 24]), tw::reg32(tCrA[32 * m_3 + 24 + 2]), tw::reg32(tCrA[32 * m_3 + 24 + 4]), tw::reg32(tCrA[32 * m_3 + 24 + 6]), tw::reg32(tCrB[4 * s_3 + 48]), tw::reg32(tCrB[4 * s_3 + 48 + 2]));
          }
        }
        write = write_1;
        read = read_1;
      }
      asm volatile("cp.async.wait_group 0;" : : : "memory");
    }
    __syncthreads();
    int tidx_1;
    tidx_1 = tw_rematerialize(tidx);
    int t_88;
    t_88 = tw_rematerialize(tile);
    int t_89;
    t_89 = tw_rematerialize(t_9);
    int t_90;
    t_90 = tw_rematerialize(t_10);
    const int t_91 = 8 * t_90;
    const int t_92 = 128 * mC_stride0;
    const int t_93 = 128 * mD_stride0;
    if (t_8 < decomposition_plan_iters_per_tile) {
      float* p_29 = decomposition_workspace + (bidx * 16384 + tidx_1 * 4);
      *reinterpret_cast<uint4*>(p_29) = *reinterpret_cast<uint4 const*>(&acc[0]);
      *reinterpret_cast<uint4*>((p_29 + 1024)) = *reinterpret_cast<uint4 const*>(&acc[4]);
      *reinterpret_cast<uint4*>((p_29 + 2048)) = *reinterpret_cast<uint4 const*>(&acc[8]);
      *reinterpret_cast<uint4*>((p_29 + 3072)) = *reinterpret_cast<uint4 const*>(&acc[12]);
      *reinterpret_cast<uint4*>((p_29 + 4096)) = *reinterpret_cast<uint4 const*>(&acc[16]);
      *reinterpret_cast<uint4*>((p_29 + 5120)) = *reinterpret_cast<uint4 const*>(&acc[20]);
      *reinterpret_cast<uint4*>((p_29 + 6144)) = *reinterpret_cast<uint4 const*>(&acc[24]);
      *reinterpret_cast<uint4*>((p_29 + 7168)) = *reinterpret_cast<uint4 const*>(&acc[28]);
      *reinterpret_cast<uint4*>((p_29 + 8192)) = *reinterpret_cast<uint4 const*>(&acc[32]);
      *reinterpret_cast<uint4*>((p_29 + 9216)) = *reinterpret_cast<uint4 const*>(&acc[36]);
      *reinterpret_cast<uint4*>((p_29 + 10240)) = *reinterpret_cast<uint4 const*>(&acc[40]);
      *reinterpret_cast<uint4*>((p_29 + 11264)) = *reinterpret_cast<uint4 const*>(&acc[44]);
      *reinterpret_cast<uint4*>((p_29 + 12288)) = *reinterpret_cast<uint4 const*>(&acc[48]);
      *reinterpret_cast<uint4*>((p_29 + 13312)) = *reinterpret_cast<uint4 const*>(&acc[52]);
      *reinterpret_cast<uint4*>((p_29 + 14336)) = *reinterpret_cast<uint4 const*>(&acc[56]);
      *reinterpret_cast<uint4*>((p_29 + 15360)) = *reinterpret_cast<uint4 const*>(&acc[60]);
      __syncthreads();
      if (tidx_1 == 0) {
        tw_st_release_gpu_u32((void*)((decomposition_flags + bidx)), tw_bits<unsigned>(1));
      }
    } else {
      const int t_94 = tw::floordiv<int32_t>(t_88, t_91);
      const int t_95 = tw::multiply(t_94, 8);
      const int t_96 = min(tw::subtract(t_89, t_95), 8);
      const int t_97 = tw::subtract(t_88, tw::multiply(t_94, t_91));
      const int t_98 = tw::add(t_95, tw::floormod<int32_t>(t_97, t_96));
      const int t_99 = tw::floordiv<int32_t>(t_97, t_96);
      const int t_100 = t_99 * 128;
      if (t_7 > 0) {
        const int t_101 = max(decomposition_plan_sk_iters_per_region, 1);
        const int t_102 = tw::floormod<int32_t>(start, t_101);
        const int t_103 = tw::floordiv<int32_t>(t_102, tw::add(decomposition_plan_sk_iters_per_normal_block, 1));
        const int t_104 = tw::floordiv<int32_t>(max(tw::subtract(t_102, decomposition_plan_sk_big_blocks_per_region), 0), decomposition_plan_sk_iters_per_normal_block);
        const int t_105 = tw::multiply(tw::floordiv<int32_t>(start, t_101), decomposition_plan_sk_blocks_per_region);
        const int first = tw::add(t_105, max(t_103, t_104));
        const int begin_3 = tw::add(first, tidx_1);
        #pragma unroll 1
        for (int block = begin_3; block < bidx; block += 256) {
          int32_t* p_30 = decomposition_flags + block;
          while (true) {
            int t_106;
            t_106 = tw_bits<int32_t>(tw_ld_acquire_gpu_u32((const void*)(p_30)));
            if (!(t_106 == 0)) break;
          }
          tw_st_relaxed_gpu_u32((void*)(p_30), tw_bits<unsigned>(0));
        }
        __syncthreads();
        #pragma unroll 1
        for (int block_1 = first; block_1 < bidx; ++block_1) {
          float* p_31 = decomposition_workspace + (block_1 * 16384 + tidx_1 * 4);
          alignas(16) float fetched[32];
          *reinterpret_cast<uint4*>(&fetched[0]) = *reinterpret_cast<uint4 const*>(p_31);
          *reinterpret_cast<uint4*>(&fetched[4]) = *reinterpret_cast<uint4 const*>((p_31 + 1024));
          *reinterpret_cast<uint4*>(&fetched[8]) = *reinterpret_cast<uint4 const*>((p_31 + 2048));
          *reinterpret_cast<uint4*>(&fetched[12]) = *reinterpret_cast<uint4 const*>((p_31 + 3072));
          *reinterpret_cast<uint4*>(&fetched[16]) = *reinterpret_cast<uint4 const*>((p_31 + 4096));
          *reinterpret_cast<uint4*>(&fetched[20]) = *reinterpret_cast<uint4 const*>((p_31 + 5120));
          *reinterpret_cast<uint4*>(&fetched[24]) = *reinterpret_cast<uint4 const*>((p_31 + 6144));
          *reinterpret_cast<uint4*>(&fetched[28]) = *reinterpret_cast<uint4 const*>((p_31 + 7168));
          #pragma unroll
          for (int e = 0; e < 32; ++e) acc[e] = acc[e] + fetched[e];
          alignas(16) float fetched_1[32];
          *reinterpret_cast<uint4*>(&fetched_1[0]) = *reinterpret_cast<uint4 const*>((p_31 + 8192));
          *reinterpret_cast<uint4*>(&fetched_1[4]) = *reinterpret_cast<uint4 const*>((p_31 + 9216));
          *reinterpret_cast<uint4*>(&fetched_1[8]) = *reinterpret_cast<uint4 const*>((p_31 + 10240));
          *reinterpret_cast<uint4*>(&fetched_1[12]) = *reinterpret_cast<uint4 const*>((p_31 + 11264));
          *reinterpret_cast<uint4*>(&fetched_1[16]) = *reinterpret_cast<uint4 const*>((p_31 + 12288));
          *reinterpret_cast<uint4*>(&fetched_1[20]) = *reinterpret_cast<uint4 const*>((p_31 + 13312));
          *reinterpret_cast<uint4*>(&fetched_1[24]) = *reinterpret_cast<uint4 const*>((p_31 + 14336));
          *reinterpret_cast<uint4*>(&fetched_1[28]) = *reinterpret_cast<uint4 const*>((p_31 + 15360));
          #pragma unroll
          for (int e = 0; e < 32; ++e) acc[32 + e] = acc[32 + e] + fetched_1[e];
        }
      }
      const int t_107 = tidx_1 % 16;
      const int t_108 = tidx_1 / 16;
      const int t_109 = t_107 % 8 * 8 + t_107 / 8 * 8192 + t_108 * 64;
      const int t_110 = 16 * mD_stride0;
      const int t_111 = t_107 * 8;
      tw::f16* p_32 = p_5 + (t_98 * t_93 + t_100) + (t_111 + t_108 * mD_stride0);
      const int t_112 = 16 * mC_stride0;
      tw::f16* p_33 = p_4 + (t_98 * t_92 + t_100) + (t_111 + t_108 * mC_stride0);
      const int t_113 = tw::add(tw::multiply(128, t_98), t_108);
      alignas(8) bool inside[8];
      const bool t_114 = tw::add(tw::multiply(128, t_99), 8 * t_107) < mD_shape1;
      inside[0] = t_113 < mD_shape0 && t_114;
      inside[1] = tw::add(t_113, 16) < mD_shape0 && t_114;
      inside[2] = tw::add(t_113, 32) < mD_shape0 && t_114;
      inside[3] = tw::add(t_113, 48) < mD_shape0 && t_114;
      inside[4] = tw::add(t_113, 64) < mD_shape0 && t_114;
      inside[5] = tw::add(t_113, 80) < mD_shape0 && t_114;
      inside[6] = tw::add(t_113, 96) < mD_shape0 && t_114;
      inside[7] = tw::add(t_113, 112) < mD_shape0 && t_114;
      const int t_115 = tidx_1 % 32;
      const int t_116 = t_115 % 4 * 2 + t_115 / 4 * 64 + (tidx_1 / 32 % 2 * 1024 + tidx_1 / 64 * 8);
      if (function_alpha != 1.0f) {
        #pragma unroll
        for (int e = 0; e < 64; ++e) acc[e] = acc[e] * function_alpha;
      }
      if (function_beta != 0.0f) {
        alignas(16) tw::f16 vectors[64];
        #pragma unroll
        for (int e = 0; e < 64; e += 2) tw::two(vectors[e]) = tw::pair(tw::f16{0x0000}, tw::f16{0x0000});
        const bool t_117 = inside[0];
        const bool t_118 = inside[1];
        const bool t_119 = inside[2];
        const bool t_120 = inside[3];
        const bool t_121 = inside[4];
        const bool t_122 = inside[5];
        const bool t_123 = inside[6];
        const bool t_124 = inside[7];
        tw::load_if<16>(t_117, &vectors[0], p_33);
        tw::load_if<16>(t_118, &vectors[8], (p_33 + t_112));
        tw::load_if<16>(t_119, &vectors[16], (p_33 + 2 * t_112));
        tw::load_if<16>(t_120, &vectors[24], (p_33 + 3 * t_112));
        tw::load_if<16>(t_121, &vectors[32], (p_33 + 4 * t_112));
        tw::load_if<16>(t_122, &vectors[40], (p_33 + 5 * t_112));
        tw::load_if<16>(t_123, &vectors[48], (p_33 + 6 * t_112));
        tw::load_if<16>(t_124, &vectors[56], (p_33 + 7 * t_112));
        tw::f16* p_34 = p + (t_109 ^ ((t_109 & 448) >> 3));
        *reinterpret_cast<uint4*>(p_34) = *reinterpret_cast<uint4 const*>(&vectors[0]);
        *reinterpret_cast<uint4*>((p_34 + 1024)) = *reinterpret_cast<uint4 const*>(&vectors[8]);
        *reinterpret_cast<uint4*>((p_34 + 2048)) = *reinterpret_cast<uint4 const*>(&vectors[16]);
        *reinterpret_cast<uint4*>((p_34 + 3072)) = *reinterpret_cast<uint4 const*>(&vectors[24]);
        *reinterpret_cast<uint4*>((p_34 + 4096)) = *reinterpret_cast<uint4 const*>(&vectors[32]);
        *reinterpret_cast<uint4*>((p_34 + 5120)) = *reinterpret_cast<uint4 const*>(&vectors[40]);
        *reinterpret_cast<uint4*>((p_34 + 6144)) = *reinterpret_cast<uint4 const*>(&vectors[48]);
        *reinterpret_cast<uint4*>((p_34 + 7168)) = *reinterpret_cast<uint4 const*>(&vectors[56]);
        __syncthreads();
        alignas(16) tw::f16 source[64];
        const int t_125 = t_116 ^ ((t_116 & 448) >> 3);
        tw::f16* p_35 = p + t_125;
        tw::f16* p_36 = p + (t_125 ^ 32);
        *reinterpret_cast<uint32_t*>(&source[0]) = *reinterpret_cast<uint32_t const*>(p_35);
        *reinterpret_cast<uint32_t*>(&source[16]) = *reinterpret_cast<uint32_t const*>(p_36);
        *reinterpret_cast<uint32_t*>(&source[2]) = *reinterpret_cast<uint32_t const*>((p_35 + 512));
        *reinterpret_cast<uint32_t*>(&source[18]) = *reinterpret_cast<uint32_t const*>((p_36 + 512));
        *reinterpret_cast<uint32_t*>(&source[4]) = *reinterpret_cast<uint32_t const*>((p_35 + 2048));
        *reinterpret_cast<uint32_t*>(&source[20]) = *reinterpret_cast<uint32_t const*>((p_36 + 2048));
        *reinterpret_cast<uint32_t*>(&source[6]) = *reinterpret_cast<uint32_t const*>((p_35 + 2560));
        *reinterpret_cast<uint32_t*>(&source[22]) = *reinterpret_cast<uint32_t const*>((p_36 + 2560));
        *reinterpret_cast<uint32_t*>(&source[8]) = *reinterpret_cast<uint32_t const*>((p_35 + 4096));
        *reinterpret_cast<uint32_t*>(&source[24]) = *reinterpret_cast<uint32_t const*>((p_36 + 4096));
        *reinterpret_cast<uint32_t*>(&source[10]) = *reinterpret_cast<uint32_t const*>((p_35 + 4608));
        *reinterpret_cast<uint32_t*>(&source[26]) = *reinterpret_cast<uint32_t const*>((p_36 + 4608));
        *reinterpret_cast<uint32_t*>(&source[12]) = *reinterpret_cast<uint32_t const*>((p_35 + 6144));
        *reinterpret_cast<uint32_t*>(&source[28]) = *reinterpret_cast<uint32_t const*>((p_36 + 6144));
        *reinterpret_cast<uint32_t*>(&source[14]) = *reinterpret_cast<uint32_t const*>((p_35 + 6656));
        *reinterpret_cast<uint32_t*>(&source[30]) = *reinterpret_cast<uint32_t const*>((p_36 + 6656));
        *reinterpret_cast<uint32_t*>(&source[32]) = *reinterpret_cast<uint32_t const*>((p_35 + 8192));
        *reinterpret_cast<uint32_t*>(&source[48]) = *reinterpret_cast<uint32_t const*>((p_36 + 8192));
        *reinterpret_cast<uint32_t*>(&source[34]) = *reinterpret_cast<uint32_t const*>((p_35 + 8704));
        *reinterpret_cast<uint32_t*>(&source[50]) = *reinterpret_cast<uint32_t const*>((p_36 + 8704));
        *reinterpret_cast<uint32_t*>(&source[36]) = *reinterpret_cast<uint32_t const*>((p_35 + 10240));
        *reinterpret_cast<uint32_t*>(&source[52]) = *reinterpret_cast<uint32_t const*>((p_36 + 10240));
        *reinterpret_cast<uint32_t*>(&source[38]) = *reinterpret_cast<uint32_t const*>((p_35 + 10752));
        *reinterpret_cast<uint32_t*>(&source[54]) = *reinterpret_cast<uint32_t const*>((p_36 + 10752));
        *reinterpret_cast<uint32_t*>(&source[40]) = *reinterpret_cast<uint32_t const*>((p_35 + 12288));
        *reinterpret_cast<uint32_t*>(&source[56]) = *reinterpret_cast<uint32_t const*>((p_36 + 12288));
        *reinterpret_cast<uint32_t*>(&source[42]) = *reinterpret_cast<uint32_t const*>((p_35 + 12800));
        *reinterpret_cast<uint32_t*>(&source[58]) = *reinterpret_cast<uint32_t const*>((p_36 + 12800));
        *reinterpret_cast<uint32_t*>(&source[44]) = *reinterpret_cast<uint32_t const*>((p_35 + 14336));
        *reinterpret_cast<uint32_t*>(&source[60]) = *reinterpret_cast<uint32_t const*>((p_36 + 14336));
        *reinterpret_cast<uint32_t*>(&source[46]) = *reinterpret_cast<uint32_t const*>((p_35 + 14848));
        *reinterpret_cast<uint32_t*>(&source[62]) = *reinterpret_cast<uint32_t const*>((p_36 + 14848));
        #pragma unroll
        for (int e = 0; e < 64; ++e) acc[e] = acc[e] + float(source[e]) * function_beta;
      }
      alignas(16) tw::f16 r_4[64];
      tw::vec<float, 64> v;
      #pragma unroll
      for (int e = 0; e < 64; ++e) v[e] = acc[e];
      tw::vec<tw::f16, 64> v_1 = tw::narrow<tw::f16>(v);
      #pragma unroll
      for (int e = 0; e < 64; e += 2) tw::two(r_4[e]) = tw::two(v_1[e]);
      const int t_126 = t_116 ^ ((t_116 & 448) >> 3);
      tw::f16* p_37 = p + t_126;
      tw::f16* p_38 = p + (t_126 ^ 32);
      *reinterpret_cast<uint32_t*>(p_37) = *reinterpret_cast<uint32_t const*>(&r_4[0]);
      *reinterpret_cast<uint32_t*>(p_38) = *reinterpret_cast<uint32_t const*>(&r_4[16]);
      *reinterpret_cast<uint32_t*>((p_37 + 512)) = *reinterpret_cast<uint32_t const*>(&r_4[2]);
      *reinterpret_cast<uint32_t*>((p_38 + 512)) = *reinterpret_cast<uint32_t const*>(&r_4[18]);
      *reinterpret_cast<uint32_t*>((p_37 + 2048)) = *reinterpret_cast<uint32_t const*>(&r_4[4]);
      *reinterpret_cast<uint32_t*>((p_38 + 2048)) = *reinterpret_cast<uint32_t const*>(&r_4[20]);
      *reinterpret_cast<uint32_t*>((p_37 + 2560)) = *reinterpret_cast<uint32_t const*>(&r_4[6]);
      *reinterpret_cast<uint32_t*>((p_38 + 2560)) = *reinterpret_cast<uint32_t const*>(&r_4[22]);
      *reinterpret_cast<uint32_t*>((p_37 + 4096)) = *reinterpret_cast<uint32_t const*>(&r_4[8]);
      *reinterpret_cast<uint32_t*>((p_38 + 4096)) = *reinterpret_cast<uint32_t const*>(&r_4[24]);
      *reinterpret_cast<uint32_t*>((p_37 + 4608)) = *reinterpret_cast<uint32_t const*>(&r_4[10]);
      *reinterpret_cast<uint32_t*>((p_38 + 4608)) = *reinterpret_cast<uint32_t const*>(&r_4[26]);
      *reinterpret_cast<uint32_t*>((p_37 + 6144)) = *reinterpret_cast<uint32_t const*>(&r_4[12]);
      *reinterpret_cast<uint32_t*>((p_38 + 6144)) = *reinterpret_cast<uint32_t const*>(&r_4[28]);
      *reinterpret_cast<uint32_t*>((p_37 + 6656)) = *reinterpret_cast<uint32_t const*>(&r_4[14]);
      *reinterpret_cast<uint32_t*>((p_38 + 6656)) = *reinterpret_cast<uint32_t const*>(&r_4[30]);
      *reinterpret_cast<uint32_t*>((p_37 + 8192)) = *reinterpret_cast<uint32_t const*>(&r_4[32]);
      *reinterpret_cast<uint32_t*>((p_38 + 8192)) = *reinterpret_cast<uint32_t const*>(&r_4[48]);
      *reinterpret_cast<uint32_t*>((p_37 + 8704)) = *reinterpret_cast<uint32_t const*>(&r_4[34]);
      *reinterpret_cast<uint32_t*>((p_38 + 8704)) = *reinterpret_cast<uint32_t const*>(&r_4[50]);
      *reinterpret_cast<uint32_t*>((p_37 + 10240)) = *reinterpret_cast<uint32_t const*>(&r_4[36]);
      *reinterpret_cast<uint32_t*>((p_38 + 10240)) = *reinterpret_cast<uint32_t const*>(&r_4[52]);
      *reinterpret_cast<uint32_t*>((p_37 + 10752)) = *reinterpret_cast<uint32_t const*>(&r_4[38]);
      *reinterpret_cast<uint32_t*>((p_38 + 10752)) = *reinterpret_cast<uint32_t const*>(&r_4[54]);
      *reinterpret_cast<uint32_t*>((p_37 + 12288)) = *reinterpret_cast<uint32_t const*>(&r_4[40]);
      *reinterpret_cast<uint32_t*>((p_38 + 12288)) = *reinterpret_cast<uint32_t const*>(&r_4[56]);
      *reinterpret_cast<uint32_t*>((p_37 + 12800)) = *reinterpret_cast<uint32_t const*>(&r_4[42]);
      *reinterpret_cast<uint32_t*>((p_38 + 12800)) = *reinterpret_cast<uint32_t const*>(&r_4[58]);
      *reinterpret_cast<uint32_t*>((p_37 + 14336)) = *reinterpret_cast<uint32_t const*>(&r_4[44]);
      *reinterpret_cast<uint32_t*>((p_38 + 14336)) = *reinterpret_cast<uint32_t const*>(&r_4[60]);
      *reinterpret_cast<uint32_t*>((p_37 + 14848)) = *reinterpret_cast<uint32_t const*>(&r_4[46]);
      *reinterpret_cast<uint32_t*>((p_38 + 14848)) = *reinterpret_cast<uint32_t const*>(&r_4[62]);
      __syncthreads();
      alignas(16) tw::f16 vectors_1[64];
      tw::f16* p_39 = p + (t_109 ^ ((t_109 & 448) >> 3));
      *reinterpret_cast<uint4*>(&vectors_1[0]) = *reinterpret_cast<uint4 const*>(p_39);
      *reinterpret_cast<uint4*>(&vectors_1[8]) = *reinterpret_cast<uint4 const*>((p_39 + 1024));
      *reinterpret_cast<uint4*>(&vectors_1[16]) = *reinterpret_cast<uint4 const*>((p_39 + 2048));
      *reinterpret_cast<uint4*>(&vectors_1[24]) = *reinterpret_cast<uint4 const*>((p_39 + 3072));
      *reinterpret_cast<uint4*>(&vectors_1[32]) = *reinterpret_cast<uint4 const*>((p_39 + 4096));
      *reinterpret_cast<uint4*>(&vectors_1[40]) = *reinterpret_cast<uint4 const*>((p_39 + 5120));
      *reinterpret_cast<uint4*>(&vectors_1[48]) = *reinterpret_cast<uint4 const*>((p_39 + 6144));
      *reinterpret_cast<uint4*>(&vectors_1[56]) = *reinterpret_cast<uint4 const*>((p_39 + 7168));
      const bool t_127 = inside[0];
      const bool t_128 = inside[1];
      const bool t_129 = inside[2];
      const bool t_130 = inside[3];
      const bool t_131 = inside[4];
      const bool t_132 = inside[5];
      const bool t_133 = inside[6];
      const bool t_134 = inside[7];
      tw::store_if<16>(t_127, p_32, &vectors_1[0]);
      tw::store_if<16>(t_128, (p_32 + t_110), &vectors_1[8]);
      tw::store_if<16>(t_129, (p_32 + 2 * t_110), &vectors_1[16]);
      tw::store_if<16>(t_130, (p_32 + 3 * t_110), &vectors_1[24]);
      tw::store_if<16>(t_131, (p_32 + 4 * t_110), &vectors_1[32]);
      tw::store_if<16>(t_132, (p_32 + 5 * t_110), &vectors_1[40]);
      tw::store_if<16>(t_133, (p_32 + 6 * t_110), &vectors_1[48]);
      tw::store_if<16>(t_134, (p_32 + 7 * t_110), &vectors_1[56]);
      __syncthreads();
    }
    const int end_4 = max(begin_1, start);
    end_3 = end_4;
  }
}
