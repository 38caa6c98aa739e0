// cudnn_choose_test.c — The search for the fastest engine, in a cuDNN of a few that only take time.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "device/cuda/cuda_compiler.h"
#include "kernel/conv/cudnn_internal.h"
#include "testing/cmocka.h"
#include "testing/cuda_fake.h"

// ---- the library ----

enum { FAST, FALLBACK, FUSED, LISTS, MOST = 8, ENGINES = 16, KNOB = 2, KNOB_VALUES = 4 };

// What is proposed, ending with 0, and how long engines take in microseconds; below 0: they fail.
// Graphs of several operations have a list of their own, without fallbacks. An engine that has a
// knob is faster by so many microseconds with each step of it.
static struct {
  int64_t lists[LISTS][MOST];
  int times[ENGINES];
  int gains[ENGINES];
  int runs[ENGINES];
  int pointers;  // of the pack that ran last
  int products, product_time;
  int live;           // descriptors
  int64_t now_ns;     // only engines take time
  bool refuses_tail;  // graphs of several operations are not taken
  int64_t transform;  // an engine that computes by FFT
} library;

typedef struct descriptor_t {
  int list;
  int64_t operations;
  int64_t engine;
  int64_t knob, pointers;
} descriptor_t;

static int make(int kind, dnn_t* out) {
  (void)kind;
  *out = calloc(1, sizeof(descriptor_t));
  library.live += *out != NULL;
  return *out ? 0 : 1;
}

static int drop(dnn_t descriptor) {
  free(descriptor);
  --library.live;
  return 0;
}

static int finish(dnn_t descriptor) {
  const descriptor_t* d = descriptor;
  if (!d || d->knob > KNOB_VALUES) return 1;
  return library.refuses_tail && d->operations > 1 ? 1 : 0;
}

static int set(dnn_t descriptor, int name, int type, int64_t count, const void* values) {
  descriptor_t* d = descriptor;
  const descriptor_t* other = type == DNN_TYPE_DESCRIPTOR ? *(descriptor_t* const*)values : NULL;
  switch (name) {
    case DNN_GRAPH_OPERATIONS: d->operations = count; break;
    case DNN_HEURISTIC_GRAPH: d->operations = other->operations; break;
    case DNN_HEURISTIC_MODE: d->list = *(const int*)values == DNN_HEURISTIC_FALLBACK; break;
    case DNN_ENGINE_INDEX: d->engine = *(const int64_t*)values; break;
    case DNN_KNOB_VALUE: d->knob = *(const int64_t*)values; break;
    case DNN_CONFIG_ENGINE: d->engine = other->engine; break;
    case DNN_CONFIG_KNOBS: d->knob = other->knob; break;
    case DNN_PLAN_CONFIG: *d = *other; break;
    case DNN_PACK_POINTERS: d->pointers = count; break;
    default: break;
  }
  return 0;
}

static int64_t propose(const descriptor_t* d, descriptor_t** configs) {
  const int64_t* list = library.lists[d->operations > 1 ? FUSED : d->list];
  int64_t count = 0;
  if (d->operations > 1 && d->list == FALLBACK) return 0;
  for (; list[count]; ++count) {
    configs[count]->engine = list[count];
    configs[count]->knob = library.gains[list[count]] ? 1 : 0;
  }
  return count;
}

static int get(dnn_t descriptor, int name, int type, int64_t most, int64_t* out_count,
               void* values) {
  descriptor_t* d = descriptor;
  (void)type;
  (void)most;
  *out_count = 0;
  switch (name) {
    case DNN_HEURISTIC_RESULTS: *out_count = propose(d, values); break;
    case DNN_CONFIG_ENGINE: (*(descriptor_t**)values)->engine = d->engine; break;
    case DNN_CONFIG_KNOBS:
      *out_count = library.gains[d->engine] != 0;
      (*(descriptor_t**)values)->knob = d->knob;
      break;
    case DNN_ENGINE_KNOBS: *out_count = library.gains[d->engine] != 0; break;
    case DNN_ENGINE_INDEX: *(int64_t*)values = d->engine; break;
    case DNN_KNOB_VALUE: *(int64_t*)values = d->knob; break;
    case DNN_KNOB_KIND:
    case DNN_KNOB_INFO_KIND: *(int*)values = KNOB; break;
    case DNN_KNOB_INFO_LEAST:
    case DNN_KNOB_INFO_STEP: *(int64_t*)values = 1; break;
    case DNN_KNOB_INFO_MOST: *(int64_t*)values = KNOB_VALUES + 1; break;  // the last does not work
    case DNN_PLAN_WORKSPACE: *(int64_t*)values = 0; break;
    case DNN_ENGINE_NUMERICAL_NOTE:
      *out_count = d->engine == library.transform;
      if (*out_count) *(int*)values = DNN_NOTE_FFT;
      break;
    default: break;
  }
  return 0;
}

