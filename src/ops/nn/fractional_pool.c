// fractional_pool.c — FractionalMaxPool, FractionalAvgPool and their gradients: pooling by ratios
// that are no whole numbers.
#include <math.h>

#include "base/string.h"
#include "kernel/move/move.h"
#include "kernel/pool/fractional.h"
#include "op/grad_ctx.h"
#include "op/kernel.h"
#include "op/shape_ctx.h"

// ---- shapes ----

// The four ratios.
static weir_status_t* read_ratios(weir_attrs_t attrs, const float** out) {
  const weir_attr_t* ratios = weir_attrs_list(attrs, "pooling_ratio");
  *out = ratios->u.floats;
  if (ratios->count != 4) {
    return WEIR_STATUS(INVALID_ARGUMENT, "pooling_ratio field must specify 4 dimensions");
  }
  for (int i = 0; i < 4; ++i) {
    if (ratios->u.floats[i] >= 1) continue;
    return WEIR_STATUS(INVALID_ARGUMENT, "pooling_ratio cannot be smaller than 1, got: %g",
                       (double)ratios->u.floats[i]);
  }
  return NULL;
}

// In floats, as TensorFlow has it, but never more than there is.
static int64_t pooled(int64_t size, float ratio) {
  const float pooled_size = floorf((float)size / ratio);
  return pooled_size < (float)size ? (int64_t)pooled_size : size;
}

static weir_status_t* pool_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* in;
  const float* ratios;
  int64_t dims[4];
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 4, &in));
  WEIR_TRY(read_ratios(weir_shape_attrs(ctx), &ratios));
  for (int i = 0; i < 4; ++i) {
    int64_t dim = weir_shape_dim(in, i);
    dims[i] = dim < 0 ? -1 : pooled(dim, ratios[i]);
  }
  WEIR_TRY(weir_shape_set_dims(ctx, 0, 4, dims));
  // TensorFlow's shape function forgets the end of the last window, its kernel does not.
  WEIR_TRY(weir_shape_set_vector(ctx, 1, dims[1] < 0 ? -1 : dims[1] + 1));
  return weir_shape_set_vector(ctx, 2, dims[2] < 0 ? -1 : dims[2] + 1);
}

static weir_status_t* max_grad_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* in;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 4, &in));
  return weir_shape_set(ctx, 0, in);
}

static weir_status_t* avg_grad_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* shape;
  WEIR_TRY(weir_shape_from_value(ctx, 0, &shape));
  WEIR_TRY(weir_shape_with_rank(ctx, shape, 4, &shape));
  return weir_shape_set(ctx, 0, shape);
}

// ---- gradients ----

static weir_status_t* max_pool_grad(weir_grad_ctx_t* g) {
  weir_edges_t inputs =
      WEIR_EDGES(weir_grad_input(g, 0), weir_grad_output(g, 0), weir_grad_dy(g, 0),
                 weir_grad_output(g, 1), weir_grad_output(g, 2));
  return weir_grad_set(
      g, 0, weir_grad_node_like(g, "FractionalMaxPoolGrad", inputs, WEIR_NAMES("overlapping")));
}

static weir_status_t* avg_pool_grad(weir_grad_ctx_t* g) {
  weir_edge_t shape = weir_grad_node_with(g, "Shape", WEIR_EDGES(weir_grad_input(g, 0)),
                                          WEIR_ATTRS(weir_attr_type("out_type", WEIR_DTYPE_INT64)));
  weir_edges_t inputs =
      WEIR_EDGES(shape, weir_grad_dy(g, 0), weir_grad_output(g, 1), weir_grad_output(g, 2));
  return weir_grad_set(
      g, 0, weir_grad_node_like(g, "FractionalAvgPoolGrad", inputs, WEIR_NAMES("overlapping")));
}

// ---- pooling ----

typedef struct state_t {
  const float* ratios;  // borrowed from the node
  bool is_pseudo_random, is_overlapping, is_deterministic;
  weir_philox_t philox;  // of every step, when deterministic
} state_t;

static weir_status_t* pool_init(const weir_kernel_init_t* init, state_t* s, const char* what) {
  weir_attrs_t attrs = init->node->attrs;
  int64_t seed = weir_attrs_int(attrs, "seed"), seed2 = weir_attrs_int(attrs, "seed2");
  WEIR_TRY(read_ratios(attrs, &s->ratios));
  s->is_pseudo_random = weir_attrs_bool(attrs, "pseudo_random");
  s->is_overlapping = weir_attrs_bool(attrs, "overlapping");
  s->is_deterministic = weir_attrs_bool(attrs, "deterministic");
  if (s->ratios[0] != 1 || s->ratios[3] != 1) {
    return WEIR_STATUS(
        UNIMPLEMENTED,
        "Fractional %s pooling is not yet supported on the batch nor channel dimension.", what);
  }
  if (!s->is_deterministic && (seed != 0 || seed2 != 0)) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Both seed and seed2 should be 0 if deterministic is false.");
  }
  s->philox = weir_philox_from_seeds(seed, seed2);
  return NULL;
}
static weir_status_t* max_init(const weir_kernel_init_t* init, void* state) {
  return pool_init(init, state, "max");
}
static weir_status_t* avg_init(const weir_kernel_init_t* init, void* state) {
  return pool_init(init, state, "average");
}

