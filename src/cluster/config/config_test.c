// config_test.c — Which task of which cluster: flags, TF_CONFIG, Slurm, and none of them.
#include "cluster/config/config.h"

#include <stdio.h>

#include "base/alloc.h"
#include "testing/cmocka.h"

// Variables as "NAME=value" strings, NULL at the end.
static const char* find_variable(void* arg, const char* name) {
  size_t size = strlen(name);
  for (const char* const* at = arg; *at; ++at) {
    if (strncmp(*at, name, size) == 0 && (*at)[size] == '=') return *at + size + 1;
  }
  return NULL;
}

#define VARIABLES(...) \
  .getenv_fn = find_variable, .getenv_arg = (void*)(const char* const[]) { __VA_ARGS__, NULL }

// "job:index@source job|0=address,2=address job|…"
static void describe(const weir_cluster_config_t* config, weir_strbuf_t* out) {
  weir_strbuf_printf(out, "%s:%d@%s", config->job, config->task, config->source);
  for (int i = 0; i < config->spec.job_count; ++i) {
    const weir_cluster_job_t* job = &config->spec.jobs[i];
    weir_strbuf_printf(out, " %s|", job->name);
    for (int k = 0; k < job->task_count; ++k)
      weir_strbuf_printf(out, "%s%d=%s", k ? "," : "", job->tasks[k].index, job->tasks[k].address);
  }
}

static void expect(weir_config_options_t options, const char* expected) {
  weir_cluster_config_t config = {.job = NULL};
  weir_strbuf_t text = {0};
  weir_status_t* status = weir_cluster_config_read(&options, &config);
  if (status) fail_msg("%s", weir_status_message(status));
  describe(&config, &text);
  assert_string_equal(text.data, expected);
  weir_strbuf_free(&text);
  weir_cluster_config_free(&config);
}

static void expect_error(weir_config_options_t options, const char* message) {
  weir_cluster_config_t config = {.job = NULL};
  weir_status_t* status = weir_cluster_config_read(&options, &config);
  if (!status) fail_msg("no error, expected: %s", message);
  if (!strstr(weir_status_message(status), message))
    fail_msg("'%s' is not in '%s'", message, weir_status_message(status));
  assert_null(config.job);
  weir_status_destroy(status);
}

#define OPTIONS(...) \
  (weir_config_options_t) { __VA_ARGS__ }

// ---- flags and defaults ----

static void test_flags(void** state) {
  (void)state;
  static const char cluster[] = "ps|h1:2222;h2:2222,worker|[::1]:80;unix:/tmp/s";
  expect(OPTIONS(.cluster = cluster, .job = "ps", .task = 1),
         "ps:1@--cluster ps|0=h1:2222,1=h2:2222 worker|0=[::1]:80,1=unix:/tmp/s");
  // A flag wins over the environment.
  expect(OPTIONS(.cluster = "a|h:1", .job = "a",
                 VARIABLES("TF_CONFIG={", "SLURM_PROCID=0", "SLURM_STEP_NODELIST=[")),
         "a:0@--cluster a|0=h:1");
}

static void test_flag_errors(void** state) {
  (void)state;
  expect_error(OPTIONS(.cluster = "ps|h:1"), "--cluster: a cluster is given, but not which job");
  expect_error(OPTIONS(.cluster = "ps|h:1", .job = "worker"), "no task 0 of job 'worker'");
  expect_error(OPTIONS(.cluster = "ps|h:1", .job = "ps", .task = 1), "no task 1 of job 'ps'");
  expect_error(OPTIONS(.cluster = "ps", .job = "ps"), "'ps' is not 'job|host:port;host:port'");
  expect_error(OPTIONS(.cluster = "ps|h:1,,w|h:2", .job = "ps"), "'' is not 'job|");
  expect_error(OPTIONS(.cluster = "|h:1", .job = "ps"), "'|h:1' is not");
  expect_error(OPTIONS(.cluster = "", .job = "ps"), "--cluster: ");
  expect_error(OPTIONS(.cluster = "ps|h", .job = "ps"), "task 0 of job 'ps': 'h' is no address");
  expect_error(OPTIONS(.cluster = "ps|h:1;", .job = "ps"), "task 1 of job 'ps': '' is no address");
  expect_error(OPTIONS(.cluster = "ps|h:70000", .job = "ps"), "'h:70000' is no address");
  expect_error(OPTIONS(.cluster = "ps|h:1,ps|h:2", .job = "ps"),
               "task 0 of job 'ps' is given twice");
  expect_error(OPTIONS(.cluster = "1ps|h:1", .job = "1ps"), "'1ps' is no name of a job");
  expect_error(OPTIONS(.cluster = "p s|h:1", .job = "p s"), "'p s' is no name of a job");
}

