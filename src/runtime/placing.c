// placing.c — Placement of a program's graphs. State must be where all signatures look for it: what
// the policy decides, it decides for the whole graph, or once and for all.
#include "runtime/placing.h"

#include "graph/analysis.h"
#include "graph/flatten.h"
#include "pass/costs.h"
#include "runtime/homes.h"
#include "runtime/rates.h"
#include "runtime/rates_file.h"

struct weir_placing_t {
  weir_node_times_t* times;  // NULL: none were given
  weir_mutex_t mu;           // guards all below
  weir_rates_t* rates;       // by device, given or measured; NULL: neither yet
  weir_map_t homes;          // name of a node with state → the device it was given, for good
  int version;               // of the graph whose longest step was looked at
};

static weir_status_t* load(const weir_program_t* program, const char* rates,
                           weir_placing_t* placing) {
  const char* trace = program->place.trace;
  if (trace) WEIR_TRY(weir_node_times_load(trace, &placing->times));
  if (!rates) return NULL;
  size_t count = (size_t)program->runtime->device_count;
  placing->rates = weir_alloc_array(count, sizeof(*placing->rates));
  if (!placing->rates) return weir_out_of_memory();
  return weir_rates_load(rates, program->runtime, placing->rates);
}

weir_status_t* weir_placing_create(const weir_program_t* program, const char* rates,
                                   weir_placing_t** out_placing) {
  weir_placing_t* placing = weir_calloc(1, sizeof(*placing));
  if (!placing) return weir_out_of_memory();
  weir_mutex_init(&placing->mu);
  placing->homes.owns_keys = true;
  placing->version = -1;
  weir_status_t* status = load(program, rates, placing);
  if (status) weir_placing_destroy(placing);
  else *out_placing = placing;
  return status;
}

void weir_placing_destroy(weir_placing_t* placing) {
  if (!placing) return;
  weir_node_times_destroy(placing->times);
  weir_map_free(&placing->homes);
  weir_free(placing->rates);
  weir_mutex_destroy(&placing->mu);
  weir_free(placing);
}

const weir_node_times_t* weir_program_times(const weir_program_t* program) {
  return program->placing->times;
}

// ---- devices ----

static weir_status_t* list_devices(const weir_runtime_t* runtime, weir_arena_t* arena,
                                   weir_placement_t** out_devices) {
  weir_placement_t* devices =
      weir_arena_array(arena, (size_t)runtime->device_count, sizeof(*devices));
  if (!devices) return weir_out_of_memory();
  for (int i = 0; i < runtime->device_count; ++i) {
    devices[i] = weir_placement_of(runtime->devices[i]);
  }
  *out_devices = devices;
  return NULL;
}

static weir_status_t* list_measured(const weir_program_t* program, weir_arena_t* arena,
                                    weir_placement_t** out_devices)
    WEIR_REQUIRES(program->placing->mu) {
  weir_placing_t* placing = program->placing;
  int count = program->runtime->device_count;
  WEIR_TRY(list_devices(program->runtime, arena, out_devices));
  if (!placing->rates) {
    placing->rates = weir_alloc_array((size_t)count, sizeof(*placing->rates));
    if (!placing->rates) return weir_out_of_memory();
    weir_status_t* status =
        weir_rates_measure(program->runtime, program->graph->registry, placing->rates);
    if (status) {
      weir_free(placing->rates);
      placing->rates = NULL;
      return status;
    }
  }
  for (int i = 0; i < count; ++i) (*out_devices)[i].rates = placing->rates[i];
  return NULL;
}

weir_status_t* weir_program_devices(weir_program_t* program, weir_arena_t* arena,
                                    weir_placement_t** out_devices) {
  weir_mutex_lock(&program->placing->mu);
  weir_status_t* status = list_measured(program, arena, out_devices);
  weir_mutex_unlock(&program->placing->mu);
  return status;
}

weir_status_t* weir_program_print_rates(weir_program_t* program, weir_strbuf_t* out) {
  weir_arena_t arena = {0};
  weir_placement_t* unused = NULL;
  weir_mutex_lock(&program->placing->mu);
  weir_status_t* status = list_measured(program, &arena, &unused);
  if (!status) weir_rates_print(program->runtime, program->placing->rates, out);
  weir_mutex_unlock(&program->placing->mu);
  weir_arena_free(&arena);
  return status ? status : weir_strbuf_finish(out);
}

