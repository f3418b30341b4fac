// op: onnx.LayerNormalization axis=-1 epsilon=1e-6
// source: jax 0.10.2, flax 0.12.8, jax.jit(..).lower(..) of flax.linen.LayerNorm (fast variance)
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2x3x8xf32>) -> (tensor<2x3x8xf32> {jax.result_info = "result"}) {
    %cst = stablehlo.constant dense<[0.950803041, 0.109174721, 0.432575971, 0.215916574, 0.238654852, 1.62615907, 0.558118284, 0.211479306]> : tensor<8xf32>
    %cst_0 = stablehlo.constant dense<[1.03058887, 0.581274509, 2.56313205, 0.34613356, 0.655865788, 1.27115691, 1.43501103, 0.624983251]> : tensor<8xf32>
    %0 = chlo.square %arg0 : tensor<2x3x8xf32> -> tensor<2x3x8xf32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %1 = stablehlo.reduce(%arg0 init: %cst_1) applies stablehlo.add across dimensions = [2] : (tensor<2x3x8xf32>, tensor<f32>) -> tensor<2x3xf32>
    %cst_2 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<2x3xf32>
    %3 = stablehlo.divide %1, %2 : tensor<2x3xf32>
    %cst_3 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %4 = stablehlo.reduce(%0 init: %cst_3) applies stablehlo.add across dimensions = [2] : (tensor<2x3x8xf32>, tensor<f32>) -> tensor<2x3xf32>
    %cst_4 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %5 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<2x3xf32>
    %6 = stablehlo.divide %4, %5 : tensor<2x3xf32>
    %7 = chlo.square %3 : tensor<2x3xf32> -> tensor<2x3xf32>
    %8 = stablehlo.subtract %6, %7 : tensor<2x3xf32>
    %cst_5 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %9 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<2x3xf32>
    %10 = stablehlo.maximum %9, %8 : tensor<2x3xf32>
    %11 = stablehlo.broadcast_in_dim %3, dims = [0, 1] : (tensor<2x3xf32>) -> tensor<2x3x1xf32>
    %12 = stablehlo.broadcast_in_dim %10, dims = [0, 1] : (tensor<2x3xf32>) -> tensor<2x3x1xf32>
    %13 = stablehlo.broadcast_in_dim %11, dims = [0, 1, 2] : (tensor<2x3x1xf32>) -> tensor<2x3x8xf32>
    %14 = stablehlo.subtract %arg0, %13 : tensor<2x3x8xf32>
    %cst_6 = stablehlo.constant dense<9.99999997E-7> : tensor<f32>
    %15 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<2x3x1xf32>
    %16 = stablehlo.add %12, %15 : tensor<2x3x1xf32>
    %17 = stablehlo.rsqrt %16 : tensor<2x3x1xf32>
    %18 = stablehlo.reshape %cst : (tensor<8xf32>) -> tensor<1x1x8xf32>
    %19 = stablehlo.broadcast_in_dim %17, dims = [0, 1, 2] : (tensor<2x3x1xf32>) -> tensor<2x3x8xf32>
    %20 = stablehlo.broadcast_in_dim %18, dims = [0, 1, 2] : (tensor<1x1x8xf32>) -> tensor<2x3x8xf32>
    %21 = stablehlo.multiply %19, %20 : tensor<2x3x8xf32>
    %22 = stablehlo.multiply %14, %21 : tensor<2x3x8xf32>
    %23 = stablehlo.reshape %cst_0 : (tensor<8xf32>) -> tensor<1x1x8xf32>
    %24 = stablehlo.broadcast_in_dim %23, dims = [0, 1, 2] : (tensor<1x1x8xf32>) -> tensor<2x3x8xf32>
    %25 = stablehlo.add %22, %24 : tensor<2x3x8xf32>
    return %25 : tensor<2x3x8xf32>
  }
}
