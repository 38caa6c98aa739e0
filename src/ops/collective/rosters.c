// rosters.c — The groups that have met, and who is in them.
#include "ops/collective/rosters.h"

#include "base/alloc.h"

// Idle groups are kept up to so many: clients make up keys as they like.
enum { GROUP_LIMIT = 4096 };

static weir_view_t key_of(const int* key) { return weir_view((const char*)key, sizeof(*key)); }

void weir_rosters_init(weir_rosters_t* groups) {
  *groups = (weir_rosters_t){.map = {.owns_keys = true}};
}

static void forget_device(weir_roster_t* group, int i) {
  weir_free(group->devices[i].name);
  group->devices[i] = group->devices[--group->device_count];
}

static void group_free(weir_roster_t* group) {
  while (group->device_count > 0) forget_device(group, 0);
  weir_free(group->devices);
  weir_free(group);
}

static void free_idle(weir_rosters_t* groups, bool is_all) {
  weir_map_entry_t* entry;
  for (size_t i = 0; (entry = weir_map_next(&groups->map, &i));) {
    weir_roster_t* group = entry->value;
    if (!is_all && group->meeting_count > 0) continue;
    int key = group->key;
    weir_map_remove(&groups->map, key_of(&key));
    group_free(group);
  }
}

void weir_rosters_free(weir_rosters_t* groups) {
  free_idle(groups, true);
  weir_map_free(&groups->map);
}

static weir_status_t* find_or_make(weir_rosters_t* groups, const weir_collective_t* what,
                                   weir_roster_t** out_group) {
  weir_roster_t* group = weir_map_find(&groups->map, key_of(&what->group_key));
  if (!group) {
    if (groups->map.count >= GROUP_LIMIT) free_idle(groups, false);
    group = weir_calloc(1, sizeof(*group));
    if (!group) return weir_out_of_memory();
    group->key = what->group_key;
    group->size = what->group_size;
    weir_status_t* status = weir_map_put(&groups->map, key_of(&what->group_key), group);
    if (status) {
      weir_free(group);
      return status;
    }
  }
  *out_group = group;
  return NULL;
}

static weir_roster_device_t* find_device(const weir_roster_t* group, const char* name) {
  for (int i = 0; i < group->device_count; ++i) {
    if (!strcmp(group->devices[i].name, name)) return &group->devices[i];
  }
  return NULL;
}

// Whether nobody meets in the group, and no device of it was last used by the session of |what|:
// then that is a new program, which may mean another group by the key.
static bool is_left(const weir_roster_t* group, const weir_collective_t* what) {
  for (int i = 0; i < group->device_count; ++i) {
    if (group->devices[i].scope == what->scope) return false;
  }
  return group->meeting_count == 0;
}

// Makes room for the device of |what| in the place of one that another session used, and that
// nobody waits on.
static void replace_one(weir_roster_t* group, const weir_collective_t* what) {
  for (int i = 0; i < group->device_count; ++i) {
    const weir_roster_device_t* device = &group->devices[i];
    if (device->scope == what->scope || device->waiting > 0) continue;
    forget_device(group, i);
    return;
  }
}

void weir_roster_count(weir_roster_t* group, const char* device, int change) {
  weir_roster_device_t* known = find_device(group, device);
  if (known) known->waiting += change;
}

static weir_status_t* add_device(weir_roster_t* group, const weir_collective_t* what) {
  if (!WEIR_GROW(group->devices, group->device_capacity, (size_t)group->device_count + 1))
    return weir_out_of_memory();
  char* name = weir_strdup(what->device);
  if (!name) return weir_out_of_memory();
  group->devices[group->device_count++] =
      (weir_roster_device_t){.name = name, .incarnation = what->incarnation, .scope = what->scope};
  return NULL;
}

weir_status_t* weir_rosters_enter(weir_rosters_t* groups, const weir_collective_t* what,
                                  weir_roster_t** out_group) {
  *out_group = NULL;
  WEIR_TRY(find_or_make(groups, what, out_group));
  weir_roster_t* group = *out_group;
  weir_roster_device_t* device = find_device(group, what->device);
  bool fits = group->size == what->group_size && (device || group->device_count < group->size);
  if (!fits && is_left(group, what)) {
    while (group->device_count > 0) forget_device(group, 0);
    group->size = what->group_size;
    device = NULL;
  }
  if (!device && group->size == what->group_size && group->device_count == group->size)
    replace_one(group, what);
  if (group->size != what->group_size) {
    return WEIR_STATUS(INTERNAL,
                       "Device %s is joining a group with size%d, but that group has size %d "
                       "(group_key=%d)",
                       what->device, what->group_size, group->size, what->group_key);
  }
  if (!device && group->device_count >= group->size) {
    return WEIR_STATUS(INTERNAL, "Device %s is joining a group that is already full (group_key=%d)",
                       what->device, what->group_key);
  }
  if (!device) return add_device(group, what);
  device->incarnation = what->incarnation;
  device->scope = what->scope;
  return NULL;
}

bool weir_device_is_of_task(const char* device, weir_view_t task) {
  weir_view_t name = weir_view_of(device);
  if (name.size < task.size || memcmp(device, task.data, task.size) != 0) return false;
  return name.size == task.size || device[task.size] == '/';
}

bool weir_roster_has_task(const weir_roster_t* group, weir_view_t task) {
  for (int i = 0; i < group->device_count; ++i) {
    if (weir_device_is_of_task(group->devices[i].name, task)) return true;
  }
  return false;
}

void weir_rosters_lose(weir_rosters_t* groups, weir_view_t task) {
  weir_map_entry_t* entry;
  for (size_t i = 0; (entry = weir_map_next(&groups->map, &i));) {
    weir_roster_t* group = entry->value;
    for (int j = group->device_count - 1; j >= 0; --j) {
      if (weir_device_is_of_task(group->devices[j].name, task)) forget_device(group, j);
    }
  }
}
