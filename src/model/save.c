// save.c — Writes a part of a graph and the variables of a session as a SavedModel.
#include "api/saver.h"
#include "api/tables.h"
#include "file/bundle.h"
#include "file/temporary.h"
#include "model/model.h"
#include "model/values.h"
#include "model/write_meta.h"
#include "weir/argument.h"

// A save under way.
typedef struct saving_t {
  weir_session_t* session;
  weir_graph_t* graph;  // of the session
  const weir_model_save_options_t* options;
  weir_arena_t arena;  // what follows, but for values
  bool* keep;          // by node
  weir_node_t** variables;
  int variable_count;
  weir_tensor_t** values;  // by variable
  weir_node_t** tables;    // that can change
  int table_count;
  weir_tensor_t** entries;      // by table: keys, values
  weir_variable_info_t* infos;  // of those that the scope made
  int info_count;
  weir_graph_t* copy;  // with the nodes of a saver
  weir_node_t** map;   // node of the graph → of the copy
  weir_saver_t* saver;
  const char** asset_files;
  weir_strbuf_t folder;  // of a temporary name, until all is there
} saving_t;

// ---- what is asked for ----

static weir_status_t* check_ports(const saving_t* saving, const char* signature, const char* what,
                                  const weir_named_edge_t* ports, int count) {
  if (count > 0 && !ports)
    return WEIR_STATUS(INVALID_ARGUMENT, "signature '%s': its %ss are NULL", signature, what);
  for (int i = 0; i < count; ++i) {
    if (!ports[i].name || !*ports[i].name)
      return WEIR_STATUS(INVALID_ARGUMENT, "signature '%s': %s %d has no name", signature, what, i);
    for (int k = 0; k < i; ++k) {
      if (strcmp(ports[i].name, ports[k].name) == 0)
        return WEIR_STATUS(INVALID_ARGUMENT, "signature '%s': two %ss are called '%s'", signature,
                           what, ports[i].name);
    }
    WEIR_TRY(weir_graph_check_edge(saving->graph, ports[i].edge, what, i));
  }
  return NULL;
}

static const char* signature_name(const weir_signature_spec_t* signature) {
  return signature->name ? signature->name : "serving_default";
}

static weir_status_t* check_signatures(const saving_t* saving) {
  const weir_model_save_options_t* options = saving->options;
  for (int i = 0; i < options->signature_count; ++i) {
    const weir_signature_spec_t* signature = &options->signatures[i];
    const char* name = signature_name(signature);
    for (int k = 0; k < i; ++k) {
      if (strcmp(name, signature_name(&options->signatures[k])) == 0)
        return WEIR_STATUS(INVALID_ARGUMENT, "two signatures are called '%s'", name);
    }
    if (signature->output_count <= 0)
      return WEIR_STATUS(INVALID_ARGUMENT, "signature '%s' has no outputs", name);
    WEIR_TRY(check_ports(saving, name, "input", signature->inputs, signature->input_count));
    WEIR_TRY(check_ports(saving, name, "output", signature->outputs, signature->output_count));
  }
  return NULL;
}

static weir_status_t* check_options(const saving_t* saving) {
  const weir_model_save_options_t* options = saving->options;
  if (options->signature_count <= 0 || !options->signatures)
    return WEIR_STATUS(INVALID_ARGUMENT, "weir_model_save: there is no signature");
  weir_edge_t init = {.node = options->initializer, .index = 0};
  if (init.node && init.node->graph != saving->graph)
    return WEIR_STATUS(INVALID_ARGUMENT, "initializer '%s' is of another graph",
                       init.node->def.name);
  for (int i = 0; i < options->asset_count; ++i) {
    WEIR_TRY(weir_graph_check_edge(saving->graph, options->assets[i].tensor, "asset", i));
    if (!options->assets[i].path) return WEIR_STATUS(INVALID_ARGUMENT, "asset %d has no path", i);
  }
  return check_signatures(saving);
}

// ---- what is kept of the graph ----

