// print.c — Print, PrintV2: text on a stream as a step runs.
#include <stdio.h>

#include "file/roots.h"
#include "op/grad_ctx.h"
#include "op/kernel.h"
#include "op/shape_ctx.h"
#include "ops/log/listener.h"
#include "ops/string/summarize.h"

// Writes in one call, so that lines of concurrent steps do not mix.
static void write_text(FILE* stream, const weir_strbuf_t* text) {
  if (text->size > 0) fwrite(text->data, 1, text->size, stream);
  fflush(stream);
}

// ---- Print ----

typedef struct print_state_t {
  atomic_llong count;  // times printed
} print_state_t;

static weir_status_t* print_cpu(weir_kernel_ctx_t* ctx) {
  print_state_t* state = ctx->state;
  weir_attrs_t attrs = weir_kernel_attrs(ctx);
  int64_t first_n = weir_attrs_int(attrs, "first_n");
  // Relaxed: a counter, nothing more.
  bool is_quiet =
      first_n >= 0 && atomic_fetch_add_explicit(&state->count, 1, memory_order_relaxed) >= first_n;
  if (!is_quiet) {
    weir_strbuf_t text = {0};
    weir_view_t message = weir_attrs_string(attrs, "message");
    weir_strbuf_append(&text, message.data, message.size);
    for (int i = 1; i < ctx->input_count; ++i) {
      weir_strbuf_putc(&text, '[');
      weir_tensor_summarize(weir_kernel_input(ctx, i), weir_attrs_int(attrs, "summarize"), &text);
      weir_strbuf_putc(&text, ']');
    }
    weir_strbuf_putc(&text, '\n');
    weir_status_t* status = weir_strbuf_finish(&text);
    if (!status) write_text(stderr, &text);
    weir_strbuf_free(&text);
    WEIR_TRY(status);
  }
  weir_kernel_pass(ctx, 0, 0);
  return NULL;
}

static weir_status_t* print_grad(weir_grad_ctx_t* g) {
  return weir_grad_set_value(g, 0, weir_grad_dy_value(g, 0));
}

// ---- PrintV2 ----

static weir_status_t* print_v2_shape(weir_shape_ctx_t* ctx) {
  return weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 0, NULL);
}

static weir_status_t* print_to_file(weir_view_t path, const weir_strbuf_t* text) {
  char* name = weir_strndup(path.data, path.size);
  if (!name) return weir_out_of_memory();
  weir_status_t* status = weir_roots_check(name, WEIR_ROOTS_OPEN);
  FILE* file = status ? NULL : fopen(name, "a");
  if (file) {
    write_text(file, text);
    fclose(file);
  } else if (!status) {
    status = WEIR_STATUS(UNKNOWN, "cannot open '%s' to print to it", name);
  }
  weir_free(name);
  return status;
}

static weir_status_t* print_to(weir_view_t stream, const weir_strbuf_t* text) {
  if (weir_view_starts_with(stream, "file://")) {
    return print_to_file(weir_view(stream.data + 7, stream.size - 7), text);
  }
  bool is_log = weir_view_starts_with(stream, "log(");
  const bool is_out = weir_view_is(stream, "stdout");
  if (is_out || is_log || weir_view_is(stream, "stderr")) {
    if (!weir_print_tell(text->data ? text->data : "")) write_text(is_out ? stdout : stderr, text);
  } else {
    return WEIR_STATUS(INVALID_ARGUMENT, "Unknown output stream: %.*s", WEIR_VIEW_ARG(stream));
  }
  return NULL;
}

static weir_status_t* print_v2_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* input = weir_kernel_input(ctx, 0);
  if (input->rank != 0) {
    char shape[WEIR_SHAPE_TEXT_SIZE];
    return WEIR_STATUS(INVALID_ARGUMENT, "Input is expected to be scalar, but got %s",
                       weir_tensor_shape_text(input, shape));
  }
  weir_strbuf_t text = {0};
  weir_view_t line = weir_string_view(input->data);
  weir_view_t end = weir_attrs_string(weir_kernel_attrs(ctx), "end");
  weir_strbuf_append(&text, line.data, line.size);
  weir_strbuf_append(&text, end.data, end.size);
  weir_status_t* status = weir_strbuf_finish(&text);
  if (!status) status = print_to(weir_attrs_string(weir_kernel_attrs(ctx), "output_stream"), &text);
  weir_strbuf_free(&text);
  return status;
}

const weir_op_module_t weir_ops_log_print = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "Print",
         .attrs = "T: type; U: list(type) >= 0; message: string = ''; first_n: int = -1; "
                  "summarize: int = 3",
         .inputs = "input: T; data: U",
         .outputs = "output: T",
         .flags = WEIR_OP_VIEW | WEIR_OP_STATEFUL,
         .summary = "Returns its input and prints the other inputs.",
         .infer_shape = weir_shape_fn_unchanged,
         .build_grad = print_grad,
         .kernels = WEIR_CPU_KERNEL(.compute = print_cpu, .state_size = sizeof(print_state_t))},
        {.name = "PrintV2",
         .attrs = "output_stream: string = 'stderr'; end: string = '\\n'",
         .inputs = "input: string",
         .flags = WEIR_OP_STATEFUL,
         .summary = "Prints a string.",
         .infer_shape = print_v2_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = print_v2_cpu)},
        {0}}};
