// fake_quant.c — FakeQuantWithMinMaxArgs, …Vars, …VarsPerChannel and their gradients: floats
// rounded to what a quantised range can hold.
#include "kernel/quantized/fake_quant.h"

#include "op/grad_ctx.h"
#include "op/kernel.h"
#include "op/shape_ctx.h"

#define BITS_ATTRS "num_bits: int = 8; narrow_range: bool = false"
#define ARGS_ATTRS "min: float = -6.0; max: float = 6.0; " BITS_ATTRS

// ---- shapes ----

static weir_status_t* vars_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 0, NULL));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 2), 0, NULL));
  return weir_shape_set(ctx, 0, weir_shape_input(ctx, 0));
}

static weir_status_t* vars_grad_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* inputs;
  WEIR_TRY(weir_shape_join(ctx, weir_shape_input(ctx, 0), weir_shape_input(ctx, 1), &inputs));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 2), 0, NULL));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 3), 0, NULL));
  WEIR_TRY(weir_shape_set(ctx, 0, inputs));
  WEIR_TRY(weir_shape_set_scalar(ctx, 1));
  return weir_shape_set_scalar(ctx, 2);
}

// The number of channels by the shapes of the elements, min and max: the last two are inputs
// |first| and |first| + 1.
static weir_status_t* channels_shape(weir_shape_ctx_t* ctx, const weir_shape_t* in, int first,
                                     int64_t* out_channels) {
  WEIR_TRY(weir_shape_at_least(ctx, in, 1));
  int64_t channels = weir_shape_dim(in, -1);
  for (int i = first; i < first + 2; ++i) {
    const weir_shape_t* bound;
    WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, i), 1, &bound));
    WEIR_TRY(weir_dim_join(ctx, channels, weir_shape_dim(bound, 0), &channels));
  }
  *out_channels = channels;
  return NULL;
}

static weir_status_t* channel_shape(weir_shape_ctx_t* ctx) {
  int64_t channels;
  WEIR_TRY(channels_shape(ctx, weir_shape_input(ctx, 0), 1, &channels));
  return weir_shape_set(ctx, 0, weir_shape_input(ctx, 0));
}

static weir_status_t* channel_grad_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* inputs;
  int64_t channels;
  WEIR_TRY(weir_shape_join(ctx, weir_shape_input(ctx, 0), weir_shape_input(ctx, 1), &inputs));
  WEIR_TRY(channels_shape(ctx, inputs, 2, &channels));
  WEIR_TRY(weir_shape_set(ctx, 0, inputs));
  WEIR_TRY(weir_shape_set_vector(ctx, 1, channels));
  return weir_shape_set_vector(ctx, 2, channels);
}

// ---- gradients ----

static weir_status_t* args_grad(weir_grad_ctx_t* g) {
  return weir_grad_set(g, 0,
                       weir_grad_node_like(g, "FakeQuantWithMinMaxArgsGradient",
                                           WEIR_EDGES(weir_grad_dy(g, 0), weir_grad_input(g, 0)),
                                           WEIR_NAMES("min", "max", "num_bits", "narrow_range")));
}

static weir_status_t* set_all(weir_grad_ctx_t* g, const char* op) {
  weir_edge_t all = weir_grad_node_like(g, op,
                                        WEIR_EDGES(weir_grad_dy(g, 0), weir_grad_input(g, 0),
                                                   weir_grad_input(g, 1), weir_grad_input(g, 2)),
                                        WEIR_NAMES("num_bits", "narrow_range"));
  WEIR_TRY(weir_grad_set(g, 0, all));
  WEIR_TRY(weir_grad_set(g, 1, weir_build_output(all, 1)));
  return weir_grad_set(g, 2, weir_build_output(all, 2));
}

static weir_status_t* vars_grad(weir_grad_ctx_t* g) {
  return set_all(g, "FakeQuantWithMinMaxVarsGradient");
}

