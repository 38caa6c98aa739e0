// dataset_test.c — Datasets from C: what each gives, which shapes are known of it, and misuse.
#include "weir/dataset.h"

#include <unistd.h>

#include "testing/bench.h"
#include "weir/file.h"
#include "weir/input.h"
#include "weir/trainer.h"

enum { MANY = 64 };

// ---- walking ----

// Elements of int64 as text, "1 2 3"; batches in brackets. Ends with " …" after MANY.
static char* walk(bench_t* b, weir_dataset_iterator_t it, weir_session_t* session, char* text) {
  weir_edge_t next[8];
  weir_dataset_get_next(b->s, it, next);
  check_built(b);
  if (it.initializer) check_ok(weir_session_run_target(session, it.initializer));
  *text = 0;
  for (int i = 0; i < MANY; ++i) {
    weir_tensor_t* value = NULL;
    char* shown = NULL;
    weir_status_t* status =
        weir_session_run(session, &(const weir_step_spec_t){WEIR_FETCHES(next[0])}, &value);
    if (status) {
      check_error(status, WEIR_OUT_OF_RANGE, "");
      return text;
    }
    check_ok(weir_tensor_to_text(value, 100, &shown));
    sprintf(text + strlen(text), "%s%s", i ? " " : "", shown);
    weir_buffer_free(shown);
    weir_tensor_release(value);
  }
  return strcat(text, " …");
}

static void check_elements_at(bench_t* b, weir_dataset_t d, const char* expected, int line) {
  char once[4096], again[4096];
  weir_session_t* session = NULL;
  check_built(b);
  weir_dataset_iterator_t one_shot = weir_dataset_one_shot(b->s, d);
  weir_dataset_iterator_t it = weir_dataset_iterator(b->s, d);
  check_ok(weir_session_create(b->graph, NULL, &session));
  walk(b, one_shot, session, once);
  walk(b, it, session, again);
  weir_session_destroy(session);
  if (!strcmp(once, expected) && !strcmp(again, expected)) return;
  print_error("line %d: expected '%s', got '%s' and '%s'\n", line, expected, once, again);
  fail();
}
#define check_elements(b, d, expected) check_elements_at(b, d, expected, __LINE__)

static void check_shape_at(weir_dataset_t d, int index, const char* expected, int line) {
  char text[256] = "?";
  assert_true(index < d.element.shapes.count);
  const weir_dims_t shape = d.element.shapes.items[index];
  if (shape.rank >= 0) *text = 0;
  for (int i = 0; i < shape.rank; ++i)
    sprintf(text + strlen(text), "%s%lld", i ? "," : "", (long long)shape.dims[i]);
  if (!strcmp(text, expected)) return;
  print_error("line %d: expected shape '%s', got '%s'\n", line, expected, text);
  fail();
}
#define check_shape(d, index, expected) check_shape_at(d, index, expected, __LINE__)

static weir_dataset_t range(bench_t* b, int64_t stop) {
  return weir_dataset_range(b->s, 0, stop, 1);
}

static weir_edge_t int64_const(weir_scope_t* s, int64_t value) {
  weir_tensor_t* tensor = make_tensor(WEIR_DTYPE_INT64, 0, NULL, &value);
  weir_edge_t edge = weir_const(s, tensor);
  weir_tensor_release(tensor);
  return edge;
}

// ---- sources ----

static void test_range(void** state) {
  bench_t* b = *state;
  check_elements(b, weir_dataset_range(b->s, 5, 0, -2), "5 3 1");
  check_elements(b, weir_dataset_range(b->s, 0, 0, 1), "");
}

static void test_tensors(void** state) {
  bench_t* b = *state;
  weir_edge_t both[] = {weir_const_ints(b->s, (int[]){1, 2, 3}, 3),
                        weir_const_floats(b->s, WEIR_DIMS(3, 2), (float[]){0, 1, 2, 3, 4, 5})};
  weir_dataset_t whole = weir_dataset_tensors(b->s, both, 2);
  check_elements(b, whole, "[1 2 3]");
  check_shape(whole, 1, "3,2");
  weir_dataset_t rows = weir_dataset_slices(b->s, both, 2);
  check_elements(b, rows, "1 2 3");
  check_shape(rows, 0, "");
  check_shape(rows, 1, "2");
  assert_int_equal(rows.element.types.items[1], WEIR_DTYPE_FLOAT);
}

