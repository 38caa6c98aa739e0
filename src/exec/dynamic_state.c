// dynamic_state.c — Allocation of iterations, frames and activations.
#include "exec/dynamic_state.h"

#include <unistd.h>

iteration_t* weir_iteration_create(run_frame_t* frame, int64_t number) {
  const weir_plan_frame_t* info = frame->info;
  iteration_t** free_list = &frame->activation->free_iterations[frame->index];
  iteration_t* it = *free_list;
  if (it) {
    *free_list = it->next;
  } else {
    size_t slots = sizeof(weir_value_t) * (size_t)info->slot_count;
    it = weir_calloc(1, sizeof(*it) + slots + sizeof(pending_t) * (size_t)info->node_count);
    if (!it) return NULL;
    it->slots = (weir_value_t*)(it + 1);
    it->pending = (pending_t*)((char*)(it + 1) + slots);
  }
  it->frame = frame;
  it->number = number;
  it->next = NULL;
  for (int32_t i = 0; i < info->node_count; ++i)
    it->pending[i] = (pending_t){.pending = info->pending[i], .dead = 0};
  return it;
}

static void release_slots(iteration_t* it) {
  for (int32_t i = 0; i < it->frame->info->slot_count; ++i) weir_value_release(&it->slots[i]);
}

void weir_iteration_recycle(iteration_t* it) {
  release_slots(it);  // inputs of nodes that never ran, such as the loser of a Merge
  iteration_t** free_list = &it->frame->activation->free_iterations[it->frame->index];
  it->next = *free_list;
  *free_list = it;
}

// ---- identity of frames: the same loop has the same number in every task that runs a part of it,
// TensorFlow's included, since Send and Recv name the frame they are in. ----

// MurmurHash64A, as TensorFlow hashes names.
static uint64_t hash_bytes(const char* data, size_t size) {
  const uint64_t m = 0xc6a4a7935bd1e995u;
  uint64_t h = 0xDECAFCAFFEu ^ (size * m);
  for (; size >= 8; data += 8, size -= 8) {
    uint64_t k;
    memcpy(&k, data, 8);
    k *= m;
    k ^= k >> 47;
    k *= m;
    h = (h ^ k) * m;
  }
  for (size_t i = size; i-- > 0;) h ^= (uint64_t)(uint8_t)data[i] << (8 * i);
  if (size) h *= m;
  h ^= h >> 47;
  h *= m;
  return h ^ (h >> 47);
}

static uint64_t hash_combine(uint64_t a, uint64_t b) {
  return a ^ (b + 0x9e3779b97f4a7800u + (a << 10) + (a >> 4));
}

static int64_t frame_id(const activation_t* activation, const weir_plan_frame_t* info,
                        const run_frame_t* parent, const iteration_t* parent_iteration) {
  // A step's own frame is 0; those of functions it calls never cross to another task.
  if (!parent) return activation->run->next_frame_id++;
  uint64_t name = hash_bytes(info->name, strlen(info->name));
  uint64_t turn = hash_combine((uint64_t)parent_iteration->number, name);
  return (int64_t)hash_combine((uint64_t)parent->id, turn);
}

run_frame_t* weir_frame_create(activation_t* activation, int32_t index, run_frame_t* parent,
                               iteration_t* parent_iteration) {
  run_frame_t* frame = weir_calloc(1, sizeof(*frame));
  if (!frame) return NULL;
  frame->activation = activation;
  frame->index = index;
  frame->info = &activation->plan->frames[index];
  frame->id = frame_id(activation, frame->info, parent, parent_iteration);
  frame->parent = parent;
  frame->parent_iteration = parent_iteration;
  frame->pending_enters = frame->info->enter_count;
  frame->first = frame->last = weir_iteration_create(frame, 0);
  frame->live_iterations = 1;
  if (frame->first) return frame;
  weir_free(frame);
  return NULL;
}

static void release_held(held_t* held, size_t count) {
  for (size_t i = 0; i < count; ++i) weir_value_release(&held[i].value);
  weir_free(held);
}

