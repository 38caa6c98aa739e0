// slurm.c — The cluster that Slurm started: nodes and tasks on each of them, from its variables.
//
// Ranks are taken to follow the list of nodes, all tasks of a node before those of the next, which
// is Slurm's distribution "block"; SLURM_NODEID tells when they do not.
#include "base/alloc.h"
#include "cluster/config/config.h"

// More tasks than any machine has; keeps "9(x999999999)" from taking memory.
enum { TASK_LIMIT = 1 << 17, NAME_LIMIT = 255 };

typedef struct slurm_t {
  const weir_config_options_t* options;
  weir_arena_t arena;
  weir_view_t* nodes;
  size_t node_count, node_capacity;
  int64_t* tasks;  // one a node
  size_t task_count, task_capacity;
} slurm_t;

// A variable of the step, else of the job; NULL when neither is set.
static const char* step_or_job(const slurm_t* slurm, const char* step, const char* job,
                               const char** out_name) {
  const weir_config_options_t* options = slurm->options;
  const char* value = options->getenv_fn(options->getenv_arg, step);
  *out_name = step;
  if (value && *value) return value;
  *out_name = job;
  value = options->getenv_fn(options->getenv_arg, job);
  return value && *value ? value : NULL;
}

// ---- nodes: "n[001-003,7],m5" ----

static weir_status_t* add_node(slurm_t* slurm, weir_view_t prefix, weir_view_t middle,
                               weir_view_t suffix) {
  char* name = weir_arena_printf(&slurm->arena, "%.*s%.*s%.*s", WEIR_VIEW_ARG(prefix),
                                 WEIR_VIEW_ARG(middle), WEIR_VIEW_ARG(suffix));
  if (!name || !WEIR_GROW(slurm->nodes, slurm->node_capacity, slurm->node_count + 1))
    return weir_out_of_memory();
  if (slurm->node_count >= TASK_LIMIT)
    return WEIR_STATUS(INVALID_ARGUMENT, "more than %d nodes", TASK_LIMIT);
  slurm->nodes[slurm->node_count++] = weir_view_of(name);
  return NULL;
}

static bool is_number(weir_view_t text, int64_t* out_value) {
  for (size_t i = 0; i < text.size; ++i) {
    if (text.data[i] < '0' || text.data[i] > '9') return false;
  }
  return text.size > 0 && text.size < 18 && weir_parse_int64(text, out_value);
}

static weir_status_t* expand(slurm_t* slurm, weir_view_t prefix, weir_view_t text);

// "001-003" or "7", with what follows the bracket, in which there may be more brackets.
static weir_status_t* expand_range(slurm_t* slurm, weir_view_t prefix, weir_view_t range,
                                   weir_view_t suffix) {
  weir_view_t rest = range, first_text;
  int64_t first = 0, last = 0;
  bool is_good = weir_view_next(&rest, '-', &first_text) && is_number(first_text, &first);
  bool is_single = first_text.size == range.size;
  if (is_good) is_good = is_single || is_number(rest, &last);
  if (is_single) last = first;
  if (!is_good || last < first || last - first >= TASK_LIMIT)
    return WEIR_STATUS(INVALID_ARGUMENT, "'%.*s' is no range of nodes", WEIR_VIEW_ARG(range));
  for (int64_t i = first; i <= last; ++i) {
    char* text = weir_arena_printf(&slurm->arena, "%.*s%0*lld", WEIR_VIEW_ARG(prefix),
                                   (int)first_text.size, (long long)i);
    if (!text) return weir_out_of_memory();
    WEIR_TRY(expand(slurm, weir_view_of(text), suffix));
  }
  return NULL;
}

// Expands the first bracket of |text|, which follows |prefix|; recursion takes the others.
static weir_status_t* expand(slurm_t* slurm, weir_view_t prefix, weir_view_t text) {
  // Every bracket makes the name longer, so this bounds the recursion, too.
  if (prefix.size > NAME_LIMIT)
    return WEIR_STATUS(INVALID_ARGUMENT, "a name of more than %d bytes", NAME_LIMIT);
  const char* open = memchr(text.data ? text.data : "", '[', text.size);
  if (!open) {
    if (memchr(text.data ? text.data : "", ']', text.size))
      return WEIR_STATUS(INVALID_ARGUMENT, "']' without '[' in '%.*s'", WEIR_VIEW_ARG(text));
    return add_node(slurm, prefix, text, weir_view("", 0));
  }
  size_t before = (size_t)(open - text.data), after = text.size - before - 1;
  const char* close = memchr(open + 1, ']', after);
  if (!close || memchr(open + 1, '[', (size_t)(close - open - 1)))
    return WEIR_STATUS(INVALID_ARGUMENT, "'[' without ']' in '%.*s'", WEIR_VIEW_ARG(text));
  weir_view_t ranges = weir_view(open + 1, (size_t)(close - open - 1)), range;
  weir_view_t suffix = weir_view(close + 1, after - ranges.size - 1);
  char* head =
      weir_arena_printf(&slurm->arena, "%.*s%.*s", WEIR_VIEW_ARG(prefix), (int)before, text.data);
  if (!head) return weir_out_of_memory();
  if (ranges.size == 0)
    return WEIR_STATUS(INVALID_ARGUMENT, "an empty range in '%.*s'", WEIR_VIEW_ARG(text));
  while (weir_view_next(&ranges, ',', &range))
    WEIR_TRY(expand_range(slurm, weir_view_of(head), range, suffix));
  return NULL;
}

