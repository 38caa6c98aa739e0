// config.c — Flags, and who is asked after them about the cluster.
#include "cluster/config/config.h"

#include <ctype.h>

#include "base/alloc.h"
#include "rpc/address.h"

// ---- adding ----

// As in device names: a letter, then letters, digits, '_' and '-'.
static bool is_job_name(weir_view_t name) {
  if (name.size == 0 || name.size > 63 || !isalpha((unsigned char)name.data[0])) return false;
  for (size_t i = 0; i < name.size; ++i) {
    char c = name.data[i];
    if (!isalnum((unsigned char)c) && c != '_' && c != '-') return false;
  }
  return true;
}

weir_status_t* weir_cluster_config_add(weir_cluster_config_t* config, weir_view_t job, int index,
                                       weir_view_t address) {
  weir_rpc_address_t parsed;
  if (!is_job_name(job))
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "'%.*s' is no name of a job: letters, digits, '_' and '-' are",
                       WEIR_VIEW_ARG(job));
  if (memchr(address.data ? address.data : "", 0, address.size))
    return WEIR_STATUS(INVALID_ARGUMENT, "the address of task %d of job '%.*s' holds a NUL", index,
                       WEIR_VIEW_ARG(job));
  if (config->has_etcd && weir_view_is(address, WEIR_ABSENT_ADDRESS))
    return weir_cluster_spec_add(&config->spec, job, index, address);
  char* text = weir_strndup(address.data ? address.data : "", address.size);
  if (!text) return weir_out_of_memory();
  weir_status_t* status = weir_rpc_address_parse(text, &parsed);
  weir_free(text);
  if (status)
    return weir_status_prefix(status, "task %d of job '%.*s': ", index, WEIR_VIEW_ARG(job));
  return weir_cluster_spec_add(&config->spec, job, index, address);
}

weir_status_t* weir_cluster_config_set_task(weir_cluster_config_t* config, weir_view_t job,
                                            int64_t index) {
  if (index < 0 || index > INT32_MAX)
    return WEIR_STATUS(INVALID_ARGUMENT, "%lld is no number of a task", (long long)index);
  char* copy = weir_strndup(job.data, job.size);
  if (!copy) return weir_out_of_memory();
  weir_free(config->job);
  config->job = copy;
  config->task = (int)index;
  return NULL;
}

void weir_cluster_config_free(weir_cluster_config_t* config) {
  weir_cluster_spec_free(&config->spec);
  weir_free(config->job);
  *config = (weir_cluster_config_t){.job = NULL};
}

// ---- flags ----

// "job|host:port;host:port,job|…"
static weir_status_t* read_flag(weir_cluster_config_t* config, const char* text) {
  weir_view_t rest = weir_view_of(text), part;
  while (weir_view_next(&rest, ',', &part)) {
    weir_view_t tasks = part, job, address;
    if (!weir_view_next(&tasks, '|', &job) || job.size == 0 || tasks.size == 0)
      return WEIR_STATUS(INVALID_ARGUMENT, "'%.*s' is not 'job|host:port;host:port'",
                         WEIR_VIEW_ARG(part));
    for (int index = 0; weir_view_next(&tasks, ';', &address); ++index)
      WEIR_TRY(weir_cluster_config_add(config, job, index, address));
  }
  if (config->spec.job_count == 0) return WEIR_STATUS(INVALID_ARGUMENT, "it names no job");
  return NULL;
}

// ---- a cluster of one ----