static weir_status_t* channel_grad(weir_grad_ctx_t* g) {
  return set_all(g, "FakeQuantWithMinMaxVarsPerChannelGradient");
}

// ---- kernels ----

typedef struct state_t {
  int first, last;          // steps
  weir_fake_range_t range;  // of the Args forms
} state_t;

static weir_status_t* vars_init(const weir_kernel_init_t* init, void* state) {
  state_t* self = state;
  const int64_t bits = weir_attrs_int(init->node->attrs, "num_bits");
  if (bits < 2 || bits > 16)
    return WEIR_STATUS(INVALID_ARGUMENT, "num_bits must be between 2 and 16, inclusive");
  self->first = weir_attrs_bool(init->node->attrs, "narrow_range") ? 1 : 0;
  self->last = (1 << bits) - 1;
  return NULL;
}

static weir_status_t* args_init(const weir_kernel_init_t* init, void* state) {
  state_t* self = state;
  const float min = weir_attrs_float(init->node->attrs, "min");
  const float max = weir_attrs_float(init->node->attrs, "max");
  if (!(min < max)) {
    return WEIR_STATUS(INVALID_ARGUMENT, "min has to be smaller than max, was: %g >= %g",
                       (double)min, (double)max);
  }
  WEIR_TRY(vars_init(init, state));
  self->range = weir_fake_range(min, max, self->first, self->last);
  return NULL;
}

static weir_status_t* check_same(const weir_kernel_ctx_t* ctx) {
  if (weir_tensor_same_shape(weir_kernel_input(ctx, 0), weir_kernel_input(ctx, 1))) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "gradient and input must be the same size");
}

static weir_status_t* args_cpu(weir_kernel_ctx_t* ctx) {
  const state_t* self = ctx->state;
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  weir_fake_quant_t quant = {.rows = in->count, .channels = 1, .ranges = &self->range};
  const float* x = in->data;
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_kernel_forward(ctx, 0, 0, in->rank, in->dims, &out));
  weir_fake_quant(weir_kernel_pool(ctx), &quant, x, out->data);
  return NULL;
}

static weir_status_t* args_grad_cpu(weir_kernel_ctx_t* ctx) {
  const state_t* self = ctx->state;
  const weir_tensor_t *dy = weir_kernel_input(ctx, 0), *in = weir_kernel_input(ctx, 1);
  weir_fake_quant_t quant = {.rows = in->count, .channels = 1, .ranges = &self->range};
  weir_tensor_t* out = NULL;
  if (!weir_tensor_same_shape(dy, in)) {
    char a[WEIR_SHAPE_TEXT_SIZE], b[WEIR_SHAPE_TEXT_SIZE];
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Inputs to operation %s of type %s must have the same size and shape.  "
                       "Input 0: %s != input 1: %s",
                       ctx->node->name, ctx->node->op_name, weir_tensor_shape_text(dy, a),
                       weir_tensor_shape_text(in, b));
  }
  WEIR_TRY(weir_kernel_output(ctx, 0, in->rank, in->dims, &out));
  weir_fake_quant_grad(weir_kernel_pool(ctx), &quant, dy->data, in->data, out->data, NULL, NULL);
  return NULL;
}

// Fails unless inputs |first| and the next are of |rank|.
static weir_status_t* check_bounds(const weir_kernel_ctx_t* ctx, int first, int rank) {
  for (int i = first; i < first + 2; ++i) {
    const weir_tensor_t* bound = weir_kernel_input(ctx, i);
    if (bound->rank == rank) continue;
    return WEIR_STATUS(INVALID_ARGUMENT, "`%s` must be rank %d but is rank %d",
                       i == first ? "min" : "max", rank, bound->rank);
  }
  return NULL;
}