// Splits at commas outside of brackets.
static weir_status_t* read_nodes(slurm_t* slurm, const char* text) {
  int depth = 0;
  for (const char *at = text, *begin = text;; ++at) {
    if (*at == '[') ++depth;
    if (*at == ']') --depth;
    if (*at && (*at != ',' || depth > 0)) continue;
    if (at == begin) return WEIR_STATUS(INVALID_ARGUMENT, "an empty name of a node");
    WEIR_TRY(expand(slurm, weir_view("", 0), weir_view(begin, (size_t)(at - begin))));
    if (!*at) return NULL;
    begin = at + 1;
  }
}

// ---- tasks on each node: "2(x3),1" ----

static weir_status_t* read_counts(slurm_t* slurm, const char* text) {
  weir_view_t rest = weir_view_of(text), part;
  while (weir_view_next(&rest, ',', &part)) {
    weir_view_t times = part, count_text;
    int64_t count = 0, repeat = 1;
    bool is_good = weir_view_next(&times, '(', &count_text) && is_number(count_text, &count);
    if (is_good && count_text.size < part.size) {
      is_good = times.size > 2 && times.data[0] == 'x' && times.data[times.size - 1] == ')' &&
                is_number(weir_view(times.data + 1, times.size - 2), &repeat);
    }
    if (!is_good || count > TASK_LIMIT || repeat > TASK_LIMIT)
      return WEIR_STATUS(INVALID_ARGUMENT, "'%.*s' is not 'tasks' or 'tasks(xnodes)'",
                         WEIR_VIEW_ARG(part));
    for (int64_t i = 0; i < repeat; ++i) {
      if (!WEIR_GROW(slurm->tasks, slurm->task_capacity, slurm->task_count + 1))
        return weir_out_of_memory();
      slurm->tasks[slurm->task_count++] = count;
      if (slurm->task_count > TASK_LIMIT)
        return WEIR_STATUS(INVALID_ARGUMENT, "more than %d nodes", TASK_LIMIT);
    }
  }
  return NULL;
}

// ---- jobs: "ps:1,worker:3" ----

// The job and the number in it of the |rank|-th task. False when |jobs| has fewer.
static bool find_job(const char* jobs, int64_t rank, weir_view_t* out_job, int64_t* out_index) {
  weir_view_t rest = weir_view_of(jobs), part;
  while (weir_view_next(&rest, ',', &part)) {
    weir_view_t count_text = part;
    int64_t count = 0;
    weir_view_next(&count_text, ':', out_job);
    if (!is_number(count_text, &count)) return false;
    *out_index = rank;
    if (rank < count) return true;
    rank -= count;
  }
  return false;
}

// How many tasks |jobs| asks for in all.
static weir_status_t* count_jobs(const char* jobs, int64_t* out_total) {
  weir_view_t rest = weir_view_of(jobs), part;
  *out_total = 0;
  while (weir_view_next(&rest, ',', &part)) {
    weir_view_t count_text = part, job;
    int64_t count = 0;
    bool is_good = weir_view_next(&count_text, ':', &job) && job.size > 0 &&
                   is_number(count_text, &count) && count > 0 && count <= TASK_LIMIT;
    if (!is_good)
      return WEIR_STATUS(INVALID_ARGUMENT, "'%.*s' of the jobs '%s' is not 'job:tasks'",
                         WEIR_VIEW_ARG(part), jobs);
    *out_total += count;
  }
  return NULL;
}

// ---- the cluster ----