// Frees |frame|, and appends the loops within it to |inner|.
static void destroy_one(run_frame_t* frame, run_frame_t** inner) {
  for (iteration_t* it = frame->first; it;) {
    iteration_t* next = it->next;
    while (it->children) {
      run_frame_t* child = it->children;
      it->children = child->next_sibling;
      child->next_sibling = *inner;
      *inner = child;
    }
    it->outstanding_ops = it->outstanding_frames = 0;
    weir_iteration_recycle(it);
    it = next;
  }
  release_held(frame->invariants, frame->invariant_count);
  release_held(frame->next_roots, frame->next_root_count);
  weir_free(frame->dead_exits);
  weir_free(frame);
}

// Without recursion: loops may be nested as deep as a graph has nodes.
void weir_frame_destroy(run_frame_t* frame) {
  if (frame) frame->next_sibling = NULL;
  while (frame) {
    run_frame_t* inner = frame->next_sibling;
    destroy_one(frame, &inner);
    frame = inner;
  }
}

// ---- memory of calls: a function that calls itself without end must not take all there is ----

enum {
  CALL_SIZE = 768,          // what a call has besides its activation: contexts, tensors' heads
  SHARE = 16,               // of the machine's memory, that calls may take
  LEAST_LIMIT = 256 << 20,  // bytes
};

static _Atomic(int64_t) charged;     // bytes of all activations
static _Atomic(int64_t) call_limit;  // bytes; 0: not known yet

void weir_run_limit_calls(int64_t size) { atomic_store(&call_limit, size); }

static int64_t limit(void) {
  int64_t size = atomic_load_explicit(&call_limit, memory_order_relaxed);  // a setting
  if (size) return size;
  int64_t memory = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
  size = WEIR_MAX(memory / SHARE, (int64_t)LEAST_LIMIT);
  atomic_store_explicit(&call_limit, size, memory_order_relaxed);
  return size;
}

static int64_t size_of_call(const weir_plan_t* plan) {
  const weir_plan_frame_t* root = &plan->frames[0];
  return CALL_SIZE + (int64_t)sizeof(pending_t) * root->node_count +
         (int64_t)sizeof(weir_value_t) * root->slot_count +
         (int64_t)sizeof(iteration_t*) * plan->frame_count;
}

bool weir_activation_fits(const weir_plan_t* plan) {
  // Relaxed: a count of its own; by how much a race overshoots does not matter.
  return atomic_load_explicit(&charged, memory_order_relaxed) + size_of_call(plan) <= limit();
}

// ---- activations ----

activation_t* weir_activation_create(run_t* run, weir_plan_t* plan, weir_tensor_t** rets,
                                     weir_done_t done) {
  activation_t* activation = weir_calloc(1, sizeof(*activation));
  if (!activation) return NULL;
  activation->run = run;
  activation->plan = plan;
  activation->rets = rets;
  activation->done = done;
  activation->free_iterations = weir_calloc((size_t)plan->frame_count, sizeof(iteration_t*));
  if (activation->free_iterations) activation->root = weir_frame_create(activation, 0, NULL, NULL);
  if (!activation->root) {
    weir_free(activation->free_iterations);
    weir_free(activation);
    return NULL;
  }
  for (int32_t i = 0; i < plan->ret_count; ++i) rets[i] = NULL;
  activation->size = run->activations ? size_of_call(plan) : 0;  // the step itself is no call
  atomic_fetch_add_explicit(&charged, activation->size, memory_order_relaxed);
  activation->next = run->activations;
  if (run->activations) run->activations->previous = activation;
  run->activations = activation;
  return activation;
}

void weir_activation_unlink(activation_t* activation) {
  if (activation->next) activation->next->previous = activation->previous;
  if (activation->previous) activation->previous->next = activation->next;
  else activation->run->activations = activation->next;
}

void weir_activation_destroy(activation_t* activation) {
  atomic_fetch_sub_explicit(&charged, activation->size, memory_order_relaxed);
  weir_frame_destroy(activation->root);
  for (int32_t i = 0; i < activation->plan->frame_count; ++i) {
    for (iteration_t* it = activation->free_iterations[i]; it;) {
      iteration_t* next = it->next;
      weir_free(it);
      it = next;
    }
  }
  weir_free(activation->free_iterations);
  weir_free(activation);
}
