// eigh.c — Eigenvalues of self-adjoint matrices: reflections to a tridiagonal form, then QR steps
// with implicit shifts. Vectors are kept as rows, so that rotations run along memory.
#include <float.h>
#include <math.h>

#include "base/interrupt.h"
#include "kernel/linalg/spectral.h"
#include "tensor/numeric.h"

#define BODY "kernel/linalg/eigh.inc"
#include "kernel/linalg/each_type.inc"

// Two matrices, three vectors of theirs, and two of doubles, which take up to two elements each.
int64_t weir_eigh_scratch_count(int64_t n) { return 2 * n * n + 3 * n + 4 * n; }

bool weir_eigh(weir_dtype_t dtype, int64_t n, const void* a, void* e, void* v, void* scratch) {
  switch (dtype) {
    case WEIR_DTYPE_FLOAT: return eigh_float(n, a, e, v, scratch);
    case WEIR_DTYPE_DOUBLE: return eigh_double(n, a, e, v, scratch);
    case WEIR_DTYPE_COMPLEX64: return eigh_complex64(n, a, e, v, scratch);
    default: return eigh_complex128(n, a, e, v, scratch);
  }
}
