// tf_shape.h — TF_Shape: a name that TensorFlow's C API reserves for shapes; no function uses it.
#ifndef TENSORFLOW_C_TF_SHAPE_H_
#define TENSORFLOW_C_TF_SHAPE_H_

typedef struct TF_Shape TF_Shape;

#endif  // TENSORFLOW_C_TF_SHAPE_H_