static const char* file_in(char* path, const char* name) {
  sprintf(path, "%s/weir_dataset_test_%d_%s", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp",
          (int)getpid(), name);
  return path;
}

static void write_file(const char* path, const char* text) {
  FILE* file = fopen(path, "w");
  assert_non_null(file);
  fputs(text, file);
  fclose(file);
}

static void write_records(const char* path, const char* const* records, int count) {
  weir_record_writer_t* writer = NULL;
  check_ok(weir_record_writer_create(path, &writer));
  for (int i = 0; i < count; ++i)
    check_ok(weir_record_writer_write(writer, records[i], strlen(records[i])));
  check_ok(weir_record_writer_close(writer));
}

static void test_files(void** state) {
  bench_t* b = *state;
  char lines[256], records[256], pattern[256];
  write_file(file_in(lines, "a.txt"), "one\ntwo\nthree");
  write_records(file_in(records, "b.tfrecord"), (const char*[]){"un", "deux"}, 2);
  weir_edge_t name = weir_const_string(b->s, lines);
  check_elements(b, weir_dataset_lines(b->s, name), "\"one\" \"two\" \"three\"");
  check_elements(b, weir_dataset_fixed_length(b->s, name, 3, .header_bytes = 1, .footer_bytes = 3),
                 "\"ne\\n\" \"two\" \"\\nth\"");
  check_elements(b,
                 weir_dataset_records(b->s, weir_const_strings(b->s, (const char*[]){records}, 1)),
                 "\"un\" \"deux\"");
  weir_edge_t matched = weir_const_string(b->s, file_in(pattern, "*"));
  weir_dataset_t both = weir_dataset_files(b->s, matched, .no_shuffle = true);
  char expected[600];
  sprintf(expected, "\"%s\" \"%s\"", lines, records);
  check_elements(b, both, expected);
  check_shape(both, 0, "");
  check_elements(b, weir_dataset_take(b->s, weir_dataset_files(b->s, matched, .seed = 1), 0), "");
  unlink(lines);
  unlink(records);
}

// ---- functions ----

static void square_and_name(weir_scope_t* s, const weir_edge_t* x, weir_edge_t* results,
                            void* user) {
  (void)user;
  results[0] = weir_mul(s, x[0], x[0]);
  results[1] = weir_as_string(s, x[0]);
}

static void add_user(weir_scope_t* s, const weir_edge_t* x, weir_edge_t* results, void* user) {
  results[0] = weir_add_v2(s, x[0], *(weir_edge_t*)user);
}

static void test_map(void** state) {
  bench_t* b = *state;
  weir_dataset_t mapped = weir_dataset_map(b->s, range(b, 4), square_and_name, NULL, 2);
  check_elements(b, mapped, "0 1 4 9");
  assert_int_equal(mapped.element.types.count, 2);
  assert_int_equal(mapped.element.types.items[1], WEIR_DTYPE_STRING);
  check_shape(mapped, 1, "");
  check_elements(b, weir_dataset_map(b->s, range(b, 5), square_and_name, NULL, 2, .parallel = 3),
                 "0 1 4 9 16");
  check_elements(
      b, weir_dataset_map(b->s, range(b, 3), square_and_name, NULL, 2, .parallel = WEIR_AUTOTUNE),
      "0 1 4");
  weir_edge_t ten = int64_const(b->s, 10);
  check_elements(b, weir_dataset_map(b->s, range(b, 3), add_user, &ten, 1), "10 11 12");
}

// A value that is not known while the graph is built is captured, and is what it was when the
// iterator started.
static void test_map_captures(void** state) {
  bench_t* b = *state;
  weir_edge_t v = weir_state_variable(b->s, "v", int64_const(b->s, 5));
  weir_dataset_t d = weir_dataset_map(b->s, range(b, 3), add_user, &v, 1);
  weir_dataset_iterator_t it = weir_dataset_iterator(b->s, d);
  weir_node_t* init = weir_initializer(b->s);
  weir_node_t* change =
      weir_assign_variable_op(b->s, weir_variable_handle(v), int64_const(b->s, 70));
  weir_session_t* session = NULL;
  char text[256];
  check_built(b);
  check_ok(weir_session_create(b->graph, NULL, &session));
  check_ok(weir_session_run_target(session, init));
  assert_string_equal(walk(b, it, session, text), "5 6 7");
  check_ok(weir_session_run_target(session, change));
  assert_string_equal(walk(b, it, session, text), "70 71 72");
  weir_session_destroy(session);
  weir_dataset_one_shot(b->s, d);
  check_fails(b, (weir_edge_t){0}, "holds state that others share");
}