static weir_status_t* add_task(slurm_t* slurm, weir_cluster_config_t* config, int64_t rank,
                               size_t node, int64_t local) {
  weir_view_t job = weir_view_of("worker");
  int64_t index = rank;
  if (slurm->options->jobs) find_job(slurm->options->jobs, rank, &job, &index);
  int base = slurm->options->port ? slurm->options->port : WEIR_SLURM_PORT;
  weir_strbuf_t address = {0};
  weir_strbuf_printf(&address, "%.*s:%lld", WEIR_VIEW_ARG(slurm->nodes[node]),
                     (long long)(base + local));
  weir_status_t* status = weir_strbuf_finish(&address);
  if (!status)
    status = weir_cluster_config_add(config, job, (int)index, weir_strbuf_view(&address));
  weir_strbuf_free(&address);
  return status;
}

// |own_rank|'s node must be the one that Slurm says it runs on.
static weir_status_t* check_node(const slurm_t* slurm, int64_t own_rank, size_t node) {
  const char* text = slurm->options->getenv_fn(slurm->options->getenv_arg, "SLURM_NODEID");
  int64_t own = 0;
  if (!text || !is_number(weir_view_of(text), &own) || own == (int64_t)node) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "task %lld runs on node %lld of the list, not on node %zu: start the step "
                     "with srun --distribution=block",
                     (long long)own_rank, (long long)own, node);
}

static weir_status_t* add_tasks(slurm_t* slurm, weir_cluster_config_t* config, int64_t own_rank) {
  int64_t rank = 0, total = 0, asked = 0;
  for (size_t i = 0; i < slurm->task_count; ++i) total += slurm->tasks[i];
  if (total > TASK_LIMIT) return WEIR_STATUS(INVALID_ARGUMENT, "more than %d tasks", TASK_LIMIT);
  if (slurm->options->jobs) {
    WEIR_TRY(count_jobs(slurm->options->jobs, &asked));
    if (asked != total)
      return WEIR_STATUS(INVALID_ARGUMENT, "the jobs '%s' have %lld tasks, but Slurm started %lld",
                         slurm->options->jobs, (long long)asked, (long long)total);
  }
  if (own_rank >= total)
    return WEIR_STATUS(INVALID_ARGUMENT, "SLURM_PROCID is %lld, but there are %lld tasks",
                       (long long)own_rank, (long long)total);
  for (size_t node = 0; node < slurm->node_count; ++node) {
    for (int64_t local = 0; local < slurm->tasks[node]; ++local, ++rank) {
      WEIR_TRY(add_task(slurm, config, rank, node, local));
      if (rank == own_rank) WEIR_TRY(check_node(slurm, own_rank, node));
    }
  }
  weir_view_t job = weir_view_of("worker");
  int64_t index = own_rank;
  if (slurm->options->jobs) find_job(slurm->options->jobs, own_rank, &job, &index);
  return weir_cluster_config_set_task(config, job, index);
}

static weir_status_t* read_slurm(slurm_t* slurm, weir_cluster_config_t* config,
                                 const char* rank_text) {
  const char *nodes_name = NULL, *counts_name = NULL;
  const char* nodes = step_or_job(slurm, "SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", &nodes_name);
  const char* counts =
      step_or_job(slurm, "SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE", &counts_name);
  int64_t rank = 0;
  if (!nodes) return NULL;
  if (!is_number(weir_view_of(rank_text), &rank))
    return WEIR_STATUS(INVALID_ARGUMENT, "SLURM_PROCID '%s' is no number", rank_text);
  weir_status_t* status = read_nodes(slurm, nodes);
  if (status) return weir_status_prefix(status, "%s '%s': ", nodes_name, nodes);
  // Without it: one task a node.
  if (!counts) counts = weir_arena_printf(&slurm->arena, "1(x%zu)", slurm->node_count);
  if (!counts) return weir_out_of_memory();
  status = read_counts(slurm, counts);
  if (status) return weir_status_prefix(status, "%s '%s': ", counts_name, counts);
  if (slurm->task_count != slurm->node_count)
    return WEIR_STATUS(INVALID_ARGUMENT, "%s '%s' is of %zu nodes, but %s '%s' of %zu", nodes_name,
                       nodes, slurm->node_count, counts_name, counts, slurm->task_count);
  return add_tasks(slurm, config, rank);
}

weir_status_t* weir_cluster_config_from_slurm(weir_cluster_config_t* config,
                                              const weir_config_options_t* options) {
  slurm_t slurm = {.options = options};
  const char* rank = options->getenv_fn(options->getenv_arg, "SLURM_PROCID");
  if (!rank || !*rank) return NULL;
  weir_status_t* status = read_slurm(&slurm, config, rank);
  weir_free(slurm.nodes);
  weir_free(slurm.tasks);
  weir_arena_free(&slurm.arena);
  return status;
}
