// same_host_test.c — Tensors read from another task's memory: that they are, that what cannot be
// read comes by socket, what peers that lie achieve, and that nothing is held for those who went.
// Both tasks are in this process, which reads itself: it is made to believe that it is another one.
#include "cluster/task/same_host.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "testing/hand_over.h"
#include "wire/wire.h"

#define LARGE ((int64_t)1 << 20)

static int set_up(void** state) {
  pair_t* pair = pair_start(2);
  for (int i = 0; i < 2; ++i) {
    assert_int_not_equal(pair->tasks[i]->same_host.host, 0);
    pair->tasks[i]->same_host.self = 0;
  }
  *state = pair;  // task 0 receives what 1 sends
  return 0;
}

// ---- a step that hands one tensor from task 1 to task 0 ----

static void wait_until_none_held(weir_task_t* task) {
  int64_t deadline = weir_clock_ns() + INT64_C(60000000000);
  while (weir_same_host_count(&task->same_host) > 0 && weir_clock_ns() < deadline) usleep(200);
  assert_int_equal(weir_same_host_count(&task->same_host), 0);
}

// |alias|: what task 0 is called in the step; NULL: as everywhere. What it holds it lets go of by
// the acknowledgement, before the step ends.
static void hand_over_as(pair_t* pair, int64_t step_id, weir_alias_t* alias,
                         weir_tensor_t* tensor) {
  weir_rendezvous_t* ends[2] = {NULL, NULL};
  hand_over_begin(pair, step_id, alias, ends);
  hand_over_tensor(ends, tensor);
  wait_until_none_held(pair->tasks[1]);
  hand_over_end(pair, step_id, ends);
}

static void hand_over(pair_t* pair, int64_t step_id, weir_tensor_t* tensor) {
  hand_over_as(pair, step_id, NULL, tensor);
}

static long long bytes_read(pair_t* pair) {
  return atomic_load(&pair->tasks[0]->same_host.bytes_read);
}

static void hand_over_large(pair_t* pair, int64_t step_id) {
  int64_t count = LARGE;
  weir_tensor_t* tensor = make_pattern(WEIR_DTYPE_FLOAT, 1, &count);
  hand_over(pair, step_id, tensor);
  assert_int_equal(weir_tensor_byte_size(tensor), LARGE * sizeof(float));
  weir_tensor_release(tensor);
}

static void test_large_ones_are_read(void** state) {
  pair_t* pair = *state;
  static const struct {
    weir_dtype_t dtype;
    int rank;
    int64_t dims[3];
  } cases[] = {{WEIR_DTYPE_FLOAT, 2, {1024, 1024}},   {WEIR_DTYPE_BOOL, 1, {300001}},
               {WEIR_DTYPE_INT64, 3, {1, 32768, 1}},  {WEIR_DTYPE_COMPLEX128, 1, {16384}},
               {WEIR_DTYPE_HALF, 3, {7, 1000003, 1}}, {WEIR_DTYPE_DOUBLE, 2, {131073, 1}},
               {WEIR_DTYPE_UINT8, 1, {(1 << 20) + 1}}};
  long long expected = 0;
  for (size_t i = 0; i < WEIR_COUNT_OF(cases); ++i) {
    weir_tensor_t* tensor = make_pattern(cases[i].dtype, cases[i].rank, cases[i].dims);
    hand_over(pair, (int64_t)i + 1, tensor);
    expected += (long long)weir_tensor_byte_size(tensor);
    assert_int_equal(bytes_read(pair), expected);
    weir_tensor_release(tensor);
  }
  int64_t count = WEIR_TRANSPORT_MIN_SIZE - 1;
  weir_tensor_t* small = make_pattern(WEIR_DTYPE_UINT8, 1, &count);
  hand_over(pair, 100, small);
  assert_int_equal(bytes_read(pair), expected);
  weir_tensor_release(small);
}

