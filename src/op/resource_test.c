// resource_test.c — The resource manager, and variables as snapshots.
// cmocka.h needs the headers before it.
#include "op/resource.h"

#include <pthread.h>

#include "testing/cmocka.h"

typedef struct thing_t {
  weir_resource_t base;
  int* alive;
  int* closed;
} thing_t;

static void thing_destroy(weir_resource_t* resource) {
  --*((thing_t*)resource)->alive;
  weir_free(resource);
}

static void thing_close(weir_resource_t* resource) { ++*((thing_t*)resource)->closed; }

static const weir_resource_type_t thing_type = {
    .name = "Thing", .destroy = thing_destroy, .close = thing_close};
static const weir_resource_type_t other_type = {.name = "Other", .destroy = thing_destroy};

typedef struct counts_t {
  int alive;
  int closed;
  int created;
} counts_t;

static weir_status_t* thing_create(void* arg, weir_resource_t** out) {
  counts_t* counts = arg;
  thing_t* thing = weir_calloc(1, sizeof(*thing));
  weir_resource_init(&thing->base, &thing_type);
  thing->alive = &counts->alive;
  thing->closed = &counts->closed;
  ++counts->alive;
  ++counts->created;
  *out = &thing->base;
  return NULL;
}

static weir_view_t v(const char* text) { return weir_view_of(text); }

static void expect_code(weir_status_t* status, weir_code_t code, const char* text) {
  assert_int_equal(weir_status_code(status), code);
  if (!strstr(weir_status_message(status), text)) fail_msg("%s", weir_status_message(status));
  weir_status_destroy(status);
}

static void test_manager(void** state) {
  (void)state;
  counts_t counts = {0};
  weir_resources_t* m = NULL;
  weir_resource_t* a = NULL;
  weir_resource_t* b = NULL;
  assert_null(weir_resources_create("localhost", &m));
  expect_code(weir_resources_find(m, v(""), v("x"), &thing_type, &a), WEIR_NOT_FOUND,
              "Resource localhost/x/Thing does not exist");
  assert_null(
      weir_resources_find_or_create(m, v(""), v("x"), &thing_type, thing_create, &counts, &a));
  assert_null(weir_resources_find_or_create(m, v("localhost"), v("x"), &thing_type, thing_create,
                                            &counts, &b));
  assert_ptr_equal(a, b);
  assert_int_equal(counts.created, 1);
  expect_code(weir_resources_find(m, v(""), v("x"), &other_type, &b), WEIR_NOT_FOUND, "x/Other");
  expect_code(weir_resources_find(m, v("c"), v("x"), &thing_type, &b), WEIR_NOT_FOUND, "c/x");
  weir_resource_t* again = NULL;
  assert_null(thing_create(&counts, &again));
  expect_code(weir_resources_add(m, v(""), v("x"), again), WEIR_ALREADY_EXISTS,
              "localhost/x/Thing");
  assert_int_equal(counts.alive, 1);
  weir_resource_release(b);
  assert_null(weir_resources_remove(m, v(""), v("x"), &thing_type));
  assert_int_equal(counts.closed, 1);
  assert_int_equal(counts.alive, 1);  // |a| keeps it
  weir_resource_release(a);
  assert_int_equal(counts.alive, 0);
  expect_code(weir_resources_remove(m, v(""), v("x"), &thing_type), WEIR_NOT_FOUND, "x");
  weir_resources_destroy(m);
}

static void test_containers(void** state) {
  (void)state;
  counts_t counts = {0};
  weir_resources_t* m = NULL;
  weir_resource_t* r = NULL;
  char long_name[600];
  memset(long_name, 'n', sizeof(long_name) - 1);
  long_name[sizeof(long_name) - 1] = '\0';
  assert_null(weir_resources_create("localhost", &m));
  assert_null(thing_create(&counts, &r));
  assert_null(weir_resources_add(m, v("a"), v("x"), r));
  assert_null(thing_create(&counts, &r));
  assert_null(weir_resources_add(m, v("a"), v(long_name), r));
  assert_null(thing_create(&counts, &r));
  assert_null(weir_resources_add(m, v("ab"), v("x"), r));
  weir_strbuf_t text = {0};
  weir_resources_describe(m, &text);
  assert_non_null(strstr(text.data, "ab/x Thing"));
  weir_strbuf_free(&text);
  weir_resources_clear(m, v("a"));
  assert_int_equal(counts.alive, 1);
  weir_resources_destroy(m);
  assert_int_equal(counts.alive, 0);
  assert_int_equal(counts.closed, 3);
}