static weir_status_t* pool_sizes(const state_t* s, const weir_tensor_t* in, int64_t dims[4]) {
  if (in->rank != 4) return WEIR_STATUS(INVALID_ARGUMENT, "tensor_in must be 4-dimensional");
  for (int i = 0; i < 4; ++i) {
    dims[i] = pooled(in->dims[i], s->ratios[i]);
    if ((float)in->dims[i] >= s->ratios[i] && dims[i] > 0) continue;
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Pooling ratio is higher than input dimension size for dimension %d. Input "
                       "dim size: %lld pooling ratio: %g",
                       i, (long long)in->dims[i], (double)s->ratios[i]);
  }
  return NULL;
}

static weir_status_t* pool(weir_kernel_ctx_t* ctx,
                           void (*fn)(weir_pool_t*, weir_dtype_t, const weir_fractional_t*,
                                      const void*, void*)) {
  const state_t* s = ctx->state;
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  weir_tensor_t *out, *rows, *columns;
  int64_t dims[4];
  WEIR_TRY(pool_sizes(s, in, dims));
  dims[0] = in->dims[0];  // whatever a float makes of them
  dims[3] = in->dims[3];
  WEIR_TRY(weir_kernel_output(ctx, 0, 4, dims, &out));
  WEIR_TRY(weir_kernel_output(ctx, 1, 1, (const int64_t[]){dims[1] + 1}, &rows));
  WEIR_TRY(weir_kernel_output(ctx, 2, 1, (const int64_t[]){dims[2] + 1}, &columns));
  weir_philox_t philox = s->is_deterministic ? s->philox : weir_philox_from_seeds(0, 0);
  weir_fractional_draw(&philox, in->dims[1], dims[1], s->is_pseudo_random, rows->data);
  weir_fractional_draw(&philox, in->dims[2], dims[2], s->is_pseudo_random, columns->data);
  weir_fractional_t f = {.batch = dims[0],
                         .in_h = in->dims[1],
                         .in_w = in->dims[2],
                         .channels = dims[3],
                         .out_h = dims[1],
                         .out_w = dims[2],
                         .rows = rows->data,
                         .columns = columns->data,
                         .is_overlapping = s->is_overlapping};
  fn(weir_kernel_pool(ctx), weir_tensor_type(in), &f, in->data, out->data);
  return NULL;
}
static weir_status_t* max_cpu(weir_kernel_ctx_t* ctx) { return pool(ctx, weir_fractional_max); }
static weir_status_t* avg_cpu(weir_kernel_ctx_t* ctx) { return pool(ctx, weir_fractional_avg); }

// ---- kernels of the gradients ----

// Starts of windows, one more than there are of these.
static weir_status_t* check_count(const weir_tensor_t* starts, int64_t count, const char* name) {
  if (starts->count > count) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "%s must have at least %lld elements, but got %lld", name,
                     (long long)count + 1, (long long)starts->count);
}

static weir_status_t* check_starts(const weir_tensor_t* starts, int64_t count, const char* name) {
  WEIR_TRY(check_count(starts, count, name));
  for (int64_t i = 0; i <= count; ++i) {
    int64_t start = WEIR_TENSOR_DATA(starts, int64_t)[i];
    if (start >= 0) continue;
    return WEIR_STATUS(INVALID_ARGUMENT, "%s values must not be negative, got %lld", name,
                       (long long)start);
  }
  return NULL;
}

static weir_status_t* refuse_starts(const weir_tensor_t* starts, const char* name) {
  weir_strbuf_t text = {0};
  for (int64_t i = 0; i < starts->count; ++i)
    weir_strbuf_printf(&text, " %lld", (long long)WEIR_TENSOR_DATA(starts, int64_t)[i]);
  weir_status_t* status =
      WEIR_STATUS(INVALID_ARGUMENT, "%s sequence tensor values must not be negative, got%s", name,
                  text.data ? text.data : "");
  weir_strbuf_free(&text);
  return status;
}

