// tensor_message_test.c — Tensors in messages: small and large ones, there and back.
#include "cluster/task/tensor_message.h"

#include "base/alloc.h"
#include "rpc/message.h"
#include "testing/tensors.h"
#include "wire/wire.h"

// What the peer receives: the segments one after another, |shift| bytes behind an aligned address.
static weir_rpc_buffer_t* transmit(weir_rpc_message_t* take_sealed, size_t shift) {
  weir_rpc_buffer_t* buffer = weir_rpc_buffer_create(shift + take_sealed->size);
  assert_non_null(buffer);
  size_t at = shift;
  for (size_t i = 1; i < take_sealed->count; ++i) {  // the first is the length prefix
    memcpy(buffer->data + at, take_sealed->segments[i].data, take_sealed->segments[i].size);
    at += take_sealed->segments[i].size;
  }
  assert_int_equal(at, buffer->size);
  weir_rpc_message_destroy(take_sealed);
  return buffer;
}

static weir_rpc_buffer_t* received(weir_rpc_message_t* take_message, size_t shift) {
  check_ok(weir_rpc_message_seal(take_message));
  return transmit(take_message, shift);
}

static weir_view_t field_of(weir_view_t message, uint32_t field) {
  weir_view_t found = weir_view(NULL, 0);
  weir_wire_reader_t reader = weir_wire_reader(message);
  while (weir_wire_next(&reader)) {
    if (reader.field == field && reader.type == WEIR_WIRE_BYTES) found = reader.bytes;
  }
  check_ok(weir_wire_check(&reader, "message"));
  return found;
}

static weir_tensor_t* make_ramp(int64_t count) {
  weir_tensor_t* tensor = NULL;
  check_ok(weir_tensor_create(WEIR_DTYPE_FLOAT, 1, &count, &tensor));
  for (int64_t i = 0; i < count; ++i) ((float*)weir_tensor_data(tensor))[i] = (float)i;
  return tensor;
}

static void check_equal(const weir_tensor_t* a, const weir_tensor_t* b) {
  assert_int_equal(weir_tensor_dtype(a), weir_tensor_dtype(b));
  assert_int_equal(weir_tensor_count(a), weir_tensor_count(b));
  assert_memory_equal(weir_tensor_data(a), weir_tensor_data(b),
                      (size_t)weir_tensor_count(a) * sizeof(float));
}

// Sizes around the border between copied and referred; every alignment of the receiver's memory.
static void test_round_trip(void** state) {
  (void)state;
  static const int64_t counts[] = {0, 1, 3, 1023, 1024, 1025, 100000};
  for (size_t k = 0; k < WEIR_COUNT_OF(counts); ++k) {
    for (size_t shift = 0; shift<64; shift += counts[k]> 2000 ? 16 : 5) {
      weir_message_builder_t builder = {.message = NULL};
      weir_rpc_message_t* message = NULL;
      weir_tensor_t *sent = make_ramp(counts[k]), *got = NULL;
      weir_wire_put_int(&builder.head, 9, 5);
      weir_message_put_tensor(&builder, 1, sent);
      weir_message_put_named_tensor(&builder, 2, weir_view_of("name"), sent);
      weir_wire_put_string(&builder.head, 3, "behind");
      size_t size = weir_message_size(&builder);
      check_ok(weir_message_finish(&builder, &message));
      assert_int_equal(weir_rpc_message_size(message), size);
      weir_rpc_buffer_t* buffer = received(message, shift);
      weir_view_t whole = weir_rpc_buffer_view(buffer);
      whole = weir_view(whole.data + shift, whole.size - shift);
      check_ok(weir_message_get_tensor(buffer, field_of(whole, 1), &got));
      check_equal(sent, got);
      weir_tensor_release(got);
      weir_view_t named = field_of(whole, 2);
      assert_true(weir_view_is(field_of(named, 1), "name"));
      check_ok(weir_message_get_tensor(buffer, field_of(named, 2), &got));
      assert_true(weir_view_is(field_of(whole, 3), "behind"));
      weir_rpc_buffer_release(buffer);
      check_equal(sent, got);  // has its own memory, or holds the buffer's
      weir_tensor_release(got);
      weir_tensor_release(sent);
    }
  }
}

// A large tensor is not copied: neither on its way out, nor in where it happens to be aligned.
static void test_no_copies(void** state) {
  (void)state;
  weir_message_builder_t builder = {.message = NULL};
  weir_rpc_message_t* message = NULL;
  weir_tensor_t *sent = make_ramp(5000), *got = NULL;
  weir_message_put_tensor(&builder, 1, sent);
  check_ok(weir_message_finish(&builder, &message));
  bool is_referred = false;
  for (size_t i = 0; i < message->count; ++i)
    is_referred |= message->segments[i].data == weir_tensor_data(sent);
  assert_true(is_referred);
  size_t head = message->size - 5000 * sizeof(float);
  weir_rpc_buffer_t* buffer = received(message, 64 - head % 64);
  weir_view_t whole = weir_rpc_buffer_view(buffer);
  size_t shift = 64 - head % 64;
  check_ok(weir_message_get_tensor(
      buffer, field_of(weir_view(whole.data + shift, whole.size - shift), 1), &got));
  const char* data = weir_tensor_data(got);
  assert_true(data >= whole.data && data < whole.data + whole.size);
  weir_rpc_buffer_release(buffer);
  check_equal(sent, got);
  weir_tensor_release(got);
  weir_tensor_release(sent);
}

