// reduce.c — Reductions of ONNX, and what finds the largest elements.
#include "onnx/import.h"

// The axes to reduce along: an attribute in old opsets, an input in new ones; all axes when there
// are none. False: none at all are reduced, since the model says so.
static bool axes_of(onnx_call_t* call, weir_edge_t x, weir_edge_t* out_axes) {
  int count = 0;
  const int64_t* given = onnx_attr_ints(call, "axes", &count);
  bool keeps_all = onnx_attr_int(call, "noop_with_empty_axes", 0) != 0;
  weir_edge_t all = ADD(call, "Range", onnx_int(call, 0),
                        onnx_cast(call, ADD(call, "Rank", x), WEIR_DTYPE_INT64), onnx_int(call, 1));
  *out_axes = all;
  if (given) *out_axes = onnx_ints(call, given, count);
  if (!onnx_has_in(call, 1)) return given || !keeps_all;
  weir_edge_t axes = onnx_in(call, 1);
  int64_t known = onnx_dim(axes, 0);
  if (known > 0) *out_axes = axes;
  if (known >= 0) return known > 0 || !keeps_all;
  if (keeps_all) {  // our reductions leave a value as it is without axes
    *out_axes = axes;
    return true;
  }
  weir_edge_t is_empty =
      ADD(call, "Equal", ADD(call, "Size", axes), onnx_number(call, WEIR_DTYPE_INT32, 0));
  weir_edge_t length = ADD(call, "SelectV2", is_empty, onnx_shape(call, all), INTS(call, 0));
  *out_axes = JOIN(call, axes, ADD(call, "Slice", all, INTS(call, 0), length));
  return true;
}

static weir_edge_t reduced(onnx_call_t* call, const char* op, weir_edge_t x) {
  weir_edge_t axes;
  if (!axes_of(call, onnx_in(call, 0), &axes)) return x;
  return onnx_reduce(call, op, x, axes, onnx_attr_int(call, "keepdims", 1) != 0);
}

static bool is_bool(weir_edge_t x) { return onnx_dtype_of(x) == WEIR_DTYPE_BOOL; }

// Max and Min of bools are Any and All.
static void extreme(onnx_call_t* call) {
  weir_edge_t x = onnx_in(call, 0);
  const char* op = call->row->with;
  if (is_bool(x)) op = strcmp(op, "Max") == 0 ? "Any" : "All";
  onnx_out(call, 0, ADD(call, "Identity", reduced(call, op, x)));
}
static void reduce(onnx_call_t* call) {
  onnx_out(call, 0, ADD(call, "Identity", reduced(call, call->row->with, onnx_in(call, 0))));
}
static void reduce_l1(onnx_call_t* call) {
  onnx_out(call, 0, reduced(call, "Sum", ADD(call, "Abs", onnx_in(call, 0))));
}
static weir_edge_t sum_of_squares(onnx_call_t* call) {
  weir_edge_t x = onnx_in(call, 0);
  return reduced(call, "Sum", ADD(call, "Mul", x, x));
}
static void reduce_l2(onnx_call_t* call) {
  weir_edge_t sum = sum_of_squares(call);
  weir_dtype_t dtype = onnx_dtype_of(sum);
  weir_dtype_t wide = weir_dtype_is_integer(dtype) ? WEIR_DTYPE_DOUBLE : dtype;
  onnx_out(call, 0, onnx_cast(call, ADD(call, "Sqrt", onnx_cast(call, sum, wide)), dtype));
}
static void reduce_sum_square(onnx_call_t* call) { onnx_out(call, 0, sum_of_squares(call)); }
static void reduce_log_sum(onnx_call_t* call) {
  onnx_out(call, 0, ADD(call, "Log", reduced(call, "Sum", onnx_in(call, 0))));
}
// Less the largest element, so that nothing overflows.
static void reduce_log_sum_exp(onnx_call_t* call) {
  weir_edge_t x = onnx_in(call, 0), axes;
  weir_dtype_t dtype = onnx_dtype_of(x);
  if (!axes_of(call, x, &axes)) {
    onnx_out(call, 0, ADD(call, "Identity", x));
    return;
  }
  bool keeps = onnx_attr_int(call, "keepdims", 1) != 0;
  weir_edge_t wide = onnx_cast(call, x, dtype == WEIR_DTYPE_DOUBLE ? dtype : WEIR_DTYPE_FLOAT);
  weir_edge_t top = onnx_reduce(call, "Max", wide, axes, true);
  top = ADD(call, "SelectV2", ADD(call, "IsFinite", top), top, ADD(call, "ZerosLike", top));
  weir_edge_t sum =
      onnx_reduce(call, "Sum", ADD(call, "Exp", ADD(call, "Sub", wide, top)), axes, keeps);
  if (!keeps) top = onnx_reshape(call, top, onnx_shape(call, sum));
  onnx_out(call, 0, onnx_cast(call, ADD(call, "AddV2", ADD(call, "Log", sum), top), dtype));
}

