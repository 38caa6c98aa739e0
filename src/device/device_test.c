// device_test.c — Device names, and the conformance test that every device must pass.
// cmocka.h needs the headers before it.

#include "device/device.h"

#include "testing/cmocka.h"

// ---- names ----

static void test_names(void** state) {
  (void)state;
  weir_device_name_t full;
  weir_device_name_t n;
  assert_null(weir_device_name_parse(weir_view_of("/job:ps/replica:0/task:1/device:CPU:0"), &full));
  assert_string_equal(full.job, "ps");
  assert_int_equal(full.replica, 0);
  assert_int_equal(full.task, 1);
  assert_string_equal(full.type, "CPU");
  assert_int_equal(full.index, 0);
  const char* matching[] = {"",
                            "/job:ps",
                            "/cpu:0",
                            "/CPU:*",
                            "/device:cpu:0",
                            "/task:1",
                            "/job:*/replica:*/device:*:*",
                            "/device:CPU"};
  for (size_t i = 0; i < WEIR_COUNT_OF(matching); ++i) {
    assert_null(weir_device_name_parse(weir_view_of(matching[i]), &n));
    assert_true(weir_device_name_matches(&n, &full));
  }
  const char* others[] = {"/job:worker", "/gpu:0", "/task:0", "/device:CPU:1", "/replica:3"};
  for (size_t i = 0; i < WEIR_COUNT_OF(others); ++i) {
    assert_null(weir_device_name_parse(weir_view_of(others[i]), &n));
    assert_false(weir_device_name_matches(&n, &full));
  }
}

static void test_bad_names(void** state) {
  (void)state;
  const char* bad[] = {"job:ps",   "/job:",    "/task:x", "/task:-1", "/device:CPU:x",
                       "/nope:1",  "/job:a/b", "CPU:0",   "/job:1x",  "/task:99999999999",
                       "/job:a b", "//"};
  for (size_t i = 0; i < WEIR_COUNT_OF(bad); ++i) {
    weir_device_name_t n;
    weir_status_t* status = weir_device_name_parse(weir_view_of(bad[i]), &n);
    if (weir_status_code(status) != WEIR_INVALID_ARGUMENT) fail_msg("%s was accepted", bad[i]);
    assert_non_null(strstr(weir_status_message(status), bad[i]));
    weir_status_destroy(status);
  }
}

// ---- conformance: the same for every device ----

typedef weir_status_t* (*create_fn_t)(weir_device_t** out_device);

static weir_status_t* create_cpu(weir_device_t** out_device) {
  return weir_cpu_device_create("/job:w/replica:0/task:2", 1, NULL, out_device);
}

static weir_status_t* create_null(weir_device_t** out_device) {
  return weir_null_device_create("/job:w/replica:0/task:2", 1, out_device);
}

typedef struct copy_t {
  int calls;
  weir_code_t code;
} copy_t;

static void on_copied(void* arg, weir_status_t* take_status) {
  copy_t* copy = arg;
  ++copy->calls;
  copy->code = weir_status_code(take_status);
  weir_status_destroy(take_status);
}

static weir_code_t copy(weir_device_t* device, const weir_tensor_t* src, weir_tensor_t* dst) {
  weir_stream_t* stream = NULL;
  if (device->vtable->create_stream) assert_null(device->vtable->create_stream(device, &stream));
  copy_t result = {0};
  device->vtable->copy(device, stream, src, dst, on_copied, &result);
  if (device->vtable->synchronize) assert_null(device->vtable->synchronize(device, stream));
  assert_int_equal(result.calls, 1);
  if (stream) device->vtable->destroy_stream(device, stream);
  return result.code;
}

static void check_round_trip(weir_device_t* device, int64_t count) {
  weir_tensor_t* src = NULL;
  weir_tensor_t* there = NULL;
  weir_tensor_t* back = NULL;
  weir_allocator_t* memory = weir_device_allocator(device, WEIR_MEMORY_DEVICE);
  assert_null(weir_tensor_create(WEIR_DTYPE_INT32, 1, &count, &src));
  assert_null(weir_tensor_create_in(memory, WEIR_DTYPE_INT32, 1, &count, &there));
  assert_null(weir_tensor_create_in(weir_device_allocator(device, WEIR_MEMORY_HOST),
                                    WEIR_DTYPE_INT32, 1, &count, &back));
  for (int64_t i = 0; i < count; ++i) WEIR_TENSOR_DATA(src, int32_t)[i] = (int32_t)(i * 7 - 3);
  assert_int_equal(copy(device, src, there), WEIR_OK);
  assert_int_equal(copy(device, there, back), WEIR_OK);
  if (count) assert_memory_equal(src->data, back->data, (size_t)count * sizeof(int32_t));
  if (count) assert_int_equal((uintptr_t)there->data % WEIR_TENSOR_ALIGNMENT, 0);
  weir_tensor_release(src);
  weir_tensor_release(there);
  weir_tensor_release(back);
}

static void check_mismatch(weir_device_t* device) {
  weir_tensor_t* a = NULL;
  weir_tensor_t* b = NULL;
  const int64_t three = 3;
  const int64_t four = 4;
  assert_null(weir_tensor_create(WEIR_DTYPE_FLOAT, 1, &three, &a));
  assert_null(weir_tensor_create(WEIR_DTYPE_FLOAT, 1, &four, &b));
  assert_int_equal(copy(device, a, b), WEIR_INVALID_ARGUMENT);
  weir_tensor_release(a);
  weir_tensor_release(b);
}

static void conformance(create_fn_t create) {
  weir_device_t* device = NULL;
  weir_device_t* other = NULL;
  assert_null(create(&device));
  assert_null(create(&other));
  weir_device_name_t name;
  assert_null(weir_device_name_parse(weir_view_of(device->name), &name));
  assert_string_equal(name.type, device->type);
  assert_string_equal(name.job, "w");
  assert_int_equal(name.index, 1);
  assert_true(device->incarnation != other->incarnation);
  weir_device_release(other);
  assert_true(weir_device_allocator(device, WEIR_MEMORY_HOST)->is_host);
  assert_true(weir_device_allocator(device, WEIR_MEMORY_PINNED)->is_host);
  check_round_trip(device, 0);
  check_round_trip(device, 1);
  check_round_trip(device, 100000);
  check_mismatch(device);
  // Memory outlives the last reference on the device.
  weir_tensor_t* t = NULL;
  const int64_t count = 10;
  assert_null(weir_tensor_create_in(weir_device_allocator(device, WEIR_MEMORY_DEVICE),
                                    WEIR_DTYPE_FLOAT, 1, &count, &t));
  assert_ptr_equal(weir_device_retain(device), device);
  weir_device_release(device);
  weir_device_release(device);
  weir_tensor_release(t);
}

static void test_cpu(void** state) {
  (void)state;
  conformance(create_cpu);
}

static void test_null(void** state) {
  (void)state;
  conformance(create_null);
  weir_device_t* device = NULL;
  assert_null(create_null(&device));
  assert_false(weir_device_allocator(device, WEIR_MEMORY_DEVICE)->is_host);
  weir_device_release(device);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_names),
      cmocka_unit_test(test_bad_names),
      cmocka_unit_test(test_cpu),
      cmocka_unit_test(test_null),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
