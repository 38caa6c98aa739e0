// cuda_gemm.c — cuBLASLt: descriptions of products are made once, with the algorithm that was the
// fastest of those it proposes, which is remembered on disk.
//
// cuBLASLt counts columns first. A row-major matrix is its transpose to it, so C = A B is asked for
// as C' = B' A'.
#include "kernel/gemm/cuda_gemm.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/map.h"
#include "device/cuda/cuda_cache.h"

// ---- the library: names, numbers and signatures are its stable interface ----

typedef void* lt_handle_t;
typedef void* lt_desc_t;
typedef struct lt_algo_t {
  uint64_t data[8];
} lt_algo_t;
typedef struct lt_result_t {
  lt_algo_t algo;
  size_t workspace_size;
  int state;
  float waves;
  int reserved[4];
} lt_result_t;

enum {
  LT_FLOAT = 0,  // types of elements
  LT_DOUBLE = 1,
  LT_HALF = 2,
  LT_BFLOAT16 = 14,
  LT_COMPUTE_FLOAT = 68,  // types computed in
  LT_COMPUTE_DOUBLE = 70,
  LT_COMPUTE_TF32 = 77,
  LT_TRANSPOSE_A = 3,  // attributes of a product
  LT_TRANSPOSE_B = 4,
  LT_EPILOGUE = 7,
  LT_BIAS = 8,
  LT_BATCH_COUNT = 5,  // of a matrix
  LT_BATCH_STRIDE = 6,
  LT_MOST_WORKSPACE = 1,  // of a search
  LT_EPILOGUE_NONE = 1,   // epilogues
  LT_EPILOGUE_BIAS = 4,
  LT_EPILOGUE_BIAS_RELU = 6,
};

#define LT_FUNCTIONS(FUNCTION)                                                                   \
  FUNCTION(create, cublasLtCreate, (lt_handle_t * out_handle))                                   \
  FUNCTION(destroy, cublasLtDestroy, (lt_handle_t handle))                                       \
  FUNCTION(property, cublasLtGetProperty, (int which, int* out_value))                           \
  FUNCTION(product_create, cublasLtMatmulDescCreate,                                             \
           (lt_desc_t * out_desc, int compute_type, int scale_type))                             \
  FUNCTION(product_set, cublasLtMatmulDescSetAttribute,                                          \
           (lt_desc_t desc, int attribute, const void* value, size_t size))                      \
  FUNCTION(product_destroy, cublasLtMatmulDescDestroy, (lt_desc_t desc))                         \
  FUNCTION(matrix_create, cublasLtMatrixLayoutCreate,                                            \
           (lt_desc_t * out_desc, int type, uint64_t rows, uint64_t columns, int64_t stride))    \
  FUNCTION(matrix_set, cublasLtMatrixLayoutSetAttribute,                                         \
           (lt_desc_t desc, int attribute, const void* value, size_t size))                      \
  FUNCTION(matrix_destroy, cublasLtMatrixLayoutDestroy, (lt_desc_t desc))                        \
  FUNCTION(search_create, cublasLtMatmulPreferenceCreate, (lt_desc_t * out_desc))                \
  FUNCTION(search_set, cublasLtMatmulPreferenceSetAttribute,                                     \
           (lt_desc_t desc, int attribute, const void* value, size_t size))                      \
  FUNCTION(search_destroy, cublasLtMatmulPreferenceDestroy, (lt_desc_t desc))                    \
  FUNCTION(search, cublasLtMatmulAlgoGetHeuristic,                                               \
           (lt_handle_t handle, lt_desc_t product, lt_desc_t a, lt_desc_t b, lt_desc_t c,        \
            lt_desc_t d, lt_desc_t search, int most, lt_result_t* results, int* out_count))      \
  FUNCTION(multiply, cublasLtMatmul,                                                             \
           (lt_handle_t handle, lt_desc_t product, const void* alpha, const void* a,             \
            lt_desc_t a_desc, const void* b, lt_desc_t b_desc, const void* beta, const void* c,  \
            lt_desc_t c_desc, void* d, lt_desc_t d_desc, const lt_algo_t* algo, void* workspace, \
            size_t workspace_size, cu_stream_t stream))

