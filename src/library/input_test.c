// input_test.c — Coordinators, queue runners, pipelines over record files, batchers.
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "testing/tensors.h"
#include "weir/weir.h"

// ---- coordinators ----

static weir_status_t* count_until_stop(weir_coordinator_t* c, void* arg) {
  while (!weir_coordinator_wait(c, 1)) atomic_fetch_add((atomic_int*)arg, 1);
  return NULL;
}

static weir_status_t* fail_at_once(weir_coordinator_t* c, void* arg) {
  (void)c;
  return WEIR_STATUS(DATA_LOSS, "%s", (const char*)arg);
}

static weir_status_t* end_of_data(weir_coordinator_t* c, void* arg) {
  (void)c, (void)arg;
  return WEIR_STATUS(OUT_OF_RANGE, "no more");
}

static weir_status_t* sleep_till_told(weir_coordinator_t* c, void* arg) {
  (void)c;
  while (!atomic_load((atomic_int*)arg)) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
  return NULL;
}

static void test_coordinator_stops_threads(void** state) {
  (void)state;
  weir_coordinator_t* c = NULL;
  atomic_int count = 0;
  check_ok(weir_coordinator_create(&c));
  for (int i = 0; i < 3; ++i) check_ok(weir_coordinator_start(c, count_until_stop, &count));
  while (atomic_load(&count) < 10) assert_false(weir_coordinator_wait(c, 1));
  assert_false(weir_coordinator_should_stop(c));
  weir_coordinator_request_stop(c, NULL);
  assert_true(weir_coordinator_should_stop(c));
  assert_true(weir_coordinator_wait(c, 0));
  check_ok(weir_coordinator_join(c, -1));
  weir_coordinator_destroy(c);
  weir_coordinator_destroy(NULL);
}

static void test_coordinator_keeps_the_first_error(void** state) {
  (void)state;
  weir_coordinator_t* c = NULL;
  atomic_int count = 0;
  check_ok(weir_coordinator_create(&c));
  check_ok(weir_coordinator_start(c, count_until_stop, &count));
  check_ok(weir_coordinator_start(c, fail_at_once, "first"));
  assert_true(weir_coordinator_wait(c, 60000));
  weir_coordinator_request_stop(c, WEIR_STATUS(INTERNAL, "second"));
  check_error(weir_coordinator_join(c, -1), WEIR_DATA_LOSS, "first");
  check_ok(weir_coordinator_join(c, -1));  // reported once
  weir_coordinator_destroy(c);
}

static void test_coordinator_end_of_data(void** state) {
  (void)state;
  weir_coordinator_t* c = NULL;
  check_ok(weir_coordinator_create(&c));
  check_ok(weir_coordinator_start(c, end_of_data, NULL));
  check_ok(weir_coordinator_join(c, -1));
  assert_true(weir_coordinator_should_stop(c));
  weir_coordinator_destroy(c);
}

static void test_coordinator_grace(void** state) {
  (void)state;
  weir_coordinator_t* c = NULL;
  atomic_int is_told = 0;
  check_ok(weir_coordinator_create(&c));
  check_ok(weir_coordinator_start(c, sleep_till_told, &is_told));
  weir_coordinator_request_stop(c, NULL);
  check_error(weir_coordinator_join(c, 1), WEIR_DEADLINE_EXCEEDED, "1 threads still run");
  atomic_store(&is_told, 1);
  check_ok(weir_coordinator_join(c, -1));
  weir_coordinator_destroy(c);
}

// ---- pipelines ----

enum { FILES = 2, RECORDS = 7 };

typedef struct pipeline_t {
  char directory[64];
  char paths[FILES][96];
  const char* names[FILES];
  weir_graph_t* graph;
  weir_session_t* session;
  weir_coordinator_t* coordinator;
  weir_scope_t* s;
} pipeline_t;

