// functions.c — Importing, functions, gradients, loops, constants.
#include "check.h"

static TF_Session* open_session(TF_Graph* g, TF_Status* s) {
  TF_SessionOptions* options = TF_NewSessionOptions();
  TF_Session* session = TF_NewSession(g, options, s);
  TF_DeleteSessionOptions(options);
  OK(s);
  return session;
}

// Feeds |value| to |in|, prints |count| fetches.
static void fetch(TF_Graph* g, TF_Status* s, const char* what, TF_Output in, TF_Tensor* value,
                  const TF_Output* fetches, int count) {
  TF_Session* session = open_session(g, s);
  TF_Tensor* results[8];
  TF_SessionRun(session, NULL, &in, &value, value ? 1 : 0, fetches, results, count, NULL, 0, NULL,
                s);
  if (TF_GetCode(s) != TF_OK) printf("%s fails: %s\n", what, TF_Message(s));
  for (int i = 0; TF_GetCode(s) == TF_OK && i < count; ++i) {
    if (TF_TensorType(results[i]) == TF_INT32)
      printf("%s %d: %d\n", what, i, *(int32_t*)TF_TensorData(results[i]));
    else print_floats(what, results[i]);
    TF_DeleteTensor(results[i]);
  }
  OK(s);
  TF_DeleteTensor(value);
  TF_DeleteSession(session, s);
}

static void importing(TF_Status* s) {
  TF_Graph* g = TF_NewGraph();
  TF_Operation* feed = placeholder(g, s, "feed", TF_FLOAT);
  TF_Operation* neg = unary(g, s, "Neg", "neg", out(feed, 0));
  TF_Operation* sum = binary(g, s, "Add", "sum", out(neg, 0), out(feed, 0));
  (void)sum;
  OK(s);
  TF_Buffer* def = TF_NewBuffer();
  TF_GraphToGraphDef(g, def, s);
  OK(s);
  TF_GraphToGraphDef(g, def, s);
  say("buffer that is full", s, 1);
  TF_ImportGraphDefOptions* options = TF_NewImportGraphDefOptions();
  TF_GraphImportGraphDef(g, def, options, s);
  say("names are taken", s, 0);
  TF_ImportGraphDefOptionsSetPrefix(options, "imported");
  TF_ImportGraphDefOptionsAddInputMapping(options, "feed", 0, out(neg, 0));
  TF_ImportGraphDefOptionsAddInputMapping(options, "nowhere", 3, out(neg, 0));
  TF_ImportGraphDefOptionsAddControlDependency(options, feed);
  TF_ImportGraphDefOptionsAddReturnOutput(options, "sum", 0);
  TF_ImportGraphDefOptionsAddReturnOutput(options, "feed", 0);
  TF_ImportGraphDefOptionsAddReturnOperation(options, "neg");
  printf("returns %d %d\n", TF_ImportGraphDefOptionsNumReturnOutputs(options),
         TF_ImportGraphDefOptionsNumReturnOperations(options));
  TF_ImportGraphDefResults* results = TF_GraphImportGraphDefWithResults(g, def, options, s);
  OK(s);
  int count = 0;
  TF_Output* outputs = NULL;
  TF_Operation** operations = NULL;
  TF_ImportGraphDefResultsReturnOutputs(results, &count, &outputs);
  for (int i = 0; i < count; ++i)
    printf("output %s:%d\n", TF_OperationName(outputs[i].oper), outputs[i].index);
  const TF_Output imported_sum = outputs[0];
  TF_ImportGraphDefResultsReturnOperations(results, &count, &operations);
  printf("operation %s, controls %d\n", TF_OperationName(operations[0]),
         TF_OperationNumControlInputs(operations[0]));
  const char** names = NULL;
  int* indexes = NULL;
  TF_ImportGraphDefResultsMissingUnusedInputMappings(results, &count, &names, &indexes);
  for (int i = 0; i < count; ++i) printf("missing %s:%d\n", names[i], indexes[i]);
  TF_DeleteImportGraphDefResults(results);
  fetch(g, s, "imported", out(feed, 0), float_scalar(5), &imported_sum, 1);
  TF_DeleteImportGraphDefOptions(options);
  options = TF_NewImportGraphDefOptions();
  TF_ImportGraphDefOptionsSetUniquifyNames(options, 1);
  TF_ImportGraphDefOptionsSetDefaultDevice(options, "/device:CPU:0");
  TF_GraphImportGraphDef(g, def, options, s);
  OK(s);
  TF_Operation* numbered = TF_GraphOperationByName(g, "sum_1");
  printf("uniquified %d on %s\n", numbered != NULL, TF_OperationDevice(numbered));
  TF_ImportGraphDefOptionsAddReturnOutput(options, "nowhere", 0);
  TF_GraphImportGraphDef(g, def, options, s);
  say("return that is not there", s, 1);
  TF_Buffer damaged = {"\x0a\xff", 2, NULL};
  TF_GraphImportGraphDef(g, &damaged, options, s);
  say("damaged", s, 0);
  TF_DeleteImportGraphDefOptions(options);
  TF_DeleteBuffer(def);
  TF_Buffer* versions = TF_NewBuffer();
  TF_GraphVersions(g, versions, s);
  OK(s);
  printf("versions %zu bytes\n", versions->length);
  TF_DeleteBuffer(versions);
  TF_Buffer* op = TF_NewBuffer();
  TF_GraphGetOpDef(g, "NoSuchOp", op, s);
  say("no such op", s, 0);
  TF_GraphGetOpDef(g, "Add", op, s);
  say("op", s, 0);
  TF_DeleteBuffer(op);
  TF_DeleteGraph(g);
}