// What placement by cost is told of a graph.
typedef struct known_t {
  bool* is_run;  // by node id
  int* home_of;  // by node id; NULL: nobody shares state
} known_t;

static weir_status_t* place_with(const weir_program_t* program, weir_graph_t* graph,
                                 const weir_stage_t* stage, weir_place_policy_t policy,
                                 const known_t* known, weir_arena_t* arena) {
  weir_place_params_t params = {.graph = graph,
                                .devices = stage->devices,
                                .device_count = stage->device_count,
                                .allow_soft_placement = stage->allow_soft_placement,
                                .policy = policy,
                                .is_alone = stage->is_alone,
                                .times = program->placing->times,
                                .is_run = known ? known->is_run : NULL,
                                .home_of = known ? known->home_of : NULL};
  int* unused = NULL;
  return weir_place(&params, arena, &unused);
}

// ---- by a device's name, or at random ----

static weir_status_t* set_device(weir_node_t* node, const char* device) {
  node->def.device = weir_arena_strndup(&node->graph->arena, device, strlen(device));
  return node->def.device ? NULL : weir_out_of_memory();
}

// |version|, unless NULL, is that of the copy made last: there is no copy where it is still the
// same.
static weir_status_t* copy_whole(const weir_program_t* program, int* version, weir_arena_t* arena,
                                 weir_graph_t** out_whole) {
  weir_status_t* status = NULL;
  weir_mutex_lock(&program->graph->mu);
  if (!version || *version != program->graph->version)
    status = weir_graph_copy(program->graph, NULL, arena, out_whole, NULL);
  if (version) *version = program->graph->version;
  weir_mutex_unlock(&program->graph->mu);
  return status;
}

// As steps have it: a call would hold its variables where it is itself. A function that is not
// there is no concern of a step that does not call it. The first |out_count| nodes are the graph's
// own.
static weir_status_t* copy_flat(const weir_program_t* program, weir_arena_t* arena,
                                weir_graph_t** out_whole, size_t* out_count) {
  WEIR_TRY(copy_whole(program, NULL, arena, out_whole));
  *out_count = (*out_whole)->node_count;
  weir_status_t* status = weir_flatten(*out_whole, WEIR_FLATTEN_ALL);
  if (weir_status_code(status) != WEIR_NOT_FOUND) return status;
  weir_status_destroy(status);
  weir_graph_unref(*out_whole);
  *out_whole = NULL;
  return copy_whole(program, NULL, arena, out_whole);
}

static weir_status_t* place_as_whole(const weir_program_t* program, weir_graph_t* graph,
                                     const weir_stage_t* stage, weir_arena_t* arena) {
  weir_graph_t* whole = NULL;
  size_t count = 0;
  weir_status_t* status = copy_flat(program, arena, &whole, &count);
  if (!status) status = place_with(program, whole, stage, program->place, NULL, arena);
  for (size_t i = 0; i < graph->node_count && !status; ++i) {
    weir_node_t* node = graph->nodes[i];
    const weir_node_t* same = weir_graph_find(whole, weir_view_of(node->def.name));
    // Of what is within functions state alone has a name that means the same everywhere.
    bool is_same = same && ((size_t)same->id < count || weir_node_makes_state(same));
    if (!*node->def.device && is_same) status = set_device(node, same->def.device);
  }
  weir_graph_unref(whole);
  return status;
}

// ---- homes ----

static bool has_state(const weir_node_t* node) {
  if (weir_node_has(node, WEIR_OP_STATEFUL) || weir_node_role(node) == WEIR_ROLE_VARIABLE)
    return true;
  for (int i = 0; i < node->def.output_count; ++i) {
    weir_dtype_t type = node->def.output_types[i];
    if (weir_dtype_is_ref(type) || type == WEIR_DTYPE_RESOURCE) return true;
  }
  return false;
}

// What a node asks for may not be all that decides where it goes: those that use its state have a
// say, and not all of them are in every signature. The first one to place it decides for all. By
// cost, so it is for all that has state, which nothing else would hold in its place.
static bool has_home(const weir_program_t* program, const weir_node_t* node) {
  return program->place.kind == WEIR_PLACE_COST ? has_state(node) : weir_node_makes_state(node);
}

// Sends what has a home there.
static weir_status_t* send_home(const weir_program_t* program, weir_graph_t* graph)
    WEIR_REQUIRES(program->placing->mu) {
  for (size_t i = 0; i < graph->node_count; ++i) {
    weir_node_t* node = graph->nodes[i];
    const char* home = weir_map_find(&program->placing->homes, weir_view_of(node->def.name));
    if (home && has_home(program, node)) WEIR_TRY(set_device(node, home));
  }
  return NULL;
}

