// move.cu — Moving elements without knowing their type: strided copies of any rank, through shared
// memory where one side's neighbours are far apart on the other, parts of rows, and borders.
// Before this text comes the definition of E, a type as large as an element.

// ---- strided copies ----

enum { MAX_RANK = 16, AT_ONCE = 4 };

struct box_t {
  int rank;
  int is_wide;  // more elements than 32 bits count
  int64_t count;
  divisor_t by[MAX_RANK];
  int64_t sizes[MAX_RANK], src[MAX_RANK], dst[MAX_RANK];
};

__device__ __forceinline__ void find_place(const box_t& box, int64_t i, int64_t* src, int64_t* dst) {
  int64_t from = 0, to = 0;
  if (box.is_wide) {
#pragma unroll 1  // seldom, and long when it is compiled
    for (int d = box.rank - 1; d >= 0; --d) {
      int64_t rest = i / box.sizes[d], place = i - rest * box.sizes[d];
      from += place * box.src[d];
      to += place * box.dst[d];
      i = rest;
    }
  } else {
    uint32_t n = (uint32_t)i;
    for (int d = box.rank - 1; d > 0; --d) {
      uint32_t rest = quotient_of(n, box.by[d]), place = n - rest * box.by[d].size;
      from += place * box.src[d];
      to += place * box.dst[d];
      n = rest;
    }
    from += n * box.src[0];
    to += n * box.dst[0];
  }
  *src = from;
  *dst = to;
}

template <typename B>
__device__ __forceinline__ void copy_box(const B* __restrict__ src, B* __restrict__ dst,
                                         const box_t& box) {
  int64_t step = threads_of_grid();
  for (int64_t i = thread_of_grid(); i < box.count; i += AT_ONCE * step) {
    B values[AT_ONCE];
    int64_t places[AT_ONCE];
#pragma unroll
    for (int k = 0; k < AT_ONCE; ++k) {
      int64_t from = 0;
      if (i + k * step >= box.count) continue;
      find_place(box, i + k * step, &from, &places[k]);
      values[k] = src[from];
    }
#pragma unroll
    for (int k = 0; k < AT_ONCE; ++k) {
      if (i + k * step < box.count) dst[places[k]] = values[k];
    }
  }
}

// ---- transpositions ----

// |rows| elements are neighbours in the source, |columns| in the destination.
struct tiles_t {
  int64_t rows, columns;
  int64_t row_tiles, column_tiles;
  int64_t column_stride;  // of columns in the source
  int64_t row_stride;     // of rows in the destination
};

enum { TILE = 32, TILE_THREADS = 8 };

// |box|: the dimensions outside a matrix.
template <typename B>
__device__ __forceinline__ void copy_tiles(const B* __restrict__ src, B* __restrict__ dst,
                                           const tiles_t& t, const box_t& box) {
  __shared__ B tile[TILE][TILE + 1];
  int64_t a_matrix = t.row_tiles * t.column_tiles, count = a_matrix * box.count;
  for (int64_t i = blockIdx.x; i < count; i += gridDim.x) {
    int64_t matrix = i / a_matrix, rest = i - matrix * a_matrix, from = 0, to = 0;
    int64_t row = rest % t.row_tiles * TILE, column = rest / t.row_tiles * TILE;
    find_place(box, matrix, &from, &to);
    for (int k = threadIdx.y; k < TILE; k += TILE_THREADS) {
      int64_t r = row + threadIdx.x, c = column + k;
      if (r < t.rows && c < t.columns) tile[k][threadIdx.x] = src[from + r + c * t.column_stride];
    }
    __syncthreads();
    for (int k = threadIdx.y; k < TILE; k += TILE_THREADS) {
      int64_t r = row + k, c = column + threadIdx.x;
      if (r < t.rows && c < t.columns) dst[to + r * t.row_stride + c] = tile[threadIdx.x][k];
    }
    __syncthreads();
  }
}

// ---- columns of a matrix that are matrices of their own ----

enum { MAX_PARTS = 64 };

// |whole| begins with the first part's first column. Part i has the columns from ends[i - 1] on.
struct parts_t {
  int count, is_cut;   // the parts are written; else the whole
  uint32_t total;      // elements of all parts
  divisor_t columns;   // of all parts
  int64_t row_stride;  // of the whole
  void* whole;
  void* at[MAX_PARTS];
  uint32_t ends[MAX_PARTS];
};

template <typename B>
__device__ __forceinline__ void copy_parts(const parts_t& parts) {
  for (uint32_t i = (uint32_t)thread_of_grid(); i < parts.total; i += (uint32_t)threads_of_grid()) {
    uint32_t row = quotient_of(i, parts.columns), column = i - row * parts.columns.size;
    int part = 0, last = parts.count - 1;
    while (part < last) {
      int middle = (part + last) / 2;
      if (column < parts.ends[middle]) last = middle;
      else part = middle + 1;
    }
    uint32_t begin = part > 0 ? parts.ends[part - 1] : 0, width = parts.ends[part] - begin;
    B* piece = (B*)parts.at[part] + (int64_t)row * width + (column - begin);
    B* place = (B*)parts.whole + row * parts.row_stride + column;
    if (parts.is_cut) *piece = *place;
    else *place = *piece;
  }
}

// ---- borders ----

// The input's element of place |p| in a dimension of the output is |p| - before, mirrored where
// that is outside, or the border's value.
struct border_t {
  int rank;
  int is_mirror;
  int64_t offset;  // 1: the edge is not repeated
  int64_t count;   // of the output
  int64_t sizes[MAX_RANK], before[MAX_RANK], inner[MAX_RANK], strides[MAX_RANK];
};

template <typename B>
__device__ __forceinline__ void copy_bordered(const B* __restrict__ src, B* __restrict__ dst,
                                              const border_t& b, const B& value) {
  for (int64_t i = thread_of_grid(); i < b.count; i += threads_of_grid()) {
    int64_t rest = i, from = 0;
    bool is_inside = true;
#pragma unroll 1  // a chain of divisions, so there is nothing to do at once
    for (int d = b.rank - 1; d >= 0; --d) {
      int64_t size = b.sizes[d];
      int64_t next = b.count <= 0xffffffff ? (int64_t)((uint32_t)rest / (uint32_t)size)
                                           : rest / size;
      int64_t place = rest - next * size - b.before[d];
      if (b.is_mirror) {
        if (place < 0) place = -place - 1 + b.offset;
        else if (place >= b.inner[d]) place = 2 * b.inner[d] - 1 - place - b.offset;
      } else {
        is_inside = is_inside && place >= 0 && place < b.inner[d];
      }
      from += place * b.strides[d];
      rest = next;
    }
    dst[i] = is_inside ? src[from] : value;
  }
}

extern "C" __global__ void box(const E* src, E* dst, box_t box) {
  copy_box(src, dst, box);
}
extern "C" __global__ void tiles(const E* src, E* dst, tiles_t tiles, box_t box) {
  copy_tiles(src, dst, tiles, box);
}
extern "C" __global__ void parts(const __grid_constant__ parts_t parts) {
  copy_parts<E>(parts);
}
extern "C" __global__ void border(const E* src, E* dst, border_t border, E value) {
  copy_bordered(src, dst, border, value);
}
