// op: kernel.attention scale=0.353553
// source: torch 2.13.0, torch_mlir 20261001 fx.export_and_import(.., output_type='stablehlo') of scaled_dot_product_attention(attn_mask: float)
module {
  func.func @main(%arg0: tensor<2x4x3x8xf32>, %arg1: tensor<2x4x3x8xf32>, %arg2: tensor<2x4x3x8xf32>, %arg3: tensor<2x1x3x3xf32>) -> tensor<2x4x3x8xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<2x4x3x3xf32>
    %cst_0 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %c = stablehlo.constant dense<true> : tensor<i1>
    %cst_2 = arith.constant dense<0.59460355750136051> : tensor<1xf64>
    %cst_3 = arith.constant dense<0xFFF0000000000000> : tensor<1xf64>
    %0 = stablehlo.convert %cst_2 : (tensor<1xf64>) -> tensor<1xf32>
    %1 = stablehlo.reshape %0 : (tensor<1xf32>) -> tensor<f32>
    %2 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<f32>) -> tensor<2x4x3x8xf32>
    %3 = stablehlo.multiply %arg0, %2 : tensor<2x4x3x8xf32>
    %4 = stablehlo.transpose %arg1, dims = [0, 1, 3, 2] : (tensor<2x4x3x8xf32>) -> tensor<2x4x8x3xf32>
    %5 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<f32>) -> tensor<2x4x8x3xf32>
    %6 = stablehlo.multiply %4, %5 : tensor<2x4x8x3xf32>
    %7 = stablehlo.reshape %3 : (tensor<2x4x3x8xf32>) -> tensor<8x3x8xf32>
    %8 = stablehlo.reshape %6 : (tensor<2x4x8x3xf32>) -> tensor<8x8x3xf32>
    %9 = stablehlo.broadcast_in_dim %8, dims = [0, 1, 2] : (tensor<8x8x3xf32>) -> tensor<8x8x3xf32>
    %10 = stablehlo.dot_general %7, %9, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<8x3x8xf32>, tensor<8x8x3xf32>) -> tensor<8x3x3xf32>
    %11 = stablehlo.reshape %10 : (tensor<8x3x3xf32>) -> tensor<2x4x3x3xf32>
    %12 = stablehlo.broadcast_in_dim %arg3, dims = [0, 1, 2, 3] : (tensor<2x1x3x3xf32>) -> tensor<2x4x3x3xf32>
    %13 = stablehlo.add %11, %12 : tensor<2x4x3x3xf32>
    %14 = stablehlo.reduce(%13 init: %cst_0) applies stablehlo.maximum across dimensions = [3] : (tensor<2x4x3x3xf32>, tensor<f32>) -> tensor<2x4x3xf32>
    %15 = stablehlo.reshape %14 : (tensor<2x4x3xf32>) -> tensor<2x4x3x1xf32>
    %16 = stablehlo.broadcast_in_dim %15, dims = [0, 1, 2, 3] : (tensor<2x4x3x1xf32>) -> tensor<2x4x3x3xf32>
    %17 = stablehlo.subtract %13, %16 : tensor<2x4x3x3xf32>
    %18 = stablehlo.exponential %17 : tensor<2x4x3x3xf32>
    %19 = stablehlo.reduce(%18 init: %cst_1) applies stablehlo.add across dimensions = [3] : (tensor<2x4x3x3xf32>, tensor<f32>) -> tensor<2x4x3xf32>
    %20 = stablehlo.reshape %19 : (tensor<2x4x3xf32>) -> tensor<2x4x3x1xf32>
    %21 = stablehlo.broadcast_in_dim %20, dims = [0, 1, 2, 3] : (tensor<2x4x3x1xf32>) -> tensor<2x4x3x3xf32>
    %22 = stablehlo.divide %18, %21 : tensor<2x4x3x3xf32>
    %23 = stablehlo.convert %cst_3 : tensor<1xf64>
    %24 = stablehlo.reshape %23 : (tensor<1xf64>) -> tensor<f64>
    %25 = stablehlo.convert %24 : (tensor<f64>) -> tensor<f32>
    %26 = stablehlo.broadcast_in_dim %25, dims = [] : (tensor<f32>) -> tensor<2x4x3x3xf32>
    %27 = stablehlo.compare EQ, %13, %26, FLOAT : (tensor<2x4x3x3xf32>, tensor<2x4x3x3xf32>) -> tensor<2x4x3x3xi1>
    %28 = stablehlo.reduce(%27 init: %c) applies stablehlo.and across dimensions = [3] : (tensor<2x4x3x3xi1>, tensor<i1>) -> tensor<2x4x3xi1>
    %29 = stablehlo.reshape %28 : (tensor<2x4x3xi1>) -> tensor<2x4x3x1xi1>
    %30 = stablehlo.broadcast_in_dim %29, dims = [0, 1, 2, 3] : (tensor<2x4x3x1xi1>) -> tensor<2x4x3x3xi1>
    %31 = stablehlo.broadcast_in_dim %cst, dims = [0, 1, 2, 3] : (tensor<2x4x3x3xf32>) -> tensor<2x4x3x3xf32>
    %32 = stablehlo.broadcast_in_dim %22, dims = [0, 1, 2, 3] : (tensor<2x4x3x3xf32>) -> tensor<2x4x3x3xf32>
    %33 = stablehlo.select %30, %31, %32 : tensor<2x4x3x3xi1>, tensor<2x4x3x3xf32>
    %34 = stablehlo.reshape %33 : (tensor<2x4x3x3xf32>) -> tensor<8x3x3xf32>
    %35 = stablehlo.reshape %arg2 : (tensor<2x4x3x8xf32>) -> tensor<8x3x8xf32>
    %36 = stablehlo.broadcast_in_dim %35, dims = [0, 1, 2] : (tensor<8x3x8xf32>) -> tensor<8x3x8xf32>
    %37 = stablehlo.dot_general %34, %36, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<8x3x3xf32>, tensor<8x3x8xf32>) -> tensor<8x3x8xf32>
    %38 = stablehlo.reshape %37 : (tensor<8x3x8xf32>) -> tensor<2x4x3x8xf32>
    %39 = stablehlo.transpose %38, dims = [2, 0, 1, 3] : (tensor<2x4x3x8xf32>) -> tensor<3x2x4x8xf32>
    %40 = stablehlo.transpose %39, dims = [1, 2, 0, 3] : (tensor<3x2x4x8xf32>) -> tensor<2x4x3x8xf32>
    return %40 : tensor<2x4x3x8xf32>
  }
}