// Windows begin and end at what is not negative.
static weir_status_t* check_windows(const weir_tensor_t* starts, int64_t count, bool is_overlapping,
                                    const char* name) {
  const int64_t* at = WEIR_TENSOR_DATA(starts, int64_t);
  for (int64_t i = 0; i < count; ++i) {
    if (at[i] < 0 || at[i + 1] < (is_overlapping ? 0 : 1)) return refuse_starts(starts, name);
  }
  return NULL;
}

static weir_status_t* check_image(const weir_tensor_t* t, const char* name) {
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (t->rank == 4 && t->count > 0) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "%s %s, got one of shape %s", name,
                     t->rank == 4 ? "must not be empty" : "should be a tensor of rank 4",
                     weir_tensor_shape_text(t, text));
}

// That |out| is what pooling |in| gave, by sequences of its size.
static weir_status_t* check_max_inputs(weir_kernel_ctx_t* ctx) {
  static const char* const names[] = {"row_pooling_sequence", "col_pooling_sequence"};
  const weir_tensor_t *in = weir_kernel_input(ctx, 0), *out = weir_kernel_input(ctx, 1);
  char text[WEIR_SHAPE_TEXT_SIZE];
  WEIR_TRY(check_image(in, "orig_input"));
  WEIR_TRY(check_image(out, "orig_output"));
  for (int i = 0; i < 2; ++i) {
    const weir_tensor_t* starts = weir_kernel_input(ctx, 3 + i);
    if (starts->rank != 1) {
      return WEIR_STATUS(INVALID_ARGUMENT, "%s must be a vector, received shape %s", names[i],
                         weir_tensor_shape_text(starts, text));
    }
    WEIR_TRY(check_starts(starts, out->dims[1 + i], names[i]));
    if (starts->count != out->dims[1 + i] + 1 || out->dims[3 * i] != in->dims[3 * i]) {
      return WEIR_STATUS(INVALID_ARGUMENT, "tensor_out_dup is not the same as tensor_out");
    }
  }
  return NULL;
}

static weir_status_t* max_grad_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t *in = weir_kernel_input(ctx, 0), *top = weir_kernel_input(ctx, 1);
  const weir_tensor_t* dy = weir_kernel_input(ctx, 2);
  const weir_dtype_t dtype = weir_tensor_type(in);
  weir_tensor_t *out, *argmax;
  WEIR_TRY(check_max_inputs(ctx));
  WEIR_TRY(weir_kernel_output(ctx, 0, 4, in->dims, &out));
  WEIR_TRY(weir_kernel_scratch(ctx, WEIR_DTYPE_INT64, top->count, &argmax));
  weir_fractional_t f = {.batch = in->dims[0],
                         .in_h = in->dims[1],
                         .in_w = in->dims[2],
                         .channels = in->dims[3],
                         .out_h = top->dims[1],
                         .out_w = top->dims[2],
                         .rows = weir_kernel_input(ctx, 3)->data,
                         .columns = weir_kernel_input(ctx, 4)->data,
                         .is_overlapping = weir_attrs_bool(weir_kernel_attrs(ctx), "overlapping")};
  weir_status_t* status = NULL;
  bool is_same = weir_fractional_argmax(dtype, &f, in->data, top->data, argmax->data);
  bool is_filled = dy->count <= top->count;
  for (int64_t i = 0; is_same && is_filled && i < dy->count; ++i)
    is_filled = WEIR_TENSOR_DATA(argmax, int64_t)[i] >= 0;
  if (!is_same) {
    status = WEIR_STATUS(INVALID_ARGUMENT, "tensor_out_dup is not the same as tensor_out");
  } else if (!is_filled) {
    status = WEIR_STATUS(INVALID_ARGUMENT, "Invalid input backprop index: -1, %lld",
                         (long long)in->count);
  } else {
    weir_move_zero(dtype, out->data, out->count);
    weir_fractional_scatter(dtype, argmax->data, dy->count, dy->data, out->data);
  }
  weir_tensor_release(argmax);
  return status;
}

