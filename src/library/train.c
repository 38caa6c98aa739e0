// train.c — The shortest way to train: one function an optimizer, everything at its default.
#include "weir/optimizer.h"

static weir_node_t* train(weir_scope_t* scope, weir_optimizer_t optimizer, weir_edge_t loss) {
  return weir_minimize(scope, &optimizer, loss);
}

weir_node_t* weir_train_sgd(weir_scope_t* scope, weir_edge_t loss, float learning_rate) {
  return train(scope, weir_sgd(learning_rate), loss);
}

weir_node_t* weir_train_sgd_with(weir_scope_t* scope, weir_edge_t loss, weir_edge_t learning_rate) {
  return train(scope, weir_sgd(learning_rate), loss);
}

weir_node_t* weir_train_momentum(weir_scope_t* scope, weir_edge_t loss, float learning_rate,
                                 float momentum) {
  return train(scope, weir_momentum(learning_rate, momentum), loss);
}

weir_node_t* weir_train_momentum_with(weir_scope_t* scope, weir_edge_t loss,
                                      weir_edge_t learning_rate, float momentum) {
  return train(scope, weir_momentum(learning_rate, momentum), loss);
}

weir_node_t* weir_train_adam(weir_scope_t* scope, weir_edge_t loss, float learning_rate) {
  return train(scope, weir_adam(learning_rate), loss);
}

weir_node_t* weir_train_adam_with(weir_scope_t* scope, weir_edge_t loss,
                                  weir_edge_t learning_rate) {
  return train(scope, weir_adam(learning_rate), loss);
}
