// messages_test.c — etcd's messages: the bytes that etcd's own client sends, and answers of all
// kinds.
#include "cluster/etcd/messages.h"

#include "cluster/etcd/fields.h"
#include "testing/tensors.h"
#include "wire/wire.h"

static void check_bytes(weir_strbuf_t* take_written, const char* bytes, size_t size) {
  assert_false(take_written->failed);
  assert_int_equal(take_written->size, size);
  assert_memory_equal(take_written->data, bytes, size);
  weir_strbuf_free(take_written);
}
#define CHECK_BYTES(written, text) check_bytes(&(written), text, sizeof(text) - 1)

// ---- requests ----

static void test_requests(void** state) {
  (void)state;
  weir_strbuf_t range = {0}, one = {0}, grant = {0}, revoke = {0}, keep = {0};
  weir_etcd_write_range(&range, weir_view_of("/a/"), weir_view_of("/a0"));
  CHECK_BYTES(range, "\x0a\x03/a/\x12\x03/a0");
  weir_etcd_write_range(&one, weir_view_of("k"), weir_view("", 0));
  CHECK_BYTES(one, "\x0a\x01k");
  weir_etcd_write_grant(&grant, 60);
  CHECK_BYTES(grant, "\x08\x3c");
  weir_etcd_write_revoke(&revoke, 300);
  CHECK_BYTES(revoke, "\x08\xac\x02");
  weir_etcd_write_keep_alive(&keep, 1);
  CHECK_BYTES(keep, "\x08\x01");
}

static void test_put_if(void** state) {
  (void)state;
  weir_strbuf_t out = {0};
  const weir_etcd_put_t put = {weir_view_of("k"), weir_view_of("me"), 9};
  weir_etcd_write_put_if(&out, &put, 5);
  weir_wire_reader_t reader = weir_wire_reader(weir_strbuf_view(&out));
  assert_true(weir_wire_next(&reader));
  assert_int_equal(reader.field, TXN_REQUEST_COMPARE);
  assert_true(weir_view_equal(reader.bytes, weir_view("\x08\0\x10\x02\x1a\x01k\x30\x05", 9)));
  assert_true(weir_wire_next(&reader));
  assert_int_equal(reader.field, TXN_REQUEST_SUCCESS);
  weir_wire_reader_t request = weir_wire_reader(reader.bytes);
  assert_true(weir_wire_next(&request));
  assert_int_equal(request.field, REQUEST_OP_PUT);
  assert_true(weir_view_is(request.bytes, "\x0a\x01k\x12\x02me\x18\x09"));
  assert_false(weir_wire_next(&reader));
  weir_strbuf_free(&out);
}

static void test_end_of_a_prefix(void** state) {
  (void)state;
  weir_strbuf_t end = {0}, carried = {0}, none = {0};
  weir_etcd_write_end_of(&end, weir_view_of("/weir/a/"));
  CHECK_BYTES(end, "/weir/a0");
  weir_etcd_write_end_of(&carried, weir_view("a\xff\xff", 3));
  CHECK_BYTES(carried, "b");
  weir_etcd_write_end_of(&none, weir_view("\xff", 1));
  assert_int_equal(none.size, 0);
}

// ---- answers ----

typedef struct seen_t {
  int count, limit;  // an error at this one
  char text[64];
  int64_t revision, lease;
} seen_t;

static weir_status_t* see(void* arg, const weir_etcd_entry_t* entry) {
  seen_t* seen = arg;
  if (++seen->count == seen->limit) return WEIR_STATUS(ABORTED, "enough");
  snprintf(seen->text, sizeof(seen->text), "%.*s=%.*s", WEIR_VIEW_ARG(entry->key),
           WEIR_VIEW_ARG(entry->value));
  seen->revision = entry->revision;
  seen->lease = entry->lease;
  return NULL;
}

static void put_entry(weir_strbuf_t* out, const char* key, const char* value) {
  const size_t at = weir_wire_begin(out, RANGE_RESPONSE_KVS);
  weir_wire_put_string(out, KEY_VALUE_KEY, key);
  weir_wire_put_int(out, 2, 3);  // create_revision, which nobody reads
  weir_wire_put_int(out, KEY_VALUE_MOD_REVISION, 4);
  weir_wire_put_string(out, KEY_VALUE_VALUE, value);
  weir_wire_put_int(out, KEY_VALUE_LEASE, 5);
  weir_wire_end(out, at);
}

