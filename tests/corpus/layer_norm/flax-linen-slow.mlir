// op: onnx.LayerNormalization axis=-1 epsilon=1e-6
// source: jax 0.10.2, flax 0.12.8, jax.jit(..).lower(..) of flax.linen.LayerNorm(use_fast_variance=False)
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2x3x8xf32>) -> (tensor<2x3x8xf32> {jax.result_info = "result"}) {
    %cst = stablehlo.constant dense<[0.744770228, 1.79520762, 2.190485, 0.956858992, 0.582284093, 0.234691828, 0.937719404, 1.18325317]> : tensor<8xf32>
    %cst_0 = stablehlo.constant dense<[0.88316679, 0.576429725, 0.919120192, 0.433496654, 0.95310831, 0.506580353, 0.253870696, 0.913718402]> : tensor<8xf32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.reduce(%arg0 init: %cst_1) applies stablehlo.add across dimensions = [2] : (tensor<2x3x8xf32>, tensor<f32>) -> tensor<2x3xf32>
    %cst_2 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<2x3xf32>
    %2 = stablehlo.divide %0, %1 : tensor<2x3xf32>
    %3 = stablehlo.broadcast_in_dim %2, dims = [0, 1] : (tensor<2x3xf32>) -> tensor<2x3x1xf32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [0, 1, 2] : (tensor<2x3x1xf32>) -> tensor<2x3x8xf32>
    %5 = stablehlo.subtract %arg0, %4 : tensor<2x3x8xf32>
    %6 = chlo.square %5 : tensor<2x3x8xf32> -> tensor<2x3x8xf32>
    %cst_3 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %7 = stablehlo.reduce(%6 init: %cst_3) applies stablehlo.add across dimensions = [2] : (tensor<2x3x8xf32>, tensor<f32>) -> tensor<2x3xf32>
    %cst_4 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %8 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<2x3xf32>
    %9 = stablehlo.divide %7, %8 : tensor<2x3xf32>
    %10 = stablehlo.broadcast_in_dim %2, dims = [0, 1] : (tensor<2x3xf32>) -> tensor<2x3x1xf32>
    %11 = stablehlo.broadcast_in_dim %9, dims = [0, 1] : (tensor<2x3xf32>) -> tensor<2x3x1xf32>
    %12 = stablehlo.broadcast_in_dim %10, dims = [0, 1, 2] : (tensor<2x3x1xf32>) -> tensor<2x3x8xf32>
    %13 = stablehlo.subtract %arg0, %12 : tensor<2x3x8xf32>
    %cst_5 = stablehlo.constant dense<9.99999997E-7> : tensor<f32>
    %14 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<2x3x1xf32>
    %15 = stablehlo.add %11, %14 : tensor<2x3x1xf32>
    %16 = stablehlo.rsqrt %15 : tensor<2x3x1xf32>
    %17 = stablehlo.reshape %cst : (tensor<8xf32>) -> tensor<1x1x8xf32>
    %18 = stablehlo.broadcast_in_dim %16, dims = [0, 1, 2] : (tensor<2x3x1xf32>) -> tensor<2x3x8xf32>
    %19 = stablehlo.broadcast_in_dim %17, dims = [0, 1, 2] : (tensor<1x1x8xf32>) -> tensor<2x3x8xf32>
    %20 = stablehlo.multiply %18, %19 : tensor<2x3x8xf32>
    %21 = stablehlo.multiply %13, %20 : tensor<2x3x8xf32>
    %22 = stablehlo.reshape %cst_0 : (tensor<8xf32>) -> tensor<1x1x8xf32>
    %23 = stablehlo.broadcast_in_dim %22, dims = [0, 1, 2] : (tensor<1x1x8xf32>) -> tensor<2x3x8xf32>
    %24 = stablehlo.add %21, %23 : tensor<2x3x8xf32>
    return %24 : tensor<2x3x8xf32>
  }
}
