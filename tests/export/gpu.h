/* What the C programs of the tests need of a GPU besides the exported functions: memory. Found in the driver at run time,
   as no CUDA header is there. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *gpu_find(const char *name) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW), *found = library ? dlsym(library, name) : NULL;
  if (!found) fprintf(stderr, "no %s\n", name), exit(3);
  return found;
}

static void gpu_check(int code, const char *what) {
  if (code) fprintf(stderr, "%s: %d\n", what, code), exit(4);
}

/* The bytes of a file on the GPU; *size is how many. */
static void *gpu_read(const char *name, size_t *size) {
  int (*allocate)(unsigned long long *, size_t), (*copy)(unsigned long long, const void *, size_t);
  void *found = gpu_find("cuMemAlloc_v2"), *host;
  unsigned long long address;
  FILE *file = fopen(name, "rb");
  memcpy(&allocate, &found, sizeof found);
  found = gpu_find("cuMemcpyHtoD_v2");
  memcpy(&copy, &found, sizeof found);
  if (!file) exit(5);
  fseek(file, 0, SEEK_END);
  *size = (size_t)ftell(file);
  rewind(file);
  host = malloc(*size);
  if (fread(host, 1, *size, file) != *size) exit(6);
  fclose(file);
  gpu_check(allocate(&address, *size), "cuMemAlloc");
  gpu_check(copy(address, host, *size), "cuMemcpyHtoD");
  free(host);
  return (void *)(size_t)address;
}

/* The other way round, once all launches are done. */
static void gpu_write(const char *name, const void *address, size_t size) {
  int (*copy)(void *, unsigned long long, size_t), (*wait)(void);
  void *found = gpu_find("cuMemcpyDtoH_v2"), *host = malloc(size);
  FILE *file = fopen(name, "wb");
  memcpy(&copy, &found, sizeof found);
  found = gpu_find("cuCtxSynchronize");
  memcpy(&wait, &found, sizeof found);
  if (!file || !host) exit(7);
  gpu_check(wait(), "cuCtxSynchronize");
  gpu_check(copy(host, (unsigned long long)(size_t)address, size), "cuMemcpyDtoH");
  if (fwrite(host, 1, size, file) != size) exit(8);
  fclose(file);
  free(host);
}