static size_t count_roots(const weir_model_save_options_t* options) {
  size_t count = 1 + (size_t)options->asset_count;
  for (int i = 0; i < options->signature_count; ++i)
    count += (size_t)(options->signatures[i].input_count + options->signatures[i].output_count);
  return count;
}

static size_t list_roots(const weir_model_save_options_t* options, weir_node_t** roots) {
  size_t count = 0;
  if (options->initializer) roots[count++] = options->initializer;
  for (int i = 0; i < options->asset_count; ++i) roots[count++] = options->assets[i].tensor.node;
  for (int i = 0; i < options->signature_count; ++i) {
    const weir_signature_spec_t* signature = &options->signatures[i];
    for (int k = 0; k < signature->input_count; ++k)
      roots[count++] = signature->inputs[k].edge.node;
    for (int k = 0; k < signature->output_count; ++k)
      roots[count++] = signature->outputs[k].edge.node;
  }
  return count;
}

// What TensorFlow wants to know of a variable: how it starts and how it is read. Its own client and
// this one call the first "NAME/Assign". False: it does not say.
static bool describe_variable(const weir_graph_t* graph, weir_node_t* variable, weir_arena_t* arena,
                              weir_variable_info_t* out_info) {
  const char* name = weir_arena_printf(arena, "%s/Assign", variable->def.name);
  weir_node_t* assign = name ? weir_graph_find(graph, weir_view_of(name)) : NULL;
  weir_node_t* reader = weir_graph_find_reader(variable, "ReadVariableOp");
  bool is_assign = assign && strcmp(assign->def.op_name, "AssignVariableOp") == 0;
  if (!is_assign || !reader || assign->inputs[0].node != variable) return false;
  *out_info = (weir_variable_info_t){.handle = {.node = variable, .index = 0},
                                     .value = {.node = reader, .index = 0},
                                     .initial = assign->inputs[1],
                                     .initializer = assign};
  return true;
}

// Describes the variables that are kept, and adds the nodes that this names to |roots|.
static void keep_infos(saving_t* saving, weir_node_t** roots, size_t* root_count) {
  const weir_graph_t* graph = saving->graph;
  for (size_t i = 0; i < graph->node_count; ++i) {
    weir_variable_info_t info = {0};
    weir_node_t* node = graph->nodes[i];
    bool is_kept = saving->options->whole_graph || saving->keep[i];
    if (!is_kept || weir_node_role(node) != WEIR_ROLE_VARIABLE) continue;
    if (!describe_variable(graph, node, &saving->arena, &info)) continue;
    saving->infos[saving->info_count++] = info;
    roots[(*root_count)++] = info.initializer;
    roots[(*root_count)++] = info.value.node;
  }
}

static weir_status_t* choose_nodes(saving_t* saving) {
  size_t node_count = saving->graph->node_count;
  size_t room = count_roots(saving->options) + 2 * node_count;
  weir_node_t** roots = weir_arena_array(&saving->arena, room, sizeof(*roots));
  saving->infos = weir_arena_array(&saving->arena, node_count, sizeof(*saving->infos));
  if (!roots || !saving->infos) return weir_out_of_memory();
  size_t count = list_roots(saving->options, roots);
  saving->keep = weir_model_reach(saving->graph, roots, count, &saving->arena);
  if (!saving->keep) return weir_out_of_memory();
  keep_infos(saving, roots, &count);
  saving->keep = weir_model_reach(saving->graph, roots, count, &saving->arena);
  if (!saving->keep) return weir_out_of_memory();
  if (saving->options->whole_graph)
    memset(saving->keep, true, saving->graph->node_count * sizeof(bool));
  return NULL;
}

