// object_graph.c — Reads the graph of objects of a checkpoint. Memory is bounded by the message: it
// is read twice, first to count.
#include "file/object_graph.h"

#include "base/map.h"
#include "wire/wire.h"

enum { MAX_PATH = 1024, MAX_PATHS = 64 << 20 };  // bytes of one, and of all

// ---- the message ----

typedef struct sizes_t {
  size_t nodes, children, attributes;
} sizes_t;

static bool is_bytes(const weir_wire_reader_t* r, uint32_t field) {
  return r->field == field && r->type == WEIR_WIRE_BYTES;
}

static weir_status_t* count_all(weir_view_t bytes, sizes_t* sizes) {
  weir_wire_reader_t r = weir_wire_reader(bytes);
  while (weir_wire_next(&r)) {
    if (!is_bytes(&r, WEIR_GRAPH_NODE)) continue;
    weir_wire_reader_t n = weir_wire_reader(r.bytes);
    while (weir_wire_next(&n)) {
      sizes->children += is_bytes(&n, WEIR_NODE_CHILD);
      sizes->attributes += is_bytes(&n, WEIR_NODE_ATTRIBUTE);
    }
    ++sizes->nodes;
    WEIR_TRY(weir_wire_check(&n, "TrackableObject"));
  }
  return weir_wire_check(&r, "TrackableObjectGraph");
}

static weir_status_t* read_child(weir_view_t message, size_t count, weir_object_child_t* child) {
  uint64_t object = 0;
  weir_wire_reader_t r = weir_wire_reader(message);
  *child = (weir_object_child_t){.name = weir_view("", 0)};
  while (weir_wire_next(&r)) {
    if (r.field == WEIR_CHILD_OBJECT && r.type == WEIR_WIRE_VARINT) object = r.value;
    if (is_bytes(&r, WEIR_CHILD_NAME)) child->name = r.bytes;
  }
  WEIR_TRY(weir_wire_check(&r, "ObjectReference"));
  if (object >= count)
    return WEIR_STATUS(DATA_LOSS, "'%.*s' is object %llu of %zu", WEIR_VIEW_ARG(child->name),
                       (unsigned long long)object, count);
  if (child->name.size == 0 || memchr(child->name.data, '\0', child->name.size))
    return WEIR_STATUS(DATA_LOSS, "object %llu has an empty name, or a zero byte in it",
                       (unsigned long long)object);
  child->object = (size_t)object;
  return NULL;
}

static weir_status_t* read_attribute(weir_arena_t* arena, weir_view_t message,
                                     weir_object_attribute_t* attribute) {
  weir_view_t texts[] = {weir_view("", 0), weir_view("", 0), weir_view("", 0)};
  const char* copies[WEIR_COUNT_OF(texts)];
  weir_wire_reader_t r = weir_wire_reader(message);
  while (weir_wire_next(&r)) {
    if (r.field >= WEIR_ATTRIBUTE_NAME && r.field <= WEIR_ATTRIBUTE_KEY &&
        r.type == WEIR_WIRE_BYTES)
      texts[r.field - WEIR_ATTRIBUTE_NAME] = r.bytes;
  }
  WEIR_TRY(weir_wire_check(&r, "SerializedTensor"));
  for (size_t i = 0; i < WEIR_COUNT_OF(texts); ++i) {
    copies[i] = weir_arena_strndup(arena, texts[i].data, texts[i].size);
    if (!copies[i]) return weir_out_of_memory();
  }
  attribute->attribute = copies[0];
  attribute->name = copies[WEIR_ATTRIBUTE_FULL_NAME - WEIR_ATTRIBUTE_NAME];
  attribute->key = copies[WEIR_ATTRIBUTE_KEY - WEIR_ATTRIBUTE_NAME];
  return NULL;
}

// Children go to |*children|, which moves on.
static weir_status_t* read_object(weir_object_graph_t* graph, weir_view_t message, size_t index,
                                  weir_object_child_t** children, size_t count) {
  weir_object_t* object = &graph->objects[index];
  weir_wire_reader_t r = weir_wire_reader(message);
  *object = (weir_object_t){.children = *children, .first_attribute = graph->attribute_count};
  while (weir_wire_next(&r)) {
    if (is_bytes(&r, WEIR_NODE_CHILD)) {
      WEIR_TRY(read_child(r.bytes, count, (*children)++));
      ++object->child_count;
    }
    if (!is_bytes(&r, WEIR_NODE_ATTRIBUTE)) continue;
    weir_object_attribute_t* attribute = &graph->attributes[graph->attribute_count++];
    attribute->object = index;
    WEIR_TRY(read_attribute(&graph->arena, r.bytes, attribute));
    ++object->attribute_count;
  }
  return NULL;
}

// Two of one name would be one way to two objects.
static weir_status_t* check_names(const weir_object_t* object, size_t index) {
  weir_map_t names = {0};
  weir_status_t* status = NULL;
  for (size_t i = 0; i < object->child_count && !status; ++i) {
    weir_object_child_t* child = &object->children[i];
    if (weir_map_find(&names, child->name))
      status =
          WEIR_STATUS(DATA_LOSS, "object %zu has '%.*s' twice", index, WEIR_VIEW_ARG(child->name));
    else status = weir_map_put(&names, child->name, child);
  }
  weir_map_free(&names);
  return status;
}

