// op: kernel.attention scale=0.353553
// source: torch 2.13.0, torch_mlir 20261001 fx.export_and_import(.., output_type='stablehlo') of scaled_dot_product_attention(attn_mask: bool)
module {
  func.func @main(%arg0: tensor<2x4x3x8xf32>, %arg1: tensor<2x4x3x8xf32>, %arg2: tensor<2x4x3x8xf32>, %arg3: tensor<2x1x3x3xi1>) -> tensor<2x4x3x8xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<2x4x3x3xf32>
    %cst_0 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %c = stablehlo.constant dense<true> : tensor<i1>
    %cst_2 = arith.constant dense<0.59460355750136051> : tensor<1xf64>
    %cst_3 = arith.constant dense<0xFFF0000000000000> : tensor<1xf64>
    %0 = stablehlo.broadcast_in_dim %arg3, dims = [0, 1, 2, 3] : (tensor<2x1x3x3xi1>) -> tensor<2x1x3x3xi1>
    %1 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<2x1x3x3xf32>
    %2 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<2x1x3x3xf32>
    %3 = stablehlo.select %0, %1, %2 : tensor<2x1x3x3xi1>, tensor<2x1x3x3xf32>
    %4 = stablehlo.convert %cst_2 : (tensor<1xf64>) -> tensor<1xf32>
    %5 = stablehlo.reshape %4 : (tensor<1xf32>) -> tensor<f32>
    %6 = stablehlo.broadcast_in_dim %5, dims = [] : (tensor<f32>) -> tensor<2x4x3x8xf32>
    %7 = stablehlo.multiply %arg0, %6 : tensor<2x4x3x8xf32>
    %8 = stablehlo.transpose %arg1, dims = [0, 1, 3, 2] : (tensor<2x4x3x8xf32>) -> tensor<2x4x8x3xf32>
    %9 = stablehlo.broadcast_in_dim %5, dims = [] : (tensor<f32>) -> tensor<2x4x8x3xf32>
    %10 = stablehlo.multiply %8, %9 : tensor<2x4x8x3xf32>
    %11 = stablehlo.reshape %7 : (tensor<2x4x3x8xf32>) -> tensor<8x3x8xf32>
    %12 = stablehlo.reshape %10 : (tensor<2x4x8x3xf32>) -> tensor<8x8x3xf32>
    %13 = stablehlo.broadcast_in_dim %12, dims = [0, 1, 2] : (tensor<8x8x3xf32>) -> tensor<8x8x3xf32>
    %14 = stablehlo.dot_general %11, %13, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<8x3x8xf32>, tensor<8x8x3xf32>) -> tensor<8x3x3xf32>
    %15 = stablehlo.reshape %14 : (tensor<8x3x3xf32>) -> tensor<2x4x3x3xf32>
    %16 = stablehlo.broadcast_in_dim %3, dims = [0, 1, 2, 3] : (tensor<2x1x3x3xf32>) -> tensor<2x4x3x3xf32>
    %17 = stablehlo.add %15, %16 : tensor<2x4x3x3xf32>
    %18 = stablehlo.reduce(%17 init: %cst_0) applies stablehlo.maximum across dimensions = [3] : (tensor<2x4x3x3xf32>, tensor<f32>) -> tensor<2x4x3xf32>
    %19 = stablehlo.reshape %18 : (tensor<2x4x3xf32>) -> tensor<2x4x3x1xf32>
    %20 = stablehlo.broadcast_in_dim %19, dims = [0, 1, 2, 3] : (tensor<2x4x3x1xf32>) -> tensor<2x4x3x3xf32>
    %21 = stablehlo.subtract %17, %20 : tensor<2x4x3x3xf32>
    %22 = stablehlo.exponential %21 : tensor<2x4x3x3xf32>
    %23 = stablehlo.reduce(%22 init: %cst_1) applies stablehlo.add across dimensions = [3] : (tensor<2x4x3x3xf32>, tensor<f32>) -> tensor<2x4x3xf32>
    %24 = stablehlo.reshape %23 : (tensor<2x4x3xf32>) -> tensor<2x4x3x1xf32>
    %25 = stablehlo.broadcast_in_dim %24, dims = [0, 1, 2, 3] : (tensor<2x4x3x1xf32>) -> tensor<2x4x3x3xf32>
    %26 = stablehlo.divide %22, %25 : tensor<2x4x3x3xf32>
    %27 = stablehlo.convert %cst_3 : tensor<1xf64>
    %28 = stablehlo.reshape %27 : (tensor<1xf64>) -> tensor<f64>
    %29 = stablehlo.convert %28 : (tensor<f64>) -> tensor<f32>
    %30 = stablehlo.broadcast_in_dim %29, dims = [] : (tensor<f32>) -> tensor<2x4x3x3xf32>
    %31 = stablehlo.compare EQ, %17, %30, FLOAT : (tensor<2x4x3x3xf32>, tensor<2x4x3x3xf32>) -> tensor<2x4x3x3xi1>
    %32 = stablehlo.reduce(%31 init: %c) applies stablehlo.and across dimensions = [3] : (tensor<2x4x3x3xi1>, tensor<i1>) -> tensor<2x4x3xi1>
    %33 = stablehlo.reshape %32 : (tensor<2x4x3xi1>) -> tensor<2x4x3x1xi1>
    %34 = stablehlo.broadcast_in_dim %33, dims = [0, 1, 2, 3] : (tensor<2x4x3x1xi1>) -> tensor<2x4x3x3xi1>
    %35 = stablehlo.broadcast_in_dim %cst, dims = [0, 1, 2, 3] : (tensor<2x4x3x3xf32>) -> tensor<2x4x3x3xf32>
    %36 = stablehlo.broadcast_in_dim %26, dims = [0, 1, 2, 3] : (tensor<2x4x3x3xf32>) -> tensor<2x4x3x3xf32>
    %37 = stablehlo.select %34, %35, %36 : tensor<2x4x3x3xi1>, tensor<2x4x3x3xf32>
    %38 = stablehlo.reshape %37 : (tensor<2x4x3x3xf32>) -> tensor<8x3x3xf32>
    %39 = stablehlo.reshape %arg2 : (tensor<2x4x3x8xf32>) -> tensor<8x3x8xf32>
    %40 = stablehlo.broadcast_in_dim %39, dims = [0, 1, 2] : (tensor<8x3x8xf32>) -> tensor<8x3x8xf32>
    %41 = stablehlo.dot_general %38, %40, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<8x3x3xf32>, tensor<8x3x8xf32>) -> tensor<8x3x8xf32>
    %42 = stablehlo.reshape %41 : (tensor<8x3x8xf32>) -> tensor<2x4x3x8xf32>
    %43 = stablehlo.transpose %42, dims = [2, 0, 1, 3] : (tensor<2x4x3x8xf32>) -> tensor<3x2x4x8xf32>
    %44 = stablehlo.transpose %43, dims = [1, 2, 0, 3] : (tensor<3x2x4x8xf32>) -> tensor<2x4x3x8xf32>
    return %44 : tensor<2x4x3x8xf32>
  }
}
