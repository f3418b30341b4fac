// op: kernel.attention scale=0.353553
// source: torch 2.13.0, torch_mlir 20261001 fx.export_and_import(.., output_type='stablehlo') of one key head, broadcast (Falcon)
module {
  func.func @main(%arg0: tensor<2x4x3x8xf32>, %arg1: tensor<2x1x3x8xf32>, %arg2: tensor<2x1x3x8xf32>) -> tensor<2x4x3x8xf32> {
    %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %cst_1 = arith.constant dense<0.35355339059327373> : tensor<1xf64>
    %0 = stablehlo.transpose %arg1, dims = [0, 1, 3, 2] : (tensor<2x1x3x8xf32>) -> tensor<2x1x8x3xf32>
    %1 = stablehlo.reshape %arg0 : (tensor<2x4x3x8xf32>) -> tensor<8x3x8xf32>
    %2 = stablehlo.broadcast_in_dim %0, dims = [0, 1, 2, 3] : (tensor<2x1x8x3xf32>) -> tensor<2x4x8x3xf32>
    %3 = stablehlo.reshape %2 : (tensor<2x4x8x3xf32>) -> tensor<8x8x3xf32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [0, 1, 2] : (tensor<8x8x3xf32>) -> tensor<8x8x3xf32>
    %5 = stablehlo.dot_general %1, %4, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<8x3x8xf32>, tensor<8x8x3xf32>) -> tensor<8x3x3xf32>
    %6 = stablehlo.reshape %5 : (tensor<8x3x3xf32>) -> tensor<2x4x3x3xf32>
    %7 = stablehlo.convert %cst_1 : (tensor<1xf64>) -> tensor<1xf32>
    %8 = stablehlo.reshape %7 : (tensor<1xf32>) -> tensor<f32>
    %9 = stablehlo.broadcast_in_dim %8, dims = [] : (tensor<f32>) -> tensor<2x4x3x3xf32>
    %10 = stablehlo.multiply %6, %9 : tensor<2x4x3x3xf32>
    %11 = stablehlo.reduce(%10 init: %cst) applies stablehlo.maximum across dimensions = [3] : (tensor<2x4x3x3xf32>, tensor<f32>) -> tensor<2x4x3xf32>
    %12 = stablehlo.reshape %11 : (tensor<2x4x3xf32>) -> tensor<2x4x3x1xf32>
    %13 = stablehlo.broadcast_in_dim %12, dims = [0, 1, 2, 3] : (tensor<2x4x3x1xf32>) -> tensor<2x4x3x3xf32>
    %14 = stablehlo.subtract %10, %13 : tensor<2x4x3x3xf32>
    %15 = stablehlo.exponential %14 : tensor<2x4x3x3xf32>
    %16 = stablehlo.reduce(%15 init: %cst_0) applies stablehlo.add across dimensions = [3] : (tensor<2x4x3x3xf32>, tensor<f32>) -> tensor<2x4x3xf32>
    %17 = stablehlo.reshape %16 : (tensor<2x4x3xf32>) -> tensor<2x4x3x1xf32>
    %18 = stablehlo.broadcast_in_dim %17, dims = [0, 1, 2, 3] : (tensor<2x4x3x1xf32>) -> tensor<2x4x3x3xf32>
    %19 = stablehlo.divide %15, %18 : tensor<2x4x3x3xf32>
    %20 = stablehlo.reshape %19 : (tensor<2x4x3x3xf32>) -> tensor<8x3x3xf32>
    %21 = stablehlo.broadcast_in_dim %arg2, dims = [0, 1, 2, 3] : (tensor<2x1x3x8xf32>) -> tensor<2x4x3x8xf32>
    %22 = stablehlo.reshape %21 : (tensor<2x4x3x8xf32>) -> tensor<8x3x8xf32>
    %23 = stablehlo.broadcast_in_dim %22, dims = [0, 1, 2] : (tensor<8x3x8xf32>) -> tensor<8x3x8xf32>
    %24 = stablehlo.dot_general %20, %23, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<8x3x3xf32>, tensor<8x3x8xf32>) -> tensor<8x3x8xf32>
    %25 = stablehlo.reshape %24 : (tensor<8x3x8xf32>) -> tensor<2x4x3x8xf32>
    return %25 : tensor<2x4x3x8xf32>
  }
}
