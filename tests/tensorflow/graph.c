// graph.c — Building graphs, looking into them, running them, errors on the way.
#include "check.h"

static void build_errors(TF_Graph* g, TF_Status* s, TF_Operation* a, TF_Operation* i) {
  TF_FinishOperation(TF_NewOperation(g, "NoSuchOp", "n1"), s);
  say("unknown op", s, 0);
  binary(g, s, "Add", "sum", out(a, 0), out(a, 0));
  OK(s);
  binary(g, s, "Add", "sum", out(a, 0), out(a, 0));
  say("duplicate", s, 1);
  binary(g, s, "Add", "mixed", out(a, 0), out(i, 0));
  say("mixed types", s, 0);
  unary(g, s, "Add", "one_input", out(a, 0));
  say("too few inputs", s, 1);
  unary(g, s, "AddN", "no_list", out(a, 0));
  say("single for list", s, 1);
  TF_OperationDescription* desc = TF_NewOperation(g, "Neg", "list");
  TF_Output list[] = {out(a, 0), out(a, 0)};
  TF_AddInputList(desc, list, 2);
  TF_FinishOperation(desc, s);
  say("list for single", s, 1);
  desc = TF_NewOperation(g, "Placeholder", "no_dtype");
  TF_FinishOperation(desc, s);
  say("attr missing", s, 0);
  desc = TF_NewOperation(g, "Placeholder", "bad_attr");
  TF_SetAttrType(desc, "dtype", TF_FLOAT);
  TF_SetAttrInt(desc, "nonsense", 3);
  TF_FinishOperation(desc, s);
  say("attr too many", s, 0);
  printf("lookup %d\n", TF_GraphOperationByName(g, "mixed") == NULL);
}

static void inspect(TF_Graph* g, TF_Status* s, TF_Operation* a) {
  TF_OperationDescription* desc = TF_NewOperation(g, "Split", "split");
  TF_Operation* axis = constant(g, s, "axis", int_scalar(0));
  TF_AddInput(desc, out(axis, 0));
  TF_AddInput(desc, out(a, 0));
  TF_SetAttrInt(desc, "num_split", 3);
  TF_AddControlInput(desc, TF_GraphOperationByName(g, "sum"));
  TF_SetDevice(desc, "/device:CPU:0");
  TF_ColocateWith(desc, a);
  TF_Operation* split = TF_FinishOperation(desc, s);
  OK(s);
  printf("%s %s %s in %d out %d ctl %d\n", TF_OperationName(split), TF_OperationOpType(split),
         TF_OperationDevice(split), TF_OperationNumInputs(split), TF_OperationNumOutputs(split),
         TF_OperationNumControlInputs(split));
  printf("lists %d", TF_OperationOutputListLength(split, "output", s));
  printf(" %d", TF_OperationInputListLength(split, "value", s));
  OK(s);
  TF_OperationInputListLength(split, "nothing", s);
  say(" none", s, 0);
  TF_OperationGetAttrMetadata(split, "_class", s);
  say("an earlier error sticks", s, 0);
  TF_SetStatus(s, TF_OK, "");
  TF_Input in = {split, 1};
  printf("reads %s:%d type %d out type %d\n", TF_OperationName(TF_OperationInput(in).oper),
         TF_OperationInput(in).index, TF_OperationInputType(in),
         TF_OperationOutputType(out(split, 2)));
  printf("consumers of a: %d\n", TF_OperationOutputNumConsumers(out(a, 0)));
  TF_Input readers[8];
  int count = TF_OperationOutputConsumers(out(a, 0), readers, 8);
  for (int k = 0; k < count; ++k)
    printf("  %s:%d\n", TF_OperationName(readers[k].oper), readers[k].index);
  TF_Operation* ops[4];
  TF_Operation* sum = TF_GraphOperationByName(g, "sum");
  count = TF_OperationGetControlInputs(split, ops, 4);
  printf("control %d %s, back %d", count, TF_OperationName(ops[0]),
         TF_OperationNumControlOutputs(sum));
  TF_OperationGetControlOutputs(sum, ops, 4);
  printf(" %s\n", TF_OperationName(ops[0]));
  TF_AttrMetadata m = TF_OperationGetAttrMetadata(split, "_class", s);
  OK(s);
  printf("_class list %d of %lld, type %d, total %lld\n", m.is_list, (long long)m.list_size, m.type,
         (long long)m.total_size);
  size_t pos = 0;
  for (TF_Operation* op; (op = TF_GraphNextOperation(g, &pos));)
    printf("%s %zu ", TF_OperationName(op), pos);
  printf("\n");
}

