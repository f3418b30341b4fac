// op: kernel.attention scale=0.353553
// source: jax 0.10.2, jax.export with a symbolic batch of jax.nn.dot_product_attention
module @jit__lambda attributes {jax.uses_shape_polymorphism = true, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
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
    %cst_0 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %cst_1 = stablehlo.constant dense<0.353553385> : tensor<f32>
    %c = stablehlo.constant dense<8> : tensor<1xi32>
    %c_2 = stablehlo.constant dense<1> : tensor<1xi32>
    %c_3 = stablehlo.constant dense<4> : tensor<1xi32>
    %c_4 = stablehlo.constant dense<3> : tensor<1xi32>
    %0 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %1 = stablehlo.concatenate %0, %c_4, %c_3, %c_2, %c, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<5xi32>
    %2 = stablehlo.dynamic_reshape %arg1, %1 : (tensor<?x3x4x8xf32>, tensor<5xi32>) -> tensor<?x3x4x1x8xf32>
    %3 = stablehlo.dot_general %2, %arg2, batching_dims = [0, 2] x [0, 2], contracting_dims = [4] x [3] : (tensor<?x3x4x1x8xf32>, tensor<?x3x4x8xf32>) -> tensor<?x4x3x1x3xf32>
    %4 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %5 = stablehlo.concatenate %4, %c_3, %c_4, %c_2, %c_4, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<5xi32>
    %6 = stablehlo.dynamic_broadcast_in_dim %cst_1, %5, dims = [] : (tensor<f32>, tensor<5xi32>) -> tensor<?x4x3x1x3xf32>
    %7 = stablehlo.multiply %3, %6 : tensor<?x4x3x1x3xf32>
    %8 = stablehlo.reduce(%7 init: %cst_0) applies stablehlo.maximum across dimensions = [4] : (tensor<?x4x3x1x3xf32>, tensor<f32>) -> tensor<?x4x3x1xf32>
    %9 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %10 = stablehlo.concatenate %9, %c_3, %c_4, %c_2, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %11 = stablehlo.dynamic_broadcast_in_dim %cst_0, %10, dims = [] : (tensor<f32>, tensor<4xi32>) -> tensor<?x4x3x1xf32>
    %12 = stablehlo.maximum %11, %8 : tensor<?x4x3x1xf32>
    %13 = stablehlo.transpose %12, dims = [3, 0, 1, 2] : (tensor<?x4x3x1xf32>) -> tensor<1x?x4x3xf32>
    %14 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %15 = stablehlo.concatenate %c_2, %14, %c_3, %c_4, %c_2, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<5xi32>
    %16 = stablehlo.dynamic_broadcast_in_dim %13, %15, dims = [0, 1, 2, 3] : (tensor<1x?x4x3xf32>, tensor<5xi32>) -> tensor<1x?x4x3x1xf32>
    %17 = stablehlo.transpose %7, dims = [3, 0, 1, 2, 4] : (tensor<?x4x3x1x3xf32>) -> tensor<1x?x4x3x3xf32>
    %18 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %19 = stablehlo.concatenate %c_2, %18, %c_3, %c_4, %c_4, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<5xi32>
    %20 = stablehlo.dynamic_broadcast_in_dim %16, %19, dims = [0, 1, 2, 3, 4] : (tensor<1x?x4x3x1xf32>, tensor<5xi32>) -> tensor<1x?x4x3x3xf32>
    %21 = stablehlo.subtract %17, %20 : tensor<1x?x4x3x3xf32>
    %22 = stablehlo.exponential %21 : tensor<1x?x4x3x3xf32>
    %23 = stablehlo.reduce(%22 init: %cst) applies stablehlo.add across dimensions = [4] : (tensor<1x?x4x3x3xf32>, tensor<f32>) -> tensor<1x?x4x3xf32>
    %24 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %25 = stablehlo.concatenate %c_2, %24, %c_3, %c_4, %c_2, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<5xi32>
    %26 = stablehlo.dynamic_broadcast_in_dim %23, %25, dims = [0, 1, 2, 3] : (tensor<1x?x4x3xf32>, tensor<5xi32>) -> tensor<1x?x4x3x1xf32>
    %27 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %28 = stablehlo.concatenate %c_2, %27, %c_3, %c_4, %c_4, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<5xi32>
    %29 = stablehlo.dynamic_broadcast_in_dim %26, %28, dims = [0, 1, 2, 3, 4] : (tensor<1x?x4x3x1xf32>, tensor<5xi32>) -> tensor<1x?x4x3x3xf32>
    %30 = stablehlo.divide %22, %29 : tensor<1x?x4x3x3xf32>
    %31 = stablehlo.dot_general %arg3, %30, batching_dims = [0, 2] x [1, 2], contracting_dims = [1] x [4] : (tensor<?x3x4x8xf32>, tensor<1x?x4x3x3xf32>) -> tensor<?x4x8x1x3xf32>
    %32 = stablehlo.transpose %31, dims = [3, 0, 4, 1, 2] : (tensor<?x4x8x1x3xf32>) -> tensor<1x?x3x4x8xf32>
    %33 = stablehlo.transpose %32, dims = [1, 2, 3, 0, 4] : (tensor<1x?x3x4x8xf32>) -> tensor<?x3x4x1x8xf32>
    %34 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %35 = stablehlo.concatenate %34, %c_4, %c_3, %c, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %36 = stablehlo.dynamic_reshape %33, %35 : (tensor<?x3x4x1x8xf32>, tensor<4xi32>) -> tensor<?x3x4x8xf32>
    return %36 : tensor<?x3x4x8xf32>
  }
}
