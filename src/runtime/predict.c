// predict.c — The report on a simulated step, as text or JSON.
#include "runtime/predict.h"

#include <stdlib.h>

#include "base/json.h"
#include "base/string.h"
#include "graph/flatten.h"
#include "pass/simulate.h"
#include "runtime/placing.h"
#include "runtime/rates_file.h"

typedef struct report_t {
  weir_simulation_t sim;
  const weir_costs_t* costs;
  const bool* is_run;  // by node id
  int* path;           // items of the critical path, the last one first
  int path_count;
  double* busy_ns;  // by device
  int* nodes;       // by device
} report_t;

// ---- what there is to say ----

static double item_ns(const report_t* r, int item) { return r->sim.end[item] - r->sim.start[item]; }

static weir_status_t* collect(report_t* r, weir_arena_t* arena) {
  int count = (int)r->costs->graph->node_count;
  size_t devices = (size_t)r->costs->device_count;
  r->path = weir_arena_array(arena, (size_t)r->sim.item_count + 1, sizeof(int));
  r->busy_ns = weir_arena_array(arena, devices, sizeof(double));
  r->nodes = weir_arena_array(arena, devices, sizeof(int));
  if (!r->path || !r->busy_ns || !r->nodes) return weir_out_of_memory();
  for (int item = r->sim.last_item; item >= 0; item = r->sim.cause[item]) {
    if (item_ns(r, item) > 0) r->path[r->path_count++] = item;
  }
  for (int i = 0; i < count; ++i) {
    if (!r->is_run[i]) continue;
    ++r->nodes[r->sim.device_of[i]];
    r->busy_ns[r->sim.device_of[i]] += item_ns(r, i);
  }
  return NULL;
}

// Tasks have devices of the same short name.
static const char* label_of(const report_t* r, int device) {
  const char* name = r->costs->devices[device].device;
  bool is_cluster = r->costs->devices[r->costs->device_count - 1].task > 0;
  return is_cluster ? name : weir_device_short_name(name);
}

static const char* device_name(const report_t* r, int item) {
  return label_of(r, weir_simulation_device(&r->sim, item));
}

// "product (MatMul)", "product, copied" or "product, awaited", by another task.
static void put_item(const report_t* r, int item, weir_strbuf_t* out) {
  weir_edge_t edge = weir_simulation_edge(&r->sim, item);
  const weir_node_t* node = edge.node ? edge.node : r->costs->graph->nodes[item];
  if (!edge.node) weir_strbuf_printf(out, "%s (%s)", node->def.name, node->def.op_name);
  else if (weir_simulation_is_sign(edge)) weir_strbuf_printf(out, "%s, awaited", node->def.name);
  else if (edge.index) weir_strbuf_printf(out, "%s:%d, copied", node->def.name, edge.index);
  else weir_strbuf_printf(out, "%s, copied", node->def.name);
}

// ---- as text ----

typedef struct longest_t {
  double ns;
  int item;
} longest_t;

static int by_length(const void* a, const void* b) {
  const longest_t *x = a, *y = b;
  if (x->ns != y->ns) return x->ns < y->ns ? 1 : -1;
  return x->item - y->item;
}

static weir_status_t* put_path_text(const report_t* r, weir_arena_t* arena, weir_strbuf_t* out) {
  enum { SHOWN = 10 };
  longest_t* items = weir_arena_array(arena, (size_t)r->path_count + 1, sizeof(*items));
  if (!items) return weir_out_of_memory();
  for (int i = 0; i < r->path_count; ++i)
    items[i] = (longest_t){.ns = item_ns(r, r->path[i]), .item = r->path[i]};
  qsort(items, (size_t)r->path_count, sizeof(*items), by_length);
  weir_strbuf_printf(out, "critical path: %d nodes and copies, the longest of them\n",
                     r->path_count);
  for (int i = 0; i < WEIR_MIN(r->path_count, SHOWN); ++i) {
    weir_strbuf_printf(out, "  %10.4f ms  %-9s ", items[i].ns / 1e6, device_name(r, items[i].item));
    put_item(r, items[i].item, out);
    weir_strbuf_putc(out, '\n');
  }
  return NULL;
}

static weir_status_t* put_text(const report_t* r, bool with_nodes, weir_arena_t* arena,
                               weir_strbuf_t* out) {
  for (int i = 0; i < r->costs->device_count; ++i) {
    double share = r->sim.total_ns > 0 ? 100 * r->busy_ns[i] / r->sim.total_ns : 0;
    weir_strbuf_printf(out, "%-9s %6d nodes, busy %10.4f ms, %.0f %% of the step\n", label_of(r, i),
                       r->nodes[i], r->busy_ns[i] / 1e6, share);
  }
  weir_strbuf_printf(out, "predicted step: %.4f ms\nbytes crossed: %.0f\n", r->sim.total_ns / 1e6,
                     r->sim.crossed_bytes);
  WEIR_TRY(put_path_text(r, arena, out));
  for (size_t i = 0; with_nodes && i < r->costs->graph->node_count; ++i) {
    int id = r->costs->order[i]->id;
    if (!r->is_run[id]) continue;
    weir_strbuf_printf(out, "%-9s %10.4f ms  ", device_name(r, id), item_ns(r, id) / 1e6);
    put_item(r, id, out);
    weir_strbuf_putc(out, '\n');
  }
  return NULL;
}

// ---- as JSON ----

