// trainer_test.c — The training loop: what ends it, what it writes, and how it goes on.
#include <arpa/inet.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "testing/tensors.h"
#include "weir/weir.h"

// y = w x, fitted to y = 3 x.
typedef struct world_t {
  char directory[64];
  weir_graph_t* graph;
  weir_session_t* session;
  weir_edge_t x, y, w, loss, summaries;
  weir_node_t *init, *step;
  weir_saver_t* saver;
  weir_batcher_t* data;
  int calls;  // of a callback
} world_t;

static world_t open_world(void) {
  world_t world = {.directory = "/tmp/weir_trainer_XXXXXX"};
  assert_non_null(mkdtemp(world.directory));
  check_ok(weir_graph_create(&world.graph));
  weir_scope_t* s = weir_scope_create(world.graph);
  world.x = weir_placeholder(s, WEIR_DTYPE_FLOAT, .shape = WEIR_SHAPE(-1));
  world.y = weir_placeholder(s, WEIR_DTYPE_FLOAT, .shape = WEIR_SHAPE(-1));
  world.w = weir_variable(s, "w", weir_const_float(s, 0));
  world.loss = weir_loss_mean_squared(s, world.y, weir_mul(s, world.w, world.x));
  weir_summary_scalar(s, "w", world.w);
  world.summaries = weir_summary_merge_all(s);
  world.step = weir_train_sgd(s, world.loss, 0.05f);
  world.init = weir_initializer(s);
  world.saver = weir_saver_create(s);
  check_ok(weir_scope_finish(s));
  check_ok(weir_session_create(world.graph, NULL, &world.session));
  weir_tensor_t *x = FLOATS(1, 2, 3, 4), *y = FLOATS(3, 6, 9, 12);
  check_ok(
      weir_batcher_create(((weir_tensor_t*[]){x, y}), 2, &world.data, .batch_size = 2, .seed = 1));
  weir_tensor_release(x);
  weir_tensor_release(y);
  return world;
}

static void close_world(world_t* world) {
  char command[128];
  snprintf(command, sizeof(command), "rm -rf '%s'", world->directory);
  assert_int_equal(system(command), 0);
  weir_batcher_destroy(world->data);
  weir_saver_destroy(world->saver);
  weir_session_destroy(world->session);
  weir_graph_release(world->graph);
}

static float weight(const world_t* world) {
  float value = 0;
  check_ok(weir_session_fetch_float(world->session, world->w, &value));
  return value;
}

#define FIT(world, result, ...)                                                        \
  weir_fit((world)->session, (world)->step, (world)->loss, (result), .is_quiet = true, \
           .init = (world)->init, .data = (world)->data, .arg = (world),               \
           .inputs = (const weir_edge_t[]){(world)->x, (world)->y}, __VA_ARGS__)

static void test_learns(void** state) {
  (void)state;
  world_t w = open_world();
  weir_fit_result_t result;
  check_ok(FIT(&w, &result, .max_steps = 50));
  assert_int_equal(result.step, 50);
  assert_int_equal(result.reason, WEIR_STOP_STEPS);
  assert_false(result.is_resumed);
  assert_true(result.loss < 1e-6f);
  assert_float_equal(weight(&w), 3, 1e-3);
  close_world(&w);
}

