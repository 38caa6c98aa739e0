// vocab_remapping.c — GenerateVocabRemapping: where the words of one vocabulary are in another.
#include "op/kernel.h"
#include "op/shape_ctx.h"
#include "ops/table/text_file.h"

typedef struct remapping_t {
  int64_t offset;  // of the first line of the new vocabulary that is wanted
  int64_t count;   // of lines wanted
  int64_t old_size;
} remapping_t;

static weir_status_t* remapping_init(const weir_kernel_init_t* init, void* state) {
  remapping_t* self = state;
  self->offset = weir_attrs_int(init->node->attrs, "new_vocab_offset");
  self->count = weir_attrs_int(init->node->attrs, "num_new_vocab");
  self->old_size = weir_attrs_int(init->node->attrs, "old_vocab_size");
  return NULL;
}

static weir_status_t* file_name(weir_kernel_ctx_t* ctx, int i, weir_view_t* out_name) {
  const weir_tensor_t* name = weir_kernel_input(ctx, i);
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (name->rank != 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "%s_vocab_file should be a single string, but got %s",
                       i == 0 ? "new" : "old", weir_tensor_shape_text(name, text));
  }
  *out_name = weir_string_view(name->data);
  if (out_name->size > 0) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "%s vocab filename cannot be empty.",
                     i == 0 ? "new" : "old");
}

// The wanted lines of the new vocabulary.
static weir_status_t* find_words(const remapping_t* self, weir_lookup_table_t* lines,
                                 weir_tensor_t** out_words) {
  weir_tensor_t *numbers = NULL, *none = NULL, *words = NULL;
  if (self->offset > weir_lookup_table_size(lines) - self->count) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "lookup table size must be larger than last new vocab entry's line");
  }
  weir_status_t* status = weir_tensor_create(WEIR_DTYPE_INT64, 1, &self->count, &numbers);
  if (!status) status = weir_tensor_create(WEIR_DTYPE_STRING, 0, NULL, &none);
  if (!status) status = weir_tensor_create(WEIR_DTYPE_STRING, 1, &self->count, &words);
  if (!status) {
    for (int64_t i = 0; i < self->count; ++i) {
      WEIR_TENSOR_DATA(numbers, int64_t)[i] = self->offset + i;
    }
    status = weir_lookup_table_find(lines, numbers, none, words);
  }
  weir_tensor_release(numbers);
  weir_tensor_release(none);
  if (status) {
    weir_tensor_release(words);
    return status;
  }
  *out_words = words;
  return NULL;
}

// A table of the lines of a file: from words to numbers, or back.
static weir_status_t* read_vocabulary(weir_view_t path, bool by_word, int64_t size,
                                      weir_lookup_table_t** out_table) {
  const weir_dtype_t key = by_word ? WEIR_DTYPE_STRING : WEIR_DTYPE_INT64;
  const weir_dtype_t value = by_word ? WEIR_DTYPE_INT64 : WEIR_DTYPE_STRING;
  const int64_t word = WEIR_TEXT_WHOLE_LINE, number = WEIR_TEXT_LINE_NUMBER;
  WEIR_TRY(weir_lookup_table_create(
      &(weir_lookup_table_config_t){.key_dtype = key, .value_dtype = value}, out_table));
  return weir_lookup_table_read_file(*out_table, path, by_word ? word : number,
                                     by_word ? number : word, size);
}

static weir_status_t* write_places(weir_kernel_ctx_t* ctx, weir_lookup_table_t* old,
                                   const weir_tensor_t* words) {
  weir_tensor_t *out = NULL, *none = NULL;
  int64_t present = 0;
  WEIR_TRY(weir_kernel_output(ctx, 0, 1, words->dims, &out));
  WEIR_TRY(weir_tensor_create_from(WEIR_DTYPE_INT64, 0, NULL, &(int64_t){-1}, &none));
  weir_status_t* status = weir_lookup_table_find(old, words, none, out);
  weir_tensor_release(none);
  if (status) return status;
  for (int64_t i = 0; i < out->count; ++i) present += WEIR_TENSOR_DATA(out, int64_t)[i] >= 0;
  return weir_kernel_output_int(ctx, 1, present);
}

static weir_status_t* remapping_cpu(weir_kernel_ctx_t* ctx) {
  const remapping_t* self = ctx->state;
  weir_lookup_table_t *lines = NULL, *old = NULL;
  weir_tensor_t* words = NULL;
  weir_view_t name;
  WEIR_TRY(file_name(ctx, 0, &name));
  weir_status_t* status = read_vocabulary(name, false, -1, &lines);
  if (!status) status = find_words(self, lines, &words);
  if (!status) status = file_name(ctx, 1, &name);
  if (!status) status = read_vocabulary(name, true, self->old_size, &old);
  if (!status) status = write_places(ctx, old, words);
  weir_tensor_release(words);
  weir_resource_release((weir_resource_t*)lines);
  weir_resource_release((weir_resource_t*)old);
  return status;
}

static weir_status_t* remapping_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 0, NULL));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 0, NULL));
  WEIR_TRY(weir_shape_set_vector(ctx, 0, weir_attrs_int(weir_shape_attrs(ctx), "num_new_vocab")));
  return weir_shape_set_scalar(ctx, 1);
}

const weir_op_module_t weir_ops_table_vocab_remapping = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "GenerateVocabRemapping",
         .attrs = "new_vocab_offset: int >= 0; num_new_vocab: int >= 0; old_vocab_size: int >= -1 "
                  "= -1",
         .inputs = "new_vocab_file: string; old_vocab_file: string",
         .outputs = "remapping: int64; num_present: int32",
         .flags = WEIR_OP_UNBOUNDED,
         .summary = "Where the lines of one file are in another",
         .infer_shape = remapping_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = remapping_cpu, .init = remapping_init,
                                    .state_size = sizeof(remapping_t))},
        {0}}};
