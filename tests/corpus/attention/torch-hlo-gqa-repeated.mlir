// op: kernel.attention scale=0.353553
// source: torch 2.13.0, torch_mlir 20261001 fx.export_and_import(.., output_type='stablehlo') of Llama repeat_kv: expand, reshape
module {
  func.func @main(%arg0: tensor<2x4x3x8xf32>, %arg1: tensor<2x2x3x8xf32>, %arg2: tensor<2x2x3x8xf32>) -> tensor<2x4x3x8xf32> {
    %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %cst_1 = arith.constant dense<0.35355339059327373> : tensor<1xf64>
    %0 = stablehlo.reshape %arg1 : (tensor<2x2x3x8xf32>) -> tensor<2x2x1x3x8xf32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [0, 1, 2, 3, 4] : (tensor<2x2x1x3x8xf32>) -> tensor<2x2x2x3x8xf32>
    %2 = stablehlo.reshape %1 : (tensor<2x2x2x3x8xf32>) -> tensor<2x4x3x8xf32>
    %3 = stablehlo.transpose %2, dims = [0, 1, 3, 2] : (tensor<2x4x3x8xf32>) -> tensor<2x4x8x3xf32>
    %4 = stablehlo.reshape %arg0 : (tensor<2x4x3x8xf32>) -> tensor<8x3x8xf32>
    %5 = stablehlo.reshape %3 : (tensor<2x4x8x3xf32>) -> tensor<8x8x3xf32>
    %6 = stablehlo.broadcast_in_dim %5, dims = [0, 1, 2] : (tensor<8x8x3xf32>) -> tensor<8x8x3xf32>
    %7 = stablehlo.dot_general %4, %6, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<8x3x8xf32>, tensor<8x8x3xf32>) -> tensor<8x3x3xf32>
    %8 = stablehlo.reshape %7 : (tensor<8x3x3xf32>) -> tensor<2x4x3x3xf32>
    %9 = stablehlo.convert %cst_1 : (tensor<1xf64>) -> tensor<1xf32>
    %10 = stablehlo.reshape %9 : (tensor<1xf32>) -> tensor<f32>
    %11 = stablehlo.broadcast_in_dim %10, dims = [] : (tensor<f32>) -> tensor<2x4x3x3xf32>
    %12 = stablehlo.multiply %8, %11 : tensor<2x4x3x3xf32>
    %13 = stablehlo.reduce(%12 init: %cst) applies stablehlo.maximum across dimensions = [3] : (tensor<2x4x3x3xf32>, tensor<f32>) -> tensor<2x4x3xf32>
    %14 = stablehlo.reshape %13 : (tensor<2x4x3xf32>) -> tensor<2x4x3x1xf32>
    %15 = stablehlo.broadcast_in_dim %14, dims = [0, 1, 2, 3] : (tensor<2x4x3x1xf32>) -> tensor<2x4x3x3xf32>
    %16 = stablehlo.subtract %12, %15 : tensor<2x4x3x3xf32>
    %17 = stablehlo.exponential %16 : tensor<2x4x3x3xf32>
    %18 = stablehlo.reduce(%17 init: %cst_0) applies stablehlo.add across dimensions = [3] : (tensor<2x4x3x3xf32>, tensor<f32>) -> tensor<2x4x3xf32>
    %19 = stablehlo.reshape %18 : (tensor<2x4x3xf32>) -> tensor<2x4x3x1xf32>
    %20 = stablehlo.broadcast_in_dim %19, dims = [0, 1, 2, 3] : (tensor<2x4x3x1xf32>) -> tensor<2x4x3x3xf32>
    %21 = stablehlo.divide %17, %20 : tensor<2x4x3x3xf32>
    %22 = stablehlo.reshape %arg2 : (tensor<2x2x3x8xf32>) -> tensor<2x2x1x3x8xf32>
    %23 = stablehlo.broadcast_in_dim %22, dims = [0, 1, 2, 3, 4] : (tensor<2x2x1x3x8xf32>) -> tensor<2x2x2x3x8xf32>
    %24 = stablehlo.reshape %23 : (tensor<2x2x2x3x8xf32>) -> tensor<2x4x3x8xf32>
    %25 = stablehlo.reshape %21 : (tensor<2x4x3x3xf32>) -> tensor<8x3x3xf32>
    %26 = stablehlo.reshape %24 : (tensor<2x4x3x8xf32>) -> tensor<8x3x8xf32>
    %27 = stablehlo.broadcast_in_dim %26, dims = [0, 1, 2] : (tensor<8x3x8xf32>) -> tensor<8x3x8xf32>
    %28 = stablehlo.dot_general %25, %27, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<8x3x3xf32>, tensor<8x3x8xf32>) -> tensor<8x3x8xf32>
    %29 = stablehlo.reshape %28 : (tensor<8x3x8xf32>) -> tensor<2x4x3x8xf32>
    return %29 : tensor<2x4x3x8xf32>
  }
}