static void functions(TF_Status* s) {
  TF_Graph* body = TF_NewGraph();
  TF_Operation* x = placeholder(body, s, "X1", TF_FLOAT);
  TF_Operation* y = placeholder(body, s, "y", TF_FLOAT);
  TF_Operation* product = binary(body, s, "Mul", "product", out(x, 0), out(y, 0));
  TF_Operation* difference = binary(body, s, "Sub", "difference", out(product, 0), out(y, 0));
  OK(s);
  const TF_Output inputs[] = {out(x, 0), out(y, 0)};
  const TF_Output outputs[] = {out(product, 0), out(difference, 0)};
  const char* names[] = {"first", "second"};
  const char* same[] = {"first", "first"};
  const TF_Output twice[] = {out(x, 0), out(x, 0)};
  TF_GraphToFunction(body, "F", 0, -1, NULL, 2, inputs, 2, outputs, same, NULL, NULL, s);
  say("names twice", s, 1);
  TF_GraphToFunction(body, "F", 0, -1, NULL, 2, twice, 2, outputs, NULL, NULL, NULL, s);
  say("inputs twice", s, 0);
  TF_GraphToFunction(body, "F", 0, 1, (const TF_Operation* const*)&difference, 1, inputs, 1,
                     outputs + 1, NULL, NULL, NULL, s);
  say("not in the body", s, 0);
  TF_Function* f = TF_GraphToFunction(body, "F", 0, -1, NULL, 2, inputs, 2, outputs, names, NULL,
                                      "what it is", s);
  OK(s);
  printf("%s\n", TF_FunctionName(f));
  TF_Buffer* def = TF_NewBuffer();
  TF_FunctionToFunctionDef(f, def, s);
  OK(s);
  TF_Function* copy = TF_FunctionImportFunctionDef(def->data, def->length, s);
  OK(s);
  printf("copy %s\n", TF_FunctionName(copy));
  const char attr[] = {40, 1};  // b: true
  TF_FunctionSetAttrValueProto(copy, "_noinline", attr, 2, s);
  OK(s);
  TF_Buffer* value = TF_NewBuffer();
  TF_FunctionGetAttrValueProto(copy, "_noinline", value, s);
  printf("attr %zu bytes %d\n", value->length, ((const char*)value->data)[1]);
  TF_FunctionGetAttrValueProto(copy, "nothing", value, s);
  say("no such attr", s, 1);
  TF_DeleteBuffer(value);
  TF_DeleteBuffer(def);
  TF_FunctionImportFunctionDef("\xff", 1, s);
  say("damaged", s, 1);
  TF_Graph* g = TF_NewGraph();
  TF_GraphCopyFunction(g, NULL, NULL, s);
  say("no function", s, 0);
  TF_GraphCopyFunction(g, f, NULL, s);
  OK(s);
  TF_GraphCopyFunction(g, f, NULL, s);
  say("again", s, 0);
  TF_GraphCopyFunction(g, copy, NULL, s);
  say("another of that name", s, 0);
  TF_Function* listed[2];
  printf("functions %d %d\n", TF_GraphNumFunctions(g), TF_GraphGetFunctions(g, listed, 2, s));
  printf("%s\n", TF_FunctionName(listed[0]));
  TF_DeleteFunction(listed[0]);
  TF_Operation* a = placeholder(g, s, "a", TF_FLOAT);
  TF_Operation* call = binary(g, s, "F", "call", out(a, 0), out(a, 0));
  OK(s);
  printf("outputs %d type %s\n", TF_OperationNumOutputs(call), TF_OperationOpType(call));
  const TF_Output results[] = {out(call, 0), out(call, 1)};
  fetch(g, s, "call", out(a, 0), float_scalar(3), results, 2);
  TF_DeleteFunction(f);
  TF_DeleteFunction(copy);
  TF_DeleteGraph(body);
  TF_DeleteGraph(g);
}

