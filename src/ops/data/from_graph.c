// from_graph.c — DatasetFromGraph: the dataset that a GraphDef makes.
//
// The functions of the graph are its own, as those of the session are not: a name may stand for one
// here and for another there. So where the graph has any, what it makes is put into a dataset that
// has them, and whose walks call them. That goes for datasets among its elements, too.
#include "ops/data/background_kernel.h"
#include "ops/data/graph_out.h"
#include "wire/wire.h"

enum {
  GRAPH_NODE = 1,  // of GraphDef
  GRAPH_LIBRARY = 2,
  NODE_OP = 2,  // of NodeDef
  NODE_INPUT = 3,
};

typedef struct library_t {
  weir_ref_t ref;
  weir_strbuf_t bytes;  // a FunctionDefLibrary
} library_t;

typedef struct loaded_t {
  weir_data_t base;
  library_t* library;  // retained
} loaded_t;

typedef struct loaded_iterator_t {
  weir_iterator_t base;
  weir_walk_t walk;  // of those below: with functions of its own, once it has begun
} loaded_iterator_t;

static const weir_dataset_vtable_t loaded_dataset;

static void library_release(library_t* library) {
  if (!library || !weir_ref_dec(&library->ref)) return;
  weir_strbuf_free(&library->bytes);
  weir_free(library);
}

// ---- a dataset with functions of its own ----

static weir_status_t* create_loaded(weir_data_t* dataset, library_t* library,
                                    weir_tensor_t** out_tensor) {
  weir_data_t* made = NULL;
  WEIR_TRY(weir_dataset_create_over(&loaded_dataset, dataset, &made));
  weir_ref_inc(&library->ref, 1);
  ((loaded_t*)made)->library = library;
  return weir_tensor_create_variant(&made->base, out_tensor);
}

static void loaded_deinit(weir_data_t* dataset) { library_release(((loaded_t*)dataset)->library); }

static weir_status_t* own_functions(const weir_data_t* dataset, weir_functions_t* functions,
                                    weir_functions_t** out_functions) {
  weir_view_t library = weir_strbuf_view(&((const loaded_t*)dataset)->library->bytes);
  if (functions) return functions->vtable->clone_with(functions, library, out_functions);
  return WEIR_STATUS(FAILED_PRECONDITION,
                     "functions of a dataset that was loaded cannot be called "
                     "in a step without a function library");
}

// Datasets among |items| may have functions of the same library.
static weir_status_t* pass_on(const weir_data_t* self, weir_tensor_t** items) {
  for (int i = 0; i < self->count; ++i) {
    weir_tensor_t* loaded = NULL;
    if (self->types[i] != WEIR_DTYPE_VARIANT || items[i]->rank != 0) continue;
    weir_variant_object_t* object = WEIR_TENSOR_DATA(items[i], weir_variant_t)->object;
    if (!object || object->type != &weir_dataset_type) continue;
    WEIR_TRY(create_loaded((weir_data_t*)object, ((const loaded_t*)self)->library, &loaded));
    weir_tensor_release(items[i]);
    items[i] = loaded;
  }
  return NULL;
}

static weir_status_t* loaded_get(weir_data_t* self, const weir_walk_t* walk, int64_t index,
                                 weir_tensor_t** out) {
  weir_walk_t own = *walk;
  WEIR_TRY(own_functions(self, walk->functions, &own.functions));
  weir_status_t* status = weir_dataset_get(self->inputs[0], &own, index, out);
  own.functions->vtable->destroy(own.functions);
  return status ? status : pass_on(self, out);
}

static weir_status_t* loaded_write(weir_data_t* self, weir_graph_out_t* out,
                                   const char** out_name) {
  weir_functions_t *others = out->functions, *own = NULL;
  WEIR_TRY(own_functions(self, others, &own));
  out->functions = own;
  weir_status_t* status = weir_graph_out_dataset(out, self->inputs[0], out_name);
  out->functions = others;
  if (own) own->vtable->destroy(own);
  return status;
}

static weir_status_t* loaded_start(weir_iterator_t* iterator) {
  loaded_iterator_t* self = (loaded_iterator_t*)iterator;
  const weir_walk_t* walk = iterator->walk;
  weir_functions_t* own = NULL;
  WEIR_TRY(own_functions(iterator->dataset, walk->functions, &own));
  self->walk = *walk;
  self->walk.functions = own;
  // Those below have it; who walks over this one goes on with the functions of before.
  iterator->walk = &self->walk;
  weir_status_t* status = weir_iterator_open(iterator, 0);
  iterator->walk = walk;
  return status;
}

static weir_status_t* loaded_next(weir_iterator_t* self, weir_cancel_t* cancel, weir_tensor_t** out,
                                  bool* out_is_end) {
  WEIR_TRY(weir_iterator_pull(self, 0, cancel, out, out_is_end));
  return *out_is_end ? NULL : pass_on(self->dataset, out);
}

