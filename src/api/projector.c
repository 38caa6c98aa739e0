// projector.c — What TensorBoard's projector shows: projector_config.pbtxt and files of labels.
#include <stdio.h>
#include <string.h>

#include "file/fs.h"
#include "weir/argument.h"
#include "weir/tensorboard.h"
#include "wire/text.h"

// The messages of the file, as far as they are written here.
static const weir_field_t sprite_fields[] = {
    {1, "image_path", WEIR_FIELD_STRING, .is_repeated = 0},
    {2, "single_image_dim", WEIR_FIELD_UINT32, .is_repeated = 1},
    {0}};
static const weir_message_t sprite = {"SpriteMetadata", sprite_fields};
static const weir_field_t embedding_fields[] = {
    {1, "tensor_name", WEIR_FIELD_STRING, .is_repeated = 0},
    {2, "metadata_path", WEIR_FIELD_STRING, .is_repeated = 0},
    {5, "sprite", WEIR_FIELD_MESSAGE, .message = &sprite},
    {0}};
static const weir_message_t embedding = {"EmbeddingInfo", embedding_fields};
static const weir_field_t config_fields[] = {
    {2, "embeddings", WEIR_FIELD_MESSAGE, .is_repeated = 1, .message = &embedding}, {0}};
static const weir_message_t config = {"ProjectorConfig", config_fields};

enum { LABELS_NAME_SIZE = 32 };
static void labels_name(int index, char out[LABELS_NAME_SIZE]) {
  snprintf(out, LABELS_NAME_SIZE, "projector_labels_%d.tsv", index);
}

static void put_projected(const weir_projected_t* p, int index, weir_strbuf_t* out) {
  char name[LABELS_NAME_SIZE];
  labels_name(index, name);
  const char* metadata = p->labels ? name : p->metadata_path;
  const size_t begin = weir_wire_begin(out, 2);
  weir_wire_put_string(out, 1, p->variable);
  if (metadata) weir_wire_put_string(out, 2, metadata);
  if (p->sprite_path) {
    const size_t picture = weir_wire_begin(out, 5);
    weir_wire_put_string(out, 1, p->sprite_path);
    weir_wire_put_int(out, 2, p->sprite_width);
    weir_wire_put_int(out, 2, p->sprite_height);
    weir_wire_end(out, picture);
  }
  weir_wire_end(out, begin);
}

static weir_status_t* check_projected(const weir_projected_t* p, int index) {
  if (!p->variable)
    return WEIR_STATUS(INVALID_ARGUMENT, "projector: embedding %d has no variable", index);
  if (p->labels && p->label_count < 1)
    return WEIR_STATUS(INVALID_ARGUMENT, "projector: '%s' has labels, and %lld of them",
                       p->variable, (long long)p->label_count);
  for (int64_t i = 0; p->labels && i < p->label_count; ++i) {
    if (p->labels[i] && !strpbrk(p->labels[i], "\t\n\r")) continue;
    return WEIR_STATUS(INVALID_ARGUMENT, "projector: label %lld of '%s' is %s", (long long)i,
                       p->variable, p->labels[i] ? "not one line without tabs" : "NULL");
  }
  if (p->sprite_path && (p->sprite_width < 1 || p->sprite_height < 1))
    return WEIR_STATUS(INVALID_ARGUMENT, "projector: pictures of '%s' are %d x %d", p->variable,
                       p->sprite_width, p->sprite_height);
  return NULL;
}

static weir_status_t* replace(const char* directory, const char* name, const weir_strbuf_t* data) {
  weir_strbuf_t path = {0};
  weir_strbuf_printf(&path, "%s/%s", directory, name);
  weir_status_t* status = weir_strbuf_finish(&path);
  if (!status) status = weir_strbuf_finish(data);
  if (!status) status = weir_fs_replace(path.data, weir_strbuf_view(data));
  weir_strbuf_free(&path);
  return status;
}

static weir_status_t* write_labels(const char* directory, const weir_projected_t* p, int index) {
  char name[LABELS_NAME_SIZE];
  weir_strbuf_t text = {0};
  labels_name(index, name);
  for (int64_t i = 0; i < p->label_count; ++i) {
    weir_strbuf_puts(&text, p->labels[i]);
    weir_strbuf_putc(&text, '\n');
  }
  weir_status_t* status = replace(directory, name, &text);
  weir_strbuf_free(&text);
  return status;
}

weir_status_t* weir_projector_write(const char* directory, const weir_projected_t* projected,
                                    int count) {
  WEIR_REQUIRE_ARG(directory);
  WEIR_REQUIRE_COUNT(count);
  if (count > 0) WEIR_REQUIRE_ARG(projected);
  for (int i = 0; i < count; ++i) WEIR_TRY(check_projected(&projected[i], i));
  weir_strbuf_t wire = {0}, text = {0};
  weir_strbuf_puts(&text, "");
  for (int i = 0; i < count; ++i) put_projected(&projected[i], i, &wire);
  weir_status_t* status = weir_strbuf_finish(&wire);
  if (!status) status = weir_text_print(&config, weir_strbuf_view(&wire), &text);
  if (!status) status = weir_fs_make_directories(directory);
  for (int i = 0; i < count && !status; ++i)
    if (projected[i].labels) status = write_labels(directory, &projected[i], i);
  if (!status) status = replace(directory, "projector_config.pbtxt", &text);
  weir_strbuf_free(&wire);
  weir_strbuf_free(&text);
  return status;
}
