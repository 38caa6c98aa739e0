// batcher_test.c — Batches of steps against a function of the test's own: full ones and late ones,
// split ones, failing ones, steps that are cancelled, queues that are full, many threads.

#include "ops/batch/batcher.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/outcome.h"
#include "testing/cmocka.h"

enum { FUNCTION = 1, FOREVER_US = 1000000000 };

// Doubles every element.
typedef struct fake_t {
  weir_functions_t base;
  bool fails;
  bool holds;         // calls wait for release
  weir_call_t* held;  // the one that waits
  weir_done_t held_done;
  atomic_llong row_count;  // of the last call
} fake_t;

static int fake_result_count(weir_functions_t* self, weir_function_handle_t handle) {
  (void)self;
  return handle == FUNCTION ? 1 : -1;
}

static weir_status_t* compute(fake_t* fake, weir_call_t* call) {
  const weir_tensor_t* in = call->args[0];
  if (fake->fails) return WEIR_STATUS(DATA_LOSS, "the function failed");
  weir_status_t* status = weir_tensor_create(WEIR_DTYPE_FLOAT, 1, in->dims, &call->rets[0]);
  for (int64_t i = 0; !status && i < in->count; ++i) {
    WEIR_TENSOR_DATA(call->rets[0], float)[i] = 2 * WEIR_TENSOR_DATA(in, const float)[i];
  }
  return status;
}

static void fake_call(weir_functions_t* self, weir_kernel_ctx_t* ctx, weir_call_t* call,
                      weir_done_t done) {
  fake_t* fake = (fake_t*)self;
  (void)ctx;
  atomic_store(&fake->row_count, call->args[0]->dims[0]);
  if (!fake->holds) {
    weir_done_call(done, compute(fake, call));
    return;
  }
  assert_null(fake->held);
  fake->held = call;
  fake->held_done = done;
}

static void release(fake_t* fake) {
  weir_call_t* call = fake->held;
  assert_non_null(call);
  fake->held = NULL;
  weir_done_call(fake->held_done, compute(fake, call));
}

static const weir_functions_vtable_t fake_vtable = {.result_count = fake_result_count,
                                                    .call = fake_call};

typedef struct world_t {
  fake_t fake;
  weir_pool_t* pool;
  weir_device_t* device;
  weir_step_batcher_t* batcher;
} world_t;

static void make_world(world_t* w, int threads, const weir_step_batcher_config_t* config) {
  weir_step_batcher_config_t copy = *config;
  weir_resource_t* resource = NULL;
  *w = (world_t){.fake = {.base = {.vtable = &fake_vtable}}};
  copy.is_function = true;
  assert_null(weir_pool_create(threads, &w->pool));
  assert_null(weir_cpu_device_create("", 0, w->pool, &w->device));
  assert_null(weir_step_batcher_create(&copy, &resource));
  w->batcher = (weir_step_batcher_t*)resource;
}

static void end_world(world_t* w) {
  weir_resource_release((weir_resource_t*)w->batcher);
  weir_pool_destroy(w->pool);  // its last tasks first
  weir_device_release(w->device);
}

// A step with one kernel call, of |count| elements from |first| on.
typedef struct call_t {
  weir_step_t step;
  weir_node_def_t node;
  weir_kernel_ctx_t ctx;
  weir_value_t input, output;
  weir_dtype_t type;
  weir_outcome_t outcome;
  atomic_bool is_done;
  float first;
  int64_t count;
} call_t;

static void on_done(void* arg, weir_status_t* take_status) {
  call_t* call = arg;
  atomic_store(&call->is_done, true);
  weir_outcome_set(&call->outcome, take_status);
}

static void start(world_t* w, call_t* call, float first, int64_t count) {
  float values[64];
  for (int64_t i = 0; i < count; ++i) values[i] = first + (float)i;
  memset(call, 0, sizeof(*call));
  call->first = first;
  call->count = count;
  call->type = WEIR_DTYPE_FLOAT;
  weir_outcome_init(&call->outcome);
  assert_null(weir_tensor_create_from(WEIR_DTYPE_FLOAT, 1, &count, values, &call->input.tensor));
  assert_null(weir_cancel_create(NULL, &call->step.cancel));
  call->step.functions = &w->fake.base;
  call->step.inter_pool = w->pool;
  call->node = (weir_node_def_t){.name = "batch", .output_types = &call->type, .output_count = 1};
  call->ctx = (weir_kernel_ctx_t){.node = &call->node,
                                  .inputs = &call->input,
                                  .outputs = &call->output,
                                  .device = w->device,
                                  .step = &call->step,
                                  .input_count = 1,
                                  .output_count = 1};
  weir_batch_call_t batch = {.queue = weir_view("q", 1), .function = FUNCTION, .input_count = 1};
  weir_step_batcher_submit(w->batcher, &batch, &call->ctx,
                           (weir_done_t){.fn = on_done, .arg = call});
}

