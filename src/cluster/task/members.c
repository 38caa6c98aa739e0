// members.c — Tasks tell etcd where they are, and ask it about the others, once a second.
#include "cluster/task/members.h"

#include "base/alloc.h"
#include "base/log.h"
#include "cluster/etcd/session.h"
#include "cluster/task/task.h"

enum { LEASE_SECONDS = 10, MOST_ADDRESS = 300 };
#define PAUSE_NS INT64_C(1000000000)

// A task whose address the description leaves out, but this one.
typedef struct member_t {
  const char* job;  // the spec's
  int index;
  char* key;
  weir_rpc_channel_t* channel;
  char* address;  // guarded by mu; NULL: not known yet
} member_t;

struct weir_members_t {
  weir_task_t* task;
  weir_etcd_client_t* client;
  char *prefix, *own_key;  // "/weir/job/", and what this task's address is under
  member_t* members;       // immutable but for addresses
  int count;
  pthread_t thread;
  bool is_started;
  weir_mutex_t mu;
  weir_cond_t cond;
  bool is_stopping;   // guarded by mu
  char* own_address;  // written before the thread begins, under mu
  // Of the thread alone:
  weir_etcd_session_t session;
  bool was_told;   // once, where this task is
  bool is_told;    // as far as is known
  bool is_silent;  // etcd does not answer, which was said
};

// ---- who there is ----

static weir_status_t* make_key(const weir_members_t* members, const char* job, int index,
                               char** out_key) {
  weir_strbuf_t key = {0};
  weir_strbuf_printf(&key, "%s%s/%d", members->prefix, job, index);
  weir_status_t* status = weir_strbuf_finish(&key);
  if (status) weir_strbuf_free(&key);
  else *out_key = key.data;
  return status;
}

static weir_status_t* add_member(weir_members_t* members, const char* job, int index) {
  const weir_task_t* task = members->task;
  const size_t count = (size_t)members->count + 1;
  member_t* all = weir_realloc_array(members->members, count, sizeof(*all));
  if (!all) return weir_out_of_memory();
  members->members = all;
  member_t* member = &all[members->count++];
  *member = (member_t){.job = job, .index = index};
  WEIR_TRY(make_key(members, job, index, &member->key));
  const weir_rpc_channel_options_t options = {
      .tls = task->tls, .token = task->token, .max_message_size = task->max_message_size};
  return weir_rpc_channel_create(task->loop, &options, &member->channel);
}

static weir_status_t* add_members(weir_members_t* members) {
  const weir_task_t* task = members->task;
  for (int i = 0; i < task->spec.job_count; ++i) {
    const weir_cluster_job_t* job = &task->spec.jobs[i];
    for (int k = 0; k < job->task_count; ++k) {
      const int index = job->tasks[k].index;
      const bool is_self = job->name == task->job && index == task->index;
      if (!is_self && weir_cluster_is_absent(job->tasks[k].address))
        WEIR_TRY(add_member(members, job->name, index));
    }
  }
  return NULL;
}

static weir_status_t* init(weir_members_t* members, const weir_members_options_t* options) {
  const size_t size = options->prefix ? strlen(options->prefix) : 0;
  const bool is_ended = size && options->prefix[size - 1] == '/';
  weir_strbuf_t prefix = {0};
  if (!size)
    return WEIR_STATUS(INVALID_ARGUMENT, "etcd needs a prefix for the keys of this cluster");
  weir_strbuf_printf(&prefix, is_ended ? "%s" : "%s/", options->prefix);
  members->prefix = prefix.data;
  WEIR_TRY(weir_strbuf_finish(&prefix));
  WEIR_TRY(make_key(members, members->task->job, members->task->index, &members->own_key));
  WEIR_TRY(weir_etcd_client_create(&options->etcd, &members->client));
  members->session = weir_etcd_session(members->client, LEASE_SECONDS);
  return add_members(members);
}

weir_status_t* weir_members_create(weir_task_t* task, const weir_members_options_t* options,
                                   weir_members_t** out_members) {
  weir_members_t* members = weir_calloc(1, sizeof(*members));
  if (!members) return weir_out_of_memory();
  weir_mutex_init(&members->mu);
  weir_cond_init(&members->cond);
  members->task = task;
  weir_status_t* status = init(members, options);
  if (status) weir_members_destroy(members);
  else *out_members = members;
  return status;
}

void weir_members_destroy(weir_members_t* members) {
  if (!members) return;
  weir_members_stop(members);
  for (int i = 0; i < members->count; ++i) {
    weir_rpc_channel_destroy(members->members[i].channel);
    weir_free(members->members[i].key);
    weir_free(members->members[i].address);
  }
  weir_free(members->members);
  weir_etcd_client_destroy(members->client);
  weir_cond_destroy(&members->cond);
  weir_mutex_destroy(&members->mu);
  weir_free(members->prefix);
  weir_free(members->own_key);
  weir_free(members->own_address);
  weir_free(members);
}

static member_t* find(const weir_members_t* members, const char* job, int index) {
  for (int i = 0; i < members->count; ++i) {
    member_t* member = &members->members[i];
    if (member->index == index && !strcmp(member->job, job)) return member;
  }
  return NULL;
}

weir_rpc_channel_t* weir_members_channel(const weir_members_t* members, const char* job,
                                         int index) {
  const member_t* member = find(members, job, index);
  return member ? member->channel : NULL;
}

