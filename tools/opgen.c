// opgen.c — Prints one typed C function per registered op: usage: weir_opgen OPS_H OPS_C.
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/string.h"
#include "op/op.h"
#include "ops/builtin_ops.h"

// Ops for which scope.h has something better under the same name.
static bool is_by_hand(const char* op) {
  return strcmp(op, "Const") == 0 || strcmp(op, "Variable") == 0;
}

static bool is_public(const weir_op_t* op) { return op->name[0] != '_' && !is_by_hand(op->name); }

// BatchMatMulV2 → batch_mat_mul_v2, Conv2D → conv2d, FIFOQueueV2 → fifo_queue_v2.
// weir_batch is input.h's: the op that batches steps is weir_batch_steps.
static void append_snake(const char* name, weir_strbuf_t* out) {
  if (strcmp(name, "Batch") == 0) name = "BatchSteps";
  for (const char* c = name; *c; ++c) {
    bool starts_word = isupper((unsigned char)*c) && c > name &&
                       (islower((unsigned char)c[-1]) ||
                        (isdigit((unsigned char)c[-1]) && islower((unsigned char)c[1])) ||
                        (isupper((unsigned char)c[-1]) && islower((unsigned char)c[1])));
    if (starts_word && c[-1] != '_') weir_strbuf_putc(out, '_');
    weir_strbuf_putc(out, (char)tolower((unsigned char)*c));
  }
}

static const char* safe_name(
    const char* name) {  // attribute and argument names that C or C++ reserve
  static const char* const reserved[] = {
      "float",    "double", "int", "bool",  "default", "signed", "unsigned", "const",
      "template", "delete", "new", "short", "long",    "struct", "switch",   "scope"};
  static char buffer[64];
  for (size_t i = 0; i < WEIR_COUNT_OF(reserved); ++i) {
    if (strcmp(name, reserved[i]) != 0) continue;
    snprintf(buffer, sizeof(buffer), "%s_", name);
    return buffer;
  }
  return name;
}

static bool uses(const char* a, const char* b) { return a && strcmp(a, b) == 0; }

static bool is_inferred(const weir_op_t* op, const char* attr) {
  for (int i = 0; i < op->input_count; ++i) {
    const weir_arg_t* arg = &op->inputs[i];
    if (uses(arg->type_attr, attr) || uses(arg->number_attr, attr) ||
        uses(arg->type_list_attr, attr))
      return true;
  }
  return false;
}

// A default that is not what a zeroed field reads as.
static bool needs_wrapper(const weir_attr_def_t* attr) {
  if (attr->is_list || !attr->has_default) return false;
  switch (attr->kind) {
    case WEIR_ATTR_INT: return attr->default_value.u.i != 0;
    case WEIR_ATTR_FLOAT: return attr->default_value.u.f != 0;
    case WEIR_ATTR_BOOL: return attr->default_value.u.b;
    default: return false;
  }
}

static const char* c_type(const weir_attr_def_t* attr) {
  bool is_wrapped = needs_wrapper(attr);
  switch (attr->kind) {
    case WEIR_ATTR_STRING: return attr->is_list ? "weir_strings_t" : "const char*";
    case WEIR_ATTR_INT:
      return attr->is_list ? "weir_ints_t" : is_wrapped ? "weir_opt_int_t" : "int64_t";
    case WEIR_ATTR_FLOAT:
      return attr->is_list ? "weir_floats_t" : is_wrapped ? "weir_opt_float_t" : "float";
    case WEIR_ATTR_BOOL: return is_wrapped ? "weir_opt_bool_t" : "bool";
    case WEIR_ATTR_TYPE: return attr->is_list ? "weir_types_t" : "weir_dtype_t";
    case WEIR_ATTR_SHAPE: return attr->is_list ? "weir_shapes_t" : "weir_dims_t";
    case WEIR_ATTR_TENSOR: return "weir_tensor_t*";
    default: return "const char*";  // functions, by name
  }
}

// Lists that C callers never need; such an op keeps its defaults, or has no function.
static bool is_expressible(const weir_attr_def_t* attr) {
  return !attr->is_list || (attr->kind != WEIR_ATTR_BOOL && attr->kind != WEIR_ATTR_TENSOR &&
                            attr->kind != WEIR_ATTR_FUNC);
}

