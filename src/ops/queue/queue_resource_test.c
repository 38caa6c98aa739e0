// queue_resource_test.c — Queues: order, capacity, batches, closing, cancellation, and many threads
// at once.

#include "ops/queue/queue_resource.h"

#include <sched.h>

#include "testing/cmocka.h"

// A kernel call that somebody else may finish.
typedef struct call_t {
  weir_kernel_ctx_t ctx;
  weir_node_def_t node;
  weir_step_t* step;
  weir_value_t inputs[2];
  weir_value_t outputs[2];
  weir_dtype_t types[2];
  atomic_int done_count;
  weir_status_t* status;
} call_t;

static weir_pool_t* pool;
static weir_device_t* device;

static int set_up(void** state) {
  (void)state;
  assert_null(weir_pool_create(1, &pool));
  assert_null(weir_cpu_device_create("", 0, pool, &device));
  return 0;
}

static int tear_down(void** state) {
  (void)state;
  weir_device_release(device);
  weir_pool_destroy(pool);
  return 0;
}

static void on_done(void* arg, weir_status_t* take_status) {
  call_t* call = arg;
  call->status = take_status;
  atomic_fetch_add(&call->done_count, 1);
}

static weir_done_t done_of(call_t* call) { return (weir_done_t){.fn = on_done, .arg = call}; }

static void call_init(call_t* call, weir_step_t* step, int inputs, int outputs) {
  memset(call, 0, sizeof(*call));
  call->types[0] = call->types[1] = WEIR_DTYPE_INT64;
  call->node = (weir_node_def_t){.name = "call",
                                 .op_name = "Call",
                                 .output_types = call->types,
                                 .input_types = call->types,
                                 .input_count = inputs,
                                 .output_count = outputs};
  call->ctx = (weir_kernel_ctx_t){.node = &call->node,
                                  .inputs = call->inputs,
                                  .outputs = call->outputs,
                                  .device = device,
                                  .step = step,
                                  .input_count = inputs,
                                  .output_count = outputs};
}

static void call_free(call_t* call) {
  for (int i = 0; i < 2; ++i) {
    weir_value_release(&call->inputs[i]);
    weir_value_release(&call->outputs[i]);
  }
  weir_status_destroy(call->status);
}

static void assert_ok(const call_t* call) {
  assert_int_equal(atomic_load(&call->done_count), 1);
  if (call->status) fail_msg("%s", weir_status_message(call->status));
}

static void assert_failed(const call_t* call, weir_code_t code, const char* text) {
  assert_int_equal(atomic_load(&call->done_count), 1);
  assert_int_equal(weir_status_code(call->status), code);
  if (!strstr(weir_status_message(call->status), text))
    fail_msg("%s", weir_status_message(call->status));
}

static weir_queue_t* make_queue(weir_queue_policy_t policy, int64_t capacity, int64_t min_after) {
  weir_queue_t* queue = NULL;
  static const weir_dtype_t types[2] = {WEIR_DTYPE_INT64, WEIR_DTYPE_INT64};
  const weir_shape_t* shapes[2] = {&weir_shape_scalar, &weir_shape_scalar};
  weir_queue_config_t config = {.policy = policy,
                                .name = "q",
                                .component_count = policy == WEIR_QUEUE_PRIORITY ? 2 : 1,
                                .types = types,
                                .shapes = shapes,
                                .capacity = capacity,
                                .min_after_dequeue = min_after,
                                .seed = 1,
                                .seed2 = 2};
  assert_null(weir_queue_create(&config, &queue));
  return queue;
}

static void enqueue(weir_queue_t* queue, call_t* call, weir_step_t* step, int64_t value) {
  call_init(call, step, 1, 0);
  assert_null(weir_tensor_create_from(WEIR_DTYPE_INT64, 0, NULL, &value, &call->inputs[0].tensor));
  weir_queue_enqueue(queue, &call->ctx, 0, false, done_of(call));
}

static void enqueue_many(weir_queue_t* queue, call_t* call, weir_step_t* step,
                         const int64_t* values, int64_t count) {
  call_init(call, step, 1, 0);
  assert_null(
      weir_tensor_create_from(WEIR_DTYPE_INT64, 1, &count, values, &call->inputs[0].tensor));
  weir_queue_enqueue(queue, &call->ctx, 0, true, done_of(call));
}

