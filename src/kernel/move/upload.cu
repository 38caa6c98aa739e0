// upload.cu — Words of the host's, which come as a launch's argument, to where kernels read them.
struct words_t {
  int count;
  uint32_t at[960];
};

extern "C" __global__ void upload(uint32_t* dst, const __grid_constant__ words_t words) {
  for (int i = (int)thread_of_grid(); i < words.count; i += (int)threads_of_grid())
    dst[i] = words.at[i];
}