static bool has_function(const weir_op_t* op) {
  if (!is_public(op)) return false;
  for (int i = 0; i < op->attr_count; ++i) {
    const weir_attr_def_t* attr = &op->attrs[i];
    if (!attr->has_default && !is_inferred(op, attr->name) && !is_expressible(attr)) return false;
  }
  return true;
}

static bool is_option(const weir_op_t* op, const weir_attr_def_t* attr) {
  return attr->has_default && !is_inferred(op, attr->name) && is_expressible(attr);
}
static bool is_parameter(const weir_op_t* op, const weir_attr_def_t* attr) {
  return !attr->has_default && !is_inferred(op, attr->name);
}

static int option_count(const weir_op_t* op) {
  int count = 0;
  for (int i = 0; i < op->attr_count; ++i) count += is_option(op, &op->attrs[i]);
  return count;
}

static bool is_list_arg(const weir_arg_t* arg) { return arg->number_attr || arg->type_list_attr; }

static void append_result_type(const weir_op_t* op, const char* snake, weir_strbuf_t* out) {
  if (op->output_count == 0) weir_strbuf_puts(out, "weir_node_t*");
  else if (op->output_count == 1) weir_strbuf_puts(out, "weir_edge_t");
  else weir_strbuf_printf(out, "weir_%s_result_t", snake);
}

static void append_parameters(const weir_op_t* op, weir_strbuf_t* out) {
  weir_strbuf_puts(out, "(weir_scope_t* scope");
  for (int i = 0; i < op->input_count; ++i) {
    const char* name = safe_name(op->inputs[i].name);
    if (is_list_arg(&op->inputs[i]))
      weir_strbuf_printf(out, ", const weir_edge_t* %s, int %s_count", name, name);
    else weir_strbuf_printf(out, ", weir_edge_t %s", name);
  }
  for (int i = 0; i < op->attr_count; ++i) {
    if (is_parameter(op, &op->attrs[i]))
      weir_strbuf_printf(out, ", %s %s", c_type(&op->attrs[i]), safe_name(op->attrs[i].name));
  }
}

// Functions are called weir_op_x, so that they cannot clash with anything else, and weir_x in use.
static void append_macro(const weir_op_t* op, const char* snake, weir_strbuf_t* out) {
  weir_strbuf_t names = {0};
  weir_strbuf_puts(&names, "scope");
  for (int i = 0; i < op->input_count; ++i) {
    const char* name = safe_name(op->inputs[i].name);
    weir_strbuf_printf(&names, is_list_arg(&op->inputs[i]) ? ", %s, %s_count" : ", %s", name, name);
  }
  for (int i = 0; i < op->attr_count; ++i) {
    if (is_parameter(op, &op->attrs[i]))
      weir_strbuf_printf(&names, ", %s", safe_name(op->attrs[i].name));
  }
  if (option_count(op)) {
    weir_strbuf_printf(
        out,
        "#define weir_%s(%s, ...) weir_op_%s(%s, &(const weir_%s_options_t){0, __VA_ARGS__})\n",
        snake, names.data, snake, names.data, snake);
  } else {
    weir_strbuf_printf(out, "#define weir_%s(%s) weir_op_%s(%s)\n", snake, names.data, snake,
                       names.data);
  }
  weir_strbuf_free(&names);
}

static void print_declaration(const weir_op_t* op, const char* snake, FILE* h) {
  weir_strbuf_t out = {0};
  weir_strbuf_printf(&out, "\n// %s%s%s\n", op->name, op->def->summary ? ": " : "",
                     op->def->summary ? op->def->summary : "");
  if (op->output_count > 1) {
    weir_strbuf_printf(&out, "typedef struct weir_%s_result_t {\n", snake);
    for (int i = 0; i < op->output_count; ++i) {
      weir_strbuf_printf(&out, "  weir_edge_t %s;%s\n", safe_name(op->outputs[i].name),
                         is_list_arg(&op->outputs[i]) ? "  // the first of several" : "");
    }
    weir_strbuf_printf(&out, "} weir_%s_result_t;\n", snake);
  }
  int options = option_count(op);
  if (options) {
    weir_strbuf_printf(&out, "typedef struct weir_%s_options_t {\n  int reserved;\n", snake);
    for (int i = 0; i < op->attr_count; ++i) {
      if (!is_option(op, &op->attrs[i])) continue;
      weir_strbuf_printf(&out, "  %s %s;  // default: ", c_type(&op->attrs[i]),
                         safe_name(op->attrs[i].name));
      weir_attr_append_text(&op->attrs[i].default_value, &out);
      weir_strbuf_putc(&out, '\n');
    }
    weir_strbuf_printf(&out, "} weir_%s_options_t;\n", snake);
  }
  weir_strbuf_puts(&out, "WEIR_API ");
  append_result_type(op, snake, &out);
  weir_strbuf_printf(&out, " weir_op_%s", snake);
  append_parameters(op, &out);
  if (options) weir_strbuf_printf(&out, ", const weir_%s_options_t* options", snake);
  weir_strbuf_puts(&out, ");\n");
  append_macro(op, snake, &out);
  fputs(out.data, h);
  weir_strbuf_free(&out);
}