// Waits for the end of a call, which must be |code|, and of the right values when that is OK.
static void end(call_t* call, weir_code_t code) {
  weir_status_t* status = weir_outcome_wait(&call->outcome);
  assert_int_equal(weir_status_code(status), code);
  if (!status) {
    assert_int_equal(call->output.tensor->dims[0], call->count);
    for (int64_t i = 0; i < call->count; ++i) {
      assert_true(WEIR_TENSOR_DATA(call->output.tensor, float)[i] == 2 * (call->first + (float)i));
    }
  }
  weir_status_destroy(status);
  weir_value_release(&call->input);
  weir_value_release(&call->output);
  weir_cancel_destroy(call->step.cancel);
}

// ---- tests. With one thread everything happens on the caller, but for alarms. ----

static void test_runs_when_full(void** state) {
  world_t w;
  call_t a, b, c;
  (void)state;
  make_world(&w, 1,
             &(weir_step_batcher_config_t){.thread_count = 1,
                                           .max_batch_size = 4,
                                           .max_enqueued_count = 10,
                                           .timeout_us = FOREVER_US});
  start(&w, &a, 1, 3);
  assert_false(atomic_load(&a.is_done));
  start(&w, &b, 10, 1);
  assert_int_equal(atomic_load(&w.fake.row_count), 4);
  end(&a, WEIR_OK);
  end(&b, WEIR_OK);
  start(&w, &a, 1, 3);
  start(&w, &b, 5, 2);  // does not fit: the first runs without it
  end(&a, WEIR_OK);
  start(&w, &c, 9, 5);
  end(&c, WEIR_INVALID_ARGUMENT);
  start(&w, &c, 9, 2);
  end(&b, WEIR_OK);
  end(&c, WEIR_OK);
  end_world(&w);
}

static void test_runs_after_a_while(void** state) {
  static const int64_t allowed[] = {2, 8};
  world_t w;
  call_t a;
  (void)state;
  for (int threads = 1; threads <= 3; threads += 2) {
    make_world(&w, threads,
               &(weir_step_batcher_config_t){.thread_count = 1,
                                             .max_batch_size = 8,
                                             .timeout_us = 2000,
                                             .allowed_sizes = allowed,
                                             .allowed_count = 2});
    for (int i = 0; i < 3; ++i) {
      start(&w, &a, 7, i + 1);
      end(&a, WEIR_OK);
      assert_int_equal(atomic_load(&w.fake.row_count), i < 2 ? 2 : 8);
    }
    end_world(&w);
  }
}

static void test_splits_large_jobs(void** state) {
  world_t w;
  call_t a, b;
  (void)state;
  make_world(&w, 1,
             &(weir_step_batcher_config_t){.thread_count = 1,
                                           .splits = true,
                                           .max_batch_size = 20,
                                           .max_enqueued_count = 10,
                                           .timeout_us = 2000,
                                           .allowed_sizes = (const int64_t[]){1, 4},
                                           .allowed_count = 2});
  start(&w, &a, 1, 3);
  start(&w, &b, 50, 10);
  end(&a, WEIR_OK);
  end(&b, WEIR_OK);
  end_world(&w);
}

static void test_errors_reach_every_step(void** state) {
  world_t w;
  call_t a, b;
  (void)state;
  make_world(&w, 1,
             &(weir_step_batcher_config_t){
                 .thread_count = 1, .max_batch_size = 2, .timeout_us = FOREVER_US});
  w.fake.fails = true;
  start(&w, &a, 1, 1);
  start(&w, &b, 2, 1);
  end(&a, WEIR_DATA_LOSS);
  end(&b, WEIR_DATA_LOSS);
  w.fake.fails = false;
  start(&w, &a, 1, 2);
  end(&a, WEIR_OK);
  end_world(&w);
}

