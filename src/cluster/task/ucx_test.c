// ucx_test.c — Tensors by UCX between two tasks of this process, and what messages, offers and
// addresses that are wrong achieve. Where the library is missing only what needs none is tested.
#include "cluster/task/ucx.h"

#include <sys/eventfd.h>

#include "cluster/task/ucx_internal.h"
#include "testing/hand_over.h"
#include "wire/wire.h"

#define LARGE ((int64_t)1 << 20)

// ---- the receiver's side alone, without UCX ----

typedef struct receiver_t {
  weir_task_t task;
  weir_ucx_t ucx;
  ucx_arrival_t* arrival;
  char token[UCX_TOKEN_SIZE];
  int done_count;
  weir_status_t* status;
  weir_tensor_t* tensor;
} receiver_t;

static void collected(void* arg, weir_status_t* take_status, weir_tensor_t* take_tensor) {
  receiver_t* receiver = arg;
  ++receiver->done_count;
  receiver->status = take_status;
  receiver->tensor = take_tensor;
}

// Makes an offer and reads its token from the request.
static void receiver_start(receiver_t* receiver) {
  *receiver = (receiver_t){.task = {.name = (char*)(uintptr_t) "/job:t/replica:0/task:0"}};
  weir_ucx_t* ucx = &receiver->ucx;
  ucx->task = &receiver->task;
  ucx->instance = 7;
  ucx->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  weir_mutex_init(&ucx->mu);
  weir_strbuf_t request = {0};
  receiver->arrival = weir_ucx_offer(&ucx->base, NULL, &request);
  assert_non_null(receiver->arrival);
  weir_wire_reader_t any = weir_wire_reader(weir_strbuf_view(&request));
  assert_true(weir_wire_next(&any));
  weir_wire_reader_t offer = weir_wire_reader(weir_transport_value(any.bytes, UCX_URL));
  while (weir_wire_next(&offer)) {
    if (offer.field == OFFER_TOKEN) memcpy(receiver->token, offer.bytes.data, UCX_TOKEN_SIZE);
    if (offer.field == OFFER_INSTANCE) assert_int_equal(offer.value, 7);
    if (offer.field == OFFER_TASK) assert_true(weir_view_is(offer.bytes, receiver->task.name));
  }
  weir_strbuf_free(&request);
}

static void receiver_end(receiver_t* receiver) {
  weir_ucx_t* ucx = &receiver->ucx;
  if (receiver->arrival) weir_ucx_withdraw(&ucx->base, receiver->arrival);
  assert_int_equal(ucx->offers.count, 0);
  weir_tensor_release(receiver->tensor);
  weir_status_destroy(receiver->status);
  weir_map_free(&ucx->offers);
  weir_mutex_destroy(&ucx->mu);
  close(ucx->wake_fd);
}

static ucs_status_t come(receiver_t* receiver, int64_t dtype, int rank, const int64_t* dims,
                         void* data, size_t size) {
  ucp_message_t message = {.mask = 0};  // the data is there
  weir_strbuf_t header = {0};
  weir_wire_put_bytes(&header, HEADER_TOKEN, receiver->token, UCX_TOKEN_SIZE);
  weir_wire_put_int(&header, HEADER_DTYPE, dtype);
  for (int i = 0; i < rank; ++i) weir_wire_put_fixed64(&header, HEADER_DIM, (uint64_t)dims[i % 2]);
  ucs_status_t code =
      weir_ucx_receive(&receiver->ucx, header.data, header.size, data, size, &message);
  weir_strbuf_free(&header);
  return code;
}

static void test_comes_before_it_is_collected(void** state) {
  (void)state;
  receiver_t receiver;
  float data[] = {1, 2, 3, 4, 5, 6};
  const int64_t dims[] = {2, 3};
  receiver_start(&receiver);
  assert_int_equal(come(&receiver, WEIR_DTYPE_FLOAT, 2, dims, data, sizeof(data)), UCS_OK);
  // Nothing more is taken for the same offer.
  assert_int_equal(come(&receiver, WEIR_DTYPE_FLOAT, 2, dims, data, sizeof(data)),
                   UCS_ERR_CANCELED);
  weir_ucx_collect(&receiver.ucx.base, receiver.arrival, collected, &receiver);
  assert_int_equal(receiver.done_count, 1);
  check_ok(receiver.status);
  assert_int_equal(receiver.tensor->rank, 2);
  assert_memory_equal(weir_tensor_data(receiver.tensor), data, sizeof(data));
  assert_int_equal(weir_ucx_count(&receiver.ucx).bytes_received, sizeof(data));
  receiver_end(&receiver);
}