// The statement that adds attribute |attr|, whose C value is |value|.
static void append_attr(const weir_attr_def_t* attr, const char* value, weir_strbuf_t* out) {
  static const char* const setters[] = {
      [WEIR_ATTR_INT] = "int",       [WEIR_ATTR_FLOAT] = "float", [WEIR_ATTR_BOOL] = "bool",
      [WEIR_ATTR_TYPE] = "type",     [WEIR_ATTR_SHAPE] = "shape", [WEIR_ATTR_TENSOR] = "tensor",
      [WEIR_ATTR_STRING] = "string", [WEIR_ATTR_FUNC] = "func"};
  weir_strbuf_printf(out, "weir_op_args_%s%s(&args_, \"%s\", %s);\n", setters[attr->kind],
                     attr->is_list ? "s" : "", attr->name, value);
}

// What must hold for an option to count as given.
static void append_condition(const weir_attr_def_t* attr, const char* value, weir_strbuf_t* out) {
  if (needs_wrapper(attr) || (attr->kind == WEIR_ATTR_SHAPE && !attr->is_list))
    weir_strbuf_printf(out, "%s.is_set", value);
  else if (attr->is_list) weir_strbuf_printf(out, "%s.count", value);
  else weir_strbuf_printf(out, "%s", value);
}

static void append_options(const weir_op_t* op, weir_strbuf_t* out) {
  if (!option_count(op)) return;
  weir_strbuf_puts(out, "  if (options) {\n");
  for (int i = 0; i < op->attr_count; ++i) {
    const weir_attr_def_t* attr = &op->attrs[i];
    if (!is_option(op, attr)) continue;
    char value[96];
    snprintf(value, sizeof(value), "options->%s", safe_name(attr->name));
    weir_strbuf_puts(out, "    if (");
    append_condition(attr, value, out);
    weir_strbuf_puts(out, ") ");
    if (needs_wrapper(attr))
      snprintf(value, sizeof(value), "options->%s.value", safe_name(attr->name));
    append_attr(attr, value, out);
  }
  weir_strbuf_puts(out, "  }\n");
}

static void append_result(const weir_op_t* op, const char* snake, weir_strbuf_t* out) {
  if (op->output_count == 0) {
    weir_strbuf_puts(out, "  return weir_op_args_add_node(&args_);\n}\n");
    return;
  }
  if (op->output_count == 1) {
    weir_strbuf_puts(out, "  return weir_scope_first(weir_op_args_add_node(&args_));\n}\n");
    return;
  }
  weir_strbuf_puts(out, "  weir_node_t* node_ = weir_op_args_add_node(&args_);\n");
  weir_strbuf_printf(out, "  return (weir_%s_result_t){\n", snake);
  for (int i = 0; i < op->output_count; ++i)
    weir_strbuf_printf(out, "      .%s = weir_op_args_output(node_, %d),\n",
                       safe_name(op->outputs[i].name), i);
  weir_strbuf_puts(out, "  };\n}\n");
}

static const char* length_attr(const weir_arg_t* arg) {
  return arg->number_attr ? arg->number_attr : arg->type_list_attr;
}

// Whether an argument before |index| says how long it is by the same attribute.
static bool is_said_before(const weir_op_t* op, int index) {
  for (int i = 0; i < index; ++i) {
    const char* attr = length_attr(&op->inputs[i]);
    if (attr && uses(length_attr(&op->inputs[index]), attr)) return true;
  }
  return false;
}