static void dequeue(weir_queue_t* queue, call_t* call, weir_step_t* step, int64_t count,
                    bool is_up_to) {
  call_init(call, step, 0, 1);
  weir_queue_dequeue(queue, &call->ctx, count, is_up_to, done_of(call));
}

static int64_t value_of(const call_t* call, int64_t i) {
  assert_ok(call);
  return WEIR_TENSOR_DATA(call->outputs[0].tensor, int64_t)[i];
}

static void step_init(weir_step_t* step) {
  memset(step, 0, sizeof(*step));
  assert_null(weir_cancel_create(NULL, &step->cancel));
}

static void put(weir_queue_t* queue, weir_step_t* step, int64_t value) {
  call_t call;
  enqueue(queue, &call, step, value);
  assert_ok(&call);
  call_free(&call);
}

static int64_t get(weir_queue_t* queue, weir_step_t* step) {
  call_t call;
  dequeue(queue, &call, step, -1, false);
  int64_t value = value_of(&call, 0);
  call_free(&call);
  return value;
}

static void close_queue(weir_queue_t* queue, call_t* call, weir_step_t* step, bool cancels) {
  call_init(call, step, 0, 0);
  weir_queue_close(queue, &call->ctx, cancels, done_of(call));
}

static void test_fifo(void** state) {
  (void)state;
  weir_step_t step;
  step_init(&step);
  weir_queue_t* queue = make_queue(WEIR_QUEUE_FIFO, -1, 0);
  for (int round = 0; round < 5; ++round) {
    for (int64_t i = 0; i < 40; ++i) put(queue, &step, i);
    assert_int_equal(weir_queue_size(queue), 40);
    for (int64_t i = 0; i < 40; ++i) assert_int_equal(get(queue, &step), i);
  }
  weir_resource_release((weir_resource_t*)queue);
  weir_cancel_destroy(step.cancel);
}

static void test_blocking_and_batches(void** state) {
  (void)state;
  weir_step_t step;
  call_t a, b, c;
  step_init(&step);
  weir_queue_t* queue = make_queue(WEIR_QUEUE_FIFO, 2, 0);
  enqueue_many(queue, &a, &step, (const int64_t[]){1, 2, 3, 4, 5}, 5);
  assert_int_equal(atomic_load(&a.done_count), 0);  // two of five fit
  assert_int_equal(weir_queue_size(queue), 2);
  dequeue(queue, &b, &step, 4, false);  // more than the capacity
  assert_ok(&a);
  for (int64_t i = 0; i < 4; ++i) assert_int_equal(value_of(&b, i), i + 1);
  dequeue(queue, &c, &step, 2, false);
  assert_int_equal(atomic_load(&c.done_count), 0);
  put(queue, &step, 6);
  assert_int_equal(value_of(&c, 0), 5);
  assert_int_equal(value_of(&c, 1), 6);
  call_free(&a);
  call_free(&b);
  call_free(&c);
  dequeue(queue, &c, &step, 0, false);
  assert_ok(&c);
  assert_int_equal(c.outputs[0].tensor->dims[0], 0);
  call_free(&c);
  weir_resource_release((weir_resource_t*)queue);
  weir_cancel_destroy(step.cancel);
}

static void test_close(void** state) {
  (void)state;
  weir_step_t step;
  call_t a, b, c, d;
  step_init(&step);
  weir_queue_t* queue = make_queue(WEIR_QUEUE_FIFO, 2, 0);
  enqueue_many(queue, &a, &step, (const int64_t[]){1, 2, 3}, 3);
  close_queue(queue, &b, &step, false);
  assert_int_equal(atomic_load(&b.done_count), 0);  // after the enqueue that waits
  assert_false(weir_queue_is_closed(queue));
  assert_int_equal(get(queue, &step), 1);
  assert_ok(&a);
  assert_ok(&b);
  assert_true(weir_queue_is_closed(queue));
  enqueue(queue, &c, &step, 9);
  assert_failed(&c, WEIR_CANCELLED, "FIFOQueue 'q' is closed.");
  dequeue(queue, &d, &step, 3, false);
  assert_failed(&d, WEIR_OUT_OF_RANGE,
                "is closed and has insufficient elements (requested 3, current size 2)");
  call_free(&d);
  dequeue(queue, &d, &step, 3, true);
  assert_int_equal(value_of(&d, 0), 2);
  assert_int_equal(d.outputs[0].tensor->dims[0], 2);
  call_free(&d);
  dequeue(queue, &d, &step, 3, true);
  assert_failed(&d, WEIR_OUT_OF_RANGE, "requested 3, current size 0");
  call_free(&d);
  dequeue(queue, &d, &step, -1, false);
  assert_failed(&d, WEIR_OUT_OF_RANGE, "(requested 1, current size 0)");
  call_free(&a);
  call_free(&b);
  call_free(&c);
  call_free(&d);
  close_queue(queue, &a, &step, false);
  assert_failed(&a, WEIR_CANCELLED, "already closed");
  call_free(&a);
  weir_resource_release((weir_resource_t*)queue);
  weir_cancel_destroy(step.cancel);
}

