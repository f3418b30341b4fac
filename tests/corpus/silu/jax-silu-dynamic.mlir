// op: onnx.Swish alpha=1.0
// source: jax 0.10.2, jax.export with a symbolic batch of jax.nn.silu
module @jit_silu attributes {jax.uses_shape_polymorphism = true, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<?x3x8xf32> loc(unknown)) -> (tensor<?x3x8xf32> {jax.result_info = "result"}) {
    %c = stablehlo.constant dense<1> : tensor<i32>
    %0 = stablehlo.get_dimension_size %arg0, dim = 0 : (tensor<?x3x8xf32>) -> tensor<i32>
    %1 = stablehlo.compare GE, %0, %c, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.custom_call @shape_assertion(%1, %0) {api_version = 2 : i32, error_message = "Input shapes do not match the polymorphic shapes specification. Expected value >= 1 for dimension variable 'b'. Using the following polymorphic shapes specifications: args[0].shape = (b, 3, 8). Obtained dimension variables: 'b' = {0} from specification 'b' for dimension args[0].shape[0] (= {0}), . Please see https://docs.jax.dev/en/latest/export/shape_poly.html#shape-assertion-errors for more details.", has_side_effect = true} : (tensor<i1>, tensor<i32>) -> ()
    %2 = call @_wrapped_jax_export_main(%0, %arg0) : (tensor<i32>, tensor<?x3x8xf32>) -> tensor<?x3x8xf32>
    return %2 : tensor<?x3x8xf32>
  }
  func.func private @_wrapped_jax_export_main(%arg0: tensor<i32> {jax.global_constant = "b"} loc(unknown), %arg1: tensor<?x3x8xf32> loc("x")) -> (tensor<?x3x8xf32> {jax.result_info = "result"}) {
    %0 = call @silu(%arg0, %arg1) : (tensor<i32>, tensor<?x3x8xf32>) -> tensor<?x3x8xf32>
    return %0 : tensor<?x3x8xf32>
  }
  func.func private @silu(%arg0: tensor<i32> {jax.global_constant = "b"} loc(unknown), %arg1: tensor<?x3x8xf32> loc(unknown)) -> tensor<?x3x8xf32> {
    %c = stablehlo.constant dense<8> : tensor<1xi32>
    %c_0 = stablehlo.constant dense<3> : tensor<1xi32>
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %0 = stablehlo.negate %arg1 : tensor<?x3x8xf32>
    %1 = stablehlo.exponential %0 : tensor<?x3x8xf32>
    %2 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %3 = stablehlo.concatenate %2, %c_0, %c, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %4 = stablehlo.dynamic_broadcast_in_dim %cst, %3, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x3x8xf32>
    %5 = stablehlo.add %4, %1 : tensor<?x3x8xf32>
    %6 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %7 = stablehlo.concatenate %6, %c_0, %c, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %8 = stablehlo.dynamic_broadcast_in_dim %cst, %7, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x3x8xf32>
    %9 = stablehlo.divide %8, %5 : tensor<?x3x8xf32>
    %10 = stablehlo.multiply %arg1, %9 : tensor<?x3x8xf32>
    return %10 : tensor<?x3x8xf32>
  }
}