static weir_status_t* read_nothing(weir_cluster_config_t* config,
                                   const weir_config_options_t* options, const char* own_address) {
  weir_strbuf_t address = {0};
  const char* host = options->bind ? options->bind : "127.0.0.1";
  bool is_bare_v6 = strchr(host, ':') && host[0] != '[';
  const char* port = own_address ? strrchr(own_address, ':') : NULL;
  if (options->unix_path) weir_strbuf_printf(&address, "unix:%s", options->unix_path);
  else weir_strbuf_printf(&address, is_bare_v6 ? "[%s]" : "%s", host);
  if (!options->unix_path && port && !options->port) weir_strbuf_puts(&address, port);
  else if (!options->unix_path) weir_strbuf_printf(&address, ":%d", options->port);
  weir_status_t* status = weir_strbuf_finish(&address);
  weir_view_t job = weir_view_of("localhost");
  if (!status) status = weir_cluster_config_add(config, job, 0, weir_strbuf_view(&address));
  if (!status) status = weir_cluster_config_set_task(config, job, 0);
  weir_strbuf_free(&address);
  return status;
}

// ---- who is asked ----

static weir_status_t* read_environment(weir_cluster_config_t* config,
                                       const weir_config_options_t* options,
                                       char** out_own_address) {
  const char* text = options->getenv_fn(options->getenv_arg, "TF_CONFIG");
  if (text && *text) {
    config->source = "TF_CONFIG";
    return weir_cluster_config_from_json(config, options, weir_view_of(text), out_own_address);
  }
  config->source = "Slurm";
  return weir_cluster_config_from_slurm(config, options);
}

static weir_status_t* read_sources(weir_cluster_config_t* config,
                                   const weir_config_options_t* options, char** out_own_address) {
  if (options->cluster) {
    config->source = "--cluster";
    WEIR_TRY(read_flag(config, options->cluster));
  } else if (options->getenv_fn) {
    WEIR_TRY(read_environment(config, options, out_own_address));
  }
  if (config->spec.job_count == 0) return NULL;
  const char* job = options->job ? options->job : config->job;
  if (!job)
    return WEIR_STATUS(INVALID_ARGUMENT, "a cluster is given, but not which job of it this is");
  // Flags say more than the environment: a job given by flag brings its task's number.
  int task = options->job || options->task ? options->task : config->task;
  if (!weir_cluster_spec_find(&config->spec, job, task))
    return WEIR_STATUS(INVALID_ARGUMENT, "the cluster has no task %d of job '%s'", task, job);
  return job == config->job && task == config->task
             ? NULL
             : weir_cluster_config_set_task(config, weir_view_of(job), task);
}

weir_status_t* weir_cluster_config_read(const weir_config_options_t* options,
                                        weir_cluster_config_t* out_config) {
  weir_cluster_config_t config = {.source = "default", .has_etcd = options->has_etcd};
  char* own_address = NULL;
  weir_status_t* status = read_sources(&config, options, &own_address);
  if (status) {
    status = weir_status_prefix(status, "%s: ", config.source);
  } else if (config.spec.job_count == 0) {
    // A task without a cluster is more likely a forgotten flag than a wish.
    bool is_alone = !options->job || !strcmp(options->job, "localhost") ||
                    (own_address && !strcmp(options->job, "evaluator"));
    if (!is_alone || (options->task && !own_address))
      status = WEIR_STATUS(INVALID_ARGUMENT,
                           "task %d of job '%s' is asked for, but neither --cluster nor TF_CONFIG "
                           "nor Slurm names a cluster",
                           options->task, options->job ? options->job : "localhost");
    else if (options->jobs)
      status = WEIR_STATUS(INVALID_ARGUMENT,
                           "jobs '%s' are to be dealt out, but this process is no task of Slurm",
                           options->jobs);
    else status = read_nothing(&config, options, own_address);
    config.source = "default";
  }
  weir_free(own_address);
  if (status) weir_cluster_config_free(&config);
  else *out_config = config;
  return status;
}

const char* weir_cluster_chief(const weir_cluster_spec_t* spec, const char** out_job) {
  static const char* const jobs[] = {"chief", "master", "worker"};
  for (size_t i = 0; i < WEIR_COUNT_OF(jobs); ++i) {
    *out_job = jobs[i];
    const char* address = weir_cluster_spec_find(spec, jobs[i], 0);
    if (address) return address;
  }
  return NULL;
}