static int execute(dnn_handle_t handle, dnn_t plan, dnn_t pack) {
  const descriptor_t* d = plan;
  (void)handle;
  library.pointers = (int)((const descriptor_t*)pack)->pointers;
  ++library.runs[d->engine];
  if (library.times[d->engine] < 0) return 1;
  library.now_ns += 1000 * (library.times[d->engine] - library.gains[d->engine] * d->knob) + 1000;
  return 0;
}

static int64_t clock_ns(void) { return library.now_ns; }

// The other library, on the host.
static weir_status_t* multiply(weir_device_t* device, const weir_gemm_args_t* args,
                               weir_gemm_batch_t batch) {
  (void)device;
  assert_int_equal(batch.count, 1);
  ++library.products;
  library.now_ns += 1000 * library.product_time;
  return args->c ? weir_gemm_any(NULL, args) : NULL;
}

// ---- a device with it ----

static char folder[32];

static int set_up(void** state) {
  (void)state;
  memset(&library, 0, sizeof(library));
  snprintf(folder, sizeof(folder), "/tmp/weir_choose_XXXXXX");
  if (!mkdtemp(folder)) return -1;
  return setenv("WEIR_CACHE_DIR", folder, 1);
}

static int tear_down(void** state) {
  (void)state;
  char command[64];
  snprintf(command, sizeof(command), "rm -r %s", folder);
  assert_int_equal(library.live, 0);
  return system(command);
}

static weir_status_t* compile_nothing(const char* name, const char* source, int architecture,
                                      char** out_code, size_t* out_size) {
  (void)name, (void)source, (void)architecture;
  *out_size = 1;
  *out_code = weir_calloc(1, 1);
  return *out_code ? NULL : weir_out_of_memory();
}

static void open_device_as(cudnn_t* dnn, const weir_device_params_t* params) {
  weir_cuda_driver_replace(&cuda_fake_driver);
  weir_cuda_compiler_replace(compile_nothing);
  memset(dnn, 0, sizeof(*dnn));
  assert_null(weir_cuda_kind.create(params, &dnn->device));
  dnn->call = (dnn_functions_t){
      .make = make, .drop = drop, .finish = finish, .set = set, .get = get, .execute = execute};
  dnn->clock_ns = clock_ns;
  dnn->multiply = multiply;
  dnn->hopeless.owns_keys = true;
}

static void open_device(cudnn_t* dnn, bool is_deterministic) {
  open_device_as(dnn, &(weir_device_params_t){.is_deterministic = is_deterministic});
}

static void close_device(cudnn_t* dnn) {
  weir_map_free(&dnn->hopeless);
  weir_device_release(dnn->device);
  weir_cuda_compiler_replace(NULL);
  weir_cuda_driver_replace(NULL);
}

// A convolution; |size| tells it from others.
typedef struct search_of_t {
  weir_cudnn_conv_t conv;
  weir_conv_kernels_t kernels;
  weir_cudnn_operands_t operands;
  cudnn_task_t task;
  plan_t plan;
  search_t* search;
} search_of_t;

static void prepare(search_of_t* s, cudnn_t* dnn, int64_t size, int64_t channels) {
  weir_cuda_function_t any;
  memset(s, 0, sizeof(*s));
  s->conv.conv = (weir_conv_t){.batch = size,
                               .in_c = channels,
                               .out_c = 4,
                               .groups = 1,
                               .group_in = channels,
                               .group_out = 4,
                               .in = {1, 3, 3},
                               .filter = {1, 3, 3},
                               .out = {1, 1, 1},
                               .stride = {1, 1, 1},
                               .dilation = {1, 1, 1}};
  s->conv.dtype = WEIR_DTYPE_FLOAT;
  assert_null(weir_cuda_function(dnn->device, "any", "any", &any));
  s->kernels = (weir_conv_kernels_t){any, any, any, any, any, any, any, any};
  s->task = (cudnn_task_t){
      .dnn = dnn, .conv = &s->conv, .kernels = &s->kernels, .operands = &s->operands};
}

