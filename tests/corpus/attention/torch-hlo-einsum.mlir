// op: kernel.attention scale=0.353553
// source: torch 2.13.0, torch_mlir 20261001 fx.export_and_import(.., output_type='stablehlo') of einsum bqhd,bkhd->bhqk
module {
  func.func @main(%arg0: tensor<2x3x4x8xf32>, %arg1: tensor<2x5x4x8xf32>, %arg2: tensor<2x5x4x8xf32>) -> tensor<2x3x4x8xf32> {
    %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %cst_1 = arith.constant dense<0.35355339059327373> : tensor<1xf64>
    %0 = stablehlo.reshape %arg0 : (tensor<2x3x4x8xf32>) -> tensor<2x3x4x8x1xf32>
    %1 = stablehlo.transpose %0, dims = [0, 2, 1, 4, 3] : (tensor<2x3x4x8x1xf32>) -> tensor<2x4x3x1x8xf32>
    %2 = stablehlo.reshape %arg1 : (tensor<2x5x4x8xf32>) -> tensor<2x5x4x8x1xf32>
    %3 = stablehlo.transpose %2, dims = [0, 2, 4, 1, 3] : (tensor<2x5x4x8x1xf32>) -> tensor<2x4x1x5x8xf32>
    %4 = stablehlo.transpose %1, dims = [0, 1, 2, 4, 3] : (tensor<2x4x3x1x8xf32>) -> tensor<2x4x3x8x1xf32>
    %5 = stablehlo.reshape %4 : (tensor<2x4x3x8x1xf32>) -> tensor<8x3x8xf32>
    %6 = stablehlo.transpose %3, dims = [0, 1, 4, 3, 2] : (tensor<2x4x1x5x8xf32>) -> tensor<2x4x8x5x1xf32>
    %7 = stablehlo.reshape %6 : (tensor<2x4x8x5x1xf32>) -> tensor<8x8x5xf32>
    %8 = stablehlo.broadcast_in_dim %7, dims = [0, 1, 2] : (tensor<8x8x5xf32>) -> tensor<8x8x5xf32>
    %9 = stablehlo.dot_general %5, %8, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<8x3x8xf32>, tensor<8x8x5xf32>) -> tensor<8x3x5xf32>
    %10 = stablehlo.reshape %9 : (tensor<8x3x5xf32>) -> tensor<2x4x3x1x5xf32>
    %11 = stablehlo.transpose %10, dims = [0, 1, 2, 4, 3] : (tensor<2x4x3x1x5xf32>) -> tensor<2x4x3x5x1xf32>
    %12 = stablehlo.reshape %11 : (tensor<2x4x3x5x1xf32>) -> tensor<2x4x3x5xf32>
    %13 = stablehlo.convert %cst_1 : (tensor<1xf64>) -> tensor<1xf32>
    %14 = stablehlo.reshape %13 : (tensor<1xf32>) -> tensor<f32>
    %15 = stablehlo.broadcast_in_dim %14, dims = [] : (tensor<f32>) -> tensor<2x4x3x5xf32>
    %16 = stablehlo.multiply %12, %15 : tensor<2x4x3x5xf32>
    %17 = stablehlo.reduce(%16 init: %cst) applies stablehlo.maximum across dimensions = [3] : (tensor<2x4x3x5xf32>, tensor<f32>) -> tensor<2x4x3xf32>
    %18 = stablehlo.reshape %17 : (tensor<2x4x3xf32>) -> tensor<2x4x3x1xf32>
    %19 = stablehlo.broadcast_in_dim %18, dims = [0, 1, 2, 3] : (tensor<2x4x3x1xf32>) -> tensor<2x4x3x5xf32>
    %20 = stablehlo.subtract %16, %19 : tensor<2x4x3x5xf32>
    %21 = stablehlo.exponential %20 : tensor<2x4x3x5xf32>
    %22 = stablehlo.reduce(%21 init: %cst_0) applies stablehlo.add across dimensions = [3] : (tensor<2x4x3x5xf32>, tensor<f32>) -> tensor<2x4x3xf32>
    %23 = stablehlo.reshape %22 : (tensor<2x4x3xf32>) -> tensor<2x4x3x1xf32>
    %24 = stablehlo.broadcast_in_dim %23, dims = [0, 1, 2, 3] : (tensor<2x4x3x1xf32>) -> tensor<2x4x3x5xf32>
    %25 = stablehlo.divide %21, %24 : tensor<2x4x3x5xf32>
    %26 = stablehlo.reshape %25 : (tensor<2x4x3x5xf32>) -> tensor<2x4x3x5x1xf32>
    %27 = stablehlo.transpose %26, dims = [0, 2, 1, 4, 3] : (tensor<2x4x3x5x1xf32>) -> tensor<2x3x4x1x5xf32>
    %28 = stablehlo.reshape %arg2 : (tensor<2x5x4x8xf32>) -> tensor<2x5x4x8x1xf32>
    %29 = stablehlo.transpose %28, dims = [0, 4, 2, 3, 1] : (tensor<2x5x4x8x1xf32>) -> tensor<2x1x4x8x5xf32>
    %30 = stablehlo.transpose %27, dims = [0, 2, 1, 4, 3] : (tensor<2x3x4x1x5xf32>) -> tensor<2x4x3x5x1xf32>
    %31 = stablehlo.reshape %30 : (tensor<2x4x3x5x1xf32>) -> tensor<8x3x5xf32>
    %32 = stablehlo.transpose %29, dims = [0, 2, 4, 3, 1] : (tensor<2x1x4x8x5xf32>) -> tensor<2x4x5x8x1xf32>
    %33 = stablehlo.reshape %32 : (tensor<2x4x5x8x1xf32>) -> tensor<8x5x8xf32>
    %34 = stablehlo.broadcast_in_dim %33, dims = [0, 1, 2] : (tensor<8x5x8xf32>) -> tensor<8x5x8xf32>
    %35 = stablehlo.dot_general %31, %34, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<8x3x5xf32>, tensor<8x5x8xf32>) -> tensor<8x3x8xf32>
    %36 = stablehlo.reshape %35 : (tensor<8x3x8xf32>) -> tensor<2x4x3x1x8xf32>
    %37 = stablehlo.transpose %36, dims = [0, 2, 1, 4, 3] : (tensor<2x4x3x1x8xf32>) -> tensor<2x3x4x8x1xf32>
    %38 = stablehlo.reshape %37 : (tensor<2x3x4x8x1xf32>) -> tensor<2x3x4x8xf32>
    return %38 : tensor<2x3x4x8xf32>
  }
}
