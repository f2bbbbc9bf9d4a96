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
MultistageGemm_kernel(tw::f16* mA, int mA_shape0, int mA_shape1, int mA_stride0, int mA_stride2, tw::f16* mB, int mB_shape0, int mB_shape1, int mB_stride1, int mB_stride2, tw::f16* mC, int mC_stride0, int mC_stride2, tw::f16* mD, int mD_shape0, int mD_shape1, int mD_stride0, int mD_stride2, float function_alpha, float function_beta, float* decomposition_workspace, int32_t* decomposition_flags, int decomposition_plan_tiled_shape_0, int decomposition_plan_tiled_shape_1, int decomposition_plan_iters_per_tile, int decomposition_plan_avail_sms, int decomposition_plan_sk_tiles, int decomposition_plan_sk_waves, int decomposition_plan_sk_regions, int decomposition_plan_sk_blocks_per_region, int decomposition_plan_sk_big_blocks_per_region, int decomposition_plan_sk_iters_per_normal_block, int decomposition_plan_sk_iters_per_region, int decomposition_plan_dp_blocks, int decomposition_plan_dp_first_wave_tiles, bool decomposition_plan_cohort_raster, bool decomposition_plan_remap_block_indices) {
  extern __shared__ __align__(1024) unsigned char smem[];
  const int bidx = blockIdx.x;
  const int bidz = blockIdx.z;
  tw::f16* p = mA + bidz * mA_stride2;
  tw::f16* p_1 = mB + bidz * mB_stride2;
  tw::f16* p_2 = mC + bidz * mC_stride2;
  tw::f16* p_3 = mD + bidz * mD_stride2;
  uint8_t* smem_1 = reinterpret_cast<uint8_t*>(smem);
  tw::f16* p_4 = reinterpret_cast<tw::f16*>(smem_1);
  tw::f16* p_5 = p_4 + 32768;
  const int t = bidx < tw::multiply(2, decomposition_plan_avail_sms) ? tw::add(bidx / 2, bidx % 2 * decomposition_plan_avail_sms) : bidx;
  const int t_1 = decomposition_plan_remap_block_indices ? t : bidx;
  const int t_2 = tw::multiply(tw::floormod<int32_t>(t_1, decomposition_plan_sk_regions), decomposition_plan_sk_blocks_per_region);
  const int t_3 = tw::multiply(decomposition_plan_sk_regions, decomposition_plan_sk_blocks_per_region);
  const int t_4 = decomposition_plan_sk_tiles > 0 ? t_3 : 0;
  const int t_5 = t_1 < t_4 ? tw::add(t_2, tw::floordiv<int32_t>(t_1, decomposition_plan_sk_regions)) : t_1;
  int begin;
  int end;
  int last;
  if (t_5 < t_4) {
    const int t_6 = tw::floormod<int32_t>(t_5, decomposition_plan_sk_blocks_per_region);
    const int t_7 = tw::multiply(tw::floordiv<int32_t>(t_5, decomposition_plan_sk_blocks_per_region), decomposition_plan_sk_iters_per_region);
    const int t_8 = tw::add(t_7, tw::multiply(t_6, decomposition_plan_sk_iters_per_normal_block));
    const int begin_1 = tw::add(t_8, min(t_6, decomposition_plan_sk_big_blocks_per_region));
    const int t_9 = tw::add(t_6, 1);
    const int t_10 = tw::add(t_7, tw::multiply(t_9, decomposition_plan_sk_iters_per_normal_block));
    const int end_1 = tw::add(t_10, min(t_9, decomposition_plan_sk_big_blocks_per_region));
    begin = begin_1;
    end = end_1;
    last = 0;
  } else {
    const int t_11 = tw::multiply(decomposition_plan_sk_waves, decomposition_plan_avail_sms);
    int begin_2;
    int end_2;
    int last_1;
    if (t_5 >= t_11 && t_5 < tw::add(t_11, decomposition_plan_dp_blocks)) {
      const int t_12 = tw::subtract(t_5, t_11);
      const bool t_13 = t_12 < decomposition_plan_avail_sms;
      const int t_14 = tw::multiply(tw::subtract(decomposition_plan_dp_first_wave_tiles, 1), decomposition_plan_avail_sms);
      const int t_15 = tw::add(decomposition_plan_cohort_raster ? 0 : decomposition_plan_sk_tiles, t_12);
      const int tile = tw::add(t_15, t_13 ? 0 : t_14);
      const int count = t_13 ? decomposition_plan_dp_first_wave_tiles : 1;
      const int begin_3 = tw::multiply(tile, decomposition_plan_iters_per_tile);
      const int t_16 = min(decomposition_plan_tiled_shape_0, decomposition_plan_tiled_shape_1);
      const bool t_17 = decomposition_plan_tiled_shape_0 < decomposition_plan_tiled_shape_1;
      const int t_18 = tw::floormod<int32_t>(tile, t_16);
      const int t_19 = tw::floordiv<int32_t>(tile, t_16);
      const int t_20 = tile >> 5;
      const int t_21 = tile & 31;
      const int t_22 = tw::add(decomposition_plan_tiled_shape_1, 3) >> 2;
      const int t_23 = decomposition_plan_cohort_raster ? tw::add(tw::multiply(tw::floordiv<int32_t>(t_20, t_22), 8), t_21 / 4) : t_17 ? t_18 : t_19;
      const int t_24 = decomposition_plan_cohort_raster ? tw::add(tw::multiply(tw::floormod<int32_t>(t_20, t_22), 4), t_21 % 4) : t_17 ? t_19 : t_18;
      const bool t_25 = tile >= decomposition_plan_sk_tiles && t_23 < decomposition_plan_tiled_shape_0;
      const int t_26 = t_25 && t_24 < decomposition_plan_tiled_shape_1 ? decomposition_plan_iters_per_tile : 0;
      const int end_3 = tw::add(begin_3, t_26);
      const int t_27 = tw::multiply(tw::multiply(tw::subtract(count, 1), decomposition_plan_avail_sms), decomposition_plan_iters_per_tile);
      const int last_2 = tw::add(begin_3, t_27);
      begin_2 = begin_3;
      end_2 = end_3;
      last_1 = last_2;
    } else {
      begin_2 = 0;
      end_2 = 0;
      last_1 = 0;
    }
    begin = begin_2;
    end = end_2;
    last = last_1;
  }
  int end_4 = end;
  int begin_4 = begin;
  while (end_4 > begin_4) {
    const int tile_1 = tw::floordiv<int32_t>(tw::subtract(end_4, 1), decomposition_plan_iters_per_tile);
    const int start = tw::multiply(tile_1, decomposition_plan_iters_per_tile);
    const int t_28 = max(tw::subtract(begin_4, start), 0);
    const int t_29 = tw::subtract(end_4, start);
    const int t_30 = (mD_shape0 + 127) / 128;
    const int t_31 = (mD_shape1 + 127) / 128;
    const int tidx = threadIdx.x;
    alignas(16) float acc[64];
    #pragma unroll
    for (int e = 0; e < 64; ++e) acc[e] = 0.0f;
    int t_32;
    t_32 = tw_rematerialize(t_30);
    int t_33;
    t_33 = tw_rematerialize(t_31);
    const int t_34 = min(decomposition_plan_tiled_shape_0, decomposition_plan_tiled_shape_1);
    const bool t_35 = decomposition_plan_tiled_shape_0 < decomposition_plan_tiled_shape_1;
    const int t_36 = tw::floormod<int32_t>(tile_1, t_34);
    const int t_37 = tw::floordiv<int32_t>(tile_1, t_34);
    const int t_38 = tile_1 >> 5;
    const int t_39 = tile_1 & 31;
    const int t_40 = tw::add(decomposition_plan_tiled_shape_1, 3) >> 2;
    const int t_41 = decomposition_plan_cohort_raster ? tw::add(tw::multiply(tw::floordiv<int32_t>(t_38, t_40), 8), t_39 / 4) : t_35 ? t_36 : t_37;
    const int t_42 = decomposition_plan_cohort_raster ? tw::add(tw::multiply(tw::floormod<int32_t>(t_38, t_40), 4), t_39 % 4) : t_35 ? t_37 : t_36;
    const int t_43 = mA_shape1 - (mA_shape1 + 63) / 64 * 64;
    const int t_44 = mB_shape1 - (mB_shape1 + 63) / 64 * 64;
    const int t_45 = 64 * mB_stride1;
    int t_46;
    t_46 = tw_rematerialize(tidx);
    const int t_47 = 32 * mA_stride0;
    const int t_48 = t_46 % 8;
    const int t_49 = t_46 / 8;
    const int t_50 = t_48 * 8;
    tw::f16* p_6 = p + t_43 + t_41 * (128 * mA_stride0) + (t_50 + t_49 * mA_stride0);
    const int t_51 = t_50 + t_49 * 64;
    const int t_52 = tw::add(tw::multiply(128, t_41), t_49);
    alignas(4) bool r[4];
    alignas(4) bool r_1[4];
    const bool t_53 = t_52 < mA_shape0;
    r[0] = t_53;
    const int t_54 = tw::multiply(64, t_28);
    const bool t_55 = tw::add(t_43 + 8 * t_48, t_54) >= 0;
    r_1[0] = t_53 && t_55;
    const bool t_56 = tw::add(t_52, 32) < mA_shape0;
    r[1] = t_56;
    r_1[1] = t_56 && t_55;
    const bool t_57 = tw::add(t_52, 64) < mA_shape0;
    r[2] = t_57;
    r_1[2] = t_57 && t_55;
    const bool t_58 = tw::add(t_52, 96) < mA_shape0;
    r[3] = t_58;
    r_1[3] = t_58 && t_55;
    const int t_59 = 16 * mB_stride1;
    const int t_60 = t_46 % 16;
    const int t_61 = t_46 / 16;
    tw::f16* p_7 = p_1 + t_44 * mB_stride1 + t_42 * 128 + (t_60 * 8 + t_61 * mB_stride1);
    const int t_62 = t_49 / 2;
    const int t_63 = t_50 + t_49 % 2 * 512 + t_62 % 8 * 64 + t_62 / 8 * 1024;
    const int t_64 = t_44 + t_61;
    bool r_2[1];
    alignas(4) bool r_3[4];
    const bool t_65 = tw::add(tw::multiply(128, t_42), 8 * t_60) < mB_shape0;
    r_2[0] = t_65;
    r_3[0] = t_65 && tw::add(t_64, t_54) >= 0;
    r_3[1] = t_65 && tw::add(t_64, tw::add(16, t_54)) >= 0;
    r_3[2] = t_65 && tw::add(t_64, tw::add(32, t_54)) >= 0;
    r_3[3] = t_65 && tw::add(t_64, tw::add(48, t_54)) >= 0;
    alignas(16) tw::f16 tCrA[128];
    alignas(16) tw::f16 tCrB[64];
    const int t_66 = t_61 % 2;
    const int t_67 = t_61 / 2;
    const int t_68 = t_60 * 64 + t_66 * 8 + t_67 % 2 * 1024;
    const int t_69 = t_60 % 8 * 64 + t_60 / 8 * 1024 + t_66 * 32 + t_67 / 2 * 8;
    if (t_29 > t_28) {
      tw::f16* p_8 = p_6 + t_28 * 64;
      const bool t_70 = r_1[0];
      const bool t_71 = r_1[1];
      const bool t_72 = r_1[2];
      const bool t_73 = r_1[3];
      const int t_74 = 2 * t_47;
      const int t_75 = 3 * t_47;
      const int t_76 = t_51 ^ ((t_51 & 448) >> 3);
      tw::f16* p_9 = p_4 + t_76;
      cp_async_cg_16_zfill(tw::shared_address(p_9), p_8, t_70 ? 16 : 0);
      cp_async_cg_16_zfill(tw::shared_address(p_9 + 2048), (p_8 + t_47), t_71 ? 16 : 0);
      cp_async_cg_16_zfill(tw::shared_address(p_9 + 4096), (p_8 + t_74), t_72 ? 16 : 0);
      cp_async_cg_16_zfill(tw::shared_address(p_9 + 6144), (p_8 + t_75), t_73 ? 16 : 0);
      tw::f16* p_10 = p_7 + t_28 * t_45;
      const bool t_77 = r_3[0];
      const bool t_78 = r_3[1];
      const bool t_79 = r_3[2];
      const bool t_80 = r_3[3];
      const int t_81 = 2 * t_59;
      const int t_82 = 3 * t_59;
      const int t_83 = t_63 ^ ((t_63 & 448) >> 3);
      tw::f16* p_11 = p_5 + t_83;
      cp_async_cg_16_zfill(tw::shared_address(p_11), p_10, t_77 ? 16 : 0);
      cp_async_cg_16_zfill(tw::shared_address(p_11 + 2048), (p_10 + t_59), t_78 ? 16 : 0);
      cp_async_cg_16_zfill(tw::shared_address(p_11 + 4096), (p_10 + t_81), t_79 ? 16 : 0);
      cp_async_cg_16_zfill(tw::shared_address(p_11 + 6144), (p_10 + t_82), t_80 ? 16 : 0);
      asm volatile("cp.async.commit_group;" : : : "memory");
      const int t_84 = tw::add(t_28, 1);
      if (t_84 >= t_29) {
        #pragma unroll
        for (int e = 0; e < 4; ++e) r[e] = false;
        #pragma unroll
        for (int e = 0; e < 4; ++e) r_2[0] = false;
      }
      const int t_85 = tw::subtract(t_29, 1);
      const int t_86 = min(t_84, t_85);
      tw::f16* p_12 = p_6 + t_86 * 64;
      const bool t_87 = r[0];
      const bool t_88 = r[1];
      const bool t_89 = r[2];
      const bool t_90 = r[3];
      cp_async_cg_16_zfill(tw::shared_address(p_9 + 8192), p_12, t_87 ? 16 : 0);
      cp_async_cg_16_zfill(tw::shared_address(p_9 + 10240), (p_12 + t_47), t_88 ? 16 : 0);
      cp_async_cg_16_zfill(tw::shared_address(p_9 + 12288), (p_12 + t_74), t_89 ? 16 : 0);
      cp_async_cg_16_zfill(tw::shared_address(p_9 + 14336), (p_12 + t_75), t_90 ? 16 : 0);
      tw::f16* p_13 = p_7 + t_86 * t_45;
      const bool t_91 = r_2[0];
      cp_async_cg_16_zfill(tw::shared_address(p_11 + 8192), p_13, t_91 ? 16 : 0);
      cp_async_cg_16_zfill(tw::shared_address(p_11 + 10240), (p_13 + t_59), t_91 ? 16 : 0);
      cp_async_cg_16_zfill(tw::shared_address(p_11 + 12288), (p_13 + t_81), t_91 ? 16 : 0);
      cp_async_cg_16_zfill(tw::shared_address(p_11 + 14336), (p_13 + t_82), t_91 ? 16 : 0);
      asm volatile("cp.async.commit_group;" : : : "memory");
      const int t_92 = tw::add(t_28, 2);
      if (t_92 >= t_29) {
        #pragma unroll
        for (int e = 0; e < 4; ++e) r[e] = false;
        #pragma unroll
        for (int e = 0; e < 4; ++e) r_2[0] = false;
      }
      const int t_93 = min(t_92, t_85);
      tw::f16* p_14 = p_6 + t_93 * 64;
      const bool t_94 = r[0];
      const bool t_95 = r[1];
      const bool t_96 = r[2];
      const bool t_97 = r[3];
      cp_async_cg_16_zfill(tw::shared_address(p_9 + 16384), p_14, t_94 ? 16 : 0);
      cp_async_cg_16_zfill(tw::shared_address(p_9 + 18432), (p_14 + t_47), t_95 ? 16 : 0);
      cp_async_cg_16_zfill(tw::shared_address(p_9 + 20480), (p_14 + t_74), t_96 ? 16 : 0);
      cp_async_cg_16_zfill(tw::shared_address(p_9 + 22528), (p_14 + t_75), t_97 ? 16 : 0);
      tw::f16* p_15 = p_7 + t_93 * t_45;
      const bool t_98 = r_2[0];
      cp_async_cg_16_zfill(tw::shared_address(p_11 + 16384), p_15, t_98 ? 16 : 0);
      cp_async_cg_16_zfill(tw::shared_address(p_11 + 18432), (p_15 + t_59), t_98 ? 16 : 0);
      cp_async_cg_16_zfill(tw::shared_address(p_11 + 20480), (p_15 + t_81), t_98 ? 16 : 0);
      cp_async_cg_16_zfill(tw::shared_address(p_11 + 22528), (p_15 + t_82), t_98 ? 16 : 0);
      asm volatile("cp.async.commit_group;" : : : "memory");
      if (tw::add(t_28, 3) >= t_29) {
        #pragma unroll
        for (int e = 0; e < 4; ++e) r[e] = false;
        #pragma unroll
        for (int e = 0; e < 4; ++e) r_2[0] = false;
      }
      asm volatile("cp.async.wait_group 2;" : : : "memory");
      __syncthreads();
      const int t_99 = t_68 ^ ((t_68 & 448) >> 3);
      tw::f16* p_16 = p_4 + t_99;
      ldmatrix_x4(tw::shared_address(p_16), tw::reg32(tCrA[0]), tw::reg32(tCrA[2]), tw::reg32(tCrA[4]), tw::reg32(tCrA[6]));
      ldmatrix_x4(tw::shared_address(p_16 + 2048), tw::reg32(tCrA[32]), tw::reg32(tCrA[34]), tw::reg32(tCrA[36]), tw::reg32(tCrA[38]));
      ldmatrix_x4(tw::shared_address(p_16 + 4096), tw::reg32(tCrA[64]), tw::reg32(tCrA[66]), tw::reg32(tCrA[68]), tw::reg32(tCrA[70]));
      ldmatrix_x4(tw::shared_address(p_16 + 6144), tw::reg32(tCrA[96]), tw::reg32(tCrA[98]), tw::reg32(tCrA[100]), tw::reg32(tCrA[102]));
      const int t_100 = t_69 ^ ((t_69 & 448) >> 3);
      tw::f16* p_17 = p_5 + t_100;
      ldmatrix_x4_trans(tw::shared_address(p_17), tw::reg32(tCrB[0]), tw::reg32(tCrB[2]), tw::reg32(tCrB[4]), tw::reg32(tCrB[6]));
      ldmatrix_x4_trans(tw::shared_address(p_17 + 512), tw::reg32(tCrB[8]), tw::reg32(tCrB[10]), tw::reg32(tCrB[12]), tw::reg32(tCrB[14]));
      int write = 3;
      int read = 0;
      #pragma unroll 1
      for (int k_tile = t_28; k_tile < t_29; ++k_tile) {
        const int ahead = min(tw::add(k_tile, 3), t_85);
        const int t_101 = read * 8192;
        tw::f16* p_18 = p_4 + t_101;
        tw::f16* p_19 = p_18 + (t_99 ^ 16);
        ldmatrix_x4(tw::shared_address(p_19), tw::reg32(tCrA[8]), tw::reg32(tCrA[10]), tw::reg32(tCrA[12]), tw::reg32(tCrA[14]));
        ldmatrix_x4(tw::shared_address(p_19 + 2048), tw::reg32(tCrA[40]), tw::reg32(tCrA[42]), tw::reg32(tCrA[44]), tw::reg32(tCrA[46]));
        ldmatrix_x4(tw::shared_address(p_19 + 4096), tw::reg32(tCrA[72]), tw::reg32(tCrA[74]), tw::reg32(tCrA[76]), tw::reg32(tCrA[78]));
        ldmatrix_x4(tw::shared_address(p_19 + 6144), tw::reg32(tCrA[104]), tw::reg32(tCrA[106]), tw::reg32(tCrA[108]), tw::reg32(tCrA[110]));
        tw::f16* p_20 = p_5 + t_101 + t_100;
        ldmatrix_x4_trans(tw::shared_address(p_20 + 2048), tw::reg32(tCrB[16]), tw::reg32(tCrB[18]), tw::reg32(tCrB[20]), tw::reg32(tCrB[22]));
        ldmatrix_x4_trans(tw::shared_address(p_20 + 2560), tw::reg32(tCrB[24]), tw::reg32(tCrB[26]), tw::reg32(tCrB[28]), tw::reg32(tCrB[30]));
        tw::f16* p_21 = p_6 + ahead * 64;
        const int t_102 = write * 8192;
        const bool t_103 = r[0];
        const bool t_104 = r[1];
        const bool t_105 = r[2];
        const bool t_106 = r[3];
        tw::f16* p_22 = p_4 + t_102 + t_76;
        cp_async_cg_16_zfill(tw::shared_address(p_22), p_21, t_103 ? 16 : 0);
        cp_async_cg_16_zfill(tw::shared_address(p_22 + 2048), (p_21 + t_47), t_104 ? 16 : 0);
        cp_async_cg_16_zfill(tw::shared_address(p_22 + 4096), (p_21 + t_74), t_105 ? 16 : 0);
        cp_async_cg_16_zfill(tw::shared_address(p_22 + 6144), (p_21 + t_75), t_106 ? 16 : 0);
        tw::f16* p_23 = p_7 + ahead * t_45;
        const bool t_107 = r_2[0];
        tw::f16* p_24 = p_5 + t_102 + t_83;
        cp_async_cg_16_zfill(tw::shared_address(p_24), p_23, t_107 ? 16 : 0);
        cp_async_cg_16_zfill(tw::shared_address(p_24 + 2048), (p_23 + t_59), t_107 ? 16 : 0);
        cp_async_cg_16_zfill(tw::shared_address(p_24 + 4096), (p_23 + t_81), t_107 ? 16 : 0);
        cp_async_cg_16_zfill(tw::shared_address(p_24 + 6144), (p_23 + t_82), t_107 ? 16 : 0);
        asm volatile("cp.async.commit_group;" : : : "memory");
        #pragma unroll
        for (int m = 0; m < 4; ++m) {
          #pragma unroll
          for (int n = 0; n < 4; ++n) {
            int const s = m & 1 ? 3 - n : n;
            mma_16x8x16_f32f16f16f32_tn(acc[4 * m + 16 * s], acc[4 * m + 16 * s + 1], acc[4 * m + 16 * s + 2], acc[4 * m + 16 * s + 3], tw::reg32(tCrA[32 * m]), tw::reg32(tCrA[32 * m + 2]), tw::reg32(tCrA[32 * m + 4]), tw::reg32(tCrA[32 * m + 6]), tw::reg32(tCrB[4 * s]), tw::reg32(tCrB[4 * s + 2]));
          }
        }
        tw::f16* p_25 = p_18 + (t_99 ^ 32);
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
        tw::f16* p_26 = p_18 + (t_99 ^ 48);
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
        const int t_108 = tw::add(write, 1);
        const int write_1 = t_108 == 4 ? 0 : t_108;
        const int t_109 = tw::add(read, 1);
        const int read_1 = t_109 == 4 ? 0 : t_109;
        asm volatile("cp.async.wait_group 2;" : : : "memory");
        __syncthreads();
        const int t_110 = read_1 * 8192;
        tw::f16* p_27 = p_4 + t_110 + t_99;
        ldmatrix_x4(tw::shared_address(p_27), tw::reg32(tCrA[0]), tw::reg32(tCrA[2]), tw::reg32(tCrA[4]), tw::reg32(tCrA[6]));
        ldmatrix_x4(tw::shared_address(p_27 + 2048), tw::reg32(tCrA[32]), tw::reg32(tCrA[34]), tw::reg32(tCrA[36]), tw::reg32(tCrA[38]));
        ldmatrix_x4(tw::shared_address(p_27 + 4096), tw::reg32(tCrA[64]), tw::reg32(tCrA[66]), tw::reg32(tCrA[68]), tw::reg32(tCrA[70]));
        ldmatrix_x4(tw::shared_address(p_27 + 6144), tw::reg32(tCrA[96]), tw::reg32(tCrA[98]), tw::reg32(tCrA[100]), tw::reg32(tCrA[102]));
        tw::f16* p_28 = p_5 + t_110 + t_100;
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
    int t_111;
    t_111 = tw_rematerialize(tile_1);
    int t_112;
    t_112 = tw_rematerialize(t_30);
    int t_113;
    t_113 = tw_rematerialize(t_31);
    const int t_114 = tw::floormod<int32_t>(t_111, t_34);
    const int t_115 = tw::floordiv<int32_t>(t_111, t_34);
    const int t_116 = t_111 >> 5;
    const int t_117 = t_111 & 31;
    const int t_118 = decomposition_plan_cohort_raster ? tw::add(tw::multiply(tw::floordiv<int32_t>(t_116, t_40), 8), t_117 / 4) : t_35 ? t_114 : t_115;
    const int t_119 = decomposition_plan_cohort_raster ? tw::add(tw::multiply(tw::floormod<int32_t>(t_116, t_40), 4), t_117 % 4) : t_35 ? t_115 : t_114;
    const int t_120 = t_119 * 128;
    tw::f16* p_29 = p_2 + (t_118 * (128 * mC_stride0) + t_120);
    tw::f16* p_30 = p_3 + (t_118 * (128 * mD_stride0) + t_120);
    const int t_121 = tw::multiply(128, t_118);
    const int t_122 = tw::multiply(128, t_119);
    if (t_29 < decomposition_plan_iters_per_tile) {
      float* p_31 = decomposition_workspace + (t_5 * 16384 + tidx_1 * 4);
      *reinterpret_cast<uint4*>(p_31) = *reinterpret_cast<uint4 const*>(&acc[0]);
      *reinterpret_cast<uint4*>((p_31 + 1024)) = *reinterpret_cast<uint4 const*>(&acc[4]);
      *reinterpret_cast<uint4*>((p_31 + 2048)) = *reinterpret_cast<uint4 const*>(&acc[8]);
      *reinterpret_cast<uint4*>((p_31 + 3072)) = *reinterpret_cast<uint4 const*>(&acc[12]);
      *reinterpret_cast<uint4*>((p_31 + 4096)) = *reinterpret_cast<uint4 const*>(&acc[16]);
      *reinterpret_cast<uint4*>((p_31 + 5120)) = *reinterpret_cast<uint4 const*>(&acc[20]);
      *reinterpret_cast<uint4*>((p_31 + 6144)) = *reinterpret_cast<uint4 const*>(&acc[24]);
      *reinterpret_cast<uint4*>((p_31 + 7168)) = *reinterpret_cast<uint4 const*>(&acc[28]);
      *reinterpret_cast<uint4*>((p_31 + 8192)) = *reinterpret_cast<uint4 const*>(&acc[32]);
      *reinterpret_cast<uint4*>((p_31 + 9216)) = *reinterpret_cast<uint4 const*>(&acc[36]);
      *reinterpret_cast<uint4*>((p_31 + 10240)) = *reinterpret_cast<uint4 const*>(&acc[40]);
      *reinterpret_cast<uint4*>((p_31 + 11264)) = *reinterpret_cast<uint4 const*>(&acc[44]);
      *reinterpret_cast<uint4*>((p_31 + 12288)) = *reinterpret_cast<uint4 const*>(&acc[48]);
      *reinterpret_cast<uint4*>((p_31 + 13312)) = *reinterpret_cast<uint4 const*>(&acc[52]);
      *reinterpret_cast<uint4*>((p_31 + 14336)) = *reinterpret_cast<uint4 const*>(&acc[56]);
      *reinterpret_cast<uint4*>((p_31 + 15360)) = *reinterpret_cast<uint4 const*>(&acc[60]);
      __syncthreads();
      if (tidx_1 == 0) {
        tw_st_release_gpu_u32((void*)((decomposition_flags + t_5)), tw_bits<unsigned>(1));
      }
    } else {
      if (t_28 > 0) {
        const int t_123 = max(decomposition_plan_sk_iters_per_region, 1);
        const int t_124 = tw::floormod<int32_t>(start, t_123);
        const int t_125 = tw::floordiv<int32_t>(t_124, tw::add(decomposition_plan_sk_iters_per_normal_block, 1));
        const int t_126 = tw::floordiv<int32_t>(max(tw::subtract(t_124, decomposition_plan_sk_big_blocks_per_region), 0), decomposition_plan_sk_iters_per_normal_block);
        const int t_127 = tw::multiply(tw::floordiv<int32_t>(start, t_123), decomposition_plan_sk_blocks_per_region);
        const int first = tw::add(t_127, max(t_125, t_126));
        #pragma unroll 1
        for (int block = tw::add(first, tidx_1); block < t_5; block += 256) {
          int32_t* p_32 = decomposition_flags + block;
          while (true) {
            int t_128;
            t_128 = tw_bits<int32_t>(tw_ld_acquire_gpu_u32((const void*)(p_32)));
            if (!(t_128 == 0)) break;
          }
          tw_st_relaxed_gpu_u32((void*)(p_32), tw_bits<unsigned>(0));
        }
        __syncthreads();
        #pragma unroll 1
        for (int block_1 = first; block_1 < t_5; ++block_1) {
          float* p_33 = decomposition_workspace + (block_1 * 16384 + tidx_1 * 4);
          alignas(16) float fetched[32];
          *reinterpret_cast<uint4*>(&fetched[0]) = *reinterpret_cast<uint4 const*>(p_33);
          *reinterpret_cast<uint4*>(&fetched[4]) = *reinterpret_cast<uint4 const*>((p_33 + 1024));
          *reinterpret_cast<uint4*>(&fetched[8]) = *reinterpret_cast<uint4 const*>((p_33 + 2048));
          *reinterpret_cast<uint4*>(&fetched[12]) = *reinterpret_cast<uint4 const*>((p_33 + 3072));
          *reinterpret_cast<uint4*>(&fetched[16]) = *reinterpret_cast<uint4 const*>((p_33 + 4096));
          *reinterpret_cast<uint4*>(&fetched[20]) = *reinterpret_cast<uint4 const*>((p_33 + 5120));
          *reinterpret_cast<uint4*>(&fetched[24]) = *reinterpret_cast<uint4 const*>((p_33 + 6144));
          *reinterpret_cast<uint4*>(&fetched[28]) = *reinterpret_cast<uint4 const*>((p_33 + 7168));
          #pragma unroll
          for (int e = 0; e < 32; ++e) acc[e] = acc[e] + fetched[e];
          alignas(16) float fetched_1[32];
          *reinterpret_cast<uint4*>(&fetched_1[0]) = *reinterpret_cast<uint4 const*>((p_33 + 8192));
          *reinterpret_cast<uint4*>(&fetched_1[4]) = *reinterpret_cast<uint4 const*>((p_33 + 9216));
          *reinterpret_cast<uint4*>(&fetched_1[8]) = *reinterpret_cast<uint4 const*>((p_33 + 10240));
          *reinterpret_cast<uint4*>(&fetched_1[12]) = *reinterpret_cast<uint4 const*>((p_33 + 11264));
          *reinterpret_cast<uint4*>(&fetched_1[16]) = *reinterpret_cast<uint4 const*>((p_33 + 12288));
          *reinterpret_cast<uint4*>(&fetched_1[20]) = *reinterpret_cast<uint4 const*>((p_33 + 13312));
          *reinterpret_cast<uint4*>(&fetched_1[24]) = *reinterpret_cast<uint4 const*>((p_33 + 14336));
          *reinterpret_cast<uint4*>(&fetched_1[28]) = *reinterpret_cast<uint4 const*>((p_33 + 15360));
          #pragma unroll
          for (int e = 0; e < 32; ++e) acc[32 + e] = acc[32 + e] + fetched_1[e];
        }
      }
      const int t_129 = tidx_1 % 16;
      const int t_130 = tidx_1 / 16;
      const int t_131 = t_129 % 8 * 8 + t_129 / 8 * 8192 + t_130 * 64;
      const int t_132 = 16 * mD_stride0;
      const int t_133 = t_129 * 8;
      tw::f16* p_34 = p_30 + (t_133 + t_130 * mD_stride0);
      const int t_134 = 16 * mC_stride0;
      tw::f16* p_35 = p_29 + (t_133 + t_130 * mC_stride0);
      const int t_135 = tw::add(t_121, t_130);
      alignas(8) bool inside[8];
      const bool t_136 = tw::add(t_122, 8 * t_129) < mD_shape1;
      inside[0] = t_135 < mD_shape0 && t_136;
      inside[1] = tw::add(t_135, 16) < mD_shape0 && t_136;
      inside[2] = tw::add(t_135, 32) < mD_shape0 && t_136;
      inside[3] = tw::add(t_135, 48) < mD_shape0 && t_136;
      inside[4] = tw::add(t_135, 64) < mD_shape0 && t_136;
      inside[5] = tw::add(t_135, 80) < mD_shape0 && t_136;
      inside[6] = tw::add(t_135, 96) < mD_shape0 && t_136;
      inside[7] = tw::add(t_135, 112) < mD_shape0 && t_136;
      const int t_137 = tidx_1 % 32;
      const int t_138 = t_137 % 4 * 2 + t_137 / 4 * 64 + (tidx_1 / 32 % 2 * 1024 + tidx_1 / 64 * 8);
      #pragma unroll
      for (int e = 0; e < 64; ++e) acc[e] = acc[e] * function_alpha;
      if (function_beta != 0.0f) {
        alignas(16) tw::f16 vectors[64];
        #pragma unroll
        for (int e = 0; e < 64; e += 2) tw::two(vectors[e]) = tw::pair(tw::f16{0x0000}, tw::f16{0x0000});
        const bool t_139 = inside[0];
        const bool t_140 = inside[1];
        const bool t_141 = inside[2];
        const bool t_142 = inside[3];
        const bool t_143 = inside[4];
        const bool t_144 = inside[5];
        const bool t_145 = inside[6];
        const bool t_146 = inside[7];
        tw::load_if<16>(t_139, &vectors[0], p_35);
        tw::load_if<16>(t_140, &vectors[8], (p_35 + t_134));
        tw::load_if<16>(t_141, &vectors[16], (p_35 + 2 * t_134));
        tw::load_if<16>(t_142, &vectors[24], (p_35 + 3 * t_134));
        tw::load_if<16>(t_143, &vectors[32], (p_35 + 4 * t_134));
        tw::load_if<16>(t_144, &vectors[40], (p_35 + 5 * t_134));
        tw::load_if<16>(t_145, &vectors[48], (p_35 + 6 * t_134));
        tw::load_if<16>(t_146, &vectors[56], (p_35 + 7 * t_134));
        tw::f16* p_36 = p_4 + (t_131 ^ ((t_131 & 448) >> 3));
        *reinterpret_cast<uint4*>(p_36) = *reinterpret_cast<uint4 const*>(&vectors[0]);
        *reinterpret_cast<uint4*>((p_36 + 1024)) = *reinterpret_cast<uint4 const*>(&vectors[8]);
        *reinterpret_cast<uint4*>((p_36 + 2048)) = *reinterpret_cast<uint4 const*>(&vectors[16]);
        *reinterpret_cast<uint4*>((p_36 + 3072)) = *reinterpret_cast<uint4 const*>(&vectors[24]);
        *reinterpret_cast<uint4*>((p_36 + 4096)) = *reinterpret_cast<uint4 const*>(&vectors[32]);
        *reinterpret_cast<uint4*>((p_36 + 5120)) = *reinterpret_cast<uint4 const*>(&vectors[40]);
        *reinterpret_cast<uint4*>((p_36 + 6144)) = *reinterpret_cast<uint4 const*>(&vectors[48]);
        *reinterpret_cast<uint4*>((p_36 + 7168)) = *reinterpret_cast<uint4 const*>(&vectors[56]);
        __syncthreads();
        alignas(16) tw::f16 source[64];
        const int t_147 = t_138 ^ ((t_138 & 448) >> 3);
        tw::f16* p_37 = p_4 + t_147;
        tw::f16* p_38 = p_4 + (t_147 ^ 32);
        *reinterpret_cast<uint32_t*>(&source[0]) = *reinterpret_cast<uint32_t const*>(p_37);
        *reinterpret_cast<uint32_t*>(&source[16]) = *reinterpret_cast<uint32_t const*>(p_38);
        *reinterpret_cast<uint32_t*>(&source[2]) = *reinterpret_cast<uint32_t const*>((p_37 + 512));
        *reinterpret_cast<uint32_t*>(&source[18]) = *reinterpret_cast<uint32_t const*>((p_38 + 512));
        *reinterpret_cast<uint32_t*>(&source[4]) = *reinterpret_cast<uint32_t const*>((p_37 + 2048));
        *reinterpret_cast<uint32_t*>(&source[20]) = *reinterpret_cast<uint32_t const*>((p_38 + 2048));
        *reinterpret_cast<uint32_t*>(&source[6]) = *reinterpret_cast<uint32_t const*>((p_37 + 2560));
        *reinterpret_cast<uint32_t*>(&source[22]) = *reinterpret_cast<uint32_t const*>((p_38 + 2560));
        *reinterpret_cast<uint32_t*>(&source[8]) = *reinterpret_cast<uint32_t const*>((p_37 + 4096));
        *reinterpret_cast<uint32_t*>(&source[24]) = *reinterpret_cast<uint32_t const*>((p_38 + 4096));
        *reinterpret_cast<uint32_t*>(&source[10]) = *reinterpret_cast<uint32_t const*>((p_37 + 4608));
        *reinterpret_cast<uint32_t*>(&source[26]) = *reinterpret_cast<uint32_t const*>((p_38 + 4608));
        *reinterpret_cast<uint32_t*>(&source[12]) = *reinterpret_cast<uint32_t const*>((p_37 + 6144));
        *reinterpret_cast<uint32_t*>(&source[28]) = *reinterpret_cast<uint32_t const*>((p_38 + 6144));
        *reinterpret_cast<uint32_t*>(&source[14]) = *reinterpret_cast<uint32_t const*>((p_37 + 6656));
        *reinterpret_cast<uint32_t*>(&source[30]) = *reinterpret_cast<uint32_t const*>((p_38 + 6656));
        *reinterpret_cast<uint32_t*>(&source[32]) = *reinterpret_cast<uint32_t const*>((p_37 + 8192));
        *reinterpret_cast<uint32_t*>(&source[48]) = *reinterpret_cast<uint32_t const*>((p_38 + 8192));
        *reinterpret_cast<uint32_t*>(&source[34]) = *reinterpret_cast<uint32_t const*>((p_37 + 8704));
        *reinterpret_cast<uint32_t*>(&source[50]) = *reinterpret_cast<uint32_t const*>((p_38 + 8704));
        *reinterpret_cast<uint32_t*>(&source[36]) = *reinterpret_cast<uint32_t const*>((p_37 + 10240));
        *reinterpret_cast<uint32_t*>(&source[52]) = *reinterpret_cast<uint32_t const*>((p_38 + 10240));
        *reinterpret_cast<uint32_t*>(&source[38]) = *reinterpret_cast<uint32_t const*>((p_37 + 10752));
        *reinterpret_cast<uint32_t*>(&source[54]) = *reinterpret_cast<uint32_t const*>((p_38 + 10752));
        *reinterpret_cast<uint32_t*>(&source[40]) = *reinterpret_cast<uint32_t const*>((p_37 + 12288));
        *reinterpret_cast<uint32_t*>(&source[56]) = *reinterpret_cast<uint32_t const*>((p_38 + 12288));
        *reinterpret_cast<uint32_t*>(&source[42]) = *reinterpret_cast<uint32_t const*>((p_37 + 12800));
        *reinterpret_cast<uint32_t*>(&source[58]) = *reinterpret_cast<uint32_t const*>((p_38 + 12800));
        *reinterpret_cast<uint32_t*>(&source[44]) = *reinterpret_cast<uint32_t const*>((p_37 + 14336));
        *reinterpret_cast<uint32_t*>(&source[60]) = *reinterpret_cast<uint32_t const*>((p_38 + 14336));
        *reinterpret_cast<uint32_t*>(&source[46]) = *reinterpret_cast<uint32_t const*>((p_37 + 14848));
        *reinterpret_cast<uint32_t*>(&source[62]) = *reinterpret_cast<uint32_t const*>((p_38 + 14848));
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
      const int t_148 = t_138 ^ ((t_138 & 448) >> 3);
      tw::f16* p_39 = p_4 + t_148;
      tw::f16* p_40 = p_4 + (t_148 ^ 32);
      *reinterpret_cast<uint32_t*>(p_39) = *reinterpret_cast<uint32_t const*>(&r_4[0]);
      *reinterpret_cast<uint32_t*>(p_40) = *reinterpret_cast<uint32_t const*>(&r_4[16]);
      *reinterpret_cast<uint32_t*>((p_39 + 512)) = *reinterpret_cast<uint32_t const*>(&r_4[2]);
      *reinterpret_cast<uint32_t*>((p_40 + 512)) = *reinterpret_cast<uint32_t const*>(&r_4[18]);
      *reinterpret_cast<uint32_t*>((p_39 + 2048)) = *reinterpret_cast<uint32_t const*>(&r_4[4]);
      *reinterpret_cast<uint32_t*>((p_40 + 2048)) = *reinterpret_cast<uint32_t const*>(&r_4[20]);
      *reinterpret_cast<uint32_t*>((p_39 + 2560)) = *reinterpret_cast<uint32_t const*>(&r_4[6]);
      *reinterpret_cast<uint32_t*>((p_40 + 2560)) = *reinterpret_cast<uint32_t const*>(&r_4[22]);
      *reinterpret_cast<uint32_t*>((p_39 + 4096)) = *reinterpret_cast<uint32_t const*>(&r_4[8]);
      *reinterpret_cast<uint32_t*>((p_40 + 4096)) = *reinterpret_cast<uint32_t const*>(&r_4[24]);
      *reinterpret_cast<uint32_t*>((p_39 + 4608)) = *reinterpret_cast<uint32_t const*>(&r_4[10]);
      *reinterpret_cast<uint32_t*>((p_40 + 4608)) = *reinterpret_cast<uint32_t const*>(&r_4[26]);
      *reinterpret_cast<uint32_t*>((p_39 + 6144)) = *reinterpret_cast<uint32_t const*>(&r_4[12]);
      *reinterpret_cast<uint32_t*>((p_40 + 6144)) = *reinterpret_cast<uint32_t const*>(&r_4[28]);
      *reinterpret_cast<uint32_t*>((p_39 + 6656)) = *reinterpret_cast<uint32_t const*>(&r_4[14]);
      *reinterpret_cast<uint32_t*>((p_40 + 6656)) = *reinterpret_cast<uint32_t const*>(&r_4[30]);
      *reinterpret_cast<uint32_t*>((p_39 + 8192)) = *reinterpret_cast<uint32_t const*>(&r_4[32]);
      *reinterpret_cast<uint32_t*>((p_40 + 8192)) = *reinterpret_cast<uint32_t const*>(&r_4[48]);
      *reinterpret_cast<uint32_t*>((p_39 + 8704)) = *reinterpret_cast<uint32_t const*>(&r_4[34]);
      *reinterpret_cast<uint32_t*>((p_40 + 8704)) = *reinterpret_cast<uint32_t const*>(&r_4[50]);
      *reinterpret_cast<uint32_t*>((p_39 + 10240)) = *reinterpret_cast<uint32_t const*>(&r_4[36]);
      *reinterpret_cast<uint32_t*>((p_40 + 10240)) = *reinterpret_cast<uint32_t const*>(&r_4[52]);
      *reinterpret_cast<uint32_t*>((p_39 + 10752)) = *reinterpret_cast<uint32_t const*>(&r_4[38]);
      *reinterpret_cast<uint32_t*>((p_40 + 10752)) = *reinterpret_cast<uint32_t const*>(&r_4[54]);
      *reinterpret_cast<uint32_t*>((p_39 + 12288)) = *reinterpret_cast<uint32_t const*>(&r_4[40]);
      *reinterpret_cast<uint32_t*>((p_40 + 12288)) = *reinterpret_cast<uint32_t const*>(&r_4[56]);
      *reinterpret_cast<uint32_t*>((p_39 + 12800)) = *reinterpret_cast<uint32_t const*>(&r_4[42]);
      *reinterpret_cast<uint32_t*>((p_40 + 12800)) = *reinterpret_cast<uint32_t const*>(&r_4[58]);
      *reinterpret_cast<uint32_t*>((p_39 + 14336)) = *reinterpret_cast<uint32_t const*>(&r_4[44]);
      *reinterpret_cast<uint32_t*>((p_40 + 14336)) = *reinterpret_cast<uint32_t const*>(&r_4[60]);
      *reinterpret_cast<uint32_t*>((p_39 + 14848)) = *reinterpret_cast<uint32_t const*>(&r_4[46]);
      *reinterpret_cast<uint32_t*>((p_40 + 14848)) = *reinterpret_cast<uint32_t const*>(&r_4[62]);
      __syncthreads();
      alignas(16) tw::f16 vectors_1[64];
      tw::f16* p_41 = p_4 + (t_131 ^ ((t_131 & 448) >> 3));
      *reinterpret_cast<uint4*>(&vectors_1[0]) = *reinterpret_cast<uint4 const*>(p_41);
      *reinterpret_cast<uint4*>(&vectors_1[8]) = *reinterpret_cast<uint4 const*>((p_41 + 1024));
      *reinterpret_cast<uint4*>(&vectors_1[16]) = *reinterpret_cast<uint4 const*>((p_41 + 2048));
      *reinterpret_cast<uint4*>(&vectors_1[24]) = *reinterpret_cast<uint4 const*>((p_41 + 3072));
      *reinterpret_cast<uint4*>(&vectors_1[32]) = *reinterpret_cast<uint4 const*>((p_41 + 4096));
      *reinterpret_cast<uint4*>(&vectors_1[40]) = *reinterpret_cast<uint4 const*>((p_41 + 5120));
      *reinterpret_cast<uint4*>(&vectors_1[48]) = *reinterpret_cast<uint4 const*>((p_41 + 6144));
      *reinterpret_cast<uint4*>(&vectors_1[56]) = *reinterpret_cast<uint4 const*>((p_41 + 7168));
      const bool t_149 = inside[0];
      const bool t_150 = inside[1];
      const bool t_151 = inside[2];
      const bool t_152 = inside[3];
      const bool t_153 = inside[4];
      const bool t_154 = inside[5];
      const bool t_155 = inside[6];
      const bool t_156 = inside[7];
      tw::store_if<16>(t_149, p_34, &vectors_1[0]);
      tw::store_if<16>(t_150, (p_34 + t_132), &vectors_1[8]);
      tw::store_if<16>(t_151, (p_34 + 2 * t_132), &vectors_1[16]);
      tw::store_if<16>(t_152, (p_34 + 3 * t_132), &vectors_1[24]);
      tw::store_if<16>(t_153, (p_34 + 4 * t_132), &vectors_1[32]);
      tw::store_if<16>(t_154, (p_34 + 5 * t_132), &vectors_1[40]);
      tw::store_if<16>(t_155, (p_34 + 6 * t_132), &vectors_1[48]);
      tw::store_if<16>(t_156, (p_34 + 7 * t_132), &vectors_1[56]);
      __syncthreads();
    }
    const int end_5 = max(begin_4, start);
    const bool t_157 = end_5 == begin_4 && begin_4 < last;
    const int t_158 = tw::multiply(decomposition_plan_avail_sms, decomposition_plan_iters_per_tile);
    const int t_159 = tw::add(begin_4, t_158);
    const int end_6 = tw::add(t_159, decomposition_plan_iters_per_tile);
    const int begin_5 = t_157 ? t_159 : begin_4;
    const int end_7 = t_157 ? end_6 : end_5;
    end_4 = end_7;
    begin_4 = begin_5;
  }
}