static weir_status_t* check_avg_inputs(const weir_kernel_ctx_t* ctx, int64_t dims[4]) {
  const weir_tensor_t *shape = weir_kernel_input(ctx, 0), *dy = weir_kernel_input(ctx, 1);
  const weir_tensor_t *rows = weir_kernel_input(ctx, 2), *columns = weir_kernel_input(ctx, 3);
  const bool is_overlapping = weir_attrs_bool(weir_kernel_attrs(ctx), "overlapping");
  int64_t total;
  int count;
  if (shape->rank != 1 || shape->count != 4) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "original input tensor shape must be1-dimensional and 4 elements");
  }
  WEIR_TRY(weir_kernel_ints(ctx, 0, dims, 4, &count));
  WEIR_TRY(weir_shape_check_sizes(4, dims));
  WEIR_TRY(weir_shape_count(WEIR_DTYPE_DOUBLE, 4, dims, &total));
  if (total == 0) return WEIR_STATUS(INVALID_ARGUMENT, "No dimension of input must be 0");
  for (int i = 0; dy->rank == 4 && i < 4; ++i) {
    if (dy->dims[i] == 0)
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "out_backprop must be positive for all dimension, got:0");
  }
  WEIR_TRY(check_image(dy, "out_backprop"));
  WEIR_TRY(check_count(rows, dy->dims[1], "row_seq_tensor"));
  WEIR_TRY(check_count(columns, dy->dims[2], "col_seq_tensor"));
  WEIR_TRY(check_windows(rows, 1, is_overlapping, "Row"));  // columns are met within the first row
  WEIR_TRY(check_windows(columns, dy->dims[2], is_overlapping, "Column"));
  WEIR_TRY(check_windows(rows, dy->dims[1], is_overlapping, "Row"));
  if (dy->dims[0] <= dims[0] && dy->dims[3] <= dims[3]) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "out_backprop has more images or channels than the input");
}

static weir_status_t* avg_grad_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* dy = weir_kernel_input(ctx, 1);
  const weir_dtype_t dtype = weir_tensor_type(dy);
  weir_tensor_t *out, *sums;
  int64_t dims[4];
  WEIR_TRY(check_avg_inputs(ctx, dims));
  WEIR_TRY(weir_kernel_output(ctx, 0, 4, dims, &out));
  WEIR_TRY(weir_kernel_scratch(ctx, WEIR_DTYPE_DOUBLE, out->count, &sums));
  weir_move_zero(WEIR_DTYPE_DOUBLE, sums->data, sums->count);
  weir_fractional_t f = {.batch = dims[0],
                         .in_h = dims[1],
                         .in_w = dims[2],
                         .channels = dims[3],
                         .out_h = dy->dims[1],
                         .out_w = dy->dims[2],
                         .rows = weir_kernel_input(ctx, 2)->data,
                         .columns = weir_kernel_input(ctx, 3)->data,
                         .is_overlapping = weir_attrs_bool(weir_kernel_attrs(ctx), "overlapping")};
  weir_fractional_spread(dtype, &f, dy->dims[0], dy->dims[3], dy->data, sums->data);
  weir_fractional_convert(dtype, sums->data, out->count, out->data);
  weir_tensor_release(sums);
  return NULL;
}

#define FRACTIONAL_TYPES "T: {float, double, int32, int64}"
#define POOL_ATTRS                                                                     \
  "pooling_ratio: list(float) >= 4; pseudo_random: bool = false; overlapping: bool = " \
  "false; deterministic: bool = false; seed: int = 0; seed2: int = 0; " FRACTIONAL_TYPES
#define POOL_OUTPUTS "output: T; row_pooling_sequence: int64; col_pooling_sequence: int64"

const weir_op_module_t weir_ops_nn_fractional_pool = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "FractionalMaxPool",
         .summary = "Maxima of windows of random sizes",
         .attrs = POOL_ATTRS,
         .inputs = "value: T",
         .outputs = POOL_OUTPUTS,
         .infer_shape = pool_shape,
         .build_grad = max_pool_grad,
         .kernels =
             WEIR_CPU_KERNEL(.compute = max_cpu, .init = max_init, .state_size = sizeof(state_t))},
        {.name = "FractionalAvgPool",
         .summary = "Averages of windows of random sizes",
         .attrs = POOL_ATTRS,
         .inputs = "value: T",
         .outputs = POOL_OUTPUTS,
         .infer_shape = pool_shape,
         .build_grad = avg_pool_grad,
         .kernels =
             WEIR_CPU_KERNEL(.compute = avg_cpu, .init = avg_init, .state_size = sizeof(state_t))},
        {.name = "FractionalMaxPoolGrad",
         .summary = "Gradient of FractionalMaxPool",
         .attrs = "overlapping: bool = false; " FRACTIONAL_TYPES,
         .inputs = "orig_input: T; orig_output: T; out_backprop: T; row_pooling_sequence: int64; "
                   "col_pooling_sequence: int64",
         .outputs = "output: T",
         .infer_shape = max_grad_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = max_grad_cpu)},
        {.name = "FractionalAvgPoolGrad",
         .summary = "Gradient of FractionalAvgPool",
         .attrs = "overlapping: bool = false; " FRACTIONAL_TYPES,
         .inputs = "orig_input_tensor_shape: int64; out_backprop: T; row_pooling_sequence: int64; "
                   "col_pooling_sequence: int64",
         .outputs = "output: T",
         .infer_shape = avg_grad_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = avg_grad_cpu)},
        {0}}};
