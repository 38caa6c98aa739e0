// einsum.c — Einsum: sums of products over labelled axes of one or two tensors.
#include "kernel/gemm/einsum.h"

#include <stdio.h>

#include "ops/math/common.h"

#define ELLIPSIS "..."
#define LABELS 256  // labels are bytes

// ---- shapes ----

// Merges the dimensions of one input's labels into |dims| (-2: not seen), and its ellipsis into
// |*io_broadcast|.
static weir_status_t* merge_input(weir_shape_ctx_t* ctx, int i,
                                  const weir_einsum_subscripts_t* subs, int64_t* dims,
                                  const weir_shape_t** io_broadcast) {
  const weir_shape_t* shape = weir_shape_input(ctx, i);
  if (subs->ellipsis < 0) {
    WEIR_TRY(weir_shape_with_rank(ctx, shape, subs->count, &shape));
  } else {
    WEIR_TRY(weir_shape_at_least(ctx, shape, subs->count));
    const weir_shape_t* middle = &weir_shape_unknown;
    if (shape->rank >= 0)
      middle =
          weir_shape_sub(ctx, shape, subs->ellipsis, shape->rank - (subs->count - subs->ellipsis));
    if (!middle) return weir_out_of_memory();
    WEIR_TRY(weir_shape_broadcast(ctx, *io_broadcast, middle, io_broadcast));
  }
  for (int k = 0; k < subs->count; ++k) {
    int64_t* known = &dims[(unsigned char)subs->text[k]];
    bool is_after = subs->ellipsis >= 0 && k >= subs->ellipsis;
    int64_t dim = shape->rank < 0 ? -1 : weir_shape_dim(shape, is_after ? k - subs->count : k);
    if (*known == -2) {
      *known = dim;
    } else {
      WEIR_TRY(weir_dim_join(ctx, *known, dim, known));
    }
  }
  return NULL;
}

static weir_status_t* einsum_shape(weir_shape_ctx_t* ctx) {
  weir_einsum_equation_t equation;
  WEIR_TRY(weir_einsum_parse(ctx->node, &equation));
  int64_t dims[LABELS];
  for (int i = 0; i < LABELS; ++i) dims[i] = -2;
  const weir_shape_t* broadcast = &weir_shape_scalar;
  for (int i = 0; i < equation.input_count; ++i)
    WEIR_TRY(merge_input(ctx, i, &equation.inputs[i], dims, &broadcast));
  const weir_einsum_subscripts_t* subs = &equation.output;
  if (subs->ellipsis < 0) WEIR_TRY(weir_shape_at_most(ctx, broadcast, 0));
  int middle = subs->ellipsis >= 0 ? broadcast->rank : 0;
  int64_t out[2 * WEIR_MAX_RANK];
  int n = 0;
  for (int k = 0; k <= subs->count; ++k) {
    if (k == subs->ellipsis) {
      for (int b = 0; b < middle; ++b) out[n++] = broadcast->dims[b];
    }
    if (k == subs->count) break;
    int64_t dim = dims[(unsigned char)subs->text[k]];
    if (dim == -2) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Einsum output subscripts for equation has label '%c' which is not "
                         "present in the input subscripts",
                         subs->text[k]);
    }
    out[n++] = dim;
  }
  if (middle < 0) return weir_shape_set(ctx, 0, &weir_shape_unknown);
  if (n > WEIR_MAX_RANK)
    return WEIR_STATUS(INVALID_ARGUMENT, "The output would have %d dimensions", n);
  return weir_shape_set_dims(ctx, 0, n, out);
}

// ---- gradients ----

#define TEXT_SIZE (WEIR_MAX_RANK + 4)

// Subscripts as text again, without the labels in |dropped|.
static void spell(const weir_einsum_subscripts_t* subs, const char* dropped, char* out) {
  int n = 0;
  for (int i = 0; i <= subs->count; ++i) {
    if (i == subs->ellipsis) {
      memcpy(out + n, ELLIPSIS, 3);
      n += 3;
    }
    if (i < subs->count && !strchr(dropped, subs->text[i])) out[n++] = subs->text[i];
  }
  out[n] = '\0';
}

static weir_edge_t einsum_node(weir_grad_ctx_t* g, weir_edges_t inputs, const char* equation) {
  return weir_grad_node_with(g, "Einsum", inputs,
                             WEIR_ATTRS(weir_attr_string("equation", equation)));
}

