// list_common.h — What the TensorList ops share: element shapes as inputs, known shapes of handles,
// rows.
#ifndef WEIR_OPS_LIST_LIST_COMMON_H_
#define WEIR_OPS_LIST_LIST_COMMON_H_

#include "op/grad_ctx.h"
#include "op/shape_ctx.h"
#include "ops/list/list_kernel.h"
#include "ops/list/rows.h"

// ---- kernels ----

// Reads input |i| as a shape, -1 for what is not known; a scalar -1 says nothing.
static inline weir_status_t* list_shape_input(weir_kernel_ctx_t* ctx, int i, weir_arena_t* arena,
                                              const weir_shape_t** out_shape) {
  const weir_tensor_t* t = weir_kernel_input(ctx, i);
  int64_t dims[WEIR_MAX_RANK];
  int rank = 0;
  if (t->rank == 0) {
    *out_shape = &weir_shape_unknown;
    if (weir_tensor_int_at(t, 0) == -1) return NULL;
    return WEIR_STATUS(
        INVALID_ARGUMENT,
        "The only valid scalar shape tensor is the fully unknown shape specified as -1.");
  }
  if (t->rank > 1) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Shape must be at most rank 1 but is rank %d", t->rank);
  }
  WEIR_TRY(weir_kernel_ints(ctx, i, dims, WEIR_MAX_RANK, &rank));
  for (int k = 0; k < rank; ++k) {
    if (dims[k] < -1)
      return WEIR_STATUS(INVALID_ARGUMENT, "Dimension %lld must be >= -1", (long long)dims[k]);
  }
  *out_shape = weir_shape_make(arena, rank, dims);
  return *out_shape ? NULL : weir_out_of_memory();
}

// "<prefix><shape><suffix>", INVALID_ARGUMENT.
static inline weir_status_t* list_shape_error(const char* prefix, const weir_shape_t* shape,
                                              const char* suffix) {
  weir_strbuf_t text = {0};
  weir_shape_append(shape, &text);
  weir_status_t* status =
      WEIR_STATUS(INVALID_ARGUMENT, "%s%s%s", prefix, text.data ? text.data : "", suffix);
  weir_strbuf_free(&text);
  return status;
}

static inline weir_status_t* list_shapes_error(const char* before, const weir_shape_t* a,
                                               const char* between, const weir_shape_t* b) {
  weir_strbuf_t text = {0};
  weir_strbuf_puts(&text, before);
  weir_shape_append(a, &text);
  weir_strbuf_puts(&text, between);
  weir_shape_append(b, &text);
  weir_status_t* status = WEIR_STATUS(INVALID_ARGUMENT, "%s", text.data ? text.data : before);
  weir_strbuf_free(&text);
  return status;
}

static inline weir_status_t* list_merge(weir_arena_t* arena, const weir_shape_t* a,
                                        const weir_shape_t* b, const weir_shape_t** out_shape) {
  if (weir_shape_merge(arena, a, b, out_shape)) return NULL;
  if (a->rank != b->rank) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "PartialTensorShape: Incompatible ranks during merge: %d vs. %d", a->rank,
                       b->rank);
  }
  return list_shapes_error("PartialTensorShape: Incompatible shapes during merge: ", a, " vs. ", b);
}

static inline const weir_shape_t* list_tensor_shape(weir_arena_t* arena, const weir_tensor_t* t) {
  return weir_shape_make(arena, t->rank, t->dims);
}

// The shape of elements by input |i| and by the list itself.
static inline weir_status_t* list_element_shape(weir_kernel_ctx_t* ctx, int i,
                                                const weir_list_t* list, weir_arena_t* arena,
                                                const weir_shape_t** out_shape) {
  const weir_shape_t* given = NULL;
  WEIR_TRY(list_shape_input(ctx, i, arena, &given));
  return list_merge(arena, given, list->shape, out_shape);
}

// Narrows *|shape| by that of |item|, NULL for one that is not set.
static inline weir_status_t* list_merge_item(weir_arena_t* arena, const weir_tensor_t* item,
                                             const weir_shape_t** shape) {
  if (!item) return NULL;
  if (weir_shape_is_full(*shape) && weir_shape_accepts(*shape, item->rank, item->dims)) return NULL;
  const weir_shape_t* other = list_tensor_shape(arena, item);
  return other ? list_merge(arena, *shape, other, shape) : weir_out_of_memory();
}

