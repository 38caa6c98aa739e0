// types.h — Classes of types: which of an operation's loops there are, and what an op takes.
//
// LOOPS_<CLASS>(fn) are the entries fn_<type> of a table indexed by dtype. NAMES_<CLASS> is the
// same set in a spec's spelling, in the order TensorFlow's definitions list it.
#ifndef WEIR_KERNEL_ELEMENTWISE_TYPES_H_
#define WEIR_KERNEL_ELEMENTWISE_TYPES_H_

#define LOOPS_WIDE_FLOATING(fn) [WEIR_DTYPE_FLOAT] = fn##_float, [WEIR_DTYPE_DOUBLE] = fn##_double
#define LOOPS_IEEE_FLOATING(fn) LOOPS_WIDE_FLOATING(fn), [WEIR_DTYPE_HALF] = fn##_half
#define LOOPS_FLOATING(fn) LOOPS_IEEE_FLOATING(fn), [WEIR_DTYPE_BFLOAT16] = fn##_bfloat16
#define LOOPS_COMPLEX(fn) \
  [WEIR_DTYPE_COMPLEX64] = fn##_complex64, [WEIR_DTYPE_COMPLEX128] = fn##_complex128
#define LOOPS_WIDE_INTEGER(fn) [WEIR_DTYPE_INT32] = fn##_int32, [WEIR_DTYPE_INT64] = fn##_int64
#define LOOPS_SIGNED_INTEGER(fn) \
  LOOPS_WIDE_INTEGER(fn), [WEIR_DTYPE_INT8] = fn##_int8, [WEIR_DTYPE_INT16] = fn##_int16
#define LOOPS_UNSIGNED_INTEGER(fn)                                    \
  [WEIR_DTYPE_UINT8] = fn##_uint8, [WEIR_DTYPE_UINT16] = fn##_uint16, \
  [WEIR_DTYPE_UINT32] = fn##_uint32, [WEIR_DTYPE_UINT64] = fn##_uint64
#define LOOPS_INTEGER(fn) LOOPS_SIGNED_INTEGER(fn), LOOPS_UNSIGNED_INTEGER(fn)
#define LOOPS_FLOATING_WIDE_INTEGER(fn) LOOPS_FLOATING(fn), LOOPS_WIDE_INTEGER(fn)
#define LOOPS_FLOATING_COMPLEX(fn) LOOPS_FLOATING(fn), LOOPS_COMPLEX(fn)
#define LOOPS_SIGNED(fn) LOOPS_FLOATING(fn), LOOPS_SIGNED_INTEGER(fn)
#define LOOPS_SIGNED_COMPLEX(fn) LOOPS_SIGNED(fn), LOOPS_COMPLEX(fn)
#define LOOPS_REAL_NUMBER(fn) LOOPS_FLOATING(fn), LOOPS_INTEGER(fn)
#define LOOPS_NUMBER(fn) LOOPS_REAL_NUMBER(fn), LOOPS_COMPLEX(fn)
#define LOOPS_LOGICAL(fn) [WEIR_DTYPE_BOOL] = fn##_uint8  // a byte, 0 or 1

#define NAMES_WIDE_FLOATING "float,double"
#define NAMES_IEEE_FLOATING "half,float,double"
#define NAMES_FLOATING "bfloat16,half,float,double"
#define NAMES_COMPLEX "complex64,complex128"
#define NAMES_WIDE_INTEGER "int32,int64"
#define NAMES_SIGNED_INTEGER "int8,int16,int32,int64"
#define NAMES_UNSIGNED_INTEGER "uint8,uint16,uint32,uint64"
#define NAMES_INTEGER NAMES_SIGNED_INTEGER "," NAMES_UNSIGNED_INTEGER
#define NAMES_FLOATING_WIDE_INTEGER NAMES_FLOATING "," NAMES_WIDE_INTEGER
#define NAMES_FLOATING_COMPLEX NAMES_FLOATING "," NAMES_COMPLEX
#define NAMES_SIGNED NAMES_FLOATING "," NAMES_SIGNED_INTEGER
#define NAMES_SIGNED_COMPLEX NAMES_SIGNED "," NAMES_COMPLEX
#define NAMES_REAL_NUMBER NAMES_FLOATING "," NAMES_INTEGER
#define NAMES_NUMBER NAMES_REAL_NUMBER "," NAMES_COMPLEX

#endif  // WEIR_KERNEL_ELEMENTWISE_TYPES_H_
