// op: kernel.attention scale=0.353553
// op: kernel.rope
// op: kernel.rope
// source: jax 0.10.2, jax.jit(..).lower(..) of Gemma, MaxText: angles from positions, halves
module @jit__rope attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2x3x4x8xf32>, %arg1: tensor<2x3x4x8xf32>, %arg2: tensor<2x3x4x8xf32>) -> (tensor<2x3x4x8xf32> {jax.result_info = "result"}) {
    %0 = stablehlo.iota dim = 0 : tensor<4xi32>
    %c = stablehlo.constant dense<2> : tensor<i32>
    %1 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<4xi32>
    %2 = stablehlo.multiply %1, %0 : tensor<4xi32>
    %3 = stablehlo.convert %2 : (tensor<4xi32>) -> tensor<4xf32>
    %cst = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %4 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %5 = stablehlo.divide %3, %4 : tensor<4xf32>
    %cst_0 = stablehlo.constant dense<1.000000e+04> : tensor<f32>
    %6 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %7 = stablehlo.power %6, %5 : tensor<4xf32>
    %8 = stablehlo.iota dim = 0 : tensor<3xi32>
    %9 = stablehlo.broadcast_in_dim %8, dims = [0] : (tensor<3xi32>) -> tensor<3x1xi32>
    %10 = stablehlo.convert %9 : (tensor<3x1xi32>) -> tensor<3x1xf32>
    %11 = stablehlo.broadcast_in_dim %7, dims = [1] : (tensor<4xf32>) -> tensor<1x4xf32>
    %12 = stablehlo.broadcast_in_dim %10, dims = [0, 1] : (tensor<3x1xf32>) -> tensor<3x4xf32>
    %13 = stablehlo.broadcast_in_dim %11, dims = [0, 1] : (tensor<1x4xf32>) -> tensor<3x4xf32>
    %14 = stablehlo.divide %12, %13 : tensor<3x4xf32>
    %15 = stablehlo.broadcast_in_dim %14, dims = [1, 3] : (tensor<3x4xf32>) -> tensor<1x3x1x4xf32>
    %16 = stablehlo.sine %15 : tensor<1x3x1x4xf32>
    %17 = stablehlo.cosine %15 : tensor<1x3x1x4xf32>
    %18 = stablehlo.slice %arg0 [0:2, 0:3, 0:4, 0:4] : (tensor<2x3x4x8xf32>) -> tensor<2x3x4x4xf32>
    %19 = stablehlo.slice %arg0 [0:2, 0:3, 0:4, 4:8] : (tensor<2x3x4x8xf32>) -> tensor<2x3x4x4xf32>
    %20 = stablehlo.broadcast_in_dim %17, dims = [0, 1, 2, 3] : (tensor<1x3x1x4xf32>) -> tensor<2x3x4x4xf32>
    %21 = stablehlo.multiply %18, %20 : tensor<2x3x4x4xf32>
    %22 = stablehlo.broadcast_in_dim %16, dims = [0, 1, 2, 3] : (tensor<1x3x1x4xf32>) -> tensor<2x3x4x4xf32>
    %23 = stablehlo.multiply %19, %22 : tensor<2x3x4x4xf32>
    %24 = stablehlo.subtract %21, %23 : tensor<2x3x4x4xf32>
    %25 = stablehlo.broadcast_in_dim %17, dims = [0, 1, 2, 3] : (tensor<1x3x1x4xf32>) -> tensor<2x3x4x4xf32>
    %26 = stablehlo.multiply %19, %25 : tensor<2x3x4x4xf32>
    %27 = stablehlo.broadcast_in_dim %16, dims = [0, 1, 2, 3] : (tensor<1x3x1x4xf32>) -> tensor<2x3x4x4xf32>
    %28 = stablehlo.multiply %18, %27 : tensor<2x3x4x4xf32>
    %29 = stablehlo.add %26, %28 : tensor<2x3x4x4xf32>
    %30 = stablehlo.concatenate %24, %29, dim = 3 : (tensor<2x3x4x4xf32>, tensor<2x3x4x4xf32>) -> tensor<2x3x4x8xf32>
    %31 = stablehlo.slice %arg1 [0:2, 0:3, 0:4, 0:4] : (tensor<2x3x4x8xf32>) -> tensor<2x3x4x4xf32>
    %32 = stablehlo.slice %arg1 [0:2, 0:3, 0:4, 4:8] : (tensor<2x3x4x8xf32>) -> tensor<2x3x4x4xf32>
    %33 = stablehlo.broadcast_in_dim %17, dims = [0, 1, 2, 3] : (tensor<1x3x1x4xf32>) -> tensor<2x3x4x4xf32>
    %34 = stablehlo.multiply %31, %33 : tensor<2x3x4x4xf32>
    %35 = stablehlo.broadcast_in_dim %16, dims = [0, 1, 2, 3] : (tensor<1x3x1x4xf32>) -> tensor<2x3x4x4xf32>
    %36 = stablehlo.multiply %32, %35 : tensor<2x3x4x4xf32>
    %37 = stablehlo.subtract %34, %36 : tensor<2x3x4x4xf32>
    %38 = stablehlo.broadcast_in_dim %17, dims = [0, 1, 2, 3] : (tensor<1x3x1x4xf32>) -> tensor<2x3x4x4xf32>
    %39 = stablehlo.multiply %32, %38 : tensor<2x3x4x4xf32>
    %40 = stablehlo.broadcast_in_dim %16, dims = [0, 1, 2, 3] : (tensor<1x3x1x4xf32>) -> tensor<2x3x4x4xf32>
    %41 = stablehlo.multiply %31, %40 : tensor<2x3x4x4xf32>
    %42 = stablehlo.add %39, %41 : tensor<2x3x4x4xf32>
    %43 = stablehlo.concatenate %37, %42, dim = 3 : (tensor<2x3x4x4xf32>, tensor<2x3x4x4xf32>) -> tensor<2x3x4x8xf32>
    %cst_1 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %44 = stablehlo.sqrt %cst_1 : tensor<f32>
    %45 = stablehlo.convert %44 : tensor<f32>
    %46 = stablehlo.broadcast_in_dim %45, dims = [] : (tensor<f32>) -> tensor<2x3x4x8xf32>
    %47 = stablehlo.divide %30, %46 : tensor<2x3x4x8xf32>
    %48 = stablehlo.dot_general %47, %43, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3], precision = [DEFAULT, DEFAULT] : (tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>) -> tensor<2x4x3x3xf32>
    %cst_2 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %49 = stablehlo.reduce(%48 init: %cst_2) applies stablehlo.maximum across dimensions = [3] : (tensor<2x4x3x3xf32>, tensor<f32>) -> tensor<2x4x3xf32>
    %cst_3 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %50 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<2x4x3xf32>
    %51 = stablehlo.maximum %50, %49 : tensor<2x4x3xf32>
    %52 = stablehlo.broadcast_in_dim %51, dims = [0, 1, 2] : (tensor<2x4x3xf32>) -> tensor<2x4x3x1xf32>
    %53 = stablehlo.broadcast_in_dim %52, dims = [0, 1, 2, 3] : (tensor<2x4x3x1xf32>) -> tensor<2x4x3x3xf32>
    %54 = stablehlo.subtract %48, %53 : tensor<2x4x3x3xf32>
    %55 = stablehlo.exponential %54 : tensor<2x4x3x3xf32>
    %cst_4 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %56 = stablehlo.reduce(%55 init: %cst_4) applies stablehlo.add across dimensions = [3] : (tensor<2x4x3x3xf32>, tensor<f32>) -> tensor<2x4x3xf32>
    %57 = stablehlo.broadcast_in_dim %56, dims = [0, 1, 2] : (tensor<2x4x3xf32>) -> tensor<2x4x3x1xf32>
    %58 = stablehlo.broadcast_in_dim %57, dims = [0, 1, 2, 3] : (tensor<2x4x3x1xf32>) -> tensor<2x4x3x3xf32>
    %59 = stablehlo.divide %55, %58 : tensor<2x4x3x3xf32>
    %60 = stablehlo.dot_general %arg2, %59, batching_dims = [0, 2] x [0, 1], contracting_dims = [1] x [3], precision = [DEFAULT, DEFAULT] : (tensor<2x3x4x8xf32>, tensor<2x4x3x3xf32>) -> tensor<2x4x8x3xf32>
    %61 = stablehlo.transpose %60, dims = [0, 3, 1, 2] : (tensor<2x4x8x3xf32>) -> tensor<2x3x4x8xf32>
    return %61 : tensor<2x3x4x8xf32>
  }
}
