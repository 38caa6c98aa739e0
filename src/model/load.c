// load.c — Loads models as TensorFlow's loader does: graph, then variables through the saver's own
// nodes, then what initialises it.
#include "file/fs.h"
#include "model/load_onnx.h"
#include "model/model.h"
#include "model/saved_model.h"
#include "weir/argument.h"
#include "weir/saver.h"
#include "wire/message.h"
#include "wire/text.h"

// A load under way.
typedef struct loading_t {
  weir_model_t* model;
  const char* path;
  const char* checkpoint;  // where the variables are; NULL: nowhere
  weir_meta_graph_t meta;
  weir_strbuf_t bytes;  // what |meta| points into
  weir_strbuf_t prefix;
  weir_feed_t* feeds;  // assets, and room for one more
  int feed_count;
} loading_t;

// ---- steps of a load ----

static weir_status_t* find_op(const loading_t* loading, const char* name, weir_node_t** out_node) {
  weir_view_t view = weir_view_of(name);
  if (weir_view_ends_with(view, ":0")) view.size -= 2;
  *out_node = weir_graph_find(loading->model->graph, view);
  if (*out_node) return NULL;
  return WEIR_STATUS(NOT_FOUND, "the graph has no op '%s'", name);
}

static weir_status_t* run_op(loading_t* loading, const char* name) {
  weir_node_t* node = NULL;
  WEIR_TRY(find_op(loading, name, &node));
  weir_step_spec_t spec = {.feeds = loading->feeds,
                           .feed_count = loading->feed_count,
                           .targets = &node,
                           .target_count = 1};
  weir_tensor_t* none = NULL;
  return weir_session_run(loading->model->session, &spec, &none);
}

static weir_status_t* add_feed(loading_t* loading, const char* tensor, const char* text) {
  weir_feed_t feed = {0};
  WEIR_TRY(weir_graph_find_edge(loading->model->graph, weir_view_of(tensor), &feed.edge));
  WEIR_TRY(weir_tensor_create_strings(0, NULL, &text, NULL, &feed.tensor));
  loading->feeds[loading->feed_count++] = feed;
  return NULL;
}

static weir_status_t* note_asset(weir_model_t* model, weir_edge_t tensor, const char* path) {
  const char* copy = weir_arena_strndup(&model->arena, path, strlen(path));
  if (!copy) return weir_out_of_memory();
  model->assets[model->asset_count++] = (weir_asset_t){.tensor = tensor, .path = copy};
  return NULL;
}

// Constants that hold names of assets are fed with where these are now.
static weir_status_t* feed_assets(loading_t* loading, const char* directory) {
  const weir_meta_graph_t* meta = &loading->meta;
  loading->feeds = weir_calloc(meta->asset_count + 1, sizeof(*loading->feeds));
  if (!loading->feeds) return weir_out_of_memory();
  loading->model->assets =
      weir_arena_array(&loading->model->arena, meta->asset_count, sizeof(weir_asset_t));
  if (!loading->model->assets) return weir_out_of_memory();
  weir_strbuf_t path = {0};
  weir_status_t* status = NULL;
  for (size_t i = 0; !status && i < meta->asset_count; ++i) {
    path.size = 0;
    weir_strbuf_printf(&path, "%s/assets/%s", directory, meta->assets[i].file);
    status = weir_strbuf_finish(&path);
    if (!status) status = add_feed(loading, meta->assets[i].tensor, path.data);
    if (!status) status = note_asset(loading->model, loading->feeds[i].edge, path.data);
    status = weir_status_prefix(status, "asset '%s': ", meta->assets[i].file);
  }
  weir_strbuf_free(&path);
  return status;
}

static const weir_node_t* any_variable(const weir_graph_t* graph) {
  for (size_t i = 0; i < graph->node_count; ++i) {
    if (weir_node_role(graph->nodes[i]) == WEIR_ROLE_VARIABLE) return graph->nodes[i];
  }
  return NULL;
}