static void test_off(void** state) {
  pair_t* pair = *state;
  uint64_t host = pair->tasks[0]->same_host.host;
  for (int i = 0; i < 2; ++i) {
    pair->tasks[i]->same_host.host = 0;
    hand_over_large(pair, i + 1);
    pair->tasks[i]->same_host.host = host + 1;  // elsewhere
    hand_over_large(pair, i + 11);
    pair->tasks[i]->same_host.host = host;
  }
  assert_int_equal(bytes_read(pair), 0);
  hand_over_large(pair, 21);
  assert_int_equal(bytes_read(pair), LARGE * (int64_t)sizeof(float));
}

// A client that describes the cluster may name anyone in it: such peers get no offer.
static void test_not_where_a_client_says(void** state) {
  pair_t* pair = *state;
  weir_strbuf_t cluster = {0};
  weir_alias_t* alias = NULL;
  size_t job = weir_wire_begin(&cluster, 1);
  weir_wire_put_string(&cluster, 1, "t");
  for (int i = 0; i < 2; ++i) {
    char address[96];
    task_address(address, i);
    size_t task = weir_wire_begin(&cluster, 2);
    weir_wire_put_int(&cluster, 1, i);
    weir_wire_put_string(&cluster, 2, address);
    weir_wire_end(&cluster, task);
  }
  weir_wire_end(&cluster, job);
  check_ok(weir_alias_create(weir_view_of("t"), 0, weir_strbuf_view(&cluster), &alias));
  int64_t count = LARGE;
  weir_tensor_t* tensor = make_pattern(WEIR_DTYPE_FLOAT, 1, &count);
  hand_over_as(pair, 1, alias, tensor);
  assert_int_equal(bytes_read(pair), 0);
  weir_tensor_release(tensor);
  weir_alias_release(alias);
  weir_strbuf_free(&cluster);
}

static void test_not_the_own_process(void** state) {
  pair_t* pair = *state;
  for (int i = 0; i < 2; ++i) {  // the producer does not tell; the receiver does not listen
    pair->tasks[1]->same_host.self = i ? 0 : getpid();
    pair->tasks[0]->same_host.self = getpid();
    hand_over_large(pair, i + 1);
    assert_int_equal(pair->tasks[0]->same_host.refused.count, i);
  }
  assert_int_equal(bytes_read(pair), 0);
}

static void test_variable_turns_it_off(void** state) {
  (void)state;
  weir_same_host_t same = {.host = 0};
  weir_same_host_offer_t offer = {.is_made = false};
  weir_strbuf_t request = {0};
  setenv("WEIR_SAME_HOST", "0", 1);
  weir_same_host_init(&same);
  unsetenv("WEIR_SAME_HOST");
  weir_same_host_offer(&same, &same, &offer, &request);
  assert_false(offer.is_made);
  assert_int_equal(request.size, 0);
  weir_same_host_free(&same);
}

// ---- holds ----

static void start(weir_same_host_t* same) {
  weir_same_host_init(same);
  assert_int_not_equal(same->host, 0);
  same->self = 0;
}

static bool hold(weir_same_host_t* same, int64_t request_id, int64_t step_id, uint64_t connection,
                 weir_tensor_t* tensor) {
  weir_same_host_reader_t reader = {request_id, step_id, connection, {0}, {0}};
  memcpy(reader.socket, same->name, sizeof(reader.socket));
  return weir_same_host_hold(same, &reader, tensor);
}