// Files of Examples {id: int, x: [id, id + 0.5], text: "t<id>"}, ids 0 … 13.
static pipeline_t open_pipeline(void) {
  pipeline_t p = {.directory = "/tmp/weir_input_XXXXXX"};
  assert_non_null(mkdtemp(p.directory));
  weir_example_t* example = NULL;
  check_ok(weir_example_create(&example));
  for (int f = 0; f < FILES; ++f) {
    weir_record_writer_t* writer = NULL;
    snprintf(p.paths[f], sizeof(p.paths[f]), "%s/%d.tfrecord", p.directory, f);
    check_ok(weir_record_writer_create(p.paths[f], &writer));
    for (int i = 0; i < RECORDS; ++i) {
      const int64_t id = f * RECORDS + i;
      const float x[] = {(float)id, (float)id + 0.5f};
      char text[16];
      snprintf(text, sizeof(text), "t%lld", (long long)id);
      weir_example_clear(example);
      weir_example_ints(example, "id", &id, 1);
      weir_example_floats(example, "x", x, 2);
      weir_example_bytes(example, "text", text, strlen(text));
      check_ok(weir_example_write(example, writer));
    }
    check_ok(weir_record_writer_flush(writer));
    check_ok(weir_record_writer_close(writer));
  }
  weir_example_destroy(example);
  check_ok(weir_graph_create(&p.graph));
  p.s = weir_scope_create(p.graph);
  return p;
}

// Finishes the scope and starts every runner.
static void start(pipeline_t* p) {
  weir_queue_runner_t runners[8];
  const int count = weir_queue_runners(p->s, runners, 8);
  assert_in_range(count, 1, 8);
  check_ok(weir_scope_finish(p->s));
  check_ok(weir_session_create(p->graph, NULL, &p->session));
  check_ok(weir_coordinator_create(&p->coordinator));
  for (int i = 0; i < count; ++i)
    check_ok(weir_queue_runner_start(&runners[i], p->session, p->coordinator));
}

static void close_pipeline(pipeline_t* p) {
  weir_coordinator_request_stop(p->coordinator, NULL);
  check_ok(weir_coordinator_join(p->coordinator, -1));
  weir_coordinator_destroy(p->coordinator);
  weir_session_destroy(p->session);
  weir_graph_release(p->graph);
  for (int f = 0; f < FILES; ++f) assert_int_equal(remove(p->paths[f]), 0);
  assert_int_equal(rmdir(p->directory), 0);
}

static const char* const* names_of(pipeline_t* p) {
  for (int f = 0; f < FILES; ++f) p->names[f] = p->paths[f];
  return p->names;
}

// Runs until OUT_OF_RANGE; counts each id, checks the other features, returns the batches.
static int drain(pipeline_t* p, const weir_edge_t* parsed, int* counts, int64_t* order) {
  int batches = 0, total = 0;
  weir_step_spec_t spec = {.fetches = parsed, .fetch_count = 3};
  for (;; ++batches) {
    weir_tensor_t* r[3] = {NULL};
    weir_status_t* status = weir_session_run(p->session, &spec, r);
    if (status) {
      check_error(status, WEIR_OUT_OF_RANGE, "");
      return batches;
    }
    for (int64_t i = 0; i < weir_tensor_count(r[0]); ++i) {
      const int64_t id = ((const int64_t*)weir_tensor_data(r[0]))[i];
      const float* x = (const float*)weir_tensor_data(r[1]) + 2 * i;
      char text[16];
      size_t size = 0;
      snprintf(text, sizeof(text), "t%lld", (long long)id);
      assert_in_range(id, 0, FILES * RECORDS - 1);
      assert_float_equal(x[0], (float)id, 0);
      assert_float_equal(x[1], (float)id + 0.5f, 0);
      assert_memory_equal(weir_tensor_string(r[2], i, &size), text, strlen(text));
      assert_int_equal(size, strlen(text));
      ++counts[id];
      if (order) order[total++] = id;
    }
    for (int k = 0; k < 3; ++k) weir_tensor_release(r[k]);
  }
}

static void parse(pipeline_t* p, weir_edge_t records, weir_edge_t* out) {
  const weir_dense_feature_t features[] = {
      {.name = "id", .dtype = WEIR_DTYPE_INT64},
      {.name = "x", .dtype = WEIR_DTYPE_FLOAT, .shape = WEIR_SHAPE(2)},
      {.name = "text", .dtype = WEIR_DTYPE_STRING}};
  weir_parse_dense(p->s, records, features, 3, out);
}

