// op: kernel.attention scale=0.353553
// source: torch 2.13.0, torch_mlir 20261001 fx.export_and_import(.., output_type='stablehlo') of scaled_dot_product_attention of other lengths and sizes
module {
  func.func @main(%arg0: tensor<2x4x3x8xf32>, %arg1: tensor<2x4x5x8xf32>, %arg2: tensor<2x4x5x6xf32>) -> tensor<2x4x3x6xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<2x4x3x5xf32>
    %cst_0 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %c = stablehlo.constant dense<true> : tensor<i1>
    %cst_2 = arith.constant dense<0.59460355750136051> : tensor<1xf64>
    %cst_3 = arith.constant dense<0xFFF0000000000000> : tensor<1xf64>
    %0 = stablehlo.convert %cst_2 : (tensor<1xf64>) -> tensor<1xf32>
    %1 = stablehlo.reshape %0 : (tensor<1xf32>) -> tensor<f32>
    %2 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<f32>) -> tensor<2x4x3x8xf32>
    %3 = stablehlo.multiply %arg0, %2 : tensor<2x4x3x8xf32>
    %4 = stablehlo.transpose %arg1, dims = [0, 1, 3, 2] : (tensor<2x4x5x8xf32>) -> tensor<2x4x8x5xf32>
    %5 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<f32>) -> tensor<2x4x8x5xf32>
    %6 = stablehlo.multiply %4, %5 : tensor<2x4x8x5xf32>
    %7 = stablehlo.reshape %3 : (tensor<2x4x3x8xf32>) -> tensor<8x3x8xf32>
    %8 = stablehlo.reshape %6 : (tensor<2x4x8x5xf32>) -> tensor<8x8x5xf32>
    %9 = stablehlo.broadcast_in_dim %8, dims = [0, 1, 2] : (tensor<8x8x5xf32>) -> tensor<8x8x5xf32>
    %10 = stablehlo.dot_general %7, %9, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<8x3x8xf32>, tensor<8x8x5xf32>) -> tensor<8x3x5xf32>
    %11 = stablehlo.reshape %10 : (tensor<8x3x5xf32>) -> tensor<2x4x3x5xf32>
    %12 = stablehlo.reduce(%11 init: %cst_0) applies stablehlo.maximum across dimensions = [3] : (tensor<2x4x3x5xf32>, tensor<f32>) -> tensor<2x4x3xf32>
    %13 = stablehlo.reshape %12 : (tensor<2x4x3xf32>) -> tensor<2x4x3x1xf32>
    %14 = stablehlo.broadcast_in_dim %13, dims = [0, 1, 2, 3] : (tensor<2x4x3x1xf32>) -> tensor<2x4x3x5xf32>
    %15 = stablehlo.subtract %11, %14 : tensor<2x4x3x5xf32>
    %16 = stablehlo.exponential %15 : tensor<2x4x3x5xf32>
    %17 = stablehlo.reduce(%16 init: %cst_1) applies stablehlo.add across dimensions = [3] : (tensor<2x4x3x5xf32>, tensor<f32>) -> tensor<2x4x3xf32>
    %18 = stablehlo.reshape %17 : (tensor<2x4x3xf32>) -> tensor<2x4x3x1xf32>
    %19 = stablehlo.broadcast_in_dim %18, dims = [0, 1, 2, 3] : (tensor<2x4x3x1xf32>) -> tensor<2x4x3x5xf32>
    %20 = stablehlo.divide %16, %19 : tensor<2x4x3x5xf32>
    %21 = stablehlo.convert %cst_3 : tensor<1xf64>
    %22 = stablehlo.reshape %21 : (tensor<1xf64>) -> tensor<f64>
    %23 = stablehlo.convert %22 : (tensor<f64>) -> tensor<f32>
    %24 = stablehlo.broadcast_in_dim %23, dims = [] : (tensor<f32>) -> tensor<2x4x3x5xf32>
    %25 = stablehlo.compare EQ, %11, %24, FLOAT : (tensor<2x4x3x5xf32>, tensor<2x4x3x5xf32>) -> tensor<2x4x3x5xi1>
    %26 = stablehlo.reduce(%25 init: %c) applies stablehlo.and across dimensions = [3] : (tensor<2x4x3x5xi1>, tensor<i1>) -> tensor<2x4x3xi1>
    %27 = stablehlo.reshape %26 : (tensor<2x4x3xi1>) -> tensor<2x4x3x1xi1>
    %28 = stablehlo.broadcast_in_dim %27, dims = [0, 1, 2, 3] : (tensor<2x4x3x1xi1>) -> tensor<2x4x3x5xi1>
    %29 = stablehlo.broadcast_in_dim %cst, dims = [0, 1, 2, 3] : (tensor<2x4x3x5xf32>) -> tensor<2x4x3x5xf32>
    %30 = stablehlo.broadcast_in_dim %20, dims = [0, 1, 2, 3] : (tensor<2x4x3x5xf32>) -> tensor<2x4x3x5xf32>
    %31 = stablehlo.select %28, %29, %30 : tensor<2x4x3x5xi1>, tensor<2x4x3x5xf32>
    %32 = stablehlo.reshape %31 : (tensor<2x4x3x5xf32>) -> tensor<8x3x5xf32>
    %33 = stablehlo.reshape %arg2 : (tensor<2x4x5x6xf32>) -> tensor<8x5x6xf32>
    %34 = stablehlo.broadcast_in_dim %33, dims = [0, 1, 2] : (tensor<8x5x6xf32>) -> tensor<8x5x6xf32>
    %35 = stablehlo.dot_general %32, %34, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<8x3x5xf32>, tensor<8x5x6xf32>) -> tensor<8x3x6xf32>
    %36 = stablehlo.reshape %35 : (tensor<8x3x6xf32>) -> tensor<2x4x3x6xf32>
    return %36 : tensor<2x4x3x6xf32>
  }
}
