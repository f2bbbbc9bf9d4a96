#include "tilewright.cuh"

template <class T>
__device__ __forceinline__ T tw_rematerialize(T value) {
  asm volatile("mov.b32 %0, %0;" : "+r"(value));
  return value;
}

__device__ __forceinline__ void cp_async_ca_4_zfill(uint32_t target, void const* source, int source_bytes) {
  asm volatile("cp.async.ca.shared.global.L2::128B [%0], [%1], %2, %3;" : : "r"(target), "l"(source), "n"(4), "r"(source_bytes) : "memory");
}

__device__ __forceinline__ void cp_async_cg_16_zfill(uint32_t target, void const* source, int source_bytes) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], %2, %3;" : : "r"(target), "l"(source), "n"(16), "r"(source_bytes) : "memory");
}

extern "C" __global__ void __launch_bounds__(256)
MultistageGemm_kernel(float* mA, int mA_shape0, int mA_shape1, int mA_stride0, int mA_stride1, int mA_stride2, float* mB, int mB_shape0, int mB_shape1, int mB_stride1, int mB_stride2, float* mC, int mC_stride0, int mC_stride2, float* mD, int mD_shape0, int mD_shape1, int mD_stride0, int mD_stride2, float function_alpha, float function_beta) {
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
  float* p = reinterpret_cast<float*>(smem_1);
  const int k_tiles = (mA_shape1 + 7) / 8;
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
  const int t_6 = tw::multiply(t_5, 8);
  const int t_7 = min(tw::subtract(t_2, t_6), 8);
  const int t_8 = tw::subtract(bidx, tw::multiply(t_5, t_4));
  const int t_9 = tw::add(t_6, tw::floormod<int32_t>(t_8, t_7));
  const int t_10 = tw::floordiv<int32_t>(t_8, t_7);
  const int t_11 = mA_shape1 - k_tiles * 8;
  const int t_12 = 8 * mA_stride1;
  const int t_13 = mB_shape1 - (mB_shape1 + 7) / 8 * 8;
  const int t_14 = 8 * mB_stride1;
  int t_15;
  t_15 = tw_rematerialize(tidx);
  const int t_16 = 32 * mA_stride0;
  const int t_17 = t_15 % 8;
  const int t_18 = t_15 / 8;
  float* p_1 = mA + bidz * mA_stride2 + t_11 * mA_stride1 + t_9 * (128 * mA_stride0) + (t_17 * mA_stride1 + t_18 * mA_stride0);
  float* p_2 = p + (t_17 * 132 + t_18);
  const int t_19 = tw::add(tw::multiply(128, t_9), t_18);
  alignas(4) bool r[4];
  alignas(4) bool r_1[4];
  const bool t_20 = t_19 < mA_shape0;
  r[0] = t_20;
  const bool t_21 = t_11 + t_17 >= 0;
  r_1[0] = t_20 && t_21;
  const bool t_22 = tw::add(t_19, 32) < mA_shape0;
  r[1] = t_22;
  r_1[1] = t_22 && t_21;
  const bool t_23 = tw::add(t_19, 64) < mA_shape0;
  r[2] = t_23;
  r_1[2] = t_23 && t_21;
  const bool t_24 = tw::add(t_19, 96) < mA_shape0;
  r[3] = t_24;
  r_1[3] = t_24 && t_21;
  const int t_25 = t_15 % 32;
  const int t_26 = t_15 / 32;
  float* p_3 = mB + bidz * mB_stride2 + t_13 * mB_stride1 + t_10 * 128 + (t_25 * 4 + t_26 * mB_stride1);
  float* p_4 = p + t_15 * 4;
  bool r_2[1];
  bool r_3[1];
  const bool t_27 = tw::add(tw::multiply(128, t_10), 4 * t_25) < mB_shape0;
  r_2[0] = t_27;
  r_3[0] = t_27 && t_13 + t_26 >= 0;
  float* p_5 = p + t_15 / 16 * 4;
  alignas(16) float tCrA[64];
  float* p_6 = p + t_15 % 16 * 4;
  alignas(16) float tCrB[64];
  if (k_tiles > 0) {
    const bool t_28 = r_1[0];
    const bool t_29 = r_1[1];
    const bool t_30 = r_1[2];
    const bool t_31 = r_1[3];
    const int t_32 = 2 * t_16;
    const int t_33 = 3 * t_16;
    cp_async_ca_4_zfill(tw::shared_address(p_2), p_1, t_28 ? 4 : 0);
    cp_async_ca_4_zfill(tw::shared_address(p_2 + 32), (p_1 + t_16), t_29 ? 4 : 0);
    cp_async_ca_4_zfill(tw::shared_address(p_2 + 64), (p_1 + t_32), t_30 ? 4 : 0);
    cp_async_ca_4_zfill(tw::shared_address(p_2 + 96), (p_1 + t_33), t_31 ? 4 : 0);
    const bool t_34 = r_3[0];
    cp_async_cg_16_zfill(tw::shared_address(p_4 + 3164), p_3, t_34 ? 16 : 0);
    asm volatile("cp.async.commit_group;" : : : "memory");
    if (k_tiles <= 1) {
      #pragma unroll
      for (int e = 0; e < 4; ++e) r[e] = false;
      #pragma unroll
      for (int e = 0; e < 1; ++e) r_2[0] = false;
    }
    const int t_35 = k_tiles - 1;
    const int t_36 = min(1, t_35);
    float* p_7 = p_1 + t_36 * t_12;
    const bool t_37 = r[0];
    const bool t_38 = r[1];
    const bool t_39 = r[2];
    const bool t_40 = r[3];
    cp_async_ca_4_zfill(tw::shared_address(p_2 + 1056), p_7, t_37 ? 4 : 0);
    cp_async_ca_4_zfill(tw::shared_address(p_2 + 1088), (p_7 + t_16), t_38 ? 4 : 0);
    cp_async_ca_4_zfill(tw::shared_address(p_2 + 1120), (p_7 + t_32), t_39 ? 4 : 0);
    cp_async_ca_4_zfill(tw::shared_address(p_2 + 1152), (p_7 + t_33), t_40 ? 4 : 0);
    const bool t_41 = r_2[0];
    cp_async_cg_16_zfill(tw::shared_address(p_4 + 4188), (p_3 + t_36 * t_14), t_41 ? 16 : 0);
    asm volatile("cp.async.commit_group;" : : : "memory");
    if (k_tiles <= 2) {
      #pragma unroll
      for (int e = 0; e < 4; ++e) r[e] = false;
      #pragma unroll
      for (int e = 0; e < 1; ++e) r_2[0] = false;
    }
    asm volatile("cp.async.wait_group 1;" : : : "memory");
    __syncthreads();
    *reinterpret_cast<uint4*>(&tCrA[0]) = *reinterpret_cast<uint4 const*>(p_5);
    *reinterpret_cast<uint4*>(&tCrA[4]) = *reinterpret_cast<uint4 const*>((p_5 + 64));
    *reinterpret_cast<uint4*>(&tCrB[0]) = *reinterpret_cast<uint4 const*>((p_6 + 3164));
    *reinterpret_cast<uint4*>(&tCrB[4]) = *reinterpret_cast<uint4 const*>((p_6 + 3228));
    int write = 2;
    int read = 0;
    #pragma unroll 1
    for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
      const int ahead = min(k_tile + 2, t_35);
      float* p_8 = p_5 + read * 1056;
      *reinterpret_cast<uint4*>(&tCrA[8]) = *reinterpret_cast<uint4 const*>((p_8 + 132));
      *reinterpret_cast<uint4*>(&tCrA[12]) = *reinterpret_cast<uint4 const*>((p_8 + 196));
      float* p_9 = p_6 + read * 1024;
      *reinterpret_cast<uint4*>(&tCrB[8]) = *reinterpret_cast<uint4 const*>((p_9 + 3292));
      *reinterpret_cast<uint4*>(&tCrB[12]) = *reinterpret_cast<uint4 const*>((p_9 + 3356));
      float* p_10 = p_1 + ahead * t_12;
      float* p_11 = p_2 + write * 1056;
      const bool t_42 = r[0];
      const bool t_43 = r[1];
      const bool t_44 = r[2];
      const bool t_45 = r[3];
      cp_async_ca_4_zfill(tw::shared_address(p_11), p_10, t_42 ? 4 : 0);
      cp_async_ca_4_zfill(tw::shared_address(p_11 + 32), (p_10 + t_16), t_43 ? 4 : 0);
      cp_async_ca_4_zfill(tw::shared_address(p_11 + 64), (p_10 + t_32), t_44 ? 4 : 0);
      cp_async_ca_4_zfill(tw::shared_address(p_11 + 96), (p_10 + t_33), t_45 ? 4 : 0);
      const bool t_46 = r_2[0];
      cp_async_cg_16_zfill(tw::shared_address(p_4 + write * 1024 + 3164), (p_3 + ahead * t_14), t_46 ? 16 : 0);
      asm volatile("cp.async.commit_group;" : : : "memory");
      #pragma unroll
      for (int m = 0; m < 8; ++m) {
        #pragma unroll
        for (int n = 0; n < 8; ++n) {
          int const s = m & 1 ? 7 - n : n;
          acc[m + 8 * s] = fmaf(tCrA[m], tCrB[s], acc[m + 8 * s]);
        }
      }
      *reinterpret_cast<uint4*>(&tCrA[16]) = *reinterpret_cast<uint4 const*>((p_8 + 264));
      *reinterpret_cast<uint4*>(&tCrA[20]) = *reinterpret_cast<uint4 const*>((p_8 + 328));
      *reinterpret_cast<uint4*>(&tCrB[16]) = *reinterpret_cast<uint4 const*>((p_9 + 3420));
      *reinterpret_cast<uint4*>(&tCrB[20]) = *reinterpret_cast<uint4 const*>((p_9 + 3484));
      #pragma unroll
      for (int m_1 = 0; m_1 < 8; ++m_1) {
        #pragma unroll
        for (int n_1 = 0; n_1 < 8; ++n_1) {
          int const s_1 = m_1 & 1 ? 7 - n_1 : n_1;
          acc[m_1 + 8 * s_1] = fmaf(tCrA[m_1 + 8], tCrB[s_1 + 8], acc[m_1 + 8 * s_1]);
        }
      }
      *reinterpret_cast<uint4*>(&tCrA[24]) = *reinterpret_cast<uint4 const*>((p_8 + 396));
      *reinterpret_cast<uint4*>(&tCrA[28]) = *reinterpret_cast<uint4 const*>((p_8 + 460));
      *reinterpret_cast<uint4*>(&tCrB[24]) = *reinterpret_cast<uint4 const*>((p_9 + 3548));
      *reinterpret_cast<uint4*>(&tCrB[28]) = *reinterpret_cast<uint4 const*>((p_9 + 3612));
      #pragma unroll
      for (int m_2 = 0; m_2 < 8; ++m_2) {
        #pragma unroll
        for (int n_2 = 0; n_2 < 8; ++n_2) {
          int const s_2 = m_2 & 1 ? 7 - n_2 : n_2;
          acc[m_2 + 8 * s_2] = fmaf(tCrA[m_2 + 16], tCrB[s_2 + 16], acc[m_2 + 8 * s_2]);
        }
      }
      *reinterpret_cast<uint4*>(&tCrA[32]) = *reinterpret_cast<uint4 const*>((p_8 + 528));
      *reinterpret_cast<uint4*>(&tCrA[36]) = *reinterpret_cast<uint4 const*>((p_8 + 592));
      *reinterpret_cast<uint4*>(&tCrB[32]) = *reinterpret_cast<uint4 const*>((p_9 + 3676));
      *reinterpret_cast<uint4*>(&tCrB[36]) = *reinterpret_cast<uint4 const*>((p_9 + 3740));
      #pragma unroll
      for (int m_3 = 0; m_3 < 8; ++m_3) {
        #pragma unroll
        for (int n_3 = 0; n_3 < 8; ++n_3) {
          int const s_3 = m_3 & 1 ? 7 - n_3 : n_3;
          acc[m_3 + 8 * s_3] = fmaf(tCrA[m_3 + 24], tCrB[s_3 + 24], acc[m_3 + 8 * s_3]);
        }
      }
      *reinterpret_cast<uint4*>(&tCrA[40]) = *reinterpret_cast<uint4 const*>((p_8 + 660));
      *reinterpret_cast<uint4*>(&tCrA[44]) = *reinterpret_cast<uint4 const*>((p_8 + 724));
      *reinterpret_cast<uint4*>(&tCrB[40]) = *reinterpret_cast<uint4 const*>((p_9 + 3804));
      *reinterpret_cast<uint4*>(&tCrB[44]) = *reinterpret_cast<uint4 const*>((p_9 + 3868));
      #pragma unroll
      for (int m_4 = 0; m_4 < 8; ++m_4) {
        #pragma unroll
        for (int n_4 = 0; n_4 < 8; ++n_4) {
          int const s_4 = m_4 & 1 ? 7 - n_4 : n_4;
          acc[m_4 + 8 * s_4] = fmaf(tCrA[m_4 + 32], tCrB[s_4 + 32], acc[m_4 + 8 * s_4]);
        }
      }
      *reinterpret_cast<uint4*>(&tCrA[48]) = *reinterpret_cast<uint4 const*>((p_8 + 792));
      *reinterpret_cast<uint4*>(&tCrA[52]) = *reinterpret_cast<uint4 const*>((p_8 + 856));
      *reinterpret_cast<uint4*>(&tCrB[48]) = *reinterpret_cast<uint4 const*>((p_9 + 3932));
      *reinterpret_cast<uint4*>(&tCrB[52]) = *reinterpret_cast<uint4 const*>((p_9 + 3996));
      #pragma unroll
      for (int m_5 = 0; m_5 < 8; ++m_5) {
        #pragma unroll
        for (int n_5 = 0; n_5 < 8; ++n_5) {
          int const s_5 = m_5 & 1 ? 7 - n_5 : n_5;
          acc[m_5 + 8 * s_5] = fmaf(tCrA[m_5 + 40], tCrB[s_5 + 40], acc[m_5 + 8 * s_5]);
        }
      }
      *reinterpret_cast<uint4*>(&tCrA[56]) = *reinterpret_cast<uint4 const*>((p_8 + 924));
      *reinterpret_cast<uint4*>(&tCrA[60]) = *reinterpret_cast<uint4 const*>((p_8 + 988));
      *reinterpret_cast<uint4*>(&tCrB[56]) = *reinterpret_cast<uint4 const*>((p_9 + 4060));
      *reinterpret_cast<uint4*>(&tCrB[60]) = *reinterpret_cast<uint4 const*>((p_9 + 4124));
      #pragma unroll
      for (int m_6 = 0; m_6 < 8; ++m_6) {
        #pragma unroll
        for (int n_6 = 0; n_6 < 8; ++n_6) {
          int const s_6 = m_6 & 1 ? 7 - n_6 : n_6;
          acc[m_6 + 8 * s_6] = fmaf(tCrA[m_6 + 48], tCrB[s_6 + 48], acc[m_6 + 8 * s_6]);
        }
      }
      const int t_47 = tw::add(write, 1);
      const int write_1 = t_47 == 3 ? 0 : t_47;
      const int t_48 = tw::add(read, 1);
      const int read_1 = t_48 == 3 ? 0 : t_48;
      asm volatile("cp.async.wait_group 1;" : : : "memory");
      __syncthreads();
      float* p_12 = p_5 + read_1 * 1056;
      *reinterpret_cast<uint4*>(&tCrA[0]) = *reinterpret_cast<uint4 const*>(p_12);
      *reinterpret_cast<uint4*>(&tCrA[4]) = *reinterpret_cast<uint4 const*>((p_12 + 64));
      float* p_13 = p_6 + read_1 * 1024;
      *reinterpret_cast<uint4*>(&tCrB[0]) = *reinterpret_cast<uint4 const*>((p_13 + 3164));
      *reinterpret_cast<uint4*>(&tCrB[4]) = *reinterpret_cast<uint4 const*>((p_13 + 3228));
      #pragma unroll
      for (int m_7 = 0; m_7 < 8; ++m_7) {
        #pragma unroll
        for (int n_7 = 0; n_7 < 8; ++n_7) {
          int const s_7 = m_7 & 1 ? 7 - n_7 : n_7;
          acc[m_7 + 8 * s_7] = fmaf(tCrA[m_7 + 56], tCrB[s_7 + 56], acc[m_7 + 8 * s_7]);
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
  int t_49;
  t_49 = tw_rematerialize(bidx);
  int t_50;
  t_50 = tw_rematerialize(t);
  int t_51;
  t_51 = tw_rematerialize(t_1);
  const int t_52 = 8 * t_51;
  const int t_53 = t_49 / t_52;
  const int t_54 = tw::multiply(t_53, 8);
  const int t_55 = min(tw::subtract(t_50, t_54), 8);
  const int t_56 = tw::subtract(t_49, tw::multiply(t_53, t_52));
  const int t_57 = tw::add(t_54, tw::floormod<int32_t>(t_56, t_55));
  const int t_58 = tw::floordiv<int32_t>(t_56, t_55);
  const int t_59 = t_58 * 128;
  const int t_60 = tidx_1 / 16;
  const int t_61 = tidx_1 % 16;
  const int t_62 = 64 * mD_stride0;
  const int t_63 = t_61 * 4;
  float* p_14 = mD + bidz * mD_stride2 + (t_57 * (128 * mD_stride0) + t_59) + (t_60 * (4 * mD_stride0) + t_63);
  const int t_64 = 64 * mC_stride0;
  float* p_15 = mC + bidz * mC_stride2 + (t_57 * (128 * mC_stride0) + t_59) + (t_60 * (4 * mC_stride0) + t_63);
  const int t_65 = tw::add(tw::multiply(128, t_57), 4 * t_60);
  const int t_66 = tw::add(tw::multiply(128, t_58), 4 * t_61);
  alignas(16) bool inside[16];
  const bool t_67 = t_65 < mD_shape0;
  const bool t_68 = t_66 < mD_shape1;
  inside[0] = t_67 && t_68;
  const bool t_69 = tw::add(t_66, 64) < mD_shape1;
  inside[1] = t_67 && t_69;
  const bool t_70 = tw::add(t_65, 1) < mD_shape0;
  inside[2] = t_70 && t_68;
  inside[3] = t_70 && t_69;
  const bool t_71 = tw::add(t_65, 2) < mD_shape0;
  inside[4] = t_71 && t_68;
  inside[5] = t_71 && t_69;
  const bool t_72 = tw::add(t_65, 3) < mD_shape0;
  inside[6] = t_72 && t_68;
  inside[7] = t_72 && t_69;
  const bool t_73 = tw::add(t_65, 64) < mD_shape0;
  inside[8] = t_73 && t_68;
  inside[9] = t_73 && t_69;
  const bool t_74 = tw::add(t_65, 65) < mD_shape0;
  inside[10] = t_74 && t_68;
  inside[11] = t_74 && t_69;
  const bool t_75 = tw::add(t_65, 66) < mD_shape0;
  inside[12] = t_75 && t_68;
  inside[13] = t_75 && t_69;
  const bool t_76 = tw::add(t_65, 67) < mD_shape0;
  inside[14] = t_76 && t_68;
  inside[15] = t_76 && t_69;
  if (function_alpha != 1.0f) {
    #pragma unroll
    for (int e = 0; e < 64; ++e) acc[e] = acc[e] * function_alpha;
  }
  if (function_beta != 0.0f) {
    alignas(16) float source[64];
    #pragma unroll
    for (int e = 0; e < 64; ++e) source[e] = 0.0f;
    const bool t_77 = inside[0];
    const bool t_78 = inside[1];
    const bool t_79 = inside[2];
    const bool t_80 = inside[3];
    const bool t_81 = inside[4];
    const bool t_82 = inside[5];
    const bool t_83 = inside[6];
    const bool t_84 = inside[7];
    const bool t_85 = inside[8];
    const bool t_86 = inside[9];
    const bool t_87 = inside[10];
    const bool t_88 = inside[11];
    const bool t_89 = inside[12];
    const bool t_90 = inside[13];
    const bool t_91 = inside[14];
    const bool t_92 = inside[15];
    const int t_93 = 2 * mC_stride0;
    const int t_94 = 3 * mC_stride0;
    float* p_16 = p_15 + mC_stride0;
    float* p_17 = p_15 + t_93;
    float* p_18 = p_15 + t_94;
    float* p_19 = p_15 + t_64;
    float* p_20 = p_15 + (mC_stride0 + t_64);
    float* p_21 = p_15 + (t_93 + t_64);
    float* p_22 = p_15 + (t_94 + t_64);
    if (t_77) {
      alignas(16) float parts[4];
      *reinterpret_cast<uint4*>(parts) = *reinterpret_cast<uint4 const*>(p_15);
      source[0] = parts[0]; source[8] = parts[1]; source[16] = parts[2]; source[24] = parts[3];
    }
    if (t_78) {
      alignas(16) float parts_1[4];
      *reinterpret_cast<uint4*>(parts_1) = *reinterpret_cast<uint4 const*>((p_15 + 64));
      source[32] = parts_1[0]; source[40] = parts_1[1]; source[48] = parts_1[2]; source[56] = parts_1[3];
    }
    if (t_79) {
      alignas(16) float parts_2[4];
      *reinterpret_cast<uint4*>(parts_2) = *reinterpret_cast<uint4 const*>(p_16);
      source[1] = parts_2[0]; source[9] = parts_2[1]; source[17] = parts_2[2]; source[25] = parts_2[3];
    }
    if (t_80) {
      alignas(16) float parts_3[4];
      *reinterpret_cast<uint4*>(parts_3) = *reinterpret_cast<uint4 const*>((p_16 + 64));
      source[33] = parts_3[0]; source[41] = parts_3[1]; source[49] = parts_3[2]; source[57] = parts_3[3];
    }
    if (t_81) {
      alignas(16) float parts_4[4];
      *reinterpret_cast<uint4*>(parts_4) = *reinterpret_cast<uint4 const*>(p_17);
      source[2] = parts_4[0]; source[10] = parts_4[1]; source[18] = parts_4[2]; source[26] = parts_4[3];
    }
    if (t_82) {
      alignas(16) float parts_5[4];
      *reinterpret_cast<uint4*>(parts_5) = *reinterpret_cast<uint4 const*>((p_17 + 64));
      source[34] = parts_5[0]; source[42] = parts_5[1]; source[50] = parts_5[2]; source[58] = parts_5[3];
    }
    if (t_83) {
      alignas(16) float parts_6[4];
      *reinterpret_cast<uint4*>(parts_6) = *reinterpret_cast<uint4 const*>(p_18);
      source[3] = parts_6[0]; source[11] = parts_6[1]; source[19] = parts_6[2]; source[27] = parts_6[3];
    }
    if (t_84) {
      alignas(16) float parts_7[4];
      *reinterpret_cast<uint4*>(parts_7) = *reinterpret_cast<uint4 const*>((p_18 + 64));
      source[35] = parts_7[0]; source[43] = parts_7[1]; source[51] = parts_7[2]; source[59] = parts_7[3];
    }
    if (t_85) {
      alignas(16) float parts_8[4];
      *reinterpret_cast<uint4*>(parts_8) = *reinterpret_cast<uint4 const*>(p_19);
      source[4] = parts_8[0]; source[12] = parts_8[1]; source[20] = parts_8[2]; source[28] = parts_8[3];
    }
    if (t_86) {
      alignas(16) float parts_9[4];
      *reinterpret_cast<uint4*>(parts_9) = *reinterpret_cast<uint4 const*>((p_19 + 64));
      source[36] = parts_9[0]; source[44] = parts_9[1]; source[52] = parts_9[2]; source[60] = parts_9[3];
    }
    if (t_87) {
      alignas(16) float parts_10[4];
      *reinterpret_cast<uint4*>(parts_10) = *reinterpret_cast<uint4 const*>(p_20);
      source[5] = parts_10[0]; source[13] = parts_10[1]; source[21] = parts_10[2]; source[29] = parts_10[3];
    }
    if (t_88) {
      alignas(16) float parts_11[4];
      *reinterpret_cast<uint4*>(parts_11) = *reinterpret_cast<uint4 const*>((p_20 + 64));
      source[37] = parts_11[0]; source[45] = parts_11[1]; source[53] = parts_11[2]; source[61] = parts_11[3];
    }
    if (t_89) {
      alignas(16) float parts_12[4];
      *reinterpret_cast<uint4*>(parts_12) = *reinterpret_cast<uint4 const*>(p_21);
      source[6] = parts_12[0]; source[14] = parts_12[1]; source[22] = parts_12[2]; source[30] = parts_12[3];
    }
    if (t_90) {
      alignas(16) float parts_13[4];
      *reinterpret_cast<uint4*>(parts_13) = *reinterpret_cast<uint4 const*>((p_21 + 64));
      source[38] = parts_13[0]; source[46] = parts_13[1]; source[54] = parts_13[2]; source[62] = parts_13[3];
    }
    if (t_91) {
      alignas(16) float parts_14[4];
      *reinterpret_cast<uint4*>(parts_14) = *reinterpret_cast<uint4 const*>(p_22);
      source[7] = parts_14[0]; source[15] = parts_14[1]; source[23] = parts_14[2]; source[31] = parts_14[3];
    }
    if (t_92) {
      alignas(16) float parts_15[4];
      *reinterpret_cast<uint4*>(parts_15) = *reinterpret_cast<uint4 const*>((p_22 + 64));
      source[39] = parts_15[0]; source[47] = parts_15[1]; source[55] = parts_15[2]; source[63] = parts_15[3];
    }
    #pragma unroll
    for (int e = 0; e < 64; ++e) acc[e] = acc[e] + source[e] * function_beta;
  }
  const bool t_95 = inside[0];
  const bool t_96 = inside[1];
  const bool t_97 = inside[2];
  const bool t_98 = inside[3];
  const bool t_99 = inside[4];
  const bool t_100 = inside[5];
  const bool t_101 = inside[6];
  const bool t_102 = inside[7];
  const bool t_103 = inside[8];
  const bool t_104 = inside[9];
  const bool t_105 = inside[10];
  const bool t_106 = inside[11];
  const bool t_107 = inside[12];
  const bool t_108 = inside[13];
  const bool t_109 = inside[14];
  const bool t_110 = inside[15];
  const int t_111 = 2 * mD_stride0;
  const int t_112 = 3 * mD_stride0;
  float* p_23 = p_14 + mD_stride0;
  float* p_24 = p_14 + t_111;
  float* p_25 = p_14 + t_112;
  float* p_26 = p_14 + t_62;
  float* p_27 = p_14 + (mD_stride0 + t_62);
  float* p_28 = p_14 + (t_111 + t_62);
  float* p_29 = p_14 + (t_112 + t_62);
  if (t_95) {
    alignas(16) float parts_16[4] = {acc[0], acc[8], acc[16], acc[24]};
    *reinterpret_cast<uint4*>(p_14) = *reinterpret_cast<uint4 const*>(parts_16);
  }
  if (t_96) {
    alignas(16) float parts_17[4] = {acc[32], acc[40], acc[48], acc[56]};
    *reinterpret_cast<uint4*>((p_14 + 64)) = *reinterpret_cast<uint4 const*>(parts_17);
  }
  if (t_97) {
    alignas(16) float parts_18[4] = {acc[1], acc[9], acc[17], acc[25]};
    *reinterpret_cast<uint4*>(p_23) = *reinterpret_cast<uint4 const*>(parts_18);
  }
  if (t_98) {
    alignas(16) float parts_19[4] = {acc[33], acc[41], acc[49], acc[57]};
    *reinterpret_cast<uint4*>((p_23 + 64)) = *reinterpret_cast<uint4 const*>(parts_19);
  }
  if (t_99) {
    alignas(16) float parts_20[4] = {acc[2], acc[10], acc[18], acc[26]};
    *reinterpret_cast<uint4*>(p_24) = *reinterpret_cast<uint4 const*>(parts_20);
  }
  if (t_100) {
    alignas(16) float parts_21[4] = {acc[34], acc[42], acc[50], acc[58]};
    *reinterpret_cast<uint4*>((p_24 + 64)) = *reinterpret_cast<uint4 const*>(parts_21);
  }
  if (t_101) {
    alignas(16) float parts_22[4] = {acc[3], acc[11], acc[19], acc[27]};
    *reinterpret_cast<uint4*>(p_25) = *reinterpret_cast<uint4 const*>(parts_22);
  }
  if (t_102) {
    alignas(16) float parts_23[4] = {acc[35], acc[43], acc[51], acc[59]};
    *reinterpret_cast<uint4*>((p_25 + 64)) = *reinterpret_cast<uint4 const*>(parts_23);
  }
  if (t_103) {
    alignas(16) float parts_24[4] = {acc[4], acc[12], acc[20], acc[28]};
    *reinterpret_cast<uint4*>(p_26) = *reinterpret_cast<uint4 const*>(parts_24);
  }
  if (t_104) {
    alignas(16) float parts_25[4] = {acc[36], acc[44], acc[52], acc[60]};
    *reinterpret_cast<uint4*>((p_26 + 64)) = *reinterpret_cast<uint4 const*>(parts_25);
  }
  if (t_105) {
    alignas(16) float parts_26[4] = {acc[5], acc[13], acc[21], acc[29]};
    *reinterpret_cast<uint4*>(p_27) = *reinterpret_cast<uint4 const*>(parts_26);
  }
  if (t_106) {
    alignas(16) float parts_27[4] = {acc[37], acc[45], acc[53], acc[61]};
    *reinterpret_cast<uint4*>((p_27 + 64)) = *reinterpret_cast<uint4 const*>(parts_27);
  }
  if (t_107) {
    alignas(16) float parts_28[4] = {acc[6], acc[14], acc[22], acc[30]};
    *reinterpret_cast<uint4*>(p_28) = *reinterpret_cast<uint4 const*>(parts_28);
  }
  if (t_108) {
    alignas(16) float parts_29[4] = {acc[38], acc[46], acc[54], acc[62]};
    *reinterpret_cast<uint4*>((p_28 + 64)) = *reinterpret_cast<uint4 const*>(parts_29);
  }
  if (t_109) {
    alignas(16) float parts_30[4] = {acc[7], acc[15], acc[23], acc[31]};
    *reinterpret_cast<uint4*>(p_29) = *reinterpret_cast<uint4 const*>(parts_30);
  }
  if (t_110) {
    alignas(16) float parts_31[4] = {acc[39], acc[47], acc[55], acc[63]};
    *reinterpret_cast<uint4*>((p_29 + 64)) = *reinterpret_cast<uint4 const*>(parts_31);
  }
}