// A run that is cut in two ends where an uncut one does, to the bit.
static void test_resumes(void** state) {
  (void)state;
  world_t whole = open_world(), cut = open_world();
  weir_fit_result_t result;
  check_ok(FIT(&whole, NULL, .max_steps = 9));
  check_ok(FIT(&cut, &result, .max_steps = 5, .directory = cut.directory, .saver = cut.saver));
  assert_false(result.is_resumed);
  weir_batcher_seek(cut.data, 0);  // as in a new process
  check_ok(weir_session_run_target(cut.session, cut.init));
  check_ok(FIT(&cut, &result, .max_steps = 9, .directory = cut.directory, .saver = cut.saver));
  assert_true(result.is_resumed);
  assert_int_equal(result.step, 9);
  assert_true(weight(&whole) == weight(&cut));
  // Nothing is left to do, and nothing is done.
  check_ok(FIT(&cut, &result, .max_steps = 9, .directory = cut.directory, .saver = cut.saver));
  assert_int_equal(result.step, 9);
  assert_true(isnan(result.loss));
  check_ok(FIT(&cut, &result, .max_steps = 1, .directory = cut.directory, .saver = cut.saver,
               .no_resume = true));
  assert_int_equal(result.step, 1);
  close_world(&whole);
  close_world(&cut);
}

static void test_saves_every_n_steps(void** state) {
  (void)state;
  world_t w = open_world();
  char path[128];
  check_ok(FIT(&w, NULL, .max_steps = 7, .save_every = 3, .directory = w.directory,
               .saver = w.saver, .summaries = w.summaries, .summary_every = 2));
  const int saved[] = {3, 6, 7};
  for (int i = 0; i < 3; ++i) {
    snprintf(path, sizeof(path), "%s/model.ckpt-%d.index", w.directory, saved[i]);
    assert_int_equal(access(path, F_OK), 0);
  }
  snprintf(path, sizeof(path), "%s/model.ckpt-5.index", w.directory);
  assert_int_not_equal(access(path, F_OK), 0);
  close_world(&w);
}

static void test_data_ends(void** state) {
  (void)state;
  world_t w = open_world();
  weir_fit_result_t result;
  weir_tensor_t* x = FLOATS(1, 2, 3);
  weir_batcher_t* once = NULL;
  check_ok(weir_batcher_create(((weir_tensor_t*[]){x, x}), 2, &once, .batch_size = 2, .epochs = 2));
  check_ok(weir_fit(w.session, w.step, w.loss, &result, .is_quiet = true, .init = w.init,
                    .data = once, .inputs = (const weir_edge_t[]){w.x, w.y}));
  assert_int_equal(result.step, 4);
  assert_int_equal(result.reason, WEIR_STOP_DATA);
  weir_batcher_destroy(once);
  weir_tensor_release(x);
  close_world(&w);
}

// A metric that is best at the third evaluation.
static weir_status_t* evaluate(void* arg, const weir_fit_state_t* state, float* out_metric) {
  const float metrics[] = {0.1f, 0.2f, 0.9f, 0.8f, 0.9f, 0.95f};
  world_t* world = arg;
  assert_int_equal(state->step, 2 * (world->calls + 1));
  *out_metric = metrics[world->calls++];
  return NULL;
}

static void test_early_stopping(void** state) {
  (void)state;
  world_t w = open_world();
  weir_fit_result_t result;
  check_ok(FIT(&w, &result, .max_steps = 100, .evaluate = evaluate, .evaluate_every = 2,
               .patience = 2, .higher_is_better = true, .directory = w.directory));
  assert_int_equal(result.reason, WEIR_STOP_METRIC);
  assert_int_equal(result.step, 10);
  assert_int_equal(result.best_step, 6);
  assert_float_equal(result.best_metric, 0.9f, 0);
  close_world(&w);
}

static weir_status_t* stop_at_three(void* arg, const weir_fit_state_t* state, bool* stop) {
  ++((world_t*)arg)->calls;
  *stop = state->step == 3;
  return NULL;
}

static weir_status_t* interrupt_at_two(void* arg, const weir_fit_state_t* state, bool* stop) {
  (void)arg, (void)stop;
  return state->step == 2 && raise(SIGINT) ? WEIR_STATUS(INTERNAL, "raise") : NULL;
}

static weir_status_t* fail_at_two(void* arg, const weir_fit_state_t* state, bool* stop) {
  (void)arg, (void)stop;
  return state->step == 2 ? WEIR_STATUS(ABORTED, "enough") : NULL;
}