// Whether there is a checkpoint; NOT_FOUND when there is none, but variables that need it.
static weir_status_t* find_checkpoint(const loading_t* loading, bool* out_is_there) {
  weir_strbuf_t index = {0};
  weir_strbuf_printf(&index, "%s.index", loading->checkpoint);
  weir_status_t* status = weir_strbuf_finish(&index);
  *out_is_there = !status && (weir_fs_exists(index.data) || weir_fs_exists(loading->checkpoint));
  const weir_node_t* variable = any_variable(loading->model->graph);
  if (!status && !*out_is_there && variable) {
    status = WEIR_STATUS(NOT_FOUND, "%s: there is no such file, but variables such as '%s'",
                         index.data, variable->def.name);
  }
  weir_strbuf_free(&index);
  return status;
}

static weir_status_t* restore(loading_t* loading) {
  const weir_meta_graph_t* meta = &loading->meta;
  bool is_there = false;
  if (!loading->checkpoint || !*meta->restore_op) return NULL;
  WEIR_TRY(find_checkpoint(loading, &is_there));
  if (!is_there) return NULL;
  WEIR_TRY(add_feed(loading, meta->filename_tensor, loading->checkpoint));
  weir_status_t* status = run_op(loading, meta->restore_op);
  weir_tensor_release(loading->feeds[--loading->feed_count].tensor);
  return weir_status_prefix(status, "restoring %s: ", loading->checkpoint);
}

static weir_status_t* initialise(loading_t* loading) {
  const weir_meta_graph_t* meta = &loading->meta;
  if (*meta->init_op) {
    WEIR_TRY(find_op(loading, meta->init_op, &loading->model->initializer));
    return weir_status_prefix(run_op(loading, meta->init_op),
                              "initialising by '%s': ", meta->init_op);
  }
  for (size_t i = 0; i < meta->table_init_count; ++i) {
    const char* name = meta->table_inits[i];
    WEIR_TRY(weir_status_prefix(run_op(loading, name), "initialising by '%s': ", name));
  }
  return NULL;
}

// Nodes that will run: what signatures give, what restores, what initialises.
static weir_status_t* check_ops(loading_t* loading) {
  const weir_model_t* model = loading->model;
  weir_arena_t arena = {0};
  size_t count = 0, room = loading->meta.table_init_count + 2;
  for (int i = 0; i < model->signature_count; ++i)
    room += (size_t)model->signatures[i].info.output_count;
  weir_node_t** roots = weir_arena_array(&arena, room, sizeof(*roots));
  weir_status_t* status = roots ? NULL : weir_out_of_memory();
  for (int i = 0; !status && i < model->signature_count; ++i) {
    const weir_signature_t* signature = &model->signatures[i].info;
    for (int k = 0; k < signature->output_count; ++k)
      roots[count++] = signature->outputs[k].edge.node;
  }
  if (!status && *loading->meta.init_op)
    status = find_op(loading, loading->meta.init_op, &roots[count++]);
  if (!status && *loading->meta.restore_op && loading->checkpoint)
    status = find_op(loading, loading->meta.restore_op, &roots[count++]);
  for (size_t i = 0; !status && i < loading->meta.table_init_count; ++i)
    status = find_op(loading, loading->meta.table_inits[i], &roots[count++]);
  if (!status) status = weir_model_check_ops(model->graph, roots, count);
  weir_arena_free(&arena);
  return status;
}

// ---- kinds of files ----

static weir_status_t* open_session(loading_t* loading, const weir_model_options_t* options) {
  return weir_session_create(loading->model->graph, &options->session, &loading->model->session);
}

// A signature cannot be bound to an op that nobody knows: then all such ops are told.
static weir_status_t* bind(loading_t* loading, bool is_saved_model) {
  weir_model_t* model = loading->model;
  if (!loading->meta.signature_count && !is_saved_model) return weir_model_bind_default(model);
  weir_status_t* status = weir_model_bind(model, &loading->meta);
  if (weir_status_code(status) != WEIR_NOT_FOUND) return status;
  weir_status_t* missing =
      weir_model_check_ops(model->graph, model->graph->nodes, model->graph->node_count);
  if (!missing) return status;
  weir_status_destroy(status);
  return missing;
}

