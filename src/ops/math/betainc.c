// betainc.c — Betainc: the regularised incomplete beta function of three tensors of one shape, or
// scalars.
#include "kernel/elementwise/special.h"
#include "ops/math/common.h"

typedef struct betainc_t {
  const weir_tensor_t* inputs[3];
  weir_tensor_t* out;
} betainc_t;

static double number_at(const weir_tensor_t* t, int64_t i) {
  const int64_t at = t->rank == 0 ? 0 : i;
  return weir_tensor_type(t) == WEIR_DTYPE_FLOAT ? (double)WEIR_TENSOR_DATA(t, float)[at]
                                                 : WEIR_TENSOR_DATA(t, double)[at];
}

static void betainc_range(void* arg, int64_t begin, int64_t end) {
  const betainc_t* job = arg;
  const bool is_float = weir_tensor_type(job->out) == WEIR_DTYPE_FLOAT;
  for (int64_t i = begin; i < end; ++i) {
    const double y = weir_betainc(number_at(job->inputs[0], i), number_at(job->inputs[1], i),
                                  number_at(job->inputs[2], i));
    if (is_float) {
      WEIR_TENSOR_DATA(job->out, float)[i] = (float)y;
    } else {
      WEIR_TENSOR_DATA(job->out, double)[i] = y;
    }
  }
}

static weir_status_t* betainc_cpu(weir_kernel_ctx_t* ctx) {
  static const char* const names[] = {"a", "b", "x"};
  betainc_t job = {0};
  int whole = 0;  // the first that is no scalar
  for (int i = 2; i >= 0; --i) {
    job.inputs[i] = weir_kernel_input(ctx, i);
    if (job.inputs[i]->rank > 0) whole = i;
  }
  for (int i = 0; i < 3; ++i) {
    for (int k = i + 1; k < 3; ++k) {
      const weir_tensor_t *p = job.inputs[i], *q = job.inputs[k];
      char a[WEIR_SHAPE_TEXT_SIZE], b[WEIR_SHAPE_TEXT_SIZE];
      if (p->rank == 0 || q->rank == 0 || weir_tensor_same_shape(p, q)) continue;
      return WEIR_STATUS(INVALID_ARGUMENT, "Shapes of %s and %s are inconsistent: %s vs. %s",
                         names[i], names[k], weir_tensor_shape_text(p, a),
                         weir_tensor_shape_text(q, b));
    }
  }
  const weir_tensor_t* like = job.inputs[whole];
  WEIR_TRY(weir_kernel_output(ctx, 0, like->rank, like->dims, &job.out));
  weir_pool_for(weir_kernel_pool(ctx), job.out->count, 300, betainc_range, &job);
  return NULL;
}

// What is no scalar must agree. Where the rank of one is not known, it may be either.
static weir_status_t* betainc_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* out = &weir_shape_unknown;
  int scalars = 0;
  for (int i = 0; i < 3; ++i) {
    const weir_shape_t* shape = weir_shape_input(ctx, i);
    scalars += shape->rank == 0;
    if (shape->rank > 0) WEIR_TRY(weir_shape_join(ctx, out, shape, &out));
  }
  if (scalars == 3) return weir_shape_set_scalar(ctx, 0);
  return weir_shape_set(ctx, 0, out);
}

// Of x alone, as in TensorFlow: the density there.
static weir_status_t* betainc_grad(weir_grad_ctx_t* g) {
  weir_edge_t a = weir_grad_input(g, 0), b = weir_grad_input(g, 1), x = weir_grad_input(g, 2);
  weir_edge_t one = weir_grad_scalar(g, x, 1);
  weir_edge_t beta =
      node2(g, "Sub", node2(g, "AddV2", node1(g, "Lgamma", a), node1(g, "Lgamma", b)),
            node1(g, "Lgamma", node2(g, "AddV2", a, b)));
  weir_edge_t exponent =
      node2(g, "AddV2", node2(g, "Xlog1py", node2(g, "Sub", b, one), weir_grad_neg(g, x)),
            node2(g, "Xlogy", node2(g, "Sub", a, one), x));
  weir_edge_t slope = node1(g, "Exp", node2(g, "Sub", exponent, beta));
  return weir_grad_set(g, 2,
                       weir_grad_unbroadcast(g, weir_grad_mul(g, slope, weir_grad_dy(g, 0)), 2, 0));
}

const weir_op_module_t weir_ops_math_betainc = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){{.name = "Betainc",
                                    .attrs = "T: {float, double}",
                                    .inputs = "a: T; b: T; x: T",
                                    .outputs = "z: T",
                                    .summary = "The regularised incomplete beta function",
                                    .infer_shape = betainc_shape,
                                    .build_grad = betainc_grad,
                                    .kernels = WEIR_CPU_KERNEL(.compute = betainc_cpu)},
                                   {0}}};