void weir_members_write_address(weir_members_t* members, const char* job, int index,
                                weir_strbuf_t* out) {
  const member_t* member = find(members, job, index);
  weir_mutex_lock(&members->mu);
  const char* address = member ? member->address : members->own_address;
  weir_strbuf_puts(out, address ? address : WEIR_ABSENT_ADDRESS);
  weir_mutex_unlock(&members->mu);
}

// ---- telling ----

// The first time over whatever is there: that was this task before it was started again. Later only
// where nothing is, since a process that was stopped for long may have been replaced.
static weir_status_t* tell(weir_members_t* members, int64_t deadline_ns) {
  weir_etcd_session_t* session = &members->session;
  bool is_put = false;
  WEIR_TRY(weir_etcd_session_keep(session, deadline_ns));
  if (session->lease && members->is_told) return NULL;
  WEIR_TRY(weir_etcd_session_begin(session, deadline_ns));
  const weir_etcd_put_t put = {.key = weir_view_of(members->own_key),
                               .value = weir_view_of(members->own_address),
                               .lease = session->lease};
  if (members->was_told) return weir_etcd_put_if(members->client, deadline_ns, &put, 0, &is_put);
  WEIR_TRY(weir_etcd_put(members->client, deadline_ns, &put));
  members->was_told = true;
  return NULL;
}

// ---- learning ----

static weir_status_t* note_address(weir_members_t* members, member_t* member, weir_view_t address) {
  if (member->address && weir_view_is(address, member->address)) return NULL;
  if (!address.size || address.size > MOST_ADDRESS || memchr(address.data, 0, address.size))
    return WEIR_STATUS(INVALID_ARGUMENT, "%zu bytes are no address", address.size);
  char* copy = weir_strndup(address.data, address.size);
  if (!copy) return weir_out_of_memory();
  weir_status_t* status = weir_rpc_channel_move(member->channel, copy);
  if (status) {
    weir_free(copy);
    return status;
  }
  weir_mutex_lock(&members->mu);
  char* before = member->address;
  member->address = copy;
  weir_mutex_unlock(&members->mu);
  weir_free(before);
  WEIR_LOG(INFO, "task %d of job '%s' is at %s", member->index, member->job, copy);
  return NULL;
}

static weir_status_t* see(void* arg, const weir_etcd_entry_t* entry) {
  weir_members_t* members = arg;
  if (weir_view_is(entry->key, members->own_key)) members->is_told = true;
  for (int i = 0; i < members->count; ++i) {
    member_t* member = &members->members[i];
    if (!weir_view_is(entry->key, member->key)) continue;
    weir_status_t* status = note_address(members, member, entry->value);
    if (status)  // of one task, which says nothing about the others
      WEIR_LOG(ERROR, "%s in etcd: %s", member->key, weir_status_message(status));
    weir_status_destroy(status);
  }
  return NULL;
}

static weir_status_t* learn(weir_members_t* members, int64_t deadline_ns) {
  weir_strbuf_t end = {0};
  const weir_view_t prefix = weir_view_of(members->prefix);
  weir_etcd_write_end_of(&end, prefix);
  weir_status_t* status = weir_strbuf_finish(&end);
  members->is_told = false;
  if (!status)
    status =
        weir_etcd_get(members->client, deadline_ns, prefix, weir_strbuf_view(&end), see, members);
  weir_strbuf_free(&end);
  return status;
}

// ---- the thread ----

static void look(weir_members_t* members) {
  const int64_t deadline_ns = weir_etcd_session_deadline(&members->session);
  weir_status_t* status = tell(members, deadline_ns);
  if (!status) status = learn(members, deadline_ns);
  if (status && !members->is_silent)
    WEIR_LOG(ERROR, "%s: tasks are where they were, as far as is known",
             weir_status_message(status));
  members->is_silent = status != NULL;
  weir_status_destroy(status);
}

// False: the end.
static bool pause_between(weir_members_t* members) {
  const int64_t until_ns = weir_clock_ns() + PAUSE_NS;
  weir_mutex_lock(&members->mu);
  while (!members->is_stopping && weir_cond_wait_until(&members->cond, &members->mu, until_ns)) {
  }
  const bool goes_on = !members->is_stopping;
  weir_mutex_unlock(&members->mu);
  return goes_on;
}

static void* run(void* arg) {
  weir_members_t* members = arg;
  do look(members);
  while (pause_between(members));
  weir_status_destroy(
      weir_etcd_session_end(&members->session, weir_etcd_session_deadline(&members->session)));
  return NULL;
}

weir_status_t* weir_members_start(weir_members_t* members, const char* address) {
  char* copy = weir_strdup(address);
  if (!copy) return weir_out_of_memory();
  weir_mutex_lock(&members->mu);
  members->own_address = copy;
  weir_mutex_unlock(&members->mu);
  const int error = pthread_create(&members->thread, NULL, run, members);
  if (error) return WEIR_STATUS(RESOURCE_EXHAUSTED, "cannot start a thread: %s", strerror(error));
  members->is_started = true;
  return NULL;
}

void weir_members_stop(weir_members_t* members) {
  if (!members || !members->is_started) return;
  weir_mutex_lock(&members->mu);
  members->is_stopping = true;
  weir_cond_broadcast(&members->cond);
  weir_mutex_unlock(&members->mu);
  pthread_join(members->thread, NULL);
  members->is_started = false;
}