static void test_close_cancels(void** state) {
  (void)state;
  weir_step_t step;
  call_t a, b, c;
  step_init(&step);
  weir_queue_t* queue = make_queue(WEIR_QUEUE_FIFO, 1, 0);
  enqueue_many(queue, &a, &step, (const int64_t[]){1, 2}, 2);
  close_queue(queue, &b, &step, true);
  assert_failed(&a, WEIR_CANCELLED, "Enqueue operation was cancelled");
  assert_ok(&b);
  dequeue(queue, &c, &step, 2, true);
  assert_int_equal(value_of(&c, 0), 1);
  call_free(&a);
  call_free(&b);
  call_free(&c);
  dequeue(queue, &c, &step, -1, false);
  assert_failed(&c, WEIR_OUT_OF_RANGE, "insufficient");
  call_free(&c);
  weir_resource_release((weir_resource_t*)queue);
  weir_cancel_destroy(step.cancel);
}

// A waiting batch that its step cancels gives back what it took; a partly served one that the close
// fails, too.
static void test_cancel(void** state) {
  (void)state;
  weir_step_t step, other;
  call_t a, b;
  step_init(&step);
  step_init(&other);
  weir_queue_t* queue = make_queue(WEIR_QUEUE_FIFO, -1, 0);
  put(queue, &step, 1);
  dequeue(queue, &a, &other, 3, false);
  put(queue, &step, 2);
  assert_int_equal(weir_queue_size(queue), 0);
  dequeue(queue, &b, &step, 2, false);  // behind it
  assert_int_equal(atomic_load(&b.done_count), 0);
  weir_cancel_start(other.cancel);
  assert_failed(&a, WEIR_CANCELLED, "Dequeue operation was cancelled");
  assert_int_equal(value_of(&b, 0), 1);
  assert_int_equal(value_of(&b, 1), 2);
  call_free(&a);
  call_free(&b);
  dequeue(queue, &a, &other, -1, false);  // cancelled before it came
  assert_failed(&a, WEIR_CANCELLED, "cancelled");
  call_free(&a);
  put(queue, &step, 7);
  dequeue(queue, &a, &step, 2, false);
  close_queue(queue, &b, &step, false);
  assert_failed(&a, WEIR_OUT_OF_RANGE, "requested 1, current size 0");
  assert_int_equal(weir_queue_size(queue), 1);
  assert_int_equal(get(queue, &step), 7);
  call_free(&a);
  call_free(&b);
  weir_resource_release((weir_resource_t*)queue);
  weir_cancel_destroy(step.cancel);
  weir_cancel_destroy(other.cancel);
}

static void test_shuffle(void** state) {
  (void)state;
  weir_step_t step;
  call_t a, b;
  step_init(&step);
  weir_queue_t* queue = make_queue(WEIR_QUEUE_SHUFFLE, 50, 5);
  // What TensorFlow's queue gives for these seeds.
  static const int64_t expected[15] = {19, 7, 6, 1, 3, 16, 14, 11, 5, 13, 4, 2, 8, 18, 9};
  int64_t sum = 0;
  for (int64_t i = 0; i < 20; ++i) put(queue, &step, i);
  for (int64_t i = 0; i < 15; ++i) {
    int64_t value = get(queue, &step);
    assert_int_equal(value, expected[i]);
    sum += value;
  }
  dequeue(queue, &a, &step, -1, false);  // five must stay
  assert_int_equal(atomic_load(&a.done_count), 0);
  close_queue(queue, &b, &step, false);
  sum += value_of(&a, 0);
  for (int i = 0; i < 4; ++i) sum += get(queue, &step);
  assert_int_equal(sum, 190);
  call_free(&a);
  call_free(&b);
  weir_resource_release((weir_resource_t*)queue);
  weir_cancel_destroy(step.cancel);
}

