// einsum.c — Einsum by strided copies, sums and batches of matrix products.
#include "kernel/gemm/einsum.h"

#include <inttypes.h>

#include "kernel/gemm/einsum_steps.h"

#define FIRST_BROADCAST 256  // labels are bytes; axes of the ellipsis follow, the last one first
#define MAX_LABELS (FIRST_BROADCAST + WEIR_MAX_RANK)

// A tensor by its labels: a label that occurs twice walks the diagonal.
typedef struct operand_t {
  int rank;
  int16_t labels[WEIR_MAX_RANK];  // of each axis
  bool has[MAX_LABELS];
  int64_t strides[MAX_LABELS];
  const void* data;
  weir_trans_t trans;
  weir_tensor_t* scratch;  // owned: where |data| was brought into order
} operand_t;

// Labels in some order.
typedef struct group_t {
  int count;
  int16_t labels[WEIR_MAX_RANK];
  int64_t size;  // the product of their dimensions
} group_t;

// Which tensors a label is in decides what becomes of it.
enum { IN_X = 1, IN_Y = 2, IN_Z = 4 };

typedef struct einsum_t {
  weir_dtype_t dtype;
  int64_t dims[MAX_LABELS];
  uint8_t places[MAX_LABELS];
  operand_t operands[2];
  operand_t output;
  group_t batch;
  group_t contract;
  group_t free[2];
  group_t reduce[2];  // summed before the product: in one operand alone
} einsum_t;

// The labels of each axis of a tensor with |broadcast| axes under the ellipsis.
static void expand_labels(const weir_einsum_subscripts_t* subs, int broadcast, operand_t* operand) {
  int n = 0;
  for (int i = 0; i <= subs->count; ++i) {
    if (i == subs->ellipsis) {
      for (int b = broadcast - 1; b >= 0; --b)
        operand->labels[n++] = (int16_t)(FIRST_BROADCAST + b);
    }
    if (i < subs->count) operand->labels[n++] = (int16_t)(unsigned char)subs->text[i];
  }
  operand->rank = n;
}

static weir_status_t* add_operand(einsum_t* e, const weir_einsum_subscripts_t* subs, int i,
                                  const weir_tensor_t* x, int* io_broadcast) {
  int broadcast = x->rank - subs->count;
  if (broadcast < 0 || (broadcast > 0 && subs->ellipsis < 0)) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Expected input %d to have rank %s%d but got: %d", i,
                       subs->ellipsis < 0 ? "" : "at least ", subs->count, x->rank);
  }
  *io_broadcast = WEIR_MAX(*io_broadcast, broadcast);
  operand_t* operand = &e->operands[i];
  operand->data = x->data;
  expand_labels(subs, broadcast, operand);
  for (int axis = 0; axis < x->rank; ++axis) {
    int label = operand->labels[axis];
    int64_t dim = x->dims[axis];
    int64_t known = e->dims[label];
    if (label >= FIRST_BROADCAST ? known > 1 && dim > 1 && known != dim
                                 : known >= 0 && known != dim) {
      char text[WEIR_SHAPE_TEXT_SIZE];
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Expected dimension %" PRId64
                         " at axis %d of the input shaped %s but got "
                         "dimension %" PRId64,
                         known, axis, weir_tensor_shape_text(x, text), dim);
    }
    if (known < 0 || known == 1) e->dims[label] = dim;
  }
  return NULL;
}

// Strides by label. An axis that is broadcast is as good as absent.
static void set_strides(einsum_t* e, operand_t* operand, const int64_t* dims, uint8_t place) {
  int64_t stride = 1;
  for (int axis = operand->rank - 1; axis >= 0; --axis) {
    int label = operand->labels[axis];
    if (dims[axis] == e->dims[label]) {
      operand->has[label] = true;
      operand->strides[label] += stride;
      e->places[label] |= place;
    }
    stride *= dims[axis];
  }
}

static void collect(const einsum_t* e, const operand_t* from, uint8_t places, group_t* out) {
  bool is_in[MAX_LABELS] = {false};
  *out = (group_t){.size = 1};
  for (int axis = 0; axis < from->rank; ++axis) {
    int label = from->labels[axis];
    if (is_in[label] || e->places[label] != places || !from->has[label]) continue;
    is_in[label] = true;
    out->labels[out->count++] = (int16_t)label;
    out->size *= e->dims[label];
  }
}

// The labels of |groups| one after another as dimensions, strides those of |operand|.
static int join_groups(const einsum_t* e, const operand_t* operand, const group_t* const groups[4],
                       weir_move_dim_t* dims) {
  int n = 0;
  for (int i = 0; i < 4 && groups[i]; ++i) {
    for (int k = 0; k < groups[i]->count; ++k) {
      int label = groups[i]->labels[k];
      dims[n++] = (weir_move_dim_t){.size = e->dims[label], .src_stride = operand->strides[label]};
    }
  }
  weir_move_contiguous_dst(n, dims);
  return n;
}

