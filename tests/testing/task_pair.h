// task_pair.h — Two tasks of one cluster in one process, over Unix sockets.
#ifndef WEIR_TESTS_TESTING_TASK_PAIR_H_
#define WEIR_TESTS_TESTING_TASK_PAIR_H_

#include <stdio.h>
#include <unistd.h>

#include "cluster/serve/serving.h"
#include "testing/tensors.h"

#define TASK(i) "/job:t/replica:0/task:" #i

typedef struct pair_t {
  weir_serving_t* servings[2];
  weir_task_t* tasks[2];
} pair_t;

static inline void task_address(char out[96], int i) {
  snprintf(out, 96, "unix:/tmp/weir_task_pair.%d.%d", (int)getpid(), i);
}

static inline pair_t* pair_start_with(int threads, weir_transport_choice_t transport) {
  pair_t* pair = calloc(1, sizeof(*pair));
  for (int i = 0; i < 2; ++i) {
    weir_serving_params_t params = {
        .task = {
            .job = "t", .index = i, .threads = threads, .transport = transport, .is_local = true}};
    for (int k = 0; k < 2; ++k) {
      char address[96];
      task_address(address, k);
      check_ok(
          weir_cluster_spec_add(&params.task.spec, weir_view_of("t"), k, weir_view_of(address)));
    }
    check_ok(weir_serving_start(&params, &pair->servings[i]));
    pair->tasks[i] = weir_serving_task(pair->servings[i]);
    pair->tasks[i]->runtime->devices[0]->incarnation = 1;  // what the keys of the tests have
  }
  return pair;
}

static inline pair_t* pair_start(int threads) {
  return pair_start_with(threads, WEIR_TRANSPORT_AUTO);
}

static inline int pair_stop(void** state) {  // a cmocka tear-down
  pair_t* pair = *state;
  for (int i = 0; i < 2; ++i) {
    char address[96];
    weir_serving_stop(pair->servings[i], 0);
    task_address(address, i);
    unlink(address + strlen("unix:"));
  }
  free(pair);
  return 0;
}

#endif  // WEIR_TESTS_TESTING_TASK_PAIR_H_