static weir_status_t* remember_homes(const weir_program_t* program, const weir_graph_t* graph,
                                     const weir_stage_t* stage)
    WEIR_REQUIRES(program->placing->mu) {
  for (size_t i = 0; i < graph->node_count; ++i) {
    const weir_node_t* node = graph->nodes[i];
    if (!has_home(program, node)) continue;
    int at = 0;
    while (at + 1 < stage->device_count && strcmp(stage->devices[at].device, node->def.device))
      ++at;
    WEIR_TRY(weir_map_put(&program->placing->homes, weir_view_of(node->def.name),
                          (void*)(uintptr_t)stage->devices[at].device));
    if (program->homes && weir_node_makes_state(node))
      WEIR_TRY(weir_homes_add(program->homes, node, stage->devices[at].device));
  }
  return NULL;
}

// Where state is that other programs have put somewhere.
static weir_status_t* find_shared(const weir_program_t* program, const weir_graph_t* graph,
                                  const weir_stage_t* stage, weir_arena_t* arena,
                                  int** out_home_of) {
  int* home_of = weir_arena_array(arena, graph->node_count + 1, sizeof(*home_of));
  if (!home_of) return weir_out_of_memory();
  for (size_t i = 0; i < graph->node_count; ++i) {
    const weir_node_t* node = graph->nodes[i];
    home_of[i] = -1;
    if (weir_node_makes_state(node))
      WEIR_TRY(
          weir_homes_find(program->homes, node, stage->devices, stage->device_count, &home_of[i]));
  }
  *out_home_of = home_of;
  return NULL;
}

weir_status_t* weir_source_find_run(const weir_source_t* source, weir_arena_t* arena,
                                    bool** out_is_run) {
  weir_reach_t reach;
  WEIR_TRY(weir_reach_init(&reach, source->graph, arena));
  weir_reach_add_results(&reach, source->graph, source->targets, source->target_count);
  weir_reach_sources(&reach);
  *out_is_run = reach.is_reached;
  return NULL;
}

static weir_status_t* place_at_home(const weir_program_t* program, const weir_source_t* source,
                                    const weir_stage_t* stage, weir_arena_t* arena)
    WEIR_REQUIRES(program->placing->mu) {
  known_t known = {.is_run = NULL};
  if (program->place.kind == WEIR_PLACE_COST) {
    WEIR_TRY(weir_source_find_run(source, arena, &known.is_run));
    if (program->homes) WEIR_TRY(find_shared(program, source->graph, stage, arena, &known.home_of));
  }
  WEIR_TRY(send_home(program, source->graph));
  WEIR_TRY(place_with(program, source->graph, stage, program->place, &known, arena));
  return remember_homes(program, source->graph, stage);
}

// ---- by cost ----

// The node at the end of the longest way through the graph: of all steps one may run, most likely
// the one that is run often.
static weir_status_t* find_last(const weir_program_t* program, weir_graph_t* graph,
                                const weir_stage_t* stage, weir_arena_t* arena,
                                weir_node_t** out_last) {
  weir_costs_t costs;
  weir_costs_params_t params = {.graph = graph,
                                .devices = stage->devices,
                                .device_count = stage->device_count,
                                .times = program->placing->times};
  WEIR_TRY(weir_costs_init(&costs, &params, arena));
  double* end = weir_arena_array(arena, graph->node_count + 1, sizeof(*end));
  if (!end) return weir_out_of_memory();
  *out_last = NULL;
  for (size_t i = 0; i < graph->node_count; ++i) {
    weir_node_t* node = costs.order[i];
    double start = 0;
    for (int k = 0; k < node->def.input_count; ++k)
      if (!weir_node_is_back_edge(node, node->inputs[k].node))
        start = WEIR_MAX(start, end[node->inputs[k].node->id]);
    for (int k = 0; k < node->control_count; ++k)
      start = WEIR_MAX(start, end[node->control_inputs[k]->id]);
    end[node->id] = start + weir_costs_node_ns(&costs, node, 0);
    if (!*out_last || end[node->id] >= end[(*out_last)->id]) *out_last = node;
  }
  return NULL;
}