static void test_callbacks_and_signals(void** state) {
  (void)state;
  world_t w = open_world();
  weir_fit_result_t result;
  char* latest = NULL;
  signal(SIGINT, SIG_DFL);  // whoever starts the test in the background has it ignored
  check_ok(FIT(&w, &result, .on_step = stop_at_three));
  assert_int_equal(result.reason, WEIR_STOP_REQUEST);
  assert_int_equal(w.calls, 3);
  check_ok(
      FIT(&w, &result, .on_step = interrupt_at_two, .directory = w.directory, .saver = w.saver));
  assert_int_equal(result.reason, WEIR_STOP_SIGNAL);
  assert_int_equal(result.step, 2);
  check_ok(weir_latest_checkpoint(w.directory, &latest));
  assert_non_null(strstr(latest, "model.ckpt-2"));
  weir_buffer_free(latest);
  struct sigaction now;
  assert_int_equal(sigaction(SIGINT, NULL, &now), 0);
  assert_true(now.sa_handler == SIG_DFL);  // as it was
  check_error(FIT(&w, &result, .on_step = fail_at_two), WEIR_ABORTED, "enough");
  assert_int_equal(result.step, 2);
  close_world(&w);
}

static weir_status_t* feed_pair(void* arg, int64_t step, weir_feed_t* feeds, int* count) {
  const world_t* world = arg;
  if (step == 4) return WEIR_STATUS(OUT_OF_RANGE, "four are enough");
  feeds[(*count)++] = (weir_feed_t){world->x, FLOATS(1, 2)};
  feeds[(*count)++] = (weir_feed_t){world->y, FLOATS(3, 6)};
  return NULL;
}

static void test_feeds_of_ones_own(void** state) {
  (void)state;
  world_t w = open_world();
  weir_fit_result_t result;
  weir_coordinator_t* c = NULL;
  check_ok(weir_fit(w.session, w.step, w.loss, &result, .is_quiet = true, .init = w.init,
                    .feed = feed_pair, .arg = &w));
  assert_int_equal(result.step, 4);
  assert_int_equal(result.reason, WEIR_STOP_DATA);
  check_ok(weir_coordinator_create(&c));
  weir_coordinator_request_stop(c, NULL);
  check_ok(FIT(&w, &result, .coordinator = c));
  assert_int_equal(result.reason, WEIR_STOP_REQUEST);
  assert_int_equal(result.step, 0);
  weir_coordinator_destroy(c);
  close_world(&w);
}

// ---- a step that does not end ----

enum { LIMIT_S = 20 };  // what hangs is killed after that

// A node that waits for what nobody puts into a queue, once |count| values are taken.
static weir_edge_t add_queue(world_t* world, int count) {
  weir_scope_t* s = weir_scope_create(world->graph);
  weir_edge_t queue = weir_fifo_queue_v2(s, WEIR_TYPES(WEIR_DTYPE_FLOAT));
  weir_edge_t one = weir_const_float(s, 1);
  weir_node_t* fill = weir_queue_enqueue_v2(s, queue, &one, 1);
  weir_edge_t taken = weir_queue_dequeue_v2(s, queue, WEIR_TYPES(WEIR_DTYPE_FLOAT));
  check_ok(weir_scope_finish(s));
  for (int i = 0; i < count; ++i) check_ok(weir_session_run_target(world->session, fill));
  return taken;
}

// The signal comes when the loop has decided to take the third step.
static weir_status_t* terminate_at_two(void* arg, int64_t step, weir_feed_t* feeds, int* count) {
  (void)arg, (void)feeds, (void)count;
  return step == 2 && raise(SIGTERM) ? WEIR_STATUS(INTERNAL, "raise") : NULL;
}

