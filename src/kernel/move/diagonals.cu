// diagonals.cu — Diagonals of matrices, packed as the rows of a matrix, and bands around the main
// one. Before this text comes the definition of E, a type as large as an element.

// Matrices of |rows| x |columns|. Diagonals |upper| down to |lower| are rows of |length| elements,
// in which short ones stand left or right.
struct diagonals_t {
  int64_t lower, upper, rows, columns, length;
  int left_above, left_below;
};

// Where the elements of diagonal |d| begin in its row; their count.
struct span_t {
  int64_t begin, count;
};
__device__ __forceinline__ span_t span_of(const diagonals_t& s, int64_t d) {
  int64_t right = s.columns - (d > 0 ? d : 0), below = s.rows + (d < 0 ? d : 0);
  bool is_left = (d >= 0 && s.left_above) || (d <= 0 && s.left_below);
  span_t span = {0, right < below ? right : below};
  if (!is_left) span.begin = s.length - span.count;
  return span;
}

// Matrices with these diagonals and elsewhere what |background| has, or |padding|.
extern "C" __global__ void put_diagonals(const E* __restrict__ packed, const E* background, E* y,
                                         diagonals_t s, int64_t count, E padding) {
  for (int64_t i = thread_of_grid(); i < count; i += threads_of_grid()) {
    int64_t line = quotient_of(i, s.columns), column = i - line * s.columns;
    int64_t matrix = quotient_of(line, s.rows), row = line - matrix * s.rows, d = column - row;
    if (d >= s.lower && d <= s.upper) {
      int64_t at = matrix * (s.upper - s.lower + 1) + (s.upper - d);
      y[i] = packed[at * s.length + span_of(s, d).begin + (d > 0 ? row : column)];
    } else {
      y[i] = background ? background[i] : padding;
    }
  }
}

// The diagonals of matrices, |padding| where they are short.
extern "C" __global__ void take_diagonals(const E* __restrict__ x, E* __restrict__ y, diagonals_t s,
                                          int64_t count, E padding) {
  int64_t diagonals = s.upper - s.lower + 1;
  for (int64_t i = thread_of_grid(); i < count; i += threads_of_grid()) {
    int64_t line = quotient_of(i, s.length), matrix = quotient_of(line, diagonals);
    int64_t d = s.upper - (line - matrix * diagonals);
    span_t span = span_of(s, d);
    int64_t k = i - line * s.length - span.begin;
    int64_t row = k + (d < 0 ? -d : 0), column = k + (d > 0 ? d : 0);
    y[i] = k >= 0 && k < span.count ? x[(matrix * s.rows + row) * s.columns + column] : padding;
  }
}

// Zeros outside of the diagonals |lower| to |upper|; in place, too.
extern "C" __global__ void keep_band(const E* x, E* y, diagonals_t s, int64_t count) {
  for (int64_t i = thread_of_grid(); i < count; i += threads_of_grid()) {
    int64_t line = quotient_of(i, s.columns), column = i - line * s.columns;
    int64_t d = column - (line - quotient_of(line, s.rows) * s.rows);
    E value = {};
    if (d >= s.lower && d <= s.upper) value = x[i];
    y[i] = value;
  }
}