static void begin_conv(search_of_t* s, cudnn_t* dnn, int64_t size, int64_t channels,
                       weir_conv_tail_t tail) {
  prepare(s, dnn, size, channels);
  s->conv.tail = tail;
  assert_null(weir_cudnn_search_begin(&s->task, &s->plan, &s->search));
}

static void begin(search_of_t* s, cudnn_t* dnn, int64_t size) {
  begin_conv(s, dnn, size, 4, WEIR_CONV_NO_TAIL);
}

static int64_t go_on(search_of_t* s) {
  assert_null(weir_cudnn_search_on(&s->task, &s->plan, &s->search));
  return ((const descriptor_t*)s->plan.plan)->engine;
}

static int64_t go_on_to_the_end(search_of_t* s) {
  int64_t engine = 0;
  for (int turns = 0; s->search; ++turns) {
    assert_in_range(turns, 0, 64);
    engine = go_on(s);
  }
  return engine;
}

static void end(search_of_t* s) {
  weir_cudnn_search_free(s->task.dnn, s->search);
  weir_cudnn_drop(s->task.dnn, s->plan.plan);
}

// ---- tests ----

// The first of cuDNN's own is enough to begin with; others come in later runs, fallbacks, too.
static void test_runs_do_not_wait_for_the_search(void** state) {
  (void)state;
  cudnn_t dnn;
  search_of_t s;
  memcpy(library.lists, (int64_t[LISTS][MOST]){{1, 2, 3}, {4}}, sizeof(library.lists));
  library.times[1] = library.times[2] = library.times[3] = 12000;
  library.times[4] = 1000;
  open_device(&dnn, false);
  begin(&s, &dnn, 1);
  assert_int_equal(go_on(&s), 1);
  assert_non_null(s.search);
  assert_int_equal(library.runs[2] + library.runs[3] + library.runs[4], 0);
  assert_int_equal(go_on_to_the_end(&s), 4);
  end(&s);
  close_device(&dnn);
}

static void test_fallbacks_wait_for_a_second_run(void** state) {
  (void)state;
  cudnn_t dnn;
  search_of_t s;
  memcpy(library.lists, (int64_t[LISTS][MOST]){{1, 2}, {3}}, sizeof(library.lists));
  library.times[1] = -1;
  library.times[2] = 5000;
  library.times[3] = 100;
  open_device(&dnn, false);
  begin(&s, &dnn, 1);
  assert_int_equal(go_on(&s), 2);
  assert_int_equal(library.runs[3], 0);
  assert_int_equal(go_on(&s), 3);
  assert_null(s.search);
  end(&s);
  close_device(&dnn);
}

static void test_only_the_end_is_remembered(void** state) {
  (void)state;
  cudnn_t dnn;
  search_of_t s;
  memcpy(library.lists, (int64_t[LISTS][MOST]){{1, 2}, {0}}, sizeof(library.lists));
  library.times[1] = 15000;
  library.times[2] = 100;
  open_device(&dnn, false);
  begin(&s, &dnn, 1);
  assert_int_equal(go_on(&s), 1);
  end(&s);
  begin(&s, &dnn, 1);
  assert_non_null(s.search);
  assert_int_equal(go_on_to_the_end(&s), 2);
  end(&s);
  begin(&s, &dnn, 1);
  assert_null(s.search);
  assert_int_equal(((const descriptor_t*)s.plan.plan)->engine, 2);
  end(&s);
  close_device(&dnn);
}

static void test_hopeless_engines_run_once(void** state) {
  (void)state;
  cudnn_t dnn;
  memcpy(library.lists, (int64_t[LISTS][MOST]){{1}, {2, 3}}, sizeof(library.lists));
  library.times[1] = 1000;
  library.times[2] = 600000;
  library.times[3] = 10;
  open_device(&dnn, false);
  for (int size = 1; size < 3; ++size) {
    search_of_t s;
    begin(&s, &dnn, size);
    assert_int_equal(go_on_to_the_end(&s), 3);
    end(&s);
  }
  assert_int_equal(library.runs[2], 1);
  close_device(&dnn);
}