static weir_edge_t is_odd(weir_scope_t* s, const weir_edge_t* x, void* user) {
  weir_edge_t one = int64_const(s, 1);
  (void)user;
  return weir_equal(s, weir_bitwise_and(s, x[0], one), one);
}

static void test_filter(void** state) {
  bench_t* b = *state;
  check_elements(b, weir_dataset_filter(b->s, range(b, 6), is_odd, NULL), "1 3 5");
}

// [x, x + 1, …) of |user| elements, with a function inside a function that uses what is outside of
// both.
static weir_dataset_t from_element(weir_scope_t* s, const weir_edge_t* x, void* user) {
  weir_edge_t first = x[0];
  weir_dataset_t few = weir_dataset_range(s, 0, 3, 1);
  (void)user;
  return weir_dataset_map(s, few, add_user, &first, 1);
}

static void test_flat_map(void** state) {
  bench_t* b = *state;
  weir_dataset_t tens = weir_dataset_range(b->s, 0, 30, 10);
  weir_dataset_t flat = weir_dataset_flat_map(b->s, tens, from_element, NULL);
  check_elements(b, flat, "0 1 2 10 11 12 20 21 22");
  check_shape(flat, 0, "");
  check_elements(b, weir_dataset_interleave(b->s, tens, from_element, NULL, .cycle_length = 2),
                 "0 10 1 11 2 12 20 21 22");
  check_elements(b,
                 weir_dataset_interleave(b->s, tens, from_element, NULL, .cycle_length = 2,
                                         .block_length = 2, .parallel = 2),
                 "0 1 10 11 2 12 20 21 22");
}

// ---- batches ----

static void fill_x(weir_scope_t* s, const weir_edge_t* x, weir_edge_t* results, void* user) {
  weir_edge_t size = weir_expand_dims(s, x[0], weir_const_int(s, 0));
  (void)user;
  results[0] = weir_fill(s, size, x[0]);
}

static void test_batches(void** state) {
  bench_t* b = *state;
  weir_dataset_t d = weir_dataset_batch(b->s, range(b, 5), 2);
  check_elements(b, d, "[0 1] [2 3] [4]");
  check_shape(d, 0, "-1");
  d = weir_dataset_batch(b->s, range(b, 5), 2, .drop_remainder = true);
  check_elements(b, d, "[0 1] [2 3]");
  check_shape(d, 0, "2");
  weir_dataset_t ragged = weir_dataset_map(b->s, range(b, 4), fill_x, NULL, 1);
  check_shape(ragged, 0, "-1");
  d = weir_dataset_padded_batch(b->s, ragged, 2);
  check_elements(b, d, "[[0] [1]] [[2 2 0] [3 3 3]]");
  check_shape(d, 0, "-1,-1");
  weir_edge_t value = int64_const(b->s, -1);
  d = weir_dataset_padded_batch(b->s, ragged, 3, .shapes = WEIR_SHAPES(WEIR_SHAPE(3)),
                                .values = &value, .value_count = 1, .drop_remainder = true);
  check_elements(b, d, "[[-1 -1 -1] [1 -1 -1] [2 2 -1]]");
  check_shape(d, 0, "3,3");
}

// ---- order ----

