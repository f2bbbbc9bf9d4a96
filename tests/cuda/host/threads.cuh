// The host's stand-in for threads.cuh.
#pragma once
namespace tw {
inline int lane() { return int(threadIdx.x) % 32; }
inline int warp() { return int(threadIdx.x) / 32; }
}  // namespace tw