// Addresses that etcd tells.
static void test_absent_addresses(void** state) {
  (void)state;
  static const char cluster[] = "ps|-;h2:2222,worker|-";
  expect(OPTIONS(.cluster = cluster, .job = "ps", .has_etcd = true),
         "ps:0@--cluster ps|0=-,1=h2:2222 worker|0=-");
  expect(OPTIONS(.has_etcd = true, VARIABLES("TF_CONFIG={\"cluster\": {\"ps\": [\"-\"]}, "
                                             "\"task\": {\"type\": \"ps\", \"index\": 0}}")),
         "ps:0@TF_CONFIG ps|0=-");
  expect_error(OPTIONS(.cluster = cluster, .job = "ps"), "'-' is no address");
  expect_error(OPTIONS(.cluster = "ps|--", .job = "ps", .has_etcd = true), "'--' is no address");
}

static void test_default(void** state) {
  (void)state;
  expect(OPTIONS(.port = 7), "localhost:0@default localhost|0=127.0.0.1:7");
  expect(OPTIONS(.bind = "::", .job = "localhost"), "localhost:0@default localhost|0=[::]:0");
  expect(OPTIONS(.bind = "[::1]"), "localhost:0@default localhost|0=[::1]:0");
  expect(OPTIONS(.unix_path = "/tmp/x"), "localhost:0@default localhost|0=unix:/tmp/x");
  expect(OPTIONS(VARIABLES("HOME=/")), "localhost:0@default localhost|0=127.0.0.1:0");
  expect_error(OPTIONS(.job = "ps"), "task 0 of job 'ps' is asked for, but neither");
  expect_error(OPTIONS(.task = 2), "task 2 of job 'localhost' is asked for");
  expect_error(OPTIONS(.jobs = "ps:1"), "this process is no task of Slurm");
}

// ---- TF_CONFIG ----

#define CLUSTER "\"cluster\": {\"chief\": [\"c:1\"], \"ps\": [\"p:1\", \"p:2\"]}"

static void test_tf_config(void** state) {
  (void)state;
  // As TFJob writes it, with keys that mean nothing to a server.
  expect(OPTIONS(VARIABLES("TF_CONFIG={" CLUSTER ", \"task\": {\"type\": \"ps\", \"index\": 1, "
                           "\"trial\": 3}, \"environment\": \"cloud\", \"rpc_layer\": \"grpc\"}")),
         "ps:1@TF_CONFIG chief|0=c:1 ps|0=p:1,1=p:2");
  // Before Slurm; the number as a string, or absent.
  expect(
      OPTIONS(VARIABLES("SLURM_PROCID=0", "SLURM_STEP_NODELIST=n",
                        "TF_CONFIG={" CLUSTER ", \"task\": {\"type\": \"ps\", \"index\": \"1\"}}")),
      "ps:1@TF_CONFIG chief|0=c:1 ps|0=p:1,1=p:2");
  expect(OPTIONS(VARIABLES("TF_CONFIG={" CLUSTER ", \"task\": {\"type\": \"chief\"}}")),
         "chief:0@TF_CONFIG chief|0=c:1 ps|0=p:1,1=p:2");
  // Some tasks absent.
  expect(OPTIONS(VARIABLES("TF_CONFIG={\"cluster\": {\"worker\": {\"4\": \"w:4\", \"1\": \"w:1\"}},"
                           "\"task\": {\"type\": \"worker\", \"index\": 4}}")),
         "worker:4@TF_CONFIG worker|1=w:1,4=w:4");
  // Flags say which task this is.
  expect(OPTIONS(.job = "ps", .task = 1, VARIABLES("TF_CONFIG={" CLUSTER "}")),
         "ps:1@TF_CONFIG chief|0=c:1 ps|0=p:1,1=p:2");
  expect(OPTIONS(.task = 1, VARIABLES("TF_CONFIG={" CLUSTER ", \"task\": {\"type\": \"ps\"}}")),
         "ps:1@TF_CONFIG chief|0=c:1 ps|0=p:1,1=p:2");
}

