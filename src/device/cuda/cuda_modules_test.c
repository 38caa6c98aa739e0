// cuda_modules_test.c — Sources are compiled once, beside each other, and what goes wrong is told
// to whoever waits; on a driver and a compiler that are fakes.
#include "device/cuda/cuda_modules.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "device/builds.h"
#include "device/cuda/cuda.h"
#include "device/cuda/cuda_compiler.h"
#include "testing/cuda_fake.h"
#include "testing/world.h"

// ---- a compiler ----

// |wrong| does not compile; "gate" waits until the gate is open, "meet" until
// two of them are being compiled.
static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static const char* wrong;
static int compiled, under_way, most_under_way;
static bool is_open, is_mended;

static weir_status_t* compile(const char* name, const char* source, int architecture,
                              char** out_code, size_t* out_size) {
  pthread_mutex_lock(&mu);
  ++compiled;
  most_under_way = WEIR_MAX(++under_way, most_under_way);
  pthread_cond_broadcast(&changed);
  while ((strstr(source, "gate") && !is_open) || (strstr(source, "meet") && most_under_way < 2))
    pthread_cond_wait(&changed, &mu);
  --under_way;
  bool is_wrong = strstr(source, wrong) && !is_mended;
  pthread_mutex_unlock(&mu);
  if (is_wrong) return WEIR_STATUS(INTERNAL, "%s: no such word, sm_%d", name, architecture);
  *out_code = weir_calloc(1, 1);
  *out_size = 1;
  return *out_code ? NULL : weir_out_of_memory();
}

static void set_gate(bool is_open_now) {
  pthread_mutex_lock(&mu);
  is_open = is_open_now;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&mu);
}

// Until |count| sources were begun.
static void await_begun(int count) {
  pthread_mutex_lock(&mu);
  while (compiled < count) pthread_cond_wait(&changed, &mu);
  pthread_mutex_unlock(&mu);
}

// ---- a device ----

typedef struct rig_t {
  weir_pool_t* pool;
  weir_device_t* device;
} rig_t;

static rig_t make_rig(int threads) {
  rig_t rig = {NULL};
  weir_device_params_t params = {.index = 1};
  compiled = under_way = most_under_way = 0;
  is_open = is_mended = false;
  wrong = "wrong";
  weir_cuda_driver_replace(&cuda_fake_driver);
  weir_cuda_compiler_replace(compile);
  if (threads) check_ok(weir_pool_create(threads, &rig.pool));
  params.pool = rig.pool;
  check_ok(weir_cuda_kind.create(&params, &rig.device));
  return rig;
}

static void drop_rig(const rig_t* rig) {
  weir_device_release(rig->device);
  if (rig->pool) weir_pool_destroy(rig->pool);
  weir_cuda_compiler_replace(NULL);
  weir_cuda_driver_replace(NULL);
}

static weir_cuda_function_t ask(const rig_t* rig, const char* source, const char* name) {
  weir_cuda_function_t function = {NULL};
  check_ok(weir_cuda_function(rig->device, source, name, &function));
  return function;
}

static weir_status_t* launch(const rig_t* rig, weir_cuda_function_t function) {
  weir_cuda_size_t size = weir_cuda_size_for(rig->device, 1);
  return weir_cuda_launch(rig->device, function, &size, WEIR_CUDA_ARGS(&size));
}

// ---- tests ----

static void test_once_for_all_functions(void** state) {
  (void)state;
  for (int threads = 0; threads < 4; ++threads) {
    rig_t rig = make_rig(threads);
    weir_cuda_function_t f = ask(&rig, "one", "f"), g = ask(&rig, "one", "g");
    assert_ptr_equal(f.function, ask(&rig, "one", "f").function);
    assert_ptr_not_equal(f.function, g.function);
    int before = cuda_fake_launches;
    for (int i = 0; i < 3; ++i) {
      check_ok(launch(&rig, f));
      check_ok(launch(&rig, g));
    }
    assert_int_equal(cuda_fake_launches, before + 6);
    assert_int_equal(compiled, 1);
    drop_rig(&rig);
  }
}

// Threads of the pool, and the one that waits.
static void test_beside_each_other(void** state) {
  (void)state;
  rig_t rig = make_rig(2);  // one of its own
  weir_builds_t builds = {0};
  int32_t owner = -1;
  assert_null(weir_builds_gather(&builds));
  ask(&rig, "meet 1", "f");
  ask(&rig, "meet 2", "f");
  ask(&rig, "meet 1", "g");
  assert_ptr_equal(weir_builds_gather(NULL), &builds);
  assert_int_equal(builds.count, 3);
  check_ok(weir_builds_finish(&builds, &owner));
  assert_int_equal(compiled, 2);
  assert_int_equal(most_under_way, 2);
  assert_null(weir_builds_gather(&builds));
  ask(&rig, "meet 1", "g");  // there already
  weir_builds_gather(NULL);
  assert_int_equal(builds.count, 0);
  drop_rig(&rig);
}

