// experimental.c — Questions about ops, texts of graphs, and what is left of
// c_api_experimental.h; listeners of what is printed.
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include "graph/graph_internal.h"
#include "ops/builtin_ops.h"
#include "ops/log/listener.h"
#include "tensorflow/c/c_api_experimental.h"
#include "tensorflow/function.h"
#include "tensorflow/internal.h"
#include "wire/text.h"
#include "wire/wire.h"

// ---- questions about ops ----

// NULL after an error.
static const weir_op_t* find_op(const char* name, TF_Status* status) {
  const weir_registry_t* registry = NULL;
  weir_status_t* failure = weir_registry_builtin(&registry);
  const weir_op_t* op = failure ? NULL : weir_registry_find(registry, weir_view_of(name));
  if (!failure && !op) failure = WEIR_STATUS(NOT_FOUND, "Op type not registered '%s'", name);
  tf_status_take(status, failure);
  return op;
}

int TF_OpIsStateful(const char* op_type, TF_Status* status) {
  const weir_op_t* op = find_op(op_type, status);
  return op && (op->flags & WEIR_OP_STATEFUL);
}

const char* TF_GetNumberAttrForOpListInput(const char* op_name, int input_index,
                                           TF_Status* status) {
  const weir_op_t* op = find_op(op_name, status);
  if (!op) return NULL;
  if (input_index >= 0 && input_index < op->input_count) return op->inputs[input_index].number_attr;
  tf_status_take(status, WEIR_STATUS(INVALID_ARGUMENT, "%s has %d inputs, not one of index %d",
                                     op_name, op->input_count, input_index));
  return NULL;
}

// ---- texts ----

// The message as text, by malloc; NULL when that cannot be.
static char* print(const weir_message_t* message, weir_view_t bytes, size_t* len) {
  weir_strbuf_t text = {0};
  weir_status_t* status = weir_text_print(message, bytes, &text);
  if (!status) status = weir_strbuf_finish(&text);
  char* copy = status ? NULL : strdup(text.data ? text.data : "");
  *len = copy ? text.size : 0;
  weir_status_destroy(status);
  weir_strbuf_free(&text);
  return copy;
}

const char* TF_GraphDebugString(TF_Graph* graph, size_t* len) {
  weir_strbuf_t def = {0};
  weir_status_t* status = tf_graph_to_def(graph->graph, &def);
  *len = 0;
  const char* text = status ? NULL : print(&weir_message_graph_def, weir_strbuf_view(&def), len);
  weir_status_destroy(status);
  weir_strbuf_free(&def);
  return text;
}

char* TF_FunctionDebugString(TF_Function* func, size_t* len) {
  return print(&weir_message_function_def, weir_strbuf_view(&func->def), len);
}

// ---- and ----

TF_Buffer* TF_CreateRunOptions(unsigned char enable_full_trace) {
  enum { RUN_OPTIONS_TRACE_LEVEL = 1, FULL_TRACE = 3 };
  weir_strbuf_t bytes = {0};
  if (enable_full_trace) weir_wire_put_int(&bytes, RUN_OPTIONS_TRACE_LEVEL, FULL_TRACE);
  return tf_buffer_new(&bytes);
}

void TF_MakeInternalErrorStatus(TF_Status* status, const char* errMsg) {
  TF_SetStatus(status, TF_INTERNAL, errMsg);
}

static weir_status_t* make_scalar(weir_dtype_t dtype, const void* data, size_t size,
                                  TF_Tensor** out_tensor) {
  if (!weir_dtype_is_plain(dtype) || size != weir_dtype_size(dtype))
    return WEIR_STATUS(INVALID_ARGUMENT, "%zu bytes are no element of type %d", size, (int)dtype);
  weir_tensor_t* tensor = NULL;
  WEIR_TRY(weir_tensor_create_from(dtype, 0, NULL, data, &tensor));
  *out_tensor = tf_tensor_wrap(tensor);
  return *out_tensor ? NULL : weir_out_of_memory();
}

TFE_TensorHandle* TFE_NewTensorHandleFromScalar(TF_DataType data_type, void* data, size_t len,
                                                TF_Status* status) {
  TF_Tensor* tensor = NULL;
  weir_status_t* failure = make_scalar((weir_dtype_t)data_type, data, len, &tensor);
  if (!tf_status_take(status, failure)) return NULL;
  TFE_TensorHandle* handle = TFE_NewTensorHandle(tensor, status);
  TF_DeleteTensor(tensor);
  return handle;
}

void TF_InitMain(const char* usage, int* argc, char*** argv) {
  (void)usage;
  (void)argc;
  (void)argv;
}

int TF_PickUnusedPortOrDie(void) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_ANY)}};
  socklen_t size = sizeof(address);
  const int socket_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  WEIR_CHECK(socket_fd >= 0);
  WEIR_CHECK(bind(socket_fd, (const struct sockaddr*)&address, sizeof(address)) == 0);
  WEIR_CHECK(getsockname(socket_fd, (struct sockaddr*)&address, &size) == 0);
  close(socket_fd);
  return ntohs(address.sin_port);
}

// There is no status: without memory the listener is told nothing.
void TF_RegisterLogListener(void (*listener)(const char*)) {
  (void)weir_status_report(weir_print_listen(listener));
}
