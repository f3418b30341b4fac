// op: kernel.attention scale=0.353553
// op: kernel.rope
// op: kernel.rope
// source: torch 2.13.0, torch_mlir 20261001 fx.export_and_import(.., output_type='stablehlo') of two halves, four products
module {
  func.func @main(%arg0: tensor<2x4x3x8xf32>, %arg1: tensor<2x4x3x8xf32>, %arg2: tensor<2x4x3x8xf32>) -> tensor<2x4x3x8xf32> {
    %cst = stablehlo.constant dense_resource<torch_tensor_3_4_torch.float32_1> : tensor<3x4xf32>
    %cst_0 = stablehlo.constant dense_resource<torch_tensor_3_4_torch.float32> : tensor<3x4xf32>
    %cst_1 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %cst_3 = arith.constant dense<2.8284271247461903> : tensor<1xf64>
    %0 = stablehlo.slice %arg0 [0:2, 0:4, 0:3, 0:4] : (tensor<2x4x3x8xf32>) -> tensor<2x4x3x4xf32>
    %1 = stablehlo.slice %arg0 [0:2, 0:4, 0:3, 4:8] : (tensor<2x4x3x8xf32>) -> tensor<2x4x3x4xf32>
    %2 = stablehlo.broadcast_in_dim %cst_0, dims = [2, 3] : (tensor<3x4xf32>) -> tensor<2x4x3x4xf32>
    %3 = stablehlo.multiply %0, %2 : tensor<2x4x3x4xf32>
    %4 = stablehlo.broadcast_in_dim %cst, dims = [2, 3] : (tensor<3x4xf32>) -> tensor<2x4x3x4xf32>
    %5 = stablehlo.multiply %1, %4 : tensor<2x4x3x4xf32>
    %6 = stablehlo.subtract %3, %5 : tensor<2x4x3x4xf32>
    %7 = stablehlo.multiply %1, %2 : tensor<2x4x3x4xf32>
    %8 = stablehlo.multiply %0, %4 : tensor<2x4x3x4xf32>
    %9 = stablehlo.add %7, %8 : tensor<2x4x3x4xf32>
    %10 = stablehlo.concatenate %6, %9, dim = 3 : (tensor<2x4x3x4xf32>, tensor<2x4x3x4xf32>) -> tensor<2x4x3x8xf32>
    %11 = stablehlo.slice %arg1 [0:2, 0:4, 0:3, 0:4] : (tensor<2x4x3x8xf32>) -> tensor<2x4x3x4xf32>
    %12 = stablehlo.slice %arg1 [0:2, 0:4, 0:3, 4:8] : (tensor<2x4x3x8xf32>) -> tensor<2x4x3x4xf32>
    %13 = stablehlo.multiply %11, %2 : tensor<2x4x3x4xf32>
    %14 = stablehlo.multiply %12, %4 : tensor<2x4x3x4xf32>
    %15 = stablehlo.subtract %13, %14 : tensor<2x4x3x4xf32>
    %16 = stablehlo.multiply %12, %2 : tensor<2x4x3x4xf32>
    %17 = stablehlo.multiply %11, %4 : tensor<2x4x3x4xf32>
    %18 = stablehlo.add %16, %17 : tensor<2x4x3x4xf32>
    %19 = stablehlo.concatenate %15, %18, dim = 3 : (tensor<2x4x3x4xf32>, tensor<2x4x3x4xf32>) -> tensor<2x4x3x8xf32>
    %20 = stablehlo.transpose %19, dims = [0, 1, 3, 2] : (tensor<2x4x3x8xf32>) -> tensor<2x4x8x3xf32>
    %21 = stablehlo.reshape %10 : (tensor<2x4x3x8xf32>) -> tensor<8x3x8xf32>
    %22 = stablehlo.reshape %20 : (tensor<2x4x8x3xf32>) -> tensor<8x8x3xf32>
    %23 = stablehlo.broadcast_in_dim %22, dims = [0, 1, 2] : (tensor<8x8x3xf32>) -> tensor<8x8x3xf32>
    %24 = stablehlo.dot_general %21, %23, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<8x3x8xf32>, tensor<8x8x3xf32>) -> tensor<8x3x3xf32>
    %25 = stablehlo.reshape %24 : (tensor<8x3x3xf32>) -> tensor<2x4x3x3xf32>
    %26 = stablehlo.convert %cst_3 : (tensor<1xf64>) -> tensor<1xf32>
    %27 = stablehlo.reshape %26 : (tensor<1xf32>) -> tensor<f32>
    %28 = stablehlo.broadcast_in_dim %27, dims = [] : (tensor<f32>) -> tensor<2x4x3x3xf32>
    %29 = stablehlo.divide %25, %28 : tensor<2x4x3x3xf32>
    %30 = stablehlo.reduce(%29 init: %cst_1) applies stablehlo.maximum across dimensions = [3] : (tensor<2x4x3x3xf32>, tensor<f32>) -> tensor<2x4x3xf32>
    %31 = stablehlo.reshape %30 : (tensor<2x4x3xf32>) -> tensor<2x4x3x1xf32>
    %32 = stablehlo.broadcast_in_dim %31, dims = [0, 1, 2, 3] : (tensor<2x4x3x1xf32>) -> tensor<2x4x3x3xf32>
    %33 = stablehlo.subtract %29, %32 : tensor<2x4x3x3xf32>
    %34 = stablehlo.exponential %33 : tensor<2x4x3x3xf32>
    %35 = stablehlo.reduce(%34 init: %cst_2) applies stablehlo.add across dimensions = [3] : (tensor<2x4x3x3xf32>, tensor<f32>) -> tensor<2x4x3xf32>
    %36 = stablehlo.reshape %35 : (tensor<2x4x3xf32>) -> tensor<2x4x3x1xf32>
    %37 = stablehlo.broadcast_in_dim %36, dims = [0, 1, 2, 3] : (tensor<2x4x3x1xf32>) -> tensor<2x4x3x3xf32>
    %38 = stablehlo.divide %34, %37 : tensor<2x4x3x3xf32>
    %39 = stablehlo.reshape %38 : (tensor<2x4x3x3xf32>) -> tensor<8x3x3xf32>
    %40 = stablehlo.reshape %arg2 : (tensor<2x4x3x8xf32>) -> tensor<8x3x8xf32>
    %41 = stablehlo.broadcast_in_dim %40, dims = [0, 1, 2] : (tensor<8x3x8xf32>) -> tensor<8x3x8xf32>
    %42 = stablehlo.dot_general %39, %41, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<8x3x3xf32>, tensor<8x3x8xf32>) -> tensor<8x3x8xf32>
    %43 = stablehlo.reshape %42 : (tensor<8x3x8xf32>) -> tensor<2x4x3x8xf32>
    return %43 : tensor<2x4x3x8xf32>
  }
}

{-#
  dialect_resources: {
    builtin: {
      torch_tensor_3_4_torch.float32_1: "0x0400000000000000000000000000000000000000A46A573F7775CC3D57D6233C6E12833AB7C7683FF96F4B3E3ED4A33C6912033B",
      torch_tensor_3_4_torch.float32: "0x040000000000803F0000803F0000803F0000803F41510A3F98B87E3FB9FC7F3FF8FF7F3F3311D5BEA5E57A3FE5F27F3FDFFF7F3F"
    }
  }
#-}
