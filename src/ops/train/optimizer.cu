// optimizer.cu — Updates of variables: dense, of several at once, or of one by rows. After optimizer_loop.cu, the loop and
// the definitions of
//
//   STEP           the loop's name
//   SLOTS SCALARS  how many of them
//   FLAG           true or false
//   UPDATES        of a launch, at most
//   INDEX          the type of indices, of an update by rows
#undef static
#undef restrict

enum { WIDTH = 16 / sizeof(E) };

// The variable first. A scalar may be NULL, and is zero then.
struct update_t {
  E* slots[SLOTS];
  const E* grad;
  const E* scalars[SCALARS];
};

__device__ __forceinline__ void load_scalars(const update_t& update, T* scalars) {
#pragma unroll
  for (int i = 0; i < SCALARS; ++i)
    scalars[i] = update.scalars[i] ? (T)element_t<E>::load(*update.scalars[i]) : (T)0;
}

// Updates one element of each slot, which are in |at|, by |grad|.
__device__ __forceinline__ void step_of(E* at, E grad, const T* scalars) {
  T values[SLOTS];
  T g = element_t<E>::load(grad);
  weir_optimizer_args_t args = {};
#pragma unroll
  for (int i = 0; i < SLOTS; ++i) {
    values[i] = element_t<E>::load(at[i]);
    args.slots[i] = &values[i];
  }
  args.grad = &g;
  args.scalars = scalars;
  args.flag = FLAG;
  STEP(&args, 1);
#pragma unroll
  for (int i = 0; i < SLOTS; ++i) at[i] = element_t<E>::store(values[i]);
}

__device__ __forceinline__ void step_at(const update_t& update, int64_t i, int64_t grad,
                                        const T* scalars) {
  E at[SLOTS];
#pragma unroll
  for (int s = 0; s < SLOTS; ++s) at[s] = update.slots[s][i];
  step_of(at, update.grad[grad], scalars);
#pragma unroll
  for (int s = 0; s < SLOTS; ++s) update.slots[s][i] = at[s];
}

#ifndef INDEX
// A block takes a chunk of one variable at a time.
enum { CHUNK = WIDTH * 256 * 4 };

struct item_t {
  update_t update;
  int64_t count;       // elements
  int64_t end;         // the chunk behind its last; the next one's first
  int64_t is_aligned;  // to sixteen bytes
};
struct table_t {
  int64_t count;
  item_t items[UPDATES];
};

__device__ __forceinline__ int item_of(const table_t& table, int64_t chunk) {
  int first = 0, last = (int)table.count - 1;
  while (UPDATES > 1 && first < last) {
    int middle = (first + last) / 2;
    if (chunk < table.items[middle].end) last = middle;
    else first = middle + 1;
  }
  return first;
}

__device__ __forceinline__ void step_packs(const update_t& update, int64_t begin, int64_t end,
                                           const T* scalars) {
  typedef pack_t<E, WIDTH> wide_t;
  for (int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) {
    wide_t slots[SLOTS], grad = ((const wide_t*)update.grad)[i];
#pragma unroll
    for (int s = 0; s < SLOTS; ++s) slots[s] = ((const wide_t*)update.slots[s])[i];
#pragma unroll
    for (int k = 0; k < WIDTH; ++k) {
      E at[SLOTS];
#pragma unroll
      for (int s = 0; s < SLOTS; ++s) at[s] = slots[s].at[k];
      step_of(at, grad.at[k], scalars);
#pragma unroll
      for (int s = 0; s < SLOTS; ++s) slots[s].at[k] = at[s];
    }
#pragma unroll
    for (int s = 0; s < SLOTS; ++s) store_whole((wide_t*)update.slots[s] + i, slots[s]);
  }
}

extern "C" __global__ void dense(const __grid_constant__ table_t table) {
  int64_t chunks = table.items[table.count - 1].end;
  for (int64_t chunk = blockIdx.x; chunk < chunks; chunk += gridDim.x) {
    int at = item_of(table, chunk);
    update_t update = table.items[at].update;
    int64_t begin = (chunk - (at > 0 ? table.items[at - 1].end : 0)) * CHUNK;
    int64_t end = begin + CHUNK < table.items[at].count ? begin + CHUNK : table.items[at].count;
    int64_t packed = table.items[at].is_aligned ? end / WIDTH * WIDTH : begin;
    T scalars[SCALARS];
    load_scalars(update, scalars);
    step_packs(update, begin / WIDTH, packed / WIDTH, scalars);
    for (int64_t i = packed + threadIdx.x; i < end; i += blockDim.x)
      step_at(update, i, i, scalars);
  }
}
#else
// Of each row of the variable: how often it is named, and |count| less the first place where.
struct uses_t {
  uint32_t times, first;
};

extern "C" __global__ void find_uses(const INDEX* indices, uint32_t count, uses_t* uses,
                                     int64_t rows) {
  for (int64_t i = thread_of_grid(); i < count; i += threads_of_grid()) {
    int64_t row = indices[i];
    if ((uint64_t)row >= (uint64_t)rows) continue;
    atomicAdd(&uses[row].times, 1);
    atomicMax(&uses[row].first, count - (uint32_t)i);
  }
}

// A warp takes a row where it is named first, and all its uses from there on, in their order: the
// result does not depend on who comes when. Rows that do not exist are left out.
extern "C" __global__ void by_rows(update_t update, const INDEX* indices, uint32_t count,
                                   const uses_t* uses, int64_t rows, int64_t width) {
  int lane = threadIdx.x & 31;
  T scalars[SCALARS];
  load_scalars(update, scalars);
  for (int64_t i = thread_of_grid() >> 5; i < count; i += threads_of_grid() >> 5) {
    int64_t row = indices[i];
    if ((uint64_t)row >= (uint64_t)rows || uses[row].first != count - (uint32_t)i) continue;
    uint32_t left = uses[row].times - 1;
    for (int64_t c = lane; c < width; c += 32)
      step_at(update, row * width + c, i * width + c, scalars);
    for (int64_t from = i + 1; left; from += 32) {
      bool is_same = from + lane < count && indices[from + lane] == row;
      for (uint32_t found = __ballot_sync(~0u, is_same); found; found &= found - 1, --left) {
        int64_t at = from + __ffs(found) - 1;
        for (int64_t c = lane; c < width; c += 32)
          step_at(update, row * width + c, at * width + c, scalars);
      }
    }
  }
}
#endif