static void test_holds_end(void** state) {
  (void)state;
  weir_same_host_t same = {.host = 0};
  start(&same);
  int64_t count = LARGE;
  weir_tensor_t* tensor = make_pattern(WEIR_DTYPE_FLOAT, 1, &count);
  for (int64_t i = 1; i <= 12; ++i) assert_true(hold(&same, i, i % 3, (uint64_t)i % 2, tensor));
  assert_false(hold(&same, 5, 1, 1, tensor));  // a number that is in use
  assert_false(hold(&same, 0, 1, 1, tensor));  // no number
  same.name[0] ^= 1;
  assert_false(hold(&same, 13, 1, 1, tensor));  // nobody listens
  assert_int_equal(weir_same_host_count(&same), 12);
  assert_null(weir_same_host_take(&same, 5, 2));  // another's
  assert_null(weir_same_host_take(&same, 77, 1));
  weir_tensor_t* taken = weir_same_host_take(&same, 5, 1);
  assert_ptr_equal(taken, tensor);
  weir_tensor_release(taken);
  assert_null(weir_same_host_take(&same, 5, 1));
  assert_int_equal(weir_same_host_count(&same), 11);
  weir_same_host_end_step(&same, 0);
  assert_int_equal(weir_same_host_count(&same), 7);
  weir_same_host_end_connection(&same, 1);
  assert_int_equal(weir_same_host_count(&same), 4);
  weir_same_host_end_connection(&same, 9);
  assert_int_equal(weir_same_host_count(&same), 4);
  assert_false(weir_tensor_is_sole(tensor));
  weir_same_host_free(&same);
  assert_true(weir_tensor_is_sole(tensor));
  weir_tensor_release(tensor);
}

// ---- places that peers make up ----

typedef struct forged_t {
  uint64_t address, word;
  int64_t dtype;
  int rank;
  int64_t dims[2];
} forged_t;

// Says something to the socket, as any process can that knows its name.
static void say(const weir_same_host_t* same, weir_strbuf_t* take_message) {
  struct sockaddr_un address;
  socklen_t size = sizeof(address);
  WEIR_CHECK(getsockname(same->socket, (struct sockaddr*)&address, &size) == 0);
  int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
  WEIR_CHECK(connect(fd, (struct sockaddr*)&address, size) == 0);
  WEIR_CHECK(send(fd, take_message->data, take_message->size, 0) == (ssize_t)take_message->size);
  close(fd);
  weir_strbuf_free(take_message);
}

static void say_place(const weir_same_host_t* same, const char* token, const forged_t* forged) {
  weir_strbuf_t place = {0};
  weir_wire_put_bytes(&place, 1, token, WEIR_SAME_HOST_KEY_SIZE);
  weir_wire_put_fixed64(&place, 2, forged->address);
  weir_wire_put_fixed64(&place, 3, forged->word);
  weir_wire_put_int(&place, 4, forged->dtype);
  for (int i = 0; i < forged->rank; ++i)
    weir_wire_put_fixed64(&place, 5, (uint64_t)forged->dims[i % 2]);
  say(same, &place);
}

static void make_offer(weir_same_host_t* same, weir_same_host_offer_t* offer) {
  weir_strbuf_t request = {0};
  *offer = (weir_same_host_offer_t){.is_made = false};
  weir_same_host_offer(same, same, offer, &request);
  assert_true(offer->is_made);
  weir_strbuf_free(&request);
}

static weir_status_t* read_offer(weir_same_host_t* same, weir_same_host_offer_t* offer,
                                 weir_tensor_t** out_tensor) {
  weir_pool_t* pool = NULL;
  check_ok(weir_pool_create(2, &pool));
  weir_status_t* status = weir_same_host_read(same, pool, offer, out_tensor);
  weir_pool_destroy(pool);
  weir_same_host_withdraw(same, offer);
  assert_int_equal(same->offers.count, 0);
  return status;
}

static weir_status_t* read_forged(weir_same_host_t* same, const forged_t* forged) {
  weir_same_host_offer_t offer;
  weir_tensor_t* tensor = NULL;
  make_offer(same, &offer);
  say_place(same, offer.token, forged);
  weir_status_t* status = read_offer(same, &offer, &tensor);
  weir_tensor_release(tensor);
  return status;
}

