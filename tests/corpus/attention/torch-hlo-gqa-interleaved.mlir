// op: kernel.attention scale=0.353553
// source: torch 2.13.0, torch_mlir 20261001 fx.export_and_import(.., output_type='stablehlo') of repeat_interleave of key heads
module {
  func.func @main(%arg0: tensor<2x4x3x8xf32>, %arg1: tensor<2x2x3x8xf32>, %arg2: tensor<2x2x3x8xf32>) -> tensor<2x4x3x8xf32> {
    %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %cst_1 = arith.constant dense<0.35355339059327373> : tensor<1xf64>
    %0 = stablehlo.reshape %arg1 : (tensor<2x2x3x8xf32>) -> tensor<2x2x1x3x8xf32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [0, 1, 2, 3, 4] : (tensor<2x2x1x3x8xf32>) -> tensor<2x2x2x3x8xf32>
    %2 = stablehlo.reshape %1 : (tensor<2x2x2x3x8xf32>) -> tensor<2x4x3x8xf32>
    %3 = stablehlo.reshape %arg2 : (tensor<2x2x3x8xf32>) -> tensor<2x2x1x3x8xf32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [0, 1, 2, 3, 4] : (tensor<2x2x1x3x8xf32>) -> tensor<2x2x2x3x8xf32>
    %5 = stablehlo.reshape %4 : (tensor<2x2x2x3x8xf32>) -> tensor<2x4x3x8xf32>
    %6 = stablehlo.transpose %2, dims = [0, 1, 3, 2] : (tensor<2x4x3x8xf32>) -> tensor<2x4x8x3xf32>
    %7 = stablehlo.reshape %arg0 : (tensor<2x4x3x8xf32>) -> tensor<8x3x8xf32>
    %8 = stablehlo.reshape %6 : (tensor<2x4x8x3xf32>) -> tensor<8x8x3xf32>
    %9 = stablehlo.broadcast_in_dim %8, dims = [0, 1, 2] : (tensor<8x8x3xf32>) -> tensor<8x8x3xf32>
    %10 = stablehlo.dot_general %7, %9, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<8x3x8xf32>, tensor<8x8x3xf32>) -> tensor<8x3x3xf32>
    %11 = stablehlo.reshape %10 : (tensor<8x3x3xf32>) -> tensor<2x4x3x3xf32>
    %12 = stablehlo.convert %cst_1 : (tensor<1xf64>) -> tensor<1xf32>
    %13 = stablehlo.reshape %12 : (tensor<1xf32>) -> tensor<f32>
    %14 = stablehlo.broadcast_in_dim %13, dims = [] : (tensor<f32>) -> tensor<2x4x3x3xf32>
    %15 = stablehlo.multiply %11, %14 : tensor<2x4x3x3xf32>
    %16 = stablehlo.reduce(%15 init: %cst) applies stablehlo.maximum across dimensions = [3] : (tensor<2x4x3x3xf32>, tensor<f32>) -> tensor<2x4x3xf32>
    %17 = stablehlo.reshape %16 : (tensor<2x4x3xf32>) -> tensor<2x4x3x1xf32>
    %18 = stablehlo.broadcast_in_dim %17, dims = [0, 1, 2, 3] : (tensor<2x4x3x1xf32>) -> tensor<2x4x3x3xf32>
    %19 = stablehlo.subtract %15, %18 : tensor<2x4x3x3xf32>
    %20 = stablehlo.exponential %19 : tensor<2x4x3x3xf32>
    %21 = stablehlo.reduce(%20 init: %cst_0) applies stablehlo.add across dimensions = [3] : (tensor<2x4x3x3xf32>, tensor<f32>) -> tensor<2x4x3xf32>
    %22 = stablehlo.reshape %21 : (tensor<2x4x3xf32>) -> tensor<2x4x3x1xf32>
    %23 = stablehlo.broadcast_in_dim %22, dims = [0, 1, 2, 3] : (tensor<2x4x3x1xf32>) -> tensor<2x4x3x3xf32>
    %24 = stablehlo.divide %20, %23 : tensor<2x4x3x3xf32>
    %25 = stablehlo.reshape %24 : (tensor<2x4x3x3xf32>) -> tensor<8x3x3xf32>
    %26 = stablehlo.reshape %5 : (tensor<2x4x3x8xf32>) -> tensor<8x3x8xf32>
    %27 = stablehlo.broadcast_in_dim %26, dims = [0, 1, 2] : (tensor<8x3x8xf32>) -> tensor<8x3x8xf32>
    %28 = stablehlo.dot_general %25, %27, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<8x3x3xf32>, tensor<8x3x8xf32>) -> tensor<8x3x8xf32>
    %29 = stablehlo.reshape %28 : (tensor<8x3x8xf32>) -> tensor<2x4x3x8xf32>
    return %29 : tensor<2x4x3x8xf32>
  }
}
