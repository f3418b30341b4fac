// op: kernel.attention scale=0.353553
// beside: stablehlo.not
// source: torch 2.13.0, torch_mlir 20261001 fx.export_and_import(.., output_type='stablehlo') of masked_fill(~mask, -inf)
module {
  func.func @main(%arg0: tensor<2x4x3x8xf32>, %arg1: tensor<2x4x3x8xf32>, %arg2: tensor<2x4x3x8xf32>, %arg3: tensor<2x1x3x3xi1>) -> tensor<2x4x3x8xf32> {
    %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %cst_1 = arith.constant dense<0.35355339059327373> : tensor<1xf64>
    %0 = stablehlo.transpose %arg1, dims = [0, 1, 3, 2] : (tensor<2x4x3x8xf32>) -> tensor<2x4x8x3xf32>
    %1 = stablehlo.reshape %arg0 : (tensor<2x4x3x8xf32>) -> tensor<8x3x8xf32>
    %2 = stablehlo.reshape %0 : (tensor<2x4x8x3xf32>) -> tensor<8x8x3xf32>
    %3 = stablehlo.broadcast_in_dim %2, dims = [0, 1, 2] : (tensor<8x8x3xf32>) -> tensor<8x8x3xf32>
    %4 = stablehlo.dot_general %1, %3, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<8x3x8xf32>, tensor<8x8x3xf32>) -> tensor<8x3x3xf32>
    %5 = stablehlo.reshape %4 : (tensor<8x3x3xf32>) -> tensor<2x4x3x3xf32>
    %6 = stablehlo.convert %cst_1 : (tensor<1xf64>) -> tensor<1xf32>
    %7 = stablehlo.reshape %6 : (tensor<1xf32>) -> tensor<f32>
    %8 = stablehlo.broadcast_in_dim %7, dims = [] : (tensor<f32>) -> tensor<2x4x3x3xf32>
    %9 = stablehlo.multiply %5, %8 : tensor<2x4x3x3xf32>
    %10 = stablehlo.not %arg3 : tensor<2x1x3x3xi1>
    %11 = stablehlo.broadcast_in_dim %10, dims = [0, 1, 2, 3] : (tensor<2x1x3x3xi1>) -> tensor<2x4x3x3xi1>
    %12 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x4x3x3xf32>
    %13 = stablehlo.broadcast_in_dim %9, dims = [0, 1, 2, 3] : (tensor<2x4x3x3xf32>) -> tensor<2x4x3x3xf32>
    %14 = stablehlo.select %11, %12, %13 : tensor<2x4x3x3xi1>, tensor<2x4x3x3xf32>
    %15 = stablehlo.reduce(%14 init: %cst) applies stablehlo.maximum across dimensions = [3] : (tensor<2x4x3x3xf32>, tensor<f32>) -> tensor<2x4x3xf32>
    %16 = stablehlo.reshape %15 : (tensor<2x4x3xf32>) -> tensor<2x4x3x1xf32>
    %17 = stablehlo.broadcast_in_dim %16, dims = [0, 1, 2, 3] : (tensor<2x4x3x1xf32>) -> tensor<2x4x3x3xf32>
    %18 = stablehlo.subtract %14, %17 : tensor<2x4x3x3xf32>
    %19 = stablehlo.exponential %18 : tensor<2x4x3x3xf32>
    %20 = stablehlo.reduce(%19 init: %cst_0) applies stablehlo.add across dimensions = [3] : (tensor<2x4x3x3xf32>, tensor<f32>) -> tensor<2x4x3xf32>
    %21 = stablehlo.reshape %20 : (tensor<2x4x3xf32>) -> tensor<2x4x3x1xf32>
    %22 = stablehlo.broadcast_in_dim %21, dims = [0, 1, 2, 3] : (tensor<2x4x3x1xf32>) -> tensor<2x4x3x3xf32>
    %23 = stablehlo.divide %19, %22 : tensor<2x4x3x3xf32>
    %24 = stablehlo.reshape %23 : (tensor<2x4x3x3xf32>) -> tensor<8x3x3xf32>
    %25 = stablehlo.reshape %arg2 : (tensor<2x4x3x8xf32>) -> tensor<8x3x8xf32>
    %26 = stablehlo.broadcast_in_dim %25, dims = [0, 1, 2] : (tensor<8x3x8xf32>) -> tensor<8x3x8xf32>
    %27 = stablehlo.dot_general %24, %26, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<8x3x3xf32>, tensor<8x3x8xf32>) -> tensor<8x3x8xf32>
    %28 = stablehlo.reshape %27 : (tensor<8x3x8xf32>) -> tensor<2x4x3x8xf32>
    return %28 : tensor<2x4x3x8xf32>
  }
}