static weir_status_t* list_state(saving_t* saving) {
  const weir_graph_t* graph = saving->graph;
  size_t room = graph->node_count;
  saving->variables = weir_arena_array(&saving->arena, room, sizeof(weir_node_t*));
  saving->values = weir_arena_array(&saving->arena, room, sizeof(weir_tensor_t*));
  saving->tables = weir_arena_array(&saving->arena, room, sizeof(weir_node_t*));
  if (!saving->variables || !saving->values || !saving->tables) return weir_out_of_memory();
  for (size_t i = 0; i < graph->node_count; ++i) {
    weir_node_t* node = graph->nodes[i];
    if (!saving->keep[i]) continue;
    if (weir_node_role(node) == WEIR_ROLE_VARIABLE)
      saving->variables[saving->variable_count++] = node;
    else if (weir_table_can_change(node)) saving->tables[saving->table_count++] = node;
  }
  room = 2 * (size_t)saving->table_count;
  saving->entries = weir_arena_array(&saving->arena, room, sizeof(weir_tensor_t*));
  return saving->entries ? NULL : weir_out_of_memory();
}

static weir_status_t* copy_graph(saving_t* saving) {
  return weir_graph_copy(saving->graph, saving->keep, &saving->arena, &saving->copy, &saving->map);
}

// A saver's nodes, in the copy: the graph that is saved from does not grow.
static weir_status_t* add_saver(saving_t* saving) {
  int count = saving->variable_count + saving->table_count;
  weir_saved_t* saved = weir_arena_array(&saving->arena, (size_t)count, sizeof(*saved));
  if (!saved) return weir_out_of_memory();
  for (int i = 0; i < count; ++i) {
    int table = i - saving->variable_count;
    const weir_node_t* node = table < 0 ? saving->variables[i] : saving->tables[table];
    saved[i].variable = (weir_edge_t){.node = saving->map[node->id], .index = 0};
  }
  weir_scope_t* scope = weir_scope_create(saving->copy);
  if (!scope) return weir_out_of_memory();
  saving->saver = weir_saver_create(scope, .variables = saved, .variable_count = count);
  return weir_scope_finish(scope);
}

static bool has_state(const saving_t* saving) {
  return saving->variable_count + saving->table_count > 0;
}

static weir_status_t* prepare(saving_t* saving) {
  weir_mutex_lock(&saving->graph->mu);
  weir_status_t* status = check_options(saving);
  if (!status) status = choose_nodes(saving);
  if (!status) status = list_state(saving);
  if (!status) status = copy_graph(saving);
  weir_mutex_unlock(&saving->graph->mu);
  if (!status && has_state(saving)) status = add_saver(saving);
  if (!status)
    status = weir_model_read_values(saving->session, saving->graph, saving->variables,
                                    saving->variable_count, saving->values);
  if (!status)
    status =
        weir_tables_read(saving->session, saving->tables, saving->table_count, saving->entries);
  return status;
}

// ---- files ----

static weir_status_t* make_folder(const saving_t* saving, const char* name, weir_strbuf_t* out) {
  weir_strbuf_printf(out, "%s/%s", saving->folder.data, name);
  WEIR_TRY(weir_strbuf_finish(out));
  return weir_fs_make_directories(out->data);
}

// Under the names that the saver gives them.
static weir_status_t* write_table(const saving_t* saving, int index, weir_bundle_writer_t* writer) {
  weir_strbuf_t name = {0};
  weir_status_t* status = NULL;
  for (int i = 0; !status && i < 2; ++i) {
    name.size = 0;
    weir_strbuf_printf(&name, "%s-%s", saving->tables[index]->def.name, i ? "values" : "keys");
    status = weir_strbuf_finish(&name);
    if (!status)
      status = weir_bundle_add(writer, weir_strbuf_view(&name), saving->entries[2 * index + i]);
  }
  weir_strbuf_free(&name);
  return status;
}

static weir_status_t* write_bundle(const saving_t* saving, const char* prefix) {
  weir_bundle_writer_t* writer = NULL;
  weir_status_t* status = weir_bundle_writer_create(prefix, 1, &writer);
  for (int i = 0; !status && i < saving->variable_count; ++i) {
    status =
        weir_bundle_add(writer, weir_view_of(saving->variables[i]->def.name), saving->values[i]);
  }
  for (int i = 0; !status && i < saving->table_count; ++i) status = write_table(saving, i, writer);
  if (!status) status = weir_bundle_finish(writer);
  weir_bundle_writer_destroy(writer);
  return status;
}

