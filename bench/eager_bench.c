// eager_bench.c — What an op costs that runs at once, beside what its kernel costs when it is
// called directly: a warm loop of additions of scalars. Times depend on the machine's load, counts
// of instructions do not:
//
//   cmake --build build/release --target eager_bench && build/release/eager_bench [ops]
//   valgrind --tool=callgrind --toggle-collect=run_scope build/release/eager_bench 20000
#include <stdio.h>
#include <stdlib.h>

#include "base/thread.h"
#include "eager/prepared.h"
#include "weir/weir.h"

enum { BATCH = 1000 };  // ops a scope: values of more would not stay in the cache

static void check(weir_status_t* status) {
  if (!weir_status_report(status)) return;
  exit(1);
}

// ---- the ways ----

// Through the functions of weir/ops.h, on scopes that are finished every now and then.
__attribute__((noinline)) static void run_scope(weir_eager_t* eager, int ops) {
  for (int done = 0; done < ops; done += BATCH) {
    weir_scope_t* s = weir_eager_scope(eager);
    weir_edge_t x = weir_const_float(s, 1), y = x;
    for (int i = 0; i < BATCH; ++i) y = weir_add_v2(s, y, x);
    check(weir_scope_finish(s));
  }
}

// The kernel alone.
__attribute__((noinline)) static void run_kernel(weir_op_call_t* call, weir_step_t* step,
                                                 weir_tensor_t* x, int ops) {
  weir_tensor_t* y = weir_tensor_retain(x);
  for (int i = 0; i < ops; ++i) {
    weir_value_t inputs[] = {{.tensor = y}, {.tensor = weir_tensor_retain(x)}};
    weir_value_t output = {.tensor = NULL};
    check(weir_op_call_run(call, step, inputs, &output));
    weir_value_release(&inputs[0]);
    weir_value_release(&inputs[1]);
    y = output.tensor;
  }
  weir_tensor_release(y);
}

// ---- times ----

typedef struct kernel_t {
  weir_op_call_t* call;
  weir_step_t step;
  weir_tensor_t* x;
} kernel_t;

static void open_kernel(weir_eager_t* eager, kernel_t* k) {
  const weir_dtype_t types[] = {WEIR_DTYPE_FLOAT, WEIR_DTYPE_FLOAT};
  weir_eager_ask_t ask = {.op = "AddV2", .types = types, .input_count = 2};
  weir_eager_op_t* op = NULL;
  check(weir_eager_find_op(eager, &ask, weir_eager_ask_hash(&ask), "AddV2", &op));
  check(weir_eager_op_call(eager, op, 0, &k->call));
  check(weir_eager_step_init(eager, &k->step));
  check(weir_tensor_create_from(WEIR_DTYPE_FLOAT, 0, NULL, &(float){1}, &k->x));
}

int main(int argc, char** argv) {
  int ops = argc > 1 ? atoi(argv[1]) : 1000000;
  double best[2] = {1e18, 1e18};
  weir_eager_t* eager = NULL;
  kernel_t k;
  check(weir_eager_create(&(weir_eager_options_t){.threads = 1}, &eager));
  open_kernel(eager, &k);
  run_scope(eager, BATCH);
  for (int round = 0; round < 10; ++round) {
    int64_t begin = weir_clock_ns();
    run_scope(eager, ops / 10);
    int64_t middle = weir_clock_ns();
    run_kernel(k.call, &k.step, k.x, ops / 10);
    int64_t end = weir_clock_ns();
    best[0] = WEIR_MIN(best[0], (double)(middle - begin) / (ops / 10));
    best[1] = WEIR_MIN(best[1], (double)(end - middle) / (ops / 10));
  }
  printf("AddV2 of scalars, ns an op: scope %.0f, kernel alone %.0f, overhead %.0f\n", best[0],
         best[1], best[0] - best[1]);
  weir_tensor_release(k.x);
  weir_eager_step_deinit(&k.step);
  weir_eager_destroy(eager);
  return 0;
}
