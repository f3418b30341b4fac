// op: kernel.swiglu
// beside: stablehlo.dot_general
// source: jax 0.10.2, jax.jit(..).lower(..) of (silu(x gate) * (x up)) down
module @jit__swiglu attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2x3x8xf32>, %arg1: tensor<8x12xf32>, %arg2: tensor<8x12xf32>, %arg3: tensor<12x8xf32>) -> (tensor<2x3x8xf32> {jax.result_info = "result"}) {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x3x8xf32>, tensor<8x12xf32>) -> tensor<2x3x12xf32>
    %1 = call @silu(%0) : (tensor<2x3x12xf32>) -> tensor<2x3x12xf32>
    %2 = stablehlo.dot_general %arg0, %arg2, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x3x8xf32>, tensor<8x12xf32>) -> tensor<2x3x12xf32>
    %3 = stablehlo.multiply %1, %2 : tensor<2x3x12xf32>
    %4 = stablehlo.dot_general %3, %arg3, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x3x12xf32>, tensor<12x8xf32>) -> tensor<2x3x8xf32>
    return %4 : tensor<2x3x8xf32>
  }
  func.func private @silu(%arg0: tensor<2x3x12xf32>) -> tensor<2x3x12xf32> {
    %0 = stablehlo.negate %arg0 : tensor<2x3x12xf32>
    %1 = stablehlo.exponential %0 : tensor<2x3x12xf32>
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x3x12xf32>
    %3 = stablehlo.add %2, %1 : tensor<2x3x12xf32>
    %cst_0 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %4 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<2x3x12xf32>
    %5 = stablehlo.divide %4, %3 : tensor<2x3x12xf32>
    %6 = stablehlo.multiply %arg0, %5 : tensor<2x3x12xf32>
    return %6 : tensor<2x3x12xf32>
  }
}
