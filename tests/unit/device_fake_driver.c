/* A driver library for the tests of the runner: the calls of CUDA or HIP that it makes, on host memory.
 *
 * -DAPI_CUDA gives cu*, else hip*. The "code object" is a text whose first word says what the kernel does with
 * (source, target, count, global scratch, profile scratch): target[i] = source[i] + 1.
 * FAKE_DRIVER_BEHAVIOUR says it instead for a real code object, of a kernel with these parameters.
 * Every call is appended to the file that FAKE_DRIVER_LOG names.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef API_CUDA
#define NAME(cuda, hip) cuda
#else
#define NAME(cuda, hip) hip
#endif

struct function { char behaviour[64]; char symbol[64]; };
static int pending_error, launches;

static void note(const char *text, long a, long b, long c) {
  const char *path = getenv("FAKE_DRIVER_LOG");
  FILE *file = path ? fopen(path, "a") : NULL;
  if (file) { fprintf(file, "%s %ld %ld %ld\n", text, a, b, c); fclose(file); }
}

int NAME(cuInit, hipInit)(unsigned flags) { return getenv("FAKE_DRIVER_NO_DEVICE") ? 100 : 0; }
int NAME(cuDeviceGet, hipDeviceGet)(int *device, int which) { *device = which; return 0; }
int NAME(cuDevicePrimaryCtxRetain, hipDevicePrimaryCtxRetain)(void **context, int device) { *context = &launches; return 0; }
int NAME(cuCtxSetCurrent, hipCtxSetCurrent)(void *context) { return context == &launches ? 0 : 201; }
int NAME(cuDeviceGetName, hipDeviceGetName)(char *name, int size, int device) { snprintf(name, size, "fake device"); return 0; }
int NAME(cuDriverGetVersion, hipDriverGetVersion)(int *version) { *version = 12345; return 0; }
static const char *words(int status) { return status == 710 ? "device-side assert triggered" : "fake error"; }
#ifdef API_CUDA
int cuGetErrorString(int status, const char **text) { *text = words(status); return 0; }

/* The "map" has what it was made from: type, rank, address, sizes, strides, block, swizzle, fill; word 1 has all bits set. */
int cuTensorMapEncodeTiled(void *map, int type, unsigned rank, void *base, const unsigned long long *sizes,
                           const unsigned long long *strides, const unsigned *block, const unsigned *steps, int interleave,
                           int swizzle, int promotion, int fill) {
  unsigned long long *word = map;
  if ((unsigned long)map % 64 || interleave || steps[0] != 1 || promotion != 2) return 1;
  memset(map, 0, 128);
  word[0] = type * 256 + rank; word[1] = ~0ull; word[2] = (unsigned long)base; word[3] = swizzle * 256 + fill;
  for (unsigned i = 0; i < rank; i++) { word[4 + i] = sizes[i]; word[12 + i] = block[i]; if (i + 1 < rank) word[8 + i] = strides[i]; }
  return 0;
}
#else
const char *hipGetErrorString(int status) { return words(status); }
#endif

int NAME(cuModuleLoadData, hipModuleLoadData)(void **module, const char *image) { *module = strdup(image); return 0; }
int NAME(cuModuleGetFunction, hipModuleGetFunction)(void **out, void *module, const char *symbol) {
  struct function *f = calloc(1, sizeof *f);
  const char *given = getenv("FAKE_DRIVER_BEHAVIOUR");
  sscanf(given ? given : module, "%63s", f->behaviour);
  snprintf(f->symbol, sizeof f->symbol, "%s", symbol);
  *out = f;
  return strcmp(f->symbol, "missing") ? 0 : 500;
}
int NAME(cuFuncSetAttribute, hipFuncSetAttribute)(void *function, int attribute, int value) { note("attribute", attribute, value, 0); return 0; }

int NAME(cuMemAlloc_v2, hipMalloc)(void **pointer, size_t size) { *pointer = malloc(size); memset(*pointer, 0x11, size); return 0; }
int NAME(cuMemcpyHtoD_v2, hipMemcpyHtoD)(void *to, const void *from, size_t size) { memcpy(to, from, size); return 0; }
int NAME(cuMemcpyDtoH_v2, hipMemcpyDtoH)(void *to, const void *from, size_t size) { memcpy(to, from, size); return 0; }

int NAME(cuLaunchKernel, hipModuleLaunchKernel)(struct function *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                                               unsigned bz, unsigned shared, void *stream, void **parameters, void **extra) {
  note(f->symbol, (long)gx * gy * gz, bx * by * bz, shared);
  if (!strcmp(f->symbol, "poison_lds")) return 0;
  float *source = *(float **)parameters[0], *target = *(float **)parameters[1];
  int count = *(int *)parameters[2];
  char *scratch = *(char **)parameters[4];
  const char *b = f->behaviour;
  launches++;
  if (!strcmp(b, "hangs")) sleep(60);
  if (!strcmp(b, "traps")) {
    fprintf(stderr, "k.py:1: k: block: [0,0,0], thread: [0,0,0] Assertion `Buffer being accessed has outstanding writes` failed.\n");
    pending_error = 710;
    return 0;
  }
  if (!strcmp(b, "nothing")) return 0;
  if (!strcmp(b, "scratch") && (scratch == NULL || scratch[0] || scratch[7])) return 1;
  for (int i = 0; i < count; i++) target[i] = source[i] + 1;
  if (!strcmp(b, "wrong") || (!strcmp(b, "sometimes") && launches == 2)) target[3] += 0.5f;
  if (!strcmp(b, "outside")) target[count] = 7;
  return 0;
}
#ifdef API_CUDA
/* As cuda.h has them: an attribute is its number, 4 bytes of nothing, and a union of 64 bytes. */
struct attribute { int id; char pad[4]; union { char whole[64]; unsigned size[3]; } value; };
struct config { unsigned gx, gy, gz, bx, by, bz, shared; void *stream; struct attribute *attributes; unsigned count; };

int cuLaunchKernelEx(const struct config *c, struct function *f, void **parameters, void **extra) {
  if (c->count != 1 || c->attributes->id != 4 || c->gx % c->attributes->value.size[0]) return 1;
  note("cluster", c->attributes->value.size[0], c->attributes->value.size[1], c->attributes->value.size[2]);
  return cuLaunchKernel(f, c->gx, c->gy, c->gz, c->bx, c->by, c->bz, c->shared, c->stream, parameters, extra);
}
#endif
int NAME(cuCtxSynchronize, hipDeviceSynchronize)(void) { return pending_error; }
int NAME(cuEventCreate, hipEventCreateWithFlags)(void **event, unsigned flags) { *event = malloc(8); return 0; }
int NAME(cuEventRecord, hipEventRecord)(void *event, void *stream) { return 0; }
int NAME(cuEventSynchronize, hipEventSynchronize)(void *event) { return 0; }
int NAME(cuEventElapsedTime, hipEventElapsedTime)(float *milliseconds, void *first, void *last) { *milliseconds = 0.25f; return 0; }