static weir_status_t* write_variables(saving_t* saving) {
  weir_strbuf_t path = {0};
  weir_status_t* status = make_folder(saving, "variables", &path);
  weir_strbuf_puts(&path, "/variables");
  if (!status) status = weir_strbuf_finish(&path);
  if (!status && has_state(saving)) status = write_bundle(saving, path.data);
  weir_strbuf_free(&path);
  return status;
}

// What a copy of |path| is called: as it is, or with a number where that name is taken.
static weir_status_t* name_asset(saving_t* saving, int index) {
  const char* path = saving->options->assets[index].path;
  const char* base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
  if (!*base || strcmp(base, "..") == 0 || strcmp(base, ".") == 0)
    return WEIR_STATUS(INVALID_ARGUMENT, "asset '%s' is not the name of a file", path);
  const char* name = base;
  for (int number = 1, i = 0; i < index; ++i) {
    if (strcmp(saving->asset_files[i], name) != 0) continue;
    name = weir_arena_printf(&saving->arena, "%s_%d", base, number++);
    if (!name) return weir_out_of_memory();
    i = -1;
  }
  saving->asset_files[index] = name;
  return NULL;
}

static weir_status_t* copy_file(const char* from, const char* to) {
  weir_strbuf_t bytes = {0};
  weir_status_t* status = weir_fs_read_all(from, &bytes);
  if (!status) status = weir_fs_write_all(to, weir_strbuf_view(&bytes));
  weir_strbuf_free(&bytes);
  return status;
}

static weir_status_t* copy_asset(saving_t* saving, const char* folder, int index) {
  WEIR_TRY(name_asset(saving, index));
  weir_strbuf_t to = {0};
  weir_strbuf_printf(&to, "%s/%s", folder, saving->asset_files[index]);
  weir_status_t* status = weir_strbuf_finish(&to);
  if (!status) status = copy_file(saving->options->assets[index].path, to.data);
  weir_strbuf_free(&to);
  return status;
}

static weir_status_t* write_assets(saving_t* saving) {
  int count = saving->options->asset_count;
  weir_strbuf_t folder = {0};
  saving->asset_files = weir_arena_array(&saving->arena, (size_t)count, sizeof(char*));
  if (!saving->asset_files) return weir_out_of_memory();
  weir_status_t* status = count ? make_folder(saving, "assets", &folder) : NULL;
  for (int i = 0; !status && i < count; ++i) status = copy_asset(saving, folder.data, i);
  weir_strbuf_free(&folder);
  return status;
}

static weir_status_t* write_model(saving_t* saving) {
  weir_strbuf_t message = {0}, path = {0};
  weir_meta_spec_t spec = {.graph = saving->copy,
                           .options = saving->options,
                           .saver = saving->saver,
                           .variables = saving->infos,
                           .variable_count = saving->info_count,
                           .asset_files = saving->asset_files};
  weir_strbuf_printf(&path, "%s/saved_model.pb", saving->folder.data);
  weir_status_t* status = weir_strbuf_finish(&path);
  if (!status) status = weir_meta_write(&spec, &message);
  if (!status) status = weir_fs_write_all(path.data, weir_strbuf_view(&message));
  weir_strbuf_free(&message);
  weir_strbuf_free(&path);
  return status;
}

// ---- the folder: it appears whole, or not at all ----

// Removes a folder that was written here, with the folders in it.
static void remove_folder(const char* path, int depth) {
  weir_names_t names = {0};
  weir_strbuf_t inner = {0};
  weir_status_destroy(weir_fs_list(path, &names));
  for (size_t i = 0; i < names.count; ++i) {
    weir_file_info_t info = {0};
    inner.size = 0;
    weir_strbuf_printf(&inner, "%s/%s", path, names.items[i]);
    if (inner.failed) break;
    weir_status_t* status = weir_fs_info(inner.data, &info);
    if (!status && info.is_directory && depth > 0) remove_folder(inner.data, depth - 1);
    else if (!status) status = weir_fs_remove(inner.data);
    weir_status_destroy(status);
  }
  weir_status_destroy(weir_fs_remove_directory(path));
  weir_strbuf_free(&inner);
  weir_names_free(&names);
}

