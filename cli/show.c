// show.c — weir show: what is in a graph.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

typedef struct op_count_t {
  const char* op;
  size_t count;
} op_count_t;

static int by_count(const void* a, const void* b) {
  const op_count_t* x = a;
  const op_count_t* y = b;
  return x->count != y->count ? (x->count < y->count) - (x->count > y->count)
                              : strcmp(x->op, y->op);
}

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

static int by_address(const void* a, const void* b) {
  const weir_node_t* x = *(weir_node_t* const*)a;
  const weir_node_t* y = *(weir_node_t* const*)b;
  return (x > y) - (x < y);
}

// Every node that some other reads or waits for, sorted by address; the caller frees it.
static weir_node_t** list_read(weir_graph_t* graph, size_t* out_count) {
  size_t count = weir_graph_node_count(graph);
  size_t total = 0;
  for (size_t i = 0; i < count; ++i) {
    const weir_node_t* node = weir_graph_node_at(graph, i);
    total += (size_t)(weir_node_input_count(node) + weir_node_control_count(node));
  }
  weir_node_t** read = malloc(sizeof(*read) * (total + 1));
  *out_count = 0;
  for (size_t i = 0; read && i < count; ++i) {
    const weir_node_t* node = weir_graph_node_at(graph, i);
    for (int k = 0; k < weir_node_input_count(node); ++k) {
      read[(*out_count)++] = weir_node_input(node, k).node;
    }
    for (int k = 0; k < weir_node_control_count(node); ++k) {
      read[(*out_count)++] = weir_node_control(node, k);
    }
  }
  if (read) qsort(read, *out_count, sizeof(*read), by_address);
  return read;
}

// Placeholders: what one must feed. Nodes nothing reads: what one would fetch or run.
static void print_ends(weir_graph_t* graph) {
  enum { MOST = 50 };
  size_t read_count = 0;
  weir_node_t** read = list_read(graph, &read_count);
  size_t shown = 0;
  printf("inputs:\n");
  for (size_t i = 0; i < weir_graph_node_count(graph); ++i) {
    const weir_node_t* node = weir_graph_node_at(graph, i);
    if (strncmp(weir_node_op(node), "Placeholder", 11) == 0) printf("  %s\n", weir_node_name(node));
  }
  printf("outputs:\n");
  for (size_t i = 0; read && i < weir_graph_node_count(graph); ++i) {
    weir_node_t* node = weir_graph_node_at(graph, i);
    if (bsearch(&node, read, read_count, sizeof(*read), by_address)) continue;
    if (shown++ < MOST) printf("  %s\n", weir_node_name(node));
  }
  if (shown > MOST) printf("  and %zu more\n", shown - MOST);
  free(read);
}

// Bytes that constants of known shape hold.
static double constant_bytes(weir_graph_t* graph) {
  double total = 0;
  for (size_t i = 0; i < weir_graph_node_count(graph); ++i) {
    weir_node_t* node = weir_graph_node_at(graph, i);
    if (strcmp(weir_node_op(node), "Const") != 0) continue;
    int64_t dims[WEIR_MAX_RANK];
    int rank = weir_edge_dims((weir_edge_t){node, 0}, dims, WEIR_MAX_RANK);
    double bytes = (double)weir_dtype_size(weir_edge_type((weir_edge_t){node, 0}));
    for (int k = 0; k < rank; ++k) bytes *= (double)dims[k];
    if (rank >= 0) total += bytes;
  }
  return total;
}

static void print_ops(weir_graph_t* graph) {
  size_t count = weir_graph_node_count(graph);
  op_count_t* ops = calloc(count + 1, sizeof(*ops));
  size_t kinds = 0;
  for (size_t i = 0; ops && i < count; ++i) {
    const char* op = weir_node_op(weir_graph_node_at(graph, i));
    size_t k = 0;
    while (k < kinds && strcmp(ops[k].op, op) != 0) ++k;
    if (k == kinds) ops[kinds++].op = op;
    ++ops[k].count;
  }
  if (ops) qsort(ops, kinds, sizeof(*ops), by_count);
  printf("%zu nodes, %.0f bytes of constants, %zu ops:\n", count, constant_bytes(graph), kinds);
  for (size_t i = 0; i < kinds; ++i) printf("  %6zu %s\n", ops[i].count, ops[i].op);
  free(ops);
}

static int run_show(int argc, char** argv) {
  args_t args = {.argc = argc, .argv = argv};
  const char* path = NULL;
  bool with_nodes = false;
  bool as_text = false;
  while (args.next < argc) {
    const char* at = argv[args.next];
    if (args_flag(&args, "nodes")) with_nodes = true;
    else if (args_flag(&args, "text")) as_text = true;
    else if (!path && (path = args_positional(&args))) continue;
    else return usage_error(&verb_show, "unknown option or argument '%s'", at);
  }
  if (!path) return usage_error(&verb_show, "no graph given");
  weir_graph_t* graph = NULL;
  weir_status_t* status = weir_graph_load(path, &graph);
  if (status) return fail(status);
  if (as_text) {
    char* text = NULL;
    size_t size = 0;
    status = weir_graph_to_text(graph, &text, &size);
    if (!status) fwrite(text, 1, size, stdout);
    weir_buffer_free(text);
  } else {
    print_ops(graph);
    print_ends(graph);
    for (size_t i = 0; with_nodes && i < weir_graph_node_count(graph); ++i)
      print_node(weir_graph_node_at(graph, i));
  }
  weir_graph_release(graph);
  return status ? fail(status) : EXIT_OK;
}

const verb_t verb_show = {.name = "show",
                          .summary = "print what is in a graph",
                          .help =
                              "usage: weir show GRAPH.pb [--nodes] [--text]\n"
                              "Prints the ops of a graph with their counts, its inputs "
                              "(placeholders) and its outputs (nodes\n"
                              "that nothing reads).\n\n"
                              "  --nodes   every node with its inputs, types, shapes and device\n"
                              "  --text    the graph in protobuf text form\n",
                          .run = run_show};
