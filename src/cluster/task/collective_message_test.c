// collective_message_test.c — Members of collectives there and back, and what no member says.
#include "cluster/task/collective_message.h"

#include "rpc/message.h"
#include "testing/tensors.h"

static weir_rpc_buffer_t* received(weir_rpc_message_t* take_message) {
  weir_rpc_buffer_t* buffer = weir_rpc_buffer_create(take_message->size);
  assert_non_null(buffer);
  check_ok(weir_rpc_message_seal(take_message));
  size_t at = 0;
  for (size_t i = 1; i < take_message->count; ++i) {  // the first is the length prefix
    memcpy(buffer->data + at, take_message->segments[i].data, take_message->segments[i].size);
    at += take_message->segments[i].size;
  }
  weir_rpc_message_destroy(take_message);
  return buffer;
}

static weir_status_t* pass(const weir_collective_t* what, weir_tensor_t* take_tensor,
                           weir_collective_request_t* request) {
  weir_rpc_message_t* message = NULL;
  check_ok(weir_collective_write(what, take_tensor, &message));
  weir_tensor_release(take_tensor);
  weir_rpc_buffer_t* buffer = received(message);
  weir_status_t* status = weir_collective_read(buffer, request);
  weir_rpc_buffer_release(buffer);
  return status;
}

static weir_collective_t some(void) {
  return (weir_collective_t){.kind = WEIR_COLLECTIVE_REDUCE,
                             .dtype = WEIR_DTYPE_FLOAT,
                             .merge = WEIR_UPDATE_MAX,
                             .is_mean = true,
                             .group_key = -5,
                             .group_size = 3,
                             .instance_key = INT32_MIN,
                             .rank = -1,
                             .id = UINT64_MAX,
                             .iteration = 4,
                             .scope = UINT64_MAX - 1,
                             .step_id = -7,
                             .device = "/job:a/replica:0/task:1/device:CPU:0",
                             .incarnation = 1ull << 63,
                             .timeout_ns = 12};
}

static void test_round_trip(void** state) {
  (void)state;
  weir_collective_request_t got;
  weir_collective_t what = some();
  check_ok(pass(&what, FLOATS(1, 2, 3), &got));
  assert_string_equal(got.what.device, what.device);
  check_floats(got.tensor, 0, 1, 2, 3);
  assert_null(got.what.dims);
#define SAME(field) assert_true(got.what.field == what.field)
  SAME(kind);
  SAME(space);
  SAME(dtype);
  SAME(merge);
  SAME(is_mean);
  SAME(is_source);
  SAME(wants_roster);
  SAME(group_key);
  SAME(group_size);
  SAME(instance_key);
  SAME(rank);
  SAME(id);
  SAME(iteration);
  SAME(scope);
  SAME(step_id);
  SAME(incarnation);
  SAME(timeout_ns);
  weir_collective_request_free(&got);
}

static void test_shapes(void** state) {
  (void)state;
  const int64_t dims[] = {0, 7};
  for (int count = 0; count <= 2; ++count) {
    weir_collective_request_t got;
    weir_collective_t what = some();
    what.kind = WEIR_COLLECTIVE_BROADCAST;
    what.dims = dims;
    what.dim_count = count;
    check_ok(pass(&what, NULL, &got));
    assert_null(got.tensor);
    assert_int_equal(got.what.dim_count, count);
    assert_memory_equal(got.what.dims, dims, sizeof(*dims) * (size_t)count);
    weir_collective_request_free(&got);
  }
}

// One thing is wrong with each.
static void test_refuses(void** state) {
  (void)state;
  const int64_t dims[] = {-1};
  for (int k = 0; k < 9; ++k) {
    weir_collective_request_t got;
    weir_collective_t what = some();
    weir_tensor_t* tensor = FLOATS(1);
    switch (k) {
      case 0: what.kind = (weir_collective_kind_t)3; break;
      case 1: what.kind = WEIR_COLLECTIVE_KIND_COUNT; break;
      case 2: what.space = WEIR_COLLECTIVE_SPACE_NAME; break;
      case 3: what.dtype = WEIR_DTYPE_STRING; break;
      case 4: what.merge = WEIR_UPDATE_DIV; break;
      case 5: what.is_source = true; break;                  // of no broadcast
      case 6: what.kind = WEIR_COLLECTIVE_BROADCAST; break;  // a receiver with a tensor
      case 7: what.wants_roster = true; break;               // with a tensor, without a shape
      default: what.dims = dims, what.dim_count = 1; break;
    }
    check_error(pass(&what, tensor, &got), WEIR_INVALID_ARGUMENT, "");
    weir_collective_request_free(&got);
  }
}

static void test_answers(void** state) {
  (void)state;
  for (int has_tensor = 0; has_tensor < 2; ++has_tensor) {
    weir_rpc_message_t* message = NULL;
    weir_tensor_t *sent = has_tensor ? FLOATS(4, 5) : NULL, *got = NULL;
    check_ok(weir_collective_write_answer(sent, &message));
    weir_rpc_buffer_t* buffer = received(message);
    check_ok(weir_collective_read_answer(buffer, &got));
    if (has_tensor) check_floats(got, 0, 4, 5);
    else assert_null(got);
    weir_rpc_buffer_release(buffer);
    weir_tensor_release(sent);
    weir_tensor_release(got);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_round_trip),
                                     cmocka_unit_test(test_shapes), cmocka_unit_test(test_refuses),
                                     cmocka_unit_test(test_answers)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