static weir_status_t* write_folder(saving_t* saving, const char* directory) {
  weir_strbuf_puts(&saving->folder, directory);
  weir_temporary_append(&saving->folder);
  WEIR_TRY(weir_strbuf_finish(&saving->folder));
  WEIR_TRY(weir_fs_make_directories(saving->folder.data));
  WEIR_TRY(write_variables(saving));
  WEIR_TRY(write_assets(saving));
  WEIR_TRY(write_model(saving));
  WEIR_TRY(weir_fs_rename(saving->folder.data, directory));
  return weir_fs_sync_parent(directory);
}

static void end_saving(saving_t* saving) {
  for (int i = 0; i < saving->variable_count; ++i) weir_tensor_release(saving->values[i]);
  for (int i = 0; i < 2 * saving->table_count && saving->entries; ++i)
    weir_tensor_release(saving->entries[i]);
  weir_saver_destroy(saving->saver);
  weir_graph_unref(saving->copy);
  weir_strbuf_free(&saving->folder);
  weir_arena_free(&saving->arena);
}

// ---- what a loaded model says of itself ----

static weir_named_edge_t* name_edges(weir_arena_t* arena, const weir_model_port_t* ports,
                                     int count) {
  weir_named_edge_t* edges = weir_arena_array(arena, (size_t)count, sizeof(*edges));
  for (int i = 0; edges && i < count; ++i)
    edges[i] = (weir_named_edge_t){.name = ports[i].name, .edge = ports[i].edge};
  return edges;
}

static weir_status_t* take_signatures(weir_arena_t* arena, const weir_model_t* model,
                                      weir_model_save_options_t* options) {
  size_t count = (size_t)model->signature_count;
  weir_signature_spec_t* specs = weir_arena_array(arena, count, sizeof(*specs));
  if (!specs) return weir_out_of_memory();
  for (size_t i = 0; i < count; ++i) {
    const weir_signature_t* from = &model->signatures[i].info;
    specs[i] =
        (weir_signature_spec_t){.name = from->name,
                                .method = from->method,
                                .inputs = name_edges(arena, from->inputs, from->input_count),
                                .input_count = from->input_count,
                                .outputs = name_edges(arena, from->outputs, from->output_count),
                                .output_count = from->output_count};
    if (!specs[i].inputs || !specs[i].outputs) return weir_out_of_memory();
  }
  options->signatures = specs;
  options->signature_count = model->signature_count;
  return NULL;
}

// Completes |options| by what their model says.
static weir_status_t* complete(weir_arena_t* arena, weir_model_save_options_t* options) {
  const weir_model_t* model = options->from;
  if (!model) return NULL;
  if (!options->initializer) options->initializer = model->initializer;
  if (!options->asset_count) options->assets = model->assets;
  if (!options->asset_count) options->asset_count = model->asset_count;
  return options->signature_count ? NULL : take_signatures(arena, model, options);
}

// "exported/1/" and "exported/1" are the same folder.
static char* without_slashes(const char* directory) {
  size_t size = strlen(directory);
  while (size > 1 && directory[size - 1] == '/') --size;
  return weir_strndup(directory, size);
}

weir_status_t* weir_model_save(weir_session_t* session, const char* directory,
                               const weir_model_save_options_t* options) {
  WEIR_REQUIRE_ARG(session);
  WEIR_REQUIRE_ARG(directory);
  WEIR_REQUIRE_ARG(options);
  if (weir_fs_exists(directory))
    return WEIR_STATUS(ALREADY_EXISTS, "%s: there is something of that name", directory);
  weir_model_save_options_t completed = *options;
  saving_t saving = {.session = session, .graph = session->graph, .options = &completed};
  char* path = without_slashes(directory);
  weir_status_t* status = path ? complete(&saving.arena, &completed) : weir_out_of_memory();
  if (!status) status = prepare(&saving);
  if (!status) status = write_folder(&saving, path);
  if (status && saving.folder.size) remove_folder(saving.folder.data, 1);
  end_saving(&saving);
  weir_free(path);
  return status;
}
