// op: kernel.attention scale=0.353553
// source: torch 2.13.0, torch_mlir 20261001 fx.export_and_import(.., output_type='stablehlo') of q * d^-0.5 (timm)
module {
  func.func @main(%arg0: tensor<2x4x3x8xf32>, %arg1: tensor<2x4x3x8xf32>, %arg2: tensor<2x4x3x8xf32>) -> tensor<2x4x3x8xf32> {
    %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %cst_1 = arith.constant dense<0.35355339059327379> : tensor<1xf64>
    %0 = stablehlo.convert %cst_1 : (tensor<1xf64>) -> tensor<1xf32>
    %1 = stablehlo.reshape %0 : (tensor<1xf32>) -> tensor<f32>
    %2 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<f32>) -> tensor<2x4x3x8xf32>
    %3 = stablehlo.multiply %arg0, %2 : tensor<2x4x3x8xf32>
    %4 = stablehlo.transpose %arg1, dims = [0, 1, 3, 2] : (tensor<2x4x3x8xf32>) -> tensor<2x4x8x3xf32>
    %5 = stablehlo.reshape %3 : (tensor<2x4x3x8xf32>) -> tensor<8x3x8xf32>
    %6 = stablehlo.reshape %4 : (tensor<2x4x8x3xf32>) -> tensor<8x8x3xf32>
    %7 = stablehlo.broadcast_in_dim %6, dims = [0, 1, 2] : (tensor<8x8x3xf32>) -> tensor<8x8x3xf32>
    %8 = stablehlo.dot_general %5, %7, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<8x3x8xf32>, tensor<8x8x3xf32>) -> tensor<8x3x3xf32>
    %9 = stablehlo.reshape %8 : (tensor<8x3x3xf32>) -> tensor<2x4x3x3xf32>
    %10 = stablehlo.reduce(%9 init: %cst) applies stablehlo.maximum across dimensions = [3] : (tensor<2x4x3x3xf32>, tensor<f32>) -> tensor<2x4x3xf32>
    %11 = stablehlo.reshape %10 : (tensor<2x4x3xf32>) -> tensor<2x4x3x1xf32>
    %12 = stablehlo.broadcast_in_dim %11, dims = [0, 1, 2, 3] : (tensor<2x4x3x1xf32>) -> tensor<2x4x3x3xf32>
    %13 = stablehlo.subtract %9, %12 : tensor<2x4x3x3xf32>
    %14 = stablehlo.exponential %13 : tensor<2x4x3x3xf32>
    %15 = stablehlo.reduce(%14 init: %cst_0) applies stablehlo.add across dimensions = [3] : (tensor<2x4x3x3xf32>, tensor<f32>) -> tensor<2x4x3xf32>
    %16 = stablehlo.reshape %15 : (tensor<2x4x3xf32>) -> tensor<2x4x3x1xf32>
    %17 = stablehlo.broadcast_in_dim %16, dims = [0, 1, 2, 3] : (tensor<2x4x3x1xf32>) -> tensor<2x4x3x3xf32>
    %18 = stablehlo.divide %14, %17 : tensor<2x4x3x3xf32>
    %19 = stablehlo.reshape %18 : (tensor<2x4x3x3xf32>) -> tensor<8x3x3xf32>
    %20 = stablehlo.reshape %arg2 : (tensor<2x4x3x8xf32>) -> tensor<8x3x8xf32>
    %21 = stablehlo.broadcast_in_dim %20, dims = [0, 1, 2] : (tensor<8x3x8xf32>) -> tensor<8x3x8xf32>
    %22 = stablehlo.dot_general %19, %21, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<8x3x3xf32>, tensor<8x3x8xf32>) -> tensor<8x3x8xf32>
    %23 = stablehlo.reshape %22 : (tensor<8x3x8xf32>) -> tensor<2x4x3x8xf32>
    return %23 : tensor<2x4x3x8xf32>
  }
}
