// op: onnx.Gelu approximate=none
// source: jax 0.10.2, jax.jit(..).lower(..) of x * norm.cdf(x)
module @jit__gelu_cdf attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2x3x8xf32>) -> (tensor<2x3x8xf32> {jax.result_info = "result"}) {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x3x8xf32>
    %1 = stablehlo.subtract %arg0, %0 : tensor<2x3x8xf32>
    %cst_0 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<2x3x8xf32>
    %3 = stablehlo.divide %1, %2 : tensor<2x3x8xf32>
    %cst_1 = stablehlo.constant dense<0.707106769> : tensor<f32>
    %4 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<2x3x8xf32>
    %5 = stablehlo.multiply %3, %4 : tensor<2x3x8xf32>
    %6 = stablehlo.abs %5 : tensor<2x3x8xf32>
    %cst_2 = stablehlo.constant dense<0.707106769> : tensor<f32>
    %7 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<2x3x8xf32>
    %8 = stablehlo.compare LT, %6, %7, FLOAT : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xi1>
    %9 = chlo.erf %5 : tensor<2x3x8xf32> -> tensor<2x3x8xf32>
    %cst_3 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %10 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<2x3x8xf32>
    %11 = stablehlo.add %10, %9 : tensor<2x3x8xf32>
    %cst_4 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %12 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<2x3x8xf32>
    %13 = stablehlo.compare GT, %5, %12, FLOAT : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xi1>
    %14 = chlo.erfc %6 : tensor<2x3x8xf32> -> tensor<2x3x8xf32>
    %cst_5 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %15 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<2x3x8xf32>
    %16 = stablehlo.subtract %15, %14 : tensor<2x3x8xf32>
    %17 = chlo.erfc %6 : tensor<2x3x8xf32> -> tensor<2x3x8xf32>
    %18 = stablehlo.select %13, %16, %17 : tensor<2x3x8xi1>, tensor<2x3x8xf32>
    %19 = stablehlo.select %8, %11, %18 : tensor<2x3x8xi1>, tensor<2x3x8xf32>
    %cst_6 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %20 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<2x3x8xf32>
    %21 = stablehlo.multiply %20, %19 : tensor<2x3x8xf32>
    %22 = stablehlo.multiply %arg0, %21 : tensor<2x3x8xf32>
    return %22 : tensor<2x3x8xf32>
  }
}