static void shapes(TF_Graph* g, TF_Status* s, TF_Operation* a) {
  int64_t dims[4] = {7, 7, 7, 7};
  printf("rank %d\n", TF_GraphGetTensorNumDims(g, out(a, 0), s));
  const int64_t some[] = {3, -1}, more[] = {-1, 2}, other[] = {4, 2};
  TF_GraphSetTensorShape(g, out(a, 0), some, 2, s);
  OK(s);
  TF_GraphGetTensorShape(g, out(a, 0), dims, 2, s);
  printf("rank %d [%lld %lld]\n", TF_GraphGetTensorNumDims(g, out(a, 0), s), (long long)dims[0],
         (long long)dims[1]);
  TF_GraphSetTensorShape(g, out(a, 0), more, 2, s);
  TF_GraphGetTensorShape(g, out(a, 0), dims, 2, s);
  printf("[%lld %lld]\n", (long long)dims[0], (long long)dims[1]);
  TF_GraphSetTensorShape(g, out(a, 0), other, 2, s);
  say("contradiction", s, 0);
  TF_GraphGetTensorShape(g, out(a, 0), dims, 3, s);
  say("wrong rank", s, 1);
}

static void run(TF_Graph* g, TF_Status* s, TF_Operation* a) {
  TF_SessionOptions* options = TF_NewSessionOptions();
  TF_SetConfig(options, "\xff\xff", 2, s);
  say("bad config", s, 1);
  TF_Session* session = TF_NewSession(g, options, s);
  OK(s);
  const int64_t dims[] = {3, 2};
  const float values[] = {1, 2, 3, 4, 5, 6};
  TF_Tensor* fed = tensor_of(TF_FLOAT, dims, 2, values, sizeof(values));
  TF_Output in = out(a, 0);
  TF_Operation* sum = TF_GraphOperationByName(g, "sum");
  TF_Output fetch[] = {out(sum, 0), out(TF_GraphOperationByName(g, "split"), 1)};
  TF_Tensor* results[2];
  TF_SessionRun(session, NULL, &in, &fed, 1, fetch, results, 2, NULL, 0, NULL, s);
  OK(s);
  print_floats("sum", results[0]);
  print_floats("split", results[1]);
  TF_DeleteTensor(results[0]);
  TF_DeleteTensor(results[1]);
  TF_SessionRun(session, NULL, NULL, NULL, 0, fetch, results, 1, NULL, 0, NULL, s);
  say("not fed", s, 0);
  printf("no result %d\n", results[0] == NULL);
  TF_Tensor* wrong = int_scalar(1);
  TF_SessionRun(session, NULL, &in, &wrong, 1, fetch, results, 1, NULL, 0, NULL, s);
  say("wrong type", s, 0);
  TF_DeleteTensor(wrong);
  TF_SessionRun(session, NULL, &in, &fed, 1, NULL, NULL, 0, (const TF_Operation* const*)&sum, 1,
                NULL, s);
  say("target", s, 0);
  TF_Buffer bad = {"\xff\xff", 2, NULL};
  TF_SessionRun(session, &bad, &in, &fed, 1, fetch, results, 1, NULL, 0, NULL, s);
  say("bad run options", s, 0);
  const char traced[] = {8, 3};
  TF_Buffer trace = {traced, 2, NULL};
  TF_Buffer* metadata = TF_NewBuffer();
  TF_SessionRun(session, &trace, &in, &fed, 1, fetch, results, 1, NULL, 0, metadata, s);
  say("trace", s, 0);
  printf("has metadata %d\n", metadata->length > 0);
  TF_DeleteTensor(results[0]);
  TF_SessionRun(session, &trace, &in, &fed, 1, fetch, results, 1, NULL, 0, metadata, s);
  say("metadata twice", s, 0);
  TF_DeleteTensor(results[0]);
  TF_DeleteBuffer(metadata);
  TF_DeviceList* devices = TF_SessionListDevices(session, s);
  OK(s);
  printf("devices %d %s %s\n", TF_DeviceListCount(devices), TF_DeviceListName(devices, 0, s),
         TF_DeviceListType(devices, 0, s));
  TF_DeviceListName(devices, 9, s);
  say("no such device", s, 0);
  TF_DeleteDeviceList(devices);
  TF_CloseSession(session, s);
  OK(s);
  TF_SessionRun(session, NULL, &in, &fed, 1, fetch, results, 1, NULL, 0, NULL, s);
  say("closed", s, 1);
  TF_DeleteSession(session, s);
  OK(s);
  TF_DeleteTensor(fed);
  TF_DeleteSessionOptions(options);
}

