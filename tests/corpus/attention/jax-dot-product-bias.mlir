// op: kernel.attention scale=0.353553
// source: jax 0.10.2, jax.jit(..).lower(..) of jax.nn.dot_product_attention(bias)
module @jit__bias attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2x3x4x8xf32>, %arg1: tensor<2x3x4x8xf32>, %arg2: tensor<2x3x4x8xf32>, %arg3: tensor<1x4x3x3xf32>) -> (tensor<2x3x4x8xf32> {jax.result_info = "result"}) {
    %0 = stablehlo.reshape %arg0 : (tensor<2x3x4x8xf32>) -> tensor<2x3x4x1x8xf32>
    %1 = stablehlo.reshape %arg3 : (tensor<1x4x3x3xf32>) -> tensor<1x4x1x3x3xf32>
    %2 = stablehlo.dot_general %0, %arg1, batching_dims = [0, 2] x [0, 2], contracting_dims = [4] x [3], precision = [DEFAULT, DEFAULT] : (tensor<2x3x4x1x8xf32>, tensor<2x3x4x8xf32>) -> tensor<2x4x3x1x3xf32>
    %cst = stablehlo.constant dense<0.353553385> : tensor<f32>
    %3 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x4x3x1x3xf32>
    %4 = stablehlo.multiply %2, %3 : tensor<2x4x3x1x3xf32>
    %5 = stablehlo.transpose %4, dims = [3, 0, 1, 2, 4] : (tensor<2x4x3x1x3xf32>) -> tensor<1x2x4x3x3xf32>
    %6 = stablehlo.transpose %1, dims = [2, 0, 1, 3, 4] : (tensor<1x4x1x3x3xf32>) -> tensor<1x1x4x3x3xf32>
    %7 = stablehlo.broadcast_in_dim %6, dims = [0, 1, 2, 3, 4] : (tensor<1x1x4x3x3xf32>) -> tensor<1x2x4x3x3xf32>
    %8 = stablehlo.add %5, %7 : tensor<1x2x4x3x3xf32>
    %cst_0 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %9 = stablehlo.reduce(%8 init: %cst_0) applies stablehlo.maximum across dimensions = [4] : (tensor<1x2x4x3x3xf32>, tensor<f32>) -> tensor<1x2x4x3xf32>
    %cst_1 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %10 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<1x2x4x3xf32>
    %11 = stablehlo.maximum %10, %9 : tensor<1x2x4x3xf32>
    %12 = stablehlo.broadcast_in_dim %11, dims = [0, 1, 2, 3] : (tensor<1x2x4x3xf32>) -> tensor<1x2x4x3x1xf32>
    %13 = stablehlo.broadcast_in_dim %12, dims = [0, 1, 2, 3, 4] : (tensor<1x2x4x3x1xf32>) -> tensor<1x2x4x3x3xf32>
    %14 = stablehlo.subtract %8, %13 : tensor<1x2x4x3x3xf32>
    %15 = stablehlo.exponential %14 : tensor<1x2x4x3x3xf32>
    %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %16 = stablehlo.reduce(%15 init: %cst_2) applies stablehlo.add across dimensions = [4] : (tensor<1x2x4x3x3xf32>, tensor<f32>) -> tensor<1x2x4x3xf32>
    %17 = stablehlo.broadcast_in_dim %16, dims = [0, 1, 2, 3] : (tensor<1x2x4x3xf32>) -> tensor<1x2x4x3x1xf32>
    %18 = stablehlo.broadcast_in_dim %17, dims = [0, 1, 2, 3, 4] : (tensor<1x2x4x3x1xf32>) -> tensor<1x2x4x3x3xf32>
    %19 = stablehlo.divide %15, %18 : tensor<1x2x4x3x3xf32>
    %20 = stablehlo.dot_general %arg2, %19, batching_dims = [0, 2] x [1, 2], contracting_dims = [1] x [4], precision = [DEFAULT, DEFAULT] : (tensor<2x3x4x8xf32>, tensor<1x2x4x3x3xf32>) -> tensor<2x4x8x1x3xf32>
    %21 = stablehlo.transpose %20, dims = [3, 0, 4, 1, 2] : (tensor<2x4x8x1x3xf32>) -> tensor<1x2x3x4x8xf32>
    %22 = stablehlo.transpose %21, dims = [1, 2, 3, 0, 4] : (tensor<1x2x3x4x8xf32>) -> tensor<2x3x4x1x8xf32>
    %23 = stablehlo.reshape %22 : (tensor<2x3x4x1x8xf32>) -> tensor<2x3x4x8xf32>
    return %23 : tensor<2x3x4x8xf32>
  }
}
