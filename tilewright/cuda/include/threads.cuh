// threads.cuh: who a thread is, and how it fails.
#pragma once

// The driver's own: prints file, line, block, thread and message, and ends the kernel with an error.
extern "C" __device__ void __assertfail(const char* message, const char* file, unsigned line, const char* function, size_t size);

namespace tw {

__device__ __forceinline__ void check(bool holds, const char* message, const char* file, unsigned line, const char* kernel) {
  if (!holds) __assertfail(message, file, line, kernel, 1);
}

__device__ __forceinline__ int lane() { int r; asm("mov.u32 %0, %%laneid;" : "=r"(r)); return r; }
__device__ __forceinline__ int warp() { return int(threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) >> 5; }
__device__ __forceinline__ int dynamic_smem_size() { int r; asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(r)); return r; }
__device__ __forceinline__ int sm() { int r; asm volatile("mov.u32 %0, %%smid;" : "=r"(r)); return r; }
__device__ __forceinline__ int clock() { int r; asm volatile("mov.u32 %0, %%clock;" : "=r"(r)); return r; }

// Before sm_90 every block is a cluster of its own.
#if __CUDA_ARCH__ >= 900
#define TW_CLUSTER(NAME, REGISTER, ALONE) \
  __device__ __forceinline__ int NAME() { int r; asm("mov.u32 %0, %%" REGISTER ";" : "=r"(r)); return r; }
#else
#define TW_CLUSTER(NAME, REGISTER, ALONE) \
  __device__ __forceinline__ int NAME() { return ALONE; }
#endif
TW_CLUSTER(clusterid_x, "clusterid.x", int(blockIdx.x))
TW_CLUSTER(clusterid_y, "clusterid.y", int(blockIdx.y))
TW_CLUSTER(clusterid_z, "clusterid.z", int(blockIdx.z))
TW_CLUSTER(nclusterid_x, "nclusterid.x", int(gridDim.x))
TW_CLUSTER(nclusterid_y, "nclusterid.y", int(gridDim.y))
TW_CLUSTER(nclusterid_z, "nclusterid.z", int(gridDim.z))
TW_CLUSTER(cluster_ctaid_x, "cluster_ctaid.x", 0)
TW_CLUSTER(cluster_ctaid_y, "cluster_ctaid.y", 0)
TW_CLUSTER(cluster_ctaid_z, "cluster_ctaid.z", 0)
TW_CLUSTER(cluster_nctaid_x, "cluster_nctaid.x", 1)
TW_CLUSTER(cluster_nctaid_y, "cluster_nctaid.y", 1)
TW_CLUSTER(cluster_nctaid_z, "cluster_nctaid.z", 1)
TW_CLUSTER(cluster_ctarank, "cluster_ctarank", 0)
TW_CLUSTER(cluster_nctarank, "cluster_nctarank", 1)
#undef TW_CLUSTER

}  // namespace tw