static void test_forged_places(void** state) {
  (void)state;
  weir_same_host_t same = {.host = 0};
  start(&same);
  int64_t count = LARGE;
  weir_tensor_t* tensor = make_pattern(WEIR_DTYPE_FLOAT, 1, &count);
  uintptr_t data = (uintptr_t)weir_tensor_data(tensor);
  const struct {
    forged_t forged;
    weir_code_t code;
    const char* text;
  } cases[] = {
      {{data, data, 1, 1, {LARGE}}, WEIR_DATA_LOSS, "does not hold"},
      {{data, 8, 1, 1, {LARGE}}, WEIR_UNAVAILABLE, "cannot be read"},
      {{4096, data, 1, 1, {LARGE}}, WEIR_UNAVAILABLE, "cannot be read"},
      {{UINT64_MAX - 5, data, 1, 1, {LARGE}}, WEIR_UNAVAILABLE, "cannot be read"},
      {{data, data, WEIR_DTYPE_STRING, 1, {4}}, WEIR_INVALID_ARGUMENT, "type"},
      {{data, data, WEIR_DTYPE_RESOURCE, 1, {4}}, WEIR_INVALID_ARGUMENT, "type"},
      {{data, data, 12345, 1, {4}}, WEIR_INVALID_ARGUMENT, "type"},
      {{data, data, 1, 1, {-4}}, WEIR_INVALID_ARGUMENT, ""},
      {{data, data, 1, 2, {INT64_MAX, INT64_MAX}}, WEIR_INVALID_ARGUMENT, ""},
      {{data, data, 1, 1, {(int64_t)1 << 50}}, WEIR_RESOURCE_EXHAUSTED, "machine"},
      {{data, data, 1, WEIR_MAX_RANK + 1, {1, 1}}, WEIR_UNAVAILABLE, "no process"},
  };
  for (size_t i = 0; i < WEIR_COUNT_OF(cases); ++i)
    check_error(read_forged(&same, &cases[i].forged), cases[i].code, cases[i].text);
  assert_int_equal(atomic_load(&same.bytes_read), 0);
  weir_tensor_release(tensor);
  weir_same_host_free(&same);
}

static uint8_t secret[LARGE];
static uint64_t secret_word;

// Tells, with all that a hold has, where |secret| is.
static void say_secret(const weir_same_host_t* same, const char* token) {
  forged_t forged = {
      (uintptr_t)secret, (uintptr_t)&secret_word, WEIR_DTYPE_UINT8, 1, {sizeof(secret)}};
  memcpy(&secret_word, token, sizeof(secret_word));
  secret_word |= 1;
  say_place(same, token, &forged);
}

// Does so in a fork, with other contents, as |user|. The fork stays until it is killed.
static pid_t say_in_fork(const weir_same_host_t* same, const char* token, uid_t user) {
  int end = 0;
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    WEIR_CHECK(setuid(user) == 0);
    WEIR_CHECK(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);  // when an assertion fails meanwhile
    memset(secret, 'c', sizeof(secret));
    say_secret(same, token);
    raise(SIGSTOP);
    _exit(0);
  }
  assert_int_equal(waitpid(child, &end, WUNTRACED), child);
  assert_true(WIFSTOPPED(end));
  return child;
}

// Whose memory is read is what the kernel says, not what the address means here.
static void test_reads_who_told(void** state) {
  (void)state;
  enum { OWN, OTHER_USER, WRONG_TOKEN, CHILD };
  weir_same_host_t same = {.host = 0};
  weir_same_host_init(&same);
  memset(secret, 's', sizeof(secret));
  for (int i = OWN; i <= CHILD; ++i) {
    if (i == OTHER_USER && geteuid() != 0) continue;  // only root can become another
    weir_same_host_offer_t offer;
    weir_tensor_t* tensor = NULL;
    pid_t child = 0;
    make_offer(&same, &offer);
    char token[WEIR_SAME_HOST_KEY_SIZE];
    memcpy(token, offer.token, sizeof(token));
    if (i == WRONG_TOKEN) token[15] ^= 1;
    if (i == OWN) say_secret(&same, token);
    else child = say_in_fork(&same, token, i == OTHER_USER ? 65534 : geteuid());
    weir_status_t* status = read_offer(&same, &offer, &tensor);
    if (i == CHILD) check_ok(status);
    else check_error(status, WEIR_UNAVAILABLE, "no process that may be read");
    for (size_t k = 0; tensor && k < sizeof(secret); ++k)
      assert_int_equal(((uint8_t*)weir_tensor_data(tensor))[k], 'c');
    weir_tensor_release(tensor);
    if (child) assert_int_equal(kill(child, SIGKILL), 0);
    if (child) assert_int_equal(waitpid(child, NULL, 0), child);
  }
  weir_same_host_free(&same);
}