static weir_status_t* read_range(const weir_kernel_ctx_t* ctx, int first, weir_fake_range_t* out) {
  const state_t* self = ctx->state;
  WEIR_TRY(check_bounds(ctx, first, 0));
  *out = weir_fake_range(*WEIR_TENSOR_DATA(weir_kernel_input(ctx, first), float),
                         *WEIR_TENSOR_DATA(weir_kernel_input(ctx, first + 1), float), self->first,
                         self->last);
  return NULL;
}

static weir_status_t* vars_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  weir_fake_range_t range;
  WEIR_TRY(read_range(ctx, 1, &range));
  weir_fake_quant_t quant = {.rows = in->count, .channels = 1, .ranges = &range, .divides = true};
  const float* x = in->data;
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_kernel_forward(ctx, 0, 0, in->rank, in->dims, &out));
  weir_fake_quant(weir_kernel_pool(ctx), &quant, x, out->data);
  return NULL;
}

static weir_status_t* vars_grad_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t *dy = weir_kernel_input(ctx, 0), *in = weir_kernel_input(ctx, 1);
  weir_tensor_t *dx = NULL, *dmin = NULL, *dmax = NULL;
  weir_fake_range_t range;
  WEIR_TRY(check_same(ctx));
  WEIR_TRY(read_range(ctx, 2, &range));
  weir_fake_quant_t quant = {.rows = in->count, .channels = 1, .ranges = &range};
  WEIR_TRY(weir_kernel_output(ctx, 0, in->rank, in->dims, &dx));
  WEIR_TRY(weir_kernel_output(ctx, 1, 0, NULL, &dmin));
  WEIR_TRY(weir_kernel_output(ctx, 2, 0, NULL, &dmax));
  weir_fake_quant_grad(weir_kernel_pool(ctx), &quant, dy->data, in->data, dx->data, dmin->data,
                       dmax->data);
  return NULL;
}

// Creates the ranges of all channels of |in| from inputs |first| and the next.
static weir_status_t* create_ranges(const weir_kernel_ctx_t* ctx, const weir_tensor_t* in,
                                    int first, weir_fake_quant_t* out_quant,
                                    weir_fake_range_t** out_ranges) {
  const state_t* self = ctx->state;
  if (in->rank < 1) return WEIR_STATUS(INVALID_ARGUMENT, "inputs must have at least one dimension");
  const int64_t channels = in->dims[in->rank - 1];
  WEIR_TRY(check_bounds(ctx, first, 1));
  for (int i = first; i < first + 2; ++i) {
    const weir_tensor_t* bound = weir_kernel_input(ctx, i);
    if (bound->count == channels) continue;
    return WEIR_STATUS(INVALID_ARGUMENT, "%s has incorrect size, expected %lld was %lld",
                       i == first ? "min" : "max", (long long)channels, (long long)bound->count);
  }
  const float* min = weir_kernel_input(ctx, first)->data;
  const float* max = weir_kernel_input(ctx, first + 1)->data;
  weir_fake_range_t* ranges = weir_alloc_array((size_t)channels, sizeof(*ranges));
  if (channels > 0 && !ranges) return weir_out_of_memory();
  for (int64_t c = 0; c < channels; ++c)
    ranges[c] = weir_fake_range(min[c], max[c], self->first, self->last);
  *out_quant = (weir_fake_quant_t){
      .rows = channels ? in->count / channels : 0, .channels = channels, .ranges = ranges};
  *out_ranges = ranges;
  return NULL;
}

static weir_status_t* channel_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  weir_fake_range_t* ranges = NULL;
  weir_fake_quant_t quant;
  weir_tensor_t* out = NULL;
  WEIR_TRY(create_ranges(ctx, in, 1, &quant, &ranges));
  const float* x = in->data;
  weir_status_t* status = weir_kernel_forward(ctx, 0, 0, in->rank, in->dims, &out);
  if (!status) weir_fake_quant(weir_kernel_pool(ctx), &quant, x, out->data);
  weir_free(ranges);
  return status;
}

