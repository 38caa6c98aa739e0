// election_test.c — Elections before an etcd that answers what a test has laid down: right answers,
// lies, silence. tests/cluster/etcd_test.py asks a real one.
#include "cluster/etcd/election.h"

#include <stdio.h>
#include <unistd.h>

#include "base/alloc.h"
#include "cluster/etcd/fields.h"
#include "testing/tensors.h"
#include "wire/wire.h"

enum { GRANT, KEEP_ALIVE, REVOKE, RANGE, PUT, TXN, METHODS };
enum { LEASE = 7 };
static const char kKey[] = "jobs/a/chief", kHolder[] = "me";

// What is answered to each method: an error, or bytes.
typedef struct answer_t {
  weir_code_t code;
  char bytes[256];
  size_t size;
} answer_t;

typedef struct world_t {
  weir_rpc_loop_t* loop;
  weir_rpc_server_t* server;
  weir_mutex_t mu;
  answer_t answers[METHODS];  // guarded by mu, as what follows
  int calls[METHODS];
} world_t;

static void answer(world_t* w, int method, weir_rpc_call_t* call) {
  weir_mutex_lock(&w->mu);
  const answer_t answer = w->answers[method];
  ++w->calls[method];
  weir_mutex_unlock(&w->mu);
  if (answer.code) {
    weir_rpc_call_fail(call, weir_status_create(answer.code, "", 0, "etcdserver: no"));
    return;
  }
  weir_rpc_message_t* message = weir_rpc_message_create();
  weir_rpc_message_append(message, answer.bytes, answer.size);
  weir_rpc_call_respond(call, message);
}

static void on_grant(void* self, weir_rpc_call_t* call) { answer(self, GRANT, call); }
static void on_keep_alive(void* self, weir_rpc_call_t* call) { answer(self, KEEP_ALIVE, call); }
static void on_revoke(void* self, weir_rpc_call_t* call) { answer(self, REVOKE, call); }
static void on_range(void* self, weir_rpc_call_t* call) { answer(self, RANGE, call); }
static void on_put(void* self, weir_rpc_call_t* call) { answer(self, PUT, call); }
static void on_txn(void* self, weir_rpc_call_t* call) { answer(self, TXN, call); }

static const weir_rpc_method_t methods[] = {
    {"/etcdserverpb.Lease/LeaseGrant", on_grant, .is_inline = true},
    {"/etcdserverpb.Lease/LeaseKeepAlive", on_keep_alive, .is_inline = true},
    {"/etcdserverpb.Lease/LeaseRevoke", on_revoke, .is_inline = true},
    {"/etcdserverpb.KV/Range", on_range, .is_inline = true},
    {"/etcdserverpb.KV/Put", on_put, .is_inline = true},
    {"/etcdserverpb.KV/Txn", on_txn, .is_inline = true},
    {0}};

// ---- answers ----

static void lay_down(world_t* w, int method, weir_code_t code, weir_strbuf_t* take_bytes) {
  weir_mutex_lock(&w->mu);
  answer_t* answer = &w->answers[method];
  *answer = (answer_t){.code = code, .size = take_bytes->size};
  assert_true(take_bytes->size <= sizeof(answer->bytes));
  if (take_bytes->size) memcpy(answer->bytes, take_bytes->data, take_bytes->size);
  weir_mutex_unlock(&w->mu);
  weir_strbuf_free(take_bytes);
}

static void fail_all(world_t* w, weir_code_t code) {
  for (int i = 0; i < METHODS; ++i) lay_down(w, i, code, &(weir_strbuf_t){0});
}

static void give_lease(world_t* w, int64_t seconds) {
  weir_strbuf_t grant = {0}, keep = {0};
  weir_wire_put_int(&grant, LEASE_GRANT_RESPONSE_ID, LEASE);
  weir_wire_put_int(&grant, LEASE_GRANT_RESPONSE_TTL, seconds);
  lay_down(w, GRANT, WEIR_OK, &grant);
  weir_wire_put_int(&keep, LEASE_KEEP_ALIVE_RESPONSE_ID, LEASE);
  weir_wire_put_int(&keep, LEASE_KEEP_ALIVE_RESPONSE_TTL, seconds);
  lay_down(w, KEEP_ALIVE, WEIR_OK, &keep);
}

static void give_key(world_t* w, const char* key, const char* holder, int64_t revision,
                     int64_t lease) {
  weir_strbuf_t range = {0};
  const size_t at = weir_wire_begin(&range, RANGE_RESPONSE_KVS);
  weir_wire_put_string(&range, KEY_VALUE_KEY, key);
  weir_wire_put_int(&range, KEY_VALUE_MOD_REVISION, revision);
  weir_wire_put_string(&range, KEY_VALUE_VALUE, holder);
  weir_wire_put_int(&range, KEY_VALUE_LEASE, lease);
  weir_wire_end(&range, at);
  lay_down(w, RANGE, WEIR_OK, &range);
}

