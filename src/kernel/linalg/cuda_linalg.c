// cuda_linalg.c — Definitions of GPU kernels of matrices, and how many threads they have.
#include "kernel/linalg/cuda_linalg.h"

#include "kernel/cuda/source.h"

WEIR_CUDA_SOURCE(matrix);

weir_status_t* weir_cuda_linalg_find(const weir_kernel_init_t* init, const char* text,
                                     const char* name, weir_cuda_function_t* out_function) {
  weir_dtype_t dtype = weir_dtype_base(init->node->input_types[0]);
  bool is_single = dtype == WEIR_DTYPE_FLOAT || dtype == WEIR_DTYPE_COMPLEX64;
  weir_strbuf_t definitions = {0};
  weir_strbuf_printf(&definitions, "#define T %s\n#define TINY %s\n#define NO_FACTOR %s\n%s",
                     weir_cuda_type_name(dtype),
                     is_single ? "1.17549435e-38f" : "2.2250738585072014e-308",
                     weir_dtype_is_complex(dtype) ? "0" : "NAN", weir_cuda_source_matrix);
  return weir_cuda_build(init->device, &definitions, text, name, out_function);
}

weir_cuda_size_t weir_cuda_linalg_size(const weir_device_t* device, int64_t count) {
  enum { COLUMNS = 32, STRIPES = 16 };  // as matrix.cu has them
  weir_cuda_size_t size = weir_cuda_size_for(device, count * 256);
  size.block[0] = COLUMNS;
  size.block[1] = STRIPES;
  return size;
}