static void test_errors_are_whose_they_are(void** state) {
  (void)state;
  rig_t rig = make_rig(2);
  weir_builds_t builds = {0};
  int32_t owner = -1;
  weir_builds_gather(&builds);
  builds.owner = 4;
  ask(&rig, "right", "f");
  builds.owner = 5;
  weir_cuda_function_t bad = ask(&rig, "wrong", "g");
  builds.owner = 6;
  ask(&rig, "wrong", "h");
  weir_builds_gather(NULL);
  check_error(weir_builds_finish(&builds, &owner), WEIR_INTERNAL, "g: no such word, sm_90");
  assert_int_equal(owner, 5);
  check_error(launch(&rig, bad), WEIR_INTERNAL, "no such word");
  is_mended = true;  // an error is not for ever: memory may have been short
  check_ok(launch(&rig, bad));
  drop_rig(&rig);
}

// What has begun is waited for, where the pool ends; what has not will not begin.
static void test_devices_go_before_their_sources(void** state) {
  (void)state;
  rig_t rig = make_rig(2);  // one of its own
  ask(&rig, "gate", "f");
  ask(&rig, "two", "f");
  ask(&rig, "three", "f");
  await_begun(1);
  weir_device_release(rig.device);
  rig.device = NULL;
  set_gate(true);
  weir_pool_destroy(rig.pool);
  rig.pool = NULL;
  assert_int_equal(compiled, 1);
  weir_cuda_compiler_replace(NULL);
  weir_cuda_driver_replace(NULL);
}

// A thread of the pool waits for what only it could compile.
static void run_in_pool(void* arg) {
  rig_t* rig = arg;
  check_ok(launch(rig, ask(rig, "one", "f")));
  set_gate(true);
}

static void test_the_only_thread_waits(void** state) {
  (void)state;
  rig_t rig = make_rig(2);
  weir_pool_submit(rig.pool, run_in_pool, &rig);
  weir_cuda_function_t f = ask(&rig, "gate", "f");  // opened by the task above
  check_ok(launch(&rig, f));
  drop_rig(&rig);
}

typedef struct crowd_t {
  const rig_t* rig;
  weir_cuda_function_t function;
} crowd_t;

static void* join_crowd(void* arg) {
  const crowd_t* crowd = arg;
  for (int i = 0; i < 100; ++i) {
    weir_cuda_function_t other = {NULL};
    weir_status_t* status = launch(crowd->rig, crowd->function);
    if (!status) status = weir_cuda_function(crowd->rig->device, "other", "f", &other);
    if (!status) status = launch(crowd->rig, other);
    if (status) return status;
  }
  return NULL;
}

static void test_many_at_once(void** state) {
  (void)state;
  enum { THREADS = 4 };
  rig_t rig = make_rig(2);
  pthread_t threads[THREADS];
  crowd_t crowd = {.rig = &rig, .function = ask(&rig, "one", "f")};
  for (int i = 0; i < THREADS; ++i)
    assert_int_equal(pthread_create(&threads[i], NULL, join_crowd, &crowd), 0);
  for (int i = 0; i < THREADS; ++i) {
    void* status = NULL;
    pthread_join(threads[i], &status);
    check_ok(status);
  }
  assert_int_equal(compiled, 2);
  drop_rig(&rig);
}

// The maker of a plan waits: the error is a node's, and no step begins.
static void test_errors_name_their_node(void** state) {
  world_t* w = *state;
  rig_t rig = make_rig(2);
  import_text(w,
              "node {name: 'x' op: 'Const' attr {key: 'dtype' value {type: DT_FLOAT}}"
              " attr {key: 'value' value {tensor {dtype: DT_FLOAT"
              " tensor_shape {dim {size: 1} dim {size: 2}} float_val: 1}}}}"
              "node {name: 'good' op: 'L2Loss' input: 'x' device: '/device:GPU:0'"
              " attr {key: 'T' value {type: DT_FLOAT}}}"
              "node {name: 'bad' op: 'Softmax' input: 'x' device: '/device:GPU:0'"
              " attr {key: 'T' value {type: DT_FLOAT}}}");
  weir_session_options_t options = {
      .threads = 2, .devices = "cpu,cuda:1", .disabled_passes = "fold"};
  check_ok(weir_session_create(w->graph, &options, &w->session));
  wrong = "softmax_short";
  int before = cuda_fake_launches;
  weir_step_spec_t spec = {
      WEIR_TARGETS(weir_graph_find_node(w->graph, "good"), weir_graph_find_node(w->graph, "bad"))};
  for (int i = 0; i < 2; ++i) {
    check_error(weir_session_run(w->session, &spec, NULL), WEIR_INTERNAL, "Node 'bad' (Softmax)");
  }
  assert_int_equal(cuda_fake_launches, before);
  weir_session_destroy(w->session);
  w->session = NULL;
  drop_rig(&rig);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_once_for_all_functions),
      cmocka_unit_test(test_beside_each_other),
      cmocka_unit_test(test_errors_are_whose_they_are),
      cmocka_unit_test(test_devices_go_before_their_sources),
      cmocka_unit_test(test_the_only_thread_waits),
      cmocka_unit_test(test_many_at_once),
      cmocka_unit_test_setup_teardown(test_errors_name_their_node, world_setup, world_teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