static void test_priority(void** state) {
  (void)state;
  weir_step_t step;
  step_init(&step);
  weir_queue_t* queue = make_queue(WEIR_QUEUE_PRIORITY, -1, 0);
  for (int64_t i = 0; i < 100; ++i) {
    call_t call;
    int64_t priority = i * 37 % 10;
    call_init(&call, &step, 2, 0);
    assert_null(
        weir_tensor_create_from(WEIR_DTYPE_INT64, 0, NULL, &priority, &call.inputs[0].tensor));
    assert_null(weir_tensor_create_from(WEIR_DTYPE_INT64, 0, NULL, &i, &call.inputs[1].tensor));
    weir_queue_enqueue(queue, &call.ctx, 0, false, done_of(&call));
    assert_ok(&call);
    call_free(&call);
  }
  int64_t last = -1, last_value = -1;
  for (int64_t i = 0; i < 100; ++i) {
    call_t call;
    call_init(&call, &step, 0, 2);
    weir_queue_dequeue(queue, &call.ctx, -1, false, done_of(&call));
    int64_t priority = value_of(&call, 0);
    int64_t value = WEIR_TENSOR_DATA(call.outputs[1].tensor, int64_t)[0];
    assert_true(priority > last || (priority == last && value > last_value));
    last = priority;
    last_value = value;
    call_free(&call);
  }
  weir_resource_release((weir_resource_t*)queue);
  weir_cancel_destroy(step.cancel);
}

static void test_padding(void** state) {
  (void)state;
  weir_step_t step;
  call_t call;
  weir_queue_t* queue = NULL;
  weir_arena_t arena = {0};
  step_init(&step);
  static const weir_dtype_t types[1] = {WEIR_DTYPE_INT64};
  const weir_shape_t* shapes[1] = {weir_shape_make(&arena, 2, (const int64_t[]){-1, -1})};
  weir_queue_config_t config = {.policy = WEIR_QUEUE_PADDING,
                                .name = "q",
                                .component_count = 1,
                                .types = types,
                                .shapes = shapes,
                                .capacity = -1};
  assert_null(weir_queue_create(&config, &queue));
  static const int64_t values[] = {1, 2, 3, 4, 5, 6};
  static const int64_t dims[2][2] = {{2, 3}, {3, 1}};
  for (int i = 0; i < 2; ++i) {
    call_init(&call, &step, 1, 0);
    assert_null(
        weir_tensor_create_from(WEIR_DTYPE_INT64, 2, dims[i], values, &call.inputs[0].tensor));
    weir_queue_enqueue(queue, &call.ctx, 0, false, done_of(&call));
    assert_ok(&call);
    call_free(&call);
  }
  dequeue(queue, &call, &step, 2, false);
  static const int64_t expected[] = {1, 2, 3, 4, 5, 6, 0, 0, 0, 1, 0, 0, 2, 0, 0, 3, 0, 0};
  for (int64_t i = 0; i < 18; ++i) assert_int_equal(value_of(&call, i), expected[i]);
  call_free(&call);
  weir_resource_release((weir_resource_t*)queue);
  weir_cancel_destroy(step.cancel);
  weir_arena_free(&arena);
}

static void test_bad_tuples(void** state) {
  (void)state;
  weir_step_t step;
  call_t call;
  step_init(&step);
  weir_queue_t* queue = make_queue(WEIR_QUEUE_FIFO, -1, 0);
  enqueue_many(queue, &call, &step, (const int64_t[]){1, 2}, 2);
  call_free(&call);
  call_init(&call, &step, 1, 0);
  assert_null(weir_tensor_create_from(WEIR_DTYPE_INT64, 1, (const int64_t[]){1},
                                      (const int64_t[]){5}, &call.inputs[0].tensor));
  weir_queue_enqueue(queue, &call.ctx, 0, false, done_of(&call));
  assert_failed(&call, WEIR_INVALID_ARGUMENT,
                "Shape mismatch in tuple component 0. Expected [], got [1]");
  call_free(&call);
  call_init(&call, &step, 1, 0);
  assert_null(weir_tensor_create_from(WEIR_DTYPE_FLOAT, 0, NULL, (const float[]){5},
                                      &call.inputs[0].tensor));
  weir_queue_enqueue(queue, &call.ctx, 0, false, done_of(&call));
  assert_failed(&call, WEIR_INVALID_ARGUMENT, "Type mismatch");
  call_free(&call);
  weir_resource_release((weir_resource_t*)queue);
  weir_cancel_destroy(step.cancel);
}