static weir_status_t* read_objects(weir_object_graph_t* graph, weir_view_t bytes) {
  sizes_t sizes = {.nodes = 0};
  WEIR_TRY(count_all(bytes, &sizes));
  weir_arena_t* arena = &graph->arena;
  graph->objects = weir_arena_array(arena, sizes.nodes, sizeof(*graph->objects));
  graph->attributes = weir_arena_array(arena, sizes.attributes, sizeof(*graph->attributes));
  weir_object_child_t* children = weir_arena_array(arena, sizes.children, sizeof(*children));
  if (!graph->objects || !graph->attributes || !children) return weir_out_of_memory();
  weir_wire_reader_t r = weir_wire_reader(bytes);
  while (weir_wire_next(&r)) {
    if (!is_bytes(&r, WEIR_GRAPH_NODE)) continue;
    WEIR_TRY(read_object(graph, r.bytes, graph->count, &children, sizes.nodes));
    WEIR_TRY(check_names(&graph->objects[graph->count], graph->count));
    ++graph->count;
  }
  return NULL;
}

// ---- paths ----

// Appends a name as keys spell it: '/' is ".S" and '.' is "..".
static void put_name(weir_view_t name, weir_strbuf_t* out) {
  for (size_t i = 0; i < name.size; ++i) {
    if (name.data[i] == '/') weir_strbuf_puts(out, ".S");
    else if (name.data[i] == '.') weir_strbuf_puts(out, "..");
    else weir_strbuf_putc(out, name.data[i]);
  }
}

static weir_status_t* set_path(weir_object_graph_t* graph, const weir_object_t* parent,
                               const weir_object_child_t* child, size_t* total) {
  weir_strbuf_t path = {0};
  weir_strbuf_puts(&path, parent->path);
  if (path.size > 0) weir_strbuf_putc(&path, '/');
  put_name(child->name, &path);
  weir_status_t* status = weir_strbuf_finish(&path);
  *total += path.size;
  if (!status && (path.size > MAX_PATH || *total > MAX_PATHS))
    status = WEIR_STATUS(RESOURCE_EXHAUSTED, "objects lie too deep: '%.40s…'", path.data);
  weir_object_t* object = &graph->objects[child->object];
  if (!status) object->path = weir_arena_strndup(&graph->arena, path.data, path.size);
  if (!status && !object->path) status = weir_out_of_memory();
  weir_strbuf_free(&path);
  return status;
}

// Breadth first, so that the first way to an object is the shortest.
static weir_status_t* find_paths(weir_object_graph_t* graph) {
  size_t* queue = weir_arena_array(&graph->arena, graph->count, sizeof(*queue));
  size_t end = 0, total = 0;
  if (!queue) return weir_out_of_memory();
  if (graph->count > 0) graph->objects[0].path = "";
  if (graph->count > 0) queue[end++] = 0;
  for (size_t next = 0; next < end; ++next) {
    const weir_object_t* object = &graph->objects[queue[next]];
    for (size_t i = 0; i < object->child_count; ++i) {
      const weir_object_child_t* child = &object->children[i];
      if (graph->objects[child->object].path) continue;
      WEIR_TRY(set_path(graph, object, child, &total));
      queue[end++] = child->object;
    }
  }
  return NULL;
}

weir_status_t* weir_object_graph_parse(weir_view_t bytes, weir_object_graph_t* out_graph) {
  weir_object_graph_t graph = {.count = 0};
  weir_status_t* status = read_objects(&graph, bytes);
  if (!status) status = find_paths(&graph);
  if (status) weir_object_graph_free(&graph);
  else *out_graph = graph;
  return status;
}

void weir_object_graph_free(weir_object_graph_t* graph) {
  weir_arena_free(&graph->arena);
  *graph = (weir_object_graph_t){.count = 0};
}

// ---- by any way ----

static bool is_spelt(weir_view_t name, weir_view_t part) {
  weir_strbuf_t spelt = {0};
  put_name(name, &spelt);
  bool is_same = weir_view_equal(weir_strbuf_view(&spelt), part);
  weir_strbuf_free(&spelt);
  return is_same;
}

static const weir_object_t* child_of(const weir_object_graph_t* graph, const weir_object_t* object,
                                     weir_view_t part) {
  for (size_t i = 0; i < object->child_count; ++i) {
    if (is_spelt(object->children[i].name, part))
      return &graph->objects[object->children[i].object];
  }
  return NULL;
}

const weir_object_t* weir_object_graph_find(const weir_object_graph_t* graph, weir_view_t path) {
  const weir_object_t* object = graph->count > 0 ? &graph->objects[0] : NULL;
  weir_view_t part;
  if (path.size == 0) return object;
  while (object && weir_view_next(&path, '/', &part)) object = child_of(graph, object, part);
  return object;
}