static void test_order(void** state) {
  bench_t* b = *state;
  weir_dataset_t six = range(b, 6);
  check_elements(b, weir_dataset_take(b->s, six, 2), "0 1");
  check_elements(b, weir_dataset_take(b->s, six, -1), "0 1 2 3 4 5");
  check_elements(b, weir_dataset_skip(b->s, six, 4), "4 5");
  check_elements(b, weir_dataset_repeat(b->s, weir_dataset_take(b->s, six, 2), 3), "0 1 0 1 0 1");
  check_elements(b, weir_dataset_shard(b->s, six, 4, 1), "1 5");
  check_elements(b, weir_dataset_concatenate(b->s, weir_dataset_take(b->s, six, 1), six),
                 "0 0 1 2 3 4 5");
  check_elements(b, weir_dataset_cache(b->s, six, NULL), "0 1 2 3 4 5");
  check_elements(b, weir_dataset_prefetch(b->s, six, 2), "0 1 2 3 4 5");
  weir_dataset_t pair = weir_dataset_zip(
      b->s, (weir_dataset_t[]){weir_dataset_skip(b->s, six, 3), weir_dataset_batch(b->s, six, 2)},
      2);
  check_elements(b, pair, "3 4 5");
  assert_int_equal(pair.element.types.count, 2);
  check_shape(pair, 1, "-1");
  weir_dataset_t mixed =
      weir_dataset_concatenate(b->s, weir_dataset_batch(b->s, six, 2, .drop_remainder = true),
                               weir_dataset_batch(b->s, six, 3, .drop_remainder = true));
  check_shape(mixed, 0, "-1");
}

static void test_shuffle(void** state) {
  bench_t* b = *state;
  char first[256], second[256];
  weir_session_t* session = NULL;
  weir_dataset_t d = weir_dataset_shuffle(b->s, range(b, 10), 10, .seed = 3);
  weir_dataset_t same = weir_dataset_shuffle(b->s, range(b, 10), 10, .seed = 3, .is_same = true);
  weir_dataset_t twice = weir_dataset_repeat(b->s, same, 2);
  weir_dataset_iterator_t it = weir_dataset_iterator(b->s, d);
  weir_dataset_iterator_t it_twice = weir_dataset_iterator(b->s, twice);
  check_built(b);
  check_ok(weir_session_create(b->graph, NULL, &session));
  walk(b, it, session, first);
  assert_string_not_equal(first, "0 1 2 3 4 5 6 7 8 9");
  for (char digit = '0'; digit <= '9'; ++digit) assert_non_null(strchr(first, digit));
  walk(b, it_twice, session, second);
  assert_int_equal(strlen(second), 39);
  assert_memory_equal(second, second + 20, 19);
  weir_session_destroy(session);
}

static void test_restart(void** state) {
  bench_t* b = *state;
  char text[256];
  weir_session_t* session = NULL;
  weir_dataset_iterator_t it = weir_dataset_iterator(b->s, range(b, 2));
  weir_dataset_iterator_t other = it;
  other.initializer = weir_dataset_restart(b->s, it, weir_dataset_skip(b->s, range(b, 9), 7));
  weir_edge_t next;
  weir_dataset_get_next(b->s, it, &next);
  check_built(b);
  check_ok(weir_session_create(b->graph, NULL, &session));
  weir_tensor_t* none = NULL;
  check_error(weir_session_run(session, &(const weir_step_spec_t){WEIR_FETCHES(next)}, &none),
              WEIR_FAILED_PRECONDITION, "");
  assert_string_equal(walk(b, it, session, text), "0 1");
  assert_string_equal(walk(b, other, session, text), "7 8");
  assert_string_equal(walk(b, it, session, text), "0 1");
  weir_session_destroy(session);
}

// ---- training ----

static void to_pair(weir_scope_t* s, const weir_edge_t* x, weir_edge_t* results, void* user) {
  (void)user;
  results[0] = weir_cast(s, x[0], WEIR_DTYPE_FLOAT);
  results[1] = weir_mul(s, results[0], weir_const_float(s, 3));
}