// Finds homes for the state of the longest step, so that what is run before it (initialisation,
// restoring) does not decide for it.
static weir_status_t* place_longest(weir_program_t* program, weir_graph_t* whole,
                                    const weir_stage_t* stage, weir_arena_t* arena)
    WEIR_REQUIRES(program->placing->mu) {
  weir_graph_t* graph = NULL;
  weir_node_t* last = NULL;
  WEIR_TRY(find_last(program, whole, stage, arena, &last));
  if (!last) return NULL;
  WEIR_TRY(weir_graph_copy_reachable(whole, &last, 1, arena, &graph));
  weir_node_t* target = weir_graph_find(graph, weir_view_of(last->def.name));
  weir_source_t source = {.graph = graph, .targets = &target, .target_count = 1};
  weir_status_t* status = weir_flatten(graph, WEIR_FLATTEN_ALL);
  if (!status) status = weir_program_optimize(program, &source);
  if (!status) status = place_at_home(program, &source, stage, arena);
  weir_graph_unref(graph);
  return status;
}

// What is wrong with the whole graph is no concern of a step that does not run it.
static void find_homes(weir_program_t* program, const weir_stage_t* stage)
    WEIR_REQUIRES(program->placing->mu) {
  weir_arena_t arena = {0};
  weir_graph_t* whole = NULL;
  weir_status_t* status = copy_whole(program, &program->placing->version, &arena, &whole);
  if (!status && whole) status = place_longest(program, whole, stage, &arena);
  weir_status_destroy(status);
  weir_graph_unref(whole);
  weir_arena_free(&arena);
}

static weir_status_t* place_and_remember(weir_program_t* program, const weir_source_t* source,
                                         const weir_stage_t* stage, weir_arena_t* arena) {
  weir_mutex_lock(&program->placing->mu);
  if (program->place.kind == WEIR_PLACE_COST) find_homes(program, stage);
  weir_status_t* status = place_at_home(program, source, stage, arena);
  weir_mutex_unlock(&program->placing->mu);
  return status;
}

weir_status_t* weir_program_place_on(weir_program_t* program, const weir_source_t* source,
                                     const weir_stage_t* stage, weir_arena_t* arena) {
  if (!program->homes) return place_and_remember(program, source, stage, arena);
  weir_mutex_lock(&program->homes->mu);
  weir_status_t* status = place_and_remember(program, source, stage, arena);
  weir_mutex_unlock(&program->homes->mu);
  return status;
}

// ---- on the devices of this process ----

static weir_stage_t stage_of(const weir_program_t* program, const weir_placement_t* devices) {
  return (weir_stage_t){.devices = devices,
                        .device_count = program->runtime->device_count,
                        .allow_soft_placement = program->allow_soft_placement,
                        .is_alone = true};
}

static weir_status_t* place_by_cost(weir_program_t* program, const weir_source_t* source,
                                    weir_arena_t* arena) {
  weir_placement_t* devices = NULL;
  WEIR_TRY(weir_program_devices(program, arena, &devices));
  weir_stage_t stage = stage_of(program, devices);
  return weir_program_place_on(program, source, &stage, arena);
}

// Whether a device is preferred to the first: then the others only get what it has no kernels for,
// and it takes all nodes that use a variable to know where that can be.
static bool has_preferred(const weir_runtime_t* runtime) {
  for (int i = 1; i < runtime->device_count; ++i) {
    if (runtime->devices[i]->preference > runtime->devices[0]->preference) return true;
  }
  return false;
}

// The body of a function may be given state of any device: it stays with the first, as its callers
// do.
static void prefer_none(const weir_program_t* program, weir_placement_t* devices) {
  for (int i = 0; i < program->runtime->device_count; ++i)
    devices[i].preference = WEIR_MIN(devices[i].preference, devices[0].preference);
}

weir_status_t* weir_program_place(weir_program_t* program, const weir_source_t* source,
                                  weir_arena_t* arena) {
  weir_placement_t* devices = NULL;
  bool is_chosen = program->place.kind != WEIR_PLACE_FIRST || has_preferred(program->runtime);
  bool is_free = is_chosen && !source->is_function;
  if (is_free && program->place.kind == WEIR_PLACE_COST)
    return place_by_cost(program, source, arena);
  WEIR_TRY(list_devices(program->runtime, arena, &devices));
  if (source->is_function) prefer_none(program, devices);
  weir_stage_t stage = stage_of(program, devices);
  if (is_free) WEIR_TRY(place_as_whole(program, source->graph, &stage, arena));
  weir_place_policy_t policy = source->is_function ? (weir_place_policy_t){0} : program->place;
  return place_with(program, source->graph, &stage, policy, NULL, arena);
}
