// plugin_test.c — Kernels of plug-ins that do not do what they should.
#include "weir/plugin.h"

#include "testing/world.h"

static weir_status_t* set_first(weir_kernel_ctx_t* ctx) {
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_plugin_output(ctx, 0, 0, NULL, &out));
  *(float*)weir_tensor_data(out) = 1;
  return NULL;
}

static void set_first_async(weir_kernel_ctx_t* ctx, weir_done_t done) {
  weir_plugin_done(done, set_first(ctx));
}

static const weir_plugin_kernel_t kKernels[] = {{.device = "CPU", .compute = set_first}, {0}};
static const weir_plugin_kernel_t kAsync[] = {{.device = "CPU", .compute_async = set_first_async},
                                              {0}};
static const weir_plugin_op_t kOps[] = {
    {.name = "TestForgets", .outputs = "a: float; b: float", .kernels = kKernels},
    {.name = "TestForgetsLater", .outputs = "a: float; b: float", .kernels = kAsync},
    {.name = "TestSets", .outputs = "a: float", .kernels = kKernels},
    {.name = "TestSetsLater", .outputs = "a: float", .kernels = kAsync},
    {0}};
static const weir_plugin_t kPlugin = {.abi = WEIR_PLUGIN_ABI, .name = "test", .ops = kOps};

// An output that was not set is an error of the node, whoever wants it or another, at once or
// later; one that was set is there.
static void test_outputs(void** state) {
  world_t* w = *state;
  check_ok(weir_plugin_register(&kPlugin));
  const char* const names[] = {"TestForgets", "TestForgetsLater", "TestSets", "TestSetsLater"};
  weir_edge_t edges[4];
  for (int i = 0; i < 4; ++i) {
    weir_node_t* node = add(w, names[i], names[i], WEIR_NO_EDGES, WEIR_NO_ATTRS);
    edges[i] = OP(w, "Neg", output(node, i < 2 ? 1 : 0));
  }
  for (int threads = 1; threads <= 2; ++threads) {
    weir_session_t* session = open_session(w, threads);
    for (int i = 0; i < 4; ++i) {
      float value = 0;
      weir_status_t* status = weir_session_fetch_float(session, edges[i], &value);
      if (i < 2) check_error(status, WEIR_INTERNAL, "Missing 1-th output from {{node TestForgets");
      else check_ok(status);
      assert_float_equal(value, i < 2 ? 0 : -1, 0);
    }
    weir_session_destroy(session);
    w->session = NULL;
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_outputs, world_setup, world_teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