// The first of several equal ones, or the last: found from the other end.
static void arg_extreme(onnx_call_t* call) {
  weir_edge_t x = onnx_in(call, 0);
  int64_t axis = onnx_attr_int(call, "axis", 0);
  bool is_last = onnx_attr_int(call, "select_last_index", 0) != 0;
  if (is_last) x = ADD(call, "ReverseV2", x, INTS(call, axis));
  weir_edge_t y = ADD(call, call->row->with, x, onnx_int(call, axis));
  if (is_last) {
    weir_edge_t size =
        ADD(call, "GatherV2", onnx_shape(call, x),
            onnx_int(call, axis < 0 ? axis + onnx_need_rank(call, x) : axis), onnx_int(call, 0));
    y = ADD(call, "Sub", ADD(call, "Sub", size, onnx_int(call, 1)), y);
  }
  if (onnx_attr_int(call, "keepdims", 1)) y = onnx_expand(call, y, axis);
  onnx_out(call, 0, y);
}

// The |k| largest, or smallest, along an axis.
static void top_k(onnx_call_t* call) {
  weir_edge_t x = onnx_in(call, 0), k = onnx_in(call, 1);
  weir_dtype_t dtype = onnx_dtype_of(x);
  int rank = onnx_need_rank(call, x);
  int64_t axis = onnx_attr_int(call, "axis", -1), perm[WEIR_MAX_RANK];
  bool is_smallest = onnx_attr_int(call, "largest", 1) == 0;
  if (axis < 0) axis += rank;
  if (onnx_failed(call) || axis < 0 || axis >= rank) {
    onnx_fail(call, "has axis %lld of a value of rank %d", (long long)axis, rank);
    return;
  }
  for (int i = 0; i < rank; ++i) perm[i] = i;
  perm[axis] = rank - 1;
  perm[rank - 1] = axis;
  k = onnx_cast(call, onnx_reshape(call, k, onnx_ints(call, NULL, 0)), WEIR_DTYPE_INT32);
  weir_edge_t last = onnx_transpose(call, x, perm, rank);
  bool is_unsigned = dtype == WEIR_DTYPE_UINT64 || dtype == WEIR_DTYPE_UINT32 ||
                     dtype == WEIR_DTYPE_UINT16 || dtype == WEIR_DTYPE_UINT8;
  if (is_smallest && is_unsigned) last = ADD(call, "Invert", last);
  else if (is_smallest) last = ADD(call, "Neg", last);
  weir_edge_t best =
      ADD_WITH(call, "TopKV2", WEIR_ATTRS(weir_attr_type("index_type", WEIR_DTYPE_INT64)), last, k);
  weir_edge_t values = best;
  if (is_smallest) values = ADD(call, is_unsigned ? "Invert" : "Neg", best);
  onnx_out(call, 0, onnx_transpose(call, values, perm, rank));
  onnx_out(call, 1, onnx_transpose(call, onnx_output(best, 1), perm, rank));
}

const onnx_row_t onnx_reduce_rows[] = {ONNX_OP_WITH("ArgMax", 1, arg_extreme, "ArgMax"),
                                       ONNX_OP_WITH("ArgMin", 1, arg_extreme, "ArgMin"),
                                       ONNX_OP("ReduceL1", 1, reduce_l1),
                                       ONNX_OP("ReduceL2", 1, reduce_l2),
                                       ONNX_OP("ReduceLogSum", 1, reduce_log_sum),
                                       ONNX_OP("ReduceLogSumExp", 1, reduce_log_sum_exp),
                                       ONNX_OP_WITH("ReduceMax", 1, extreme, "Max"),
                                       ONNX_OP_WITH("ReduceMean", 1, reduce, "Mean"),
                                       ONNX_OP_WITH("ReduceMin", 1, extreme, "Min"),
                                       ONNX_OP_WITH("ReduceProd", 1, reduce, "Prod"),
                                       ONNX_OP_WITH("ReduceSum", 1, reduce, "Sum"),
                                       ONNX_OP("ReduceSumSquare", 1, reduce_sum_square),
                                       ONNX_OP("TopK", 10, top_k),
                                       {.op = NULL}};