typedef struct lt_functions_t {
#define LT_FIELD(name, symbol, arguments) int(*name) arguments;
  LT_FUNCTIONS(LT_FIELD)
#undef LT_FIELD
} lt_functions_t;

static const size_t kWorkspace = (size_t)32 << 20;  // bytes

// ---- what a device keeps ----

// A product, but for the addresses. All of it is compared: no padding between the members.
typedef struct shape_t {
  int64_t m, n, k;
  weir_gemm_batch_t batch;
  int32_t type, compute_type;
  int32_t transposes_a, transposes_b;
  int32_t epilogue;
  int32_t bias_alignment;  // bytes, at most 16: algorithms depend on it
} shape_t;

// What is multiplied: addresses, for a shape_t.
typedef struct operands_t {
  const void *a, *b, *bias;
  void* c;
} operands_t;

typedef struct product_t {
  lt_desc_t desc, a, b, c;
  lt_algo_t algo;
} product_t;

typedef struct lt_t {
  lt_functions_t call;
  lt_handle_t handle;
  weir_device_t* device;  // borrowed: the one it is attached to
  char identity[160];     // the GPU's name and cuBLASLt's version: what algorithms depend on
  weir_tensor_t* workspace;
  weir_mutex_t mu;
  weir_map_t products;  // by shape; guarded by mu
} lt_t;

static weir_status_t* check(int result, const char* doing) {
  return result == 0 ? NULL : WEIR_STATUS(INTERNAL, "cuBLASLt: %s: error %d", doing, result);
}

static void product_free(const lt_t* lt, product_t* product) {
  if (!product) return;
  if (product->desc) lt->call.product_destroy(product->desc);
  if (product->a) lt->call.matrix_destroy(product->a);
  if (product->b) lt->call.matrix_destroy(product->b);
  if (product->c) lt->call.matrix_destroy(product->c);
  weir_free(product);
}

static void lt_destroy(void* object) {
  lt_t* lt = object;
  weir_map_entry_t* entry = NULL;
  for (size_t i = 0; (entry = weir_map_next(&lt->products, &i));) product_free(lt, entry->value);
  weir_map_free(&lt->products);
  if (lt->handle) lt->call.destroy(lt->handle);
  weir_tensor_release(lt->workspace);
  weir_mutex_destroy(&lt->mu);
  weir_free(lt);
}

// The GPU's name and cuBLASLt's version.
static void identify(lt_t* lt) {
  char name[128] = "";
  int version[3] = {0};
  const cuda_core_t* core = weir_cuda_core(lt->device);
  core->driver->device_name(name, sizeof(name), core->device);
  for (int i = 0; i < 3; ++i) lt->call.property(i, &version[i]);
  snprintf(lt->identity, sizeof(lt->identity), "%s, cuBLASLt %d.%d.%d", name, version[0],
           version[1], version[2]);
}

static weir_status_t* lt_create(weir_device_t* device, void** out_object) {
  static const char* const sonames[] = {"libcublasLt.so.13", "libcublasLt.so.12", NULL};
#define LT_SYMBOL(name, symbol, arguments) #symbol,
  static const char* const symbols[] = {LT_FUNCTIONS(LT_SYMBOL)};
#undef LT_SYMBOL
  lt_t* lt = weir_calloc(1, sizeof(*lt));
  if (!lt) return weir_out_of_memory();
  weir_mutex_init(&lt->mu);
  lt->device = device;
  lt->products.owns_keys = true;
  weir_allocator_t* allocator = weir_device_allocator(device, WEIR_MEMORY_DEVICE);
  weir_status_t* status = weir_cuda_open(sonames, symbols, WEIR_COUNT_OF(symbols), &lt->call);
  if (!status) status = check(lt->call.create(&lt->handle), "starting");
  if (!status)
    status = weir_tensor_create_in(allocator, WEIR_DTYPE_UINT8, 1,
                                   (const int64_t[]){(int64_t)kWorkspace}, &lt->workspace);
  if (!status) identify(lt);
  if (status) lt_destroy(lt);
  else *out_object = lt;
  return status;
}

// ---- descriptions ----

static int type_of(weir_dtype_t dtype) {
  return dtype == WEIR_DTYPE_DOUBLE     ? LT_DOUBLE
         : dtype == WEIR_DTYPE_HALF     ? LT_HALF
         : dtype == WEIR_DTYPE_BFLOAT16 ? LT_BFLOAT16
                                        : LT_FLOAT;
}

