// environment.c — Files, clocks and threads of env.h; questions about ops; what graphs print.
#include <unistd.h>

#include "check.h"
#include "tensorflow/c/c_api_experimental.h"
#include "tensorflow/c/env.h"

static char path_buffer[512];
static char folder[256];
static const char* in_folder(const char* name) {
  snprintf(path_buffer, sizeof(path_buffer), "%s/%s", folder, name);
  return path_buffer;
}

static void write_file(const char* path, const char* text, TF_Status* s) {
  TF_WritableFileHandle* file = NULL;
  TF_NewWritableFile(path, &file, s);
  OK(s);
  TF_AppendWritableFile(file, text, strlen(text), s);
  OK(s);
  TF_FlushWritableFile(file, s);
  OK(s);
  TF_AppendWritableFile(file, "!", 1, s);
  TF_SyncWritableFile(file, s);
  OK(s);
  TF_CloseWritableFile(file, s);
  say("written", s, 0);
}

static void print_stat(const char* what, const char* path, TF_Status* s) {
  TF_FileStatistics stats = {0, 0, false};
  TF_FileStat(path, &stats, s);
  printf("%s: %d", what, TF_GetCode(s));
  if (TF_GetCode(s) == TF_OK) {
    const int64_t age = (int64_t)TF_NowSeconds() - stats.mtime_nsec / 1000000000;
    printf(" is directory %d length %d recent %d", stats.is_directory,
           stats.is_directory ? 0 : (int)stats.length, age >= -60 && age < 3600);
  }
  printf("\n");
}

static void list(const char* path, TF_Status* s) {
  const char* name = NULL;
  int count = 0;
  int length = 0;
  TF_StringStream* names = TF_GetChildren(path, s);
  printf("children: %d", TF_GetCode(s));
  if (TF_GetCode(s) == TF_OK) {
    while (TF_StringStreamNext(names, &name)) {
      ++count;
      length += (int)strlen(name);
    }
    printf(" %d names of %d bytes, at the end %d", count, length, name != NULL);
    TF_StringStreamDone(names);
  }
  printf("\n");
}

static void delete_all(const char* what, const char* path, TF_Status* s) {
  int64_t files = 7;
  int64_t folders = 7;
  TF_DeleteRecursively(path, &files, &folders, s);
  printf("%s: %d left %d files %d folders\n", what, TF_GetCode(s), (int)files, (int)folders);
}

static void files(TF_Status* s) {
  TF_CreateDir(folder, s);
  say("create", s, 0);
  TF_CreateDir(folder, s);
  say("create again", s, 0);
  TF_CreateDir(in_folder("a/b"), s);
  say("two levels", s, 0);
  TF_CreateDir(in_folder("below"), s);
  write_file(in_folder("below/one.txt"), "text", s);
  write_file(in_folder("two.txt"), "another text", s);
  print_stat("file", in_folder("two.txt"), s);
  print_stat("folder", folder, s);
  print_stat("nothing", in_folder("none"), s);
  list(folder, s);
  list(in_folder("none"), s);
  TF_DeleteDir(folder, s);
  say("not empty", s, 0);
  TF_DeleteDir(in_folder("none"), s);
  say("no folder", s, 0);
  TF_DeleteFile(in_folder("none"), s);
  say("no file", s, 0);
  TF_WritableFileHandle* file = NULL;
  TF_NewWritableFile(in_folder("none/file"), &file, s);
  say("no folder for it", s, 0);
  TF_DeleteFile(in_folder("two.txt"), s);
  say("delete", s, 0);
  write_file(in_folder("three"), "", s);
  delete_all("a file", in_folder("three"), s);
  delete_all("all", folder, s);
  delete_all("again", folder, s);
  print_stat("gone", folder, s);
}

static void temporary(void) {
  TF_StringStream* folders = TF_GetLocalTempDirectories();
  const char* name = NULL;
  const bool is_there = TF_StringStreamNext(folders, &name);
  printf("temporary %d ends with / %d\n", is_there, name[strlen(name) - 1] == '/');
  TF_StringStreamDone(folders);
  char* file = TF_GetTempFileName("txt");
  printf("a name for a file %d ends %s\n", file[0] == '/', file + strlen(file) - 3);
  free(file);
}

static int seen;
static void note(void* arg) { seen = *(const int*)arg; }

static void threads(TF_Status* s) {
  TF_ThreadOptions options;
  int value = 42;
  TF_DefaultThreadOptions(&options);
  printf("stack %d guard %d node %d\n", (int)options.stack_size, (int)options.guard_size,
         options.numa_node);
  TF_Thread* thread = TF_StartThread(&options, "a thread of the test", note, &value);
  TF_JoinThread(thread);
  printf("seen %d\n", seen);
  const uint64_t nanos = TF_NowNanos();
  printf("clocks agree %d %d\n", TF_NowMicros() / 1000000 - nanos / 1000000000 < 60,
         TF_NowSeconds() - nanos / 1000000000 < 60);
  printf("library %d", TF_LoadSharedLibrary("/nowhere/none.so", s) != NULL);
  say("", s, 0);
  void* itself = TF_LoadSharedLibrary("libm.so.6", s);
  OK(s);
  printf("symbol %d", TF_GetSymbolFromLibrary(itself, "cos", s) != NULL);
  say("", s, 0);
  printf("no symbol %d", TF_GetSymbolFromLibrary(itself, "no_such_symbol", s) != NULL);
  say("", s, 0);
}

