// saved_model.c — A SavedModel and its checkpoint; a server and a session on it. argv[1]: the
// folder.
#include "check.h"
#include "tensorflow/c/c_api_experimental.h"

static void load(const char* folder, TF_Status* s) {
  const char* tags[] = {"serve"};
  const char* wrong[] = {"nonsense"};
  TF_SessionOptions* options = TF_NewSessionOptions();
  TF_Graph* g = TF_NewGraph();
  TF_LoadSessionFromSavedModel(options, NULL, folder, wrong, 1, g, NULL, s);
  say("no such tags", s, 0);
  TF_LoadSessionFromSavedModel(options, NULL, "/nowhere", tags, 1, g, NULL, s);
  say("no such folder", s, 0);
  TF_Buffer* meta = TF_NewBuffer();
  TF_Session* session = TF_LoadSessionFromSavedModel(options, NULL, folder, tags, 1, g, meta, s);
  OK(s);
  printf("meta graph %d\n", meta->length > 0);
  TF_DeleteBuffer(meta);
  TF_LoadSessionFromSavedModel(options, NULL, folder, tags, 1, g, NULL, s);
  say("graph is full", s, 1);
  TF_Output in = out(TF_GraphOperationByName(g, "serving_default_x"), 0);
  TF_Output fetch = out(TF_GraphOperationByName(g, "StatefulPartitionedCall"), 0);
  TF_Tensor* value = float_scalar(4);
  TF_Tensor* result = NULL;
  for (int i = 0; i < 2; ++i) {
    TF_SessionRun(session, NULL, &in, &value, 1, &fetch, &result, 1, NULL, 0, NULL, s);
    OK(s);
    print_floats("result", result);
    TF_DeleteTensor(result);
  }
  TF_DeleteTensor(value);
  TF_CloseSession(session, s);
  TF_DeleteSession(session, s);
  OK(s);
  TF_DeleteGraph(g);
  TF_DeleteSessionOptions(options);
}

static void read_checkpoint(const char* folder, TF_Status* s) {
  char prefix[512];
  snprintf(prefix, sizeof(prefix), "%s/variables/variables", folder);
  TF_CheckpointReader* reader = TF_NewCheckpointReader(prefix, s);
  OK(s);
  const char* name = "weight/.ATTRIBUTES/VARIABLE_VALUE";
  printf("has %d %d, type %d, rank %d\n", TF_CheckpointReaderHasTensor(reader, name),
         TF_CheckpointReaderHasTensor(reader, "nothing"),
         TF_CheckpointReaderGetVariableDataType(reader, name),
         TF_CheckpointReaderGetVariableNumDims(reader, name));
  TF_Tensor* value = TF_CheckpointReaderGetTensor(reader, name, s);
  OK(s);
  print_floats("weight", value);
  TF_DeleteTensor(value);
  TF_DeleteCheckpointReader(reader);
  TF_NewCheckpointReader("/nowhere", s);
  say("no checkpoint", s, 0);
}

static void put(char* def, int* size, int field, const char* bytes, int count) {
  def[(*size)++] = (char)(field << 3 | 2);
  def[(*size)++] = (char)count;
  memcpy(def + *size, bytes, (size_t)count);
  *size += count;
}

// A cluster of one task, on any port.
static void serve(TF_Status* s) {
  char entry[64], job[64], cluster[64], def[96];
  int entry_size = 0, job_size = 0, cluster_size = 0, size = 0;
  entry[entry_size++] = 8;  // key: 0
  entry[entry_size++] = 0;
  put(entry, &entry_size, 2, "localhost:0", 11);
  put(job, &job_size, 1, "local", 5);
  put(job, &job_size, 2, entry, entry_size);
  put(cluster, &cluster_size, 1, job, job_size);
  put(def, &size, 1, cluster, cluster_size);
  put(def, &size, 2, "local", 5);
  put(def, &size, 5, "grpc", 4);
  TF_NewServer("\xff", 1, s);
  say("no ServerDef", s, 1);
  TF_Server* server = TF_NewServer(def, (size_t)size, s);
  OK(s);
  TF_ServerStart(server, s);
  OK(s);
  printf("%.17s\n", TF_ServerTarget(server));
  TF_Graph* g = TF_NewGraph();
  TF_Operation* x = placeholder(g, s, "x", TF_FLOAT);
  TF_Operation* y = unary(g, s, "Square", "y", out(x, 0));
  OK(s);
  TF_SessionOptions* options = TF_NewSessionOptions();
  TF_SetTarget(options, TF_ServerTarget(server));
  TF_Session* session = TF_NewSession(g, options, s);
  OK(s);
  TF_Output in = out(x, 0), fetch = out(y, 0);
  TF_Tensor* value = float_scalar(7);
  TF_Tensor* result = NULL;
  TF_SessionRun(session, NULL, &in, &value, 1, &fetch, &result, 1, NULL, 0, NULL, s);
  OK(s);
  print_floats("from the server", result);
  TF_DeleteTensor(result);
  TF_DeleteTensor(value);
  TF_DeleteSession(session, s);
  TF_DeleteSessionOptions(options);
  TF_DeleteGraph(g);
  // Neither library's server is deleted here: TensorFlow's cannot be.
}

int main(int argc, char** argv) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  TF_Status* s = TF_NewStatus();
  if (argc < 2) return 1;
  load(argv[1], s);
  read_checkpoint(argv[1], s);
  serve(s);
  TF_DeleteStatus(s);
  return 0;
}