static void test_a_hopeless_engine_is_better_than_none(void** state) {
  (void)state;
  cudnn_t dnn;
  search_of_t s;
  memcpy(library.lists, (int64_t[LISTS][MOST]){{1}, {2}}, sizeof(library.lists));
  library.times[1] = 100;
  library.times[2] = 400000;
  open_device(&dnn, false);
  begin(&s, &dnn, 1);
  assert_int_equal(go_on_to_the_end(&s), 1);
  end(&s);
  library.times[1] = -1;
  library.times[2] = 100;
  begin(&s, &dnn, 2);
  assert_int_equal(go_on_to_the_end(&s), 2);
  end(&s);
  close_device(&dnn);
}

// The first that works, whatever the clock says, and from the first run on.
static void test_deterministic_devices_do_not_measure(void** state) {
  (void)state;
  cudnn_t dnn;
  search_of_t s;
  memcpy(library.lists, (int64_t[LISTS][MOST]){{1, 2, 3}, {4}}, sizeof(library.lists));
  library.times[1] = -1;
  library.times[2] = 5000;
  open_device(&dnn, false);  // another has found a faster one
  begin(&s, &dnn, 1);
  assert_int_not_equal(go_on_to_the_end(&s), 2);
  end(&s);
  close_device(&dnn);
  open_device(&dnn, true);
  begin(&s, &dnn, 1);
  assert_int_equal(go_on(&s), 2);
  assert_null(s.search);
  end(&s);
  close_device(&dnn);
}

// Engines that are known to give the same in recordings.
static void test_what_repeats(void** state) {
  (void)state;
  const struct {
    int64_t transform;
    bool is_ieee, is_deterministic, repeats;
  } cases[] = {{0, false, false, true},
               {1, false, false, false},
               {0, true, false, false},
               {0, true, true, true},
               {1, true, true, false}};
  for (size_t i = 0; i < WEIR_COUNT_OF(cases); ++i) {
    cudnn_t dnn;
    search_of_t s;
    memcpy(library.lists, (int64_t[LISTS][MOST]){{1}}, sizeof(library.lists));
    library.times[1] = 10;
    library.transform = cases[i].transform;
    open_device_as(&dnn, &(weir_device_params_t){.is_ieee = cases[i].is_ieee,
                                                 .is_deterministic = cases[i].is_deterministic});
    begin(&s, &dnn, (int64_t)i + 1);
    assert_int_equal(go_on_to_the_end(&s), 1);
    assert_int_equal(s.plan.repeats, cases[i].repeats);
    end(&s);
    close_device(&dnn);
  }
}

static void test_no_engine(void** state) {
  (void)state;
  cudnn_t dnn;
  search_of_t s;
  memcpy(library.lists, (int64_t[LISTS][MOST]){{1}, {2}}, sizeof(library.lists));
  library.times[1] = library.times[2] = -1;
  open_device(&dnn, false);
  begin(&s, &dnn, 1);
  weir_status_t* status = weir_cudnn_search_on(&s.task, &s.plan, &s.search);
  assert_int_equal(weir_status_code(status), WEIR_UNIMPLEMENTED);
  weir_status_destroy(status);
  assert_null(s.search);
  end(&s);
  close_device(&dnn);
}

// ---- ways ----

// How many kernels of ours run with the plan: one turns the filter.
static int launches_of(const search_of_t* s) {
  int before = cuda_fake_launches;
  assert_null(weir_cudnn_execute(&s->task, &s->plan));
  return cuda_fake_launches - before;
}