static int compute_type_of(const weir_device_t* device, weir_dtype_t dtype) {
  if (dtype == WEIR_DTYPE_DOUBLE) return LT_COMPUTE_DOUBLE;
  bool is_tf32 = dtype == WEIR_DTYPE_FLOAT && weir_cuda_allows_tf32(device);
  return is_tf32 ? LT_COMPUTE_TF32 : LT_COMPUTE_FLOAT;
}

// A matrix of |rows| rows of |columns| elements, which to the library is one of columns.
static weir_status_t* describe_matrix(const lt_t* lt, int type, int64_t rows, int64_t columns,
                                      int64_t count, int64_t stride, lt_desc_t* out_desc) {
  int32_t batch = (int32_t)count;
  WEIR_TRY(check(lt->call.matrix_create(out_desc, type, (uint64_t)columns, (uint64_t)rows, columns),
                 "describing a matrix"));
  if (count == 1) return NULL;
  WEIR_TRY(check(lt->call.matrix_set(*out_desc, LT_BATCH_COUNT, &batch, sizeof(batch)),
                 "describing a batch"));
  return check(lt->call.matrix_set(*out_desc, LT_BATCH_STRIDE, &stride, sizeof(stride)),
               "describing a batch");
}

static weir_status_t* describe(const lt_t* lt, const shape_t* s, product_t* p) {
  int32_t a = s->transposes_a, b = s->transposes_b;
  int scale_type = s->compute_type == LT_COMPUTE_DOUBLE ? LT_DOUBLE : LT_FLOAT;
  WEIR_TRY(check(lt->call.product_create(&p->desc, s->compute_type, scale_type), "describing"));
  // Operands change places.
  WEIR_TRY(check(lt->call.product_set(p->desc, LT_TRANSPOSE_A, &b, sizeof(b)), "describing"));
  WEIR_TRY(check(lt->call.product_set(p->desc, LT_TRANSPOSE_B, &a, sizeof(a)), "describing"));
  if (s->epilogue != LT_EPILOGUE_NONE)
    WEIR_TRY(check(lt->call.product_set(p->desc, LT_EPILOGUE, &s->epilogue, sizeof(s->epilogue)),
                   "describing"));
  int64_t count = s->batch.count;
  WEIR_TRY(describe_matrix(lt, s->type, a ? s->k : s->m, a ? s->m : s->k, count, s->batch.a_stride,
                           &p->a));
  WEIR_TRY(describe_matrix(lt, s->type, b ? s->n : s->k, b ? s->k : s->n, count, s->batch.b_stride,
                           &p->b));
  return describe_matrix(lt, s->type, s->m, s->n, count, s->batch.c_stride, &p->c);
}

// The library's rows are our columns: a bias of each of its rows is what we have.
static weir_status_t* set_bias(const lt_t* lt, const product_t* p, const operands_t* at) {
  if (!at->bias) return NULL;
  return check(lt->call.product_set(p->desc, LT_BIAS, &at->bias, sizeof(at->bias)), "describing");
}

static weir_status_t* multiply(const lt_t* lt, const shape_t* s, const product_t* p,
                               const operands_t* at) {
  static const double one = 1, zero = 0;
  static const float one_float = 1, zero_float = 0;
  bool is_double = s->compute_type == LT_COMPUTE_DOUBLE;
  const void* alpha = is_double ? (const void*)&one : &one_float;
  const void* beta = is_double ? (const void*)&zero : &zero_float;
  WEIR_TRY(set_bias(lt, p, at));
  return check(lt->call.multiply(lt->handle, p->desc, alpha, at->b, p->b, at->a, p->a, beta, at->c,
                                 p->c, at->c, p->c, &p->algo, lt->workspace->data, kWorkspace,
                                 weir_cuda_stream(lt->device)),
               "multiplying");
}

// ---- algorithms ----

