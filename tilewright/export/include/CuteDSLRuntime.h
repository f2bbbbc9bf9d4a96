/* CuteDSLRuntime.h: exported functions out of a shared library that is opened at run time.

   The object file is linked into a library first: cc -shared -o libscale.so scale.o -ldl -lm. All of this header is inline:
   there is no library of ours to link, only the system's dlopen (-ldl, where it is not in the C library).

     CuteDSLRT_Module_t *module;
     CuteDSLRT_Function_t *function;
     CuteDSLRT_Module_Load(&module, "./libscale.so");
     CuteDSLRT_Module_Get_Function(&function, module, "scale");   the function_prefix; loads the kernels
     void *arguments[] = {&a, &factor, &stream, &code};           pointers to the arguments that the header declares
     CuteDSLRT_Function_Run(function, arguments, 4);
     CuteDSLRT_Module_Destroy(module);                            unloads them, and closes the library

   A function gives the error of the call itself; what the launch said, a CUresult, is written where the last pointer
   points. CuteDSLRT_GetLastErrorText says what was wrong in the calling thread's last failure. */
#ifndef CUTE_DSL_RUNTIME_H
#define CUTE_DSL_RUNTIME_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef _WIN32
#include <windows.h>
#define CUTE_DSLRT_THREAD __declspec(thread)
#define CUTE_DSLRT_INLINE static __inline
#else
#include <dlfcn.h>
#define CUTE_DSLRT_THREAD __thread
#define CUTE_DSLRT_INLINE static inline __attribute__((unused))
#endif

#define CUTE_DSLRT_FORMAT 1 /* of the functions that this header knows how to call */

typedef enum {
  CuteDSLRT_Error_Success = 0,
  CuteDSLRT_Error_InvalidArgument = 1,
  CuteDSLRT_Error_FileNotFound = 2,
  CuteDSLRT_Error_FunctionNotFound = 3,
  CuteDSLRT_Error_VersionMismatch = 4,
  CuteDSLRT_Error_OutOfMemory = 5,
  CuteDSLRT_Error_CudaError = 6,
  CuteDSLRT_Error_UnsupportedOnPlatform = 7
} CuteDSLRT_Error_t;

typedef struct CuteDSLRT_Module_t CuteDSLRT_Module_t;

typedef struct CuteDSLRT_Function_t {
  int32_t (*run)(void **, int32_t);
  int32_t (*load)(int32_t);
  const char *(*text)(void);
  struct CuteDSLRT_Function_t *next;
  char *name;
} CuteDSLRT_Function_t;

struct CuteDSLRT_Module_t {
  void *library;
  CuteDSLRT_Function_t *functions; /* those that were asked for */
};

/* One text for each thread. */
CUTE_DSLRT_INLINE char *CuteDSLRT_text(void) {
  static CUTE_DSLRT_THREAD char text[1024];
  return text;
}

CUTE_DSLRT_INLINE const char *CuteDSLRT_GetLastErrorText(void) { return CuteDSLRT_text(); }

CUTE_DSLRT_INLINE CuteDSLRT_Error_t CuteDSLRT_fail(CuteDSLRT_Error_t error, const char *what, const char *detail) {
  snprintf(CuteDSLRT_text(), 1024, "%s%s%s", what, detail[0] ? ": " : "", detail);
  return error;
}

CUTE_DSLRT_INLINE const char *CuteDSLRT_GetErrorName(CuteDSLRT_Error_t error) {
  switch (error) {
    case CuteDSLRT_Error_Success: return "CuteDSLRT_Error_Success";
    case CuteDSLRT_Error_InvalidArgument: return "CuteDSLRT_Error_InvalidArgument";
    case CuteDSLRT_Error_FileNotFound: return "CuteDSLRT_Error_FileNotFound";
    case CuteDSLRT_Error_FunctionNotFound: return "CuteDSLRT_Error_FunctionNotFound";
    case CuteDSLRT_Error_VersionMismatch: return "CuteDSLRT_Error_VersionMismatch";
    case CuteDSLRT_Error_OutOfMemory: return "CuteDSLRT_Error_OutOfMemory";
    case CuteDSLRT_Error_CudaError: return "CuteDSLRT_Error_CudaError";
    case CuteDSLRT_Error_UnsupportedOnPlatform: return "CuteDSLRT_Error_UnsupportedOnPlatform";
  }
  return "CuteDSLRT_Error_Unknown";
}

CUTE_DSLRT_INLINE const char *CuteDSLRT_GetErrorString(CuteDSLRT_Error_t error) {
  switch (error) {
    case CuteDSLRT_Error_Success: return "no error";
    case CuteDSLRT_Error_InvalidArgument: return "an argument is missing, or there are too many";
    case CuteDSLRT_Error_FileNotFound: return "the shared library could not be opened";
    case CuteDSLRT_Error_FunctionNotFound: return "the library exports no such function";
    case CuteDSLRT_Error_VersionMismatch: return "the library was exported by another version";
    case CuteDSLRT_Error_OutOfMemory: return "out of memory";
    case CuteDSLRT_Error_CudaError: return "the driver could not load or launch the kernels";
    case CuteDSLRT_Error_UnsupportedOnPlatform: return "this platform cannot do that";
  }
  return "unknown error";
}