static void test_strings(void** state) {
  (void)state;
  enum { COUNT = 1000 };
  static const char* texts[COUNT];
  int64_t count = COUNT;
  for (int i = 0; i < COUNT; ++i) texts[i] = i % 2 ? "odd" : "a longer text that is even";
  weir_message_builder_t builder = {.message = NULL};
  weir_rpc_message_t* message = NULL;
  weir_tensor_t *sent = NULL, *got = NULL;
  check_ok(weir_tensor_create_strings(1, &count, texts, NULL, &sent));
  weir_message_put_tensor(&builder, 1, sent);
  check_ok(weir_message_finish(&builder, &message));
  weir_rpc_buffer_t* buffer = received(message, 0);
  check_ok(weir_message_get_tensor(buffer, field_of(weir_rpc_buffer_view(buffer), 1), &got));
  assert_int_equal(weir_tensor_dtype(got), WEIR_DTYPE_STRING);
  assert_int_equal(weir_tensor_count(got), COUNT);
  weir_rpc_buffer_release(buffer);
  weir_tensor_release(got);
  weir_tensor_release(sent);
}

// Content that is not what the shape says.
static void test_lies(void** state) {
  (void)state;
  static const int64_t dims[] = {999, 1025, 1 << 30, INT64_MAX, -1};
  for (size_t i = 0; i < WEIR_COUNT_OF(dims); ++i) {
    weir_strbuf_t proto = {0};
    weir_wire_put_int(&proto, 1, WEIR_DTYPE_FLOAT);
    size_t shape = weir_wire_begin(&proto, 2);
    for (int k = 0; k < 2; ++k) {
      size_t dim = weir_wire_begin(&proto, 2);
      weir_wire_put_int(&proto, 1, k ? 2 : dims[i]);
      weir_wire_end(&proto, dim);
    }
    weir_wire_end(&proto, shape);
    static const char content[8192];
    weir_wire_put_bytes(&proto, 4, content, sizeof(content));
    for (size_t shift = 0; shift < 64; ++shift) {
      weir_rpc_buffer_t* buffer = weir_rpc_buffer_create(shift + proto.size);
      memcpy(buffer->data + shift, proto.data, proto.size);
      weir_tensor_t* got = NULL;
      weir_status_t* status = weir_message_get_tensor(
          buffer, weir_view((const char*)buffer->data + shift, proto.size), &got);
      assert_non_null(status);
      assert_null(got);
      weir_status_destroy(status);
      weir_rpc_buffer_release(buffer);
    }
    weir_strbuf_free(&proto);
  }
}

static void test_abandon(void** state) {
  (void)state;
  weir_message_builder_t builder = {.message = NULL};
  weir_tensor_t* sent = make_ramp(5000);
  weir_message_put_tensor(&builder, 1, sent);
  weir_wire_put_string(&builder.head, 3, "behind");
  weir_message_abandon(&builder);
  assert_int_equal(weir_message_size(&builder), 0);
  weir_tensor_release(sent);
}

// The bytes of a message with small and large tensors, bare and named; a status where memory ends.
static weir_status_t* build(weir_tensor_t* small, weir_tensor_t* large, weir_rpc_buffer_t** out) {
  weir_message_builder_t builder = {.message = NULL};
  weir_rpc_message_t* message = NULL;
  weir_wire_put_int(&builder.head, 9, 5);
  weir_message_put_tensor(&builder, 1, small);
  weir_message_put_named_tensor(&builder, 2, weir_view_of("small"), small);
  weir_message_put_tensor(&builder, 3, large);
  weir_message_put_named_tensor(&builder, 4, weir_view_of("large"), large);
  weir_wire_put_string(&builder.head, 5, "behind");
  WEIR_TRY(weir_message_finish(&builder, &message));
  weir_status_t* status = weir_rpc_message_seal(message);
  weir_alloc_fail_at(0, false);
  if (status) weir_rpc_message_destroy(message);
  else *out = transmit(message, 0);
  return status;
}

// Whichever allocation fails, the message is whole or none.
static void test_out_of_memory(void** state) {
  (void)state;
  weir_tensor_t *small = make_ramp(3), *large = make_ramp(5000);
  weir_rpc_buffer_t *good = NULL, *got = NULL;
  int failed = 0;
  check_ok(build(small, large, &good));
  for (int64_t n = 1; n <= failed + 10; ++n) {
    weir_alloc_fail_at(n, false);
    weir_status_t* status = build(small, large, &got);
    weir_alloc_fail_at(0, false);
    if (status) {
      ++failed;
      check_error(status, WEIR_RESOURCE_EXHAUSTED, "");
      continue;
    }
    assert_true(weir_view_equal(weir_rpc_buffer_view(got), weir_rpc_buffer_view(good)));
    weir_rpc_buffer_release(got);
  }
  assert_true(failed > 5);
  weir_rpc_buffer_release(good);
  weir_tensor_release(small);
  weir_tensor_release(large);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_round_trip), cmocka_unit_test(test_no_copies),
      cmocka_unit_test(test_strings),    cmocka_unit_test(test_lies),
      cmocka_unit_test(test_abandon),    cmocka_unit_test(test_out_of_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
