// stitch.cu — Rows from here and there, one below the other. E, a type as large as what is moved at
// once, is defined before this text.
struct rows_t {
  int count;
  int64_t inner;
  uint64_t at[480];  // where they are; 0: a row of zeros
};

extern "C" __global__ void stitch(E* dst, const __grid_constant__ rows_t rows) {
  int64_t count = rows.count * rows.inner;
  for (int64_t i = thread_of_grid(); i < count; i += threads_of_grid()) {
    int64_t row = quotient_of(i, rows.inner);
    const E* from = (const E*)rows.at[row];
    E value = {};
    if (from) value = from[i - row * rows.inner];
    dst[i] = value;
  }
}