static void test_range(void** state) {
  (void)state;
  weir_strbuf_t out = {0};
  seen_t all = {0}, some = {.limit = 2}, none = {0};
  weir_wire_put_bytes(&out, 1, "\x08\x01", 2);  // the header
  put_entry(&out, "k1", "v1");
  put_entry(&out, "k2", "v2");
  check_ok(weir_etcd_read_range(weir_strbuf_view(&out), see, &all));
  assert_int_equal(all.count, 2);
  assert_string_equal(all.text, "k2=v2");
  assert_int_equal(all.revision, 4);
  assert_int_equal(all.lease, 5);
  check_error(weir_etcd_read_range(weir_strbuf_view(&out), see, &some), WEIR_ABORTED, "enough");
  check_ok(weir_etcd_read_range(weir_view("", 0), see, &none));
  assert_int_equal(none.count, 0);
  for (size_t size = 1; size < out.size; ++size)  // cut anywhere: an error or fewer of them
    weir_status_destroy(weir_etcd_read_range(weir_view(out.data, size), see, &none));
  check_error(weir_etcd_read_range(weir_view("\x12\x03\x0a\x09k", 5), see, &none),
              WEIR_INVALID_ARGUMENT, "malformed KeyValue");
  check_error(weir_etcd_read_range(weir_view("\x12\x7f", 2), see, &none), WEIR_INVALID_ARGUMENT,
              "malformed RangeResponse");
  weir_strbuf_free(&out);
}

static void test_put_if_answers(void** state) {
  (void)state;
  bool is_put = false;
  check_ok(weir_etcd_read_put_if(weir_view("\x10\x01", 2), &is_put));
  assert_true(is_put);
  check_ok(weir_etcd_read_put_if(weir_view("", 0), &is_put));
  assert_false(is_put);
  check_error(weir_etcd_read_put_if(weir_view("\x10", 1), &is_put), WEIR_INVALID_ARGUMENT,
              "malformed TxnResponse");
}

static void test_leases(void** state) {
  (void)state;
  int64_t lease = 0, seconds = 0;
  check_ok(weir_etcd_read_grant(weir_view("\x10\x07\x18\x3c", 4), &lease, &seconds));
  assert_int_equal(lease, 7);
  assert_int_equal(seconds, 60);
  check_ok(weir_etcd_read_keep_alive(weir_view("\x10\x07\x18\x05", 4), 7, &seconds));
  assert_int_equal(seconds, 5);
  check_ok(weir_etcd_read_keep_alive(weir_view("\x10\x07", 2), 7, &seconds));
  assert_int_equal(seconds, 0);
}

static void test_lies_about_leases(void** state) {
  (void)state;
  int64_t lease = 0, seconds = 0;
  const struct {
    const char* bytes;
    size_t size;
  } bad[] = {{"", 0},
             {"\x10\x07", 2},                                                // no time
             {"\x18\x3c", 2},                                                // no lease
             {"\x10\x07\x18\x3c\x22\x02no", 8},                              // an error
             {"\x10\x07\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 13}};  // -1 s
  for (size_t i = 0; i < WEIR_COUNT_OF(bad); ++i)
    check_error(weir_etcd_read_grant(weir_view(bad[i].bytes, bad[i].size), &lease, &seconds),
                WEIR_INTERNAL, "etcd grants lease");
  check_error(weir_etcd_read_keep_alive(weir_view("\x10\x08\x18\x05", 4), 7, &seconds),
              WEIR_INTERNAL, "asked about lease 7 and tells of 8");
  check_error(weir_etcd_read_keep_alive(weir_view("\x10", 1), 7, &seconds), WEIR_INVALID_ARGUMENT,
              "malformed LeaseKeepAliveResponse");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_requests),         cmocka_unit_test(test_put_if),
      cmocka_unit_test(test_end_of_a_prefix),  cmocka_unit_test(test_range),
      cmocka_unit_test(test_put_if_answers),   cmocka_unit_test(test_leases),
      cmocka_unit_test(test_lies_about_leases)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