static void test_comes_while_it_is_waited_for(void** state) {
  (void)state;
  receiver_t receiver;
  uint8_t data[5] = "abcd";
  const int64_t dims[] = {5};
  receiver_start(&receiver);
  weir_ucx_collect(&receiver.ucx.base, receiver.arrival, collected, &receiver);
  weir_ucx_look_at_offers(&receiver.ucx, false);
  assert_int_equal(receiver.done_count, 0);
  assert_int_equal(come(&receiver, WEIR_DTYPE_UINT8, 1, dims, data, sizeof(data)), UCS_OK);
  assert_int_equal(receiver.done_count, 1);
  check_ok(receiver.status);
  assert_memory_equal(weir_tensor_data(receiver.tensor), data, sizeof(data));
  receiver_end(&receiver);
}

static void test_waits_end(void** state) {
  (void)state;
  enum { CANCELLED_BEFORE, CANCELLED_AFTER, END, CASES };
  for (int i = 0; i < CASES; ++i) {
    receiver_t receiver;
    receiver_start(&receiver);
    if (i == CANCELLED_BEFORE) weir_ucx_cancel(&receiver.ucx.base, receiver.arrival);
    weir_ucx_collect(&receiver.ucx.base, receiver.arrival, collected, &receiver);
    if (i == CANCELLED_AFTER) weir_ucx_cancel(&receiver.ucx.base, receiver.arrival);
    assert_int_equal(receiver.done_count, 0);  // on the thread only
    weir_ucx_look_at_offers(&receiver.ucx, i == END);
    assert_int_equal(receiver.done_count, 1);
    check_error(receiver.status, WEIR_CANCELLED, "not waited for");
    receiver.status = NULL;
    weir_ucx_look_at_offers(&receiver.ucx, true);
    assert_int_equal(receiver.done_count, 1);
    receiver_end(&receiver);
  }
}

static void test_withdrawn_offers_take_nothing(void** state) {
  (void)state;
  receiver_t receiver;
  uint8_t data[5] = "abcd";
  const int64_t dims[] = {5};
  receiver_start(&receiver);
  weir_ucx_withdraw(&receiver.ucx.base, receiver.arrival);
  receiver.arrival = NULL;
  assert_int_equal(come(&receiver, WEIR_DTYPE_UINT8, 1, dims, data, sizeof(data)),
                   UCS_ERR_CANCELED);
  receiver_end(&receiver);
}

static void test_wrong_messages(void** state) {
  (void)state;
  static const struct {
    int64_t dtype;
    int rank;
    int64_t dims[2];
    size_t size;
  } cases[] = {{WEIR_DTYPE_FLOAT, 1, {3}, 8},
               {WEIR_DTYPE_FLOAT, 1, {2}, 9},
               {WEIR_DTYPE_FLOAT, 1, {0}, 0},
               {WEIR_DTYPE_FLOAT, 1, {-2}, 8},
               {WEIR_DTYPE_STRING, 1, {1}, 8},
               {WEIR_DTYPE_RESOURCE, 1, {1}, 8},
               {0, 1, {8}, 8},
               {-1, 1, {8}, 8},
               {12345, 1, {8}, 8},
               {WEIR_DTYPE_UINT8, 2, {INT64_MAX, INT64_MAX}, 1},
               {WEIR_DTYPE_UINT8, 1, {INT64_MAX}, 8},
               {WEIR_DTYPE_UINT8, 1, {65}, 65},
               {(int64_t)1 << 40 | WEIR_DTYPE_UINT8, 1, {8}, 8}};
  for (size_t i = 0; i < WEIR_COUNT_OF(cases); ++i) {
    receiver_t receiver;
    uint8_t data[65] = {0};
    receiver_start(&receiver);
    receiver.task.max_message_size = 64;
    assert_int_equal(
        come(&receiver, cases[i].dtype, cases[i].rank, cases[i].dims, data, cases[i].size),
        UCS_ERR_NO_MEMORY);
    // A producer that says it was passed all the same: the reason is the status.
    weir_ucx_collect(&receiver.ucx.base, receiver.arrival, collected, &receiver);
    assert_int_equal(receiver.done_count, 1);
    assert_non_null(receiver.status);
    receiver_end(&receiver);
  }
}