static void test_blocked_step(void** state) {
  (void)state;
  world_t w = open_world();
  weir_fit_result_t result;
  char* latest = NULL;
  alarm(LIMIT_S);
  weir_edge_t taken = add_queue(&w, 2);
  weir_scope_t* s = weir_scope_create(w.graph);
  weir_edge_t loss = weir_mul(s, w.loss, taken);
  check_ok(weir_scope_finish(s));
  check_ok(weir_fit(w.session, w.step, loss, &result, .is_quiet = true, .init = w.init,
                    .data = w.data, .inputs = (const weir_edge_t[]){w.x, w.y},
                    .feed = terminate_at_two, .directory = w.directory, .saver = w.saver,
                    .grace_seconds = 0.05));
  alarm(0);
  assert_int_equal(result.reason, WEIR_STOP_SIGNAL);
  assert_true(result.is_cut);
  assert_int_equal(result.step, 2);
  check_ok(weir_latest_checkpoint(w.directory, &latest));
  assert_non_null(strstr(latest, "model.ckpt-2"));
  weir_buffer_free(latest);
  check_ok(FIT(&w, &result, .max_steps = 3, .no_resume = true));  // the session is as it was
  assert_false(result.is_cut);
  close_world(&w);
}

// Sends the signal once it is caught, and so before or while the variables are initialised.
static void* terminate_when_caught(void* arg) {
  struct sigaction now = {.sa_handler = SIG_DFL};
  while (now.sa_handler == SIG_DFL) {
    usleep(1000);
    sigaction(SIGTERM, NULL, &now);
  }
  kill(getpid(), SIGTERM);
  return arg;
}

static void test_blocked_beginning(void** state) {
  (void)state;
  world_t w = open_world();
  weir_fit_result_t result;
  pthread_t thread;
  char* latest = NULL;
  alarm(LIMIT_S);
  weir_edge_t taken = add_queue(&w, 0);
  assert_int_equal(pthread_create(&thread, NULL, terminate_when_caught, NULL), 0);
  check_ok(weir_fit(w.session, w.step, w.loss, &result, .is_quiet = true, .init = taken.node,
                    .directory = w.directory, .saver = w.saver, .grace_seconds = 0.05));
  pthread_join(thread, NULL);
  alarm(0);
  assert_int_equal(result.reason, WEIR_STOP_SIGNAL);
  assert_true(result.is_cut);
  assert_int_equal(result.step, 0);
  check_ok(weir_latest_checkpoint(w.directory, &latest));
  assert_null(latest);
  close_world(&w);
}

// A session on a master that takes connections and says nothing.
static weir_session_t* open_silent(const world_t* world, int* out_listener) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof(address);
  char target[64];
  weir_session_t* session = NULL;
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  assert_int_equal(bind(listener, (struct sockaddr*)&address, size), 0);
  assert_int_equal(listen(listener, 8), 0);
  assert_int_equal(getsockname(listener, (struct sockaddr*)&address, &size), 0);
  snprintf(target, sizeof(target), "grpc://127.0.0.1:%d", ntohs(address.sin_port));
  check_ok(
      weir_session_create(world->graph, &(weir_session_options_t){.target = target}, &session));
  *out_listener = listener;
  return session;
}

static void test_blocked_restore(void** state) {
  (void)state;
  world_t w = open_world();
  weir_fit_result_t result;
  pthread_t thread;
  int listener = -1;
  alarm(LIMIT_S);
  check_ok(FIT(&w, &result, .max_steps = 2, .directory = w.directory, .saver = w.saver));
  weir_session_t* silent = open_silent(&w, &listener);
  assert_int_equal(pthread_create(&thread, NULL, terminate_when_caught, NULL), 0);
  check_ok(weir_fit(silent, w.step, w.loss, &result, .is_quiet = true, .directory = w.directory,
                    .saver = w.saver, .grace_seconds = 0.05));
  pthread_join(thread, NULL);
  alarm(0);
  assert_int_equal(result.reason, WEIR_STOP_SIGNAL);
  assert_true(result.is_cut);
  weir_session_destroy(silent);
  close(listener);
  close_world(&w);
}