static weir_tensor_t* vector(float value) {
  const int64_t dims[] = {4};
  const float data[] = {value, value, value, value};
  weir_tensor_t* t = NULL;
  assert_null(weir_tensor_create_from(WEIR_DTYPE_FLOAT, 1, dims, data, &t));
  return t;
}

static void test_variable(void** state) {
  (void)state;
  weir_variable_t* variable = NULL;
  assert_null(weir_variable_create(WEIR_DTYPE_FLOAT, &weir_shape_unknown, &variable));
  assert_null(weir_variable_read(variable));
  weir_mutex_lock(&variable->mu);
  expect_code(weir_variable_make_sole_locked(variable, "w"), WEIR_FAILED_PRECONDITION,
              "Attempting to use uninitialized value w");
  weir_mutex_unlock(&variable->mu);
  assert_null(weir_variable_assign(variable, vector(1)));
  weir_tensor_t* snapshot = weir_variable_read(variable);
  weir_mutex_lock(&variable->mu);
  assert_null(weir_variable_make_sole_locked(variable, "w"));
  assert_ptr_not_equal(variable->tensor, snapshot);
  weir_tensor_t* own = variable->tensor;
  WEIR_TENSOR_DATA(own, float)[0] = 9;
  assert_null(weir_variable_make_sole_locked(variable, "w"));
  assert_ptr_equal(variable->tensor, own);  // nobody else holds it
  weir_mutex_unlock(&variable->mu);
  assert_true(WEIR_TENSOR_DATA(snapshot, float)[0] == 1);
  weir_tensor_release(snapshot);
  weir_resource_release(&variable->base);
}

static weir_tensor_t* left_element(weir_variable_t* variable, int64_t at) {
  weir_tensor_t* read = weir_variable_read(variable);
  weir_tensor_t* slice = NULL;
  assert_null(weir_tensor_slice(read, at, at + 1, &slice));
  weir_tensor_release(read);
  return slice;
}

static float renewed(weir_tensor_t** tensor) {
  assert_null(weir_tensor_renew(tensor));
  return WEIR_TENSOR_DATA(*tensor, float)[0];
}

static void add_to(weir_variable_t* variable, float value) {
  weir_mutex_lock(&variable->mu);
  assert_null(weir_variable_make_sole_locked(variable, "w"));
  for (int64_t k = 0; k < variable->tensor->count; ++k)
    WEIR_TENSOR_DATA(variable->tensor, float)[k] += value;
  weir_mutex_unlock(&variable->mu);
}

// What was read of a reference variable, and views of it, follow every write; a frozen result does
// not.
static void test_reads_of_references_follow(void** state) {
  (void)state;
  weir_variable_t* variable = NULL;
  assert_null(weir_variable_create_ref(WEIR_DTYPE_FLOAT, NULL, &variable));
  assert_null(weir_variable_assign(variable, vector(1)));
  weir_tensor_t* early = left_element(variable, 2);
  assert_false(weir_tensor_is_outdated(early));
  add_to(variable, 1);
  weir_tensor_t* late = left_element(variable, 1);
  weir_tensor_t* frozen = left_element(variable, 3);
  assert_null(weir_tensor_freeze(&frozen));
  add_to(variable, 1);
  assert_true(weir_tensor_is_outdated(early) && weir_tensor_is_outdated(late));
  assert_false(weir_tensor_is_outdated(frozen));
  assert_null(weir_variable_assign(variable, vector(7)));
  assert_true(renewed(&late) == 7 && renewed(&early) == 7);
  assert_false(weir_tensor_is_outdated(early));
  assert_true(renewed(&frozen) == 2);
  weir_resource_release(&variable->base);
  weir_tensor_release(late);
  weir_tensor_release(frozen);
  weir_tensor_release(early);
}