static void test_tf_config_alone(void** state) {
  (void)state;
  static const char alone[] = "localhost:0@default localhost|0=127.0.0.1:0";
  expect(OPTIONS(VARIABLES("TF_CONFIG=")), alone);
  expect(OPTIONS(VARIABLES("TF_CONFIG={}")), alone);
  expect(OPTIONS(VARIABLES("TF_CONFIG={\"cluster\": {}, \"task\": {\"type\": \"worker\"}}")),
         alone);
  expect(OPTIONS(VARIABLES("TF_CONFIG={\"cluster\": null}")), alone);
  // An evaluator works alone, and others do not see it.
#define WITH_EVALUATOR "\"cluster\": {\"worker\": [\"w:1\"], \"evaluator\": [\"e:5\"]}"
  expect(OPTIONS(VARIABLES("TF_CONFIG={" WITH_EVALUATOR ", \"task\": {\"type\": \"evaluator\"}}")),
         "localhost:0@default localhost|0=127.0.0.1:5");
  expect(OPTIONS(.job = "evaluator", VARIABLES("TF_CONFIG={" WITH_EVALUATOR "}")),
         "localhost:0@default localhost|0=127.0.0.1:5");
  expect(OPTIONS(VARIABLES("TF_CONFIG={" CLUSTER ", \"task\": {\"type\": \"evaluator\"}}")), alone);
  expect(OPTIONS(VARIABLES("TF_CONFIG={" WITH_EVALUATOR ", \"task\": {\"type\": \"worker\"}}")),
         "worker:0@TF_CONFIG worker|0=w:1");
}

static void test_tf_config_errors(void** state) {
  (void)state;
  static const struct {
    const char *text, *message;
  } cases[] = {
      {"TF_CONFIG=nonsense", "TF_CONFIG: JSON: line 1, column 2: expected null, not 'o'"},
      {"TF_CONFIG=[]", "TF_CONFIG: it must be an object, not an array"},
      {"TF_CONFIG={\"cluster\": 3}", "cluster must be an object, not a number"},
      {"TF_CONFIG={\"cluster\": {\"ps\": \"h:1\"}}", "cluster.ps must be an array of addresses"},
      {"TF_CONFIG={\"cluster\": {\"ps\": [7]}}",
       "cluster.ps: task 0 must be a string, not a number"},
      {"TF_CONFIG={\"cluster\": {\"ps\": {\"x\": \"h:1\"}}}",
       "cluster.ps: 'x' is no number of a task"},
      {"TF_CONFIG={\"cluster\": {\"ps\": [\"h\"]}}", "task 0 of job 'ps': 'h' is no address"},
      {"TF_CONFIG={\"cluster\": {\"ps\": [\"h\\u0000:1\"]}}", "holds a NUL"},
      {"TF_CONFIG={\"cluster\": {\"p/s\": [\"h:1\"]}}", "'p/s' is no name of a job"},
      {"TF_CONFIG={" CLUSTER "}", "task.type is missing"},
      {"TF_CONFIG={" CLUSTER ", \"task\": 1}", "task must be an object, not a number"},
      {"TF_CONFIG={" CLUSTER ", \"task\": {\"type\": 1}}",
       "task.type must be a string, not a number"},
      {"TF_CONFIG={" CLUSTER ", \"task\": {\"type\": \"ps\", \"index\": -1}}",
       "task.index '-1' is no"},
      {"TF_CONFIG={" CLUSTER ", \"task\": {\"type\": \"ps\", \"index\": \"x\"}}",
       "task.index 'x' is no"},
      {"TF_CONFIG={" CLUSTER ", \"task\": {\"type\": \"ps\", \"index\": []}}",
       "must be a number, not an array"},
      {"TF_CONFIG={" CLUSTER ", \"task\": {\"type\": \"ps\", \"index\": 2}}",
       "no task 2 of job 'ps'"},
      {"TF_CONFIG={" CLUSTER ", \"task\": {\"type\": \"worker\"}}", "no task 0 of job 'worker'"},
  };
  for (size_t i = 0; i < WEIR_COUNT_OF(cases); ++i)
    expect_error(OPTIONS(VARIABLES(cases[i].text)), cases[i].message);
}

// ---- Slurm ----

