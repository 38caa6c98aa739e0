// cudnn_run.c — Running a plan, with what its way needs before and after cuDNN's own kernels.
//
// cuDNN's filters have the output channels first, then as the images: [out, sizes…, in], or [out,
// in, sizes…] where those have channels first.
#include "kernel/conv/cudnn_internal.h"

// Memory that kernels of ours hand to cuDNN's or take from them.
typedef struct scratch_t {
  weir_tensor_t* filter;  // in cuDNN's order
  // And both as a wide or folded graph has them.
  weir_tensor_t *other_filter, *other_image;
} scratch_t;

static weir_status_t* scratch_of(const cudnn_task_t* task, weir_dtype_t dtype, int64_t count,
                                 weir_tensor_t** out) {
  return weir_tensor_create_in(weir_device_allocator(task->dnn->device, WEIR_MEMORY_DEVICE), dtype,
                               1, &count, out);
}

static int64_t volume(const int64_t sizes[3]) { return sizes[0] * sizes[1] * sizes[2]; }

static bool is_other(int way) { return way & (WAY_WIDE | WAY_FOLDED); }

static weir_conv_t shape_of(const cudnn_task_t* task, int way) {
  weir_conv_t shape;
  bool is_there = weir_cudnn_shape(task->dnn->device, task->conv, way, &shape);
  WEIR_CHECK(is_there);
  return shape;
}

static weir_status_t* allocate(const cudnn_task_t* task, int way, scratch_t* s) {
  const weir_conv_t *v = &task->conv->conv, other = shape_of(task, way);
  weir_dtype_t dtype = task->conv->dtype;
  WEIR_TRY(scratch_of(task, dtype, v->out_c * volume(v->filter) * v->group_in, &s->filter));
  if (!is_other(way)) return NULL;
  WEIR_TRY(scratch_of(task, dtype, other.out_c * volume(other.filter) * other.group_in,
                      &s->other_filter));
  return scratch_of(task, dtype, other.batch * volume(other.in) * other.in_c, &s->other_image);
}

// ---- filters and channels ----

// To cuDNN's order from [sizes…, in, out], or back.
static weir_status_t* turn_filter(const cudnn_task_t* task, const void* from, void* to,
                                  bool is_back) {
  weir_device_t* device = task->dnn->device;
  const weir_conv_t* v = &task->conv->conv;
  int64_t sizes = volume(v->filter), in = v->group_in, out = v->out_c;
  if (task->conv->is_nchw) {
    weir_cuda_size_t size = weir_cuda_size_for(device, sizes * in * out);
    int64_t *first = is_back ? &out : &sizes, *last = is_back ? &sizes : &out;
    return weir_cuda_launch(device, task->kernels->turn, &size,
                            WEIR_CUDA_ARGS(&from, &to, first, &in, last));
  }
  int64_t rows = is_back ? out : sizes * in, columns = is_back ? sizes * in : out;
  int64_t tiles = ((rows + 31) / 32) * ((columns + 31) / 32);
  weir_cuda_size_t size = {.grid = {(unsigned)WEIR_MIN(tiles, 65535), 1, 1}, .block = {32, 8, 1}};
  return weir_cuda_launch(device, task->kernels->transpose, &size,
                          WEIR_CUDA_ARGS(&from, &to, &rows, &columns));
}

// As the kernels have it.
typedef struct fold_t {
  int64_t batch, lines, pixels, channels;
  int64_t folded_lines, folded_pixels, folded_channels;
  int64_t stride, line, pixel;
} fold_t;

// Images, or the filter in cuDNN's order, which is one for each output channel; and that one back.
static weir_status_t* fold(const cudnn_task_t* task, int way, bool is_filter, bool is_back,
                           const void* from, void* to) {
  weir_device_t* device = task->dnn->device;
  const weir_conv_t *v = &task->conv->conv, other = shape_of(task, way);
  const int64_t* sizes = is_filter ? v->filter : v->in;
  const int64_t* folded = is_filter ? other.filter : other.in;
  bool has_border = way & WAY_FOLDED && !is_filter;
  fold_t f = {.batch = (is_filter ? v->out_c : v->batch) * sizes[0],
              .lines = sizes[1],
              .pixels = sizes[2],
              .channels = v->in_c,
              .folded_lines = folded[1],
              .folded_pixels = folded[2],
              .folded_channels = other.in_c,
              .stride = way & WAY_FOLDED ? v->stride[1] : 1,
              .line = has_border ? v->pad[1] : 0,
              .pixel = has_border ? v->pad[2] : 0};
  int64_t count = f.batch * f.folded_lines * f.folded_pixels * f.folded_channels;
  weir_cuda_size_t size = weir_cuda_size_for(device, is_back ? count : count / 4);
  return weir_cuda_launch(device, is_back ? task->kernels->unfold : task->kernels->fold, &size,
                          WEIR_CUDA_ARGS(&from, &to, &f));
}

// ---- the convolution itself ----

// In the order of cuDNN's tensors.
typedef struct pointers_t {
  const void *x, *w, *y, *bias;
} pointers_t;

static pointers_t pointers_of(const cudnn_task_t* task, int way, const scratch_t* s) {
  const weir_cudnn_operands_t* o = task->operands;
  weir_conv_kind_t kind = task->conv->kind;
  const void* w = (is_other(way) ? s->other_filter : s->filter)->data;
  const void* x = is_other(way) ? s->other_image->data : kind == WEIR_CONV_BY_INPUT ? o->out : o->a;
  const void* y = kind == WEIR_CONV_FORWARD ? o->out : o->b;
  return (pointers_t){.x = x, .w = w, .y = y, .bias = o->bias};
}

