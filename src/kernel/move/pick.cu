// pick.cu — Those of many elements that are chosen, in their order: how many there are, and which
// number each has among them. Before this text come
//
//   choice_t                what says which they are
//   is_chosen(choice, i)    whether element i is one; as many threads of a warp may ask as like to
//   put(choice, i, number)  notes the number of one
//
// Chunks of elements are blocks': their counts, summed up in between, are where their numbers begin.
enum { BLOCK = 256, WARP = 32, CHUNK = 2048 };

extern "C" __global__ void pick_count(const __grid_constant__ choice_t choice, int64_t count,
                                      int64_t chunks, int64_t* totals) {
  for (int64_t chunk = blockIdx.x; chunk < chunks; chunk += gridDim.x) {
    int64_t first = chunk * CHUNK, end = first + CHUNK < count ? first + CHUNK : count;
    int64_t total = 0;
    for (; first < end; first += BLOCK) {
      int64_t i = first + threadIdx.x;
      total += __syncthreads_count(i < end && is_chosen(choice, i));
    }
    if (threadIdx.x == 0) totals[chunk] = total;
  }
}

extern "C" __global__ void pick_put(const __grid_constant__ choice_t choice, int64_t count,
                                    int64_t chunks, const int64_t* starts) {
  __shared__ int in_warp[BLOCK / WARP];
  int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
  for (int64_t chunk = blockIdx.x; chunk < chunks; chunk += gridDim.x) {
    int64_t first = chunk * CHUNK, end = first + CHUNK < count ? first + CHUNK : count;
    int64_t number = starts[chunk];
    for (; first < end; first += BLOCK) {
      int64_t i = first + threadIdx.x;
      bool is_one = i < end && is_chosen(choice, i);
      uint32_t ones = __ballot_sync(0xffffffff, is_one);
      if (lane == 0) in_warp[warp] = __popc(ones);
      __syncthreads();
      int before = __popc(ones & ((1u << lane) - 1)), all = 0;
      for (int k = 0; k < BLOCK / WARP; ++k) {
        if (k < warp) before += in_warp[k];
        all += in_warp[k];
      }
      if (is_one) put(choice, i, number + before);
      number += all;
      __syncthreads();
    }
  }
}