static void test_a_tail_is_cudnns_where_that_is_faster(void** state) {
  (void)state;
  cudnn_t dnn;
  search_of_t s;
  memcpy(library.lists, (int64_t[LISTS][MOST]){{1, 2}, {3}, {4, 5}}, sizeof(library.lists));
  for (int i = 1; i < 6; ++i) library.times[i] = 2000;
  library.times[5] = 500;
  open_device(&dnn, false);
  begin_conv(&s, &dnn, 1, 4, WEIR_CONV_BIAS_RELU);
  assert_int_equal(go_on_to_the_end(&s), 5);
  assert_int_equal(launches_of(&s), 1);
  assert_int_equal(library.pointers, 4);  // the bias, too
  end(&s);
  begin_conv(&s, &dnn, 1, 4, WEIR_CONV_BIAS_RELU);  // remembered, with the way
  assert_null(s.search);
  assert_int_equal(s.plan.way, WAY_TAIL);
  end(&s);
  begin_conv(&s, &dnn, 1, 4, WEIR_CONV_BIAS);  // which is another convolution
  assert_non_null(s.search);
  end(&s);
  close_device(&dnn);
}

static void test_a_tail_is_ours_where_that_is_faster(void** state) {
  (void)state;
  cudnn_t dnn;
  search_of_t s;
  memcpy(library.lists, (int64_t[LISTS][MOST]){{1, 2}, {3}, {4, 5}}, sizeof(library.lists));
  for (int i = 1; i < 6; ++i) library.times[i] = 2000;
  library.times[2] = 500;
  open_device(&dnn, false);
  begin_conv(&s, &dnn, 1, 4, WEIR_CONV_BIAS_RELU);
  assert_int_equal(go_on_to_the_end(&s), 2);
  assert_int_equal(launches_of(&s), 2);
  assert_int_equal(library.pointers, 3);
  end(&s);
  begin_conv(&s, &dnn, 1, 4, WEIR_CONV_BIAS_RELU);
  assert_null(s.search);
  assert_int_equal(launches_of(&s), 2);
  end(&s);
  close_device(&dnn);
}

// cuDNN has none for doubles; other versions may refuse the graph itself.
static void test_a_tail_that_cudnn_does_not_take(void** state) {
  (void)state;
  cudnn_t dnn;
  search_of_t s;
  memcpy(library.lists, (int64_t[LISTS][MOST]){{1}, {2}}, sizeof(library.lists));
  for (int i = 0; i < 2; ++i) {
    library.refuses_tail = i > 0;
    open_device(&dnn, i == 0);
    begin_conv(&s, &dnn, 1 + i, 4, WEIR_CONV_BIAS);
    go_on_to_the_end(&s);
    assert_int_equal(launches_of(&s), 2);
    end(&s);
    close_device(&dnn);
  }
}

// What the convolution is in the graph of |way|; no channels: it has none.
static weir_conv_t shape_of(const search_of_t* s, int way) {
  weir_conv_t shape;
  bool is_there = weir_cudnn_shape(s->task.dnn->device, &s->conv, way, &shape);
  return is_there ? shape : (weir_conv_t){.in_c = 0};
}

// Three channels become four, where tensor cores may be used.
static void test_few_channels_are_widened(void** state) {
  (void)state;
  cudnn_t dnn;
  search_of_t s;
  memcpy(library.lists, (int64_t[LISTS][MOST]){{1}, {0}}, sizeof(library.lists));
  library.times[1] = 500;
  open_device(&dnn, false);
  begin_conv(&s, &dnn, 1, 3, WEIR_CONV_NO_TAIL);
  assert_int_equal(shape_of(&s, WAY_WIDE).in_c, 4);
  assert_int_equal(shape_of(&s, WAY_FOLDED).in_c, 0);  // it steps over nothing
  go_on_to_the_end(&s);
  s.plan.way = WAY_WIDE;
  assert_int_equal(launches_of(&s), 3);  // image and filter are widened
  s.conv.kind = WEIR_CONV_BY_FILTER;
  assert_int_equal(launches_of(&s), 3);  // the image is, and the result narrowed
  s.conv.kind = WEIR_CONV_BY_INPUT;
  assert_int_equal(shape_of(&s, WAY_WIDE).in_c, 0);
  s.conv.kind = WEIR_CONV_FORWARD;
  s.conv.dtype = WEIR_DTYPE_BFLOAT16;
  assert_int_equal(shape_of(&s, WAY_WIDE).in_c, 8);
  s.conv.dtype = WEIR_DTYPE_DOUBLE;
  assert_int_equal(shape_of(&s, WAY_WIDE).in_c, 0);
  end(&s);
  close_device(&dnn);
}