static void test_headers_that_are_none(void** state) {
  (void)state;
  receiver_t receiver;
  ucp_message_t message = {.mask = 0};
  char bytes[4096];
  receiver_start(&receiver);
  for (size_t size = 0; size <= sizeof(bytes); size = size * 2 + 1) {
    for (size_t i = 0; i < size; ++i) bytes[i] = (char)(i * 2654435761u >> 13);
    assert_int_equal(weir_ucx_receive(&receiver.ucx, bytes, size, bytes, 8, &message),
                     UCS_ERR_INVALID_PARAM);
  }
  const int64_t dims[] = {1, 1};
  assert_int_equal(come(&receiver, WEIR_DTYPE_UINT8, WEIR_MAX_RANK + 1, dims, bytes, 1),
                   UCS_ERR_INVALID_PARAM);
  assert_int_equal(come(&receiver, WEIR_DTYPE_UINT8, WEIR_MAX_RANK, dims, bytes, 1), UCS_OK);
  receiver_end(&receiver);
}

// ---- two tasks ----

static bool has_library(void) {
  const ucx_api_t* api = NULL;
  weir_status_t* status = weir_ucx_api_open(&api);
  weir_status_destroy(status);
  return !status;
}

static int set_up(void** state) {
  *state = NULL;
  if (!has_library()) return 0;
  pair_t* pair = pair_start_with(2, WEIR_TRANSPORT_UCX);
  for (int i = 0; i < 2; ++i) assert_int_equal(pair->tasks[i]->transport_count, 2);
  *state = pair;  // task 0 receives what 1 sends
  return 0;
}

static int tear_down(void** state) { return *state ? pair_stop(state) : 0; }

static pair_t* pair_of(void** state) {
  if (!*state) skip();
  return *state;
}

static void hand_over(pair_t* pair, int64_t step_id, weir_tensor_t* tensor) {
  weir_rendezvous_t* ends[2] = {NULL, NULL};
  hand_over_begin(pair, step_id, NULL, ends);
  hand_over_tensor(ends, tensor);
  hand_over_end(pair, step_id, ends);
}

static long long received(pair_t* pair) {
  return weir_ucx_count(pair->tasks[0]->ucx).bytes_received;
}

// Hands tensors over until one goes by UCX. The next step's number.
static int64_t connect(pair_t* pair, int64_t step_id) {
  int64_t deadline = weir_clock_ns() + INT64_C(60000000000);
  int64_t count = LARGE;
  weir_tensor_t* tensor = make_pattern(WEIR_DTYPE_FLOAT, 1, &count);
  for (long long before = received(pair); received(pair) == before; usleep(10000)) {
    assert_true(weir_clock_ns() < deadline);
    hand_over(pair, step_id++, tensor);
  }
  weir_tensor_release(tensor);
  return step_id;
}

static void test_large_ones_go(void** state) {
  pair_t* pair = pair_of(state);
  static const struct {
    weir_dtype_t dtype;
    int rank;
    int64_t dims[3];
  } cases[] = {{WEIR_DTYPE_FLOAT, 2, {1024, 1024}},  {WEIR_DTYPE_BOOL, 1, {300001}},
               {WEIR_DTYPE_INT64, 3, {1, 32768, 1}}, {WEIR_DTYPE_COMPLEX128, 1, {16384}},
               {WEIR_DTYPE_HALF, 3, {7, 100003, 1}}, {WEIR_DTYPE_UINT8, 1, {(1 << 20) + 1}}};
  int64_t step_id = connect(pair, 1);
  for (size_t i = 0; i < WEIR_COUNT_OF(cases); ++i) {
    weir_tensor_t* tensor = make_pattern(cases[i].dtype, cases[i].rank, cases[i].dims);
    long long before = received(pair);
    hand_over(pair, step_id++, tensor);
    assert_int_equal(received(pair) - before, weir_tensor_byte_size(tensor));
    assert_true(weir_tensor_is_sole(tensor));
    weir_tensor_release(tensor);
  }
  int64_t count = WEIR_TRANSPORT_MIN_SIZE - 1;
  weir_tensor_t* small = make_pattern(WEIR_DTYPE_UINT8, 1, &count);
  long long before = received(pair);
  hand_over(pair, step_id, small);
  assert_int_equal(received(pair), before);
  weir_tensor_release(small);
}

// ---- offers that producers get ----

typedef struct outcome_t {
  weir_mutex_t mu;
  weir_cond_t cond;
  bool is_done;
  weir_code_t code;
} outcome_t;

static void passed(void* arg, weir_status_t* take_status) {
  outcome_t* outcome = arg;
  weir_mutex_lock(&outcome->mu);
  outcome->is_done = true;
  outcome->code = weir_status_code(take_status);
  weir_cond_broadcast(&outcome->cond);
  weir_mutex_unlock(&outcome->mu);
  weir_status_destroy(take_status);
}

