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

extern "C" __global__ void __launch_bounds__(128)
MultistageGemm_kernel(tw::f16* mA, int mA_shape0, int mA_shape1, int mA_stride0, int mA_stride2, tw::f16* mB, int mB_shape0, int mB_shape1, int mB_stride1, int mB_stride2, tw::f16* mC, int mC_stride0, int mC_stride2, tw::f16* mD, int mD_shape0, int mD_shape1, int mD_stride0, int mD_stride2, float function_alpha, float function_beta) {
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
  tw::f16* p_1 = p + 16384;
  const int k_tiles = (mA_shape1 + 31) / 32;
  const int t = (mD_shape0 + 127) / 128;
  const int t_1 = (mD_shape1 + 127) / 128;
  const int tidx = threadIdx.x;
  alignas(16) float acc[128];
  #pragma unroll
  for (int e = 0; e < 128; ++e) acc[e] = 0.0f;
  int t_2;
  t_2 = tw_rematerialize(t);
  int t_3;
  t_3 = tw_rematerialize(t_1);
  const int t_4 = 8 * t_3;
  const int t_5 = bidx / t_4;
  const int t_6 = tw::multiply(t_5, 8);
  const int t_7 = min(tw::subtract(t_2, t_6), 8);
  const int t_8 = tw::subtract(bidx, tw::multiply(t_5, t_4));
  const int t_9 = tw::add(t_6, tw::floormod<int32_t>(t_8, t_7));
  const int t_10 = tw::floordiv<int32_t>(t_8, t_7);
  const int t_11 = mA_shape1 - k_tiles * 32;
  const int t_12 = mB_shape1 - (mB_shape1 + 31) / 32 * 32;
  const int t_13 = 32 * mB_stride1;
  int t_14;
  t_14 = tw_rematerialize(tidx);
  const int t_15 = 32 * mA_stride0;
  const int t_16 = t_14 % 4;
  const int t_17 = t_14 / 4;
  const int t_18 = t_16 * 8;
  tw::f16* p_2 = mA + bidz * mA_stride2 + t_11 + t_9 * (128 * mA_stride0) + (t_18 + t_17 * mA_stride0);
  const int t_19 = t_18 + t_17 * 32;
  const int t_20 = tw::add(tw::multiply(128, t_9), t_17);
  alignas(4) bool r[4];
  alignas(4) bool r_1[4];
  const bool t_21 = t_20 < mA_shape0;
  r[0] = t_21;
  const bool t_22 = t_11 + 8 * t_16 >= 0;
  r_1[0] = t_21 && t_22;
  const bool t_23 = tw::add(t_20, 32) < mA_shape0;
  r[1] = t_23;
  r_1[1] = t_23 && t_22;
  const bool t_24 = tw::add(t_20, 64) < mA_shape0;
  r[2] = t_24;
  r_1[2] = t_24 && t_22;
  const bool t_25 = tw::add(t_20, 96) < mA_shape0;
  r[3] = t_25;
  r_1[3] = t_25 && t_22;
  const int t_26 = 8 * mB_stride1;
  const int t_27 = t_14 % 16;
  const int t_28 = t_14 / 16;
  tw::f16* p_3 = mB + bidz * mB_stride2 + t_12 * mB_stride1 + t_10 * 128 + (t_27 * 8 + t_28 * mB_stride1);
  const int t_29 = t_14 / 8;
  const int t_30 = t_14 % 8 * 8 + t_29 % 2 * 512 + t_29 / 2 * 64;
  const int t_31 = t_12 + t_28;
  bool r_2[1];
  alignas(4) bool r_3[4];
  const bool t_32 = tw::add(tw::multiply(128, t_10), 8 * t_27) < mB_shape0;
  r_2[0] = t_32;
  r_3[0] = t_32 && t_31 >= 0;
  r_3[1] = t_32 && t_31 + 8 >= 0;
  r_3[2] = t_32 && t_31 + 16 >= 0;
  r_3[3] = t_32 && t_31 + 24 >= 0;
  alignas(16) tw::f16 tCrA[64];
  alignas(16) tw::f16 tCrB[64];
  const int t_33 = t_28 % 2;
  const int t_34 = t_28 / 2;
  const int t_35 = t_27 * 32 + t_33 * 8 + t_34 % 2 * 512;
  const int t_36 = t_27 % 8 * 64 + t_27 / 8 * 1024 + t_33 * 16 + t_34 / 2 * 8;
  if (k_tiles > 0) {
    const bool t_37 = r_1[0];
    const bool t_38 = r_1[1];
    const bool t_39 = r_1[2];
    const bool t_40 = r_1[3];
    const int t_41 = 2 * t_15;
    const int t_42 = 3 * t_15;
    const int t_43 = t_19 ^ ((t_19 & 192) >> 3);
    tw::f16* p_4 = p + t_43;
    cp_async_cg_16_zfill(tw::shared_address(p_4), p_2, t_37 ? 16 : 0);
    cp_async_cg_16_zfill(tw::shared_address(p_4 + 1024), (p_2 + t_15), t_38 ? 16 : 0);
    cp_async_cg_16_zfill(tw::shared_address(p_4 + 2048), (p_2 + t_41), t_39 ? 16 : 0);
    cp_async_cg_16_zfill(tw::shared_address(p_4 + 3072), (p_2 + t_42), t_40 ? 16 : 0);
    const bool t_44 = r_3[0];
    const bool t_45 = r_3[1];
    const bool t_46 = r_3[2];
    const bool t_47 = r_3[3];
    const int t_48 = 2 * t_26;
    const int t_49 = 3 * t_26;
    const int t_50 = t_30 ^ ((t_30 & 448) >> 3);
    tw::f16* p_5 = p_1 + t_50;
    cp_async_cg_16_zfill(tw::shared_address(p_5), p_3, t_44 ? 16 : 0);
    cp_async_cg_16_zfill(tw::shared_address(p_5 + 1024), (p_3 + t_26), t_45 ? 16 : 0);
    cp_async_cg_16_zfill(tw::shared_address(p_5 + 2048), (p_3 + t_48), t_46 ? 16 : 0);
    cp_async_cg_16_zfill(tw::shared_address(p_5 + 3072), (p_3 + t_49), t_47 ? 16 : 0);
    asm volatile("cp.async.commit_group;" : : : "memory");
    if (k_tiles <= 1) {
      #pragma unroll
      for (int e = 0; e < 4; ++e) r[e] = false;
      #pragma unroll
      for (int e = 0; e < 4; ++e) r_2[0] = false;
    }
    const int t_51 = k_tiles - 1;
    const int t_52 = min(1, t_51);
    tw::f16* p_6 = p_2 + t_52 * 32;
    const bool t_53 = r[0];
    const bool t_54 = r[1];
    const bool t_55 = r[2];
    const bool t_56 = r[3];
    cp_async_cg_16_zfill(tw::shared_address(p_4 + 4096), p_6, t_53 ? 16 : 0);
    cp_async_cg_16_zfill(tw::shared_address(p_4 + 5120), (p_6 + t_15), t_54 ? 16 : 0);
    cp_async_cg_16_zfill(tw::shared_address(p_4 + 6144), (p_6 + t_41), t_55 ? 16 : 0);
    cp_async_cg_16_zfill(tw::shared_address(p_4 + 7168), (p_6 + t_42), t_56 ? 16 : 0);
    tw::f16* p_7 = p_3 + t_52 * t_13;
    const bool t_57 = r_2[0];
    cp_async_cg_16_zfill(tw::shared_address(p_5 + 4096), p_7, t_57 ? 16 : 0);
    cp_async_cg_16_zfill(tw::shared_address(p_5 + 5120), (p_7 + t_26), t_57 ? 16 : 0);
    cp_async_cg_16_zfill(tw::shared_address(p_5 + 6144), (p_7 + t_48), t_57 ? 16 : 0);
    cp_async_cg_16_zfill(tw::shared_address(p_5 + 7168), (p_7 + t_49), t_57 ? 16 : 0);
    asm volatile("cp.async.commit_group;" : : : "memory");
    if (k_tiles <= 2) {
      #pragma unroll
      for (int e = 0; e < 4; ++e) r[e] = false;
      #pragma unroll
      for (int e = 0; e < 4; ++e) r_2[0] = false;
    }
    const int t_58 = min(2, t_51);
    tw::f16* p_8 = p_2 + t_58 * 32;
    const bool t_59 = r[0];
    const bool t_60 = r[1];
    const bool t_61 = r[2];
    const bool t_62 = r[3];
    cp_async_cg_16_zfill(tw::shared_address(p_4 + 8192), p_8, t_59 ? 16 : 0);
    cp_async_cg_16_zfill(tw::shared_address(p_4 + 9216), (p_8 + t_15), t_60 ? 16 : 0);
    cp_async_cg_16_zfill(tw::shared_address(p_4 + 10240), (p_8 + t_41), t_61 ? 16 : 0);
    cp_async_cg_16_zfill(tw::shared_address(p_4 + 11264), (p_8 + t_42), t_62 ? 16 : 0);
    tw::f16* p_9 = p_3 + t_58 * t_13;
    const bool t_63 = r_2[0];
    cp_async_cg_16_zfill(tw::shared_address(p_5 + 8192), p_9, t_63 ? 16 : 0);
    cp_async_cg_16_zfill(tw::shared_address(p_5 + 9216), (p_9 + t_26), t_63 ? 16 : 0);
    cp_async_cg_16_zfill(tw::shared_address(p_5 + 10240), (p_9 + t_48), t_63 ? 16 : 0);
    cp_async_cg_16_zfill(tw::shared_address(p_5 + 11264), (p_9 + t_49), t_63 ? 16 : 0);
    asm volatile("cp.async.commit_group;" : : : "memory");
    if (k_tiles <= 3) {
      #pragma unroll
      for (int e = 0; e < 4; ++e) r[e] = false;
      #pragma unroll
      for (int e = 0; e < 4; ++e) r_2[0] = false;
    }
    asm volatile("cp.async.wait_group 2;" : : : "memory");
    __syncthreads();
    const int t_64 = t_35 ^ ((t_35 & 192) >> 3);
    tw::f16* p_10 = p + t_64;
    ldmatrix_x4(tw::shared_address(p_10), tw::reg32(tCrA[0]), tw::reg32(tCrA[2]), tw::reg32(tCrA[4]), tw::reg32(tCrA[6]));
    ldmatrix_x4(tw::shared_address(p_10 + 1024), tw::reg32(tCrA[16]), tw::reg32(tCrA[18]), tw::reg32(tCrA[20]), tw::reg32(tCrA[22]));
    ldmatrix_x4(tw::shared_address(p_10 + 2048), tw::reg32(tCrA[32]), tw::reg32(tCrA[34]), tw::reg32(tCrA[36]), tw::reg32(tCrA[38]));
    ldmatrix_x4(tw::shared_address(p_10 + 3072), tw::reg32(tCrA[48]), tw::reg32(tCrA[50]), tw::reg32(tCrA[52]), tw::reg32(tCrA[54]));
    const int t_65 = t_36 ^ ((t_36 & 448) >> 3);
    tw::f16* p_11 = p_1 + t_65;
    const int t_66 = t_65 ^ 32;
    tw::f16* p_12 = p_1 + t_66;
    ldmatrix_x4_trans(tw::shared_address(p_11), tw::reg32(tCrB[0]), tw::reg32(tCrB[2]), tw::reg32(tCrB[4]), tw::reg32(tCrB[6]));
    ldmatrix_x4_trans(tw::shared_address(p_12), tw::reg32(tCrB[8]), tw::reg32(tCrB[10]), tw::reg32(tCrB[12]), tw::reg32(tCrB[14]));
    ldmatrix_x4_trans(tw::shared_address(p_11 + 512), tw::reg32(tCrB[16]), tw::reg32(tCrB[18]), tw::reg32(tCrB[20]), tw::reg32(tCrB[22]));
    ldmatrix_x4_trans(tw::shared_address(p_12 + 512), tw::reg32(tCrB[24]), tw::reg32(tCrB[26]), tw::reg32(tCrB[28]), tw::reg32(tCrB[30]));
    int write = 3;
    int read = 0;
    #pragma unroll 1
    for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
      const int ahead = min(k_tile + 3, t_51);
      const int t_67 = read * 4096;
      tw::f16* p_13 = p + t_67 + (t_64 ^ 16);
      ldmatrix_x4(tw::shared_address(p_13), tw::reg32(tCrA[8]), tw::reg32(tCrA[10]), tw::reg32(tCrA[12]), tw::reg32(tCrA[14]));
      ldmatrix_x4(tw::shared_address(p_13 + 1024), tw::reg32(tCrA[24]), tw::reg32(tCrA[26]), tw::reg32(tCrA[28]), tw::reg32(tCrA[30]));
      ldmatrix_x4(tw::shared_address(p_13 + 2048), tw::reg32(tCrA[40]), tw::reg32(tCrA[42]), tw::reg32(tCrA[44]), tw::reg32(tCrA[46]));
      ldmatrix_x4(tw::shared_address(p_13 + 3072), tw::reg32(tCrA[56]), tw::reg32(tCrA[58]), tw::reg32(tCrA[60]), tw::reg32(tCrA[62]));
      tw::f16* p_14 = p_1 + t_67;
      tw::f16* p_15 = p_14 + t_65;
      tw::f16* p_16 = p_14 + t_66;
      ldmatrix_x4_trans(tw::shared_address(p_15 + 2048), tw::reg32(tCrB[32]), tw::reg32(tCrB[34]), tw::reg32(tCrB[36]), tw::reg32(tCrB[38]));
      ldmatrix_x4_trans(tw::shared_address(p_16 + 2048), tw::reg32(tCrB[40]), tw::reg32(tCrB[42]), tw::reg32(tCrB[44]), tw::reg32(tCrB[46]));
      ldmatrix_x4_trans(tw::shared_address(p_15 + 2560), tw::reg32(tCrB[48]), tw::reg32(tCrB[50]), tw::reg32(tCrB[52]), tw::reg32(tCrB[54]));
      ldmatrix_x4_trans(tw::shared_address(p_16 + 2560), tw::reg32(tCrB[56]), tw::reg32(tCrB[58]), tw::reg32(tCrB[60]), tw::reg32(tCrB[62]));
      tw::f16* p_17 = p_2 + ahead * 32;
      const int t_68 = write * 4096;
      const bool t_69 = r[0];
      const bool t_70 = r[1];
      const bool t_71 = r[2];
      const bool t_72 = r[3];
      tw::f16* p_18 = p + t_68 + t_43;
      cp_async_cg_16_zfill(tw::shared_address(p_18), p_17, t_69 ? 16 : 0);
      cp_async_cg_16_zfill(tw::shared_address(p_18 + 1024), (p_17 + t_15), t_70 ? 16 : 0);
      cp_async_cg_16_zfill(tw::shared_address(p_18 + 2048), (p_17 + t_41), t_71 ? 16 : 0);
      cp_async_cg_16_zfill(tw::shared_address(p_18 + 3072), (p_17 + t_42), t_72 ? 16 : 0);
      tw::f16* p_19 = p_3 + ahead * t_13;
      const bool t_73 = r_2[0];
      tw::f16* p_20 = p_1 + t_68 + t_50;
      cp_async_cg_16_zfill(tw::shared_address(p_20), p_19, t_73 ? 16 : 0);
      cp_async_cg_16_zfill(tw::shared_address(p_20 + 1024), (p_19 + t_26), t_73 ? 16 : 0);
      cp_async_cg_16_zfill(tw::shared_address(p_20 + 2048), (p_19 + t_48), t_73 ? 16 : 0);
      cp_async_cg_16_zfill(tw::shared_address(p_20 + 3072), (p_19 + t_49), t_73 ? 16 : 0);
      asm volatile("cp.async.commit_group;" : : : "memory");
      #pragma unroll
      for (int m = 0; m < 4; ++m) {
        #pragma unroll
        for (int n = 0; n < 8; ++n) {
          int const s = m & 1 ? 7 - n : n;
          mma_16x8x16_f32f16f16f32_tn(acc[4 * m + 16 * s], acc[4 * m + 16 * s + 1], acc[4 * m + 16 * s + 2], acc[4 * m + 16 * s + 3], tw::reg32(tCrA[16 * m]), tw::reg32(tCrA[16 * m + 2]), tw::reg32(tCrA[16 * m + 4]), tw::reg32(tCrA[16 * m + 6]), tw::reg32(tCrB[4 * s]), tw::reg32(tCrB[4 * s + 2]));
        }
      }
      const int t_74 = tw::add(write, 1);
      const int write_1 = t_74 == 4 ? 0 : t_74;
      const int t_75 = tw::add(read, 1);
      const int read_1 = t_75 == 4 ? 0 : t_75;
      asm volatile("cp.async.wait_group 2;" : : : "memory");
      __syncthreads();
      const int t_76 = read_1 * 4096;
      tw::f16* p_21 = p + t_76 + t_64;
      ldmatrix_x4(tw::shared_address(p_21), tw::reg32(tCrA[0]), tw::reg32(tCrA[2]), tw::reg32(tCrA[4]), tw::reg32(tCrA[6]));
      ldmatrix_x4(tw::shared_address(p_21 + 1024), tw::reg32(tCrA[16]), tw::reg32(tCrA[18]), tw::reg32(tCrA[20]), tw::reg32(tCrA[22]));
      ldmatrix_x4(tw::shared_address(p_21 + 2048), tw::reg32(tCrA[32]), tw::reg32(tCrA[34]), tw::reg32(tCrA[36]), tw::reg32(tCrA[38]));
      ldmatrix_x4(tw::shared_address(p_21 + 3072), tw::reg32(tCrA[48]), tw::reg32(tCrA[50]), tw::reg32(tCrA[52]), tw::reg32(tCrA[54]));
      tw::f16* p_22 = p_1 + t_76;
      tw::f16* p_23 = p_22 + t_65;
      tw::f16* p_24 = p_22 + t_66;
      ldmatrix_x4_trans(tw::shared_address(p_23), tw::reg32(tCrB[0]), tw::reg32(tCrB[2]), tw::reg32(tCrB[4]), tw::reg32(tCrB[6]));
      ldmatrix_x4_trans(tw::shared_address(p_24), tw::reg32(tCrB[8]), tw::reg32(tCrB[10]), tw::reg32(tCrB[12]), tw::reg32(tCrB[14]));
      ldmatrix_x4_trans(tw::shared_address(p_23 + 512), tw::reg32(tCrB[16]), tw::reg32(tCrB[18]), tw::reg32(tCrB[20]), tw::reg32(tCrB[22]));
      ldmatrix_x4_trans(tw::shared_address(p_24 + 512), tw::reg32(tCrB[24]), tw::reg32(tCrB[26]), tw::reg32(tCrB[28]), tw::reg32(tCrB[30]));
      #pragma unroll
      for (int m_1 = 0; m_1 < 4; ++m_1) {
        #pragma unroll
        for (int n_1 = 0; n_1 < 8; ++n_1) {
          int const s_1 = m_1 & 1 ? 7 - n_1 : n_1;
          mma_16x8x16_f32f16f16f32_tn(acc[4 * m_1 + 16 * s_1], acc[4 * m_1 + 16 * s_1 + 1], acc[4 * m_1 + 16 * s_1 + 2], acc[4 * m_1 + 16 * s_1 + 3], tw::reg32(tCrA[16 * m_1 + 8]), tw::reg32(tCrA[16 * m_1 + 8 + 2]), tw::reg32(tCrA[16 * m_1 + 8 + 4]), tw::reg32(tCrA[16 * m_1 + 8 + 6]), tw::reg32(tCrB[4 * s_1 + 32]), tw::reg32(tCrB[4 * s_1 + 32 + 2]));
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
  int t_77;
  t_77 = tw_rematerialize(bidx);
  int t_78;
  t_78 = tw_rematerialize(t);
  int t_79;
  t_79 = tw_rematerialize(t_1);
  const int t_80 = 8 * t_79;
  const int t_81 = t_77 / t_80;
  const int t_82 = tw::multiply(t_81, 8);
  const int t_83 = min(tw::subtract(t_78, t_82), 8);
  const int t_84 = tw::subtract(t_77, tw::multiply(t_81, t_80));
  const int t_85 = tw::add(t_82, tw::floormod<int32_t>(t_84, t_83));
  const int t_86 = tw::floordiv<int32_t>(t_84, t_83);
  const int t_87 = t_86 * 128;
  const int t_88 = tidx_1 % 16;
  const int t_89 = tidx_1 / 16;
  const int t_90 = t_88 % 8 * 8 + t_88 / 8 * 8192 + t_89 * 64;
  const int t_91 = 8 * mD_stride0;
  const int t_92 = t_88 * 8;
  tw::f16* p_25 = mD + bidz * mD_stride2 + (t_85 * (128 * mD_stride0) + t_87) + (t_92 + t_89 * mD_stride0);
  const int t_93 = 8 * mC_stride0;
  tw::f16* p_26 = mC + bidz * mC_stride2 + (t_85 * (128 * mC_stride0) + t_87) + (t_92 + t_89 * mC_stride0);
  const int t_94 = tw::add(tw::multiply(128, t_85), t_89);
  alignas(16) bool inside[16];
  const bool t_95 = tw::add(tw::multiply(128, t_86), 8 * t_88) < mD_shape1;
  inside[0] = t_94 < mD_shape0 && t_95;
  inside[1] = tw::add(t_94, 8) < mD_shape0 && t_95;
  inside[2] = tw::add(t_94, 16) < mD_shape0 && t_95;
  inside[3] = tw::add(t_94, 24) < mD_shape0 && t_95;
  inside[4] = tw::add(t_94, 32) < mD_shape0 && t_95;
  inside[5] = tw::add(t_94, 40) < mD_shape0 && t_95;
  inside[6] = tw::add(t_94, 48) < mD_shape0 && t_95;
  inside[7] = tw::add(t_94, 56) < mD_shape0 && t_95;
  inside[8] = tw::add(t_94, 64) < mD_shape0 && t_95;
  inside[9] = tw::add(t_94, 72) < mD_shape0 && t_95;
  inside[10] = tw::add(t_94, 80) < mD_shape0 && t_95;
  inside[11] = tw::add(t_94, 88) < mD_shape0 && t_95;
  inside[12] = tw::add(t_94, 96) < mD_shape0 && t_95;
  inside[13] = tw::add(t_94, 104) < mD_shape0 && t_95;
  inside[14] = tw::add(t_94, 112) < mD_shape0 && t_95;
  inside[15] = tw::add(t_94, 120) < mD_shape0 && t_95;
  const int t_96 = tidx_1 % 32;
  const int t_97 = t_96 % 4 * 2 + t_96 / 4 * 64 + (tidx_1 / 32 % 2 * 1024 + tidx_1 / 64 * 8);
  if (function_alpha != 1.0f) {
    #pragma unroll
    for (int e = 0; e < 128; ++e) acc[e] = acc[e] * function_alpha;
  }
  if (function_beta != 0.0f) {
    alignas(16) tw::f16 vectors[128];
    #pragma unroll
    for (int e = 0; e < 128; e += 2) tw::two(vectors[e]) = tw::pair(tw::f16{0x0000}, tw::f16{0x0000});
    const bool t_98 = inside[0];
    const bool t_99 = inside[1];
    const bool t_100 = inside[2];
    const bool t_101 = inside[3];
    const bool t_102 = inside[4];
    const bool t_103 = inside[5];
    const bool t_104 = inside[6];
    const bool t_105 = inside[7];
    const bool t_106 = inside[8];
    const bool t_107 = inside[9];
    const bool t_108 = inside[10];
    const bool t_109 = inside[11];
    const bool t_110 = inside[12];
    const bool t_111 = inside[13];
    const bool t_112 = inside[14];
    const bool t_113 = inside[15];
    tw::load_if<16>(t_98, &vectors[0], p_26);
    tw::load_if<16>(t_99, &vectors[8], (p_26 + t_93));
    tw::load_if<16>(t_100, &vectors[16], (p_26 + 2 * t_93));
    tw::load_if<16>(t_101, &vectors[24], (p_26 + 3 * t_93));
    tw::load_if<16>(t_102, &vectors[32], (p_26 + 4 * t_93));
    tw::load_if<16>(t_103, &vectors[40], (p_26 + 5 * t_93));
    tw::load_if<16>(t_104, &vectors[48], (p_26 + 6 * t_93));
    tw::load_if<16>(t_105, &vectors[56], (p_26 + 7 * t_93));
    tw::load_if<16>(t_106, &vectors[64], (p_26 + 8 * t_93));
    tw::load_if<16>(t_107, &vectors[72], (p_26 + 9 * t_93));
    tw::load_if<16>(t_108, &vectors[80], (p_26 + 10 * t_93));
    tw::load_if<16>(t_109, &vectors[88], (p_26 + 11 * t_93));
    tw::load_if<16>(t_110, &vectors[96], (p_26 + 12 * t_93));
    tw::load_if<16>(t_111, &vectors[104], (p_26 + 13 * t_93));
    tw::load_if<16>(t_112, &vectors[112], (p_26 + 14 * t_93));
    tw::load_if<16>(t_113, &vectors[120], (p_26 + 15 * t_93));
    tw::f16* p_27 = p + (t_90 ^ ((t_90 & 448) >> 3));
    *reinterpret_cast<uint4*>(p_27) = *reinterpret_cast<uint4 const*>(&vectors[0]);
    *reinterpret_cast<uint4*>((p_27 + 512)) = *reinterpret_cast<uint4 const*>(&vectors[8]);
    *reinterpret_cast<uint4*>((p_27 + 1024)) = *reinterpret_cast<uint4 const*>(&vectors[16]);
    *reinterpret_cast<uint4*>((p_27 + 1536)) = *reinterpret_cast<uint4 const*>(&vectors[24]);
    *reinterpret_cast<uint4*>((p_27 + 2048)) = *reinterpret_cast<uint4 const*>(&vectors[32]);
    *reinterpret_cast<uint4*>((p_27 + 2560)) = *reinterpret_cast<uint4 const*>(&vectors[40]);
    *reinterpret_cast<uint4*>((p_27 + 3072)) = *reinterpret_cast<uint4 const*>(&vectors[48]);
    *reinterpret_cast<uint4*>((p_27 + 3584)) = *reinterpret_cast<uint4 const*>(&vectors[56]);
    *reinterpret_cast<uint4*>((p_27 + 4096)) = *reinterpret_cast<uint4 const*>(&vectors[64]);
    *reinterpret_cast<uint4*>((p_27 + 4608)) = *reinterpret_cast<uint4 const*>(&vectors[72]);
    *reinterpret_cast<uint4*>((p_27 + 5120)) = *reinterpret_cast<uint4 const*>(&vectors[80]);
    *reinterpret_cast<uint4*>((p_27 + 5632)) = *reinterpret_cast<uint4 const*>(&vectors[88]);
    *reinterpret_cast<uint4*>((p_27 + 6144)) = *reinterpret_cast<uint4 const*>(&vectors[96]);
    *reinterpret_cast<uint4*>((p_27 + 6656)) = *reinterpret_cast<uint4 const*>(&vectors[104]);
    *reinterpret_cast<uint4*>((p_27 + 7168)) = *reinterpret_cast<uint4 const*>(&vectors[112]);
    *reinterpret_cast<uint4*>((p_27 + 7680)) = *reinterpret_cast<uint4 const*>(&vectors[120]);
    __syncthreads();
    alignas(16) tw::f16 source[128];
    const int t_114 = t_97 ^ ((t_97 & 448) >> 3);
    tw::f16* p_28 = p + t_114;
    tw::f16* p_29 = p + (t_114 ^ 16);
    tw::f16* p_30 = p + (t_114 ^ 32);
    tw::f16* p_31 = p + (t_114 ^ 48);
    *reinterpret_cast<uint32_t*>(&source[0]) = *reinterpret_cast<uint32_t const*>(p_28);
    *reinterpret_cast<uint32_t*>(&source[16]) = *reinterpret_cast<uint32_t const*>(p_29);
    *reinterpret_cast<uint32_t*>(&source[32]) = *reinterpret_cast<uint32_t const*>(p_30);
    *reinterpret_cast<uint32_t*>(&source[48]) = *reinterpret_cast<uint32_t const*>(p_31);
    *reinterpret_cast<uint32_t*>(&source[2]) = *reinterpret_cast<uint32_t const*>((p_28 + 512));
    *reinterpret_cast<uint32_t*>(&source[18]) = *reinterpret_cast<uint32_t const*>((p_29 + 512));
    *reinterpret_cast<uint32_t*>(&source[34]) = *reinterpret_cast<uint32_t const*>((p_30 + 512));
    *reinterpret_cast<uint32_t*>(&source[50]) = *reinterpret_cast<uint32_t const*>((p_31 + 512));
    *reinterpret_cast<uint32_t*>(&source[4]) = *reinterpret_cast<uint32_t const*>((p_28 + 2048));
    *reinterpret_cast<uint32_t*>(&source[20]) = *reinterpret_cast<uint32_t const*>((p_29 + 2048));
    *reinterpret_cast<uint32_t*>(&source[36]) = *reinterpret_cast<uint32_t const*>((p_30 + 2048));
    *reinterpret_cast<uint32_t*>(&source[52]) = *reinterpret_cast<uint32_t const*>((p_31 + 2048));
    *reinterpret_cast<uint32_t*>(&source[6]) = *reinterpret_cast<uint32_t const*>((p_28 + 2560));
    *reinterpret_cast<uint32_t*>(&source[22]) = *reinterpret_cast<uint32_t const*>((p_29 + 2560));
    *reinterpret_cast<uint32_t*>(&source[38]) = *reinterpret_cast<uint32_t const*>((p_30 + 2560));
    *reinterpret_cast<uint32_t*>(&source[54]) = *reinterpret_cast<uint32_t const*>((p_31 + 2560));
    *reinterpret_cast<uint32_t*>(&source[8]) = *reinterpret_cast<uint32_t const*>((p_28 + 4096));
    *reinterpret_cast<uint32_t*>(&source[24]) = *reinterpret_cast<uint32_t const*>((p_29 + 4096));
    *reinterpret_cast<uint32_t*>(&source[40]) = *reinterpret_cast<uint32_t const*>((p_30 + 4096));
    *reinterpret_cast<uint32_t*>(&source[56]) = *reinterpret_cast<uint32_t const*>((p_31 + 4096));
    *reinterpret_cast<uint32_t*>(&source[10]) = *reinterpret_cast<uint32_t const*>((p_28 + 4608));
    *reinterpret_cast<uint32_t*>(&source[26]) = *reinterpret_cast<uint32_t const*>((p_29 + 4608));
    *reinterpret_cast<uint32_t*>(&source[42]) = *reinterpret_cast<uint32_t const*>((p_30 + 4608));
    *reinterpret_cast<uint32_t*>(&source[58]) = *reinterpret_cast<uint32_t const*>((p_31 + 4608));
    *reinterpret_cast<uint32_t*>(&source[12]) = *reinterpret_cast<uint32_t const*>((p_28 + 6144));
    *reinterpret_cast<uint32_t*>(&source[28]) = *reinterpret_cast<uint32_t const*>((p_29 + 6144));
    *reinterpret_cast<uint32_t*>(&source[44]) = *reinterpret_cast<uint32_t const*>((p_30 + 6144));
    *reinterpret_cast<uint32_t*>(&source[60]) = *reinterpret_cast<uint32_t const*>((p_31 + 6144));
    *reinterpret_cast<uint32_t*>(&source[14]) = *reinterpret_cast<uint32_t const*>((p_28 + 6656));
    *reinterpret_cast<uint32_t*>(&source[30]) = *reinterpret_cast<uint32_t const*>((p_29 + 6656));
    *reinterpret_cast<uint32_t*>(&source[46]) = *reinterpret_cast<uint32_t const*>((p_30 + 6656));
    *reinterpret_cast<uint32_t*>(&source[62]) = *reinterpret_cast<uint32_t const*>((p_31 + 6656));
    *reinterpret_cast<uint32_t*>(&source[64]) = *reinterpret_cast<uint32_t const*>((p_28 + 8192));
    *reinterpret_cast<uint32_t*>(&source[80]) = *reinterpret_cast<uint32_t const*>((p_29 + 8192));
    *reinterpret_cast<uint32_t*>(&source[96]) = *reinterpret_cast<uint32_t const*>((p_30 + 8192));
    *reinterpret_cast<uint32_t*>(&source[112]) = *reinterpret_cast<uint32_t const*>((p_31 + 8192));
    *reinterpret_cast<uint32_t*>(&source[66]) = *reinterpret_cast<uint32_t const*>((p_28 + 8704));
    *reinterpret_cast<uint32_t*>(&source[82]) = *reinterpret_cast<uint32_t const*>((p_29 + 8704));
    *reinterpret_cast<uint32_t*>(&source[98]) = *reinterpret_cast<uint32_t const*>((p_30 + 8704));
    *reinterpret_cast<uint32_t*>(&source[114]) = *reinterpret_cast<uint32_t const*>((p_31 + 8704));
    *reinterpret_cast<uint32_t*>(&source[68]) = *reinterpret_cast<uint32_t const*>((p_28 + 10240));
    *reinterpret_cast<uint32_t*>(&source[84]) = *reinterpret_cast<uint32_t const*>((p_29 + 10240));
    *reinterpret_cast<uint32_t*>(&source[100]) = *reinterpret_cast<uint32_t const*>((p_30 + 10240));
    *reinterpret_cast<uint32_t*>(&source[116]) = *reinterpret_cast<uint32_t const*>((p_31 + 10240));
    *reinterpret_cast<uint32_t*>(&source[70]) = *reinterpret_cast<uint32_t const*>((p_28 + 10752));
    *reinterpret_cast<uint32_t*>(&source[86]) = *reinterpret_cast<uint32_t const*>((p_29 + 10752));
    *reinterpret_cast<uint32_t*>(&source[102]) = *reinterpret_cast<uint32_t const*>((p_30 + 10752));
    *reinterpret_cast<uint32_t*>(&source[118]) = *reinterpret_cast<uint32_t const*>((p_31 + 10752));
    *reinterpret_cast<uint32_t*>(&source[72]) = *reinterpret_cast<uint32_t const*>((p_28 + 12288));
    *reinterpret_cast<uint32_t*>(&source[88]) = *reinterpret_cast<uint32_t const*>((p_29 + 12288));
    *reinterpret_cast<uint32_t*>(&source[104]) = *reinterpret_cast<uint32_t const*>((p_30 + 12288));
    *reinterpret_cast<uint32_t*>(&source[120]) = *reinterpret_cast<uint32_t const*>((p_31 + 12288));
    *reinterpret_cast<uint32_t*>(&source[74]) = *reinterpret_cast<uint32_t const*>((p_28 + 12800));
    *reinterpret_cast<uint32_t*>(&source[90]) = *reinterpret_cast<uint32_t const*>((p_29 + 12800));
    *reinterpret_cast<uint32_t*>(&source[106]) = *reinterpret_cast<uint32_t const*>((p_30 + 12800));
    *reinterpret_cast<uint32_t*>(&source[122]) = *reinterpret_cast<uint32_t const*>((p_31 + 12800));
    *reinterpret_cast<uint32_t*>(&source[76]) = *reinterpret_cast<uint32_t const*>((p_28 + 14336));
    *reinterpret_cast<uint32_t*>(&source[92]) = *reinterpret_cast<uint32_t const*>((p_29 + 14336));
    *reinterpret_cast<uint32_t*>(&source[108]) = *reinterpret_cast<uint32_t const*>((p_30 + 14336));
    *reinterpret_cast<uint32_t*>(&source[124]) = *reinterpret_cast<uint32_t const*>((p_31 + 14336));
    *reinterpret_cast<uint32_t*>(&source[78]) = *reinterpret_cast<uint32_t const*>((p_28 + 14848));
    *reinterpret_cast<uint32_t*>(&source[94]) = *reinterpret_cast<uint32_t const*>((p_29 + 14848));
    *reinterpret_cast<uint32_t*>(&source[110]) = *reinterpret_cast<uint32_t const*>((p_30 + 14848));
    *reinterpret_cast<uint32_t*>(&source[126]) = *reinterpret_cast<uint32_t const*>((p_31 + 14848));
    #pragma unroll
    for (int e = 0; e < 128; ++e) acc[e] = acc[e] + float(source[e]) * function_beta;
  }
  alignas(16) tw::f16 r_4[128];
  tw::vec<float, 128> v;
  #pragma unroll
  for (int e = 0; e < 128; ++e) v[e] = acc[e];
  tw::vec<tw::f16, 128> v_1 = tw::narrow<tw::f16>(v);
  #pragma unroll
  for (int e = 0; e < 128; e += 2) tw::two(r_4[e]) = tw::two(v_1[e]);
  const int t_115 = t_97 ^ ((t_97 & 448) >> 3);
  tw::f16* p_32 = p + t_115;
  tw::f16* p_33 = p + (t_115 ^ 16);
  tw::f16* p_34 = p + (t_115 ^ 32);
  tw::f16* p_35 = p + (t_115 ^ 48);
  *reinterpret_cast<uint32_t*>(p_32) = *reinterpret_cast<uint32_t const*>(&r_4[0]);
  *reinterpret_cast<uint32_t*>(p_33) = *reinterpret_cast<uint32_t const*>(&r_4[16]);
  *reinterpret_cast<uint32_t*>(p_34) = *reinterpret_cast<uint32_t const*>(&r_4[32]);
  *reinterpret_cast<uint32_t*>(p_35) = *reinterpret_cast<uint32_t const*>(&r_4[48]);
  *reinterpret_cast<uint32_t*>((p_32 + 512)) = *reinterpret_cast<uint32_t const*>(&r_4[2]);
  *reinterpret_cast<uint32_t*>((p_33 + 512)) = *reinterpret_cast<uint32_t const*>(&r_4[18]);
  *reinterpret_cast<uint32_t*>((p_34 + 512)) = *reinterpret_cast<uint32_t const*>(&r_4[34]);
  *reinterpret_cast<uint32_t*>((p_35 + 512)) = *reinterpret_cast<uint32_t const*>(&r_4[50]);
  *reinterpret_cast<uint32_t*>((p_32 + 2048)) = *reinterpret_cast<uint32_t const*>(&r_4[4]);
  *reinterpret_cast<uint32_t*>((p_33 + 2048)) = *reinterpret_cast<uint32_t const*>(&r_4[20]);
  *reinterpret_cast<uint32_t*>((p_34 + 2048)) = *reinterpret_cast<uint32_t const*>(&r_4[36]);
  *reinterpret_cast<uint32_t*>((p_35 + 2048)) = *reinterpret_cast<uint32_t const*>(&r_4[52]);
  *reinterpret_cast<uint32_t*>((p_32 + 2560)) = *reinterpret_cast<uint32_t const*>(&r_4[6]);
  *reinterpret_cast<uint32_t*>((p_33 + 2560)) = *reinterpret_cast<uint32_t const*>(&r_4[22]);
  *reinterpret_cast<uint32_t*>((p_34 + 2560)) = *reinterpret_cast<uint32_t const*>(&r_4[38]);
  *reinterpret_cast<uint32_t*>((p_35 + 2560)) = *reinterpret_cast<uint32_t const*>(&r_4[54]);
  *reinterpret_cast<uint32_t*>((p_32 + 4096)) = *reinterpret_cast<uint32_t const*>(&r_4[8]);
  *reinterpret_cast<uint32_t*>((p_33 + 4096)) = *reinterpret_cast<uint32_t const*>(&r_4[24]);
  *reinterpret_cast<uint32_t*>((p_34 + 4096)) = *reinterpret_cast<uint32_t const*>(&r_4[40]);
  *reinterpret_cast<uint32_t*>((p_35 + 4096)) = *reinterpret_cast<uint32_t const*>(&r_4[56]);
  *reinterpret_cast<uint32_t*>((p_32 + 4608)) = *reinterpret_cast<uint32_t const*>(&r_4[10]);
  *reinterpret_cast<uint32_t*>((p_33 + 4608)) = *reinterpret_cast<uint32_t const*>(&r_4[26]);
  *reinterpret_cast<uint32_t*>((p_34 + 4608)) = *reinterpret_cast<uint32_t const*>(&r_4[42]);
  *reinterpret_cast<uint32_t*>((p_35 + 4608)) = *reinterpret_cast<uint32_t const*>(&r_4[58]);
  *reinterpret_cast<uint32_t*>((p_32 + 6144)) = *reinterpret_cast<uint32_t const*>(&r_4[12]);
  *reinterpret_cast<uint32_t*>((p_33 + 6144)) = *reinterpret_cast<uint32_t const*>(&r_4[28]);
  *reinterpret_cast<uint32_t*>((p_34 + 6144)) = *reinterpret_cast<uint32_t const*>(&r_4[44]);
  *reinterpret_cast<uint32_t*>((p_35 + 6144)) = *reinterpret_cast<uint32_t const*>(&r_4[60]);
  *reinterpret_cast<uint32_t*>((p_32 + 6656)) = *reinterpret_cast<uint32_t const*>(&r_4[14]);
  *reinterpret_cast<uint32_t*>((p_33 + 6656)) = *reinterpret_cast<uint32_t const*>(&r_4[30]);
  *reinterpret_cast<uint32_t*>((p_34 + 6656)) = *reinterpret_cast<uint32_t const*>(&r_4[46]);
  *reinterpret_cast<uint32_t*>((p_35 + 6656)) = *reinterpret_cast<uint32_t const*>(&r_4[62]);
  *reinterpret_cast<uint32_t*>((p_32 + 8192)) = *reinterpret_cast<uint32_t const*>(&r_4[64]);
  *reinterpret_cast<uint32_t*>((p_33 + 8192)) = *reinterpret_cast<uint32_t const*>(&r_4[80]);
  *reinterpret_cast<uint32_t*>((p_34 + 8192)) = *reinterpret_cast<uint32_t const*>(&r_4[96]);
  *reinterpret_cast<uint32_t*>((p_35 + 8192)) = *reinterpret_cast<uint32_t const*>(&r_4[112]);
  *reinterpret_cast<uint32_t*>((p_32 + 8704)) = *reinterpret_cast<uint32_t const*>(&r_4[66]);
  *reinterpret_cast<uint32_t*>((p_33 + 8704)) = *reinterpret_cast<uint32_t const*>(&r_4[82]);
  *reinterpret_cast<uint32_t*>((p_34 + 8704)) = *reinterpret_cast<uint32_t const*>(&r_4[98]);
  *reinterpret_cast<uint32_t*>((p_35 + 8704)) = *reinterpret_cast<uint32_t const*>(&r_4[114]);
  *reinterpret_cast<uint32_t*>((p_32 + 10240)) = *reinterpret_cast<uint32_t const*>(&r_4[68]);
  *reinterpret_cast<uint32_t*>((p_33 + 10240)) = *reinterpret_cast<uint32_t const*>(&r_4[84]);
  *reinterpret_cast<uint32_t*>((p_34 + 10240)) = *reinterpret_cast<uint32_t const*>(&r_4[100]);
  *reinterpret_cast<uint32_t*>((p_35 + 10240)) = *reinterpret_cast<uint32_t const*>(&r_4[116]);
  *reinterpret_cast<uint32_t*>((p_32 + 10752)) = *reinterpret_cast<uint32_t const*>(&r_4[70]);
  *reinterpret_cast<uint32_t*>((p_33 + 10752)) = *reinterpret_cast<uint32_t const*>(&r_4[86]);
  *reinterpret_cast<uint32_t*>((p_34 + 10752)) = *reinterpret_cast<uint32_t const*>(&r_4[102]);
  *reinterpret_cast<uint32_t*>((p_35 + 10752)) = *reinterpret_cast<uint32_t const*>(&r_4[118]);
  *reinterpret_cast<uint32_t*>((p_32 + 12288)) = *reinterpret_cast<uint32_t const*>(&r_4[72]);
  *reinterpret_cast<uint32_t*>((p_33 + 12288)) = *reinterpret_cast<uint32_t const*>(&r_4[88]);
  *reinterpret_cast<uint32_t*>((p_34 + 12288)) = *reinterpret_cast<uint32_t const*>(&r_4[104]);
  *reinterpret_cast<uint32_t*>((p_35 + 12288)) = *reinterpret_cast<uint32_t const*>(&r_4[120]);
  *reinterpret_cast<uint32_t*>((p_32 + 12800)) = *reinterpret_cast<uint32_t const*>(&r_4[74]);
  *reinterpret_cast<uint32_t*>((p_33 + 12800)) = *reinterpret_cast<uint32_t const*>(&r_4[90]);
  *reinterpret_cast<uint32_t*>((p_34 + 12800)) = *reinterpret_cast<uint32_t const*>(&r_4[106]);
  *reinterpret_cast<uint32_t*>((p_35 + 12800)) = *reinterpret_cast<uint32_t const*>(&r_4[122]);
  *reinterpret_cast<uint32_t*>((p_32 + 14336)) = *reinterpret_cast<uint32_t const*>(&r_4[76]);
  *reinterpret_cast<uint32_t*>((p_33 + 14336)) = *reinterpret_cast<uint32_t const*>(&r_4[92]);
  *reinterpret_cast<uint32_t*>((p_34 + 14336)) = *reinterpret_cast<uint32_t const*>(&r_4[108]);
  *reinterpret_cast<uint32_t*>((p_35 + 14336)) = *reinterpret_cast<uint32_t const*>(&r_4[124]);
  *reinterpret_cast<uint32_t*>((p_32 + 14848)) = *reinterpret_cast<uint32_t const*>(&r_4[78]);
  *reinterpret_cast<uint32_t*>((p_33 + 14848)) = *reinterpret_cast<uint32_t const*>(&r_4[94]);
  *reinterpret_cast<uint32_t*>((p_34 + 14848)) = *reinterpret_cast<uint32_t const*>(&r_4[110]);
  *reinterpret_cast<uint32_t*>((p_35 + 14848)) = *reinterpret_cast<uint32_t const*>(&r_4[126]);
  __syncthreads();
  alignas(16) tw::f16 vectors_1[128];
  tw::f16* p_36 = p + (t_90 ^ ((t_90 & 448) >> 3));
  *reinterpret_cast<uint4*>(&vectors_1[0]) = *reinterpret_cast<uint4 const*>(p_36);
  *reinterpret_cast<uint4*>(&vectors_1[8]) = *reinterpret_cast<uint4 const*>((p_36 + 512));
  *reinterpret_cast<uint4*>(&vectors_1[16]) = *reinterpret_cast<uint4 const*>((p_36 + 1024));
  *reinterpret_cast<uint4*>(&vectors_1[24]) = *reinterpret_cast<uint4 const*>((p_36 + 1536));
  *reinterpret_cast<uint4*>(&vectors_1[32]) = *reinterpret_cast<uint4 const*>((p_36 + 2048));
  *reinterpret_cast<uint4*>(&vectors_1[40]) = *reinterpret_cast<uint4 const*>((p_36 + 2560));
  *reinterpret_cast<uint4*>(&vectors_1[48]) = *reinterpret_cast<uint4 const*>((p_36 + 3072));
  *reinterpret_cast<uint4*>(&vectors_1[56]) = *reinterpret_cast<uint4 const*>((p_36 + 3584));
  *reinterpret_cast<uint4*>(&vectors_1[64]) = *reinterpret_cast<uint4 const*>((p_36 + 4096));
  *reinterpret_cast<uint4*>(&vectors_1[72]) = *reinterpret_cast<uint4 const*>((p_36 + 4608));
  *reinterpret_cast<uint4*>(&vectors_1[80]) = *reinterpret_cast<uint4 const*>((p_36 + 5120));
  *reinterpret_cast<uint4*>(&vectors_1[88]) = *reinterpret_cast<uint4 const*>((p_36 + 5632));
  *reinterpret_cast<uint4*>(&vectors_1[96]) = *reinterpret_cast<uint4 const*>((p_36 + 6144));
  *reinterpret_cast<uint4*>(&vectors_1[104]) = *reinterpret_cast<uint4 const*>((p_36 + 6656));
  *reinterpret_cast<uint4*>(&vectors_1[112]) = *reinterpret_cast<uint4 const*>((p_36 + 7168));
  *reinterpret_cast<uint4*>(&vectors_1[120]) = *reinterpret_cast<uint4 const*>((p_36 + 7680));
  const bool t_116 = inside[0];
  const bool t_117 = inside[1];
  const bool t_118 = inside[2];
  const bool t_119 = inside[3];
  const bool t_120 = inside[4];
  const bool t_121 = inside[5];
  const bool t_122 = inside[6];
  const bool t_123 = inside[7];
  const bool t_124 = inside[8];
  const bool t_125 = inside[9];
  const bool t_126 = inside[10];
  const bool t_127 = inside[11];
  const bool t_128 = inside[12];
  const bool t_129 = inside[13];
  const bool t_130 = inside[14];
  const bool t_131 = inside[15];
  tw::store_if<16>(t_116, p_25, &vectors_1[0]);
  tw::store_if<16>(t_117, (p_25 + t_91), &vectors_1[8]);
  tw::store_if<16>(t_118, (p_25 + 2 * t_91), &vectors_1[16]);
  tw::store_if<16>(t_119, (p_25 + 3 * t_91), &vectors_1[24]);
  tw::store_if<16>(t_120, (p_25 + 4 * t_91), &vectors_1[32]);
  tw::store_if<16>(t_121, (p_25 + 5 * t_91), &vectors_1[40]);
  tw::store_if<16>(t_122, (p_25 + 6 * t_91), &vectors_1[48]);
  tw::store_if<16>(t_123, (p_25 + 7 * t_91), &vectors_1[56]);
  tw::store_if<16>(t_124, (p_25 + 8 * t_91), &vectors_1[64]);
  tw::store_if<16>(t_125, (p_25 + 9 * t_91), &vectors_1[72]);
  tw::store_if<16>(t_126, (p_25 + 10 * t_91), &vectors_1[80]);
  tw::store_if<16>(t_127, (p_25 + 11 * t_91), &vectors_1[88]);
  tw::store_if<16>(t_128, (p_25 + 12 * t_91), &vectors_1[96]);
  tw::store_if<16>(t_129, (p_25 + 13 * t_91), &vectors_1[104]);
  tw::store_if<16>(t_130, (p_25 + 14 * t_91), &vectors_1[112]);
  tw::store_if<16>(t_131, (p_25 + 15 * t_91), &vectors_1[120]);
}
