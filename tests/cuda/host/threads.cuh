// The host's stand-in for threads.cuh.
#pragma once
namespace tw {
inline void check(bool holds, const char* message, const char* file, unsigned line, const char* kernel) {
  if (holds) return;
  fprintf(stderr, "%s:%u: %s: thread: [%u,0,0] Assertion `%s` failed.\n", file, line, kernel, threadIdx.x, message);
  fflush(stderr);
}
inline int lane() { return int(threadIdx.x) % 32; }
inline int warp() { return int(threadIdx.x) / 32; }
}  // namespace tw
