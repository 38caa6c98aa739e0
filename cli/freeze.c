// freeze.c — weir freeze: a model's signature as one graph without variables.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

typedef struct freeze_args_t {
  const char* path;
  const char* out;
  weir_model_options_t model;
  weir_freeze_options_t freeze;
} freeze_args_t;

static int parse(int argc, char** argv, freeze_args_t* out) {
  args_t args = {.argc = argc, .argv = argv};
  while (args.next < argc) {
    const char* text = NULL;
    if (args_option(&args, "tags", &out->model.tags) ||
        args_option(&args, "signature", &out->freeze.signature) ||
        args_option(&args, "checkpoint", &out->model.checkpoint))
      continue;
    if (args_option(&args, "quantize", &text)) {
      out->freeze.quantize_int8 = strcmp(text, "int8") == 0;
      if (out->freeze.quantize_int8) continue;
      return usage_error(&verb_freeze, "--quantize is int8, not '%s'", text);
    }
    text = args_positional(&args);
    if (!text) return usage_error(&verb_freeze, "unknown option '%s'", argv[args.next]);
    if (!out->path) out->path = text;
    else if (!out->out) out->out = text;
    else return usage_error(&verb_freeze, "one model, one file: what is '%s'?", text);
  }
  if (!out->out) return usage_error(&verb_freeze, "a model and a file to write are needed");
  return EXIT_OK;
}

// The same graph as text.
static weir_status_t* to_text(const char* data, size_t size, char** out_text, size_t* out_size) {
  weir_graph_t* graph = NULL;
  weir_status_t* status = weir_graph_create(&graph);
  if (!status) status = weir_graph_import_def(graph, data, size, NULL);
  if (!status) status = weir_graph_to_text(graph, out_text, out_size);
  weir_graph_release(graph);
  return status;
}

static bool is_text(const char* path) {
  size_t size = strlen(path);
  return size > 6 && strcmp(path + size - 6, ".pbtxt") == 0;
}

static weir_status_t* freeze(const freeze_args_t* args, char** out_data, size_t* out_size) {
  weir_model_t* model = NULL;
  char* text = NULL;
  weir_status_t* status = weir_model_load(args->path, &args->model, &model);
  if (!status) status = weir_model_freeze(model, &args->freeze, out_data, out_size);
  weir_model_destroy(model);
  if (status || !is_text(args->out)) return status;
  status = to_text(*out_data, *out_size, &text, out_size);
  weir_buffer_free(*out_data);
  *out_data = text;
  return status;
}

static int run(int argc, char** argv) {
  freeze_args_t args = {0};
  char* data = NULL;
  size_t size = 0;
  int code = parse(argc, argv, &args);
  if (code != EXIT_OK) return code;
  weir_status_t* status = freeze(&args, &data, &size);
  if (status) return fail(status);
  bool is_written = write_file(args.out, data, size);
  weir_buffer_free(data);
  return is_written ? EXIT_OK : EXIT_FAILED;
}

const verb_t verb_freeze = {
    .name = "freeze",
    .summary = "make one graph without variables of a model",
    .help =
        "usage: weir freeze MODEL OUT.pb [OPTIONS]\n\n"
        "Writes what a signature of MODEL computes as one GraphDef: functions are inlined,\n"
        "variables are constants, lookup tables have their entries, what only trains is gone. "
        "MODEL\n"
        "is the folder of a SavedModel, a MetaGraphDef (.meta) or a graph; OUT may end in .pbtxt\n"
        "for text.\n\n"
        "  --tags=TAGS         of a SavedModel's graph; \"serve\" unless given\n"
        "  --signature=NAME    which one; \"serving_default\", or the only one, unless given\n"
        "  --checkpoint=PREFIX variables of a .meta or a graph\n"
        "  --quantize=int8     keeps large weights in 8 bits, with a scale a column\n",
    .run = run};
