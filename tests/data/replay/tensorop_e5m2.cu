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

__device__ __forceinline__ void mma_16x8x32_f32e5m2e5m2f32_tn(float& d0, float& d1, float& d2, float& d3, uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3, uint32_t b0, uint32_t b1) {
  asm volatile("mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e5m2.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3)
               : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

extern "C" __global__ void __launch_bounds__(256)
MultistageGemm_kernel(tw::e5m2* mA, int mA_shape0, int mA_shape1, int mA_stride0, int mA_stride2, tw::e5m2* mB, int mB_shape0, int mB_shape1, int mB_stride0, int mB_stride2, tw::f16* mC, int mC_stride0, int mC_stride2, tw::f16* mD, int mD_shape0, int mD_shape1, int mD_stride0, int mD_stride2, float alpha, float beta) {
  extern __shared__ __align__(1024) unsigned char smem[];
  const int bidx = blockIdx.x;
  const int bidz = blockIdx.z;
  uint8_t* smem_1 = reinterpret_cast<uint8_t*>(smem);
  tw::e5m2* p = reinterpret_cast<tw::e5m2*>(smem_1);
  tw::e5m2* p_1 = p + 32768;
  const int k_tiles = (mA_shape1 + 63) / 64;
  const int t = (mD_shape0 + 127) / 128;
  const int t_1 = (mD_shape1 + 127) / 128;
  const int tidx = threadIdx.x;
  alignas(16) float acc[64];
  #pragma unroll
  for (int e = 0; e < 64; ++e) acc[e] = 0.0f;
  int t_2;
  t_2 = tw_rematerialize(t);
  int t_3;
  t_3 = tw_rematerialize(t_1);
  const int t_4 = 8 * t_3;
  const int t_5 = bidx / t_4;
  const int t_6 = t_5 * 8;
  const int t_7 = min(t_2 - t_6, 8);
  const int t_8 = bidx - t_5 * t_4;
  const int t_9 = t_6 + tw::floormod<int32_t>(t_8, t_7);
  const int t_10 = tw::floordiv<int32_t>(t_8, t_7);
  const int t_11 = mA_shape1 - k_tiles * 64;
  const int t_12 = mB_shape1 - (mB_shape1 + 63) / 64 * 64;
  int t_13;
  t_13 = tw_rematerialize(tidx);
  const int t_14 = 64 * mA_stride0;
  const int t_15 = t_13 % 4;
  const int t_16 = t_13 / 4;
  const int t_17 = t_15 * 16;
  tw::e5m2* p_2 = mA + bidz * mA_stride2 + t_11 + t_9 * (128 * mA_stride0) + (t_17 + t_16 * mA_stride0);
  const int t_18 = t_17 + t_16 * 64;
  const int t_19 = 16 * t_15;
  const int t_20 = 128 * t_9 + t_16;
  alignas(2) bool r[2];
  alignas(2) bool r_1[2];
  const bool t_21 = t_20 < mA_shape0;
  r[0] = t_21;
  const bool t_22 = t_11 + t_19 >= 0;
  r_1[0] = t_21 && t_22;
  const bool t_23 = t_20 + 64 < mA_shape0;
  r[1] = t_23;
  r_1[1] = t_23 && t_22;
  const int t_24 = 64 * mB_stride0;
  tw::e5m2* p_3 = mB + bidz * mB_stride2 + t_12 + t_10 * (128 * mB_stride0) + (t_17 + t_16 * mB_stride0);
  const int t_25 = 128 * t_10 + t_16;
  alignas(2) bool r_2[2];
  alignas(2) bool r_3[2];
  const bool t_26 = t_25 < mB_shape0;
  r_2[0] = t_26;
  const bool t_27 = t_12 + t_19 >= 0;
  r_3[0] = t_26 && t_27;
  const bool t_28 = t_25 + 64 < mB_shape0;
  r_2[1] = t_28;
  r_3[1] = t_28 && t_27;
  alignas(16) tw::e5m2 tCrA[64];
  alignas(16) tw::e5m2 tCrB[128];
  const int t_29 = t_13 / 16;
  const int t_30 = t_13 % 16 * 64 + t_29 % 2 * 16 + t_29 / 2 % 4 * 1024;
  const int t_31 = t_13 / 8;
  const int t_32 = t_31 / 2;
  const int t_33 = t_13 % 8 * 64 + t_31 % 2 * 16 + t_32 % 2 * 1024 + t_32 / 2 / 4 * 512;
  if (k_tiles > 0) {
    const bool t_34 = r_1[0];
    const bool t_35 = r_1[1];
    const int t_36 = t_18 ^ ((t_18 & 384) >> 3);
    tw::e5m2* p_4 = p + t_36;
    cp_async_cg_16_zfill(tw::shared_address(p_4), p_2, t_34 ? 16 : 0);
    cp_async_cg_16_zfill(tw::shared_address(p_4 + 4096), (p_2 + t_14), t_35 ? 16 : 0);
    const bool t_37 = r_3[0];
    const bool t_38 = r_3[1];
    tw::e5m2* p_5 = p_1 + t_36;
    cp_async_cg_16_zfill(tw::shared_address(p_5), p_3, t_37 ? 16 : 0);
    cp_async_cg_16_zfill(tw::shared_address(p_5 + 4096), (p_3 + t_24), t_38 ? 16 : 0);
    asm volatile("cp.async.commit_group;" : : : "memory");
    if (k_tiles <= 1) {
      #pragma unroll
      for (int e = 0; e < 2; ++e) r[e] = false;
      #pragma unroll
      for (int e = 0; e < 2; ++e) r_2[e] = false;
    }
    const int t_39 = k_tiles - 1;
    const int t_40 = min(1, t_39) * 64;
    tw::e5m2* p_6 = p_2 + t_40;
    const bool t_41 = r[0];
    const bool t_42 = r[1];
    cp_async_cg_16_zfill(tw::shared_address(p_4 + 8192), p_6, t_41 ? 16 : 0);
    cp_async_cg_16_zfill(tw::shared_address(p_4 + 12288), (p_6 + t_14), t_42 ? 16 : 0);
    tw::e5m2* p_7 = p_3 + t_40;
    const bool t_43 = r_2[0];
    const bool t_44 = r_2[1];
    cp_async_cg_16_zfill(tw::shared_address(p_5 + 8192), p_7, t_43 ? 16 : 0);
    cp_async_cg_16_zfill(tw::shared_address(p_5 + 12288), (p_7 + t_24), t_44 ? 16 : 0);
    asm volatile("cp.async.commit_group;" : : : "memory");
    if (k_tiles <= 2) {
      #pragma unroll
      for (int e = 0; e < 2; ++e) r[e] = false;
      #pragma unroll
      for (int e = 0; e < 2; ++e) r_2[e] = false;
    }
    const int t_45 = min(2, t_39) * 64;
    tw::e5m2* p_8 = p_2 + t_45;
    const bool t_46 = r[0];
    const bool t_47 = r[1];
    cp_async_cg_16_zfill(tw::shared_address(p_4 + 16384), p_8, t_46 ? 16 : 0);
    cp_async_cg_16_zfill(tw::shared_address(p_4 + 20480), (p_8 + t_14), t_47 ? 16 : 0);
    tw::e5m2* p_9 = p_3 + t_45;
    const bool t_48 = r_2[0];
    const bool t_49 = r_2[1];
    cp_async_cg_16_zfill(tw::shared_address(p_5 + 16384), p_9, t_48 ? 16 : 0);
    cp_async_cg_16_zfill(tw::shared_address(p_5 + 20480), (p_9 + t_24), t_49 ? 16 : 0);
    asm volatile("cp.async.commit_group;" : : : "memory");
    if (k_tiles <= 3) {
      #pragma unroll
      for (int e = 0; e < 2; ++e) r[e] = false;
      #pragma unroll
      for (int e = 0; e < 2; ++e) r_2[e] = false;
    }
    asm volatile("cp.async.wait_group 2;" : : : "memory");
    __syncthreads();
    const int t_50 = t_30 ^ ((t_30 & 384) >> 3);
    tw::e5m2* p_10 = p + t_50;
    ldmatrix_x4(tw::shared_address(p_10), tw::reg32(tCrA[0]), tw::reg32(tCrA[4]), tw::reg32(tCrA[8]), tw::reg32(tCrA[12]));
    ldmatrix_x4(tw::shared_address(p_10 + 4096), tw::reg32(tCrA[32]), tw::reg32(tCrA[36]), tw::reg32(tCrA[40]), tw::reg32(tCrA[44]));
    const int t_51 = t_33 ^ ((t_33 & 384) >> 3);
    tw::e5m2* p_11 = p_1 + t_51;
    ldmatrix_x4(tw::shared_address(p_11), tw::reg32(tCrB[0]), tw::reg32(tCrB[4]), tw::reg32(tCrB[16]), tw::reg32(tCrB[20]));
    ldmatrix_x4(tw::shared_address(p_11 + 2048), tw::reg32(tCrB[32]), tw::reg32(tCrB[36]), tw::reg32(tCrB[48]), tw::reg32(tCrB[52]));
    ldmatrix_x4(tw::shared_address(p_11 + 4096), tw::reg32(tCrB[64]), tw::reg32(tCrB[68]), tw::reg32(tCrB[80]), tw::reg32(tCrB[84]));
    ldmatrix_x4(tw::shared_address(p_11 + 6144), tw::reg32(tCrB[96]), tw::reg32(tCrB[100]), tw::reg32(tCrB[112]), tw::reg32(tCrB[116]));
    int write = 3;
    int read = 0;
    #pragma unroll 1
    for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
      const int ahead = min(k_tile + 3, t_39);
      const int t_52 = read * 8192;
      tw::e5m2* p_12 = p + t_52 + (t_50 ^ 32);
      ldmatrix_x4(tw::shared_address(p_12), tw::reg32(tCrA[16]), tw::reg32(tCrA[20]), tw::reg32(tCrA[24]), tw::reg32(tCrA[28]));
      ldmatrix_x4(tw::shared_address(p_12 + 4096), tw::reg32(tCrA[48]), tw::reg32(tCrA[52]), tw::reg32(tCrA[56]), tw::reg32(tCrA[60]));
      tw::e5m2* p_13 = p_1 + t_52 + (t_51 ^ 32);
      ldmatrix_x4(tw::shared_address(p_13), tw::reg32(tCrB[8]), tw::reg32(tCrB[12]), tw::reg32(tCrB[24]), tw::reg32(tCrB[28]));
      ldmatrix_x4(tw::shared_address(p_13 + 2048), tw::reg32(tCrB[40]), tw::reg32(tCrB[44]), tw::reg32(tCrB[56]), tw::reg32(tCrB[60]));
      ldmatrix_x4(tw::shared_address(p_13 + 4096), tw::reg32(tCrB[72]), tw::reg32(tCrB[76]), tw::reg32(tCrB[88]), tw::reg32(tCrB[92]));
      ldmatrix_x4(tw::shared_address(p_13 + 6144), tw::reg32(tCrB[104]), tw::reg32(tCrB[108]), tw::reg32(tCrB[120]), tw::reg32(tCrB[124]));
      const int t_53 = ahead * 64;
      tw::e5m2* p_14 = p_2 + t_53;
      const int t_54 = write * 8192;
      const bool t_55 = r[0];
      const bool t_56 = r[1];
      tw::e5m2* p_15 = p + t_54 + t_36;
      cp_async_cg_16_zfill(tw::shared_address(p_15), p_14, t_55 ? 16 : 0);
      cp_async_cg_16_zfill(tw::shared_address(p_15 + 4096), (p_14 + t_14), t_56 ? 16 : 0);
      tw::e5m2* p_16 = p_3 + t_53;
      const bool t_57 = r_2[0];
      const bool t_58 = r_2[1];
      tw::e5m2* p_17 = p_1 + t_54 + t_36;
      cp_async_cg_16_zfill(tw::shared_address(p_17), p_16, t_57 ? 16 : 0);
      cp_async_cg_16_zfill(tw::shared_address(p_17 + 4096), (p_16 + t_24), t_58 ? 16 : 0);
      asm volatile("cp.async.commit_group;" : : : "memory");
      #pragma unroll
      for (int m = 0; m < 2; ++m) {
        #pragma unroll
        for (int n = 0; n < 8; ++n) {
          int const s = m & 1 ? 7 - n : n;
          mma_16x8x32_f32e5m2e5m2f32_tn(acc[4 * m + 8 * s], acc[4 * m + 8 * s + 1], acc[4 * m + 8 * s + 2], acc[4 * m + 8 * s + 3], tw::reg32(tCrA[32 * m]), tw::reg32(tCrA[32 * m + 4]), tw::reg32(tCrA[32 * m + 8]), tw::reg32(tCrA[32 * m + 12]), tw::reg32(tCrB[16 * s]), tw::reg32(tCrB[16 * s + 4]));
        }
      }
      const int t_59 = write + 1;
      const int write_1 = t_59 == 4 ? 0 : t_59;
      const int t_60 = read + 1;
      const int read_1 = t_60 == 4 ? 0 : t_60;
      asm volatile("cp.async.wait_group 2;" : : : "memory");
      __syncthreads();
      const int t_61 = read_1 * 8192;
      tw::e5m2* p_18 = p + t_61 + t_50;
      ldmatrix_x4(tw::shared_address(p_18), tw::reg32(tCrA[0]), tw::reg32(tCrA[4]), tw::reg32(tCrA[8]), tw::reg32(tCrA[12]));
      ldmatrix_x4(tw::shared_address(p_18 + 4096), tw::reg32(tCrA[32]), tw::reg32(tCrA[36]), tw::reg32(tCrA[40]), tw::reg32(tCrA[44]));
      tw::e5m2* p_19 = p_1 + t_61 + t_51;
      ldmatrix_x4(tw::shared_address(p_19), tw::reg32(tCrB[0]), tw::reg32(tCrB[4]), tw::reg32(tCrB[16]), tw::reg32(tCrB[20]));
      ldmatrix_x4(tw::shared_address(p_19 + 2048), tw::reg32(tCrB[32]), tw::reg32(tCrB[36]), tw::reg32(tCrB[48]), tw::reg32(tCrB[52]));
      ldmatrix_x4(tw::shared_address(p_19 + 4096), tw::reg32(tCrB[64]), tw::reg32(tCrB[68]), tw::reg32(tCrB[80]), tw::reg32(tCrB[84]));
      ldmatrix_x4(tw::shared_address(p_19 + 6144), tw::reg32(tCrB[96]), tw::reg32(tCrB[100]), tw::reg32(tCrB[112]), tw::reg32(tCrB[116]));
      #pragma unroll
      for (int m_1 = 0; m_1 < 2; ++m_1) {
        #pragma unroll
        for (int n_1 = 0; n_1 < 8; ++n_1) {
          int const s_1 = m_1 & 1 ? 7 - n_1 : n_1;
          mma_16x8x32_f32e5m2e5m2f32_tn(acc[4 * m_1 + 8 * s_1], acc[4 * m_1 + 8 * s_1 + 1], acc[4 * m_1 + 8 * s_1 + 2], acc[4 * m_1 + 8 * s_1 + 3], tw::reg32(tCrA[32 * m_1 + 16]), tw::reg32(tCrA[32 * m_1 + 16 + 4]), tw::reg32(tCrA[32 * m_1 + 16 + 8]), tw::reg32(tCrA[32 * m_1 + 16 + 12]), tw::reg32(tCrB[16 * s_1 + 8]), tw::reg32(tCrB[16 * s_1 + 8 + 4]));
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
  int t_62;
  t_62 = tw_rematerialize(bidx);
  int t_63;
  t_63 = tw_rematerialize(t);
  int t_64;
  t_64 = tw_rematerialize(t_1);
  const int t_65 = 8 * t_64;
  const int t_66 = t_62 / t_65;
  const int t_67 = t_66 * 8;
  const int t_68 = min(t_63 - t_67, 8);
  const int t_69 = t_62 - t_66 * t_65;
  const int t_70 = t_67 + tw::floormod<int32_t>(t_69, t_68);
  const int t_71 = tw::floordiv<int32_t>(t_69, t_68);
  const int t_72 = t_71 * 128;
  tw::f16* p_20 = reinterpret_cast<tw::f16*>(smem_1);
  const int t_73 = tidx_1 % 16;
  const int t_74 = tidx_1 / 16;
  const int t_75 = t_73 % 8 * 8 + t_73 / 8 * 8192 + t_74 * 64;
  const int t_76 = 16 * mD_stride0;
  const int t_77 = t_73 * 8;
  tw::f16* p_21 = mD + bidz * mD_stride2 + (t_70 * (128 * mD_stride0) + t_72) + (t_77 + t_74 * mD_stride0);
  const int t_78 = 16 * mC_stride0;
  tw::f16* p_22 = mC + bidz * mC_stride2 + (t_70 * (128 * mC_stride0) + t_72) + (t_77 + t_74 * mC_stride0);
  const int t_79 = 128 * t_70 + t_74;
  alignas(8) bool inside[8];
  const bool t_80 = 128 * t_71 + 8 * t_73 < mD_shape1;
  inside[0] = t_79 < mD_shape0 && t_80;
  inside[1] = t_79 + 16 < mD_shape0 && t_80;
  inside[2] = t_79 + 32 < mD_shape0 && t_80;
  inside[3] = t_79 + 48 < mD_shape0 && t_80;
  inside[4] = t_79 + 64 < mD_shape0 && t_80;
  inside[5] = t_79 + 80 < mD_shape0 && t_80;
  inside[6] = t_79 + 96 < mD_shape0 && t_80;
  inside[7] = t_79 + 112 < mD_shape0 && t_80;
  const int t_81 = tidx_1 % 32;
  const int t_82 = t_81 % 4 * 2 + t_81 / 4 * 64 + (tidx_1 / 32 % 4 * 1024 + tidx_1 / 128 * 8);
  #pragma unroll
  for (int e = 0; e < 64; ++e) acc[e] = acc[e] * alpha;
  if (beta != 0.0f) {
    alignas(16) tw::f16 vectors[64];
    #pragma unroll
    for (int e = 0; e < 64; e += 2) tw::two(vectors[e]) = tw::pair(tw::f16{0x0000}, tw::f16{0x0000});
    const bool t_83 = inside[0];
    const bool t_84 = inside[1];
    const bool t_85 = inside[2];
    const bool t_86 = inside[3];
    const bool t_87 = inside[4];
    const bool t_88 = inside[5];
    const bool t_89 = inside[6];
    const bool t_90 = inside[7];
    tw::load_if<16>(t_83, &vectors[0], p_22);
    tw::load_if<16>(t_84, &vectors[8], (p_22 + t_78));
    tw::load_if<16>(t_85, &vectors[16], (p_22 + 2 * t_78));
    tw::load_if<16>(t_86, &vectors[24], (p_22 + 3 * t_78));
    tw::load_if<16>(t_87, &vectors[32], (p_22 + 4 * t_78));
    tw::load_if<16>(t_88, &vectors[40], (p_22 + 5 * t_78));
    tw::load_if<16>(t_89, &vectors[48], (p_22 + 6 * t_78));
    tw::load_if<16>(t_90, &vectors[56], (p_22 + 7 * t_78));
    tw::f16* p_23 = p_20 + (t_75 ^ ((t_75 & 448) >> 3));
    *reinterpret_cast<uint4*>(p_23) = *reinterpret_cast<uint4 const*>(&vectors[0]);
    *reinterpret_cast<uint4*>((p_23 + 1024)) = *reinterpret_cast<uint4 const*>(&vectors[8]);
    *reinterpret_cast<uint4*>((p_23 + 2048)) = *reinterpret_cast<uint4 const*>(&vectors[16]);
    *reinterpret_cast<uint4*>((p_23 + 3072)) = *reinterpret_cast<uint4 const*>(&vectors[24]);
    *reinterpret_cast<uint4*>((p_23 + 4096)) = *reinterpret_cast<uint4 const*>(&vectors[32]);
    *reinterpret_cast<uint4*>((p_23 + 5120)) = *reinterpret_cast<uint4 const*>(&vectors[40]);
    *reinterpret_cast<uint4*>((p_23 + 6144)) = *reinterpret_cast<uint4 const*>(&vectors[48]);
    *reinterpret_cast<uint4*>((p_23 + 7168)) = *reinterpret_cast<uint4 const*>(&vectors[56]);
    __syncthreads();
    alignas(16) tw::f16 source[64];
    const int t_91 = t_82 ^ ((t_82 & 448) >> 3);
    tw::f16* p_24 = p_20 + t_91;
    tw::f16* p_25 = p_20 + (t_91 ^ 16);
    tw::f16* p_26 = p_20 + (t_91 ^ 32);
    tw::f16* p_27 = p_20 + (t_91 ^ 48);
    *reinterpret_cast<uint32_t*>(&source[0]) = *reinterpret_cast<uint32_t const*>(p_24);
    *reinterpret_cast<uint32_t*>(&source[8]) = *reinterpret_cast<uint32_t const*>(p_25);
    *reinterpret_cast<uint32_t*>(&source[16]) = *reinterpret_cast<uint32_t const*>(p_26);
    *reinterpret_cast<uint32_t*>(&source[24]) = *reinterpret_cast<uint32_t const*>(p_27);
    *reinterpret_cast<uint32_t*>(&source[2]) = *reinterpret_cast<uint32_t const*>((p_24 + 512));
    *reinterpret_cast<uint32_t*>(&source[10]) = *reinterpret_cast<uint32_t const*>((p_25 + 512));
    *reinterpret_cast<uint32_t*>(&source[18]) = *reinterpret_cast<uint32_t const*>((p_26 + 512));
    *reinterpret_cast<uint32_t*>(&source[26]) = *reinterpret_cast<uint32_t const*>((p_27 + 512));
    *reinterpret_cast<uint32_t*>(&source[4]) = *reinterpret_cast<uint32_t const*>((p_24 + 4096));
    *reinterpret_cast<uint32_t*>(&source[12]) = *reinterpret_cast<uint32_t const*>((p_25 + 4096));
    *reinterpret_cast<uint32_t*>(&source[20]) = *reinterpret_cast<uint32_t const*>((p_26 + 4096));
    *reinterpret_cast<uint32_t*>(&source[28]) = *reinterpret_cast<uint32_t const*>((p_27 + 4096));
    *reinterpret_cast<uint32_t*>(&source[6]) = *reinterpret_cast<uint32_t const*>((p_24 + 4608));
    *reinterpret_cast<uint32_t*>(&source[14]) = *reinterpret_cast<uint32_t const*>((p_25 + 4608));
    *reinterpret_cast<uint32_t*>(&source[22]) = *reinterpret_cast<uint32_t const*>((p_26 + 4608));
    *reinterpret_cast<uint32_t*>(&source[30]) = *reinterpret_cast<uint32_t const*>((p_27 + 4608));
    *reinterpret_cast<uint32_t*>(&source[32]) = *reinterpret_cast<uint32_t const*>((p_24 + 8192));
    *reinterpret_cast<uint32_t*>(&source[40]) = *reinterpret_cast<uint32_t const*>((p_25 + 8192));
    *reinterpret_cast<uint32_t*>(&source[48]) = *reinterpret_cast<uint32_t const*>((p_26 + 8192));
    *reinterpret_cast<uint32_t*>(&source[56]) = *reinterpret_cast<uint32_t const*>((p_27 + 8192));
    *reinterpret_cast<uint32_t*>(&source[34]) = *reinterpret_cast<uint32_t const*>((p_24 + 8704));
    *reinterpret_cast<uint32_t*>(&source[42]) = *reinterpret_cast<uint32_t const*>((p_25 + 8704));
    *reinterpret_cast<uint32_t*>(&source[50]) = *reinterpret_cast<uint32_t const*>((p_26 + 8704));
    *reinterpret_cast<uint32_t*>(&source[58]) = *reinterpret_cast<uint32_t const*>((p_27 + 8704));
    *reinterpret_cast<uint32_t*>(&source[36]) = *reinterpret_cast<uint32_t const*>((p_24 + 12288));
    *reinterpret_cast<uint32_t*>(&source[44]) = *reinterpret_cast<uint32_t const*>((p_25 + 12288));
    *reinterpret_cast<uint32_t*>(&source[52]) = *reinterpret_cast<uint32_t const*>((p_26 + 12288));
    *reinterpret_cast<uint32_t*>(&source[60]) = *reinterpret_cast<uint32_t const*>((p_27 + 12288));
    *reinterpret_cast<uint32_t*>(&source[38]) = *reinterpret_cast<uint32_t const*>((p_24 + 12800));
    *reinterpret_cast<uint32_t*>(&source[46]) = *reinterpret_cast<uint32_t const*>((p_25 + 12800));
    *reinterpret_cast<uint32_t*>(&source[54]) = *reinterpret_cast<uint32_t const*>((p_26 + 12800));
    *reinterpret_cast<uint32_t*>(&source[62]) = *reinterpret_cast<uint32_t const*>((p_27 + 12800));
    #pragma unroll
    for (int e = 0; e < 64; ++e) acc[e] = acc[e] + float(source[e]) * beta;
  }
  alignas(16) tw::f16 r_4[64];
  tw::vec<float, 64> v;
  #pragma unroll
  for (int e = 0; e < 64; ++e) v[e] = acc[e];
  tw::vec<tw::f16, 64> v_1 = tw::narrow<tw::f16>(v);
  #pragma unroll
  for (int e = 0; e < 64; e += 2) tw::two(r_4[e]) = tw::two(v_1[e]);
  const int t_92 = t_82 ^ ((t_82 & 448) >> 3);
  tw::f16* p_28 = p_20 + t_92;
  tw::f16* p_29 = p_20 + (t_92 ^ 16);
  tw::f16* p_30 = p_20 + (t_92 ^ 32);
  tw::f16* p_31 = p_20 + (t_92 ^ 48);
  *reinterpret_cast<uint32_t*>(p_28) = *reinterpret_cast<uint32_t const*>(&r_4[0]);
  *reinterpret_cast<uint32_t*>(p_29) = *reinterpret_cast<uint32_t const*>(&r_4[8]);
  *reinterpret_cast<uint32_t*>(p_30) = *reinterpret_cast<uint32_t const*>(&r_4[16]);
  *reinterpret_cast<uint32_t*>(p_31) = *reinterpret_cast<uint32_t const*>(&r_4[24]);
  *reinterpret_cast<uint32_t*>((p_28 + 512)) = *reinterpret_cast<uint32_t const*>(&r_4[2]);
  *reinterpret_cast<uint32_t*>((p_29 + 512)) = *reinterpret_cast<uint32_t const*>(&r_4[10]);
  *reinterpret_cast<uint32_t*>((p_30 + 512)) = *reinterpret_cast<uint32_t const*>(&r_4[18]);
  *reinterpret_cast<uint32_t*>((p_31 + 512)) = *reinterpret_cast<uint32_t const*>(&r_4[26]);
  *reinterpret_cast<uint32_t*>((p_28 + 4096)) = *reinterpret_cast<uint32_t const*>(&r_4[4]);
  *reinterpret_cast<uint32_t*>((p_29 + 4096)) = *reinterpret_cast<uint32_t const*>(&r_4[12]);
  *reinterpret_cast<uint32_t*>((p_30 + 4096)) = *reinterpret_cast<uint32_t const*>(&r_4[20]);
  *reinterpret_cast<uint32_t*>((p_31 + 4096)) = *reinterpret_cast<uint32_t const*>(&r_4[28]);
  *reinterpret_cast<uint32_t*>((p_28 + 4608)) = *reinterpret_cast<uint32_t const*>(&r_4[6]);
  *reinterpret_cast<uint32_t*>((p_29 + 4608)) = *reinterpret_cast<uint32_t const*>(&r_4[14]);
  *reinterpret_cast<uint32_t*>((p_30 + 4608)) = *reinterpret_cast<uint32_t const*>(&r_4[22]);
  *reinterpret_cast<uint32_t*>((p_31 + 4608)) = *reinterpret_cast<uint32_t const*>(&r_4[30]);
  *reinterpret_cast<uint32_t*>((p_28 + 8192)) = *reinterpret_cast<uint32_t const*>(&r_4[32]);
  *reinterpret_cast<uint32_t*>((p_29 + 8192)) = *reinterpret_cast<uint32_t const*>(&r_4[40]);
  *reinterpret_cast<uint32_t*>((p_30 + 8192)) = *reinterpret_cast<uint32_t const*>(&r_4[48]);
  *reinterpret_cast<uint32_t*>((p_31 + 8192)) = *reinterpret_cast<uint32_t const*>(&r_4[56]);
  *reinterpret_cast<uint32_t*>((p_28 + 8704)) = *reinterpret_cast<uint32_t const*>(&r_4[34]);
  *reinterpret_cast<uint32_t*>((p_29 + 8704)) = *reinterpret_cast<uint32_t const*>(&r_4[42]);
  *reinterpret_cast<uint32_t*>((p_30 + 8704)) = *reinterpret_cast<uint32_t const*>(&r_4[50]);
  *reinterpret_cast<uint32_t*>((p_31 + 8704)) = *reinterpret_cast<uint32_t const*>(&r_4[58]);
  *reinterpret_cast<uint32_t*>((p_28 + 12288)) = *reinterpret_cast<uint32_t const*>(&r_4[36]);
  *reinterpret_cast<uint32_t*>((p_29 + 12288)) = *reinterpret_cast<uint32_t const*>(&r_4[44]);
  *reinterpret_cast<uint32_t*>((p_30 + 12288)) = *reinterpret_cast<uint32_t const*>(&r_4[52]);
  *reinterpret_cast<uint32_t*>((p_31 + 12288)) = *reinterpret_cast<uint32_t const*>(&r_4[60]);
  *reinterpret_cast<uint32_t*>((p_28 + 12800)) = *reinterpret_cast<uint32_t const*>(&r_4[38]);
  *reinterpret_cast<uint32_t*>((p_29 + 12800)) = *reinterpret_cast<uint32_t const*>(&r_4[46]);
  *reinterpret_cast<uint32_t*>((p_30 + 12800)) = *reinterpret_cast<uint32_t const*>(&r_4[54]);
  *reinterpret_cast<uint32_t*>((p_31 + 12800)) = *reinterpret_cast<uint32_t const*>(&r_4[62]);
  __syncthreads();
  alignas(16) tw::f16 vectors_1[64];
  tw::f16* p_32 = p_20 + (t_75 ^ ((t_75 & 448) >> 3));
  *reinterpret_cast<uint4*>(&vectors_1[0]) = *reinterpret_cast<uint4 const*>(p_32);
  *reinterpret_cast<uint4*>(&vectors_1[8]) = *reinterpret_cast<uint4 const*>((p_32 + 1024));
  *reinterpret_cast<uint4*>(&vectors_1[16]) = *reinterpret_cast<uint4 const*>((p_32 + 2048));
  *reinterpret_cast<uint4*>(&vectors_1[24]) = *reinterpret_cast<uint4 const*>((p_32 + 3072));
  *reinterpret_cast<uint4*>(&vectors_1[32]) = *reinterpret_cast<uint4 const*>((p_32 + 4096));
  *reinterpret_cast<uint4*>(&vectors_1[40]) = *reinterpret_cast<uint4 const*>((p_32 + 5120));
  *reinterpret_cast<uint4*>(&vectors_1[48]) = *reinterpret_cast<uint4 const*>((p_32 + 6144));
  *reinterpret_cast<uint4*>(&vectors_1[56]) = *reinterpret_cast<uint4 const*>((p_32 + 7168));
  const bool t_93 = inside[0];
  const bool t_94 = inside[1];
  const bool t_95 = inside[2];
  const bool t_96 = inside[3];
  const bool t_97 = inside[4];
  const bool t_98 = inside[5];
  const bool t_99 = inside[6];
  const bool t_100 = inside[7];
  tw::store_if<16>(t_93, p_21, &vectors_1[0]);
  tw::store_if<16>(t_94, (p_21 + t_76), &vectors_1[8]);
  tw::store_if<16>(t_95, (p_21 + 2 * t_76), &vectors_1[16]);
  tw::store_if<16>(t_96, (p_21 + 3 * t_76), &vectors_1[24]);
  tw::store_if<16>(t_97, (p_21 + 4 * t_76), &vectors_1[32]);
  tw::store_if<16>(t_98, (p_21 + 5 * t_76), &vectors_1[40]);
  tw::store_if<16>(t_99, (p_21 + 6 * t_76), &vectors_1[48]);
  tw::store_if<16>(t_100, (p_21 + 7 * t_76), &vectors_1[56]);
}
