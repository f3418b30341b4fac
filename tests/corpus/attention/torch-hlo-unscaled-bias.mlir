// op: kernel.attention scale=1
// source: torch 2.13.0, torch_mlir 20261001 fx.export_and_import(.., output_type='stablehlo') of T5: no scale, position bias
module {
  func.func @main(%arg0: tensor<2x4x3x8xf32>, %arg1: tensor<2x4x3x8xf32>, %arg2: tensor<2x4x3x8xf32>, %arg3: tensor<1x4x3x3xf32>) -> tensor<2x4x3x8xf32> {
    %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.transpose %arg1, dims = [0, 1, 3, 2] : (tensor<2x4x3x8xf32>) -> tensor<2x4x8x3xf32>
    %1 = stablehlo.reshape %arg0 : (tensor<2x4x3x8xf32>) -> tensor<8x3x8xf32>
    %2 = stablehlo.reshape %0 : (tensor<2x4x8x3xf32>) -> tensor<8x8x3xf32>
    %3 = stablehlo.broadcast_in_dim %2, dims = [0, 1, 2] : (tensor<8x8x3xf32>) -> tensor<8x8x3xf32>
    %4 = stablehlo.dot_general %1, %3, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<8x3x8xf32>, tensor<8x8x3xf32>) -> tensor<8x3x3xf32>
    %5 = stablehlo.reshape %4 : (tensor<8x3x3xf32>) -> tensor<2x4x3x3xf32>
    %6 = stablehlo.broadcast_in_dim %arg3, dims = [0, 1, 2, 3] : (tensor<1x4x3x3xf32>) -> tensor<2x4x3x3xf32>
    %7 = stablehlo.add %5, %6 : tensor<2x4x3x3xf32>
    %8 = stablehlo.reduce(%7 init: %cst) applies stablehlo.maximum across dimensions = [3] : (tensor<2x4x3x3xf32>, tensor<f32>) -> tensor<2x4x3xf32>
    %9 = stablehlo.reshape %8 : (tensor<2x4x3xf32>) -> tensor<2x4x3x1xf32>
    %10 = stablehlo.broadcast_in_dim %9, dims = [0, 1, 2, 3] : (tensor<2x4x3x1xf32>) -> tensor<2x4x3x3xf32>
    %11 = stablehlo.subtract %7, %10 : tensor<2x4x3x3xf32>
    %12 = stablehlo.exponential %11 : tensor<2x4x3x3xf32>
    %13 = stablehlo.reduce(%12 init: %cst_0) applies stablehlo.add across dimensions = [3] : (tensor<2x4x3x3xf32>, tensor<f32>) -> tensor<2x4x3xf32>
    %14 = stablehlo.reshape %13 : (tensor<2x4x3xf32>) -> tensor<2x4x3x1xf32>
    %15 = stablehlo.broadcast_in_dim %14, dims = [0, 1, 2, 3] : (tensor<2x4x3x1xf32>) -> tensor<2x4x3x3xf32>
    %16 = stablehlo.divide %12, %15 : tensor<2x4x3x3xf32>
    %17 = stablehlo.reshape %16 : (tensor<2x4x3x3xf32>) -> tensor<8x3x3xf32>
    %18 = stablehlo.reshape %arg2 : (tensor<2x4x3x8xf32>) -> tensor<8x3x8xf32>
    %19 = stablehlo.broadcast_in_dim %18, dims = [0, 1, 2] : (tensor<8x3x8xf32>) -> tensor<8x3x8xf32>
    %20 = stablehlo.dot_general %17, %19, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<8x3x3xf32>, tensor<8x3x8xf32>) -> tensor<8x3x8xf32>
    %21 = stablehlo.reshape %20 : (tensor<8x3x8xf32>) -> tensor<2x4x3x8xf32>
    return %21 : tensor<2x4x3x8xf32>
  }
}