// Labels of |subs| that neither |a| nor |b| has, each once. Returns their number.
static int find_reduced(const weir_einsum_subscripts_t* subs, const weir_einsum_subscripts_t* a,
                        const weir_einsum_subscripts_t* b, char* out) {
  int n = 0;
  for (int i = 0; i < subs->count; ++i) {
    char label = subs->text[i];
    if (memchr(a->text, label, (size_t)a->count) || memchr(out, label, (size_t)n)) continue;
    if (b && memchr(b->text, label, (size_t)b->count)) continue;
    out[n++] = label;
  }
  out[n] = '\0';
  return n;
}

// One dimension of |x| as a vector of one.
static weir_edge_t dim_of(weir_grad_ctx_t* g, weir_edge_t x, const weir_einsum_subscripts_t* subs,
                          char label) {
  int axis = (int)((const char*)memchr(subs->text, label, (size_t)subs->count) - subs->text);
  if (subs->ellipsis >= 0 && axis >= subs->ellipsis) axis -= subs->count;
  const weir_shape_t* shape = weir_grad_shape(g, x);
  int64_t dim = shape->rank >= subs->count ? weir_shape_dim(shape, axis) : -1;
  if (dim >= 0 && dim <= INT32_MAX)
    return weir_build_int32s(g->builder, (const int32_t[]){(int32_t)dim}, 1);
  weir_edge_t begin = weir_build_int32s(g->builder, (const int32_t[]){axis}, 1);
  weir_edge_t end = weir_build_int32s(g->builder, (const int32_t[]){axis + 1}, 1);
  weir_edge_t step = weir_build_int32s(g->builder, (const int32_t[]){1}, 1);
  return weir_grad_node_with(g, "StridedSlice",
                             WEIR_EDGES(weir_grad_shape_of(g, x), begin, end, step),
                             WEIR_ATTRS(weir_attr_int("end_mask", axis == -1)));
}

// The gradient through sums over |reduced|: repeated along them, in front, then put into the order
// of the input.
static weir_edge_t unreduce(weir_grad_ctx_t* g, weir_edge_t dz, const char* dz_text, weir_edge_t x,
                            const weir_einsum_subscripts_t* subs, const char* reduced) {
  weir_edge_t pieces[WEIR_MAX_RANK + 2];
  int n = 0;
  for (; reduced[n]; ++n) pieces[n] = dim_of(g, x, subs, reduced[n]);
  pieces[n++] = weir_grad_shape_of(g, dz);
  pieces[n++] = weir_build_int32(g->builder, 0);
  weir_edge_t shape = weir_grad_node(g, "ConcatV2", (weir_edges_t){.items = pieces, .count = n});
  char text[TEXT_SIZE];
  char equation[3 * TEXT_SIZE + 2];
  spell(subs, "", text);
  snprintf(equation, sizeof(equation), "%s%s->%s", reduced, dz_text, text);
  return einsum_node(g, WEIR_EDGES(node2(g, "BroadcastTo", dz, shape)), equation);
}

static weir_status_t* single_grad(weir_grad_ctx_t* g, const weir_einsum_equation_t* equation) {
  const weir_einsum_subscripts_t* subs = &equation->inputs[0];
  weir_edge_t dz = weir_grad_dy(g, 0);
  char reduced[TEXT_SIZE];
  char z_text[TEXT_SIZE];
  char x_text[TEXT_SIZE];
  char reversed[2 * TEXT_SIZE + 2];
  spell(&equation->output, "", z_text);
  if (find_reduced(subs, &equation->output, NULL, reduced))
    return weir_grad_set(g, 0, unreduce(g, dz, z_text, weir_grad_input(g, 0), subs, reduced));
  spell(subs, "", x_text);
  snprintf(reversed, sizeof(reversed), "%s->%s", z_text, x_text);
  return weir_grad_set(g, 0, einsum_node(g, WEIR_EDGES(dz), reversed));
}

// dx = einsum("z,y->x", dz, y), for the labels of x that y or z has.
static weir_edge_t grad_of(weir_grad_ctx_t* g, const weir_einsum_equation_t* equation, int i) {
  const weir_einsum_subscripts_t* subs = &equation->inputs[i];
  const weir_einsum_subscripts_t* other = &equation->inputs[1 - i];
  char reduced[TEXT_SIZE];
  char z_text[TEXT_SIZE];
  char other_text[TEXT_SIZE];
  char left[TEXT_SIZE];
  char product[3 * TEXT_SIZE + 3];
  int reduced_count = find_reduced(subs, &equation->output, other, reduced);
  spell(&equation->output, "", z_text);
  spell(other, "", other_text);
  spell(subs, reduced, left);
  snprintf(product, sizeof(product), "%s,%s->%s", z_text, other_text, left);
  weir_edge_t dx = einsum_node(g, WEIR_EDGES(weir_grad_dy(g, 0), conj_input(g, 1 - i)), product);
  if (!reduced_count) return dx;
  return unreduce(g, dx, left, weir_grad_input(g, i), subs, reduced);
}