static void test_two_epochs(void** state) {
  (void)state;
  pipeline_t p = open_pipeline();
  weir_edge_t batch, parsed[3];
  int counts[FILES * RECORDS] = {0};
  weir_edge_t files = weir_string_input_producer(p.s, names_of(&p), FILES, .epochs = 2, .seed = 3);
  weir_edge_t record = weir_read_records(p.s, files).value;
  weir_batch(p.s, &record, 1, 5, &batch, .allow_smaller_final_batch = true, .threads = 2);
  parse(&p, batch, parsed);
  start(&p);
  assert_int_equal(drain(&p, parsed, counts, NULL), 6);  // 28 = 5 * 5 + 3
  for (int i = 0; i < FILES * RECORDS; ++i) assert_int_equal(counts[i], 2);
  close_pipeline(&p);
}

static void test_in_order_without_remainder(void** state) {
  (void)state;
  pipeline_t p = open_pipeline();
  weir_edge_t batch, parsed[3];
  int counts[FILES * RECORDS] = {0};
  int64_t order[FILES * RECORDS];
  weir_edge_t files =
      weir_string_input_producer(p.s, names_of(&p), FILES, .epochs = 1, .no_shuffle = true);
  weir_edge_t record = weir_read_records(p.s, files).value;
  weir_batch(p.s, &record, 1, 4, &batch);
  parse(&p, batch, parsed);
  start(&p);
  assert_int_equal(drain(&p, parsed, counts, order), 3);
  for (int i = 0; i < 12; ++i) assert_int_equal(order[i], i);
  close_pipeline(&p);
}

static void test_shuffled(void** state) {
  (void)state;
  pipeline_t p = open_pipeline();
  weir_edge_t batch, parsed[3];
  int counts[FILES * RECORDS] = {0};
  int64_t order[FILES * RECORDS];
  weir_edge_t files =
      weir_string_input_producer(p.s, names_of(&p), FILES, .epochs = 1, .no_shuffle = true);
  weir_edge_t record = weir_read_records(p.s, files).value;
  weir_shuffle_batch(p.s, &record, 1, 7, &batch, .min_after_dequeue = 7, .seed = 5);
  parse(&p, batch, parsed);
  start(&p);
  assert_int_equal(drain(&p, parsed, counts, order), 2);
  bool is_sorted = true;
  for (int i = 0; i < FILES * RECORDS; ++i) {
    assert_int_equal(counts[i], 1);
    is_sorted = is_sorted && order[i] == i;
  }
  assert_false(is_sorted);
  close_pipeline(&p);
}

// Everything is full and blocked when the stop comes.
static void test_stop_wakes_blocked_threads(void** state) {
  (void)state;
  pipeline_t p = open_pipeline();
  weir_edge_t batch;
  weir_edge_t files = weir_string_input_producer(p.s, names_of(&p), FILES, .capacity = 2);
  weir_edge_t record = weir_read_records(p.s, files).value;
  weir_batch(p.s, &record, 1, 2, &batch, .capacity = 3, .threads = 3);
  start(&p);
  weir_step_spec_t spec = {WEIR_FETCHES(batch)};
  weir_tensor_t* result = NULL;
  check_ok(weir_session_run(p.session, &spec, &result));
  weir_tensor_release(result);
  close_pipeline(&p);
}

static void test_error_stops_the_pipeline(void** state) {
  (void)state;
  pipeline_t p = open_pipeline();
  const char* missing[] = {"/nonexistent/weir.tfrecord"};
  weir_edge_t batch;
  weir_edge_t files = weir_string_input_producer(p.s, missing, 1, .epochs = 1);
  weir_edge_t record = weir_read_records(p.s, files).value;
  weir_batch(p.s, &record, 1, 2, &batch);
  start(&p);
  assert_true(weir_coordinator_wait(p.coordinator, 60000));
  check_error(weir_coordinator_join(p.coordinator, -1), WEIR_NOT_FOUND, "weir.tfrecord");
  close_pipeline(&p);
}