static weir_status_t* load_meta(loading_t* loading, weir_view_t message, const char* directory,
                                const weir_model_options_t* options) {
  weir_model_t* model = loading->model;
  WEIR_TRY(weir_meta_graph_read(message, &loading->meta));
  WEIR_TRY(weir_graph_import_def(model->graph, loading->meta.graph_def.data,
                                 loading->meta.graph_def.size, NULL));
  WEIR_TRY(bind(loading, directory != NULL));
  WEIR_TRY(check_ops(loading));
  WEIR_TRY(open_session(loading, options));
  WEIR_TRY(feed_assets(loading, directory ? directory : "."));
  WEIR_TRY(restore(loading));
  return initialise(loading);
}

// The bytes of a message that may be in text.
static weir_status_t* read_message(const char* path, const weir_message_t* message,
                                   weir_strbuf_t* out) {
  weir_view_t name = weir_view_of(path);
  if (!weir_view_ends_with(name, ".pbtxt") && !weir_view_ends_with(name, ".txt"))
    return weir_fs_read_all(path, out);
  weir_strbuf_t text = {0};
  weir_status_t* status = weir_fs_read_all(path, &text);
  if (!status) status = weir_text_parse(message, weir_strbuf_view(&text), out);
  weir_strbuf_free(&text);
  return status;
}

static weir_status_t* load_saved_model(loading_t* loading, const char* file, const char* directory,
                                       const weir_model_options_t* options) {
  weir_view_t message = {0};
  const char* tags = options->tags ? options->tags : "serve";
  WEIR_TRY(read_message(file, &weir_message_saved_model, &loading->bytes));
  weir_strbuf_printf(&loading->prefix, "%s/variables/variables", directory);
  WEIR_TRY(weir_strbuf_finish(&loading->prefix));
  loading->checkpoint = loading->prefix.data;
  weir_status_t* status =
      weir_saved_model_select(weir_strbuf_view(&loading->bytes), tags, &message);
  if (!status) status = load_meta(loading, message, directory, options);
  return weir_status_prefix(status, "%s: ", file);
}

static weir_status_t* load_meta_file(loading_t* loading, const weir_model_options_t* options) {
  loading->checkpoint = options->checkpoint;
  WEIR_TRY(read_message(loading->path, &weir_message_meta_graph_def, &loading->bytes));
  return weir_status_prefix(load_meta(loading, weir_strbuf_view(&loading->bytes), NULL, options),
                            "%s: ", loading->path);
}

// Variables of a bare graph are found by their names.
static weir_status_t* restore_by_name(loading_t* loading) {
  bool is_there = false;
  if (!any_variable(loading->model->graph)) return NULL;
  WEIR_TRY(find_checkpoint(loading, &is_there));
  weir_scope_t* scope = weir_scope_create(loading->model->graph);
  if (!scope) return weir_out_of_memory();
  weir_saver_t* saver = weir_saver_create(scope, .name = "weir_model_restore");
  weir_status_t* status = weir_scope_finish(scope);
  if (!status) status = weir_saver_restore(saver, loading->model->session, loading->checkpoint);
  weir_saver_destroy(saver);
  return status;
}

static weir_status_t* load_graph(loading_t* loading, const weir_model_options_t* options) {
  weir_model_t* model = loading->model;
  loading->meta.init_op = loading->meta.restore_op = "";
  loading->checkpoint = options->checkpoint;
  WEIR_TRY(read_message(loading->path, &weir_message_graph_def, &loading->bytes));
  WEIR_TRY(weir_graph_import_def(model->graph, loading->bytes.data, loading->bytes.size, NULL));
  WEIR_TRY(weir_model_bind_default(model));
  WEIR_TRY(check_ops(loading));
  WEIR_TRY(open_session(loading, options));
  return loading->checkpoint ? restore_by_name(loading) : NULL;
}

// ---- what a path is ----

