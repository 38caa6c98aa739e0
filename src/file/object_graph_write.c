// object_graph_write.c — Writes the graph of objects of a checkpoint, from paths to variables.
#include "base/map.h"
#include "file/object_graph.h"
#include "wire/wire.h"

// Objects by the paths that lead to them, each with its message so far.
typedef struct tree_t {
  weir_map_t places;  // path → place in |messages|, plus one
  weir_strbuf_t* messages;
  size_t count, capacity;
} tree_t;

// The name as it is, of one spelt as keys spell it: ".S" is '/' and ".." is '.'.
static weir_status_t* unspell(weir_view_t spelt, weir_strbuf_t* out) {
  bool is_name = spelt.size > 0;
  for (size_t i = 0; i < spelt.size && is_name; ++i) {
    const bool is_dot = spelt.data[i] == '.';
    const char next = is_dot && i + 1 < spelt.size ? spelt.data[i + 1] : 0;
    is_name = !is_dot || next == 'S' || next == '.';
    weir_strbuf_putc(out, next == 'S' ? '/' : spelt.data[i]);
    i += is_dot;
  }
  if (is_name) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "'%.*s' is no name", WEIR_VIEW_ARG(spelt));
}

static weir_status_t* add_object(tree_t* tree, weir_view_t path, size_t* out_place) {
  if (!WEIR_GROW(tree->messages, tree->capacity, tree->count + 1)) return weir_out_of_memory();
  *out_place = tree->count;
  tree->messages[tree->count++] = (weir_strbuf_t){0};
  return weir_map_put(&tree->places, path, (void*)(uintptr_t)tree->count);
}

// The object that |path| leads to, whose last name is |part| and which hangs on |parent|.
static weir_status_t* place_of(tree_t* tree, size_t parent, weir_view_t path, weir_view_t part,
                               size_t* out_place) {
  const uintptr_t found = (uintptr_t)weir_map_find(&tree->places, path);
  if (found && part.size > 0) {  // "/a" begins with the root's path
    *out_place = (size_t)found - 1;
    return NULL;
  }
  weir_strbuf_t name = {0}, child = {0};
  weir_status_t* status = unspell(part, &name);
  if (!status) status = add_object(tree, path, out_place);
  if (!status) {
    weir_wire_put_int(&child, WEIR_CHILD_OBJECT, (int64_t)*out_place);
    weir_wire_put_bytes(&child, WEIR_CHILD_NAME, name.data, name.size);
    weir_wire_put_bytes(&tree->messages[parent], WEIR_NODE_CHILD, child.data, child.size);
    status = weir_strbuf_finish(&child);
  }
  weir_strbuf_free(&child);
  weir_strbuf_free(&name);
  return status;
}

static const char* attribute_of(const weir_object_source_t* source) {
  return source->is_table ? WEIR_OBJECT_TABLE : WEIR_OBJECT_VALUE;
}

void weir_object_append_key(const weir_object_source_t* source, weir_strbuf_t* out) {
  weir_strbuf_printf(out, "%s/.ATTRIBUTES/%s", source->path, attribute_of(source));
}

// Of tables TensorFlow says no name.
static weir_status_t* add_attribute(const weir_object_source_t* source, weir_strbuf_t* message) {
  weir_strbuf_t attribute = {0}, key = {0};
  weir_object_append_key(source, &key);
  weir_wire_put_string(&attribute, WEIR_ATTRIBUTE_NAME, attribute_of(source));
  if (!source->is_table) weir_wire_put_string(&attribute, WEIR_ATTRIBUTE_FULL_NAME, source->name);
  weir_wire_put_bytes(&attribute, WEIR_ATTRIBUTE_KEY, key.data, key.size);
  weir_wire_put_bytes(message, WEIR_NODE_ATTRIBUTE, attribute.data, attribute.size);
  weir_status_t* status = weir_strbuf_finish(&key);
  if (!status) status = weir_strbuf_finish(&attribute);
  weir_strbuf_free(&key);
  weir_strbuf_free(&attribute);
  return status;
}

// The object that |path| leads to, and those on the way.
static weir_status_t* find_or_add(tree_t* tree, weir_view_t path, size_t* out_place) {
  weir_view_t rest = path, part;
  *out_place = 0;
  while (weir_view_next(&rest, '/', &part)) {
    const size_t end = (size_t)(part.data - path.data) + part.size;
    WEIR_TRY(place_of(tree, *out_place, weir_view(path.data, end), part, out_place));
  }
  return NULL;
}

static weir_status_t* add_variable(tree_t* tree, const weir_object_source_t* source,
                                   weir_map_t* taken) {
  const weir_view_t path = weir_view_of(source->path);
  size_t place = 0;
  if (path.size == 0)
    return WEIR_STATUS(INVALID_ARGUMENT, "variable '%s' has an empty path", source->name);
  WEIR_TRY(weir_status_prefix(find_or_add(tree, path, &place), "'%s' is no path: ", source->path));
  const weir_object_source_t* other = weir_map_find(taken, path);
  if (other)
    return WEIR_STATUS(INVALID_ARGUMENT, "'%s' would be the path of variables '%s' and '%s'",
                       source->path, other->name, source->name);
  WEIR_TRY(weir_map_put(taken, path, (void*)(uintptr_t)source));
  return add_attribute(source, &tree->messages[place]);
}

weir_status_t* weir_object_graph_write(const weir_object_source_t* sources, size_t count,
                                       weir_strbuf_t* out) {
  tree_t tree = {.count = 0};
  weir_map_t taken = {0};
  size_t root = 0;
  weir_status_t* status = add_object(&tree, weir_view("", 0), &root);
  for (size_t i = 0; i < count && !status; ++i) status = add_variable(&tree, &sources[i], &taken);
  for (size_t i = 0; i < tree.count; ++i) {
    if (!status) status = weir_strbuf_finish(&tree.messages[i]);
    if (!status)
      weir_wire_put_bytes(out, WEIR_GRAPH_NODE, tree.messages[i].data, tree.messages[i].size);
    weir_strbuf_free(&tree.messages[i]);
  }
  weir_free(tree.messages);
  weir_map_free(&tree.places);
  weir_map_free(&taken);
  return status ? status : weir_strbuf_finish(out);
}