// ---- a long chain of waiters, answered one by the other: the stack must not grow ----
typedef struct chain_t {
  call_t call;
  weir_queue_t* queue;
  struct chain_t* next;
} chain_t;

static void on_chain(void* arg, weir_status_t* take_status) {
  chain_t* link = arg;
  assert_null(take_status);
  atomic_fetch_add(&link->call.done_count, 1);
  if (!link->next) return;
  call_t call;
  enqueue(link->queue, &call, link->call.ctx.step, 1);
  assert_ok(&call);
  call_free(&call);
}

static void test_chain(void** state) {
  (void)state;
  enum { LINKS = 200000 };
  weir_step_t step;
  step_init(&step);
  weir_queue_t* queue = make_queue(WEIR_QUEUE_FIFO, -1, 0);
  chain_t* links = weir_calloc(LINKS, sizeof(*links));
  assert_non_null(links);
  for (int i = 0; i < LINKS; ++i) {
    links[i].queue = queue;
    links[i].next = i + 1 < LINKS ? &links[i + 1] : NULL;
    call_init(&links[i].call, &step, 0, 1);
    weir_queue_dequeue(queue, &links[i].call.ctx, -1, false,
                       (weir_done_t){.fn = on_chain, .arg = &links[i]});
  }
  put(queue, &step, 1);
  for (int i = 0; i < LINKS; ++i) {
    assert_int_equal(atomic_load(&links[i].call.done_count), 1);
    call_free(&links[i].call);
  }
  weir_free(links);
  weir_resource_release((weir_resource_t*)queue);
  weir_cancel_destroy(step.cancel);
}

// ---- threads ----
typedef struct worker_t {
  weir_queue_t* queue;
  int64_t sum;
  int count;
} worker_t;

static void wait_for(call_t* call) {
  while (atomic_load(&call->done_count) == 0) sched_yield();
}

static void* produce(void* arg) {
  worker_t* w = arg;
  weir_step_t step;
  step_init(&step);
  for (int i = 0; i < w->count; ++i) {
    call_t call;
    enqueue(w->queue, &call, &step, i);
    wait_for(&call);
    call_free(&call);
  }
  weir_cancel_destroy(step.cancel);
  return NULL;
}

static void* consume(void* arg) {
  worker_t* w = arg;
  for (int i = 0; i < w->count;) {
    weir_step_t step;
    call_t call;
    step_init(&step);
    dequeue(w->queue, &call, &step, 2, false);
    if (i % 8 == 0) weir_cancel_start(step.cancel);  // races with being served
    wait_for(&call);
    if (!call.status) {
      w->sum += value_of(&call, 0) + value_of(&call, 1);
      i += 2;
    }
    call_free(&call);
    weir_cancel_destroy(step.cancel);
  }
  return NULL;
}

static void test_threads(void** state) {
  (void)state;
  enum { PAIRS = 3, COUNT = 2000 };
  weir_queue_t* queue = make_queue(WEIR_QUEUE_FIFO, 3, 0);
  worker_t workers[2 * PAIRS];
  pthread_t threads[2 * PAIRS];
  for (int i = 0; i < 2 * PAIRS; ++i) {
    workers[i] = (worker_t){.queue = queue, .count = COUNT};
    assert_int_equal(pthread_create(&threads[i], NULL, i < PAIRS ? produce : consume, &workers[i]),
                     0);
  }
  int64_t sum = 0;
  for (int i = 0; i < 2 * PAIRS; ++i) {
    pthread_join(threads[i], NULL);
    sum += workers[i].sum;
  }
  assert_int_equal(sum, (int64_t)PAIRS * COUNT * (COUNT - 1) / 2);
  assert_int_equal(weir_queue_size(queue), 0);
  weir_resource_release((weir_resource_t*)queue);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_fifo),       cmocka_unit_test(test_blocking_and_batches),
      cmocka_unit_test(test_close),      cmocka_unit_test(test_close_cancels),
      cmocka_unit_test(test_cancel),     cmocka_unit_test(test_shuffle),
      cmocka_unit_test(test_priority),   cmocka_unit_test(test_padding),
      cmocka_unit_test(test_bad_tuples), cmocka_unit_test(test_chain),
      cmocka_unit_test(test_threads),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