static void test_padded_and_many(void** state) {
  (void)state;
  weir_graph_t* graph = NULL;
  weir_session_t* session = NULL;
  weir_coordinator_t* c = NULL;
  weir_queue_runner_t runners[2];
  check_ok(weir_graph_create(&graph));
  weir_scope_t* s = weir_scope_create(graph);
  // Vectors of 0, 1, 2 … elements from a counter, padded to the longest of the batch.
  weir_edge_t counter = weir_state_variable(s, "n", weir_const_int(s, 0));
  weir_node_t* increment =
      weir_assign_add_variable_op(s, weir_variable_handle(counter), weir_const_int(s, 1));
  weir_edge_t n = weir_read_variable_op(weir_scope_after(s, &increment, 1),
                                        weir_variable_handle(counter), WEIR_DTYPE_INT32);
  weir_edge_t range = weir_range(s, weir_const_int(s, 0), n, weir_const_int(s, 1));
  weir_edge_t padded, split;
  weir_batch(s, &range, 1, 3, &padded, .dynamic_pad = true);
  weir_edge_t pairs = weir_const_floats(s, WEIR_DIMS(2, 1), (const float[]){1, 2});
  weir_batch(s, &pairs, 1, 3, &split, .enqueue_many = true);
  weir_node_t* init = weir_initializer(s);
  assert_int_equal(weir_queue_runners(s, runners, 2), 2);
  check_ok(weir_scope_finish(s));
  check_ok(weir_session_create(graph, NULL, &session));
  check_ok(weir_session_run_target(session, init));
  check_ok(weir_coordinator_create(&c));
  for (int i = 0; i < 2; ++i) check_ok(weir_queue_runner_start(&runners[i], session, c));
  weir_step_spec_t spec = {WEIR_FETCHES(padded, split)};
  weir_tensor_t* r[2] = {NULL};
  check_ok(weir_session_run(session, &spec, r));
  assert_int_equal(weir_tensor_dim(r[0], 0), 3);
  assert_int_equal(weir_tensor_dim(r[0], 1), 3);
  const int32_t expected[] = {0, 0, 0, 0, 1, 0, 0, 1, 2};
  assert_memory_equal(weir_tensor_data(r[0]), expected, sizeof(expected));
  assert_int_equal(weir_tensor_rank(r[1]), 2);
  check_floats(r[1], 0, 1, 2, 1);
  for (int i = 0; i < 2; ++i) weir_tensor_release(r[i]);
  weir_coordinator_destroy(c);
  weir_session_destroy(session);
  weir_graph_release(graph);
}

static void test_pipeline_errors_stick(void** state) {
  (void)state;
  for (int kind = 0; kind < 3; ++kind) {
    weir_graph_t* graph = NULL;
    weir_edge_t out;
    check_ok(weir_graph_create(&graph));
    weir_scope_t* s = weir_scope_create(graph);
    weir_edge_t any = weir_placeholder(s, WEIR_DTYPE_FLOAT);
    if (kind == 0) weir_batch(s, &any, 1, 2, &out);
    if (kind == 1) weir_string_input_producer(s, NULL, 0);
    if (kind == 2) weir_batch(s, &any, 1, 0, &out);
    const char* text[] = {"must be known", "0 strings", "batches of 0"};
    check_error(weir_scope_finish(s), WEIR_INVALID_ARGUMENT, text[kind]);
    weir_graph_release(graph);
  }
}

static void test_runner_without_enqueue(void** state) {
  (void)state;
  check_error(weir_queue_runner_start(&(weir_queue_runner_t){0}, NULL, NULL), WEIR_INVALID_ARGUMENT,
              "no enqueue");
  weir_record_writer_t* writer = NULL;
  check_error(weir_record_writer_create("/nonexistent/x", &writer), WEIR_NOT_FOUND, "nonexistent");
  check_ok(weir_record_writer_close(NULL));
}

// ---- batchers ----