static void give_txn(world_t* w, bool is_put) {
  weir_strbuf_t txn = {0};
  weir_wire_put_bool(&txn, TXN_RESPONSE_SUCCEEDED, is_put);
  lay_down(w, TXN, WEIR_OK, &txn);
}

static int calls_of(world_t* w, int method) {
  weir_mutex_lock(&w->mu);
  const int count = w->calls[method];
  weir_mutex_unlock(&w->mu);
  return count;
}

// ---- the world ----

static int open_world(void** state) {
  world_t* w = calloc(1, sizeof(*w));
  weir_mutex_init(&w->mu);
  check_ok(weir_rpc_loop_create(NULL, &w->loop));
  check_ok(weir_rpc_server_create(w->loop,
                                  &(weir_rpc_server_options_t){.address = "127.0.0.1:0", .self = w},
                                  methods, &w->server));
  give_lease(w, 60);
  give_txn(w, true);
  *state = w;
  return 0;
}

static int close_world(void** state) {
  world_t* w = *state;
  weir_rpc_server_destroy(w->server);
  weir_rpc_loop_destroy(w->loop);
  weir_mutex_destroy(&w->mu);
  free(w);
  return 0;
}

static weir_etcd_election_t* open_at(const char* endpoints, double seconds) {
  weir_etcd_election_t* election = NULL;
  check_ok(weir_etcd_election_create(
      &(weir_etcd_election_options_t){
          .etcd = {.endpoints = endpoints}, .key = kKey, .holder = kHolder, .seconds = seconds},
      &election));
  return election;
}

static weir_etcd_election_t* open_election(world_t* w, double seconds) {
  return open_at(weir_rpc_server_address(w->server), seconds);
}

static bool ask(weir_etcd_election_t* election) {
  bool is_held = false;
  check_ok(weir_etcd_election_ask(election, &is_held));
  return is_held;
}

static void check_unknown(weir_etcd_election_t* election, weir_code_t code, const char* text) {
  bool is_held = false;
  check_error(weir_etcd_election_ask(election, &is_held), code, text);
  assert_false(is_held);
}

// ---- tests ----

static void test_takes_keeps_and_gives_back(void** state) {
  world_t* w = *state;
  weir_etcd_election_t* election = open_election(w, 60);
  assert_true(ask(election));
  assert_int_equal(calls_of(w, GRANT), 1);
  give_key(w, kKey, kHolder, 3, LEASE);
  assert_true(ask(election));
  assert_int_equal(calls_of(w, KEEP_ALIVE), 1);
  assert_int_equal(calls_of(w, TXN), 1);
  check_ok(weir_etcd_election_release(election));
  assert_int_equal(calls_of(w, REVOKE), 1);
  check_ok(weir_etcd_election_release(election));  // nothing is left
  assert_int_equal(calls_of(w, REVOKE), 1);
  weir_etcd_election_destroy(election);
}

static void test_another_has_it(void** state) {
  world_t* w = *state;
  weir_etcd_election_t* election = open_election(w, 60);
  give_key(w, kKey, "another", 3, LEASE);
  assert_false(ask(election));
  assert_int_equal(calls_of(w, GRANT), 0);
  give_key(w, kKey, "another", 3, 0);  // whoever that is, it never goes
  assert_false(ask(election));
  weir_etcd_election_destroy(election);
}

static void test_another_is_faster(void** state) {
  world_t* w = *state;
  weir_etcd_election_t* election = open_election(w, 60);
  give_txn(w, false);
  assert_false(ask(election));
  weir_etcd_election_destroy(election);
}

// A process that was started again under its old name does not wait for its old lease to end.
static void test_its_own_name(void** state) {
  world_t* w = *state;
  weir_etcd_election_t* election = open_election(w, 60);
  give_key(w, kKey, kHolder, 3, LEASE + 1);
  assert_true(ask(election));
  assert_int_equal(calls_of(w, TXN), 1);
  weir_etcd_election_destroy(election);
}

static void test_lease_is_gone(void** state) {
  world_t* w = *state;
  weir_etcd_election_t* election = open_election(w, 60);
  assert_true(ask(election));
  give_lease(w, 0);
  give_key(w, kKey, "another", 4, LEASE + 1);
  assert_false(ask(election));
  lay_down(w, RANGE, WEIR_OK, &(weir_strbuf_t){0});
  give_lease(w, 60);
  lay_down(w, TXN, WEIR_NOT_FOUND, &(weir_strbuf_t){0});  // gone between two questions
  check_unknown(election, WEIR_NOT_FOUND, "etcd: etcdserver: no");
  give_txn(w, true);
  assert_true(ask(election));
  assert_int_equal(calls_of(w, GRANT), 3);
  weir_etcd_election_destroy(election);
}

