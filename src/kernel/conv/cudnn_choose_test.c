// cudnn_choose_test.c — The search for the fastest engine, in a cuDNN of a few that only take time.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernel/conv/cudnn_internal.h"
#include "testing/cmocka.h"
#include "testing/cuda_fake.h"

// ---- the library ----

enum { FAST, FALLBACK, LISTS, MOST = 8, ENGINES = 16 };

// What is proposed, ending with 0, and how long engines take in microseconds; below 0: they fail.
static struct {
  int64_t lists[LISTS][MOST];
  int times[ENGINES];
  int runs[ENGINES];
  int live;  // descriptors
} library;

typedef struct descriptor_t {
  int list;
  int64_t engine;
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

static int finish(dnn_t descriptor) { return descriptor ? 0 : 1; }

static int set(dnn_t descriptor, int name, int type, int64_t count, const void* values) {
  descriptor_t* d = descriptor;
  (void)type;
  (void)count;
  if (name == DNN_HEURISTIC_MODE)
    d->list = *(const int*)values == DNN_HEURISTIC_FALLBACK ? FALLBACK : FAST;
  if (name == DNN_ENGINE_INDEX) d->engine = *(const int64_t*)values;
  if (name == DNN_CONFIG_ENGINE || name == DNN_PLAN_CONFIG)
    d->engine = (*(descriptor_t* const*)values)->engine;
  return 0;
}

static int get(dnn_t descriptor, int name, int type, int64_t most, int64_t* out_count,
               void* values) {
  const descriptor_t* d = descriptor;
  (void)type;
  (void)most;
  *out_count = 0;
  if (name == DNN_HEURISTIC_RESULTS) {
    const int64_t* list = library.lists[d->list];
    for (; list[*out_count]; ++*out_count)
      ((descriptor_t**)values)[*out_count]->engine = list[*out_count];
  }
  if (name == DNN_CONFIG_ENGINE) (*(descriptor_t**)values)->engine = d->engine;
  if (name == DNN_ENGINE_INDEX) *(int64_t*)values = d->engine;
  if (name == DNN_PLAN_WORKSPACE) *(int64_t*)values = 0;
  return 0;
}

static int execute(dnn_handle_t handle, dnn_t plan, dnn_t pack) {
  int64_t engine = ((const descriptor_t*)plan)->engine;
  (void)handle;
  (void)pack;
  ++library.runs[engine];
  if (library.times[engine] < 0) return 1;
  usleep((useconds_t)library.times[engine]);
  return 0;
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

static void open_device(cudnn_t* dnn, bool is_deterministic) {
  weir_device_params_t params = {.is_deterministic = is_deterministic};
  weir_cuda_driver_replace(&cuda_fake_driver);
  memset(dnn, 0, sizeof(*dnn));
  assert_null(weir_cuda_kind.create(&params, &dnn->device));
  dnn->call = (dnn_functions_t){
      .make = make, .drop = drop, .finish = finish, .set = set, .get = get, .execute = execute};
  dnn->hopeless.owns_keys = true;
}

static void close_device(cudnn_t* dnn) {
  weir_map_free(&dnn->hopeless);
  weir_device_release(dnn->device);
  weir_cuda_driver_replace(NULL);
}

// A convolution; |size| tells it from others.
typedef struct search_of_t {
  weir_cudnn_conv_t conv;
  cudnn_task_t task;
  plan_t plan;
  search_t* search;
} search_of_t;

static void begin(search_of_t* s, cudnn_t* dnn, int64_t size) {
  memset(s, 0, sizeof(*s));
  s->conv.conv.batch = size;
  s->conv.dtype = WEIR_DTYPE_FLOAT;
  s->task = (cudnn_task_t){.dnn = dnn, .conv = &s->conv};
  assert_null(weir_cudnn_search_begin(&s->task, NULL, &s->plan, &s->search));
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

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
  const struct CMUnitTest tests[] = {
      TEST(test_runs_do_not_wait_for_the_search),
      TEST(test_fallbacks_wait_for_a_second_run),
      TEST(test_only_the_end_is_remembered),
      TEST(test_hopeless_engines_run_once),
      TEST(test_a_hopeless_engine_is_better_than_none),
      TEST(test_deterministic_devices_do_not_measure),
      TEST(test_no_engine),
  };
#undef TEST
  return cmocka_run_group_tests(tests, NULL, NULL);
}
