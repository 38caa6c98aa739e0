// cuda_graph_test.c — What a thread records on a GPU, on a driver that is a fake.
#include "device/cuda/cuda_graph.h"

#include <pthread.h>
#include <stdlib.h>

#include "device/cuda/cuda.h"
#include "testing/cmocka.h"
#include "testing/cuda_fake.h"

static weir_device_t* make_device(double memory) {
  weir_device_t* device = NULL;
  weir_device_params_t params = {.index = 0, .memory = memory};
  weir_cuda_driver_replace(&cuda_fake_driver);
  assert_null(weir_cuda_kind.create(&params, &device));
  assert_non_null(device->recorder);
  return device;
}

static void release(weir_device_t* device) {
  weir_device_release(device);
  weir_cuda_driver_replace(NULL);
}

static weir_tensor_t* make_bytes(weir_device_t* device, int64_t size) {
  weir_tensor_t* tensor = NULL;
  assert_null(weir_tensor_create_in(weir_device_allocator(device, WEIR_MEMORY_DEVICE),
                                    WEIR_DTYPE_UINT8, 1, &size, &tensor));
  return tensor;
}

// What is recorded happens when it is launched, each time.
static void test_recorded_work_is_repeated(void** state) {
  (void)state;
  weir_device_t* device = make_device(0);
  const weir_recorder_t* recorder = device->recorder;
  weir_recording_t* recording = NULL;
  weir_tensor_t *from = make_bytes(device, 100), *to = make_bytes(device, 100);
  char* there = cuda_fake_at(to->data);
  assert_null(weir_cuda_set(device, from->data, 1, 100));
  assert_null(weir_cuda_set(device, to->data, 0, 100));
  assert_null(recorder->begin(device, &recording));
  assert_true(weir_cuda_is_recording(device));
  assert_null(weir_cuda_copy(device, to->data, from->data, 100));
  assert_null(recorder->end(recording));
  assert_false(weir_cuda_is_recording(device));
  assert_int_equal(*there, 0);
  for (char value = 2; value < 5; ++value) {
    assert_null(weir_cuda_set(device, from->data, value, 100));
    assert_null(recorder->launch(recording));
    assert_int_equal(*there, value);
  }
  assert_true(recorder->is_whole(recording));
  recorder->destroy(recording);
  weir_tensor_release(from);
  weir_tensor_release(to);
  release(device);
}

// Memory that is freed while recording is for recordings, until the last is gone.
static void test_memory_is_not_shared(void** state) {
  (void)state;
  weir_device_t* device = make_device(0);
  const weir_recorder_t* recorder = device->recorder;
  weir_recording_t *first = NULL, *second = NULL;
  assert_null(recorder->begin(device, &first));
  weir_tensor_t* used = make_bytes(device, 1000);
  void* address = used->data;
  weir_tensor_release(used);
  weir_tensor_t* again = make_bytes(device, 1000);  // within the recording it is given out again
  assert_ptr_equal(again->data, address);
  weir_tensor_t* kept = NULL;
  assert_null(recorder->keep(first, WEIR_DTYPE_UINT8, 1, (const int64_t[]){1000}, &kept));
  weir_tensor_release(again);
  weir_tensor_t* next = make_bytes(device, 1000);
  assert_ptr_equal(next->data, address);  // and not to what is kept
  weir_tensor_release(next);
  assert_null(recorder->end(first));
  weir_tensor_t* others = make_bytes(device, 1000);
  assert_ptr_not_equal(others->data, address);
  assert_null(recorder->begin(device, &second));  // recordings share it
  weir_tensor_t* shared = make_bytes(device, 1000);
  assert_ptr_equal(shared->data, address);
  weir_tensor_release(shared);
  assert_null(recorder->end(second));
  recorder->destroy(first);
  recorder->destroy(second);
  weir_tensor_release(others);
  weir_tensor_release(kept);
  weir_tensor_t* everything = make_bytes(device, 400 << 20);  // what was the pool's is there, too
  weir_tensor_release(everything);
  release(device);
}

// Nothing that reads the host's memory is repeated.
static void test_copies_from_the_host(void** state) {
  (void)state;
  weir_device_t* device = make_device(0);
  weir_recording_t* recording = NULL;
  weir_tensor_t *from = make_bytes(device, 100), *to = make_bytes(device, 100);
  assert_null(device->recorder->begin(device, &recording));
  assert_null(weir_cuda_copy(device, to->data, from->data, 100));
  cuda_fake_copies_from_host = true;
  weir_status_t* status = device->recorder->end(recording);
  cuda_fake_copies_from_host = false;
  assert_int_equal(weir_status_code(status), WEIR_UNIMPLEMENTED);
  weir_status_destroy(status);
  device->recorder->destroy(recording);
  weir_tensor_release(from);
  weir_tensor_release(to);
  release(device);
}