static void wait_until_over(weir_etcd_election_t* election, weir_code_t code) {
  bool is_held = true;
  weir_status_t* status = NULL;
  while (!(status = weir_etcd_election_ask(election, &is_held))) {
    assert_true(is_held);
    usleep(10000);
  }
  check_error(status, code, "etcd: etcdserver: no");
}

// What it has is certain until its time is over, and no longer.
static void test_silence(void** state) {
  world_t* w = *state;
  weir_etcd_election_t *brief = open_election(w, 0.5), *longer = open_election(w, 60);
  give_lease(w, INT64_MAX);  // nobody leads for longer than was asked for, whatever is promised
  assert_true(ask(brief));
  assert_true(ask(longer));
  fail_all(w, WEIR_UNAVAILABLE);
  wait_until_over(brief, WEIR_UNAVAILABLE);
  assert_true(ask(longer));
  give_lease(w, 60);  // back, and has forgotten nothing
  give_key(w, kKey, kHolder, 3, LEASE);
  assert_true(ask(brief));
  weir_etcd_election_destroy(brief);
  weir_etcd_election_destroy(longer);
}

static void test_lies(void** state) {
  world_t* w = *state;
  weir_etcd_election_t* election = open_election(w, 60);
  weir_strbuf_t noise = {0};
  give_key(w, "another", kHolder, 3, LEASE);
  check_unknown(election, WEIR_INTERNAL, "tells of 'another'");
  give_key(w, kKey, kHolder, 0, LEASE);
  check_unknown(election, WEIR_INTERNAL, "revision 0");
  weir_strbuf_puts(&noise, "HTTP/1.1 200 OK\r\n");
  lay_down(w, RANGE, WEIR_OK, &noise);
  check_unknown(election, WEIR_INVALID_ARGUMENT, "malformed RangeResponse");
  lay_down(w, RANGE, WEIR_OK, &(weir_strbuf_t){0});
  lay_down(w, GRANT, WEIR_OK, &(weir_strbuf_t){0});
  check_unknown(election, WEIR_INTERNAL, "etcd grants lease 0 for 0 s");
  weir_etcd_election_destroy(election);
}

static void test_endpoints(void** state) {
  world_t* w = *state;
  char endpoints[128];
  const char* alive = weir_rpc_server_address(w->server);
  snprintf(endpoints, sizeof(endpoints), "127.0.0.1:1, http://%s", alive);
  weir_etcd_election_t* election = open_at(endpoints, 60);
  assert_true(ask(election));
  weir_etcd_election_destroy(election);
  election = open_at("127.0.0.1:1,127.0.0.1:2", 60);
  check_unknown(election, WEIR_UNAVAILABLE, "etcd: cannot connect to 127.0.0.1:");
  weir_etcd_election_destroy(election);
}

static void test_refused(void** state) {
  (void)state;
  weir_etcd_election_t* election = NULL;
  const char* const bad[] = {"", "nowhere", "a:1,b", ",", "http://"};
  for (size_t i = 0; i < WEIR_COUNT_OF(bad); ++i) {
    const weir_etcd_election_options_t options = {
        .etcd = {.endpoints = bad[i]}, .key = kKey, .holder = kHolder, .seconds = 1};
    check_error(weir_etcd_election_create(&options, &election), WEIR_INVALID_ARGUMENT, bad[i]);
  }
  assert_null(election);
}

static void test_out_of_memory(void** state) {
  world_t* w = *state;
  const weir_etcd_election_options_t options = {
      .etcd = {.endpoints = weir_rpc_server_address(w->server)},
      .key = kKey,
      .holder = kHolder,
      .seconds = 60};
  weir_status_t* status = NULL;
  weir_etcd_election_t* election = NULL;
  int64_t n = 1;
  do {
    weir_status_destroy(status);
    weir_alloc_fail_at(n++, false);
    status = weir_etcd_election_create(&options, &election);
    weir_alloc_fail_at(0, false);
    if (status) assert_int_equal(weir_status_code(status), WEIR_RESOURCE_EXHAUSTED);
  } while (status);
  assert_true(n > 5);
  weir_etcd_election_destroy(election);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)
  const struct CMUnitTest tests[] = {TEST(test_takes_keeps_and_gives_back),
                                     TEST(test_another_has_it),
                                     TEST(test_another_is_faster),
                                     TEST(test_its_own_name),
                                     TEST(test_lease_is_gone),
                                     TEST(test_silence),
                                     TEST(test_lies),
                                     TEST(test_endpoints),
                                     TEST(test_refused),
                                     TEST(test_out_of_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