static void test_cancelled_steps_leave(void** state) {
  world_t w;
  call_t a, b, c;
  (void)state;
  make_world(&w, 1,
             &(weir_step_batcher_config_t){
                 .thread_count = 1, .max_batch_size = 4, .timeout_us = FOREVER_US});
  start(&w, &a, 1, 2);
  weir_cancel_start(a.step.cancel);
  end(&a, WEIR_CANCELLED);
  w.fake.holds = true;
  start(&w, &a, 1, 2);
  start(&w, &b, 5, 1);
  start(&w, &c, 7, 1);  // the carrier
  assert_int_equal(atomic_load(&w.fake.row_count), 4);
  weir_cancel_start(b.step.cancel);
  end(&b, WEIR_CANCELLED);
  weir_cancel_start(c.step.cancel);  // its function would end; here it does not look
  assert_false(atomic_load(&c.is_done));
  release(&w.fake);
  end(&a, WEIR_OK);
  end(&c, WEIR_OK);
  end_world(&w);
}

static void test_queues_are_full(void** state) {
  world_t w;
  call_t calls[4];
  (void)state;
  make_world(&w, 1,
             &(weir_step_batcher_config_t){
                 .thread_count = 1, .max_batch_size = 1, .max_enqueued_count = 2});
  w.fake.holds = true;
  for (int i = 0; i < 4; ++i) start(&w, &calls[i], (float)i, 1);
  end(&calls[3], WEIR_UNAVAILABLE);
  for (int i = 0; i < 3; ++i) {
    release(&w.fake);
    end(&calls[i], WEIR_OK);
  }
  end_world(&w);
}

static void test_ends_who_waits(void** state) {
  world_t w;
  call_t a;
  (void)state;
  make_world(&w, 1,
             &(weir_step_batcher_config_t){
                 .thread_count = 1, .max_batch_size = 4, .timeout_us = FOREVER_US});
  start(&w, &a, 1, 2);
  weir_step_batcher_type.close((weir_resource_t*)w.batcher);
  end(&a, WEIR_CANCELLED);
  end_world(&w);
}

typedef struct client_t {
  world_t* world;
  int number;
} client_t;

// Every seventh step is cancelled, at any time.
static void* client_main(void* arg) {
  client_t* client = arg;
  for (int i = 0; i < 70; i += WEIR_TEST_STRIDE) {
    call_t call;
    start(client->world, &call, (float)(100 * client->number + i), 1 + (i + client->number) % 5);
    const bool is_cancelled = (i + client->number) % 7 == 0;
    if (is_cancelled) weir_cancel_start(call.step.cancel);
    weir_status_t* status = weir_outcome_wait(&call.outcome);
    if (!is_cancelled) assert_null(status);
    if (status) assert_int_equal(weir_status_code(status), WEIR_CANCELLED);
    // So that end can wait for it.
    weir_outcome_init(&call.outcome);
    const weir_code_t code = weir_status_code(status);
    weir_outcome_set(&call.outcome, status);
    end(&call, code);
  }
  return NULL;
}

static void test_many_threads(void** state) {
  (void)state;
  for (int splits = 0; splits < 2; ++splits) {
    world_t w;
    pthread_t threads[6];
    client_t clients[6];
    make_world(&w, 3,
               &(weir_step_batcher_config_t){.thread_count = 2,
                                             .splits = splits,
                                             .max_batch_size = 8,
                                             .max_enqueued_count = 100,
                                             .timeout_us = 300,
                                             .allowed_sizes = (const int64_t[]){1, 2, 4},
                                             .allowed_count = splits ? 3 : 0});
    for (int i = 0; i < 6; ++i) {
      clients[i] = (client_t){.world = &w, .number = i};
      assert_int_equal(pthread_create(&threads[i], NULL, client_main, &clients[i]), 0);
    }
    for (int i = 0; i < 6; ++i) pthread_join(threads[i], NULL);
    end_world(&w);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_runs_when_full),        cmocka_unit_test(test_runs_after_a_while),
      cmocka_unit_test(test_splits_large_jobs),     cmocka_unit_test(test_errors_reach_every_step),
      cmocka_unit_test(test_cancelled_steps_leave), cmocka_unit_test(test_queues_are_full),
      cmocka_unit_test(test_ends_who_waits),        cmocka_unit_test(test_many_threads)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