static void test_memory_of_others_is_missed(void** state) {
  (void)state;
  weir_device_t* device = make_device(0);
  weir_recording_t* recording = NULL;
  weir_tensor_t* others = make_bytes(device, 1000);
  assert_null(device->recorder->begin(device, &recording));
  weir_tensor_release(others);
  assert_null(device->recorder->end(recording));
  assert_false(device->recorder->is_whole(recording));
  device->recorder->destroy(recording);
  release(device);
}

// Nothing can be waited for while it is only recorded; a recording may be left before its end.
static void test_waiting(void** state) {
  (void)state;
  weir_device_t* device = make_device(0);
  weir_recording_t* recording = NULL;
  weir_tensor_t* tensor = make_bytes(device, 100);
  assert_null(weir_cuda_set(device, tensor->data, 3, 100));
  assert_null(device->recorder->begin(device, &recording));
  assert_null(weir_cuda_set(device, tensor->data, 4, 100));
  weir_status_t* status = weir_cuda_synchronize(device);
  assert_int_equal(weir_status_code(status), WEIR_FAILED_PRECONDITION);
  weir_status_destroy(status);
  device->recorder->destroy(recording);
  assert_null(weir_cuda_synchronize(device));
  assert_int_equal(*cuda_fake_at(tensor->data), 3);
  weir_tensor_release(tensor);
  release(device);
}

typedef struct other_t {
  weir_device_t* device;
  weir_tensor_t* tensor;
} other_t;

static void* use_device(void* arg) {
  const other_t* other = arg;
  if (weir_cuda_is_recording(other->device)) abort();
  weir_tensor_t* own = make_bytes(other->device, 100);
  assert_null(weir_cuda_set(other->device, own->data, 7, 100));
  assert_null(weir_cuda_copy(other->device, other->tensor->data, own->data, 100));
  assert_null(weir_cuda_synchronize(other->device));
  weir_tensor_release(own);
  return NULL;
}

// Other threads use the device meanwhile.
static void test_other_threads(void** state) {
  (void)state;
  weir_device_t* device = make_device(0);
  weir_recording_t* recording = NULL;
  other_t other = {.device = device, .tensor = make_bytes(device, 100)};
  assert_null(device->recorder->begin(device, &recording));
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, use_device, &other), 0);
  pthread_join(thread, NULL);
  assert_int_equal(*cuda_fake_at(other.tensor->data), 7);
  assert_null(device->recorder->end(recording));
  assert_null(weir_cuda_set(device, other.tensor->data, 1, 100));
  assert_null(device->recorder->launch(recording));  // nothing of the other's is in it
  assert_int_equal(*cuda_fake_at(other.tensor->data), 1);
  assert_true(device->recorder->is_whole(recording));
  device->recorder->destroy(recording);
  weir_tensor_release(other.tensor);
  release(device);
}

static void test_little_memory(void** state) {
  (void)state;
  weir_device_t* device = make_device(64 << 20);
  weir_recording_t* recording = NULL;
  assert_null(device->recorder->begin(device, &recording));
  weir_tensor_t* large = make_bytes(device, 60 << 20);
  weir_status_t* status = device->recorder->end(recording);
  assert_int_equal(weir_status_code(status), WEIR_RESOURCE_EXHAUSTED);
  weir_status_destroy(status);
  weir_tensor_release(large);
  device->recorder->destroy(recording);
  release(device);
}

static void test_turned_off(void** state) {
  (void)state;
  weir_device_t* device = NULL;
  weir_device_params_t params = {.index = 0};
  weir_cuda_driver_replace(&cuda_fake_driver);
  setenv("WEIR_CUDA_GRAPHS", "0", 1);
  assert_null(weir_cuda_kind.create(&params, &device));
  unsetenv("WEIR_CUDA_GRAPHS");
  assert_null(device->recorder);
  release(device);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_recorded_work_is_repeated),
      cmocka_unit_test(test_memory_is_not_shared),
      cmocka_unit_test(test_copies_from_the_host),
      cmocka_unit_test(test_memory_of_others_is_missed),
      cmocka_unit_test(test_waiting),
      cmocka_unit_test(test_other_threads),
      cmocka_unit_test(test_little_memory),
      cmocka_unit_test(test_turned_off),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