CUTE_DSLRT_INLINE void *CuteDSLRT_find(void *library, const char *before, const char *name, const char *after) {
  char symbol[512];
  if (snprintf(symbol, sizeof symbol, "%s%s%s", before, name, after) >= (int)sizeof symbol) return NULL;
#ifdef _WIN32
  {
    FARPROC found = GetProcAddress((HMODULE)library, symbol);
    void *address;
    memcpy(&address, &found, sizeof address);
    return address;
  }
#else
  return dlsym(library, symbol);
#endif
}

CUTE_DSLRT_INLINE CuteDSLRT_Error_t CuteDSLRT_Module_Load(CuteDSLRT_Module_t **module, const char *path) {
  const char *why = "";
  void *library;
  if (module == NULL || path == NULL) return CuteDSLRT_fail(CuteDSLRT_Error_InvalidArgument, "NULL was given", "");
  *module = NULL;
#ifdef _WIN32
  library = (void *)LoadLibraryA(path);
  if (library == NULL) why = path;
#else
  library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) why = dlerror();
#endif
  if (library == NULL) {
    const size_t length = strlen(path);
    if (length > 2 && strcmp(path + length - 2, ".o") == 0) {
      return CuteDSLRT_fail(CuteDSLRT_Error_FileNotFound, "link the object file into a shared library (cc -shared)", path);
    }
    return CuteDSLRT_fail(CuteDSLRT_Error_FileNotFound, "cannot open the library", why ? why : path);
  }
  *module = (CuteDSLRT_Module_t *)calloc(1, sizeof **module);
  if (*module == NULL) return CuteDSLRT_fail(CuteDSLRT_Error_OutOfMemory, "out of memory", "");
  (*module)->library = library;
  return CuteDSLRT_Error_Success;
}

/* The exported function of that function_prefix; its kernels are loaded. */
CUTE_DSLRT_INLINE CuteDSLRT_Error_t CuteDSLRT_Module_Get_Function(
    CuteDSLRT_Function_t **function, CuteDSLRT_Module_t *module, const char *name) {
  CuteDSLRT_Function_t *made;
  void *run, *load, *text, *format;
  if (function == NULL || module == NULL || name == NULL) {
    return CuteDSLRT_fail(CuteDSLRT_Error_InvalidArgument, "NULL was given", "");
  }
  for (made = module->functions; made != NULL; made = made->next) {
    if (strcmp(made->name, name) == 0) {
      *function = made;
      return CuteDSLRT_Error_Success;
    }
  }
  run = CuteDSLRT_find(module->library, "cute_dsl_", name, "_packed");
  load = CuteDSLRT_find(module->library, "cute_dsl_", name, "_packed_load");
  format = CuteDSLRT_find(module->library, "cute_dsl_", name, "_format");
  text = CuteDSLRT_find(module->library, "", name, "_Get_Error_String");
  if (format == NULL) {
    return CuteDSLRT_fail(CuteDSLRT_Error_FunctionNotFound, "the library exports no function of this prefix", name);
  }
  if (*(const int32_t *)format != CUTE_DSLRT_FORMAT || run == NULL || load == NULL || text == NULL) {
    return CuteDSLRT_fail(CuteDSLRT_Error_VersionMismatch, "exported by another version; export it again", name);
  }
  made = (CuteDSLRT_Function_t *)malloc(sizeof *made + strlen(name) + 1);
  if (made == NULL) return CuteDSLRT_fail(CuteDSLRT_Error_OutOfMemory, "out of memory", "");
  made->name = (char *)(made + 1);
  strcpy(made->name, name);
  memcpy(&made->run, &run, sizeof run);
  memcpy(&made->load, &load, sizeof load);
  memcpy(&made->text, &text, sizeof text);
  if (made->load(1) != 0) {
    CuteDSLRT_fail(CuteDSLRT_Error_CudaError, name, made->text());
    free(made);
    return CuteDSLRT_Error_CudaError;
  }
  made->next = module->functions;
  module->functions = made;
  *function = made;
  return CuteDSLRT_Error_Success;
}

/* Calls the function with pointers to its arguments and, last, to the int32_t for the code of the launch. */
CUTE_DSLRT_INLINE CuteDSLRT_Error_t CuteDSLRT_Function_Run(CuteDSLRT_Function_t *function, void **arguments, int32_t count) {
  int32_t code;
  if (function == NULL || (arguments == NULL && count != 0)) {
    return CuteDSLRT_fail(CuteDSLRT_Error_InvalidArgument, "NULL was given", "");
  }
  code = function->run(arguments, count);
  if (code < 0) return CuteDSLRT_fail(CuteDSLRT_Error_InvalidArgument, function->name, function->text());
  if (code > 0) return CuteDSLRT_fail(CuteDSLRT_Error_CudaError, function->name, function->text());
  return CuteDSLRT_Error_Success;
}

CUTE_DSLRT_INLINE CuteDSLRT_Error_t CuteDSLRT_Module_Destroy(CuteDSLRT_Module_t *module) {
  if (module == NULL) return CuteDSLRT_Error_Success;
  while (module->functions != NULL) {
    CuteDSLRT_Function_t *next = module->functions->next;
    module->functions->load(0);
    free(module->functions);
    module->functions = next;
  }
#ifdef _WIN32
  FreeLibrary((HMODULE)module->library);
#else
  dlclose(module->library);
#endif
  free(module);
  return CuteDSLRT_Error_Success;
}

#endif /* CUTE_DSL_RUNTIME_H */