static void test_batcher_epochs(void** state) {
  (void)state;
  weir_tensor_t* x = FLOATS(0, 1, 2, 3, 4, 5, 6);
  const char* texts[] = {"0", "1", "2", "3", "4", "5", "6"};
  weir_tensor_t* names = NULL;
  check_ok(weir_tensor_create_strings(1, &(int64_t){7}, texts, NULL, &names));
  weir_batcher_t* d = NULL;
  check_ok(weir_batcher_create(((weir_tensor_t*[]){x, names}), 2, &d, .batch_size = 3, .epochs = 2,
                               .seed = 9));
  assert_int_equal(weir_batcher_batch_count(d), 3);
  assert_int_equal(weir_batcher_tensor_count(d), 2);
  float seen[2][7];
  int count = 0;
  weir_tensor_t* batch[2];
  for (int i = 0; i < 6; ++i) {
    assert_int_equal(weir_batcher_epoch(d), i / 3);
    check_ok(weir_batcher_next(d, batch));
    assert_int_equal(weir_tensor_dim(batch[0], 0), i % 3 == 2 ? 1 : 3);
    for (int64_t k = 0; k < weir_tensor_count(batch[0]); ++k, ++count) {
      size_t size = 0;
      seen[count / 7][count % 7] = ((const float*)weir_tensor_data(batch[0]))[k];
      assert_int_equal(*weir_tensor_string(batch[1], k, &size) - '0', seen[count / 7][count % 7]);
    }
    weir_tensor_release(batch[0]);
    weir_tensor_release(batch[1]);
  }
  check_error(weir_batcher_next(d, batch), WEIR_OUT_OF_RANGE, "2 epochs");
  int sums[2] = {0};
  for (int e = 0; e < 2; ++e)
    for (int i = 0; i < 7; ++i) sums[e] |= 1 << (int)seen[e][i];
  assert_int_equal(sums[0], 127);
  assert_int_equal(sums[1], 127);
  assert_memory_not_equal(seen[0], seen[1], sizeof(seen[0]));
  // Going back gives the same batches again.
  weir_batcher_seek(d, 4);
  check_ok(weir_batcher_next(d, batch));
  assert_memory_equal(weir_tensor_data(batch[0]), &seen[1][3], 3 * sizeof(float));
  weir_tensor_release(batch[0]);
  weir_tensor_release(batch[1]);
  weir_batcher_destroy(d);
  weir_tensor_release(x);
  weir_tensor_release(names);
}

static void test_batcher_in_order(void** state) {
  (void)state;
  weir_tensor_t *x = FLOATS(0, 1, 2, 3, 4), *batch = NULL;
  weir_batcher_t* d = NULL;
  check_ok(
      weir_batcher_create(&x, 1, &d, .batch_size = 2, .no_shuffle = true, .drop_remainder = true));
  const float expected[][2] = {{0, 1}, {2, 3}, {0, 1}};
  for (int i = 0; i < 3; ++i) {
    check_ok(weir_batcher_next(d, &batch));
    check_floats(batch, 0, expected[i][0], expected[i][1]);
    weir_tensor_release(batch);
  }
  weir_batcher_destroy(d);
  weir_tensor_t* shorter = FLOATS(1, 2);
  weir_tensor_t* scalar = make_float(1);
  check_error(weir_batcher_create(((weir_tensor_t*[]){x, shorter}), 2, &d), WEIR_INVALID_ARGUMENT,
              "has 2 rows");
  check_error(weir_batcher_create(&scalar, 1, &d), WEIR_INVALID_ARGUMENT, "scalar");
  check_error(weir_batcher_create(&x, 1, &d, .batch_size = 6, .drop_remainder = true),
              WEIR_INVALID_ARGUMENT, "do not make a batch");
  check_error(weir_batcher_create(&x, 1, &d, .batch_size = -1), WEIR_INVALID_ARGUMENT, "-1 rows");
  weir_tensor_release(x);
  weir_tensor_release(shorter);
  weir_tensor_release(scalar);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_coordinator_stops_threads),
                                     cmocka_unit_test(test_coordinator_keeps_the_first_error),
                                     cmocka_unit_test(test_coordinator_end_of_data),
                                     cmocka_unit_test(test_coordinator_grace),
                                     cmocka_unit_test(test_two_epochs),
                                     cmocka_unit_test(test_in_order_without_remainder),
                                     cmocka_unit_test(test_shuffled),
                                     cmocka_unit_test(test_stop_wakes_blocked_threads),
                                     cmocka_unit_test(test_error_stops_the_pipeline),
                                     cmocka_unit_test(test_padded_and_many),
                                     cmocka_unit_test(test_pipeline_errors_stick),
                                     cmocka_unit_test(test_runner_without_enqueue),
                                     cmocka_unit_test(test_batcher_epochs),
                                     cmocka_unit_test(test_batcher_in_order)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