// Has task 1 pass a tensor to who makes up an offer. |out_code|: what came of it, if it took it.
static bool pass_to(pair_t* pair, const char* task, uint64_t instance, size_t token_size,
                    weir_code_t* out_code) {
  weir_transport_t* transport = pair->tasks[1]->transports[0];
  weir_strbuf_t offer = {0};
  weir_wire_put_string(&offer, OFFER_TASK, task);
  weir_wire_put_fixed64(&offer, OFFER_INSTANCE, instance);
  weir_wire_put_bytes(&offer, OFFER_TOKEN, "nobody waits for this", token_size);
  int64_t count = LARGE;
  weir_tensor_t* tensor = make_pattern(WEIR_DTYPE_FLOAT, 1, &count);
  outcome_t outcome = {.is_done = false};
  weir_mutex_init(&outcome.mu);
  weir_cond_init(&outcome.cond);
  weir_passing_t passing = {
      .offer = weir_strbuf_view(&offer), .tensor = tensor, .done = passed, .arg = &outcome};
  check_ok(weir_cancel_create(NULL, &passing.cancel));
  bool is_taken = transport->vtable->pass(transport, &passing);
  int64_t deadline = weir_clock_ns() + INT64_C(60000000000);
  weir_mutex_lock(&outcome.mu);
  while (is_taken && !outcome.is_done &&
         weir_cond_wait_until(&outcome.cond, &outcome.mu, deadline)) {
  }
  assert_int_equal(outcome.is_done, is_taken);
  weir_mutex_unlock(&outcome.mu);
  *out_code = outcome.code;
  weir_cancel_destroy(passing.cancel);
  weir_cond_destroy(&outcome.cond);
  weir_mutex_destroy(&outcome.mu);
  weir_tensor_release(tensor);
  weir_strbuf_free(&offer);
  return is_taken;
}

static void test_wrong_offers(void** state) {
  pair_t* pair = pair_of(state);
  weir_code_t code = WEIR_OK;
  int64_t step_id = connect(pair, 1);
  uint64_t instance = pair->tasks[0]->ucx->instance;
  assert_false(pass_to(pair, TASK(7), instance, UCX_TOKEN_SIZE, &code));  // not of the cluster
  assert_false(pass_to(pair, "/job:x/replica:0/task:0", instance, UCX_TOKEN_SIZE, &code));
  assert_false(pass_to(pair, "127.0.0.1:80", instance, UCX_TOKEN_SIZE, &code));
  assert_false(pass_to(pair, TASK(0), 0, UCX_TOKEN_SIZE, &code));
  assert_false(pass_to(pair, TASK(0), instance, UCX_TOKEN_SIZE - 1, &code));
  assert_false(pass_to(pair, TASK(0), instance + 1, UCX_TOKEN_SIZE, &code));  // an earlier process
  // A token that nobody waits for: the receiver refuses, and nothing is left.
  assert_true(pass_to(pair, TASK(0), instance, UCX_TOKEN_SIZE, &code));
  assert_int_equal(code, WEIR_UNAVAILABLE);
  assert_int_equal(weir_ucx_count(pair->tasks[1]->ucx).sends_open, 0);
  // None of that costs the endpoint.
  int64_t count = LARGE;
  weir_tensor_t* tensor = make_pattern(WEIR_DTYPE_FLOAT, 1, &count);
  long long before = received(pair);
  hand_over(pair, step_id, tensor);
  assert_int_equal(received(pair) - before, weir_tensor_byte_size(tensor));
  weir_tensor_release(tensor);
}

// A connection that is lost may be a task that has died: UCX connects anew.
static void test_lost_connections(void** state) {
  pair_t* pair = pair_of(state);
  weir_ucx_t* ucx = pair->tasks[1]->ucx;
  int64_t step_id = connect(pair, 1);
  for (uint64_t connection = 0; connection < 100; ++connection)
    weir_ucx_end_connection(ucx, connection);
  connect(pair, step_id);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
int main(void) {
  setenv("UCX_TLS", "tcp,self", 0);
  // It would change the code of madvise and others, for RDMA's sake, under sanitizers' feet.
  setenv("UCX_MEM_MMAP_HOOK_MODE", "none", 0);
  setenv("WEIR_SAME_HOST", "0", 1);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_comes_before_it_is_collected),
      cmocka_unit_test(test_comes_while_it_is_waited_for),
      cmocka_unit_test(test_waits_end),
      cmocka_unit_test(test_withdrawn_offers_take_nothing),
      cmocka_unit_test(test_wrong_messages),
      cmocka_unit_test(test_headers_that_are_none),
      TEST(test_large_ones_go),
      TEST(test_wrong_offers),
      TEST(test_lost_connections),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