// Tokens are the kernel's: a copy of the process, which has all of its state, makes others.
static void test_tokens_cannot_be_foreseen(void** state) {
  (void)state;
  weir_same_host_t same = {.host = 0};
  weir_same_host_offer_t offer;
  char of_child[WEIR_SAME_HOST_KEY_SIZE];
  int ends[2], end = 0;
  start(&same);
  assert_int_equal(pipe(ends), 0);
  pid_t child = fork();
  assert_true(child >= 0);
  make_offer(&same, &offer);
  if (child == 0) {
    ssize_t size = write(ends[1], offer.token, sizeof(offer.token));
    _exit(size == (ssize_t)sizeof(offer.token) ? 0 : 1);
  }
  assert_int_equal(read(ends[0], of_child, sizeof(of_child)), sizeof(of_child));
  assert_int_equal(waitpid(child, &end, 0), child);
  assert_int_equal(end, 0);
  assert_memory_not_equal(of_child, offer.token, sizeof(of_child));
  for (int i = 0; i < 2; ++i) close(ends[i]);
  weir_same_host_withdraw(&same, &offer);
  weir_same_host_free(&same);
}

// Messages that are none, and those that come too often, hurt nobody who waits for another.
static void test_noise(void** state) {
  (void)state;
  weir_same_host_t same = {.host = 0};
  weir_same_host_offer_t offer;
  weir_tensor_t* tensor = NULL;
  start(&same);
  make_offer(&same, &offer);
  for (size_t size = 1; size < 10000; size = size * 3 + 1) {
    weir_strbuf_t noise = {0};
    for (size_t i = 0; i < size; ++i) weir_strbuf_putc(&noise, (char)(i * 2654435761u >> 13));
    say(&same, &noise);
  }
  memset(secret, 'x', sizeof(secret));
  say_secret(&same, offer.token);
  forged_t second = {8, 8, 1, 1, {1}};
  say_place(&same, offer.token, &second);
  check_ok(read_offer(&same, &offer, &tensor));
  assert_memory_equal(weir_tensor_data(tensor), secret, sizeof(secret));
  weir_tensor_release(tensor);
  weir_same_host_free(&same);
}

// ---- a peer that speaks for itself ----

typedef struct peer_t {
  weir_rpc_loop_t* loop;
  weir_rpc_channel_t* channel;
} peer_t;

static void peer_start(peer_t* peer) {
  char address[96];
  task_address(address, 1);
  weir_rpc_channel_options_t options = {.address = address};
  check_ok(weir_rpc_loop_create(NULL, &peer->loop));
  check_ok(weir_rpc_channel_create(peer->loop, &options, &peer->channel));
}

static void peer_end(peer_t* peer) {
  weir_rpc_channel_destroy(peer->channel);
  weir_rpc_loop_destroy(peer->loop);
}

static weir_status_t* call(peer_t* peer, const char* path, weir_strbuf_t* take_request,
                           weir_rpc_buffer_t** out_answer) {
  weir_rpc_message_t* message = weir_rpc_message_create();
  weir_rpc_message_append_strbuf(message, take_request);
  weir_rpc_call_options_t options = {.deadline_ns = weir_clock_ns() + INT64_C(60000000000)};
  return weir_rpc_channel_call(peer->channel, path, message, &options, out_answer);
}