// The dimensions under the ellipsis of input |i|, as a vector.
static weir_edge_t broadcast_dims(weir_grad_ctx_t* g, const weir_einsum_subscripts_t* subs, int i) {
  int after = subs->count - subs->ellipsis;
  weir_edge_t begin = weir_build_int32s(g->builder, (const int32_t[]){subs->ellipsis}, 1);
  weir_edge_t end = weir_build_int32s(g->builder, (const int32_t[]){-after}, 1);
  weir_edge_t step = weir_build_int32s(g->builder, (const int32_t[]){1}, 1);
  return weir_grad_node_with(
      g, "StridedSlice", WEIR_EDGES(weir_grad_shape_of(g, weir_grad_input(g, i)), begin, end, step),
      WEIR_ATTRS(weir_attr_int("end_mask", after == 0)));
}

// Whether nothing is broadcast under the ellipsis, as far as known.
static bool same_broadcast(weir_grad_ctx_t* g, const weir_einsum_equation_t* equation) {
  const weir_shape_t* x = weir_grad_shape(g, weir_grad_input(g, 0));
  const weir_shape_t* y = weir_grad_shape(g, weir_grad_input(g, 1));
  const weir_einsum_subscripts_t* xs = &equation->inputs[0];
  const weir_einsum_subscripts_t* ys = &equation->inputs[1];
  if (x->rank < 0 || y->rank < 0 || x->rank - xs->count != y->rank - ys->count) return false;
  for (int i = 0; i < x->rank - xs->count; ++i) {
    int64_t dim = x->dims[xs->ellipsis + i];
    if (dim < 0 || dim != y->dims[ys->ellipsis + i]) return false;
  }
  return true;
}

static weir_edge_t sum_broadcast(weir_grad_ctx_t* g, const weir_einsum_subscripts_t* subs, int i,
                                 weir_edge_t dx, weir_edge_t axes) {
  axes = node2(g, "AddV2", axes, weir_build_int32(g->builder, subs->ellipsis));
  return node2(g, "Reshape", node2(g, "Sum", dx, axes),
               weir_grad_shape_of(g, weir_grad_input(g, i)));
}

static weir_status_t* einsum_grad(weir_grad_ctx_t* g) {
  weir_einsum_equation_t equation;
  WEIR_TRY(weir_einsum_parse(g->node, &equation));
  if (equation.input_count == 1) return single_grad(g, &equation);
  bool broadcasts = equation.output.ellipsis >= 0;
  for (int i = 0; i < 2 && broadcasts; ++i) {
    // A missing ellipsis stands for no axes; the reversed equations need it spelt out.
    weir_einsum_subscripts_t* subs = &equation.inputs[i];
    if (subs->ellipsis < 0) subs->ellipsis = subs->count;
  }
  weir_edge_t dx = grad_of(g, &equation, 0);
  weir_edge_t dy = grad_of(g, &equation, 1);
  if (broadcasts && !same_broadcast(g, &equation)) {
    weir_edge_t rx = node2(g, "BroadcastGradientArgs", broadcast_dims(g, &equation.inputs[0], 0),
                           broadcast_dims(g, &equation.inputs[1], 1));
    dx = sum_broadcast(g, &equation.inputs[0], 0, dx, rx);
    dy = sum_broadcast(g, &equation.inputs[1], 1, dy, weir_build_output(rx, 1));
  }
  WEIR_TRY(weir_grad_set(g, 0, dx));
  return weir_grad_set(g, 1, dy);
}

#define EINSUM_ROW(device_, types_)                                                 \
  {                                                                                 \
    device_, .types = types_, .compute = weir_einsum_run, .init = weir_einsum_init, \
             .state_size = sizeof(weir_einsum_t)                                    \
  }

const weir_op_module_t weir_ops_math_einsum = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "Einsum",
         .mixed = WEIR_MIXED_ALLOW,
         .attrs = "equation: string; N: int >= 1; T: type",
         .inputs = "inputs: N * T",
         .outputs = "output: T",
         .summary = "Sums of products over labelled axes",
         .infer_shape = einsum_shape,
         .build_grad = einsum_grad,
         .kernels = (const weir_kernel_def_t[]){EINSUM_ROW(WEIR_DEVICE_CPU,
                                                           "T: int64, int32, half, float, double, "
                                                           "complex64, complex128, bfloat16"),
                                                EINSUM_ROW(WEIR_DEVICE_GPU,
                                                           "T: bfloat16, half, float, double"),
                                                {0}}},
        {0}}};
