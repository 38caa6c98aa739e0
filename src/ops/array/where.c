// where.c — Where: the places of elements that are not zero.
#include "ops/array/common.h"

static weir_status_t* where_shape(weir_shape_ctx_t* ctx) {
  const int64_t dims[] = {-1, weir_shape_input(ctx, 0)->rank};
  return weir_shape_set_dims(ctx, 0, 2, dims);
}

// A float is zero when all bits but the sign are; complex numbers are two floats.
static bool is_zero(weir_dtype_t dtype, size_t size, const unsigned char* p) {
  bool has_sign = weir_dtype_is_floating(dtype) || weir_dtype_is_complex(dtype);
  size_t part = weir_dtype_is_complex(dtype) ? size / 2 : size;
  for (size_t i = 0; i < size; ++i) {
    unsigned mask = has_sign && i % part == part - 1
                        ? 0x7f
                        : 0xff;  // little-endian: the sign is in the last byte
    if (p[i] & mask) return false;
  }
  return true;
}

static int64_t count_nonzero(const weir_tensor_t* x) {
  const weir_dtype_t dtype = weir_tensor_type(x);
  const size_t size = weir_dtype_size(dtype);
  const unsigned char* p = x->data;
  int64_t count = 0;
  if (dtype == WEIR_DTYPE_BOOL) {
    for (int64_t i = 0; i < x->count; ++i) count += p[i] != 0;
    return count;
  }
  for (int64_t i = 0; i < x->count; ++i) count += !is_zero(dtype, size, p + (size_t)i * size);
  return count;
}

static weir_status_t* where_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* x = weir_kernel_input(ctx, 0);
  const weir_dtype_t dtype = weir_tensor_type(x);
  const size_t size = weir_dtype_size(dtype);
  if (x->rank == 0) return WEIR_STATUS(INVALID_ARGUMENT, "WhereOp : Unhandled input dimensions: 0");
  const int64_t dims[] = {count_nonzero(x), x->rank};
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, 2, dims, &out));
  int64_t* place = out->data;
  for (int64_t i = 0; i < x->count; ++i) {
    if (is_zero(dtype, size, (const unsigned char*)x->data + (size_t)i * size)) continue;
    int64_t rest = i;
    for (int k = x->rank - 1; k >= 0; --k) {
      place[k] = rest % x->dims[k];
      rest /= x->dims[k];
    }
    place += x->rank;
  }
  return NULL;
}

const weir_op_module_t weir_ops_array_where = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "Where",
         .attrs = "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, "
                  "qint32, bfloat16, "
                  "qint16, quint16, uint16, complex128, half, uint32, uint64, bool} = DT_BOOL",
         .inputs = "input: T",
         .outputs = "index: int64",
         .summary = "Returns the places of all elements that are true or not zero.",
         .infer_shape = where_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = where_cpu)},
        {0}}};