// Functions are called until the last iterator below is gone. Also where there was no memory for
// those.
static void loaded_stop(weir_iterator_t* iterator) {
  loaded_iterator_t* self = (loaded_iterator_t*)iterator;
  if (iterator->inputs) weir_iterator_close(iterator, 0);
  if (self->walk.functions) self->walk.functions->vtable->destroy(self->walk.functions);
}

static const weir_iterator_vtable_t loaded_iterator = {.size = sizeof(loaded_iterator_t),
                                                       .start = loaded_start,
                                                       .next = loaded_next,
                                                       .stop = loaded_stop,
                                                       .state = weir_state_inputs,
                                                       .may_resume = true};
static const weir_dataset_vtable_t loaded_dataset = {.name = "FromGraph",
                                                     .size = sizeof(loaded_t),
                                                     .deinit = loaded_deinit,
                                                     .get = loaded_get,
                                                     .write = loaded_write,
                                                     .iterator = &loaded_iterator};

// ---- the graph ----

typedef struct found_t {
  weir_view_t result;  // what is returned; empty: nothing is
  library_t* library;
} found_t;

// The input of a _Retval. False: it is no message.
static bool read_node(weir_view_t node, found_t* found) {
  weir_view_t op = {0}, input = {0};
  weir_wire_reader_t reader = weir_wire_reader(node);
  while (weir_wire_next(&reader)) {
    if (reader.type != WEIR_WIRE_BYTES) continue;
    if (reader.field == NODE_OP) op = reader.bytes;
    if (reader.field == NODE_INPUT && input.size == 0) input = reader.bytes;
  }
  if (weir_view_is(op, "_Retval")) found->result = input;
  return !reader.error;
}

// The last result, as in TensorFlow, and all of the library, which may come in parts.
static weir_status_t* read_graph(weir_view_t graph_def, found_t* found) {
  weir_strbuf_t* library = &found->library->bytes;
  weir_wire_reader_t reader = weir_wire_reader(graph_def);
  bool is_good = true;
  while (is_good && weir_wire_next(&reader)) {
    if (reader.type != WEIR_WIRE_BYTES) continue;
    if (reader.field == GRAPH_NODE) is_good = read_node(reader.bytes, found);
    if (reader.field == GRAPH_LIBRARY)
      weir_strbuf_append(library, reader.bytes.data, reader.bytes.size);
  }
  if (!is_good || reader.error) return WEIR_STATUS(INVALID_ARGUMENT, "Could not parse GraphDef");
  return weir_strbuf_finish(library);
}

static weir_status_t* run_graph(weir_kernel_ctx_t* ctx, weir_view_t graph_def, const found_t* found,
                                weir_tensor_t** out_tensor) {
  weir_functions_t* functions = ctx->step->functions;
  weir_tensor_t* made = NULL;
  weir_data_t* dataset = NULL;
  if (!functions)
    return WEIR_STATUS(FAILED_PRECONDITION, "a graph cannot be run: the step has no functions");
  WEIR_TRY(
      functions->vtable->run_graph(functions, ctx->step->cancel, graph_def, found->result, &made));
  weir_status_t* status = NULL;
  if (weir_tensor_type(made) != WEIR_DTYPE_VARIANT)
    status =
        WEIR_STATUS(INTERNAL, "Output 0 of type %s does not match declared output type variant",
                    weir_dtype_name(weir_tensor_type(made)));
  if (!status) status = weir_dataset_of(made, &dataset);
  if (!status && found->library->bytes.size == 0) *out_tensor = weir_tensor_retain(made);
  else if (!status) status = create_loaded(dataset, found->library, out_tensor);
  weir_tensor_release(made);
  return status;
}

static weir_status_t* from_graph(weir_kernel_ctx_t* ctx) {
  weir_view_t graph_def;
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_dataset_string(ctx, 0, "graph_def", &graph_def));
  found_t found = {.library = weir_calloc(1, sizeof(*found.library))};
  if (!found.library) return weir_out_of_memory();
  weir_ref_init(&found.library->ref);
  weir_status_t* status = read_graph(graph_def, &found);
  if (!status) status = run_graph(ctx, graph_def, &found, &out);
  if (!status) weir_kernel_set(ctx, 0, out);
  library_release(found.library);
  return status;
}

// It waits for the graph to have run.
static void from_graph_cpu(weir_kernel_ctx_t* ctx, weir_done_t done) {
  weir_background_kernel(ctx, done, from_graph);
}

const weir_op_module_t weir_ops_data_from_graph = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){{.name = "DatasetFromGraph",
                                    .inputs = "graph_def: string",
                                    .outputs = "handle: variant",
                                    .flags = WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY,
                                    .summary = "The dataset that a GraphDef makes",
                                    .infer_shape = weir_dataset_shape,
                                    .kernels = WEIR_CPU_KERNEL(.compute_async = from_graph_cpu)},
                                   {0}}};
