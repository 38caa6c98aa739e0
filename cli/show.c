// show.c — weir show: what a file is and what is in it.
#include <stdio.h>
#include <string.h>

#include "cli.h"

static void print_shape(weir_edge_t edge) {
  int64_t dims[WEIR_MAX_RANK];
  int rank = weir_edge_dims(edge, dims, WEIR_MAX_RANK);
  if (rank < 0) {
    printf("<unknown>");
    return;
  }
  printf("[");
  for (int i = 0; i < rank; ++i) {
    if (dims[i] < 0) printf("%s?", i ? "," : "");
    else printf("%s%lld", i ? "," : "", (long long)dims[i]);
  }
  printf("]");
}

static void print_node(const weir_node_t* node) {
  printf("%s = %s(", weir_node_name(node), weir_node_op(node));
  for (int i = 0; i < weir_node_input_count(node); ++i) {
    weir_edge_t input = weir_node_input(node, i);
    printf("%s%s", i ? ", " : "", weir_node_name(input.node));
    if (input.index) printf(":%d", input.index);
  }
  for (int i = 0; i < weir_node_control_count(node); ++i)
    printf(" ^%s", weir_node_name(weir_node_control(node, i)));
  printf(")");
  for (int i = 0; i < weir_node_output_count(node); ++i) {
    weir_edge_t edge = {(weir_node_t*)node, i};
    printf("%s%s", i ? ", " : " -> ", weir_dtype_name(weir_edge_type(edge)));
    print_shape(edge);
  }
  if (*weir_node_device(node)) printf(" @%s", weir_node_device(node));
  printf("\n");
}

// What is in any file, as the library tells it.
static weir_status_t* print_content(const char* path, bool json) {
  char* text = NULL;
  WEIR_TRY(weir_inspect_file(path, json, &text));
  fputs(text, stdout);
  weir_buffer_free(text);
  return NULL;
}

// A graph, node by node or in text form.
static weir_status_t* print_graph(const char* path, bool as_text) {
  weir_graph_t* graph = NULL;
  char* text = NULL;
  size_t size = 0;
  WEIR_TRY(weir_graph_load(path, &graph));
  weir_status_t* status = as_text ? weir_graph_to_text(graph, &text, &size) : NULL;
  if (!status && as_text) fwrite(text, 1, size, stdout);
  for (size_t i = 0; !as_text && i < weir_graph_node_count(graph); ++i)
    print_node(weir_graph_node_at(graph, i));
  weir_buffer_free(text);
  weir_graph_release(graph);
  return status;
}

static int run_show(int argc, char** argv) {
  args_t args = {.argc = argc, .argv = argv};
  const char* path = NULL;
  bool with_nodes = false, as_text = false, json = false;
  while (args.next < argc) {
    const char* at = argv[args.next];
    if (args_flag(&args, "nodes")) with_nodes = true;
    else if (args_flag(&args, "text")) as_text = true;
    else if (args_flag(&args, "json")) json = true;
    else if (!path && (path = args_positional(&args))) continue;
    else return unknown_argument(&verb_show, at);
  }
  if (!path) return usage_error(&verb_show, "no file given");
  if (with_nodes + as_text + json > 1)
    return usage_error(&verb_show, "one of --nodes, --text and --json at a time");
  weir_status_t* status = NULL;
  if (!as_text) status = print_content(path, json);
  if (!status && (as_text || with_nodes)) status = print_graph(path, as_text);
  return status ? fail(status) : EXIT_OK;
}

const verb_t verb_show = {
    .name = "show",
    .summary = "tell what a file is and what is in it",
    .help =
        "usage: weir show FILE|DIRECTORY|PREFIX [--json] [--nodes] [--text]\n"
        "Looks at the bytes, not at the name: SavedModels (graphs, signatures with the types and\n"
        "shapes of inputs and outputs, variables), MetaGraphDefs, GraphDefs, checkpoints by "
        "prefix\n"
        "or directory, TFRecords (how many, the first Example), event files (tags, steps), .npy,\n"
        ".npz, safetensors. Of graphs it names the ops that this build lacks; of other files, "
        "such\n"
        "as .keras and .h5, what they are and what to do with them.\n\n"
        "  --json    one JSON object, whose \"kind\" says what it is\n"
        "  --nodes   of a GraphDef: every node with its inputs, types, shapes and device, too\n"
        "  --text    of a GraphDef: its protobuf text form, nothing else\n",
    .run = run_show};
