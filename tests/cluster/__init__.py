"""What drives servers with TensorFlow's own client."""
