// partition.cu — Rows dealt to several outputs, each in the order of the rows. E, a type of the size
// of what is moved at once, is defined before this text.
//
// A warp deals a chunk of rows, one 32 after the other. What each output gets of each chunk,
// summed up by outputs and then by chunks, is where the rows go.
enum { WARP = 32, AT_ONCE = 64 };

struct deal_t {
  const int32_t* parts;  // whose each row is
  int64_t rows, chunk, chunks;
  int count;       // of outputs
  int64_t* table;  // [count, chunks], and the sum of all
};

// The part of row |i|, or -1: there is none.
__device__ __forceinline__ int part_of(const deal_t& deal, int64_t i, int64_t end) {
  int part = i < end ? deal.parts[i] : -1;
  return (uint32_t)part < (uint32_t)deal.count ? part : -1;
}

// |bad|: how far the first row from the end is that has no part; 0: all have one.
extern "C" __global__ void deal_count(deal_t deal, unsigned long long* bad) {
  int lane = threadIdx.x % WARP;
  int64_t warps = threads_of_grid() / WARP;
  for (int64_t chunk = thread_of_grid() / WARP; chunk < deal.chunks; chunk += warps) {
    int64_t first = chunk * deal.chunk;
    int64_t end = first + deal.chunk < deal.rows ? first + deal.chunk : deal.rows;
    for (; first < end; first += WARP) {
      int64_t i = first + lane;
      int part = part_of(deal, i, end);
      if (i < end && part < 0) atomicMax(bad, (unsigned long long)(deal.rows - i));
      uint32_t same = __match_any_sync(0xffffffff, part);
      if (part >= 0 && lane == __ffs(same) - 1)
        deal.table[part * deal.chunks + chunk] += __popc(same);
      __syncwarp();
    }
  }
}

// Where each output begins and all end, then |bad|, and what is there in place of a part.
extern "C" __global__ void deal_starts(deal_t deal, const unsigned long long* bad,
                                       int64_t* numbers) {
  for (int64_t k = thread_of_grid(); k <= deal.count; k += threads_of_grid())
    numbers[k] = deal.table[k * deal.chunks];
  if (thread_of_grid() > 0 || *bad == 0) return;
  numbers[deal.count + 1] = (int64_t)*bad;
  numbers[deal.count + 2] = deal.parts[deal.rows - (int64_t)*bad];
}

// Rows in the order of the outputs. Uses up the table.
extern "C" __global__ void deal_order(deal_t deal, int64_t* __restrict__ order) {
  int lane = threadIdx.x % WARP;
  int64_t warps = threads_of_grid() / WARP;
  for (int64_t chunk = thread_of_grid() / WARP; chunk < deal.chunks; chunk += warps) {
    int64_t first = chunk * deal.chunk;
    int64_t end = first + deal.chunk < deal.rows ? first + deal.chunk : deal.rows;
    for (; first < end; first += WARP) {
      int64_t i = first + lane;
      int part = part_of(deal, i, end);
      uint32_t same = __match_any_sync(0xffffffff, part);
      int64_t* next = &deal.table[part < 0 ? 0 : part * deal.chunks + chunk];
      int64_t at = *next;
      __syncwarp();
      if (part >= 0) {
        order[at + __popc(same & ((1u << lane) - 1))] = i;
        if (lane == __ffs(same) - 1) *next = at + __popc(same);
      }
      __syncwarp();
    }
  }
}

// Outputs side by side, whose rows are |first| and those after it.
struct outputs_t {
  int count;
  int64_t first;
  int64_t ends[AT_ONCE];  // rows from |first| on
  E* at[AT_ONCE];
};

extern "C" __global__ void deal_rows(const E* __restrict__ data, const int64_t* __restrict__ order,
                                     int64_t width, const __grid_constant__ outputs_t outputs) {
  int64_t count = outputs.ends[outputs.count - 1] * width;
  for (int64_t i = thread_of_grid(); i < count; i += threads_of_grid()) {
    int64_t row = quotient_of(i, width), column = i - row * width;
    int low = 0, high = outputs.count - 1;
    while (low < high) {
      int middle = (low + high) / 2;
      if (row < outputs.ends[middle]) high = middle;
      else low = middle + 1;
    }
    int64_t begin = low ? outputs.ends[low - 1] : 0;
    outputs.at[low][(row - begin) * width + column] =
        data[order[outputs.first + row] * width + column];
  }
}