static weir_status_t* channel_grad_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t *dy = weir_kernel_input(ctx, 0), *in = weir_kernel_input(ctx, 1);
  weir_tensor_t *dx = NULL, *dmin = NULL, *dmax = NULL;
  weir_fake_range_t* ranges = NULL;
  weir_fake_quant_t quant;
  WEIR_TRY(check_same(ctx));
  WEIR_TRY(create_ranges(ctx, in, 2, &quant, &ranges));
  weir_status_t* status = weir_kernel_output(ctx, 0, in->rank, in->dims, &dx);
  if (!status) status = weir_kernel_output(ctx, 1, 1, &quant.channels, &dmin);
  if (!status) status = weir_kernel_output(ctx, 2, 1, &quant.channels, &dmax);
  if (!status) {
    weir_fake_quant_grad(weir_kernel_pool(ctx), &quant, dy->data, in->data, dx->data, dmin->data,
                         dmax->data);
  }
  weir_free(ranges);
  return status;
}

#define GRAD_OUTPUTS "backprops_wrt_input: float; backprop_wrt_min: float; backprop_wrt_max: float"
#define KERNEL(INIT, COMPUTE) \
  WEIR_CPU_KERNEL(.compute = (COMPUTE), .init = (INIT), .state_size = sizeof(state_t))

const weir_op_module_t weir_ops_quantized_fake_quant = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "FakeQuantWithMinMaxArgs",
         .summary = "Elements rounded to the steps of a range given by attributes",
         .attrs = ARGS_ATTRS,
         .inputs = "inputs: float",
         .outputs = "outputs: float",
         .infer_shape = weir_shape_fn_unchanged,
         .build_grad = args_grad,
         .kernels = KERNEL(args_init, args_cpu)},
        {.name = "FakeQuantWithMinMaxArgsGradient",
         .summary = "Gradient of FakeQuantWithMinMaxArgs",
         .flags = WEIR_OP_NO_GRADIENT,
         .attrs = ARGS_ATTRS,
         .inputs = "gradients: float; inputs: float",
         .outputs = "backprops: float",
         .infer_shape = weir_shape_fn_unchanged,
         .kernels = KERNEL(args_init, args_grad_cpu)},
        {.name = "FakeQuantWithMinMaxVars",
         .summary = "Elements rounded to the steps of a range",
         .attrs = BITS_ATTRS,
         .inputs = "inputs: float; min: float; max: float",
         .outputs = "outputs: float",
         .infer_shape = vars_shape,
         .build_grad = vars_grad,
         .kernels = KERNEL(vars_init, vars_cpu)},
        {.name = "FakeQuantWithMinMaxVarsGradient",
         .summary = "Gradient of FakeQuantWithMinMaxVars",
         .flags = WEIR_OP_NO_GRADIENT,
         .attrs = BITS_ATTRS,
         .inputs = "gradients: float; inputs: float; min: float; max: float",
         .outputs = GRAD_OUTPUTS,
         .infer_shape = vars_grad_shape,
         .kernels = KERNEL(vars_init, vars_grad_cpu)},
        {.name = "FakeQuantWithMinMaxVarsPerChannel",
         .summary = "Elements rounded to the steps of a range for each index of the last dimension",
         .attrs = BITS_ATTRS,
         .inputs = "inputs: float; min: float; max: float",
         .outputs = "outputs: float",
         .infer_shape = channel_shape,
         .build_grad = channel_grad,
         .kernels = KERNEL(vars_init, channel_cpu)},
        {.name = "FakeQuantWithMinMaxVarsPerChannelGradient",
         .summary = "Gradient of FakeQuantWithMinMaxVarsPerChannel",
         .flags = WEIR_OP_NO_GRADIENT,
         .attrs = BITS_ATTRS,
         .inputs = "gradients: float; inputs: float; min: float; max: float",
         .outputs = GRAD_OUTPUTS,
         .infer_shape = channel_grad_shape,
         .kernels = KERNEL(vars_init, channel_grad_cpu)},
        {0}}};