static void partial(TF_Graph* g, TF_Status* s) {
  TF_Operation* x = placeholder(g, s, "px", TF_FLOAT);
  TF_Operation* y = placeholder(g, s, "py", TF_FLOAT);
  TF_Operation* first = unary(g, s, "Neg", "pneg", out(x, 0));
  TF_Operation* second = binary(g, s, "Mul", "pmul", out(first, 0), out(y, 0));
  OK(s);
  TF_SessionOptions* options = TF_NewSessionOptions();
  TF_Session* session = TF_NewSession(g, options, s);
  TF_DeleteSessionOptions(options);
  const TF_Output feeds[] = {out(x, 0), out(y, 0)}, fetches[] = {out(first, 0), out(second, 0)};
  const char* handle = NULL;
  TF_SessionPRunSetup(session, feeds, 2, fetches, 2, NULL, 0, &handle, s);
  OK(s);
  TF_Tensor* value = float_scalar(3);
  TF_Tensor* result = NULL;
  TF_SessionPRun(session, handle, feeds, &value, 1, fetches, &result, 1, NULL, 0, s);
  OK(s);
  print_floats("first", result);
  TF_DeleteTensor(result);
  TF_SessionPRun(session, handle, feeds + 1, &value, 1, fetches + 1, &result, 1, NULL, 0, s);
  OK(s);
  print_floats("second", result);
  TF_DeleteTensor(result);
  TF_SessionPRun(session, "nonsense", feeds + 1, &value, 1, fetches + 1, &result, 1, NULL, 0, s);
  say("no such handle", s, 0);
  TF_DeletePRunHandle(handle);
  TF_DeleteTensor(value);
  TF_DeleteSession(session, s);
}

static void text(TF_Graph* g, TF_Status* s) {
  TF_Operation* a = placeholder(g, s, "sa", TF_STRING);
  TF_OperationDescription* desc = TF_NewOperation(g, "StringJoin", "join");
  const TF_Output both[] = {out(a, 0), out(a, 0)};
  TF_AddInputList(desc, both, 2);
  TF_SetAttrString(desc, "separator", "--", 2);
  TF_Operation* join = TF_FinishOperation(desc, s);
  OK(s);
  const int64_t dims[] = {3};
  const char* words[] = {"", "short", "long enough for memory of its own"};
  TF_Tensor* t = TF_AllocateTensor(TF_STRING, dims, 1, 3 * sizeof(TF_TString));
  TF_TString* elements = TF_TensorData(t);
  for (int k = 0; k < 3; ++k) {
    TF_StringInit(&elements[k]);
    TF_StringCopy(&elements[k], words[k], strlen(words[k]));
  }
  TF_SessionOptions* options = TF_NewSessionOptions();
  TF_Session* session = TF_NewSession(g, options, s);
  TF_DeleteSessionOptions(options);
  const TF_Output in = out(a, 0), fetch = out(join, 0);
  TF_Tensor* result = NULL;
  TF_SessionRun(session, NULL, &in, &t, 1, &fetch, &result, 1, NULL, 0, NULL, s);
  OK(s);
  const TF_TString* joined = TF_TensorData(result);
  for (int k = 0; k < 3; ++k)
    printf("'%.*s'\n", (int)TF_StringGetSize(&joined[k]), TF_StringGetDataPointer(&joined[k]));
  for (int k = 0; k < 3; ++k) TF_StringDealloc(&elements[k]);
  TF_DeleteTensor(t);
  TF_DeleteTensor(result);
  TF_DeleteSession(session, s);
}

int main(void) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  TF_Status* s = TF_NewStatus();
  TF_Graph* g = TF_NewGraph();
  TF_Operation* a = placeholder(g, s, "a", TF_FLOAT);
  TF_Operation* i = placeholder(g, s, "i", TF_INT32);
  OK(s);
  build_errors(g, s, a, i);
  inspect(g, s, a);
  shapes(g, s, a);
  run(g, s, a);
  partial(g, s);
  text(g, s);
  TF_SessionOptions* options = TF_NewSessionOptions();
  TF_Session* session = TF_NewSession(g, options, s);
  TF_DeleteSessionOptions(options);
  TF_DeleteGraph(g);  // before its session
  TF_DeleteSession(session, s);
  OK(s);
  TF_DeleteStatus(s);
  return 0;
}
