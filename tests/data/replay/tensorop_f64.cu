#include "tilewright.cuh"

__device__ __forceinline__ void cp_async_cg_16_zfill(uint32_t target, void const* source, int source_bytes) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], %2, %3;" : : "r"(target), "l"(source), "n"(16), "r"(source_bytes) : "memory");
}

__device__ __forceinline__ void mma_8x8x4_f64f64f64f64_tn(double& d0, double& d1, double a0, double b0) {
  asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
               : "+d"(d0), "+d"(d1)
               : "d"(a0), "d"(b0));
}

extern "C" __global__ void __launch_bounds__(128)
MultistageGemm_kernel(double* mA, int mA_shape0, int mA_shape1, int mA_stride0, int mA_stride2, double* mB, int mB_shape0, int mB_shape1, int mB_stride0, int mB_stride2, double* mC, int mC_stride0, int mC_stride2, double* mD, int mD_stride0, int mD_stride2, double alpha, double beta) {
  extern __shared__ __align__(1024) unsigned char smem[];
  const int tidx = threadIdx.x;
  const int bidx = blockIdx.x;
  const int bidz = blockIdx.z;
  const int t = 8 * ((mB_shape0 + 63) / 64);
  const int t_1 = bidx / t;
  const int t_2 = t_1 * 8;
  const int t_3 = min((mA_shape0 + 63) / 64 - t_2, 8);
  const int t_4 = bidx - t_1 * t;
  const int tile_m = t_2 + tw::floormod<int32_t>(t_4, t_3);
  const int tile_n = tw::floordiv<int32_t>(t_4, t_3);
  const int k_tiles = (mA_shape1 + 15) / 16;
  const int t_5 = k_tiles * 16;
  const int t_6 = mA_shape1 - t_5;
  const int t_7 = 64 * tile_m;
  const int t_8 = mB_shape1 - t_5;
  const int t_9 = 64 * tile_n;
  uint8_t* smem_1 = reinterpret_cast<uint8_t*>(smem);
  double* p = reinterpret_cast<double*>(smem_1);
  double* p_1 = p + 4096;
  const int t_10 = 16 * mA_stride0;
  const int t_11 = tidx % 8;
  const int t_12 = tidx / 8;
  const int t_13 = t_11 * 2;
  double* p_2 = mA + bidz * mA_stride2 + t_6 + tile_m * (64 * mA_stride0) + (t_13 + t_12 * mA_stride0);
  const int t_14 = t_13 + t_12 * 16;
  const int t_15 = 2 * t_11;
  const int t_16 = t_7 + t_12;
  alignas(4) bool r[4];
  alignas(4) bool r_1[4];
  const bool t_17 = t_16 < mA_shape0;
  r[0] = t_17;
  const bool t_18 = t_6 + t_15 >= 0;
  r_1[0] = t_17 && t_18;
  const bool t_19 = t_16 + 16 < mA_shape0;
  r[1] = t_19;
  r_1[1] = t_19 && t_18;
  const bool t_20 = t_16 + 32 < mA_shape0;
  r[2] = t_20;
  r_1[2] = t_20 && t_18;
  const bool t_21 = t_16 + 48 < mA_shape0;
  r[3] = t_21;
  r_1[3] = t_21 && t_18;
  const int t_22 = 16 * mB_stride0;
  double* p_3 = mB + bidz * mB_stride2 + t_8 + tile_n * (64 * mB_stride0) + (t_13 + t_12 * mB_stride0);
  const int t_23 = t_9 + t_12;
  alignas(4) bool r_2[4];
  alignas(4) bool r_3[4];
  const bool t_24 = t_23 < mB_shape0;
  r_2[0] = t_24;
  const bool t_25 = t_8 + t_15 >= 0;
  r_3[0] = t_24 && t_25;
  const bool t_26 = t_23 + 16 < mB_shape0;
  r_2[1] = t_26;
  r_3[1] = t_26 && t_25;
  const bool t_27 = t_23 + 32 < mB_shape0;
  r_2[2] = t_27;
  r_3[2] = t_27 && t_25;
  const bool t_28 = t_23 + 48 < mB_shape0;
  r_2[3] = t_28;
  r_3[3] = t_28 && t_25;
  const int t_29 = tidx % 32;
  const int t_30 = tidx / 32;
  alignas(16) double tCrA[16];
  alignas(16) double tCrB[16];
  alignas(16) double tCrC[32];
  #pragma unroll
  for (int e = 0; e < 32; ++e) tCrC[e] = 0.0;
  const int t_31 = tidx % 4;
  const int t_32 = tidx / 4;
  const int t_33 = t_31 + t_32 % 16 * 16;
  const int t_34 = t_31 + t_32 % 8 * 16 + t_32 / 8 / 2 * 128;
  if (k_tiles > 0) {
    const bool t_35 = r_1[0];
    const bool t_36 = r_1[1];
    const bool t_37 = r_1[2];
    const bool t_38 = r_1[3];
    const int t_39 = 2 * t_10;
    const int t_40 = 3 * t_10;
    const int t_41 = t_14 ^ ((t_14 & 48) >> 2);
    double* p_4 = p + t_41;
    cp_async_cg_16_zfill(tw::shared_address(p_4), p_2, t_35 ? 16 : 0);
    cp_async_cg_16_zfill(tw::shared_address(p_4 + 256), (p_2 + t_10), t_36 ? 16 : 0);
    cp_async_cg_16_zfill(tw::shared_address(p_4 + 512), (p_2 + t_39), t_37 ? 16 : 0);
    cp_async_cg_16_zfill(tw::shared_address(p_4 + 768), (p_2 + t_40), t_38 ? 16 : 0);
    const bool t_42 = r_3[0];
    const bool t_43 = r_3[1];
    const bool t_44 = r_3[2];
    const bool t_45 = r_3[3];
    const int t_46 = 2 * t_22;
    const int t_47 = 3 * t_22;
    double* p_5 = p_1 + t_41;
    cp_async_cg_16_zfill(tw::shared_address(p_5), p_3, t_42 ? 16 : 0);
    cp_async_cg_16_zfill(tw::shared_address(p_5 + 256), (p_3 + t_22), t_43 ? 16 : 0);
    cp_async_cg_16_zfill(tw::shared_address(p_5 + 512), (p_3 + t_46), t_44 ? 16 : 0);
    cp_async_cg_16_zfill(tw::shared_address(p_5 + 768), (p_3 + t_47), t_45 ? 16 : 0);
    asm volatile("cp.async.commit_group;" : : : "memory");
    if (k_tiles <= 1) {
      #pragma unroll
      for (int e = 0; e < 4; ++e) r[e] = false;
      #pragma unroll
      for (int e = 0; e < 4; ++e) r_2[e] = false;
    }
    const int t_48 = k_tiles - 1;
    const int t_49 = min(1, t_48) * 16;
    double* p_6 = p_2 + t_49;
    const bool t_50 = r[0];
    const bool t_51 = r[1];
    const bool t_52 = r[2];
    const bool t_53 = r[3];
    cp_async_cg_16_zfill(tw::shared_address(p_4 + 1024), p_6, t_50 ? 16 : 0);
    cp_async_cg_16_zfill(tw::shared_address(p_4 + 1280), (p_6 + t_10), t_51 ? 16 : 0);
    cp_async_cg_16_zfill(tw::shared_address(p_4 + 1536), (p_6 + t_39), t_52 ? 16 : 0);
    cp_async_cg_16_zfill(tw::shared_address(p_4 + 1792), (p_6 + t_40), t_53 ? 16 : 0);
    double* p_7 = p_3 + t_49;
    const bool t_54 = r_2[0];
    const bool t_55 = r_2[1];
    const bool t_56 = r_2[2];
    const bool t_57 = r_2[3];
    cp_async_cg_16_zfill(tw::shared_address(p_5 + 1024), p_7, t_54 ? 16 : 0);
    cp_async_cg_16_zfill(tw::shared_address(p_5 + 1280), (p_7 + t_22), t_55 ? 16 : 0);
    cp_async_cg_16_zfill(tw::shared_address(p_5 + 1536), (p_7 + t_46), t_56 ? 16 : 0);
    cp_async_cg_16_zfill(tw::shared_address(p_5 + 1792), (p_7 + t_47), t_57 ? 16 : 0);
    asm volatile("cp.async.commit_group;" : : : "memory");
    if (k_tiles <= 2) {
      #pragma unroll
      for (int e = 0; e < 4; ++e) r[e] = false;
      #pragma unroll
      for (int e = 0; e < 4; ++e) r_2[e] = false;
    }
    const int t_58 = min(2, t_48) * 16;
    double* p_8 = p_2 + t_58;
    const bool t_59 = r[0];
    const bool t_60 = r[1];
    const bool t_61 = r[2];
    const bool t_62 = r[3];
    cp_async_cg_16_zfill(tw::shared_address(p_4 + 2048), p_8, t_59 ? 16 : 0);
    cp_async_cg_16_zfill(tw::shared_address(p_4 + 2304), (p_8 + t_10), t_60 ? 16 : 0);
    cp_async_cg_16_zfill(tw::shared_address(p_4 + 2560), (p_8 + t_39), t_61 ? 16 : 0);
    cp_async_cg_16_zfill(tw::shared_address(p_4 + 2816), (p_8 + t_40), t_62 ? 16 : 0);
    double* p_9 = p_3 + t_58;
    const bool t_63 = r_2[0];
    const bool t_64 = r_2[1];
    const bool t_65 = r_2[2];
    const bool t_66 = r_2[3];
    cp_async_cg_16_zfill(tw::shared_address(p_5 + 2048), p_9, t_63 ? 16 : 0);
    cp_async_cg_16_zfill(tw::shared_address(p_5 + 2304), (p_9 + t_22), t_64 ? 16 : 0);
    cp_async_cg_16_zfill(tw::shared_address(p_5 + 2560), (p_9 + t_46), t_65 ? 16 : 0);
    cp_async_cg_16_zfill(tw::shared_address(p_5 + 2816), (p_9 + t_47), t_66 ? 16 : 0);
    asm volatile("cp.async.commit_group;" : : : "memory");
    if (k_tiles <= 3) {
      #pragma unroll
      for (int e = 0; e < 4; ++e) r[e] = false;
      #pragma unroll
      for (int e = 0; e < 4; ++e) r_2[e] = false;
    }
    asm volatile("cp.async.wait_group 2;" : : : "memory");
    __syncthreads();
    const int t_67 = t_33 ^ ((t_33 & 48) >> 2);
    double* p_10 = p + t_67;
    *reinterpret_cast<uint2*>(&tCrA[0]) = *reinterpret_cast<uint2 const*>(p_10);
    *reinterpret_cast<uint2*>(&tCrA[4]) = *reinterpret_cast<uint2 const*>((p_10 + 256));
    *reinterpret_cast<uint2*>(&tCrA[8]) = *reinterpret_cast<uint2 const*>((p_10 + 512));
    *reinterpret_cast<uint2*>(&tCrA[12]) = *reinterpret_cast<uint2 const*>((p_10 + 768));
    const int t_68 = t_34 ^ ((t_34 & 48) >> 2);
    double* p_11 = p_1 + t_68;
    *reinterpret_cast<uint2*>(&tCrB[0]) = *reinterpret_cast<uint2 const*>(p_11);
    *reinterpret_cast<uint2*>(&tCrB[4]) = *reinterpret_cast<uint2 const*>((p_11 + 256));
    *reinterpret_cast<uint2*>(&tCrB[8]) = *reinterpret_cast<uint2 const*>((p_11 + 512));
    *reinterpret_cast<uint2*>(&tCrB[12]) = *reinterpret_cast<uint2 const*>((p_11 + 768));
    int read = 0;
    int write = 3;
    #pragma unroll 1
    for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
      const int ahead = min(k_tile + 3, t_48);
      const int t_69 = read * 1024;
      double* p_12 = p + t_69;
      double* p_13 = p_12 + (t_67 ^ 4);
      *reinterpret_cast<uint2*>(&tCrA[1]) = *reinterpret_cast<uint2 const*>(p_13);
      *reinterpret_cast<uint2*>(&tCrA[5]) = *reinterpret_cast<uint2 const*>((p_13 + 256));
      *reinterpret_cast<uint2*>(&tCrA[9]) = *reinterpret_cast<uint2 const*>((p_13 + 512));
      *reinterpret_cast<uint2*>(&tCrA[13]) = *reinterpret_cast<uint2 const*>((p_13 + 768));
      double* p_14 = p_1 + t_69;
      double* p_15 = p_14 + (t_68 ^ 4);
      *reinterpret_cast<uint2*>(&tCrB[1]) = *reinterpret_cast<uint2 const*>(p_15);
      *reinterpret_cast<uint2*>(&tCrB[5]) = *reinterpret_cast<uint2 const*>((p_15 + 256));
      *reinterpret_cast<uint2*>(&tCrB[9]) = *reinterpret_cast<uint2 const*>((p_15 + 512));
      *reinterpret_cast<uint2*>(&tCrB[13]) = *reinterpret_cast<uint2 const*>((p_15 + 768));
      const int t_70 = ahead * 16;
      double* p_16 = p_2 + t_70;
      const int t_71 = write * 1024;
      const bool t_72 = r[0];
      const bool t_73 = r[1];
      const bool t_74 = r[2];
      const bool t_75 = r[3];
      double* p_17 = p + t_71 + t_41;
      cp_async_cg_16_zfill(tw::shared_address(p_17), p_16, t_72 ? 16 : 0);
      cp_async_cg_16_zfill(tw::shared_address(p_17 + 256), (p_16 + t_10), t_73 ? 16 : 0);
      cp_async_cg_16_zfill(tw::shared_address(p_17 + 512), (p_16 + t_39), t_74 ? 16 : 0);
      cp_async_cg_16_zfill(tw::shared_address(p_17 + 768), (p_16 + t_40), t_75 ? 16 : 0);
      double* p_18 = p_3 + t_70;
      const bool t_76 = r_2[0];
      const bool t_77 = r_2[1];
      const bool t_78 = r_2[2];
      const bool t_79 = r_2[3];
      double* p_19 = p_1 + t_71 + t_41;
      cp_async_cg_16_zfill(tw::shared_address(p_19), p_18, t_76 ? 16 : 0);
      cp_async_cg_16_zfill(tw::shared_address(p_19 + 256), (p_18 + t_22), t_77 ? 16 : 0);
      cp_async_cg_16_zfill(tw::shared_address(p_19 + 512), (p_18 + t_46), t_78 ? 16 : 0);
      cp_async_cg_16_zfill(tw::shared_address(p_19 + 768), (p_18 + t_47), t_79 ? 16 : 0);
      asm volatile("cp.async.commit_group;" : : : "memory");
      const int t_80 = write + 1;
      const int write_1 = t_80 == 4 ? 0 : t_80;
      #pragma unroll
      for (int m = 0; m < 4; ++m) {
        #pragma unroll
        for (int n = 0; n < 4; ++n) {
          int const s = m & 1 ? 3 - n : n;
          mma_8x8x4_f64f64f64f64_tn(tCrC[2 * m + 8 * s], tCrC[2 * m + 8 * s + 1], tCrA[4 * m], tCrB[4 * s]);
        }
      }
      double* p_20 = p_12 + (t_67 ^ 8);
      *reinterpret_cast<uint2*>(&tCrA[2]) = *reinterpret_cast<uint2 const*>(p_20);
      *reinterpret_cast<uint2*>(&tCrA[6]) = *reinterpret_cast<uint2 const*>((p_20 + 256));
      *reinterpret_cast<uint2*>(&tCrA[10]) = *reinterpret_cast<uint2 const*>((p_20 + 512));
      *reinterpret_cast<uint2*>(&tCrA[14]) = *reinterpret_cast<uint2 const*>((p_20 + 768));
      double* p_21 = p_14 + (t_68 ^ 8);
      *reinterpret_cast<uint2*>(&tCrB[2]) = *reinterpret_cast<uint2 const*>(p_21);
      *reinterpret_cast<uint2*>(&tCrB[6]) = *reinterpret_cast<uint2 const*>((p_21 + 256));
      *reinterpret_cast<uint2*>(&tCrB[10]) = *reinterpret_cast<uint2 const*>((p_21 + 512));
      *reinterpret_cast<uint2*>(&tCrB[14]) = *reinterpret_cast<uint2 const*>((p_21 + 768));
      #pragma unroll
      for (int m_1 = 0; m_1 < 4; ++m_1) {
        #pragma unroll
        for (int n_1 = 0; n_1 < 4; ++n_1) {
          int const s_1 = m_1 & 1 ? 3 - n_1 : n_1;
          mma_8x8x4_f64f64f64f64_tn(tCrC[2 * m_1 + 8 * s_1], tCrC[2 * m_1 + 8 * s_1 + 1], tCrA[4 * m_1 + 1], tCrB[4 * s_1 + 1]);
        }
      }
      double* p_22 = p_12 + (t_67 ^ 12);
      *reinterpret_cast<uint2*>(&tCrA[3]) = *reinterpret_cast<uint2 const*>(p_22);
      *reinterpret_cast<uint2*>(&tCrA[7]) = *reinterpret_cast<uint2 const*>((p_22 + 256));
      *reinterpret_cast<uint2*>(&tCrA[11]) = *reinterpret_cast<uint2 const*>((p_22 + 512));
      *reinterpret_cast<uint2*>(&tCrA[15]) = *reinterpret_cast<uint2 const*>((p_22 + 768));
      double* p_23 = p_14 + (t_68 ^ 12);
      *reinterpret_cast<uint2*>(&tCrB[3]) = *reinterpret_cast<uint2 const*>(p_23);
      *reinterpret_cast<uint2*>(&tCrB[7]) = *reinterpret_cast<uint2 const*>((p_23 + 256));
      *reinterpret_cast<uint2*>(&tCrB[11]) = *reinterpret_cast<uint2 const*>((p_23 + 512));
      *reinterpret_cast<uint2*>(&tCrB[15]) = *reinterpret_cast<uint2 const*>((p_23 + 768));
      #pragma unroll
      for (int m_2 = 0; m_2 < 4; ++m_2) {
        #pragma unroll
        for (int n_2 = 0; n_2 < 4; ++n_2) {
          int const s_2 = m_2 & 1 ? 3 - n_2 : n_2;
          mma_8x8x4_f64f64f64f64_tn(tCrC[2 * m_2 + 8 * s_2], tCrC[2 * m_2 + 8 * s_2 + 1], tCrA[4 * m_2 + 2], tCrB[4 * s_2 + 2]);
        }
      }
      const int t_81 = read + 1;
      const int read_1 = t_81 == 4 ? 0 : t_81;
      asm volatile("cp.async.wait_group 2;" : : : "memory");
      __syncthreads();
      const int t_82 = read_1 * 1024;
      double* p_24 = p + t_82 + t_67;
      *reinterpret_cast<uint2*>(&tCrA[0]) = *reinterpret_cast<uint2 const*>(p_24);
      *reinterpret_cast<uint2*>(&tCrA[4]) = *reinterpret_cast<uint2 const*>((p_24 + 256));
      *reinterpret_cast<uint2*>(&tCrA[8]) = *reinterpret_cast<uint2 const*>((p_24 + 512));
      *reinterpret_cast<uint2*>(&tCrA[12]) = *reinterpret_cast<uint2 const*>((p_24 + 768));
      double* p_25 = p_1 + t_82 + t_68;
      *reinterpret_cast<uint2*>(&tCrB[0]) = *reinterpret_cast<uint2 const*>(p_25);
      *reinterpret_cast<uint2*>(&tCrB[4]) = *reinterpret_cast<uint2 const*>((p_25 + 256));
      *reinterpret_cast<uint2*>(&tCrB[8]) = *reinterpret_cast<uint2 const*>((p_25 + 512));
      *reinterpret_cast<uint2*>(&tCrB[12]) = *reinterpret_cast<uint2 const*>((p_25 + 768));
      #pragma unroll
      for (int m_3 = 0; m_3 < 4; ++m_3) {
        #pragma unroll
        for (int n_3 = 0; n_3 < 4; ++n_3) {
          int const s_3 = m_3 & 1 ? 3 - n_3 : n_3;
          mma_8x8x4_f64f64f64f64_tn(tCrC[2 * m_3 + 8 * s_3], tCrC[2 * m_3 + 8 * s_3 + 1], tCrA[4 * m_3 + 3], tCrB[4 * s_3 + 3]);
        }
      }
      read = read_1;
      write = write_1;
    }
    asm volatile("cp.async.wait_group 0;" : : : "memory");
  }
  __syncthreads();
  const int t_83 = tile_n * 64;
  const int t_84 = t_29 % 8 * 2 + t_29 / 8 * 1024 + t_30 * 16;
  const int t_85 = 4 * mD_stride0;
  const int t_86 = t_29 * 2;
  double* p_26 = mD + bidz * mD_stride2 + (tile_m * (64 * mD_stride0) + t_83) + (t_86 + t_30 * mD_stride0);
  const int t_87 = 4 * mC_stride0;
  double* p_27 = mC + bidz * mC_stride2 + (tile_m * (64 * mC_stride0) + t_83) + (t_86 + t_30 * mC_stride0);
  const int t_88 = t_7 + t_30;
  alignas(16) bool inside[16];
  const bool t_89 = t_9 + 2 * t_29 < mB_shape0;
  inside[0] = t_88 < mA_shape0 && t_89;
  inside[1] = t_88 + 4 < mA_shape0 && t_89;
  inside[2] = t_88 + 8 < mA_shape0 && t_89;
  inside[3] = t_88 + 12 < mA_shape0 && t_89;
  inside[4] = t_88 + 16 < mA_shape0 && t_89;
  inside[5] = t_88 + 20 < mA_shape0 && t_89;
  inside[6] = t_88 + 24 < mA_shape0 && t_89;
  inside[7] = t_88 + 28 < mA_shape0 && t_89;
  inside[8] = t_88 + 32 < mA_shape0 && t_89;
  inside[9] = t_88 + 36 < mA_shape0 && t_89;
  inside[10] = t_88 + 40 < mA_shape0 && t_89;
  inside[11] = t_88 + 44 < mA_shape0 && t_89;
  inside[12] = t_88 + 48 < mA_shape0 && t_89;
  inside[13] = t_88 + 52 < mA_shape0 && t_89;
  inside[14] = t_88 + 56 < mA_shape0 && t_89;
  inside[15] = t_88 + 60 < mA_shape0 && t_89;
  const int t_90 = t_29 % 4 * 2 + t_29 / 4 * 16 + (t_30 % 2 * 128 + tidx / 64 * 8);
  #pragma unroll
  for (int e = 0; e < 32; ++e) tCrC[e] = tCrC[e] * alpha;
  if (beta != 0.0) {
    alignas(16) double vectors[32];
    #pragma unroll
    for (int e = 0; e < 32; ++e) vectors[e] = 0.0;
    const bool t_91 = inside[0];
    const bool t_92 = inside[1];
    const bool t_93 = inside[2];
    const bool t_94 = inside[3];
    const bool t_95 = inside[4];
    const bool t_96 = inside[5];
    const bool t_97 = inside[6];
    const bool t_98 = inside[7];
    const bool t_99 = inside[8];
    const bool t_100 = inside[9];
    const bool t_101 = inside[10];
    const bool t_102 = inside[11];
    const bool t_103 = inside[12];
    const bool t_104 = inside[13];
    const bool t_105 = inside[14];
    const bool t_106 = inside[15];
    tw::load_if<16>(t_91, &vectors[0], p_27);
    tw::load_if<16>(t_92, &vectors[2], (p_27 + t_87));
    tw::load_if<16>(t_93, &vectors[4], (p_27 + 2 * t_87));
    tw::load_if<16>(t_94, &vectors[6], (p_27 + 3 * t_87));
    tw::load_if<16>(t_95, &vectors[8], (p_27 + 4 * t_87));
    tw::load_if<16>(t_96, &vectors[10], (p_27 + 5 * t_87));
    tw::load_if<16>(t_97, &vectors[12], (p_27 + 6 * t_87));
    tw::load_if<16>(t_98, &vectors[14], (p_27 + 7 * t_87));
    tw::load_if<16>(t_99, &vectors[16], (p_27 + 8 * t_87));
    tw::load_if<16>(t_100, &vectors[18], (p_27 + 9 * t_87));
    tw::load_if<16>(t_101, &vectors[20], (p_27 + 10 * t_87));
    tw::load_if<16>(t_102, &vectors[22], (p_27 + 11 * t_87));
    tw::load_if<16>(t_103, &vectors[24], (p_27 + 12 * t_87));
    tw::load_if<16>(t_104, &vectors[26], (p_27 + 13 * t_87));
    tw::load_if<16>(t_105, &vectors[28], (p_27 + 14 * t_87));
    tw::load_if<16>(t_106, &vectors[30], (p_27 + 15 * t_87));
    double* p_28 = p + (t_84 ^ ((t_84 & 16) >> 1));
    *reinterpret_cast<uint4*>(p_28) = *reinterpret_cast<uint4 const*>(&vectors[0]);
    *reinterpret_cast<uint4*>((p_28 + 64)) = *reinterpret_cast<uint4 const*>(&vectors[2]);
    *reinterpret_cast<uint4*>((p_28 + 128)) = *reinterpret_cast<uint4 const*>(&vectors[4]);
    *reinterpret_cast<uint4*>((p_28 + 192)) = *reinterpret_cast<uint4 const*>(&vectors[6]);
    *reinterpret_cast<uint4*>((p_28 + 256)) = *reinterpret_cast<uint4 const*>(&vectors[8]);
    *reinterpret_cast<uint4*>((p_28 + 320)) = *reinterpret_cast<uint4 const*>(&vectors[10]);
    *reinterpret_cast<uint4*>((p_28 + 384)) = *reinterpret_cast<uint4 const*>(&vectors[12]);
    *reinterpret_cast<uint4*>((p_28 + 448)) = *reinterpret_cast<uint4 const*>(&vectors[14]);
    *reinterpret_cast<uint4*>((p_28 + 512)) = *reinterpret_cast<uint4 const*>(&vectors[16]);
    *reinterpret_cast<uint4*>((p_28 + 576)) = *reinterpret_cast<uint4 const*>(&vectors[18]);
    *reinterpret_cast<uint4*>((p_28 + 640)) = *reinterpret_cast<uint4 const*>(&vectors[20]);
    *reinterpret_cast<uint4*>((p_28 + 704)) = *reinterpret_cast<uint4 const*>(&vectors[22]);
    *reinterpret_cast<uint4*>((p_28 + 768)) = *reinterpret_cast<uint4 const*>(&vectors[24]);
    *reinterpret_cast<uint4*>((p_28 + 832)) = *reinterpret_cast<uint4 const*>(&vectors[26]);
    *reinterpret_cast<uint4*>((p_28 + 896)) = *reinterpret_cast<uint4 const*>(&vectors[28]);
    *reinterpret_cast<uint4*>((p_28 + 960)) = *reinterpret_cast<uint4 const*>(&vectors[30]);
    __syncthreads();
    alignas(16) double source[32];
    double* p_29 = p + (t_90 ^ ((t_90 & 16) >> 1));
    *reinterpret_cast<uint4*>(&source[0]) = *reinterpret_cast<uint4 const*>(p_29);
    *reinterpret_cast<uint4*>(&source[2]) = *reinterpret_cast<uint4 const*>((p_29 + 256));
    *reinterpret_cast<uint4*>(&source[4]) = *reinterpret_cast<uint4 const*>((p_29 + 512));
    *reinterpret_cast<uint4*>(&source[6]) = *reinterpret_cast<uint4 const*>((p_29 + 768));
    *reinterpret_cast<uint4*>(&source[8]) = *reinterpret_cast<uint4 const*>((p_29 + 1024));
    *reinterpret_cast<uint4*>(&source[10]) = *reinterpret_cast<uint4 const*>((p_29 + 1280));
    *reinterpret_cast<uint4*>(&source[12]) = *reinterpret_cast<uint4 const*>((p_29 + 1536));
    *reinterpret_cast<uint4*>(&source[14]) = *reinterpret_cast<uint4 const*>((p_29 + 1792));
    *reinterpret_cast<uint4*>(&source[16]) = *reinterpret_cast<uint4 const*>((p_29 + 2048));
    *reinterpret_cast<uint4*>(&source[18]) = *reinterpret_cast<uint4 const*>((p_29 + 2304));
    *reinterpret_cast<uint4*>(&source[20]) = *reinterpret_cast<uint4 const*>((p_29 + 2560));
    *reinterpret_cast<uint4*>(&source[22]) = *reinterpret_cast<uint4 const*>((p_29 + 2816));
    *reinterpret_cast<uint4*>(&source[24]) = *reinterpret_cast<uint4 const*>((p_29 + 3072));
    *reinterpret_cast<uint4*>(&source[26]) = *reinterpret_cast<uint4 const*>((p_29 + 3328));
    *reinterpret_cast<uint4*>(&source[28]) = *reinterpret_cast<uint4 const*>((p_29 + 3584));
    *reinterpret_cast<uint4*>(&source[30]) = *reinterpret_cast<uint4 const*>((p_29 + 3840));
    #pragma unroll
    for (int e = 0; e < 32; ++e) tCrC[e] = tCrC[e] + source[e] * beta;
  }
  double* p_30 = p + (t_90 ^ ((t_90 & 16) >> 1));
  *reinterpret_cast<uint4*>(p_30) = *reinterpret_cast<uint4 const*>(&tCrC[0]);
  *reinterpret_cast<uint4*>((p_30 + 256)) = *reinterpret_cast<uint4 const*>(&tCrC[2]);
  *reinterpret_cast<uint4*>((p_30 + 512)) = *reinterpret_cast<uint4 const*>(&tCrC[4]);
  *reinterpret_cast<uint4*>((p_30 + 768)) = *reinterpret_cast<uint4 const*>(&tCrC[6]);
  *reinterpret_cast<uint4*>((p_30 + 1024)) = *reinterpret_cast<uint4 const*>(&tCrC[8]);
  *reinterpret_cast<uint4*>((p_30 + 1280)) = *reinterpret_cast<uint4 const*>(&tCrC[10]);
  *reinterpret_cast<uint4*>((p_30 + 1536)) = *reinterpret_cast<uint4 const*>(&tCrC[12]);
  *reinterpret_cast<uint4*>((p_30 + 1792)) = *reinterpret_cast<uint4 const*>(&tCrC[14]);
  *reinterpret_cast<uint4*>((p_30 + 2048)) = *reinterpret_cast<uint4 const*>(&tCrC[16]);
  *reinterpret_cast<uint4*>((p_30 + 2304)) = *reinterpret_cast<uint4 const*>(&tCrC[18]);
  *reinterpret_cast<uint4*>((p_30 + 2560)) = *reinterpret_cast<uint4 const*>(&tCrC[20]);
  *reinterpret_cast<uint4*>((p_30 + 2816)) = *reinterpret_cast<uint4 const*>(&tCrC[22]);
  *reinterpret_cast<uint4*>((p_30 + 3072)) = *reinterpret_cast<uint4 const*>(&tCrC[24]);
  *reinterpret_cast<uint4*>((p_30 + 3328)) = *reinterpret_cast<uint4 const*>(&tCrC[26]);
  *reinterpret_cast<uint4*>((p_30 + 3584)) = *reinterpret_cast<uint4 const*>(&tCrC[28]);
  *reinterpret_cast<uint4*>((p_30 + 3840)) = *reinterpret_cast<uint4 const*>(&tCrC[30]);
  __syncthreads();
  alignas(16) double vectors_1[32];
  double* p_31 = p + (t_84 ^ ((t_84 & 16) >> 1));
  *reinterpret_cast<uint4*>(&vectors_1[0]) = *reinterpret_cast<uint4 const*>(p_31);
  *reinterpret_cast<uint4*>(&vectors_1[2]) = *reinterpret_cast<uint4 const*>((p_31 + 64));
  *reinterpret_cast<uint4*>(&vectors_1[4]) = *reinterpret_cast<uint4 const*>((p_31 + 128));
  *reinterpret_cast<uint4*>(&vectors_1[6]) = *reinterpret_cast<uint4 const*>((p_31 + 192));
  *reinterpret_cast<uint4*>(&vectors_1[8]) = *reinterpret_cast<uint4 const*>((p_31 + 256));
  *reinterpret_cast<uint4*>(&vectors_1[10]) = *reinterpret_cast<uint4 const*>((p_31 + 320));
  *reinterpret_cast<uint4*>(&vectors_1[12]) = *reinterpret_cast<uint4 const*>((p_31 + 384));
  *reinterpret_cast<uint4*>(&vectors_1[14]) = *reinterpret_cast<uint4 const*>((p_31 + 448));
  *reinterpret_cast<uint4*>(&vectors_1[16]) = *reinterpret_cast<uint4 const*>((p_31 + 512));
  *reinterpret_cast<uint4*>(&vectors_1[18]) = *reinterpret_cast<uint4 const*>((p_31 + 576));
  *reinterpret_cast<uint4*>(&vectors_1[20]) = *reinterpret_cast<uint4 const*>((p_31 + 640));
  *reinterpret_cast<uint4*>(&vectors_1[22]) = *reinterpret_cast<uint4 const*>((p_31 + 704));
  *reinterpret_cast<uint4*>(&vectors_1[24]) = *reinterpret_cast<uint4 const*>((p_31 + 768));
  *reinterpret_cast<uint4*>(&vectors_1[26]) = *reinterpret_cast<uint4 const*>((p_31 + 832));
  *reinterpret_cast<uint4*>(&vectors_1[28]) = *reinterpret_cast<uint4 const*>((p_31 + 896));
  *reinterpret_cast<uint4*>(&vectors_1[30]) = *reinterpret_cast<uint4 const*>((p_31 + 960));
  const bool t_107 = inside[0];
  const bool t_108 = inside[1];
  const bool t_109 = inside[2];
  const bool t_110 = inside[3];
  const bool t_111 = inside[4];
  const bool t_112 = inside[5];
  const bool t_113 = inside[6];
  const bool t_114 = inside[7];
  const bool t_115 = inside[8];
  const bool t_116 = inside[9];
  const bool t_117 = inside[10];
  const bool t_118 = inside[11];
  const bool t_119 = inside[12];
  const bool t_120 = inside[13];
  const bool t_121 = inside[14];
  const bool t_122 = inside[15];
  tw::store_if<16>(t_107, p_26, &vectors_1[0]);
  tw::store_if<16>(t_108, (p_26 + t_85), &vectors_1[2]);
  tw::store_if<16>(t_109, (p_26 + 2 * t_85), &vectors_1[4]);
  tw::store_if<16>(t_110, (p_26 + 3 * t_85), &vectors_1[6]);
  tw::store_if<16>(t_111, (p_26 + 4 * t_85), &vectors_1[8]);
  tw::store_if<16>(t_112, (p_26 + 5 * t_85), &vectors_1[10]);
  tw::store_if<16>(t_113, (p_26 + 6 * t_85), &vectors_1[12]);
  tw::store_if<16>(t_114, (p_26 + 7 * t_85), &vectors_1[14]);
  tw::store_if<16>(t_115, (p_26 + 8 * t_85), &vectors_1[16]);
  tw::store_if<16>(t_116, (p_26 + 9 * t_85), &vectors_1[18]);
  tw::store_if<16>(t_117, (p_26 + 10 * t_85), &vectors_1[20]);
  tw::store_if<16>(t_118, (p_26 + 11 * t_85), &vectors_1[22]);
  tw::store_if<16>(t_119, (p_26 + 12 * t_85), &vectors_1[24]);
  tw::store_if<16>(t_120, (p_26 + 13 * t_85), &vectors_1[26]);
  tw::store_if<16>(t_121, (p_26 + 14 * t_85), &vectors_1[28]);
  tw::store_if<16>(t_122, (p_26 + 15 * t_85), &vectors_1[30]);
}
