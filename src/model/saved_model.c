// saved_model.c — Finds the graph with given tags in a SavedModel message.
#include "model/saved_model.h"

#include "file/fs.h"
#include "model/fields.h"

enum { SAVED_MODEL_META_GRAPH = 2 };
enum { META_INFO = 1 };
enum { INFO_TAGS = 4 };

static bool has_tag(const char* tags, weir_view_t tag) {
  weir_view_t rest = weir_view_of(tags), part = {0};
  while (weir_view_next(&rest, ',', &part)) {
    if (weir_view_equal(weir_view_trim(part), tag)) return true;
  }
  return false;
}

// How many different ones |tags| names.
static int count_tags(const char* tags) {
  int count = 0;
  weir_view_t rest = weir_view_of(tags), part = {0};
  while (weir_view_next(&rest, ',', &part)) {
    weir_view_t before = weir_view(tags, (size_t)(part.data - tags)), other = {0};
    bool is_new = weir_view_trim(part).size > 0;
    while (is_new && weir_view_next(&before, ',', &other))
      is_new = !weir_view_equal(weir_view_trim(other), weir_view_trim(part));
    count += is_new;
  }
  return count;
}

// Compares the tags of one graph with |tags|, and adds them to |there|.
static weir_status_t* match_info(weir_view_t info, const char* tags, bool* out_matches,
                                 weir_strbuf_t* there) {
  int count = 0;
  bool all_asked = true;
  weir_wire_reader_t r = weir_wire_reader(info);
  while (weir_wire_next(&r)) {
    if (r.field != INFO_TAGS || r.type != WEIR_WIRE_BYTES) continue;
    weir_strbuf_printf(there, "%s%.*s", count++ ? "," : "", WEIR_VIEW_ARG(r.bytes));
    all_asked = all_asked && has_tag(tags, r.bytes);
  }
  *out_matches = all_asked && count == count_tags(tags);
  return weir_model_check(&r, "MetaInfoDef");
}

static weir_status_t* match(weir_view_t meta_graph, const char* tags, bool* out_matches,
                            weir_strbuf_t* there) {
  weir_view_t info = {0};
  weir_wire_reader_t r = weir_wire_reader(meta_graph);
  while (weir_wire_next(&r)) {
    if (r.field == META_INFO && r.type == WEIR_WIRE_BYTES) info = r.bytes;
  }
  WEIR_TRY(weir_model_check(&r, "MetaGraphDef"));
  weir_strbuf_puts(there, there->size ? ", '" : "'");
  WEIR_TRY(match_info(info, tags, out_matches, there));
  weir_strbuf_puts(there, "'");
  return NULL;
}

static weir_status_t* select_graph(weir_view_t saved_model, const char* tags,
                                   weir_view_t* out_meta_graph, weir_strbuf_t* there) {
  weir_wire_reader_t r = weir_wire_reader(saved_model);
  while (weir_wire_next(&r)) {
    bool matches = false;
    if (r.field != SAVED_MODEL_META_GRAPH || r.type != WEIR_WIRE_BYTES) continue;
    WEIR_TRY(match(r.bytes, tags, &matches, there));
    if (!matches) continue;
    *out_meta_graph = r.bytes;
    return NULL;
  }
  WEIR_TRY(weir_model_check(&r, "SavedModel"));
  WEIR_TRY(weir_strbuf_finish(there));
  if (!there->size) return WEIR_STATUS(DATA_LOSS, "a SavedModel without a graph");
  return WEIR_STATUS(NOT_FOUND, "no graph with the tags '%s'; there are %s", tags, there->data);
}

weir_status_t* weir_saved_model_select(weir_view_t saved_model, const char* tags,
                                       weir_view_t* out_meta_graph) {
  weir_strbuf_t there = {0};
  weir_status_t* status = select_graph(saved_model, tags, out_meta_graph, &there);
  weir_strbuf_free(&there);
  return status;
}

bool weir_saved_model_is(const char* directory, weir_strbuf_t* out_path) {
  static const char* const names[] = {"saved_model.pb", "saved_model.pbtxt"};
  for (size_t i = 0; i < WEIR_COUNT_OF(names); ++i) {
    out_path->size = 0;
    weir_strbuf_printf(out_path, "%s/%s", directory, names[i]);
    if (!out_path->failed && weir_fs_exists(out_path->data)) return true;
  }
  return false;
}
