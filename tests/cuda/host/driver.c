// A driver without a GPU: answers what loading asks, and remembers the last launch for the test to look at.
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

typedef struct { int id, pad; unsigned value[16]; } Attribute;
typedef struct { unsigned grid[3], block[3], smem; void* stream; Attribute* attributes; unsigned count; } Config;
struct {
  unsigned grid[3], block[3], smem, cluster[3], launches, smem_allowed, non_portable, pushes, capability;
  void* stream;
  size_t size;
  unsigned char block_of_parameters[512];
} last = {.capability = 90};
int attribute_count = 0, attributes_seen[16];  // of the last launch: pairs of id and first word
int next_code = 0, current = 1, device_count = 2;
int sizes[32];  // of the kernel's parameters in bytes, 0 after the last; a real driver reads them in the module

int cuInit(unsigned flags) { return 0; }
int cuDriverGetVersion(int* v) { *v = 13000; return 0; }
int cuDeviceGetCount(int* n) { *n = device_count; return 0; }
int cuDeviceGet(int* d, int n) { *d = n; return 0; }
int cuDeviceGetName(char* text, int n, int d) { strncpy(text, "Imaginary GPU", n); return 0; }
int cuDeviceGetAttribute(int* v, int attribute, int d) {
  switch (attribute) {
    case 1: *v = 1024; break;
    case 2: case 3: *v = 1024; break;
    case 4: *v = 64; break;
    case 5: *v = 2147483647; break;
    case 6: case 7: *v = 65535; break;
    case 16: *v = 132; break;
    case 75: *v = last.capability / 10; break;
    case 76: *v = last.capability % 10; break;
    case 97: *v = 232448; break;
    default: return 1;
  }
  return 0;
}
int cuDevicePrimaryCtxRetain(void** c, int d) { *c = (void*)(size_t)(d + 1); return 0; }
int cuCtxGetCurrent(void** c) { *c = (void*)(size_t)current; return 0; }
int failures = 0;  // calls that need a context in a thread without one: compute-sanitizer reports each of them
#define NEEDS_CONTEXT if (!current) return ++failures, 201
int cuCtxGetDevice(int* d) { NEEDS_CONTEXT; *d = current - 1; return 0; }
int cuCtxSetCurrent(void* c) { current = (int)(size_t)c; return 0; }
static int stack[16], depth = 0;
int cuCtxPushCurrent_v2(void* c) { stack[depth++] = current; current = (int)(size_t)c; ++last.pushes; return 0; }
int cuCtxPopCurrent_v2(void** c) { current = stack[--depth]; return 0; }
int cuCtxSynchronize(void) { NEEDS_CONTEXT; int code = next_code; next_code = 0; return code; }
int cuStreamCreate(void** s, unsigned flags) { NEEDS_CONTEXT; *s = malloc(1); return 0; }
int cuStreamDestroy_v2(void* s) { free(s); return 0; }
// A stream that is being captured: the nodes that the next one depends on, each the handle of its kernel or 0, a copy.
int capturing = 0, node_count = 0;
void* nodes[4];
int cuStreamIsCapturing(void* s, int* status) { *status = s ? capturing : 0; return 0; }
int cuStreamGetCaptureInfo_v3(void* s, int* status, unsigned long long* id, void** graph, void*** before, void** edges, size_t* n) {
  if (!capturing) return 1;
  *status = capturing, *id = 1, *graph = (void*)90, *before = nodes, *edges = 0, *n = node_count;
  return 0;
}
int cuGraphNodeGetType(void* node, int* kind) { *kind = node ? 0 : 1; return 0; }
typedef struct { void* function; unsigned grid[3], block[3], smem; void *parameters, *extra, *kernel, *context; } Node;
int cuGraphKernelNodeGetParams_v2(void* node, Node* found) { memset(found, 0, sizeof *found); found->function = node; return !node; }
int cuStreamSynchronize(void* s) { NEEDS_CONTEXT; return 0; }
int allocations = 0;
int cuMemAlloc_v2(void** p, size_t n) { NEEDS_CONTEXT; *p = malloc(n); ++allocations; return 0; }
int cuMemFree_v2(void* p) { NEEDS_CONTEXT; free(p); --allocations; return 0; }
int cuMemsetD8Async(void* p, unsigned char v, size_t n, void* s) { NEEDS_CONTEXT; memset(p, v, n); return 0; }
int cuMemcpyHtoD_v2(void* to, const void* from, size_t n) { NEEDS_CONTEXT; memcpy(to, from, n); return 0; }
int cuMemcpyDtoH_v2(void* to, const void* from, size_t n) { NEEDS_CONTEXT; memcpy(to, from, n); return 0; }
int cuEventCreate(void** e, unsigned flags) { NEEDS_CONTEXT; *e = malloc(1); return 0; }
int cuEventRecord(void* e, void* stream) { NEEDS_CONTEXT; return 0; }
int cuEventSynchronize(void* e) { return 0; }
int cuEventElapsedTime(float* ms, void* a, void* b) { *ms = 2.0f; return 0; }
int cuEventDestroy_v2(void* e) { free(e); return 0; }
int cuThreadExchangeStreamCaptureMode(int* mode) { return 0; }
int cuModuleLoadData(void** m, const char* image) { NEEDS_CONTEXT; *m = (void*)7; return memcmp(image, "\177ELF", 4) ? 200 : 0; }
int cuModuleGetFunction(void** f, void* m, const char* name) { NEEDS_CONTEXT; *f = (void*)(size_t)(8 + current); return 0; }
int unloaded = 0;
int cuModuleUnload(void* m) { NEEDS_CONTEXT; return m == (void*)7 ? ++unloaded, 0 : 400; }
int cuLibraryLoadData(void** l, const void* image, void* a, void** b, unsigned na, void* c, void** d, unsigned nc) {
  *l = (void*)70;
  return na || nc ? 1 : memcmp(image, "\177ELF", 4) ? 200 : 0;
}
int cuLibraryUnload(void* l) { return l == (void*)70 ? ++unloaded, 0 : 400; }
int cuLibraryGetKernel(void** k, void* l, const char* name) { *k = (void*)80; return strcmp(name, "missing") ? 0 : 500; }
int cuKernelGetFunction(void** f, void* k) { NEEDS_CONTEXT; *f = (void*)(size_t)(8 + current); return k != (void*)80; }
int cuKernelSetAttribute(int attribute, int value, void* k, int device) {
  if (attribute == 8) last.smem_allowed = value;
  return k != (void*)80;
}
int cuFuncGetAttribute(int* v, int attribute, void* f) { NEEDS_CONTEXT; *v = attribute == 0 ? 512 : attribute == 4 ? 40 : 0; return 0; }
int cuFuncSetAttribute(void* f, int attribute, int v) {
  NEEDS_CONTEXT;
  if (attribute == 8) last.smem_allowed = v;
  if (attribute == 14) last.non_portable = v;
  return 0;
}
int cuLaunchKernelEx(const Config* c, void* f, void** params, void** extra) {
  NEEDS_CONTEXT;
  if ((size_t)f != 8 + current) return 400;  // a function of another context
  memcpy(last.grid, c->grid, 12), memcpy(last.block, c->block, 12);
  last.smem = c->smem, last.stream = c->stream, ++last.launches;
  memset(last.cluster, 0, 12);
  attribute_count = c->count;
  for (unsigned i = 0; i < c->count && i < 8; ++i)
    attributes_seen[2 * i] = c->attributes[i].id, attributes_seen[2 * i + 1] = c->attributes[i].value[0];
  for (unsigned i = 0; i < c->count; ++i)
    if (c->attributes[i].id == 4) memcpy(last.cluster, c->attributes[i].value, 12);
  if (extra) {  // the parameters as one block: pairs of what follows and its value
    if (params || extra[0] != (void*)1 || extra[2] != (void*)2 || extra[4]) return 1;
    last.size = *(size_t*)extra[3];
    memcpy(last.block_of_parameters, extra[1], last.size);
    return 0;
  }
  last.size = 0;
  for (int i = 0; sizes[i]; last.size += sizes[i++])
    memcpy(last.block_of_parameters + last.size, params[i], sizes[i]);
  int code = next_code;
  next_code = 0;
  return code;
}
// The tensor map of this driver: its arguments one after another, and how often it was asked.
typedef struct {
  void* address; size_t dims[5], strides[5]; unsigned box[5], steps[5]; int kind, rank, interleave, swizzle;
} Map;
int maps = 0;
int cuTensorMapEncodeTiled(void* out, int kind, unsigned rank, void* address, const size_t* dims, const size_t* strides,
                           const unsigned* box, const unsigned* steps, int interleave, int swizzle, int l2, int fill) {
  static Map map;
  if ((size_t)out % 64 || !strides || rank > 5) return 1;
  memset(&map, 0, sizeof map);
  map.address = address, map.kind = kind, map.rank = rank, map.interleave = interleave, map.swizzle = swizzle;
  memcpy(map.dims, dims, 8 * rank), memcpy(map.strides, strides, 8 * (rank - 1));
  memcpy(map.box, box, 4 * rank), memcpy(map.steps, steps, 4 * rank);
  memset(out, 0, 128);
  memcpy(out, &map.address, 8), memcpy((char*)out + 8, map.dims, 16), memcpy((char*)out + 24, map.strides, 16);
  memcpy((char*)out + 40, map.box, 20), memcpy((char*)out + 60, map.steps, 20);
  memcpy((char*)out + 80, &map.kind, 16), memcpy((char*)out + 96, &l2, 4), memcpy((char*)out + 100, &fill, 4);
  ++maps;
  return 0;
}
// That of im2col copies: extents, corners, channels and pixels, steps.
int cuTensorMapEncodeIm2col(void* out, int kind, unsigned rank, void* address, const size_t* dims, const size_t* strides,
                            const int* lower, const int* upper, unsigned channels, unsigned pixels, const unsigned* steps,
                            int interleave, int swizzle, int l2, int fill) {
  int numbers[4] = {kind, (int)rank, swizzle, l2 + interleave + fill};
  if ((size_t)out % 64 || rank < 3 || rank > 5) return 1;
  memset(out, 0, 128);
  memcpy(out, &address, 8), memcpy((char*)out + 8, dims, 32), memcpy((char*)out + 40, strides, 24);
  memcpy((char*)out + 64, lower, 4 * (rank - 2)), memcpy((char*)out + 72, upper, 4 * (rank - 2));
  memcpy((char*)out + 80, &channels, 4), memcpy((char*)out + 84, &pixels, 4), memcpy((char*)out + 88, steps, 4 * rank);
  memcpy((char*)out + 108, numbers, 16);
  return 0;
}
int cuGetErrorName(int code, const char** text) {
  *text = code == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS" : code == 701 ? "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES" : "CUDA_ERROR";
  return 0;
}
int cuGetErrorString(int code, const char** text) { *text = "what the driver says"; return 0; }