static void test_errors(void** state) {
  (void)state;
  world_t w = open_world();
  const weir_edge_t none = {NULL, 0};
  check_error(weir_fit(w.session, w.step, none, NULL, .max_steps = 1), WEIR_INVALID_ARGUMENT,
              "loss");
  check_error(weir_fit(w.session, NULL, w.loss, NULL, .max_steps = 1), WEIR_INVALID_ARGUMENT,
              "step is NULL: nothing would be trained");
  check_error(weir_fit(NULL, w.step, w.loss, NULL, .max_steps = 1), WEIR_INVALID_ARGUMENT,
              "session is NULL");
  check_error(weir_fit(w.session, w.step, w.loss, NULL, .data = w.data), WEIR_INVALID_ARGUMENT,
              "needs as many inputs");
  check_error(weir_fit(w.session, w.step, w.loss, NULL, .inputs = &w.x), WEIR_INVALID_ARGUMENT,
              "inputs are given, but data is NULL");
  check_error(FIT(&w, NULL, .saver = w.saver), WEIR_INVALID_ARGUMENT, "directory is NULL");
  check_error(FIT(&w, NULL, .patience = 3), WEIR_INVALID_ARGUMENT, "evaluate is NULL");
  check_error(FIT(&w, NULL, .max_steps = -1), WEIR_INVALID_ARGUMENT, "max_steps is negative");
  check_error(weir_fit(w.session, w.step, w.loss, NULL, .init = w.init, .is_quiet = true),
              WEIR_INVALID_ARGUMENT, "placeholder");  // nothing is fed
  check_error(FIT(&w, NULL, .directory = "/proc/weir/none"), WEIR_NOT_FOUND, "/proc");
  close_world(&w);
}

// The loss is 0/0 from the first step on, as the weights are infinite.
static void test_stops_when_the_loss_is_nan(void** state) {
  (void)state;
  world_t world = open_world();
  weir_fit_result_t result;
  check_ok(weir_session_run_target(world.session, world.init));
  weir_tensor_t *x = FLOATS(NAN, 1), *y = FLOATS(1, 2);
  weir_batcher_t* data = NULL;
  check_ok(weir_batcher_create(((weir_tensor_t*[]){x, y}), 2, &data, .batch_size = 2));
  weir_edge_t inputs[] = {world.x, world.y};
  weir_status_t* status = weir_fit(world.session, world.step, world.loss, &result, .max_steps = 5,
                                   .data = data, .inputs = inputs, .is_quiet = true);
  assert_int_equal(weir_status_code(status), WEIR_INVALID_ARGUMENT);
  assert_non_null(strstr(weir_status_message(status), "is NaN at step 1;"));
  weir_status_destroy(status);
  assert_int_equal(result.taken, 1);
  check_ok(weir_fit(world.session, world.step, world.loss, &result, .max_steps = 3, .data = data,
                    .inputs = inputs, .is_quiet = true, .allow_nan = true));
  assert_int_equal(result.taken, 3);
  weir_batcher_destroy(data);
  weir_tensor_release(x);
  weir_tensor_release(y);
  close_world(&world);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_learns),
                                     cmocka_unit_test(test_stops_when_the_loss_is_nan),
                                     cmocka_unit_test(test_resumes),
                                     cmocka_unit_test(test_saves_every_n_steps),
                                     cmocka_unit_test(test_data_ends),
                                     cmocka_unit_test(test_early_stopping),
                                     cmocka_unit_test(test_callbacks_and_signals),
                                     cmocka_unit_test(test_feeds_of_ones_own),
                                     cmocka_unit_test(test_blocked_step),
                                     cmocka_unit_test(test_blocked_beginning),
                                     cmocka_unit_test(test_blocked_restore),
                                     cmocka_unit_test(test_errors)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