static void test_slurm(void** state) {
  (void)state;
  // The step's variables before the job's.
  expect(OPTIONS(VARIABLES("SLURM_PROCID=2", "SLURM_STEP_NODELIST=n[1-2]", "SLURM_NODEID=1",
                           "SLURM_STEP_TASKS_PER_NODE=2,1", "SLURM_JOB_NODELIST=x",
                           "SLURM_TASKS_PER_NODE=9")),
         "worker:2@Slurm worker|0=n1:8888,1=n1:8889,2=n2:8888");
  expect(
      OPTIONS(VARIABLES("SLURM_PROCID=0", "SLURM_JOB_NODELIST=a,b", "SLURM_TASKS_PER_NODE=1(x2)")),
      "worker:0@Slurm worker|0=a:8888,1=b:8888");
  expect(OPTIONS(.port = 2000, .jobs = "ps:1,worker:3",
                 VARIABLES("SLURM_PROCID=3", "SLURM_STEP_NODELIST=n[01-02]",
                           "SLURM_STEP_TASKS_PER_NODE=2(x2)")),
         "worker:2@Slurm ps|0=n01:2000 worker|0=n01:2001,1=n02:2000,2=n02:2001");
  // Without counts: one task a node.
  expect(OPTIONS(.jobs = "ps:1,chief:1,worker:4",
                 VARIABLES("SLURM_PROCID=1", "SLURM_STEP_NODELIST=n[001-003,7],m5,r[1-1]c2")),
         "chief:0@Slurm ps|0=n001:8888 chief|0=n002:8888 "
         "worker|0=n003:8888,1=n7:8888,2=m5:8888,3=r1c2:8888");
  expect(OPTIONS(VARIABLES("SLURM_PROCID=0", "SLURM_STEP_NODELIST=r[1-2]n[09-10]")),
         "worker:0@Slurm worker|0=r1n09:8888,1=r1n10:8888,2=r2n09:8888,3=r2n10:8888");
  // A job without tasks of its own is not Slurm's.
  expect(OPTIONS(VARIABLES("SLURM_JOB_NODELIST=a")), "localhost:0@default localhost|0=127.0.0.1:0");
  expect(OPTIONS(VARIABLES("SLURM_PROCID=0")), "localhost:0@default localhost|0=127.0.0.1:0");
}

static void test_slurm_errors(void** state) {
  (void)state;
  static const struct {
    const char *rank, *nodes, *counts, *jobs, *message;
  } cases[] = {
      {"x", "n", "1", NULL, "SLURM_PROCID 'x' is no number"},
      {"1", "n", "1", NULL, "SLURM_PROCID is 1, but there are 1 tasks"},
      {"0", "n[1", "1", NULL, "SLURM_STEP_NODELIST 'n[1': '[' without ']'"},
      {"0", "n1]", "1", NULL, "']' without '['"},
      {"0", "n[[1]", "1", NULL, "'[' without ']'"},
      {"0", "n[]", "1", NULL, "an empty range"},
      {"0", "n[3-1]", "1", NULL, "'3-1' is no range"},
      {"0", "n[1-]", "1", NULL, "'1-' is no range"},
      {"0", "n[-1]", "1", NULL, "'-1' is no range"},
      {"0", "n[a-b]", "1", NULL, "'a-b' is no range"},
      {"0", "n[1,,2]", "1", NULL, "'' is no range"},
      {"0", "n[1-999999999]", "1", NULL, "is no range"},
      {"0", "n[1-99999][1-99999]", "1", NULL, "more than"},
      {"0", "a,,b", "1", NULL, "an empty name of a node"},
      {"0", "a,", "1", NULL, "an empty name of a node"},
      {"0", "n", "x", NULL, "SLURM_STEP_TASKS_PER_NODE 'x': 'x' is not"},
      {"0", "n", "1(x2", NULL, "'1(x2' is not"},
      {"0", "n", "1(2)", NULL, "'1(2)' is not"},
      {"0", "n", "1(x)", NULL, "'1(x)' is not"},
      {"0", "n", "1,2", NULL, "'n' is of 1 nodes, but SLURM_STEP_TASKS_PER_NODE '1,2' of 2"},
      {"0", "n", "1(x999999999)", NULL, "is not 'tasks' or"},
      {"0", "n", "3", "ps:1,worker:1", "have 2 tasks, but Slurm started 3"},
      {"0", "n", "3", "ps:1,worker", "'worker' of the jobs 'ps:1,worker' is not 'job:tasks'"},
      {"0", "n", "3", "ps:0,worker:3", "'ps:0' of the jobs"},
      {"0", "n", "2", "ps:1,ps:1", "given twice"},
  };
  for (size_t i = 0; i < WEIR_COUNT_OF(cases); ++i) {
    char rank[64], nodes[64], counts[64];
    snprintf(rank, sizeof(rank), "SLURM_PROCID=%s", cases[i].rank);
    snprintf(nodes, sizeof(nodes), "SLURM_STEP_NODELIST=%s", cases[i].nodes);
    snprintf(counts, sizeof(counts), "SLURM_STEP_TASKS_PER_NODE=%s", cases[i].counts);
    expect_error(OPTIONS(.jobs = cases[i].jobs, VARIABLES(rank, nodes, counts)), cases[i].message);
  }
  expect_error(OPTIONS(VARIABLES("SLURM_PROCID=1", "SLURM_STEP_NODELIST=a,b", "SLURM_NODEID=0",
                                 "SLURM_STEP_TASKS_PER_NODE=1,1")),
               "task 1 runs on node 0 of the list, not on node 1: start the step with srun "
               "--distribution=block");
  expect_error(OPTIONS(.port = 65535, VARIABLES("SLURM_PROCID=1", "SLURM_STEP_NODELIST=a",
                                                "SLURM_STEP_TASKS_PER_NODE=2")),
               "'a:65536' is no address");
}

