// devices.c — TF_DeviceList: what a session computes with.
#include "session/session.h"
#include "tensorflow/internal.h"
#include "wire/wire.h"

typedef struct entry_t {
  const char* name;
  const char* type;
  int64_t memory;
  uint64_t incarnation;
} entry_t;

// All of it is in |arena|.
struct TF_DeviceList {
  weir_arena_t arena;
  entry_t* entries;
  int count;
};

static weir_status_t* list_local(const weir_runtime_t* runtime, TF_DeviceList* list) {
  weir_arena_t* arena = &list->arena;
  list->entries = weir_arena_array(arena, (size_t)runtime->device_count, sizeof(*list->entries));
  if (!list->entries) return weir_out_of_memory();
  for (int i = 0; i < runtime->device_count; ++i) {
    const weir_device_t* device = runtime->devices[i];
    list->entries[i] =
        (entry_t){.name = weir_arena_strndup(arena, device->name, strlen(device->name)),
                  .type = device->type,
                  .memory = device->memory_limit ? device->memory_limit : 1 << 28,
                  .incarnation = device->incarnation};
    if (!list->entries[i].name) return weir_out_of_memory();
  }
  list->count = runtime->device_count;
  return NULL;
}

TF_DeviceList* tf_device_list_new(const weir_runtime_t* runtime, TF_Status* status) {
  TF_DeviceList* list = weir_calloc(1, sizeof(*list));
  if (tf_status_take(status, list ? list_local(runtime, list) : weir_out_of_memory())) return list;
  TF_DeleteDeviceList(list);
  return NULL;
}

TF_DeviceList* TF_SessionListDevices(TF_Session* session, TF_Status* status) {
  weir_status_t* result = tf_session_check(session);
  if (!result && session->target)
    result = WEIR_STATUS(UNIMPLEMENTED, "the devices behind '%s' are not listed", session->target);
  if (!tf_status_take(status, result)) return NULL;
  return tf_device_list_new(session->session->program->runtime, status);
}

void TF_DeleteDeviceList(TF_DeviceList* list) {
  if (!list) return;
  weir_arena_free(&list->arena);
  weir_free(list);
}

int TF_DeviceListCount(const TF_DeviceList* list) { return list->count; }

static const entry_t* at(const TF_DeviceList* list, int index, TF_Status* status) {
  const bool is_there = index >= 0 && index < list->count;
  tf_status_take(status,
                 is_there ? NULL
                          : WEIR_STATUS(INVALID_ARGUMENT, "index out of bounds: %d of %d devices",
                                        index, list->count));
  return is_there ? &list->entries[index] : NULL;
}

const char* TF_DeviceListName(const TF_DeviceList* list, int index, TF_Status* status) {
  const entry_t* entry = at(list, index, status);
  return entry ? entry->name : NULL;
}
const char* TF_DeviceListType(const TF_DeviceList* list, int index, TF_Status* status) {
  const entry_t* entry = at(list, index, status);
  return entry ? entry->type : NULL;
}
int64_t TF_DeviceListMemoryBytes(const TF_DeviceList* list, int index, TF_Status* status) {
  const entry_t* entry = at(list, index, status);
  return entry ? entry->memory : -1;
}
uint64_t TF_DeviceListIncarnation(const TF_DeviceList* list, int index, TF_Status* status) {
  const entry_t* entry = at(list, index, status);
  return entry ? entry->incarnation : 0;
}