// A line is fitted to batches of a dataset; the loop ends where the data does, and a second one,
// which resumes nothing, starts the iterator again.
static void test_fit(void** state) {
  bench_t* b = *state;
  weir_dataset_t d = weir_dataset_map(b->s, range(b, 4), to_pair, NULL, 2, .parallel = 2);
  d = weir_dataset_batch(b->s, weir_dataset_repeat(b->s, d, 50), 4, .drop_remainder = true);
  weir_dataset_iterator_t it = weir_dataset_iterator(b->s, weir_dataset_prefetch(b->s, d, 2));
  weir_edge_t batch[2], gradient;
  weir_dataset_get_next(b->s, it, batch);
  weir_edge_t w = weir_variable(b->s, "w", weir_const_float(b->s, 0));
  weir_edge_t miss = weir_sub(b->s, weir_mul(b->s, w, batch[0]), batch[1]);
  weir_edge_t axis = weir_const_ints(b->s, (int[]){0}, 1);
  weir_edge_t loss = weir_mean(b->s, weir_square(b->s, miss), axis);
  check_ok(weir_gradients(b->s, &loss, 1, &w, 1, NULL, &gradient));
  weir_node_t* step = weir_resource_apply_gradient_descent(b->s, weir_variable_handle(w),
                                                           weir_const_float(b->s, 0.1f), gradient);
  weir_node_t* init = weir_initializer(b->s);
  weir_session_t* session = NULL;
  weir_fit_result_t result;
  float value = 0;
  check_built(b);
  check_ok(weir_session_create(b->graph, NULL, &session));
  for (int i = 1; i <= 2; ++i) {
    check_ok(weir_fit(session, step, loss, &result, .init = i == 1 ? init : NULL,
                      .start = it.initializer, .is_quiet = true, .no_signals = true));
    assert_int_equal(result.reason, WEIR_STOP_DATA);
    assert_int_equal(result.step, 50);
  }
  check_ok(weir_session_fetch_float(session, w, &value));
  assert_true(value > 2.999f && value < 3.001f);
  weir_session_destroy(session);
}

// ---- misuse ----

static void check_refused(bench_t* b, weir_dataset_t d, const char* text) {
  check_fails(b, d.variant, text);
}

static void no_result(weir_scope_t* s, const weir_edge_t* x, weir_edge_t* results, void* user) {
  (void)s, (void)x, (void)results, (void)user;
}
static void make_variable(weir_scope_t* s, const weir_edge_t* x, weir_edge_t* results, void* user) {
  (void)x, (void)user;
  results[0] = weir_variable(s, "inside", weir_const_float(s, 1));
}
static weir_edge_t kept_edge;
static void keep_edge(weir_scope_t* s, const weir_edge_t* x, weir_edge_t* results, void* user) {
  (void)user;
  kept_edge = results[0] = weir_identity(s, x[0]);
}
static weir_edge_t no_truth(weir_scope_t* s, const weir_edge_t* x, void* user) {
  (void)s, (void)user;
  return x[0];
}
static weir_dataset_t no_dataset(weir_scope_t* s, const weir_edge_t* x, void* user) {
  (void)s, (void)x, (void)user;
  return (weir_dataset_t){0};
}

static void test_misuse_of_functions(void** state) {
  bench_t* b = *state;
  weir_dataset_t d = range(b, 3), none = {0};
  check_refused(b, weir_dataset_map(b->s, none, keep_edge, NULL, 1), "dataset_map: input 0");
  d = range(b, 3);
  check_refused(b, weir_dataset_map(b->s, d, NULL, NULL, 1), "fn is NULL");
  d = range(b, 3);
  check_refused(b, weir_dataset_map(b->s, d, keep_edge, NULL, 0), "0 results");
  d = range(b, 3);
  check_refused(b, weir_dataset_map(b->s, d, keep_edge, NULL, 1, .parallel = -2), "-2 calls");
  d = range(b, 3);
  check_refused(b, weir_dataset_map(b->s, d, no_result, NULL, 1), "result 0 is no edge");
  d = range(b, 3);
  check_refused(b, weir_dataset_map(b->s, d, make_variable, NULL, 1), "inside a function");
  d = range(b, 3);
  weir_edge_t text = weir_const_string(b->s, "a");
  check_refused(b, weir_dataset_map(b->s, d, add_user, &text, 1), "AddV2");
  d = range(b, 3);
  check_refused(b, weir_dataset_filter(b->s, d, no_truth, NULL), "no bool scalar");
  d = range(b, 3);
  check_refused(b, weir_dataset_filter(b->s, d, NULL, NULL), "fn is NULL");
  d = range(b, 3);
  check_refused(b, weir_dataset_flat_map(b->s, d, no_dataset, NULL), "dataset_flat_map: input 0");
  d = range(b, 3);
  check_refused(b, weir_dataset_interleave(b->s, d, from_element, NULL, .cycle_length = -3),
                "cycle_length is -3");
}

