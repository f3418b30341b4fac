// op: kernel.attention scale=0.353553
// source: torch 2.13.0, torch_mlir 20261001 fx.export_and_import(.., output_type='stablehlo') of without batch and heads
module {
  func.func @main(%arg0: tensor<3x8xf32>, %arg1: tensor<5x8xf32>, %arg2: tensor<5x8xf32>) -> tensor<3x8xf32> {
    %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %cst_1 = arith.constant dense<2.8284271247461903> : tensor<1xf64>
    %0 = stablehlo.transpose %arg1, dims = [1, 0] : (tensor<5x8xf32>) -> tensor<8x5xf32>
    %1 = stablehlo.dot_general %arg0, %0, contracting_dims = [1] x [0] : (tensor<3x8xf32>, tensor<8x5xf32>) -> tensor<3x5xf32>
    %2 = stablehlo.convert %cst_1 : (tensor<1xf64>) -> tensor<1xf32>
    %3 = stablehlo.reshape %2 : (tensor<1xf32>) -> tensor<f32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [] : (tensor<f32>) -> tensor<3x5xf32>
    %5 = stablehlo.divide %1, %4 : tensor<3x5xf32>
    %6 = stablehlo.reduce(%5 init: %cst) applies stablehlo.maximum across dimensions = [1] : (tensor<3x5xf32>, tensor<f32>) -> tensor<3xf32>
    %7 = stablehlo.reshape %6 : (tensor<3xf32>) -> tensor<3x1xf32>
    %8 = stablehlo.broadcast_in_dim %7, dims = [0, 1] : (tensor<3x1xf32>) -> tensor<3x5xf32>
    %9 = stablehlo.subtract %5, %8 : tensor<3x5xf32>
    %10 = stablehlo.exponential %9 : tensor<3x5xf32>
    %11 = stablehlo.reduce(%10 init: %cst_0) applies stablehlo.add across dimensions = [1] : (tensor<3x5xf32>, tensor<f32>) -> tensor<3xf32>
    %12 = stablehlo.reshape %11 : (tensor<3xf32>) -> tensor<3x1xf32>
    %13 = stablehlo.broadcast_in_dim %12, dims = [0, 1] : (tensor<3x1xf32>) -> tensor<3x5xf32>
    %14 = stablehlo.divide %10, %13 : tensor<3x5xf32>
    %15 = stablehlo.dot_general %14, %arg2, contracting_dims = [1] x [0] : (tensor<3x5xf32>, tensor<5x8xf32>) -> tensor<3x8xf32>
    return %15 : tensor<3x8xf32>
  }
}