static void put_item_json(const report_t* r, int item, bool is_first, weir_strbuf_t* out) {
  weir_edge_t edge = weir_simulation_edge(&r->sim, item);
  const weir_node_t* node = edge.node ? edge.node : r->costs->graph->nodes[item];
  int device = weir_simulation_device(&r->sim, item);
  weir_strbuf_puts(out, is_first ? "{\"name\": " : ", {\"name\": ");
  weir_json_put_string(node->def.name, out);
  weir_strbuf_puts(out, ", \"op\": ");
  weir_json_put_string(edge.node ? "copy" : node->def.op_name, out);
  weir_strbuf_puts(out, ", \"device\": ");
  weir_json_put_string(r->costs->devices[device].device, out);
  weir_strbuf_printf(out, ", \"start_ns\": %.0f, \"ns\": %.0f}", r->sim.start[item],
                     item_ns(r, item));
}

static void put_json(const report_t* r, bool with_nodes, weir_strbuf_t* out) {
  weir_strbuf_printf(out, "{\"step_ns\": %.0f, \"crossed_bytes\": %.0f, \"devices\": [",
                     r->sim.total_ns, r->sim.crossed_bytes);
  for (int i = 0; i < r->costs->device_count; ++i) {
    weir_strbuf_puts(out, i ? ", {\"name\": " : "{\"name\": ");
    weir_json_put_string(r->costs->devices[i].device, out);
    weir_strbuf_printf(out, ", \"nodes\": %d, \"busy_ns\": %.0f}", r->nodes[i], r->busy_ns[i]);
  }
  weir_strbuf_puts(out, "], \"critical_path\": [");
  for (int i = r->path_count; i-- > 0;) put_item_json(r, r->path[i], i == r->path_count - 1, out);
  weir_strbuf_puts(out, with_nodes ? "], \"nodes\": [" : "]");
  bool is_first = true;
  for (size_t i = 0; with_nodes && i < r->costs->graph->node_count; ++i) {
    int id = r->costs->order[i]->id;
    if (!r->is_run[id]) continue;
    put_item_json(r, id, is_first, out);
    is_first = false;
  }
  weir_strbuf_puts(out, with_nodes ? "]}\n" : "}\n");
}

// ---- the step ----

// What the step runs on.
typedef struct stage_t {
  weir_placement_t* devices;
  int device_count;
  int* device_of;  // by node id
} stage_t;

static weir_status_t* place_here(weir_program_t* program, const weir_predict_params_t* params,
                                 weir_arena_t* arena, stage_t* out) {
  const weir_source_t* source = &params->source;
  WEIR_TRY(weir_program_prepare(program, source, arena, &out->device_of));
  WEIR_TRY(weir_program_devices(program, arena, &out->devices));
  out->device_count = program->runtime->device_count;
  if (out->device_of) return NULL;
  out->device_of = weir_arena_array(arena, source->graph->node_count + 1, sizeof(int));
  return out->device_of ? NULL : weir_out_of_memory();
}

static weir_status_t* place_in_cluster(weir_program_t* program, const weir_predict_params_t* params,
                                       const weir_node_times_t* times, weir_arena_t* arena,
                                       stage_t* out) {
  const weir_source_t* source = &params->source;
  bool* is_run = NULL;
  WEIR_TRY(weir_cluster_rates_load(params->cluster, arena, &out->devices, &out->device_count));
  WEIR_TRY(weir_flatten(source->graph, WEIR_FLATTEN_AND_CALLS));
  WEIR_TRY(weir_program_optimize(program, source));
  WEIR_TRY(weir_source_find_run(source, arena, &is_run));
  weir_place_params_t place = {.graph = source->graph,
                               .devices = out->devices,
                               .device_count = out->device_count,
                               .allow_soft_placement = program->allow_soft_placement,
                               .policy = program->place,
                               .times = times,
                               .is_run = is_run};
  return weir_place(&place, arena, &out->device_of);
}

static weir_status_t* play(weir_program_t* program, const weir_predict_params_t* params,
                           const weir_node_times_t* times, weir_arena_t* arena,
                           weir_strbuf_t* out) {
  const weir_source_t* source = &params->source;
  stage_t stage = {.devices = NULL};
  bool* is_run = NULL;
  weir_costs_t costs;
  if (params->cluster) WEIR_TRY(place_in_cluster(program, params, times, arena, &stage));
  else WEIR_TRY(place_here(program, params, arena, &stage));
  WEIR_TRY(weir_source_find_run(source, arena, &is_run));
  weir_costs_params_t cost_params = {.graph = source->graph,
                                     .devices = stage.devices,
                                     .device_count = stage.device_count,
                                     .times = times,
                                     .is_run = is_run};
  WEIR_TRY(weir_costs_init(&costs, &cost_params, arena));
  report_t report = {.costs = &costs, .is_run = is_run};
  WEIR_TRY(weir_simulation_init(&report.sim, &costs, arena));
  weir_simulate(&report.sim, stage.device_of);
  WEIR_TRY(collect(&report, arena));
  if (params->json) put_json(&report, params->with_nodes, out);
  else WEIR_TRY(put_text(&report, params->with_nodes, arena, out));
  return weir_strbuf_finish(out);
}

weir_status_t* weir_program_predict(weir_program_t* program,
                                    const weir_predict_params_t* take_params, weir_strbuf_t* out) {
  weir_arena_t arena = {0};
  weir_node_times_t* own = NULL;
  weir_status_t* status =
      take_params->trace ? weir_node_times_load(take_params->trace, &own) : NULL;
  const weir_node_times_t* times = own ? own : weir_program_times(program);
  if (!status) status = play(program, take_params, times, &arena, out);
  weir_graph_unref(take_params->source.graph);
  weir_node_times_destroy(own);
  weir_arena_free(&arena);
  return status;
}
