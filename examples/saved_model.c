// saved_model.c — Runs a model from a file on an array of NumPy's: saved_model MODEL X.npy
#include <stdio.h>
#include <weir/weir.h>

// Feeds |x| to the model's first input and prints its first output.
static weir_status_t* run(weir_model_t* model, weir_tensor_t* x) {
  const weir_signature_t* signature = weir_model_find_signature(model, NULL);
  if (!signature || signature->input_count == 0 || signature->output_count == 0) {
    fprintf(stderr, "no signature 'serving_default' with inputs and outputs\n");
    return NULL;
  }
  weir_named_tensor_t input = {signature->inputs[0].name, x};
  weir_named_tensor_t output = {signature->outputs[0].name, NULL};
  char* text = NULL;
  weir_status_t* status = weir_model_run(model, signature->name, &input, 1, &output, 1, NULL);
  if (!status) status = weir_tensor_to_text(output.tensor, 10, &text);
  if (!status) printf("%s = %s\n", output.name, text);
  weir_buffer_free(text);
  weir_tensor_release(output.tensor);
  return status;
}

int main(int argc, char** argv) {
  weir_model_t* model = NULL;
  weir_tensor_t* x = NULL;
  if (argc != 3) {
    fprintf(stderr, "usage: %s MODEL X.npy\n", argv[0]);
    return 2;
  }
  weir_status_t* status = weir_model_load(argv[1], NULL, &model);
  if (!status) status = weir_tensor_load_npy(argv[2], &x);
  if (!status) status = run(model, x);
  weir_tensor_release(x);
  weir_model_destroy(model);
  return weir_status_report(status);
}