static weir_status_t* search(const lt_t* lt, const product_t* p, lt_result_t* results, int most,
                             int* out_count) {
  lt_desc_t desc = NULL;
  WEIR_TRY(check(lt->call.search_create(&desc), "searching"));
  int result = lt->call.search_set(desc, LT_MOST_WORKSPACE, &kWorkspace, sizeof(kWorkspace));
  if (!result)
    result = lt->call.search(lt->handle, p->desc, p->b, p->a, p->c, p->c, desc, most, results,
                             out_count);
  lt->call.search_destroy(desc);
  if (!result && *out_count > 0) return NULL;
  return WEIR_STATUS(UNIMPLEMENTED, "cuBLASLt has no algorithm for this product (error %d)",
                     result);
}

// |times| products, one after another: what is written stays the same.
static weir_status_t* run_time(const lt_t* lt, const shape_t* s, const operands_t* at,
                               const product_t* p, int64_t times, int64_t* out_ns) {
  WEIR_TRY(weir_cuda_synchronize(lt->device));
  int64_t start = weir_clock_ns();
  for (int64_t i = 0; i < times; ++i) WEIR_TRY(multiply(lt, s, p, at));
  WEIR_TRY(weir_cuda_synchronize(lt->device));
  *out_ns = weir_clock_ns() - start;
  return NULL;
}

// What a run takes, or a rough guess where that is far above |best|. The first run loads kernels; a
// single one has what launching and waiting take in it.
static weir_status_t* measure(const lt_t* lt, const shape_t* s, const operands_t* at,
                              const product_t* p, int64_t best, int64_t* out_ns) {
  const int64_t waiting = 20000, wanted = 200000;
  WEIR_TRY(run_time(lt, s, at, p, 1, out_ns));
  WEIR_TRY(run_time(lt, s, at, p, 1, out_ns));
  if (best != INT64_MAX && *out_ns > best + best / 2 + waiting) return NULL;
  int64_t times = WEIR_MAX(WEIR_MIN(wanted / WEIR_MAX(*out_ns, 1), 8), 2);
  WEIR_TRY(run_time(lt, s, at, p, times, out_ns));
  *out_ns /= times;
  return NULL;
}

static weir_status_t* choose(const lt_t* lt, const shape_t* s, const operands_t* at, product_t* p) {
  enum { MOST = 8 };
  lt_result_t results[MOST];
  int count = 0, best = 0;
  int64_t best_ns = INT64_MAX, start = weir_clock_ns();
  // Where results must repeat, clocks decide nothing: the library's own first choice is taken.
  int most = weir_cuda_is_deterministic(lt->device) ? 1 : MOST;
  WEIR_TRY(search(lt, p, results, most, &count));
  for (int i = 0; i < count && count > 1; ++i) {
    int64_t ns = INT64_MAX;
    p->algo = results[i].algo;
    WEIR_TRY(measure(lt, s, at, p, best_ns, &ns));
    if (ns < best_ns) {
      best_ns = ns;
      best = i;
    }
  }
  p->algo = results[best].algo;
  WEIR_LOG(INFO, "cuBLASLt's algorithm %d of %d takes %lld us, found in %lld us", best, count,
           (long long)(best_ns == INT64_MAX ? -1 : best_ns / 1000),
           (long long)((weir_clock_ns() - start) / 1000));
  return NULL;
}

// The algorithm that was the fastest before. False: none is remembered, or it does not work here.
static bool recall(const lt_t* lt, const shape_t* s, const operands_t* at, weir_view_t key,
                   product_t* p) {
  if (!weir_cuda_cache_recall(key, "gemm", &p->algo, sizeof(p->algo))) return false;
  weir_status_t* status = multiply(lt, s, p, at);
  bool does_work = !status;
  weir_status_destroy(status);
  return does_work;
}

// As all that the choice depends on asks for.
static weir_status_t* recall_or_choose(const lt_t* lt, const shape_t* s, const operands_t* at,
                                       product_t* p) {
  bool is_measured = !weir_cuda_is_deterministic(lt->device);
  weir_strbuf_t text = {0};
  weir_strbuf_printf(&text, "%s, workspace %zu\n", lt->identity, kWorkspace);
  weir_strbuf_append(&text, (const char*)s, sizeof(*s));
  weir_status_t* status = weir_strbuf_finish(&text);
  weir_view_t key = weir_view(text.data, text.size);
  if (!status && !(is_measured && recall(lt, s, at, key, p))) {
    status = choose(lt, s, at, p);
    if (!status && is_measured) weir_cuda_cache_remember(key, "gemm", &p->algo, sizeof(p->algo));
  }
  weir_strbuf_free(&text);
  return status;
}