// "exported/1/saved_model.pb" names the model of its folder.
static bool is_within_model(const char* path) {
  weir_view_t name = weir_view_of(path);
  return weir_view_ends_with(name, "/saved_model.pb") ||
         weir_view_ends_with(name, "/saved_model.pbtxt") || weir_view_is(name, "saved_model.pb") ||
         weir_view_is(name, "saved_model.pbtxt");
}

static weir_status_t* load_file(loading_t* loading, const weir_model_options_t* options) {
  const char* path = loading->path;
  weir_view_t name = weir_view_of(path);
  weir_view_t parent = weir_path_parent(path);
  if (is_within_model(path)) {
    char* directory = parent.size ? weir_strndup(parent.data, parent.size) : weir_strdup(".");
    if (!directory) return weir_out_of_memory();
    weir_status_t* status = load_saved_model(loading, path, directory, options);
    weir_free(directory);
    return status;
  }
  if (weir_view_ends_with(name, ".meta")) return load_meta_file(loading, options);
  if (weir_view_ends_with(name, ".onnx")) {
    WEIR_TRY(weir_model_import_onnx(path, loading->model));
    return open_session(loading, options);
  }
  return weir_status_prefix(load_graph(loading, options), "%s: ", path);
}

static weir_status_t* load(loading_t* loading, const weir_model_options_t* options) {
  weir_file_info_t info = {0};
  weir_strbuf_t file = {0};
  WEIR_TRY(weir_fs_info(loading->path, &info));
  if (!info.is_directory) return load_file(loading, options);
  weir_status_t* status = NULL;
  if (weir_saved_model_is(loading->path, &file))
    status = load_saved_model(loading, file.data, loading->path, options);
  else
    status = WEIR_STATUS(NOT_FOUND, "%s: neither saved_model.pb nor saved_model.pbtxt is there",
                         loading->path);
  weir_strbuf_free(&file);
  return status;
}

static void end_loading(loading_t* loading) {
  for (int i = 0; i < loading->feed_count; ++i) weir_tensor_release(loading->feeds[i].tensor);
  weir_free(loading->feeds);
  weir_meta_graph_free(&loading->meta);
  weir_strbuf_free(&loading->bytes);
  weir_strbuf_free(&loading->prefix);
}

weir_status_t* weir_model_load(const char* path, const weir_model_options_t* options,
                               weir_model_t** out_model) {
  WEIR_REQUIRE_ARG(path);
  WEIR_REQUIRE_ARG(out_model);
  weir_model_options_t defaults = {0};
  weir_model_t* model = weir_calloc(1, sizeof(*model));
  if (!model) return weir_out_of_memory();
  loading_t loading = {.model = model, .path = path};
  weir_mutex_init(&model->mu);
  weir_live_add(&model->live, model);
  weir_status_t* status = weir_graph_create(&model->graph);
  if (!status) status = load(&loading, options ? options : &defaults);
  end_loading(&loading);
  if (status) weir_model_destroy(model);
  else *out_model = model;
  return status;
}

static void free_signature(weir_bound_signature_t* signature) {
  for (int i = 0; i < signature->prepared_count; ++i) {
    weir_plan_release(signature->prepared[i].plan);
    weir_free(signature->prepared[i].wanted);
  }
  for (int i = 0; signature->defaults && i < signature->info.input_count; ++i)
    weir_tensor_release(signature->defaults[i]);
}

void weir_model_destroy(weir_model_t* model) {
  if (!model) return;
  if (!weir_live_remove(model)) weir_abort_ended(__func__, "model");
  if (model->session) weir_session_destroy(model->session);
  for (int i = 0; i < model->signature_count; ++i) free_signature(&model->signatures[i]);
  weir_graph_release(model->graph);
  weir_arena_free(&model->arena);
  weir_mutex_destroy(&model->mu);
  weir_free(model);
}

weir_graph_t* weir_model_graph(const weir_model_t* model) {
  WEIR_ASSERT_ARG(model);
  return model->graph;
}
weir_session_t* weir_model_session(const weir_model_t* model) {
  WEIR_ASSERT_ARG(model);
  return model->session;
}
