// op: kernel.attention scale=0.353553
// source: jax 0.10.2, jax.export with a symbolic batch of einsum over [batch, length, heads, size], scaled query (Flax)
module @jit__attention attributes {jax.uses_shape_polymorphism = true, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<?x3x4x8xf32> loc(unknown), %arg1: tensor<?x3x4x8xf32> loc(unknown), %arg2: tensor<?x3x4x8xf32> loc(unknown)) -> (tensor<?x3x4x8xf32> {jax.result_info = "result"}) {
    %c = stablehlo.constant dense<1> : tensor<i32>
    %0 = stablehlo.get_dimension_size %arg0, dim = 0 : (tensor<?x3x4x8xf32>) -> tensor<i32>
    %1 = stablehlo.get_dimension_size %arg1, dim = 0 : (tensor<?x3x4x8xf32>) -> tensor<i32>
    %2 = stablehlo.get_dimension_size %arg2, dim = 0 : (tensor<?x3x4x8xf32>) -> tensor<i32>
    %3 = stablehlo.compare GE, %0, %c, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.custom_call @shape_assertion(%3, %0) {api_version = 2 : i32, error_message = "Input shapes do not match the polymorphic shapes specification. Expected value >= 1 for dimension variable 'b'. Using the following polymorphic shapes specifications: args[0].shape = (b, 3, 4, 8),args[1].shape = (b, 3, 4, 8),args[2].shape = (b, 3, 4, 8). Obtained dimension variables: 'b' = {0} from specification 'b' for dimension args[0].shape[0] (= {0}), . Please see https://docs.jax.dev/en/latest/export/shape_poly.html#shape-assertion-errors for more details.", has_side_effect = true} : (tensor<i1>, tensor<i32>) -> ()
    %4 = stablehlo.compare EQ, %1, %0, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.custom_call @shape_assertion(%4, %1, %0) {api_version = 2 : i32, error_message = "Input shapes do not match the polymorphic shapes specification. Found inconsistency between dimension size args[1].shape[0] (= {0}) and the specification 'b' (= {1}). Using the following polymorphic shapes specifications: args[0].shape = (b, 3, 4, 8),args[1].shape = (b, 3, 4, 8),args[2].shape = (b, 3, 4, 8). Obtained dimension variables: 'b' = {1} from specification 'b' for dimension args[0].shape[0] (= {1}), . Please see https://docs.jax.dev/en/latest/export/shape_poly.html#shape-assertion-errors for more details.", has_side_effect = true} : (tensor<i1>, tensor<i32>, tensor<i32>) -> ()
    %5 = stablehlo.compare EQ, %2, %0, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.custom_call @shape_assertion(%5, %2, %0) {api_version = 2 : i32, error_message = "Input shapes do not match the polymorphic shapes specification. Found inconsistency between dimension size args[2].shape[0] (= {0}) and the specification 'b' (= {1}). Using the following polymorphic shapes specifications: args[0].shape = (b, 3, 4, 8),args[1].shape = (b, 3, 4, 8),args[2].shape = (b, 3, 4, 8). Obtained dimension variables: 'b' = {1} from specification 'b' for dimension args[0].shape[0] (= {1}), . Please see https://docs.jax.dev/en/latest/export/shape_poly.html#shape-assertion-errors for more details.", has_side_effect = true} : (tensor<i1>, tensor<i32>, tensor<i32>) -> ()
    %6 = call @_wrapped_jax_export_main(%0, %arg0, %arg1, %arg2) : (tensor<i32>, tensor<?x3x4x8xf32>, tensor<?x3x4x8xf32>, tensor<?x3x4x8xf32>) -> tensor<?x3x4x8xf32>
    return %6 : tensor<?x3x4x8xf32>
  }
  func.func private @_wrapped_jax_export_main(%arg0: tensor<i32> {jax.global_constant = "b"} loc(unknown), %arg1: tensor<?x3x4x8xf32> loc("q"), %arg2: tensor<?x3x4x8xf32> loc("k"), %arg3: tensor<?x3x4x8xf32> loc("v")) -> (tensor<?x3x4x8xf32> {jax.result_info = "result"}) {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %c = stablehlo.constant dense<1> : tensor<1xi32>
    %cst_0 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %c_1 = stablehlo.constant dense<8> : tensor<1xi32>
    %c_2 = stablehlo.constant dense<4> : tensor<1xi32>
    %c_3 = stablehlo.constant dense<3> : tensor<1xi32>
    %cst_4 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %0 = stablehlo.sqrt %cst_4 : tensor<f32>
    %1 = stablehlo.convert %0 : tensor<f32>
    %2 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %3 = stablehlo.concatenate %2, %c_3, %c_2, %c_1, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %4 = stablehlo.dynamic_broadcast_in_dim %1, %3, dims = [] : (tensor<f32>, tensor<4xi32>) -> tensor<?x3x4x8xf32>
    %5 = stablehlo.divide %arg1, %4 : tensor<?x3x4x8xf32>
    %6 = stablehlo.dot_general %5, %arg2, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3] : (tensor<?x3x4x8xf32>, tensor<?x3x4x8xf32>) -> tensor<?x4x3x3xf32>
    %7 = stablehlo.reduce(%6 init: %cst_0) applies stablehlo.maximum across dimensions = [3] : (tensor<?x4x3x3xf32>, tensor<f32>) -> tensor<?x4x3xf32>
    %8 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %9 = stablehlo.concatenate %8, %c_2, %c_3, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %10 = stablehlo.dynamic_broadcast_in_dim %cst_0, %9, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x4x3xf32>
    %11 = stablehlo.maximum %10, %7 : tensor<?x4x3xf32>
    %12 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %13 = stablehlo.concatenate %12, %c_2, %c_3, %c, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %14 = stablehlo.dynamic_broadcast_in_dim %11, %13, dims = [0, 1, 2] : (tensor<?x4x3xf32>, tensor<4xi32>) -> tensor<?x4x3x1xf32>
    %15 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %16 = stablehlo.concatenate %15, %c_2, %c_3, %c_3, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %17 = stablehlo.dynamic_broadcast_in_dim %14, %16, dims = [0, 1, 2, 3] : (tensor<?x4x3x1xf32>, tensor<4xi32>) -> tensor<?x4x3x3xf32>
    %18 = stablehlo.subtract %6, %17 : tensor<?x4x3x3xf32>
    %19 = stablehlo.exponential %18 : tensor<?x4x3x3xf32>
    %20 = stablehlo.reduce(%19 init: %cst) applies stablehlo.add across dimensions = [3] : (tensor<?x4x3x3xf32>, tensor<f32>) -> tensor<?x4x3xf32>
    %21 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %22 = stablehlo.concatenate %21, %c_2, %c_3, %c, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %23 = stablehlo.dynamic_broadcast_in_dim %20, %22, dims = [0, 1, 2] : (tensor<?x4x3xf32>, tensor<4xi32>) -> tensor<?x4x3x1xf32>
    %24 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %25 = stablehlo.concatenate %24, %c_2, %c_3, %c_3, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %26 = stablehlo.dynamic_broadcast_in_dim %23, %25, dims = [0, 1, 2, 3] : (tensor<?x4x3x1xf32>, tensor<4xi32>) -> tensor<?x4x3x3xf32>
    %27 = stablehlo.divide %19, %26 : tensor<?x4x3x3xf32>
    %28 = stablehlo.dot_general %arg3, %27, batching_dims = [0, 2] x [0, 1], contracting_dims = [1] x [3] : (tensor<?x3x4x8xf32>, tensor<?x4x3x3xf32>) -> tensor<?x4x8x3xf32>
    %29 = stablehlo.transpose %28, dims = [0, 3, 1, 2] : (tensor<?x4x8x3xf32>) -> tensor<?x3x4x8xf32>
    return %29 : tensor<?x3x4x8xf32>
  }
}