static weir_status_t* make_product(lt_t* lt, const shape_t* s, const operands_t* at,
                                   product_t** out_product) WEIR_REQUIRES(lt->mu) {
  if (weir_cuda_is_recording(lt->device))
    return WEIR_STATUS(UNAVAILABLE, "cuBLASLt's algorithm is still to be chosen");
  product_t* product = weir_calloc(1, sizeof(*product));
  if (!product) return weir_out_of_memory();
  weir_status_t* status = describe(lt, s, product);
  if (!status) status = set_bias(lt, product, at);  // whose alignment a search looks at
  if (!status) status = recall_or_choose(lt, s, at, product);
  if (!status) status = weir_map_put(&lt->products, weir_view((const char*)s, sizeof(*s)), product);
  if (status) product_free(lt, product);
  else *out_product = product;
  return status;
}

static shape_t shape_of(const weir_device_t* device, const weir_gemm_args_t* args,
                        weir_gemm_batch_t batch, const weir_gemm_tail_t* tail) {
  shape_t s;
  memset(&s, 0, sizeof(s));
  s.m = args->m;
  s.n = args->n;
  s.k = args->k;
  s.batch = batch;
  s.type = type_of(args->dtype_c);
  s.compute_type = compute_type_of(device, args->dtype_c);
  s.transposes_a = args->trans_a != WEIR_NO_TRANS;
  s.transposes_b = args->trans_b != WEIR_NO_TRANS;
  s.epilogue = !tail ? LT_EPILOGUE_NONE : tail->is_relu ? LT_EPILOGUE_BIAS_RELU : LT_EPILOGUE_BIAS;
  uintptr_t bits = tail ? (uintptr_t)tail->bias | 16 : 0;
  s.bias_alignment = (int32_t)(bits & (~bits + 1));
  return s;
}

static weir_status_t* run(weir_device_t* device, const weir_gemm_args_t* args,
                          weir_gemm_batch_t batch, const weir_gemm_tail_t* tail) {
  static const char key;
  void* object = NULL;
  WEIR_TRY(weir_cuda_attachment(device, &key, lt_create, lt_destroy, &object));
  lt_t* lt = object;
  shape_t s = shape_of(device, args, batch, tail);
  operands_t at = {.a = args->a, .b = args->b, .bias = tail ? tail->bias : NULL, .c = args->c};
  weir_mutex_lock(&lt->mu);
  product_t* product = weir_map_find(&lt->products, weir_view((const char*)&s, sizeof(s)));
  weir_status_t* status = product ? NULL : make_product(lt, &s, &at, &product);
  // The workspace is every product's, in the order of the stream.
  if (!status && product) status = multiply(lt, &s, product, &at);
  weir_mutex_unlock(&lt->mu);
  return status ? status : weir_cuda_launched(device);
}

weir_status_t* weir_cuda_gemm(weir_device_t* device, const weir_gemm_args_t* args,
                              weir_gemm_batch_t batch) {
  size_t size = weir_dtype_size(args->dtype_c);
  if (args->m == 0 || args->n == 0 || batch.count == 0) return NULL;
  if (args->k == 0)
    return weir_cuda_zero(device, args->c, (size_t)(args->m * args->n * batch.count) * size);
  return run(device, args, batch, NULL);
}

weir_status_t* weir_cuda_gemm_with_tail(weir_device_t* device, const weir_gemm_args_t* args,
                                        const weir_gemm_tail_t* tail) {
  if (args->m == 0 || args->n == 0) return NULL;
  if (args->k == 0) return WEIR_STATUS(UNIMPLEMENTED, "cuBLASLt has no products of nothing");
  return run(device, args, (weir_gemm_batch_t){.count = 1}, tail);
}

weir_status_t* weir_kernel_gemm(weir_kernel_ctx_t* ctx, const weir_gemm_args_t* args) {
  if (!weir_device_is_cuda(ctx->device)) return weir_gemm_any(weir_kernel_pool(ctx), args);
  return weir_cuda_gemm(ctx->device, args, (weir_gemm_batch_t){.count = 1});
}