// Whether |operand| is laid out in the order of |groups| already.
static bool is_ordered(const einsum_t* e, const operand_t* operand,
                       const group_t* const groups[4]) {
  weir_move_dim_t dims[2 * WEIR_MAX_RANK];
  int n = join_groups(e, operand, groups, dims);
  for (int i = 0; i < n; ++i) {
    if (dims[i].size > 1 && dims[i].src_stride != dims[i].dst_stride) return false;
  }
  return true;
}

// Sums the last |k| elements of each of |m| rows.
static weir_status_t* sum_rows(weir_kernel_ctx_t* ctx, einsum_t* e, operand_t* operand, int64_t m,
                               int64_t k) {
  weir_tensor_t* sums = NULL;
  WEIR_TRY(weir_kernel_scratch(ctx, e->dtype, m, &sums));
  weir_status_t* status = weir_einsum_sum(ctx, e->dtype, m, k, operand->data, sums->data);
  if (status) {
    weir_tensor_release(sums);
    return status;
  }
  weir_tensor_release(operand->scratch);
  operand->scratch = sums;
  operand->data = sums->data;
  return NULL;
}

// Brings operand |i| into the order batch, rows, columns, without a copy where it is in it, or in
// the transposed order, already.
static weir_status_t* prepare(weir_kernel_ctx_t* ctx, einsum_t* e, int i, const group_t* rows,
                              const group_t* columns) {
  operand_t* operand = &e->operands[i];
  const group_t* const plain[4] = {&e->batch, rows, columns, &e->reduce[i]};
  const group_t* const turned[4] = {&e->batch, columns, rows, NULL};
  int64_t kept = e->batch.size * rows->size * columns->size;
  operand->trans = WEIR_NO_TRANS;
  if (e->reduce[i].size == 1 && is_ordered(e, operand, turned) && !is_ordered(e, operand, plain)) {
    operand->trans = WEIR_TRANS;
    return NULL;
  }
  if (!is_ordered(e, operand, plain)) {
    weir_move_dim_t dims[2 * WEIR_MAX_RANK];
    int n = join_groups(e, operand, plain, dims);
    WEIR_TRY(weir_kernel_scratch(ctx, e->dtype, kept * e->reduce[i].size, &operand->scratch));
    WEIR_TRY(weir_einsum_move(ctx, e->dtype, n, dims, operand->data, operand->scratch->data));
    operand->data = operand->scratch->data;
  }
  return e->reduce[i].size == 1 ? NULL : sum_rows(ctx, e, operand, kept, e->reduce[i].size);
}

static weir_status_t* multiply(weir_kernel_ctx_t* ctx, const einsum_t* e, int x, void* out) {
  weir_gemm_args_t args = {.dtype_a = e->dtype,
                           .dtype_b = e->dtype,
                           .dtype_c = e->dtype,
                           .trans_a = e->operands[x].trans,
                           .trans_b = e->operands[1 - x].trans,
                           .m = e->free[x].size,
                           .n = e->free[1 - x].size,
                           .k = e->contract.size,
                           .a = e->operands[x].data,
                           .b = e->operands[1 - x].data,
                           .c = out};
  return weir_einsum_multiply(ctx, &args, e->batch.size);
}

// The product in its own order, then brought into that of the output.
static weir_status_t* compute_product(weir_kernel_ctx_t* ctx, einsum_t* e, weir_tensor_t* z) {
  const group_t* const order[4] = {&e->batch, &e->free[0], &e->free[1], NULL};
  const group_t* const swapped[4] = {&e->batch, &e->free[1], &e->free[0], NULL};
  int64_t count = e->batch.size * e->free[0].size * e->free[1].size;
  int x = !is_ordered(e, &e->output, order) && is_ordered(e, &e->output, swapped) ? 1 : 0;
  WEIR_TRY(prepare(ctx, e, x, &e->free[x], &e->contract));
  WEIR_TRY(prepare(ctx, e, 1 - x, &e->contract, &e->free[1 - x]));
  const group_t* const* chosen = x ? swapped : order;
  if (count == z->count && is_ordered(e, &e->output, chosen)) return multiply(ctx, e, x, z->data);
  weir_tensor_t* product = NULL;
  weir_status_t* status = weir_kernel_scratch(ctx, e->dtype, count, &product);
  if (!status) status = multiply(ctx, e, x, product->data);
  if (status) goto done;
  weir_move_dim_t dims[2 * WEIR_MAX_RANK];
  int n = join_groups(e, &e->output, chosen, dims);
  for (int i = 0; i < n; ++i) {
    int64_t stride = dims[i].src_stride;
    dims[i].src_stride = dims[i].dst_stride;
    dims[i].dst_stride = stride;
  }
  if (count != z->count)
    status = weir_einsum_zero(ctx, e->dtype, z->data, z->count);  // off the diagonal
  if (!status) status = weir_einsum_move(ctx, e->dtype, n, dims, product->data, z->data);
done:
  weir_tensor_release(product);
  return status;
}