static void gradients(TF_Status* s) {
  TF_Graph* g = TF_NewGraph();
  TF_Operation* x = placeholder(g, s, "x", TF_FLOAT);
  TF_Operation* square = unary(g, s, "Square", "square", out(x, 0));
  TF_Operation* cube = binary(g, s, "Mul", "cube", out(square, 0), out(x, 0));
  OK(s);
  TF_Output y = out(cube, 0), xs[] = {out(x, 0), out(square, 0)}, dy[2];
  TF_AddGradients(g, &y, 1, xs, 2, NULL, s, dy);
  OK(s);
  fetch(g, s, "gradient", out(x, 0), float_scalar(3), dy, 2);
  TF_Operation* two = constant(g, s, "two", float_scalar(2));
  TF_Output dx = out(two, 0);
  TF_AddGradientsWithPrefix(g, "mine", &y, 1, xs, 1, &dx, s, dy);
  OK(s);
  printf("under the prefix %d\n", strncmp(TF_OperationName(dy[0].oper), "mine/", 5) == 0);
  fetch(g, s, "scaled", out(x, 0), float_scalar(3), dy, 1);
  TF_AddGradientsWithPrefix(g, "mine", &y, 1, xs, 1, &dx, s, dy);
  say("prefix again", s, 0);
  TF_DeleteGraph(g);
}

static void loops(TF_Status* s) {
  TF_Graph* g = TF_NewGraph();
  TF_Operation* start = placeholder(g, s, "start", TF_INT32);
  TF_Operation* step = constant(g, s, "step", int_scalar(2));
  OK(s);
  TF_Output inputs[] = {out(start, 0), out(step, 0)}, outputs[2];
  TF_NewWhile(g, inputs, 0, s);
  say("no inputs", s, 1);
  TF_WhileParams loop = TF_NewWhile(g, inputs, 2, s);
  OK(s);
  TF_Operation* limit = constant(loop.cond_graph, s, "limit", int_scalar(100));
  loop.cond_output =
      out(binary(loop.cond_graph, s, "Less", "less", loop.cond_inputs[0], out(limit, 0)), 0);
  loop.body_outputs[0] =
      out(binary(loop.body_graph, s, "Mul", "times", loop.body_inputs[0], loop.body_inputs[1]), 0);
  TF_Operation* one = constant(loop.body_graph, s, "one", int_scalar(1));
  loop.body_outputs[1] =
      out(binary(loop.body_graph, s, "Add", "grow", loop.body_inputs[1], out(one, 0)), 0);
  loop.name = "loop";
  OK(s);
  TF_FinishWhile(&loop, s, outputs);
  OK(s);
  fetch(g, s, "loop", out(start, 0), int_scalar(1), outputs, 2);
  TF_WhileParams aborted = TF_NewWhile(g, inputs, 1, s);
  TF_AbortWhile(&aborted);
  TF_WhileParams unfinished = TF_NewWhile(g, inputs, 1, s);
  unfinished.name = "unfinished";
  TF_FinishWhile(&unfinished, s, outputs);
  say("no condition", s, 1);
  TF_DeleteGraph(g);
}

static void constants(TF_Status* s) {
  TF_Graph* g = TF_NewGraph();
  TF_Operation* x = placeholder(g, s, "x", TF_FLOAT);
  TF_Operation* three = constant(g, s, "three", float_scalar(3));
  TF_Operation* nine = unary(g, s, "Square", "nine", out(three, 0));
  TF_Operation* open = binary(g, s, "Add", "open", out(nine, 0), out(x, 0));
  TF_Tensor* value = NULL;
  printf("constant %d", TF_TryEvaluateConstant(g, out(nine, 0), &value, s));
  say("", s, 0);
  print_floats("value", value);
  TF_DeleteTensor(value);
  printf("constant %d", TF_TryEvaluateConstant(g, out(open, 0), &value, s));
  say("", s, 0);
  TF_DeleteGraph(g);
}

int main(void) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  TF_Status* s = TF_NewStatus();
  importing(s);
  functions(s);
  gradients(s);
  loops(s);
  constants(s);
  TF_DeleteStatus(s);
  return 0;
}