static void ask_of_ops(TF_Status* s) {
  const char* ops[] = {"MatMul", "VarHandleOp", "NoSuchOp"};
  for (int i = 0; i < 3; ++i) {
    const int is_stateful = TF_OpIsStateful(ops[i], s);
    printf("%s: %d", ops[i], TF_GetCode(s) == TF_OK ? is_stateful : -1);
    say("", s, 0);
  }
  const char* attr = TF_GetNumberAttrForOpListInput("ConcatV2", 0, s);
  printf("ConcatV2's list: %s", attr ? attr : "none");
  say("", s, 0);
  attr = TF_GetNumberAttrForOpListInput("NoSuchOp", 0, s);
  printf("no op: %s", attr ? attr : "none");
  say("", s, 0);
  attr = TF_GetNumberAttrForOpListInput("ConcatV2", 9, s);
  printf("no input: %s", attr ? attr : "none");
  say("", s, 0);
  TF_MakeInternalErrorStatus(s, "a text");
  say("made", s, 1);
  TF_SetStatus(s, TF_OK, "");
  TF_Buffer* options = TF_CreateRunOptions(1);
  printf("options %d bytes, first %d %d\n", (int)options->length, ((const char*)options->data)[0],
         ((const char*)options->data)[1]);
  TF_DeleteBuffer(options);
  float value = 2.5f;
  TFE_TensorHandle* handle = TFE_NewTensorHandleFromScalar(TF_FLOAT, &value, sizeof(value), s);
  OK(s);
  TF_Tensor* tensor = TFE_TensorHandleResolve(handle, s);
  print_floats("scalar", tensor);
  TF_DeleteTensor(tensor);
  TFE_DeleteTensorHandle(handle);
  printf("a port %d\n", TF_PickUnusedPortOrDie() > 0);
}

static void hear(const char* text) { printf("heard: <%s>\n", text); }

// |stream| NULL: by Print, the older op.
static void print_to(TF_Status* s, const char* stream) {
  TF_Graph* g = TF_NewGraph();
  TF_Tensor* text = TF_AllocateTensor(TF_STRING, NULL, 0, sizeof(TF_TString));
  TF_StringInit((TF_TString*)TF_TensorData(text));
  TF_StringCopy((TF_TString*)TF_TensorData(text), "a line", 6);
  const TF_Output line = out(constant(g, s, "line", text), 0);
  TF_OperationDescription* desc = TF_NewOperation(g, stream ? "PrintV2" : "Print", "print");
  TF_AddInput(desc, line);
  if (stream) TF_SetAttrString(desc, "output_stream", stream, strlen(stream));
  if (!stream) TF_AddInputList(desc, &line, 1);
  const TF_Operation* op = TF_FinishOperation(desc, s);
  OK(s);
  TF_SessionOptions* options = TF_NewSessionOptions();
  TF_Session* session = TF_NewSession(g, options, s);
  TF_SessionRun(session, NULL, NULL, NULL, 0, NULL, NULL, 0, &op, 1, NULL, s);
  say("printed", s, 0);
  TF_DeleteSession(session, s);
  TF_DeleteSessionOptions(options);
  TF_DeleteGraph(g);
}

static void debug_strings(TF_Status* s) {
  TF_Graph* g = TF_NewGraph();
  TF_Operation* x = placeholder(g, s, "an_input", TF_FLOAT);
  TF_Operation* y = unary(g, s, "Neg", "odd [name]", out(x, 0));
  say("a name that no GraphDef has", s, 0);
  size_t size = 0;
  char* text = (char*)(uintptr_t)TF_GraphDebugString(g, &size);
  printf("text %d has its node %d\n", size == strlen(text), strstr(text, "an_input") != NULL);
  free(text);
  TF_DeleteGraph(g);
  g = TF_NewGraph();
  x = placeholder(g, s, "x", TF_FLOAT);
  y = unary(g, s, "Neg", "y", out(x, 0));
  const TF_Output input = out(x, 0);
  const TF_Output output = out(y, 0);
  TF_Function* f =
      TF_GraphToFunction(g, "negate", 0, -1, NULL, 1, &input, 1, &output, NULL, NULL, "", s);
  OK(s);
  text = TF_FunctionDebugString(f, &size);
  printf("text %d has its name %d\n", size == strlen(text), strstr(text, "negate") != NULL);
  free(text);
  TF_DeleteFunction(f);
  TF_DeleteGraph(g);
}

int main(void) {
  TF_Status* s = TF_NewStatus();
  snprintf(folder, sizeof(folder), "environment_%d", (int)getpid());
  files(s);
  temporary();
  threads(s);
  ask_of_ops(s);
  debug_strings(s);
  TF_RegisterLogListener(hear);
  const char* streams[] = {"stdout", "stderr", "log(info)", NULL};
  for (int i = 0; i < 4; ++i) print_to(s, streams[i]);
  TF_DeleteStatus(s);
  return 0;
}