static weir_status_t* run_plan(const cudnn_task_t* task, const plan_t* plan, const scratch_t* s) {
  static const int64_t ids[] = {X_ID, W_ID, Y_ID, BIAS_ID};
  const cudnn_t* dnn = task->dnn;
  pointers_t pointers = pointers_of(task, plan->way, s);
  if (plan->way & WAY_DIRECT)
    return weir_by_filter_run(dnn->device, &plan->direct, pointers.x, pointers.y,
                              (void*)pointers.w);
  const void* const all[] = {pointers.x, pointers.w, pointers.y, pointers.bias};
  int64_t count = plan->way & WAY_TAIL ? 4 : 3;
  weir_tensor_t* workspace = NULL;
  void* memory = NULL;
  if (plan->workspace_size > 0) {
    WEIR_TRY(scratch_of(task, WEIR_DTYPE_UINT8, plan->workspace_size, &workspace));
    memory = workspace->data;
  }
  dnn_t pack = NULL;
  const dnn_functions_t* call = &dnn->call;
  int result = call->make(DNN_PACK, &pack);
  if (!result) result = call->set(pack, DNN_PACK_POINTERS, DNN_TYPE_POINTER, count, all);
  if (!result) result = call->set(pack, DNN_PACK_IDS, DNN_TYPE_INT64, count, ids);
  if (!result) result = call->set(pack, DNN_PACK_WORKSPACE, DNN_TYPE_POINTER, 1, &memory);
  if (!result) result = call->finish(pack);
  if (!result) result = call->execute(dnn->handle, plan->plan, pack);
  weir_cudnn_drop(dnn, pack);
  weir_tensor_release(workspace);  // whoever gets it comes after, in the order of the stream
  if (!result) return NULL;
  return WEIR_STATUS(INTERNAL, "cuDNN: running a convolution: error %d", result);
}

static weir_status_t* run_in(const cudnn_task_t* task, const plan_t* plan, const scratch_t* s) {
  const weir_cudnn_operands_t* o = task->operands;
  const int way = plan->way;
  bool is_result = task->conv->kind == WEIR_CONV_BY_FILTER;
  const void* given = task->conv->kind == WEIR_CONV_FORWARD ? o->b : o->a;
  void *filter = s->filter->data, *other = is_other(way) ? s->other_filter->data : NULL;
  if (!is_result) WEIR_TRY(turn_filter(task, given, filter, false));
  if (!is_result && other) WEIR_TRY(fold(task, way, true, false, filter, other));
  if (other) WEIR_TRY(fold(task, way, false, false, o->a, s->other_image->data));
  WEIR_TRY(run_plan(task, plan, s));
  if (is_result && other) WEIR_TRY(fold(task, way, true, true, other, filter));
  return is_result ? turn_filter(task, filter, o->out, true) : NULL;
}

static weir_status_t* run_cudnn(const cudnn_task_t* task, const plan_t* plan) {
  scratch_t scratch = {NULL};
  weir_status_t* status = allocate(task, plan->way, &scratch);
  if (!status) status = run_in(task, plan, &scratch);
  weir_tensor_release(scratch.other_image);
  weir_tensor_release(scratch.other_filter);
  weir_tensor_release(scratch.filter);
  return status;
}

// ---- products ----

bool weir_cudnn_is_product(const weir_cudnn_conv_t* conv) {
  const weir_conv_t* v = &conv->conv;
  for (int i = 0; i < 3; ++i) {
    if (v->filter[i] != 1 || v->stride[i] != 1 || v->pad[i] != 0) return false;
  }
  return !conv->is_nchw && v->groups == 1;
}

// Of [pixels, in] and [in, out], where they are: filters are not turned.
static weir_status_t* run_product(const cudnn_task_t* task) {
  const weir_cudnn_operands_t* o = task->operands;
  const weir_conv_t* v = &task->conv->conv;
  int64_t pixels = v->batch * volume(v->in), in = v->in_c, out = v->out_c;
  weir_dtype_t dtype = task->conv->dtype;
  weir_gemm_args_t args = {.dtype_a = dtype, .dtype_b = dtype, .dtype_c = dtype, .c = o->out};
  args.a = o->a;
  args.b = o->b;
  switch (task->conv->kind) {
    case WEIR_CONV_FORWARD: args.m = pixels, args.n = out, args.k = in; break;
    case WEIR_CONV_BY_INPUT:  // dy filter'
      args.m = pixels, args.n = in, args.k = out;
      args.a = o->b;
      args.b = o->a;
      args.trans_b = WEIR_TRANS;
      break;
    case WEIR_CONV_BY_FILTER:  // x' dy
      args.m = in, args.n = out, args.k = pixels;
      args.trans_a = WEIR_TRANS;
      break;
  }
  return task->dnn->multiply(task->dnn->device, &args, (weir_gemm_batch_t){.count = 1});
}

// ---- the whole ----

weir_status_t* weir_cudnn_execute(const cudnn_task_t* task, const plan_t* plan) {
  const weir_cudnn_conv_t* c = task->conv;
  WEIR_TRY(plan->way == WAY_PRODUCT ? run_product(task) : run_cudnn(task, plan));
  if (c->tail == WEIR_CONV_NO_TAIL || plan->way & WAY_TAIL) return NULL;
  weir_conv_tail_run_t run = {.tail = c->tail,
                              .dtype = c->dtype,
                              .conv = &c->conv,
                              .is_nchw = c->is_nchw,
                              .bias = task->operands->bias,
                              .y = task->operands->out};
  return weir_conv_kernels_tail(task->dnn->device, task->kernels, &run);
}