static void test_long_slurm_names(void** state) {
  (void)state;
  weir_strbuf_t nodes = {0};
  weir_strbuf_puts(&nodes, "SLURM_STEP_NODELIST=n");
  for (int i = 0; i < 30000; ++i) weir_strbuf_puts(&nodes, "[1]");
  expect_error(OPTIONS(VARIABLES("SLURM_PROCID=0", nodes.data)), "a name of more than");
  weir_strbuf_free(&nodes);
}

// ---- the rest ----

static void test_chief(void** state) {
  (void)state;
  static const struct {
    const char *cluster, *job;
  } cases[] = {{"worker|w:1,chief|c:1", "chief"},
               {"worker|w:1,master|c:1", "master"},
               {"ps|p:1,worker|w:1", "worker"},
               {"ps|p:1", NULL}};
  for (size_t i = 0; i < WEIR_COUNT_OF(cases); ++i) {
    weir_cluster_config_t config = {.job = NULL};
    weir_config_options_t options = {.cluster = cases[i].cluster,
                                     .job = strstr(cases[i].cluster, "ps") ? "ps" : "worker"};
    assert_null(weir_cluster_config_read(&options, &config));
    const char* job = NULL;
    const char* address = weir_cluster_chief(&config.spec, &job);
    assert_int_equal(address != NULL, cases[i].job != NULL);
    if (address) assert_string_equal(job, cases[i].job);
    weir_cluster_config_free(&config);
  }
}

static void test_out_of_memory(void** state) {
  (void)state;
  const weir_config_options_t cases[] = {
      {.cluster = "ps|h1:2222;h2:2222", .job = "ps"},
      {VARIABLES("TF_CONFIG={" CLUSTER ", \"task\": {\"type\": \"ps\", \"index\": 1}}")},
      {VARIABLES("TF_CONFIG={" WITH_EVALUATOR ", \"task\": {\"type\": \"evaluator\"}}")},
      {.jobs = "ps:1,worker:2", VARIABLES("SLURM_PROCID=2", "SLURM_STEP_NODELIST=n[1-3]")},
  };
  for (size_t i = 0; i < WEIR_COUNT_OF(cases); ++i) {
    for (int64_t n = 1;; ++n) {
      weir_cluster_config_t config = {.job = NULL};
      weir_alloc_fail_at(n, false);
      weir_status_t* status = weir_cluster_config_read(&cases[i], &config);
      weir_alloc_fail_at(0, false);
      weir_cluster_config_free(&config);
      if (!status) break;
      assert_int_equal(weir_status_code(status), WEIR_RESOURCE_EXHAUSTED);
      weir_status_destroy(status);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_flags),
      cmocka_unit_test(test_flag_errors),
      cmocka_unit_test(test_absent_addresses),
      cmocka_unit_test(test_default),
      cmocka_unit_test(test_tf_config),
      cmocka_unit_test(test_tf_config_alone),
      cmocka_unit_test(test_tf_config_errors),
      cmocka_unit_test(test_slurm),
      cmocka_unit_test(test_slurm_errors),
      cmocka_unit_test(test_long_slurm_names),
      cmocka_unit_test(test_chief),
      cmocka_unit_test(test_out_of_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