// Windows of 7x7 that go by two pixels of three colours, and windows of 4x4 over squares of them.
static void test_strides_are_folded(void** state) {
  (void)state;
  cudnn_t dnn;
  search_of_t s;
  memcpy(library.lists, (int64_t[LISTS][MOST]){{1}, {0}}, sizeof(library.lists));
  library.times[1] = 500;
  open_device(&dnn, false);
  prepare(&s, &dnn, 2, 3);
  for (int axis = 1; axis < 3; ++axis) {
    s.conv.conv.in[axis] = 225;
    s.conv.conv.filter[axis] = 7;
    s.conv.conv.stride[axis] = 2;
    s.conv.conv.pad[axis] = 2;
    s.conv.conv.out[axis] = 112;
  }
  assert_null(weir_cudnn_search_begin(&s.task, &s.plan, &s.search));
  weir_conv_t folded = shape_of(&s, WAY_FOLDED);
  assert_int_equal(folded.in_c, 12);
  assert_int_equal(folded.group_in, 12);
  for (int axis = 1; axis < 3; ++axis) {
    assert_int_equal(folded.filter[axis], 4);
    assert_int_equal(folded.in[axis], 115);
    assert_int_equal(folded.out[axis], 112);
    assert_int_equal(folded.stride[axis], 1);
    assert_int_equal(folded.pad[axis], 0);
  }
  assert_int_equal(shape_of(&s, WAY_FOLDED | WAY_WIDE).in_c, 0);
  go_on_to_the_end(&s);
  s.plan.way = WAY_FOLDED;
  assert_int_equal(launches_of(&s), 3);
  s.conv.kind = WEIR_CONV_BY_FILTER;
  assert_int_equal(launches_of(&s), 3);
  s.conv.kind = WEIR_CONV_FORWARD;
  s.conv.dtype = WEIR_DTYPE_HALF;
  assert_int_equal(shape_of(&s, WAY_FOLDED).in_c, 16);
  s.conv.conv.stride[2] = 1;
  assert_int_equal(shape_of(&s, WAY_FOLDED).in_c, 0);
  end(&s);
  close_device(&dnn);
}

// What cuDNN proposes is where the search of knobs begins; values that do not work are passed by.
static void test_knobs_of_the_best_are_varied(void** state) {
  (void)state;
  cudnn_t dnn;
  search_of_t s;
  memcpy(library.lists, (int64_t[LISTS][MOST]){{1, 2}, {0}}, sizeof(library.lists));
  library.times[1] = 4000;
  library.times[2] = 3000;
  library.gains[2] = 500;
  open_device(&dnn, false);
  begin(&s, &dnn, 1);
  assert_int_equal(go_on_to_the_end(&s), 2);
  assert_int_equal(((const descriptor_t*)s.plan.plan)->knob, KNOB_VALUES);
  end(&s);
  begin(&s, &dnn, 1);
  assert_null(s.search);
  assert_int_equal(((const descriptor_t*)s.plan.plan)->knob, KNOB_VALUES);
  end(&s);
  close_device(&dnn);
}

// Windows of one pixel.
static void make_product(search_of_t* s, cudnn_t* dnn) {
  prepare(s, dnn, 2, 3);
  for (int i = 0; i < 3; ++i) s->conv.conv.filter[i] = 1;
  memcpy(s->conv.conv.out, s->conv.conv.in, sizeof(s->conv.conv.in));
}

static void test_windows_of_a_pixel_are_products(void** state) {
  (void)state;
  cudnn_t dnn;
  search_of_t s;
  memcpy(library.lists, (int64_t[LISTS][MOST]){{1, 2}, {3}}, sizeof(library.lists));
  for (int i = 1; i < 4; ++i) library.times[i] = 1000;
  library.product_time = 100;
  int runs = 0;
  open_device(&dnn, false);
  for (int i = 0; i < 2; ++i) {
    make_product(&s, &dnn);
    s.conv.tail = WEIR_CONV_BIAS;
    assert_null(weir_cudnn_search_begin(&s.task, &s.plan, &s.search));
    for (int turns = 0; s.search; ++turns) {
      assert_in_range(turns, 0, 64);
      assert_null(weir_cudnn_search_on(&s.task, &s.plan, &s.search));
    }
    assert_int_equal(s.plan.way, WAY_PRODUCT);
    assert_int_equal(launches_of(&s), 1);  // the tail
    end(&s);
    if (i == 0) runs = library.runs[1];
  }
  assert_int_equal(library.runs[1], runs);  // the second time it was remembered
  close_device(&dnn);
}