// Receives as a task of this host would, or asks again for what request |again| got.
static weir_status_t* ask(peer_t* peer, weir_same_host_t* same, int64_t step_id, int64_t request_id,
                          int64_t again, size_t* out_size) {
  weir_strbuf_t request = {0};
  weir_same_host_offer_t offer = {.is_made = false};
  weir_rpc_buffer_t* answer = NULL;
  weir_wire_put_int(&request, 1, step_id);
  weir_wire_put_string(&request, 2, KEY);
  if (again) weir_same_host_ask_again(again, &request);
  else weir_same_host_offer(same, peer, &offer, &request);
  weir_wire_put_int(&request, 7, request_id);
  weir_status_t* status = call(peer, "/tensorflow.WorkerService/RecvTensor", &request, &answer);
  weir_same_host_withdraw(same, &offer);
  *out_size = weir_rpc_buffer_view(answer).size;
  weir_rpc_buffer_release(answer);
  return status;
}

static void test_receivers_that_go(void** state) {
  pair_t* pair = *state;
  weir_same_host_t* same = &pair->tasks[1]->same_host;
  peer_t peer, other;
  size_t size = 0;
  weir_rendezvous_t* step = NULL;
  peer_start(&peer);
  peer_start(&other);
  int64_t count = LARGE;
  weir_tensor_t* tensor = make_pattern(WEIR_DTYPE_FLOAT, 1, &count);
  for (int64_t id = 1; id <= 3; ++id) {  // three ways in which a hold ends
    check_ok(weir_task_step(pair->tasks[1], id, &step));
    check_ok(step->vtable->send(step, weir_view_of(KEY), tensor, false));
    check_ok(ask(&peer, same, id, 1000 + id, 0, &size));
    assert_in_range(size, 1, 1000);
    assert_int_equal(weir_same_host_count(same), 1);
    // Another connection gets and ends nothing.
    check_error(ask(&other, same, id, 2000 + id, 1000 + id, &size), WEIR_ABORTED, "not held");
    assert_int_equal(weir_same_host_count(same), 1);
    if (id == 1) {
      check_ok(ask(&peer, same, id, 3000 + id, 1000 + id, &size));
      assert_in_range(size, LARGE * sizeof(float), LARGE * sizeof(float) + 1000);
    } else if (id == 2) {
      weir_task_end_step(pair->tasks[1], id);
    } else {
      peer_end(&peer);
    }
    wait_until_none_held(pair->tasks[1]);
    weir_task_end_step(pair->tasks[1], id);
    weir_rendezvous_release(step);
  }
  // The io thread forgets a hold before it lets go of the tensor.
  for (int i = 0; i < 300000 && !weir_tensor_is_sole(tensor); ++i) usleep(200);
  assert_true(weir_tensor_is_sole(tensor));
  weir_tensor_release(tensor);
  peer_end(&other);
}

// ---- a kernel that refuses: in a process of its own, since it cannot be taken back ----

static void forbid_reading(void) {
  struct sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  struct sock_fprog program = {.len = WEIR_COUNT_OF(code), .filter = code};
  assert_int_equal(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  assert_int_equal(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

static void check_refused(void) {
  void* state = NULL;
  forbid_reading();
  set_up(&state);
  pair_t* pair = state;
  weir_same_host_t* same = &pair->tasks[0]->same_host;
  assert_int_equal(same->refused.count, 0);
  for (int64_t id = 1; id <= 3; ++id) hand_over_large(pair, id);
  assert_int_equal(same->refused.count, 1);  // it is not tried again
  assert_int_equal(bytes_read(pair), 0);
  pair_stop(&state);
}

static void test_refused(void** state) {
  (void)state;
  int end = 0;
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    check_refused();  // a failed assertion leaves by the end of main, with its code
    _exit(0);
  }
  assert_int_equal(waitpid(child, &end, 0), child);
  assert_true(WIFEXITED(end) && WEXITSTATUS(end) == 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, pair_stop)
int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_large_ones_are_read),
      TEST(test_off),
      TEST(test_not_where_a_client_says),
      TEST(test_not_the_own_process),
      cmocka_unit_test(test_variable_turns_it_off),
      cmocka_unit_test(test_holds_end),
      cmocka_unit_test(test_forged_places),
      cmocka_unit_test(test_reads_who_told),
      cmocka_unit_test(test_tokens_cannot_be_foreseen),
      cmocka_unit_test(test_noise),
      TEST(test_receivers_that_go),
      cmocka_unit_test(test_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
