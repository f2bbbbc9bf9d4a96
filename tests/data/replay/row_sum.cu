#include "tilewright.cuh"

template <class T>
__device__ __forceinline__ T tw_shfl_bfly(T value, int offset, unsigned mask, int control) {
  unsigned words[(sizeof(T) + 3) / 4] = {};
  memcpy(words, &value, sizeof(T));
#pragma unroll
  for (unsigned& word : words)
    asm volatile("shfl.sync.bfly.b32 %0, %0, %1, %2, %3;" : "+r"(word) : "r"(offset), "r"(control), "r"(mask));
  memcpy(&value, words, sizeof(T));
  return value;
}

extern "C" __global__ void __launch_bounds__(128)
RowSum_kernel(float* mX, int mX_shape0, int mX_shape1, int mX_stride0, float* mOut) {
  const int bidx = blockIdx.x;
  const int lane = tw::lane();
  const int warpid = tw::warp();
  const int row = tw::add(tw::multiply(bidx, 4), warpid);
  if (row < mX_shape0) {
    float total = 0.0f;
    for (int column = lane; column < mX_shape1; column += 32) {
      const float t = mX[row * mX_stride0 + column];
      total = total + t;
    }
    float t_1;
    t_1 = tw_shfl_bfly(total, 16, -1, 31);
    const float t_2 = total + t_1;
    float t_3;
    t_3 = tw_shfl_bfly(t_2, 8, -1, 31);
    const float t_4 = t_2 + t_3;
    float t_5;
    t_5 = tw_shfl_bfly(t_4, 4, -1, 31);
    const float t_6 = t_4 + t_5;
    float t_7;
    t_7 = tw_shfl_bfly(t_6, 2, -1, 31);
    const float t_8 = t_6 + t_7;
    float t_9;
    t_9 = tw_shfl_bfly(t_8, 1, -1, 31);
    const float total_1 = t_8 + t_9;
    if (lane == 0) {
      mOut[row] = total_1;
    }
  }
}
