// op: onnx.GroupNormalization num_groups=2 epsilon=1e-6
// source: jax 0.10.2, flax 0.12.8, jax.jit(..).lower(..) of flax.linen.GroupNorm (channels last, fast variance)
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2x4x5x8xf32>) -> (tensor<2x4x5x8xf32> {jax.result_info = "result"}) {
    %cst = stablehlo.constant dense<[0.116804279, 1.71568179, 0.762701809, 1.14616179, 0.743863582, 1.06063414, 0.810299456, 1.29018593]> : tensor<8xf32>
    %cst_0 = stablehlo.constant dense<[1.11920655, 2.27557516, 0.126589194, 0.483088553, 2.670480e-01, 0.834576547, 0.687427699, 0.479701728]> : tensor<8xf32>
    %0 = stablehlo.reshape %arg0 : (tensor<2x4x5x8xf32>) -> tensor<2x4x5x2x4xf32>
    %1 = chlo.square %0 : tensor<2x4x5x2x4xf32> -> tensor<2x4x5x2x4xf32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %2 = stablehlo.reduce(%0 init: %cst_1) applies stablehlo.add across dimensions = [1, 2, 4] : (tensor<2x4x5x2x4xf32>, tensor<f32>) -> tensor<2x2xf32>
    %cst_2 = stablehlo.constant dense<8.000000e+01> : tensor<f32>
    %3 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<2x2xf32>
    %4 = stablehlo.divide %2, %3 : tensor<2x2xf32>
    %cst_3 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %5 = stablehlo.reduce(%1 init: %cst_3) applies stablehlo.add across dimensions = [1, 2, 4] : (tensor<2x4x5x2x4xf32>, tensor<f32>) -> tensor<2x2xf32>
    %cst_4 = stablehlo.constant dense<8.000000e+01> : tensor<f32>
    %6 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<2x2xf32>
    %7 = stablehlo.divide %5, %6 : tensor<2x2xf32>
    %8 = chlo.square %4 : tensor<2x2xf32> -> tensor<2x2xf32>
    %9 = stablehlo.subtract %7, %8 : tensor<2x2xf32>
    %cst_5 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %10 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<2x2xf32>
    %11 = stablehlo.maximum %10, %9 : tensor<2x2xf32>
    %12 = stablehlo.broadcast_in_dim %4, dims = [0, 1] : (tensor<2x2xf32>) -> tensor<2x2x4xf32>
    %13 = stablehlo.reshape %12 : (tensor<2x2x4xf32>) -> tensor<2x8xf32>
    %14 = stablehlo.broadcast_in_dim %11, dims = [0, 1] : (tensor<2x2xf32>) -> tensor<2x2x4xf32>
    %15 = stablehlo.reshape %14 : (tensor<2x2x4xf32>) -> tensor<2x8xf32>
    %16 = stablehlo.broadcast_in_dim %13, dims = [0, 3] : (tensor<2x8xf32>) -> tensor<2x1x1x8xf32>
    %17 = stablehlo.broadcast_in_dim %15, dims = [0, 3] : (tensor<2x8xf32>) -> tensor<2x1x1x8xf32>
    %18 = stablehlo.broadcast_in_dim %16, dims = [0, 1, 2, 3] : (tensor<2x1x1x8xf32>) -> tensor<2x4x5x8xf32>
    %19 = stablehlo.subtract %arg0, %18 : tensor<2x4x5x8xf32>
    %cst_6 = stablehlo.constant dense<9.99999997E-7> : tensor<f32>
    %20 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<2x1x1x8xf32>
    %21 = stablehlo.add %17, %20 : tensor<2x1x1x8xf32>
    %22 = stablehlo.rsqrt %21 : tensor<2x1x1x8xf32>
    %23 = stablehlo.reshape %cst : (tensor<8xf32>) -> tensor<1x1x1x8xf32>
    %24 = stablehlo.broadcast_in_dim %23, dims = [0, 1, 2, 3] : (tensor<1x1x1x8xf32>) -> tensor<2x1x1x8xf32>
    %25 = stablehlo.multiply %22, %24 : tensor<2x1x1x8xf32>
    %26 = stablehlo.broadcast_in_dim %25, dims = [0, 1, 2, 3] : (tensor<2x1x1x8xf32>) -> tensor<2x4x5x8xf32>
    %27 = stablehlo.multiply %19, %26 : tensor<2x4x5x8xf32>
    %28 = stablehlo.reshape %cst_0 : (tensor<8xf32>) -> tensor<1x1x1x8xf32>
    %29 = stablehlo.broadcast_in_dim %28, dims = [0, 1, 2, 3] : (tensor<1x1x1x8xf32>) -> tensor<2x4x5x8xf32>
    %30 = stablehlo.add %27, %29 : tensor<2x4x5x8xf32>
    return %30 : tensor<2x4x5x8xf32>
  }
}