static inline weir_status_t* list_check_index(const char* doing, int64_t index, size_t count) {
  if (index >= 0 && index < (int64_t)count) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "Trying to %s element %lld in a list with %zu elements.",
                     doing, (long long)index, count);
}

static inline weir_status_t* list_check_rows(const weir_tensor_t* t) {
  if (t->rank > 0) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "Tensor must be at least a vector, but saw shape: []");
}

// ---- shapes ----

static inline const weir_shape_t* list_known_shape(const weir_shape_ctx_t* ctx, int i) {
  const weir_handle_info_t* info = ctx->input_handles ? ctx->input_handles[i] : NULL;
  return info && info->shape ? info->shape : &weir_shape_unknown;
}

// What is known of elements by input |shape_input| and by the list at input |list_input|.
static inline weir_status_t* list_infer_element(weir_shape_ctx_t* ctx, int list_input,
                                                int shape_input, const weir_shape_t** out_shape) {
  const weir_shape_t* given = NULL;
  WEIR_TRY(weir_shape_from_value_or_scalar(ctx, shape_input, &given));
  return weir_shape_join(ctx, given, list_known_shape(ctx, list_input), out_shape);
}

static inline weir_status_t* list_set_handle(weir_shape_ctx_t* ctx, int output,
                                             const weir_shape_t* element) {
  const weir_attr_t* dtype = weir_attrs_find(weir_shape_attrs(ctx), "element_dtype");
  WEIR_TRY(weir_shape_set_scalar(ctx, output));
  return dtype ? weir_shape_set_handle(ctx, output, dtype->u.type, element) : NULL;
}

static inline weir_status_t* list_check_type(weir_shape_ctx_t* ctx, int i, const char* doing) {
  const weir_handle_info_t* info = ctx->input_handles ? ctx->input_handles[i] : NULL;
  weir_dtype_t dtype = weir_attrs_type(weir_shape_attrs(ctx), "element_dtype");
  if (!info || info->dtype == WEIR_DTYPE_INVALID || info->dtype == dtype) return NULL;
  return WEIR_STATUS(
      INVALID_ARGUMENT,
      "Trying to %s list with wrong element dtype. List has type %s but expected type %s", doing,
      weir_dtype_name(info->dtype), weir_dtype_name(dtype));
}

// ---- gradients ----

static inline weir_edge_t list_grad_element_shape(weir_grad_ctx_t* g, weir_edge_t list) {
  return weir_grad_node_with(g, "TensorListElementShape", WEIR_EDGES(list),
                             WEIR_ATTRS(weir_attr_type("shape_type", WEIR_DTYPE_INT32)));
}

static inline weir_edge_t list_grad_length(weir_grad_ctx_t* g, weir_edge_t list) {
  return weir_grad_node(g, "TensorListLength", WEIR_EDGES(list));
}

// The shape of a row of |tensor| as an int32 vector: a Const where known.
static inline weir_edge_t list_grad_row_shape(weir_grad_ctx_t* g, weir_edge_t tensor) {
  const weir_shape_t* shape = weir_grad_shape(g, tensor);
  int32_t dims[WEIR_MAX_RANK];
  bool is_known = shape->rank > 0;
  for (int i = 1; i < shape->rank; ++i) {
    is_known = is_known && shape->dims[i] >= 0 && shape->dims[i] <= INT32_MAX;
    dims[i - 1] = (int32_t)shape->dims[i];
  }
  if (is_known) return weir_build_int32s(g->builder, dims, shape->rank - 1);
  weir_edge_t whole = weir_grad_shape_of(g, tensor);
  return weir_grad_node(g, "Slice",
                        WEIR_EDGES(whole, weir_build_int32s(g->builder, (const int32_t[]){1}, 1),
                                   weir_build_int32s(g->builder, (const int32_t[]){-1}, 1)));
}

static inline weir_named_attr_t list_grad_dtype(weir_grad_ctx_t* g) {
  return weir_attr_type("element_dtype", weir_attrs_type(weir_grad_attrs(g), "element_dtype"));
}

// A list like |list| with nothing in it yet.
static inline weir_edge_t list_grad_empty(weir_grad_ctx_t* g, weir_edge_t list) {
  return weir_grad_node_with(
      g, "TensorListReserve",
      WEIR_EDGES(list_grad_element_shape(g, list), list_grad_length(g, list)),
      WEIR_ATTRS(list_grad_dtype(g)));
}

#endif  // WEIR_OPS_LIST_LIST_COMMON_H_
