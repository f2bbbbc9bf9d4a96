#include "tilewright.cuh"

template <class T>
__device__ __forceinline__ T tw_rematerialize(T value) {
  asm volatile("mov.b32 %0, %0;" : "+r"(value));
  return value;
}

__device__ __forceinline__ void cp_async_cg_16_zfill(uint32_t target, void const* source, int source_bytes) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], %2, %3;" : : "r"(target), "l"(source), "n"(16), "r"(source_bytes) : "memory");
}

__device__ __forceinline__ void mma_8x8x4_f64f64f64f64_tn(double& d0, double& d1, double a0, double b0) {
  asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
               : "+d"(d0), "+d"(d1)
               : "d"(a0), "d"(b0));
}

extern "C" __global__ void __launch_bounds__(128)
MultistageGemm_kernel(double* mA, int mA_shape0, int mA_shape1, int mA_stride0, int mA_stride2, double* mB, int mB_shape0, int mB_shape1, int mB_stride0, int mB_stride2, double* mC, int mC_stride0, int mC_stride2, double* mD, int mD_shape0, int mD_shape1, int mD_stride0, int mD_stride2, double function_alpha, double function_beta) {
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
  double* p = reinterpret_cast<double*>(smem_1);
  double* p_1 = p + 4096;
  const int k_tiles = (mA_shape1 + 15) / 16;
  const int t = (mD_shape0 + 63) / 64;
  const int t_1 = (mD_shape1 + 63) / 64;
  const int tidx = threadIdx.x;
  alignas(16) double acc[32];
  #pragma unroll
  for (int e = 0; e < 32; ++e) acc[e] = 0.0;
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
  const int t_11 = mA_shape1 - k_tiles * 16;
  const int t_12 = mB_shape1 - (mB_shape1 + 15) / 16 * 16;
  int t_13;
  t_13 = tw_rematerialize(tidx);
  const int t_14 = 16 * mA_stride0;
  const int t_15 = t_13 % 8;
  const int t_16 = t_13 / 8;
  const int t_17 = t_15 * 2;
  double* p_2 = mA + bidz * mA_stride2 + t_11 + t_9 * (64 * mA_stride0) + (t_17 + t_16 * mA_stride0);
  const int t_18 = t_17 + t_16 * 16;
  const int t_19 = 2 * t_15;
  const int t_20 = tw::add(tw::multiply(64, t_9), t_16);
  alignas(4) bool r[4];
  alignas(4) bool r_1[4];
  const bool t_21 = t_20 < mA_shape0;
  r[0] = t_21;
  const bool t_22 = t_11 + t_19 >= 0;
  r_1[0] = t_21 && t_22;
  const bool t_23 = tw::add(t_20, 16) < mA_shape0;
  r[1] = t_23;
  r_1[1] = t_23 && t_22;
  const bool t_24 = tw::add(t_20, 32) < mA_shape0;
  r[2] = t_24;
  r_1[2] = t_24 && t_22;
  const bool t_25 = tw::add(t_20, 48) < mA_shape0;
  r[3] = t_25;
  r_1[3] = t_25 && t_22;
  const int t_26 = 16 * mB_stride0;
  double* p_3 = mB + bidz * mB_stride2 + t_12 + t_10 * (64 * mB_stride0) + (t_17 + t_16 * mB_stride0);
  const int t_27 = tw::add(tw::multiply(64, t_10), t_16);
  alignas(4) bool r_2[4];
  alignas(4) bool r_3[4];
  const bool t_28 = t_27 < mB_shape0;
  r_2[0] = t_28;
  const bool t_29 = t_12 + t_19 >= 0;
  r_3[0] = t_28 && t_29;
  const bool t_30 = tw::add(t_27, 16) < mB_shape0;
  r_2[1] = t_30;
  r_3[1] = t_30 && t_29;
  const bool t_31 = tw::add(t_27, 32) < mB_shape0;
  r_2[2] = t_31;
  r_3[2] = t_31 && t_29;
  const bool t_32 = tw::add(t_27, 48) < mB_shape0;
  r_2[3] = t_32;
  r_3[3] = t_32 && t_29;
  alignas(16) double tCrA[16];
  alignas(16) double tCrB[16];
  const int t_33 = t_13 % 4;
  const int t_34 = t_13 / 4;
  const int t_35 = t_33 + t_34 % 16 * 16;
  const int t_36 = t_33 + t_34 % 8 * 16 + t_34 / 8 / 2 * 128;
  if (k_tiles > 0) {
    const bool t_37 = r_1[0];
    const bool t_38 = r_1[1];
    const bool t_39 = r_1[2];
    const bool t_40 = r_1[3];
    const int t_41 = 2 * t_14;
    const int t_42 = 3 * t_14;
    const int t_43 = t_18 ^ ((t_18 & 48) >> 2);
    double* p_4 = p + t_43;
    cp_async_cg_16_zfill(tw::shared_address(p_4), p_2, t_37 ? 16 : 0);
    cp_async_cg_16_zfill(tw::shared_address(p_4 + 256), (p_2 + t_14), t_38 ? 16 : 0);
    cp_async_cg_16_zfill(tw::shared_address(p_4 + 512), (p_2 + t_41), t_39 ? 16 : 0);
    cp_async_cg_16_zfill(tw::shared_address(p_4 + 768), (p_2 + t_42), t_40 ? 16 : 0);
    const bool t_44 = r_3[0];
    const bool t_45 = r_3[1];
    const bool t_46 = r_3[2];
    const bool t_47 = r_3[3];
    const int t_48 = 2 * t_26;
    const int t_49 = 3 * t_26;
    double* p_5 = p_1 + t_43;
    cp_async_cg_16_zfill(tw::shared_address(p_5), p_3, t_44 ? 16 : 0);
    cp_async_cg_16_zfill(tw::shared_address(p_5 + 256), (p_3 + t_26), t_45 ? 16 : 0);
    cp_async_cg_16_zfill(tw::shared_address(p_5 + 512), (p_3 + t_48), t_46 ? 16 : 0);
    cp_async_cg_16_zfill(tw::shared_address(p_5 + 768), (p_3 + t_49), t_47 ? 16 : 0);
    asm volatile("cp.async.commit_group;" : : : "memory");
    if (k_tiles <= 1) {
      #pragma unroll
      for (int e = 0; e < 4; ++e) r[e] = false;
      #pragma unroll
      for (int e = 0; e < 4; ++e) r_2[e] = false;
    }
    const int t_50 = k_tiles - 1;
    const int t_51 = min(1, t_50) * 16;
    double* p_6 = p_2 + t_51;
    const bool t_52 = r[0];
    const bool t_53 = r[1];
    const bool t_54 = r[2];
    const bool t_55 = r[3];
    cp_async_cg_16_zfill(tw::shared_address(p_4 + 1024), p_6, t_52 ? 16 : 0);
    cp_async_cg_16_zfill(tw::shared_address(p_4 + 1280), (p_6 + t_14), t_53 ? 16 : 0);
    cp_async_cg_16_zfill(tw::shared_address(p_4 + 1536), (p_6 + t_41), t_54 ? 16 : 0);
    cp_async_cg_16_zfill(tw::shared_address(p_4 + 1792), (p_6 + t_42), t_55 ? 16 : 0);
    double* p_7 = p_3 + t_51;
    const bool t_56 = r_2[0];
    const bool t_57 = r_2[1];
    const bool t_58 = r_2[2];
    const bool t_59 = r_2[3];
    cp_async_cg_16_zfill(tw::shared_address(p_5 + 1024), p_7, t_56 ? 16 : 0);
    cp_async_cg_16_zfill(tw::shared_address(p_5 + 1280), (p_7 + t_26), t_57 ? 16 : 0);
    cp_async_cg_16_zfill(tw::shared_address(p_5 + 1536), (p_7 + t_48), t_58 ? 16 : 0);
    cp_async_cg_16_zfill(tw::shared_address(p_5 + 1792), (p_7 + t_49), t_59 ? 16 : 0);
    asm volatile("cp.async.commit_group;" : : : "memory");
    if (k_tiles <= 2) {
      #pragma unroll
      for (int e = 0; e < 4; ++e) r[e] = false;
      #pragma unroll
      for (int e = 0; e < 4; ++e) r_2[e] = false;
    }
    const int t_60 = min(2, t_50) * 16;
    double* p_8 = p_2 + t_60;
    const bool t_61 = r[0];
    const bool t_62 = r[1];
    const bool t_63 = r[2];
    const bool t_64 = r[3];
    cp_async_cg_16_zfill(tw::shared_address(p_4 + 2048), p_8, t_61 ? 16 : 0);
    cp_async_cg_16_zfill(tw::shared_address(p_4 + 2304), (p_8 + t_14), t_62 ? 16 : 0);
    cp_async_cg_16_zfill(tw::shared_address(p_4 + 2560), (p_8 + t_41), t_63 ? 16 : 0);
    cp_async_cg_16_zfill(tw::shared_address(p_4 + 2816), (p_8 + t_42), t_64 ? 16 : 0);
    double* p_9 = p_3 + t_60;
    const bool t_65 = r_2[0];
    const bool t_66 = r_2[1];
    const bool t_67 = r_2[2];
    const bool t_68 = r_2[3];
    cp_async_cg_16_zfill(tw::shared_address(p_5 + 2048), p_9, t_65 ? 16 : 0);
    cp_async_cg_16_zfill(tw::shared_address(p_5 + 2304), (p_9 + t_26), t_66 ? 16 : 0);
    cp_async_cg_16_zfill(tw::shared_address(p_5 + 2560), (p_9 + t_48), t_67 ? 16 : 0);
    cp_async_cg_16_zfill(tw::shared_address(p_5 + 2816), (p_9 + t_49), t_68 ? 16 : 0);
    asm volatile("cp.async.commit_group;" : : : "memory");
    if (k_tiles <= 3) {
      #pragma unroll
      for (int e = 0; e < 4; ++e) r[e] = false;
      #pragma unroll
      for (int e = 0; e < 4; ++e) r_2[e] = false;
    }
    asm volatile("cp.async.wait_group 2;" : : : "memory");
    __syncthreads();
    const int t_69 = t_35 ^ ((t_35 & 48) >> 2);
    double* p_10 = p + t_69;
    *reinterpret_cast<uint2*>(&tCrA[0]) = *reinterpret_cast<uint2 const*>(p_10);
    *reinterpret_cast<uint2*>(&tCrA[4]) = *reinterpret_cast<uint2 const*>((p_10 + 256));
    *reinterpret_cast<uint2*>(&tCrA[8]) = *reinterpret_cast<uint2 const*>((p_10 + 512));
    *reinterpret_cast<uint2*>(&tCrA[12]) = *reinterpret_cast<uint2 const*>((p_10 + 768));
    const int t_70 = t_36 ^ ((t_36 & 48) >> 2);
    double* p_11 = p_1 + t_70;
    *reinterpret_cast<uint2*>(&tCrB[0]) = *reinterpret_cast<uint2 const*>(p_11);
    *reinterpret_cast<uint2*>(&tCrB[4]) = *reinterpret_cast<uint2 const*>((p_11 + 256));
    *reinterpret_cast<uint2*>(&tCrB[8]) = *reinterpret_cast<uint2 const*>((p_11 + 512));
    *reinterpret_cast<uint2*>(&tCrB[12]) = *reinterpret_cast<uint2 const*>((p_11 + 768));
    int write = 3;
    int read = 0;
    #pragma unroll 1
    for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
      const int ahead = min(k_tile + 3, t_50);
      const int t_71 = read * 1024;
      double* p_12 = p + t_71;
      double* p_13 = p_12 + (t_69 ^ 4);
      *reinterpret_cast<uint2*>(&tCrA[1]) = *reinterpret_cast<uint2 const*>(p_13);
      *reinterpret_cast<uint2*>(&tCrA[5]) = *reinterpret_cast<uint2 const*>((p_13 + 256));
      *reinterpret_cast<uint2*>(&tCrA[9]) = *reinterpret_cast<uint2 const*>((p_13 + 512));
      *reinterpret_cast<uint2*>(&tCrA[13]) = *reinterpret_cast<uint2 const*>((p_13 + 768));
      double* p_14 = p_1 + t_71;
      double* p_15 = p_14 + (t_70 ^ 4);
      *reinterpret_cast<uint2*>(&tCrB[1]) = *reinterpret_cast<uint2 const*>(p_15);
      *reinterpret_cast<uint2*>(&tCrB[5]) = *reinterpret_cast<uint2 const*>((p_15 + 256));
      *reinterpret_cast<uint2*>(&tCrB[9]) = *reinterpret_cast<uint2 const*>((p_15 + 512));
      *reinterpret_cast<uint2*>(&tCrB[13]) = *reinterpret_cast<uint2 const*>((p_15 + 768));
      const int t_72 = ahead * 16;
      double* p_16 = p_2 + t_72;
      const int t_73 = write * 1024;
      const bool t_74 = r[0];
      const bool t_75 = r[1];
      const bool t_76 = r[2];
      const bool t_77 = r[3];
      double* p_17 = p + t_73 + t_43;
      cp_async_cg_16_zfill(tw::shared_address(p_17), p_16, t_74 ? 16 : 0);
      cp_async_cg_16_zfill(tw::shared_address(p_17 + 256), (p_16 + t_14), t_75 ? 16 : 0);
      cp_async_cg_16_zfill(tw::shared_address(p_17 + 512), (p_16 + t_41), t_76 ? 16 : 0);
      cp_async_cg_16_zfill(tw::shared_address(p_17 + 768), (p_16 + t_42), t_77 ? 16 : 0);
      double* p_18 = p_3 + t_72;
      const bool t_78 = r_2[0];
      const bool t_79 = r_2[1];
      const bool t_80 = r_2[2];
      const bool t_81 = r_2[3];
      double* p_19 = p_1 + t_73 + t_43;
      cp_async_cg_16_zfill(tw::shared_address(p_19), p_18, t_78 ? 16 : 0);
      cp_async_cg_16_zfill(tw::shared_address(p_19 + 256), (p_18 + t_26), t_79 ? 16 : 0);
      cp_async_cg_16_zfill(tw::shared_address(p_19 + 512), (p_18 + t_48), t_80 ? 16 : 0);
      cp_async_cg_16_zfill(tw::shared_address(p_19 + 768), (p_18 + t_49), t_81 ? 16 : 0);
      asm volatile("cp.async.commit_group;" : : : "memory");
      #pragma unroll
      for (int m = 0; m < 4; ++m) {
        #pragma unroll
        for (int n = 0; n < 4; ++n) {
          int const s = m & 1 ? 3 - n : n;
          mma_8x8x4_f64f64f64f64_tn(acc[2 * m + 8 * s], acc[2 * m + 8 * s + 1], tCrA[4 * m], tCrB[4 * s]);
        }
      }
      double* p_20 = p_12 + (t_69 ^ 8);
      *reinterpret_cast<uint2*>(&tCrA[2]) = *reinterpret_cast<uint2 const*>(p_20);
      *reinterpret_cast<uint2*>(&tCrA[6]) = *reinterpret_cast<uint2 const*>((p_20 + 256));
      *reinterpret_cast<uint2*>(&tCrA[10]) = *reinterpret_cast<uint2 const*>((p_20 + 512));
      *reinterpret_cast<uint2*>(&tCrA[14]) = *reinterpret_cast<uint2 const*>((p_20 + 768));
      double* p_21 = p_14 + (t_70 ^ 8);
      *reinterpret_cast<uint2*>(&tCrB[2]) = *reinterpret_cast<uint2 const*>(p_21);
      *reinterpret_cast<uint2*>(&tCrB[6]) = *reinterpret_cast<uint2 const*>((p_21 + 256));
      *reinterpret_cast<uint2*>(&tCrB[10]) = *reinterpret_cast<uint2 const*>((p_21 + 512));
      *reinterpret_cast<uint2*>(&tCrB[14]) = *reinterpret_cast<uint2 const*>((p_21 + 768));
      #pragma unroll
      for (int m_1 = 0; m_1 < 4; ++m_1) {
        #pragma unroll
        for (int n_1 = 0; n_1 < 4; ++n_1) {
          int const s_1 = m_1 & 1 ? 3 - n_1 : n_1;
          mma_8x8x4_f64f64f64f64_tn(acc[2 * m_1 + 8 * s_1], acc[2 * m_1 + 8 * s_1 + 1], tCrA[4 * m_1 + 1], tCrB[4 * s_1 + 1]);
        }
      }
      double* p_22 = p_12 + (t_69 ^ 12);
      *reinterpret_cast<uint2*>(&tCrA[3]) = *reinterpret_cast<uint2 const*>(p_22);
      *reinterpret_cast<uint2*>(&tCrA[7]) = *reinterpret_cast<uint2 const*>((p_22 + 256));
      *reinterpret_cast<uint2*>(&tCrA[11]) = *reinterpret_cast<uint2 const*>((p_22 + 512));
      *reinterpret_cast<uint2*>(&tCrA[15]) = *reinterpret_cast<uint2 const*>((p_22 + 768));
      double* p_23 = p_14 + (t_70 ^ 12);
      *reinterpret_cast<uint2*>(&tCrB[3]) = *reinterpret_cast<uint2 const*>(p_23);
      *reinterpret_cast<uint2*>(&tCrB[7]) = *reinterpret_cast<uint2 const*>((p_23 + 256));
      *reinterpret_cast<uint2*>(&tCrB[11]) = *reinterpret_cast<uint2 const*>((p_23 + 512));
      *reinterpret_cast<uint2*>(&tCrB[15]) = *reinterpret_cast<uint2 const*>((p_23 + 768));
      #pragma unroll
      for (int m_2 = 0; m_2 < 4; ++m_2) {
        #pragma unroll
        for (int n_2 = 0; n_2 < 4; ++n_2) {
          int const s_2 = m_2 & 1 ? 3 - n_2 : n_2;
          mma_8x8x4_f64f64f64f64_tn(acc[2 * m_2 + 8 * s_2], acc[2 * m_2 + 8 * s_2 + 1], tCrA[4 * m_2 + 2], tCrB[4 * s_2 + 2]);
        }
      }
      const int t_82 = tw::add(write, 1);
      const int write_1 = t_82 == 4 ? 0 : t_82;
      const int t_83 = tw::add(read, 1);
      const int read_1 = t_83 == 4 ? 0 : t_83;
      asm volatile("cp.async.wait_group 2;" : : : "memory");
      __syncthreads();
      const int t_84 = read_1 * 1024;
      double* p_24 = p + t_84 + t_69;
      *reinterpret_cast<uint2*>(&tCrA[0]) = *reinterpret_cast<uint2 const*>(p_24);
      *reinterpret_cast<uint2*>(&tCrA[4]) = *reinterpret_cast<uint2 const*>((p_24 + 256));
      *reinterpret_cast<uint2*>(&tCrA[8]) = *reinterpret_cast<uint2 const*>((p_24 + 512));
      *reinterpret_cast<uint2*>(&tCrA[12]) = *reinterpret_cast<uint2 const*>((p_24 + 768));
      double* p_25 = p_1 + t_84 + t_70;
      *reinterpret_cast<uint2*>(&tCrB[0]) = *reinterpret_cast<uint2 const*>(p_25);
      *reinterpret_cast<uint2*>(&tCrB[4]) = *reinterpret_cast<uint2 const*>((p_25 + 256));
      *reinterpret_cast<uint2*>(&tCrB[8]) = *reinterpret_cast<uint2 const*>((p_25 + 512));
      *reinterpret_cast<uint2*>(&tCrB[12]) = *reinterpret_cast<uint2 const*>((p_25 + 768));
      #pragma unroll
      for (int m_3 = 0; m_3 < 4; ++m_3) {
        #pragma unroll
        for (int n_3 = 0; n_3 < 4; ++n_3) {
          int const s_3 = m_3 & 1 ? 3 - n_3 : n_3;
          mma_8x8x4_f64f64f64f64_tn(acc[2 * m_3 + 8 * s_3], acc[2 * m_3 + 8 * s_3 + 1], tCrA[4 * m_3 + 3], tCrB[4 * s_3 + 3]);
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
  int t_85;
  t_85 = tw_rematerialize(bidx);
  int t_86;
  t_86 = tw_rematerialize(t);
  int t_87;
  t_87 = tw_rematerialize(t_1);
  const int t_88 = 8 * t_87;
  const int t_89 = t_85 / t_88;
  const int t_90 = tw::multiply(t_89, 8);
  const int t_91 = min(tw::subtract(t_86, t_90), 8);
  const int t_92 = tw::subtract(t_85, tw::multiply(t_89, t_88));
  const int t_93 = tw::add(t_90, tw::floormod<int32_t>(t_92, t_91));
  const int t_94 = tw::floordiv<int32_t>(t_92, t_91);
  const int t_95 = t_94 * 64;
  const int t_96 = tidx_1 % 32;
  const int t_97 = tidx_1 / 32;
  const int t_98 = t_96 % 8 * 2 + t_96 / 8 * 1024 + t_97 * 16;
  const int t_99 = 4 * mD_stride0;
  const int t_100 = t_96 * 2;
  double* p_26 = mD + bidz * mD_stride2 + (t_93 * (64 * mD_stride0) + t_95) + (t_100 + t_97 * mD_stride0);
  const int t_101 = 4 * mC_stride0;
  double* p_27 = mC + bidz * mC_stride2 + (t_93 * (64 * mC_stride0) + t_95) + (t_100 + t_97 * mC_stride0);
  const int t_102 = tw::add(tw::multiply(64, t_93), t_97);
  alignas(16) bool inside[16];
  const bool t_103 = tw::add(tw::multiply(64, t_94), 2 * t_96) < mD_shape1;
  inside[0] = t_102 < mD_shape0 && t_103;
  inside[1] = tw::add(t_102, 4) < mD_shape0 && t_103;
  inside[2] = tw::add(t_102, 8) < mD_shape0 && t_103;
  inside[3] = tw::add(t_102, 12) < mD_shape0 && t_103;
  inside[4] = tw::add(t_102, 16) < mD_shape0 && t_103;
  inside[5] = tw::add(t_102, 20) < mD_shape0 && t_103;
  inside[6] = tw::add(t_102, 24) < mD_shape0 && t_103;
  inside[7] = tw::add(t_102, 28) < mD_shape0 && t_103;
  inside[8] = tw::add(t_102, 32) < mD_shape0 && t_103;
  inside[9] = tw::add(t_102, 36) < mD_shape0 && t_103;
  inside[10] = tw::add(t_102, 40) < mD_shape0 && t_103;
  inside[11] = tw::add(t_102, 44) < mD_shape0 && t_103;
  inside[12] = tw::add(t_102, 48) < mD_shape0 && t_103;
  inside[13] = tw::add(t_102, 52) < mD_shape0 && t_103;
  inside[14] = tw::add(t_102, 56) < mD_shape0 && t_103;
  inside[15] = tw::add(t_102, 60) < mD_shape0 && t_103;
  const int t_104 = t_96 % 4 * 2 + t_96 / 4 * 16 + (t_97 % 2 * 128 + tidx_1 / 64 * 8);
  if (function_alpha != 1.0) {
    #pragma unroll
    for (int e = 0; e < 32; ++e) acc[e] = acc[e] * function_alpha;
  }
  if (function_beta != 0.0) {
    alignas(16) double vectors[32];
    #pragma unroll
    for (int e = 0; e < 32; ++e) vectors[e] = 0.0;
    const bool t_105 = inside[0];
    const bool t_106 = inside[1];
    const bool t_107 = inside[2];
    const bool t_108 = inside[3];
    const bool t_109 = inside[4];
    const bool t_110 = inside[5];
    const bool t_111 = inside[6];
    const bool t_112 = inside[7];
    const bool t_113 = inside[8];
    const bool t_114 = inside[9];
    const bool t_115 = inside[10];
    const bool t_116 = inside[11];
    const bool t_117 = inside[12];
    const bool t_118 = inside[13];
    const bool t_119 = inside[14];
    const bool t_120 = inside[15];
    tw::load_if<16>(t_105, &vectors[0], p_27);
    tw::load_if<16>(t_106, &vectors[2], (p_27 + t_101));
    tw::load_if<16>(t_107, &vectors[4], (p_27 + 2 * t_101));
    tw::load_if<16>(t_108, &vectors[6], (p_27 + 3 * t_101));
    tw::load_if<16>(t_109, &vectors[8], (p_27 + 4 * t_101));
    tw::load_if<16>(t_110, &vectors[10], (p_27 + 5 * t_101));
    tw::load_if<16>(t_111, &vectors[12], (p_27 + 6 * t_101));
    tw::load_if<16>(t_112, &vectors[14], (p_27 + 7 * t_101));
    tw::load_if<16>(t_113, &vectors[16], (p_27 + 8 * t_101));
    tw::load_if<16>(t_114, &vectors[18], (p_27 + 9 * t_101));
    tw::load_if<16>(t_115, &vectors[20], (p_27 + 10 * t_101));
    tw::load_if<16>(t_116, &vectors[22], (p_27 + 11 * t_101));
    tw::load_if<16>(t_117, &vectors[24], (p_27 + 12 * t_101));
    tw::load_if<16>(t_118, &vectors[26], (p_27 + 13 * t_101));
    tw::load_if<16>(t_119, &vectors[28], (p_27 + 14 * t_101));
    tw::load_if<16>(t_120, &vectors[30], (p_27 + 15 * t_101));
    double* p_28 = p + (t_98 ^ ((t_98 & 16) >> 1));
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
    double* p_29 = p + (t_104 ^ ((t_104 & 16) >> 1));
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
    for (int e = 0; e < 32; ++e) acc[e] = acc[e] + source[e] * function_beta;
  }
  double* p_30 = p + (t_104 ^ ((t_104 & 16) >> 1));
  *reinterpret_cast<uint4*>(p_30) = *reinterpret_cast<uint4 const*>(&acc[0]);
  *reinterpret_cast<uint4*>((p_30 + 256)) = *reinterpret_cast<uint4 const*>(&acc[2]);
  *reinterpret_cast<uint4*>((p_30 + 512)) = *reinterpret_cast<uint4 const*>(&acc[4]);
  *reinterpret_cast<uint4*>((p_30 + 768)) = *reinterpret_cast<uint4 const*>(&acc[6]);
  *reinterpret_cast<uint4*>((p_30 + 1024)) = *reinterpret_cast<uint4 const*>(&acc[8]);
  *reinterpret_cast<uint4*>((p_30 + 1280)) = *reinterpret_cast<uint4 const*>(&acc[10]);
  *reinterpret_cast<uint4*>((p_30 + 1536)) = *reinterpret_cast<uint4 const*>(&acc[12]);
  *reinterpret_cast<uint4*>((p_30 + 1792)) = *reinterpret_cast<uint4 const*>(&acc[14]);
  *reinterpret_cast<uint4*>((p_30 + 2048)) = *reinterpret_cast<uint4 const*>(&acc[16]);
  *reinterpret_cast<uint4*>((p_30 + 2304)) = *reinterpret_cast<uint4 const*>(&acc[18]);
  *reinterpret_cast<uint4*>((p_30 + 2560)) = *reinterpret_cast<uint4 const*>(&acc[20]);
  *reinterpret_cast<uint4*>((p_30 + 2816)) = *reinterpret_cast<uint4 const*>(&acc[22]);
  *reinterpret_cast<uint4*>((p_30 + 3072)) = *reinterpret_cast<uint4 const*>(&acc[24]);
  *reinterpret_cast<uint4*>((p_30 + 3328)) = *reinterpret_cast<uint4 const*>(&acc[26]);
  *reinterpret_cast<uint4*>((p_30 + 3584)) = *reinterpret_cast<uint4 const*>(&acc[28]);
  *reinterpret_cast<uint4*>((p_30 + 3840)) = *reinterpret_cast<uint4 const*>(&acc[30]);
  __syncthreads();
  alignas(16) double vectors_1[32];
  double* p_31 = p + (t_98 ^ ((t_98 & 16) >> 1));
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
  const bool t_121 = inside[0];
  const bool t_122 = inside[1];
  const bool t_123 = inside[2];
  const bool t_124 = inside[3];
  const bool t_125 = inside[4];
  const bool t_126 = inside[5];
  const bool t_127 = inside[6];
  const bool t_128 = inside[7];
  const bool t_129 = inside[8];
  const bool t_130 = inside[9];
  const bool t_131 = inside[10];
  const bool t_132 = inside[11];
  const bool t_133 = inside[12];
  const bool t_134 = inside[13];
  const bool t_135 = inside[14];
  const bool t_136 = inside[15];
  tw::store_if<16>(t_121, p_26, &vectors_1[0]);
  tw::store_if<16>(t_122, (p_26 + t_99), &vectors_1[2]);
  tw::store_if<16>(t_123, (p_26 + 2 * t_99), &vectors_1[4]);
  tw::store_if<16>(t_124, (p_26 + 3 * t_99), &vectors_1[6]);
  tw::store_if<16>(t_125, (p_26 + 4 * t_99), &vectors_1[8]);
  tw::store_if<16>(t_126, (p_26 + 5 * t_99), &vectors_1[10]);
  tw::store_if<16>(t_127, (p_26 + 6 * t_99), &vectors_1[12]);
  tw::store_if<16>(t_128, (p_26 + 7 * t_99), &vectors_1[14]);
  tw::store_if<16>(t_129, (p_26 + 8 * t_99), &vectors_1[16]);
  tw::store_if<16>(t_130, (p_26 + 9 * t_99), &vectors_1[18]);
  tw::store_if<16>(t_131, (p_26 + 10 * t_99), &vectors_1[20]);
  tw::store_if<16>(t_132, (p_26 + 11 * t_99), &vectors_1[22]);
  tw::store_if<16>(t_133, (p_26 + 12 * t_99), &vectors_1[24]);
  tw::store_if<16>(t_134, (p_26 + 13 * t_99), &vectors_1[26]);
  tw::store_if<16>(t_135, (p_26 + 14 * t_99), &vectors_1[28]);
  tw::store_if<16>(t_136, (p_26 + 15 * t_99), &vectors_1[30]);
}