// An edge of a body is gone with it, and is not looked at where it is taken for one of the graph.
static void test_misuse_of_edges(void** state) {
  bench_t* b = *state;
  weir_graph_t* graph = NULL;
  check_ok(weir_graph_create(&graph));
  weir_scope_t* s = weir_scope_create(graph);
  weir_dataset_t other = weir_dataset_range(s, 0, 3, 1);
  check_ok(weir_scope_finish(s));
  other.element = range(b, 1).element;
  check_refused(b, weir_dataset_take(b->s, other, 1), "of another graph");
  weir_edge_t foreign = other.variant;
  weir_dataset_t d = range(b, 3);
  check_refused(b, weir_dataset_map(b->s, d, add_user, &foreign, 1), "of another graph");
  weir_graph_release(graph);
}

static void test_misuse_of_numbers(void** state) {
  bench_t* b = *state;
  weir_edge_t one = weir_const_int(b->s, 1), three = weir_const_ints(b->s, (int[]){1, 2, 3}, 3);
  weir_edge_t two = weir_const_ints(b->s, (int[]){1, 2}, 2), none = {0};
  check_refused(b, weir_dataset_range(b->s, 0, 1, 0), "step is 0");
  check_refused(b, weir_dataset_tensors(b->s, NULL, 1), "tensors is NULL");
  check_refused(b, weir_dataset_tensors(b->s, &one, 0), "0 tensors");
  check_refused(b, weir_dataset_tensors(b->s, &none, 1), "without a node");
  check_refused(b, weir_dataset_slices(b->s, &one, 1), "no rows");
  check_refused(b, weir_dataset_slices(b->s, (weir_edge_t[]){two, three}, 2), "3 rows");
  check_refused(b, weir_dataset_records(b->s, one), "string");
  check_refused(b, weir_dataset_lines(b->s, one, .buffer_size = -1), "negative");
  check_refused(b, weir_dataset_fixed_length(b->s, one, 0), "0 bytes");
  check_refused(b, weir_dataset_batch(b->s, range(b, 3), 0), "batches of 0");
  check_refused(b, weir_dataset_padded_batch(b->s, range(b, 3), 2, .values = &one), "0 values");
  check_refused(b,
                weir_dataset_padded_batch(b->s, range(b, 3), 2, .values = &one, .value_count = 1),
                "tensor 0 is int64, and is padded with int32");
  check_refused(
      b, weir_dataset_padded_batch(b->s, range(b, 3), 2, .shapes = WEIR_SHAPES(WEIR_SHAPE(4))),
      "rank 0, and is padded to rank 1");
  check_refused(b, weir_dataset_shuffle(b->s, range(b, 3), 0), "0 elements");
  check_refused(b, weir_dataset_take(b->s, range(b, 3), -2), "count is -2");
  check_refused(b, weir_dataset_shard(b->s, range(b, 3), 2, 2), "shard 2 of 2");
  check_refused(b, weir_dataset_zip(b->s, NULL, 1), "datasets is NULL");
  check_refused(b, weir_dataset_concatenate(b->s, range(b, 3), (weir_dataset_t){0}), "without");
  weir_dataset_t text = weir_dataset_lines(b->s, weir_const_string(b->s, "x"));
  check_refused(b, weir_dataset_concatenate(b->s, range(b, 3), text), "differ in their types");
  weir_edge_t fed = FED(b, INT32, 3);
  weir_dataset_one_shot(b->s, weir_dataset_slices(b->s, &fed, 1));
  check_fails(b, none, "must be fed");
  weir_dataset_get_next(b->s, (weir_dataset_iterator_t){0}, &none);
  check_fails(b, none, "dataset_get_next");
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {TEST(test_range),
                                     TEST(test_tensors),
                                     TEST(test_files),
                                     TEST(test_map),
                                     TEST(test_map_captures),
                                     TEST(test_filter),
                                     TEST(test_flat_map),
                                     TEST(test_batches),
                                     TEST(test_order),
                                     TEST(test_shuffle),
                                     TEST(test_restart),
                                     TEST(test_fit),
                                     TEST(test_misuse_of_functions),
                                     TEST(test_misuse_of_edges),
                                     TEST(test_misuse_of_numbers)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
