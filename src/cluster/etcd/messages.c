// messages.c — etcd's messages: requests written, answers read.
#include "cluster/etcd/messages.h"

#include "cluster/etcd/fields.h"
#include "wire/wire.h"

// ---- requests ----

static void put_view(weir_strbuf_t* out, uint32_t field, weir_view_t view) {
  weir_wire_put_bytes(out, field, view.data, view.size);
}

void weir_etcd_write_range(weir_strbuf_t* out, weir_view_t key, weir_view_t end) {
  put_view(out, RANGE_REQUEST_KEY, key);
  if (end.size) put_view(out, RANGE_REQUEST_RANGE_END, end);
}

void weir_etcd_write_put(weir_strbuf_t* out, const weir_etcd_put_t* put) {
  put_view(out, PUT_REQUEST_KEY, put->key);
  put_view(out, PUT_REQUEST_VALUE, put->value);
  weir_wire_put_int(out, PUT_REQUEST_LEASE, put->lease);
}

void weir_etcd_write_put_if(weir_strbuf_t* out, const weir_etcd_put_t* put, int64_t revision) {
  size_t compare = weir_wire_begin(out, TXN_REQUEST_COMPARE);
  weir_wire_put_int(out, COMPARE_RESULT, COMPARE_EQUAL);
  weir_wire_put_int(out, COMPARE_TARGET, COMPARE_TARGET_MOD);
  put_view(out, COMPARE_KEY, put->key);
  weir_wire_put_int(out, COMPARE_MOD_REVISION, revision);
  weir_wire_end(out, compare);
  size_t success = weir_wire_begin(out, TXN_REQUEST_SUCCESS);
  size_t request = weir_wire_begin(out, REQUEST_OP_PUT);
  weir_etcd_write_put(out, put);
  weir_wire_end(out, request);
  weir_wire_end(out, success);
}

void weir_etcd_write_grant(weir_strbuf_t* out, int64_t seconds) {
  weir_wire_put_int(out, LEASE_GRANT_REQUEST_TTL, seconds);
}

void weir_etcd_write_revoke(weir_strbuf_t* out, int64_t lease) {
  weir_wire_put_int(out, LEASE_REVOKE_REQUEST_ID, lease);
}

void weir_etcd_write_keep_alive(weir_strbuf_t* out, int64_t lease) {
  weir_wire_put_int(out, LEASE_KEEP_ALIVE_REQUEST_ID, lease);
}

void weir_etcd_write_end_of(weir_strbuf_t* out, weir_view_t prefix) {
  while (prefix.size && (uint8_t)prefix.data[prefix.size - 1] == UINT8_MAX) --prefix.size;
  if (!prefix.size) return;
  weir_strbuf_append(out, prefix.data, prefix.size - 1);
  weir_strbuf_putc(out, (char)(prefix.data[prefix.size - 1] + 1));
}

// ---- answers ----

static bool is_int(const weir_wire_reader_t* reader, uint32_t field) {
  return reader->field == field && reader->type == WEIR_WIRE_VARINT;
}

static bool is_bytes(const weir_wire_reader_t* reader, uint32_t field) {
  return reader->field == field && reader->type == WEIR_WIRE_BYTES;
}

static weir_status_t* read_entry(weir_view_t message, weir_etcd_entry_t* out_entry) {
  weir_etcd_entry_t entry = {.key = {"", 0}, .value = {"", 0}};
  weir_wire_reader_t reader = weir_wire_reader(message);
  while (weir_wire_next(&reader)) {
    if (is_bytes(&reader, KEY_VALUE_KEY)) entry.key = reader.bytes;
    if (is_bytes(&reader, KEY_VALUE_VALUE)) entry.value = reader.bytes;
    if (is_int(&reader, KEY_VALUE_MOD_REVISION)) entry.revision = weir_wire_int(&reader);
    if (is_int(&reader, KEY_VALUE_LEASE)) entry.lease = weir_wire_int(&reader);
  }
  *out_entry = entry;
  return weir_wire_check(&reader, "KeyValue of etcd");
}

weir_status_t* weir_etcd_read_range(weir_view_t answer, weir_etcd_entry_fn_t fn, void* arg) {
  weir_wire_reader_t reader = weir_wire_reader(answer);
  while (weir_wire_next(&reader)) {
    weir_etcd_entry_t entry;
    if (!is_bytes(&reader, RANGE_RESPONSE_KVS)) continue;
    WEIR_TRY(read_entry(reader.bytes, &entry));
    WEIR_TRY(fn(arg, &entry));
  }
  return weir_wire_check(&reader, "RangeResponse of etcd");
}

weir_status_t* weir_etcd_read_put_if(weir_view_t answer, bool* out_is_put) {
  bool is_put = false;
  weir_wire_reader_t reader = weir_wire_reader(answer);
  while (weir_wire_next(&reader)) {
    if (is_int(&reader, TXN_RESPONSE_SUCCEEDED)) is_put = weir_wire_bool(&reader);
  }
  WEIR_TRY(weir_wire_check(&reader, "TxnResponse of etcd"));
  *out_is_put = is_put;
  return NULL;
}

weir_status_t* weir_etcd_read_grant(weir_view_t answer, int64_t* out_lease, int64_t* out_seconds) {
  int64_t lease = 0, seconds = 0;
  weir_view_t error = weir_view("", 0);
  weir_wire_reader_t reader = weir_wire_reader(answer);
  while (weir_wire_next(&reader)) {
    if (is_int(&reader, LEASE_GRANT_RESPONSE_ID)) lease = weir_wire_int(&reader);
    if (is_int(&reader, LEASE_GRANT_RESPONSE_TTL)) seconds = weir_wire_int(&reader);
    if (is_bytes(&reader, LEASE_GRANT_RESPONSE_ERROR)) error = reader.bytes;
  }
  WEIR_TRY(weir_wire_check(&reader, "LeaseGrantResponse of etcd"));
  if (error.size || !lease || seconds <= 0)
    return WEIR_STATUS(INTERNAL, "etcd grants lease %lld for %lld s: '%.*s'", (long long)lease,
                       (long long)seconds, WEIR_VIEW_ARG(error));
  *out_lease = lease;
  *out_seconds = seconds;
  return NULL;
}

weir_status_t* weir_etcd_read_keep_alive(weir_view_t answer, int64_t lease, int64_t* out_seconds) {
  int64_t told = 0, seconds = 0;
  weir_wire_reader_t reader = weir_wire_reader(answer);
  while (weir_wire_next(&reader)) {
    if (is_int(&reader, LEASE_KEEP_ALIVE_RESPONSE_ID)) told = weir_wire_int(&reader);
    if (is_int(&reader, LEASE_KEEP_ALIVE_RESPONSE_TTL)) seconds = weir_wire_int(&reader);
  }
  WEIR_TRY(weir_wire_check(&reader, "LeaseKeepAliveResponse of etcd"));
  if (told != lease)
    return WEIR_STATUS(INTERNAL, "etcd was asked about lease %lld and tells of %lld",
                       (long long)lease, (long long)told);
  *out_seconds = WEIR_MAX(seconds, 0);
  return NULL;
}