// A gradient by filter, of long lines of few channels.
static void make_by_filter(search_of_t* s, cudnn_t* dnn) {
  prepare(s, dnn, 2, 32);
  s->conv.kind = WEIR_CONV_BY_FILTER;
  for (int axis = 1; axis < 3; ++axis) s->conv.conv.in[axis] = s->conv.conv.out[axis] = 100;
  s->conv.conv.pad[1] = s->conv.conv.pad[2] = 1;
}

// The kernel takes no time here: only what waits for it can keep it from being the fastest.
static void test_a_kernel_of_ours_is_tried_after_the_first_run(void** state) {
  (void)state;
  cudnn_t dnn;
  search_of_t s;
  memcpy(library.lists, (int64_t[LISTS][MOST]){{1}, {0}}, sizeof(library.lists));
  library.times[1] = 100;
  open_device(&dnn, false);
  make_by_filter(&s, &dnn);
  assert_null(weir_cudnn_search_begin(&s.task, &s.plan, &s.search));
  assert_int_equal(go_on(&s), 1);
  assert_non_null(s.search);
  assert_null(weir_cudnn_search_on(&s.task, &s.plan, &s.search));
  assert_null(s.search);
  assert_int_equal(s.plan.way, WAY_DIRECT);
  assert_int_equal(launches_of(&s), 3);  // the parts are added, and the filter is turned
  end(&s);
  make_by_filter(&s, &dnn);
  assert_null(weir_cudnn_search_begin(&s.task, &s.plan, &s.search));  // remembered
  assert_null(s.search);
  assert_int_equal(launches_of(&s), 3);
  end(&s);
  close_device(&dnn);
}

static void test_which_gradients_the_kernel_takes(void** state) {
  (void)state;
  cudnn_t dnn;
  search_of_t s;
  weir_by_filter_t made;
  open_device(&dnn, false);
  make_by_filter(&s, &dnn);
  assert_true(weir_by_filter_takes(dnn.device, &s.conv, &s.conv.conv));
  assert_null(weir_by_filter_make(dnn.device, &s.conv.conv, &made));
  assert_int_equal(made.shape.chunks, 1);
  assert_int_equal(made.shape.tiles, 1);
  assert_int_equal(made.shape.stages, 200);
  s.conv.conv.in[2] = s.conv.conv.out[2] = 1000;  // as long as shared memory is not
  assert_true(weir_by_filter_takes(dnn.device, &s.conv, &s.conv.conv));
  assert_null(weir_by_filter_make(dnn.device, &s.conv.conv, &made));
  assert_in_range(made.shape.chunks, 2, 16);
  assert_in_range(made.size.shared_bytes, 1, 163 << 10);
  const struct {
    int64_t* field;
    int64_t value;
  } others[] = {{&s.conv.conv.out[2], 20},   {&s.conv.conv.in_c, 34},
                {&s.conv.conv.out_c, 6},     {&s.conv.conv.filter[1], 5},
                {&s.conv.conv.stride[2], 2}, {&s.conv.conv.dilation[1], 2},
                {&s.conv.conv.groups, 2},    {&s.conv.conv.in_c, 512}};
  for (size_t i = 0; i < WEIR_COUNT_OF(others); ++i) {
    int64_t before = *others[i].field;
    *others[i].field = others[i].value;
    assert_false(weir_by_filter_takes(dnn.device, &s.conv, &s.conv.conv));
    *others[i].field = before;
  }
  s.conv.kind = WEIR_CONV_FORWARD;
  assert_false(weir_by_filter_takes(dnn.device, &s.conv, &s.conv.conv));
  s.conv.kind = WEIR_CONV_BY_FILTER;
  s.conv.dtype = WEIR_DTYPE_HALF;
  assert_false(weir_by_filter_takes(dnn.device, &s.conv, &s.conv.conv));
  close_device(&dnn);
  s.conv.dtype = WEIR_DTYPE_FLOAT;
  open_device_as(&dnn, &(weir_device_params_t){.is_ieee = true});
  assert_false(weir_by_filter_takes(dnn.device, &s.conv, &s.conv.conv));
  close_device(&dnn);
}