// One input: strided copies, after sums where labels are dropped.
static weir_status_t* compute_single(weir_kernel_ctx_t* ctx, einsum_t* e, weir_tensor_t* z) {
  operand_t* x = &e->operands[0];
  const group_t* const order[4] = {&e->free[0], NULL};
  weir_move_dim_t dims[2 * WEIR_MAX_RANK];
  if (e->reduce[0].size != 1) WEIR_TRY(prepare(ctx, e, 0, &e->free[0], &e->contract));
  int n = join_groups(e, x, order, dims);
  if (e->reduce[0].size != 1) weir_move_contiguous_src(n, dims);
  for (int i = 0; i < n; ++i) dims[i].dst_stride = e->output.strides[e->free[0].labels[i]];
  if (e->free[0].size != z->count) WEIR_TRY(weir_einsum_zero(ctx, e->dtype, z->data, z->count));
  return weir_einsum_move(ctx, e->dtype, n, dims, x->data, z->data);
}

static weir_status_t* make_output(weir_kernel_ctx_t* ctx, einsum_t* e,
                                  const weir_einsum_subscripts_t* subs, int broadcast,
                                  weir_tensor_t** out_z) {
  if (broadcast > 0 && subs->ellipsis < 0) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Output contains %d broadcasting dimension(s) but no ellipsis (...) was "
                       "found in the output subscripts.",
                       broadcast);
  }
  if (subs->count + broadcast > WEIR_MAX_RANK) {
    return WEIR_STATUS(INVALID_ARGUMENT, "The output would have %d dimensions",
                       subs->count + broadcast);
  }
  expand_labels(subs, broadcast, &e->output);
  int64_t dims[WEIR_MAX_RANK];
  for (int axis = 0; axis < e->output.rank; ++axis) {
    dims[axis] = e->dims[e->output.labels[axis]];
    if (dims[axis] < 0) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Einsum output subscripts has label '%c' which is not present in the "
                         "input subscripts",
                         e->output.labels[axis]);
    }
  }
  WEIR_TRY(weir_kernel_output(ctx, 0, e->output.rank, dims, out_z));
  set_strides(e, &e->output, dims, IN_Z);
  return NULL;
}

static void collect_groups(einsum_t* e) {
  collect(e, &e->output, IN_X | IN_Y | IN_Z, &e->batch);
  collect(e, &e->operands[0], IN_X | IN_Y, &e->contract);
  collect(e, &e->output, IN_X | IN_Z, &e->free[0]);
  collect(e, &e->output, IN_Y | IN_Z, &e->free[1]);
  collect(e, &e->operands[0], IN_X, &e->reduce[0]);
  collect(e, &e->operands[1], IN_Y, &e->reduce[1]);
}

static weir_status_t* run_einsum(weir_kernel_ctx_t* ctx, const weir_einsum_equation_t* equation,
                                 einsum_t* e) {
  int broadcast = 0;
  for (int i = 0; i < MAX_LABELS; ++i) e->dims[i] = -1;
  for (int i = 0; i < equation->input_count; ++i)
    WEIR_TRY(add_operand(e, &equation->inputs[i], i, weir_kernel_input(ctx, i), &broadcast));
  for (int i = 0; i < equation->input_count; ++i)
    set_strides(e, &e->operands[i], weir_kernel_input(ctx, i)->dims, i ? IN_Y : IN_X);
  weir_tensor_t* z = NULL;
  WEIR_TRY(make_output(ctx, e, &equation->output, broadcast, &z));
  collect_groups(e);
  if (z->count == 0) return NULL;
  if (e->contract.size * e->reduce[0].size * e->reduce[1].size == 0)
    return weir_einsum_zero(ctx, e->dtype, z->data, z->count);
  return equation->input_count == 1 ? compute_single(ctx, e, z) : compute_product(ctx, e, z);
}

weir_status_t* weir_einsum_run(weir_kernel_ctx_t* ctx) {
  const weir_einsum_t* state = ctx->state;
  einsum_t e = {.dtype = weir_tensor_type(weir_kernel_input(ctx, 0))};
  weir_status_t* status = run_einsum(ctx, &state->equation, &e);
  for (int i = 0; i < 2; ++i) weir_tensor_release(e.operands[i].scratch);
  return status;
}