static void test_another_size_leaves_reads_behind(void** state) {
  (void)state;
  weir_variable_t* variable = NULL;
  const float two[] = {5, 6};
  weir_tensor_t* smaller = NULL;
  assert_null(weir_variable_create_ref(WEIR_DTYPE_FLOAT, NULL, &variable));
  assert_null(weir_variable_assign(variable, vector(1)));
  weir_tensor_t* early = weir_variable_read(variable);
  add_to(variable, 1);
  assert_null(weir_tensor_create_from(WEIR_DTYPE_FLOAT, 1, (const int64_t[]){2}, two, &smaller));
  assert_null(weir_variable_assign(variable, smaller));
  add_to(variable, 1);
  assert_null(weir_variable_assign(variable, vector(9)));
  assert_true(renewed(&early) == 2);  // as it was before the other size
  weir_tensor_release(early);
  weir_resource_release(&variable->base);
}

// A reference variable never shares memory that others gave it.
static void test_references_copy_what_is_shared(void** state) {
  (void)state;
  weir_variable_t* variable = NULL;
  assert_null(weir_variable_create_ref(WEIR_DTYPE_FLOAT, NULL, &variable));
  weir_tensor_t* shared = vector(1);
  assert_null(weir_variable_assign(variable, weir_tensor_retain(shared)));
  assert_ptr_not_equal(variable->tensor, shared);
  weir_tensor_t* own = vector(2);
  assert_null(weir_variable_assign(variable, own));
  assert_ptr_equal(variable->tensor, own);
  weir_tensor_release(shared);
  weir_resource_release(&variable->base);
}

// Memory that was lent is never written to, even by its sole holder.
static void test_borrowed_memory(void** state) {
  (void)state;
  float memory[4] = {1, 2, 3, 4};
  const int64_t dims[] = {4};
  weir_tensor_t* t = NULL;
  assert_null(weir_tensor_wrap(WEIR_DTYPE_FLOAT, 1, dims, memory, sizeof(memory), NULL, NULL, &t));
  weir_variable_t* variable = NULL;
  assert_null(weir_variable_create(WEIR_DTYPE_FLOAT, NULL, &variable));
  assert_null(weir_variable_assign(variable, t));
  weir_mutex_lock(&variable->mu);
  assert_null(weir_variable_make_sole_locked(variable, "w"));
  assert_ptr_not_equal(variable->tensor->data, memory);
  weir_mutex_unlock(&variable->mu);
  weir_resource_release(&variable->base);
}

static void* writer(void* arg) {
  weir_variable_t* variable = arg;
  for (int i = 0; i < 2000; ++i) {
    weir_mutex_lock(&variable->mu);
    weir_status_destroy(weir_variable_make_sole_locked(variable, "w"));
    for (int k = 0; k < 4; ++k) WEIR_TENSOR_DATA(variable->tensor, float)[k] += 1;
    weir_mutex_unlock(&variable->mu);
  }
  return NULL;
}

static void check_no_torn_reads(bool is_ref) {
  weir_variable_t* variable = NULL;
  assert_null((is_ref ? weir_variable_create_ref : weir_variable_create)(WEIR_DTYPE_FLOAT, NULL,
                                                                         &variable));
  assert_null(weir_variable_assign(variable, vector(0)));
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, writer, variable), 0);
  for (int i = 0; i < 2000; ++i) {
    weir_tensor_t* t = weir_variable_read(variable);
    const float* x = WEIR_TENSOR_DATA(t, float);
    assert_true(x[0] == x[1] && x[1] == x[2] && x[2] == x[3]);
    assert_null(weir_tensor_renew(&t));
    x = WEIR_TENSOR_DATA(t, float);
    assert_true(x[0] == x[1] && x[1] == x[2] && x[2] == x[3]);
    weir_tensor_release(t);
  }
  pthread_join(thread, NULL);
  assert_true(WEIR_TENSOR_DATA(variable->tensor, float)[0] == 2000);
  weir_resource_release(&variable->base);
}

static void test_no_torn_reads(void** state) {
  (void)state;
  check_no_torn_reads(false);
  check_no_torn_reads(true);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_manager),
      cmocka_unit_test(test_containers),
      cmocka_unit_test(test_variable),
      cmocka_unit_test(test_borrowed_memory),
      cmocka_unit_test(test_no_torn_reads),
      cmocka_unit_test(test_reads_of_references_follow),
      cmocka_unit_test(test_another_size_leaves_reads_behind),
      cmocka_unit_test(test_references_copy_what_is_shared),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
