// server.c — TF_Server: a task of a cluster, as a ServerDef describes it.
#include "weir/server.h"

#include "cluster/task/fields.h"
#include "tensorflow/internal.h"
#include "wire/wire.h"

struct TF_Server {
  weir_arena_t arena;     // of |options| and |target|
  weir_server_t* server;  // owned
  const char* target;
};

// "worker|host:port;host:port". Tasks must come as 0, 1, 2 …
static weir_status_t* read_job(weir_view_t job, weir_strbuf_t* out) {
  weir_view_t name = {0};
  weir_strbuf_t tasks = {0};
  int64_t count = 0;
  weir_status_t* status = NULL;
  weir_wire_reader_t r = weir_wire_reader(job);
  while (weir_wire_next(&r) && !status) {
    if (r.field == JOB_DEF_NAME && r.type == WEIR_WIRE_BYTES) name = r.bytes;
    if (r.field != JOB_DEF_TASKS || r.type != WEIR_WIRE_BYTES) continue;
    int64_t index = 0;
    weir_view_t address = {0};
    weir_wire_reader_t entry = weir_wire_reader(r.bytes);
    while (weir_wire_next(&entry)) {
      if (entry.field == TASKS_ENTRY_KEY) index = weir_wire_int(&entry);
      if (entry.field == TASKS_ENTRY_VALUE && entry.type == WEIR_WIRE_BYTES) address = entry.bytes;
    }
    if (index != count++)
      status = WEIR_STATUS(UNIMPLEMENTED, "job '%.*s' lists task %lld where task %lld is expected",
                           WEIR_VIEW_ARG(name), (long long)index, (long long)count - 1);
    weir_strbuf_printf(&tasks, "%s%.*s", tasks.size ? ";" : "", WEIR_VIEW_ARG(address));
  }
  if (!status)
    weir_strbuf_printf(out, "%s%.*s|%s", out->size ? "," : "", WEIR_VIEW_ARG(name),
                       tasks.data ? tasks.data : "");
  weir_strbuf_free(&tasks);
  return status;
}

static weir_status_t* read_cluster(weir_view_t cluster, weir_strbuf_t* out) {
  weir_wire_reader_t r = weir_wire_reader(cluster);
  while (weir_wire_next(&r)) {
    if (r.field == CLUSTER_DEF_JOB && r.type == WEIR_WIRE_BYTES) WEIR_TRY(read_job(r.bytes, out));
  }
  return weir_wire_check(&r, "ClusterDef");
}

static weir_status_t* read_def(weir_view_t def, TF_Server* server, weir_server_options_t* options) {
  weir_strbuf_t cluster = {0};
  weir_view_t job = {0};
  weir_status_t* status = NULL;
  weir_wire_reader_t r = weir_wire_reader(def);
  while (weir_wire_next(&r) && !status) {
    if (r.field == SERVER_DEF_CLUSTER && r.type == WEIR_WIRE_BYTES)
      status = read_cluster(r.bytes, &cluster);
    if (r.field == SERVER_DEF_JOB_NAME && r.type == WEIR_WIRE_BYTES) job = r.bytes;
    if (r.field == SERVER_DEF_TASK_INDEX) options->task = (int)weir_wire_int(&r);
  }
  if (!status && r.error)
    status = WEIR_STATUS(INVALID_ARGUMENT,
                         "Could not parse provided bytes into a ServerDef protocol buffer");
  if (status) {
    weir_strbuf_free(&cluster);
    return status;
  }
  options->cluster =
      weir_arena_strndup(&server->arena, cluster.data ? cluster.data : "", cluster.size);
  options->job = weir_arena_strndup(&server->arena, job.data ? job.data : "", job.size);
  weir_strbuf_free(&cluster);
  return options->cluster && options->job ? NULL : weir_out_of_memory();
}

static weir_status_t* create(weir_view_t def, TF_Server* server) {
  weir_server_options_t options = {0};
  WEIR_TRY(read_def(def, server, &options));
  WEIR_TRY(weir_server_create(&options, &server->server));
  server->target =
      weir_arena_printf(&server->arena, "grpc://localhost:%d", weir_server_port(server->server));
  return server->target ? NULL : weir_out_of_memory();
}

TF_Server* TF_NewServer(const void* proto, size_t proto_len, TF_Status* status) {
  TF_Server* server = weir_calloc(1, sizeof(*server));
  weir_status_t* result =
      server ? create(weir_view(proto, proto_len), server) : weir_out_of_memory();
  if (tf_status_take(status, result)) return server;
  TF_DeleteServer(server);
  return NULL;
}

// It listens since it was made.
void TF_ServerStart(TF_Server* server, TF_Status* status) {
  (void)server;
  tf_status_clear(status);
}

void TF_ServerStop(TF_Server* server, TF_Status* status) {
  weir_server_stop(server->server);
  tf_status_clear(status);
}

void TF_ServerJoin(TF_Server* server, TF_Status* status) {
  (void)weir_server_wait(server->server, -1);
  tf_status_clear(status);
}

const char* TF_ServerTarget(TF_Server* server) { return server->target; }

void TF_DeleteServer(TF_Server* server) {
  if (!server) return;
  weir_server_destroy(server->server, 0);
  weir_arena_free(&server->arena);
  weir_free(server);
}