static void test_products_are_those_of_the_convolution(void** state) {
  (void)state;
  static const weir_conv_fn_t functions[] = {weir_conv_forward, weir_conv_backprop_input,
                                             weir_conv_backprop_filter};
  enum { X = 2 * 9 * 3, W = 3 * 4, Y = 2 * 9 * 4 };
  float x[X], w[W], y[Y], want[Y], got[Y];
  const float* const firsts[] = {x, w, x};
  const float* const seconds[] = {w, y, y};
  const size_t counts[] = {Y, X, W};
  cudnn_t dnn;
  search_of_t s;
  for (int i = 0; i < Y; ++i) y[i] = (float)(i % 7 - 3);
  for (int i = 0; i < X; ++i) x[i] = (float)(i % 5 - 2);
  for (int i = 0; i < W; ++i) w[i] = (float)(i % 11 - 4);
  open_device(&dnn, false);
  for (int kind = 0; kind < 3; ++kind) {
    make_product(&s, &dnn);
    assert_true(weir_cudnn_is_product(&s.conv));
    s.conv.kind = (weir_conv_kind_t)kind;
    s.plan.way = WAY_PRODUCT;
    s.operands = (weir_cudnn_operands_t){.a = firsts[kind], .b = seconds[kind], .out = got};
    assert_null(weir_cudnn_execute(&s.task, &s.plan));
    assert_null(
        functions[kind](NULL, WEIR_DTYPE_FLOAT, &s.conv.conv, firsts[kind], seconds[kind], want));
    assert_memory_equal(got, want, counts[kind] * sizeof(float));
  }
  s.conv.conv.stride[2] = 2;
  assert_false(weir_cudnn_is_product(&s.conv));
  close_device(&dnn);
}

// What is not written is no number, and results are compared with the first.
static void test_results_are_compared(void** state) {
  (void)state;
  cudnn_t dnn;
  search_of_t s;
  double* reference = NULL;
  weir_tensor_t* out = NULL;
  open_device(&dnn, false);
  prepare(&s, &dnn, 2, 3);
  weir_allocator_t* allocator = weir_device_allocator(dnn.device, WEIR_MEMORY_DEVICE);
  assert_null(
      weir_tensor_create_in(allocator, WEIR_DTYPE_FLOAT, 1, (const int64_t[]){2 * 4}, &out));
  s.operands.out = out->data;
  float* values = (float*)(void*)cuda_fake_at(out->data);
  for (int i = 0; i < 8; ++i) values[i] = (float)(i - 6);
  assert_true(weir_cudnn_difference(&s.task, &reference) == 0);
  assert_true(weir_cudnn_difference(&s.task, &reference) == 0);
  values[7] = 4;
  assert_true(weir_cudnn_difference(&s.task, &reference) == 0.5);  // 1 became 4, and -6 is there
  weir_cudnn_spoil(&s.task);
  assert_true(isnan(weir_cudnn_difference(&s.task, &reference)));
  weir_free(reference);
  weir_tensor_release(out);
  close_device(&dnn);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
  const struct CMUnitTest tests[] = {
      TEST(test_runs_do_not_wait_for_the_search),
      TEST(test_fallbacks_wait_for_a_second_run),
      TEST(test_only_the_end_is_remembered),
      TEST(test_hopeless_engines_run_once),
      TEST(test_a_hopeless_engine_is_better_than_none),
      TEST(test_deterministic_devices_do_not_measure),
      TEST(test_what_repeats),
      TEST(test_no_engine),
      TEST(test_a_tail_is_cudnns_where_that_is_faster),
      TEST(test_a_tail_is_ours_where_that_is_faster),
      TEST(test_a_tail_that_cudnn_does_not_take),
      TEST(test_few_channels_are_widened),
      TEST(test_strides_are_folded),
      TEST(test_knobs_of_the_best_are_varied),
      TEST(test_windows_of_a_pixel_are_products),
      TEST(test_a_kernel_of_ours_is_tried_after_the_first_run),
      TEST(test_which_gradients_the_kernel_takes),
      TEST(test_products_are_those_of_the_convolution),
      TEST(test_results_are_compared),
  };
#undef TEST
  return cmocka_run_group_tests(tests, NULL, NULL);
}