// Inputs alone do not tell where one list ends and another begins: the attributes that do are set.
static void append_lengths(const weir_op_t* op, weir_strbuf_t* out) {
  int lengths = 0;
  for (int i = 0; i < op->input_count; ++i)
    lengths += is_list_arg(&op->inputs[i]) && !is_said_before(op, i);
  for (int i = 0; lengths > 1 && i < op->input_count; ++i) {
    const weir_arg_t* arg = &op->inputs[i];
    if (!is_list_arg(arg) || is_said_before(op, i)) continue;
    const char* name = safe_name(arg->name);
    if (arg->number_attr)
      weir_strbuf_printf(out, "  weir_op_args_int(&args_, \"%s\", %s_count);\n", arg->number_attr,
                         name);
    else
      weir_strbuf_printf(out, "  weir_op_args_types_of(&args_, \"%s\", %s, %s_count);\n",
                         arg->type_list_attr, name, name);
  }
}

static void print_definition(const weir_op_t* op, const char* snake, FILE* c) {
  weir_strbuf_t out = {0};
  int options = option_count(op);
  weir_strbuf_putc(&out, '\n');
  append_result_type(op, snake, &out);
  weir_strbuf_printf(&out, " weir_op_%s", snake);
  append_parameters(op, &out);
  if (options) weir_strbuf_printf(&out, ", const weir_%s_options_t* options", snake);
  weir_strbuf_printf(&out,
                     ") {\n  weir_op_args_t args_;\n  weir_op_args_begin(&args_, scope, \"%s\");\n",
                     op->name);
  for (int i = 0; i < op->input_count; ++i) {
    const char* name = safe_name(op->inputs[i].name);
    if (is_list_arg(&op->inputs[i]))
      weir_strbuf_printf(&out, "  weir_op_args_inputs(&args_, %s, %s_count);\n", name, name);
    else weir_strbuf_printf(&out, "  weir_op_args_input(&args_, %s);\n", name);
  }
  append_lengths(op, &out);
  for (int i = 0; i < op->attr_count; ++i) {
    if (!is_parameter(op, &op->attrs[i])) continue;
    weir_strbuf_puts(&out, "  ");
    append_attr(&op->attrs[i], safe_name(op->attrs[i].name), &out);
  }
  append_options(op, &out);
  append_result(op, snake, &out);
  fputs(out.data, c);
  weir_strbuf_free(&out);
}

static void print_all(const weir_registry_t* registry, FILE* h, FILE* c) {
  fputs(
      "// ops.h — One function an op. Generated from the registry: do not edit.\n#ifndef "
      "WEIR_OPS_H_\n#define WEIR_OPS_H_\n\n"
      "#include \"weir/attrs.h\"\n#include \"weir/scope.h\"\n\n#ifdef __cplusplus\nextern \"C\" "
      "{\n#endif\n",
      h);
  fputs(
      "// ops_api.c — One function an op. Generated from the registry: do not edit.\n#include "
      "\"api/op_args.h\"\n#include \"weir/ops.h\"\n",
      c);
  for (size_t i = 0; i < weir_registry_count(registry); ++i) {
    const weir_op_t* op = weir_registry_at(registry, i);
    if (!has_function(op)) continue;
    weir_strbuf_t snake = {0};
    append_snake(op->name, &snake);
    print_declaration(op, snake.data, h);
    print_definition(op, snake.data, c);
    weir_strbuf_free(&snake);
  }
  fputs("\n#ifdef __cplusplus\n}\n#endif\n#endif  // WEIR_OPS_H_\n", h);
}

int main(int argc, char** argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: weir_opgen OPS_H OPS_C\n");
    return 2;
  }
  const weir_registry_t* registry = NULL;
  if (weir_status_report(weir_registry_builtin(&registry))) return 1;
  FILE* h = fopen(argv[1], "w");
  FILE* c = fopen(argv[2], "w");
  if (!h || !c) {
    fprintf(stderr, "weir_opgen: cannot write %s or %s: %s\n", argv[1], argv[2], strerror(errno));
    return 1;
  }
  print_all(registry, h, c);
  bool failed = fclose(h) != 0;
  failed |= fclose(c) != 0;
  return failed;
}
