// op: kernel.attention scale=0.353553
// source: torch 2.13.0, torch_mlir 20261001 fx.export_and_import(.., output_type='stablehlo') of scaled_dot_product_attention(is_causal=True)
module {
  func.func @main(%arg0: tensor<2x4x3x8xf32>, %arg1: tensor<2x4x3x8xf32>, %arg2: tensor<2x4x3x8xf32>) -> tensor<2x4x3x8xf32> {
    %c = stablehlo.constant dense<0> : tensor<3x3xi64>
    %c_0 = stablehlo.constant dense<0> : tensor<3xi64>
    %c_1 = stablehlo.constant dense<1> : tensor<3xi64>
    %c_2 = stablehlo.constant dense<3> : tensor<i64>
    %c_3 = stablehlo.constant dense<1> : tensor<i64>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<2x4x3x3xf32>
    %cst_4 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %cst_5 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %c_6 = stablehlo.constant dense<true> : tensor<3x3xi1>
    %c_7 = stablehlo.constant dense<true> : tensor<i1>
    %cst_8 = arith.constant dense<0.59460355750136051> : tensor<1xf64>
    %cst_9 = arith.constant dense<0xFFF0000000000000> : tensor<1xf64>
    %0 = stablehlo.convert %cst_8 : (tensor<1xf64>) -> tensor<1xf32>
    %1 = stablehlo.reshape %0 : (tensor<1xf32>) -> tensor<f32>
    %2 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<f32>) -> tensor<2x4x3x8xf32>
    %3 = stablehlo.multiply %arg0, %2 : tensor<2x4x3x8xf32>
    %4 = stablehlo.convert %c_3 : (tensor<i64>) -> tensor<f64>
    %5 = stablehlo.convert %c_2 : (tensor<i64>) -> tensor<f64>
    %6 = stablehlo.divide %5, %4 : tensor<f64>
    %7 = stablehlo.ceil %6 : tensor<f64>
    %8 = stablehlo.convert %7 : (tensor<f64>) -> tensor<i64>
    %9 = stablehlo.reshape %8 : (tensor<i64>) -> tensor<1xi64>
    %10 = stablehlo.dynamic_iota %9, dim = 0 : (tensor<1xi64>) -> tensor<3xi64>
    %11 = stablehlo.multiply %10, %c_1 : tensor<3xi64>
    %12 = stablehlo.add %11, %c_0 : tensor<3xi64>
    %13 = stablehlo.reshape %12 : (tensor<3xi64>) -> tensor<1x3xi64>
    %14 = stablehlo.reshape %12 : (tensor<3xi64>) -> tensor<3x1xi64>
    %15 = stablehlo.broadcast_in_dim %13, dims = [0, 1] : (tensor<1x3xi64>) -> tensor<3x3xi64>
    %16 = stablehlo.broadcast_in_dim %14, dims = [0, 1] : (tensor<3x1xi64>) -> tensor<3x3xi64>
    %17 = stablehlo.subtract %15, %16 : tensor<3x3xi64>
    %18 = stablehlo.compare LE, %17, %c, SIGNED : (tensor<3x3xi64>, tensor<3x3xi64>) -> tensor<3x3xi1>
    %19 = stablehlo.and %18, %c_6 : tensor<3x3xi1>
    %20 = stablehlo.broadcast_in_dim %19, dims = [0, 1] : (tensor<3x3xi1>) -> tensor<3x3xi1>
    %21 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<3x3xf32>
    %22 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<3x3xf32>
    %23 = stablehlo.select %20, %21, %22 : tensor<3x3xi1>, tensor<3x3xf32>
    %24 = stablehlo.transpose %arg1, dims = [0, 1, 3, 2] : (tensor<2x4x3x8xf32>) -> tensor<2x4x8x3xf32>
    %25 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<f32>) -> tensor<2x4x8x3xf32>
    %26 = stablehlo.multiply %24, %25 : tensor<2x4x8x3xf32>
    %27 = stablehlo.reshape %3 : (tensor<2x4x3x8xf32>) -> tensor<8x3x8xf32>
    %28 = stablehlo.reshape %26 : (tensor<2x4x8x3xf32>) -> tensor<8x8x3xf32>
    %29 = stablehlo.broadcast_in_dim %28, dims = [0, 1, 2] : (tensor<8x8x3xf32>) -> tensor<8x8x3xf32>
    %30 = stablehlo.dot_general %27, %29, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<8x3x8xf32>, tensor<8x8x3xf32>) -> tensor<8x3x3xf32>
    %31 = stablehlo.reshape %30 : (tensor<8x3x3xf32>) -> tensor<2x4x3x3xf32>
    %32 = stablehlo.broadcast_in_dim %23, dims = [2, 3] : (tensor<3x3xf32>) -> tensor<2x4x3x3xf32>
    %33 = stablehlo.add %31, %32 : tensor<2x4x3x3xf32>
    %34 = stablehlo.reduce(%33 init: %cst_5) applies stablehlo.maximum across dimensions = [3] : (tensor<2x4x3x3xf32>, tensor<f32>) -> tensor<2x4x3xf32>
    %35 = stablehlo.reshape %34 : (tensor<2x4x3xf32>) -> tensor<2x4x3x1xf32>
    %36 = stablehlo.broadcast_in_dim %35, dims = [0, 1, 2, 3] : (tensor<2x4x3x1xf32>) -> tensor<2x4x3x3xf32>
    %37 = stablehlo.subtract %33, %36 : tensor<2x4x3x3xf32>
    %38 = stablehlo.exponential %37 : tensor<2x4x3x3xf32>
    %39 = stablehlo.reduce(%38 init: %cst_4) applies stablehlo.add across dimensions = [3] : (tensor<2x4x3x3xf32>, tensor<f32>) -> tensor<2x4x3xf32>
    %40 = stablehlo.reshape %39 : (tensor<2x4x3xf32>) -> tensor<2x4x3x1xf32>
    %41 = stablehlo.broadcast_in_dim %40, dims = [0, 1, 2, 3] : (tensor<2x4x3x1xf32>) -> tensor<2x4x3x3xf32>
    %42 = stablehlo.divide %38, %41 : tensor<2x4x3x3xf32>
    %43 = stablehlo.convert %cst_9 : tensor<1xf64>
    %44 = stablehlo.reshape %43 : (tensor<1xf64>) -> tensor<f64>
    %45 = stablehlo.convert %44 : (tensor<f64>) -> tensor<f32>
    %46 = stablehlo.broadcast_in_dim %45, dims = [] : (tensor<f32>) -> tensor<2x4x3x3xf32>
    %47 = stablehlo.compare EQ, %33, %46, FLOAT : (tensor<2x4x3x3xf32>, tensor<2x4x3x3xf32>) -> tensor<2x4x3x3xi1>
    %48 = stablehlo.reduce(%47 init: %c_7) applies stablehlo.and across dimensions = [3] : (tensor<2x4x3x3xi1>, tensor<i1>) -> tensor<2x4x3xi1>
    %49 = stablehlo.reshape %48 : (tensor<2x4x3xi1>) -> tensor<2x4x3x1xi1>
    %50 = stablehlo.broadcast_in_dim %49, dims = [0, 1, 2, 3] : (tensor<2x4x3x1xi1>) -> tensor<2x4x3x3xi1>
    %51 = stablehlo.broadcast_in_dim %cst, dims = [0, 1, 2, 3] : (tensor<2x4x3x3xf32>) -> tensor<2x4x3x3xf32>
    %52 = stablehlo.broadcast_in_dim %42, dims = [0, 1, 2, 3] : (tensor<2x4x3x3xf32>) -> tensor<2x4x3x3xf32>
    %53 = stablehlo.select %50, %51, %52 : tensor<2x4x3x3xi1>, tensor<2x4x3x3xf32>
    %54 = stablehlo.reshape %53 : (tensor<2x4x3x3xf32>) -> tensor<8x3x3xf32>
    %55 = stablehlo.reshape %arg2 : (tensor<2x4x3x8xf32>) -> tensor<8x3x8xf32>
    %56 = stablehlo.broadcast_in_dim %55, dims = [0, 1, 2] : (tensor<8x3x8xf32>) -> tensor<8x3x8xf32>
    %57 = stablehlo.dot_general %54, %56, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<8x3x3xf32>, tensor<8x3x8xf32>) -> tensor<8x3x8xf32>
    %58 = stablehlo.reshape %57 : (tensor<8x3x8xf32>) -> tensor<2x4x3x8xf32>
    %59 = stablehlo.transpose %58, dims = [2, 0, 1, 3] : (tensor<2x4x3x8xf32>) -> tensor<3x2x4x8xf32>
    %60 = stablehlo.transpose %59, dims = [1, 2, 0, 3] : (tensor<3x2x4x8xf32>) -> tensor<2x4x3x8xf32>
    return %60 : tensor<2x4x3x8xf32>
  }
}
