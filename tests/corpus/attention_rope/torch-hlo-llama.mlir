// op: kernel.attention scale=0.353553
// op: kernel.rope
// op: kernel.rope
// source: torch 2.13.0, torch_mlir 20261001 fx.export_and_import(.., output_type='stablehlo') of Llama apply_rotary_pos_emb, cos and sin given
module {
  func.func @main(%arg0: tensor<2x4x3x8xf32>, %arg1: tensor<2x4x3x8xf32>, %arg2: tensor<2x4x3x8xf32>, %arg3: tensor<2x3x8xf32>, %arg4: tensor<2x3x8xf32>) -> tensor<2x4x3x8xf32> {
    %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %cst_1 = arith.constant dense<2.8284271247461903> : tensor<1xf64>
    %0 = stablehlo.reshape %arg3 : (tensor<2x3x8xf32>) -> tensor<2x1x3x8xf32>
    %1 = stablehlo.reshape %arg4 : (tensor<2x3x8xf32>) -> tensor<2x1x3x8xf32>
    %2 = stablehlo.broadcast_in_dim %0, dims = [0, 1, 2, 3] : (tensor<2x1x3x8xf32>) -> tensor<2x4x3x8xf32>
    %3 = stablehlo.multiply %arg0, %2 : tensor<2x4x3x8xf32>
    %4 = stablehlo.slice %arg0 [0:2, 0:4, 0:3, 0:4] : (tensor<2x4x3x8xf32>) -> tensor<2x4x3x4xf32>
    %5 = stablehlo.slice %arg0 [0:2, 0:4, 0:3, 4:8] : (tensor<2x4x3x8xf32>) -> tensor<2x4x3x4xf32>
    %6 = stablehlo.negate %5 : tensor<2x4x3x4xf32>
    %7 = stablehlo.concatenate %6, %4, dim = 3 : (tensor<2x4x3x4xf32>, tensor<2x4x3x4xf32>) -> tensor<2x4x3x8xf32>
    %8 = stablehlo.broadcast_in_dim %1, dims = [0, 1, 2, 3] : (tensor<2x1x3x8xf32>) -> tensor<2x4x3x8xf32>
    %9 = stablehlo.multiply %7, %8 : tensor<2x4x3x8xf32>
    %10 = stablehlo.add %3, %9 : tensor<2x4x3x8xf32>
    %11 = stablehlo.multiply %arg1, %2 : tensor<2x4x3x8xf32>
    %12 = stablehlo.slice %arg1 [0:2, 0:4, 0:3, 0:4] : (tensor<2x4x3x8xf32>) -> tensor<2x4x3x4xf32>
    %13 = stablehlo.slice %arg1 [0:2, 0:4, 0:3, 4:8] : (tensor<2x4x3x8xf32>) -> tensor<2x4x3x4xf32>
    %14 = stablehlo.negate %13 : tensor<2x4x3x4xf32>
    %15 = stablehlo.concatenate %14, %12, dim = 3 : (tensor<2x4x3x4xf32>, tensor<2x4x3x4xf32>) -> tensor<2x4x3x8xf32>
    %16 = stablehlo.multiply %15, %8 : tensor<2x4x3x8xf32>
    %17 = stablehlo.add %11, %16 : tensor<2x4x3x8xf32>
    %18 = stablehlo.transpose %17, dims = [0, 1, 3, 2] : (tensor<2x4x3x8xf32>) -> tensor<2x4x8x3xf32>
    %19 = stablehlo.reshape %10 : (tensor<2x4x3x8xf32>) -> tensor<8x3x8xf32>
    %20 = stablehlo.reshape %18 : (tensor<2x4x8x3xf32>) -> tensor<8x8x3xf32>
    %21 = stablehlo.broadcast_in_dim %20, dims = [0, 1, 2] : (tensor<8x8x3xf32>) -> tensor<8x8x3xf32>
    %22 = stablehlo.dot_general %19, %21, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<8x3x8xf32>, tensor<8x8x3xf32>) -> tensor<8x3x3xf32>
    %23 = stablehlo.reshape %22 : (tensor<8x3x3xf32>) -> tensor<2x4x3x3xf32>
    %24 = stablehlo.convert %cst_1 : (tensor<1xf64>) -> tensor<1xf32>
    %25 = stablehlo.reshape %24 : (tensor<1xf32>) -> tensor<f32>
    %26 = stablehlo.broadcast_in_dim %25, dims = [] : (tensor<f32>) -> tensor<2x4x3x3xf32>
    %27 = stablehlo.divide %23, %26 : tensor<2x4x3x3xf32>
    %28 = stablehlo.reduce(%27 init: %cst) applies stablehlo.maximum across dimensions = [3] : (tensor<2x4x3x3xf32>, tensor<f32>) -> tensor<2x4x3xf32>
    %29 = stablehlo.reshape %28 : (tensor<2x4x3xf32>) -> tensor<2x4x3x1xf32>
    %30 = stablehlo.broadcast_in_dim %29, dims = [0, 1, 2, 3] : (tensor<2x4x3x1xf32>) -> tensor<2x4x3x3xf32>
    %31 = stablehlo.subtract %27, %30 : tensor<2x4x3x3xf32>
    %32 = stablehlo.exponential %31 : tensor<2x4x3x3xf32>
    %33 = stablehlo.reduce(%32 init: %cst_0) applies stablehlo.add across dimensions = [3] : (tensor<2x4x3x3xf32>, tensor<f32>) -> tensor<2x4x3xf32>
    %34 = stablehlo.reshape %33 : (tensor<2x4x3xf32>) -> tensor<2x4x3x1xf32>
    %35 = stablehlo.broadcast_in_dim %34, dims = [0, 1, 2, 3] : (tensor<2x4x3x1xf32>) -> tensor<2x4x3x3xf32>
    %36 = stablehlo.divide %32, %35 : tensor<2x4x3x3xf32>
    %37 = stablehlo.reshape %36 : (tensor<2x4x3x3xf32>) -> tensor<8x3x3xf32>
    %38 = stablehlo.reshape %arg2 : (tensor<2x4x3x8xf32>) -> tensor<8x3x8xf32>
    %39 = stablehlo.broadcast_in_dim %38, dims = [0, 1, 2] : (tensor<8x3x8xf32>) -> tensor<8x3x8xf32>
    %40 = stablehlo.dot_general %37, %39, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<8x3x3xf32>, tensor<8x3x8xf32>) -> tensor<8x3x8xf32>
    %41 = stablehlo.reshape %40 : (tensor<8x3x8xf32>) -> tensor<2x4x3x8xf32>
    return %41 : tensor<2x4x3x8xf32>
  }
}
