// shape_test.c — Sizes that 32 bits do not hold, of tensors nobody touches.
#include <sys/mman.h>

#include "base/alloc.h"
#include "tensor/tensor.h"
#include "testing/world.h"

static const int64_t kCount = INT64_C(1) << 31;

// Addresses without memory behind them.
static void* reserve(weir_allocator_t* self, size_t size, size_t alignment) {
  (void)self;
  (void)alignment;
  void* data = mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return data == MAP_FAILED ? NULL : data;
}

static void release(weir_allocator_t* self, void* data, size_t size) {
  (void)self;
  munmap(data, size);
}

static weir_status_t* ask(world_t* w, const char* op, weir_dtype_t type, const weir_tensor_t* x,
                          int64_t* out_value) {
  weir_edge_t fed = placeholder(w, NULL, WEIR_DTYPE_INT8);
  weir_node_t* node =
      add(w, op, NULL, WEIR_EDGES(fed), WEIR_ATTRS(weir_attr_type("out_type", type)));
  weir_tensor_t* result = NULL;
  weir_step_spec_t spec = {WEIR_FEEDS({fed, (weir_tensor_t*)x}), WEIR_FETCHES(output(node, 0))};
  WEIR_TRY(weir_session_run(w->session, &spec, &result));
  *out_value = weir_tensor_int_at(result, 0);
  weir_tensor_release(result);
  return NULL;
}

static void test_two_thousand_million_elements(void** state) {
  world_t* w = *state;
  static const weir_allocator_vtable_t vtable = {.alloc = reserve, .free = release};
  weir_allocator_t allocator = {.vtable = &vtable, .space = &weir_host_space};
  weir_tensor_t* x = NULL;
  int64_t value = 0;
  check_ok(weir_tensor_create_in(&allocator, WEIR_DTYPE_INT8, 1, &kCount, &x));
  open_session(w, 1);
  const char* const ops[] = {"Size", "Shape"};
  for (size_t i = 0; i < WEIR_COUNT_OF(ops); ++i) {
    check_error(ask(w, ops[i], WEIR_DTYPE_INT32, x, &value), WEIR_INVALID_ARGUMENT, "32-bit");
    check_ok(ask(w, ops[i], WEIR_DTYPE_INT64, x, &value));
    assert_int_equal(value, kCount);
  }
  weir_session_destroy(w->session);  // what it keeps of the tensor goes before the allocator does
  w->session = NULL;
  weir_tensor_release(x);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(
      test_two_thousand_million_elements, world_setup, world_teardown)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
