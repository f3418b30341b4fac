// op: kernel.attention scale=0.353553
// source: torch 2.13.0, torch_mlir 20261001 fx.export_and_import(.., output_type='stablehlo') of where(tril, scores, -inf)
module {
  func.func @main(%arg0: tensor<2x4x3x8xf32>, %arg1: tensor<2x4x3x8xf32>, %arg2: tensor<2x4x3x8xf32>) -> tensor<2x4x3x8xf32> {
    %c = stablehlo.constant dense<0> : tensor<3x3xi64>
    %c_0 = stablehlo.constant dense<0> : tensor<3xi64>
    %c_1 = stablehlo.constant dense<1> : tensor<3xi64>
    %c_2 = stablehlo.constant dense<true> : tensor<3x3xi1>
    %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %cst_3 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %cst_4 = arith.constant dense<0.35355339059327373> : tensor<1xf64>
    %c_5 = stablehlo.constant dense<1> : tensor<i64>
    %c_6 = stablehlo.constant dense<3> : tensor<i64>
    %0 = stablehlo.convert %c_5 : (tensor<i64>) -> tensor<f64>
    %1 = stablehlo.convert %c_6 : (tensor<i64>) -> tensor<f64>
    %2 = stablehlo.divide %1, %0 : tensor<f64>
    %3 = stablehlo.ceil %2 : tensor<f64>
    %4 = stablehlo.convert %3 : (tensor<f64>) -> tensor<i64>
    %5 = stablehlo.reshape %4 : (tensor<i64>) -> tensor<1xi64>
    %6 = stablehlo.dynamic_iota %5, dim = 0 : (tensor<1xi64>) -> tensor<3xi64>
    %7 = stablehlo.multiply %6, %c_1 : tensor<3xi64>
    %8 = stablehlo.add %7, %c_0 : tensor<3xi64>
    %9 = stablehlo.reshape %8 : (tensor<3xi64>) -> tensor<1x3xi64>
    %10 = stablehlo.reshape %8 : (tensor<3xi64>) -> tensor<3x1xi64>
    %11 = stablehlo.broadcast_in_dim %9, dims = [0, 1] : (tensor<1x3xi64>) -> tensor<3x3xi64>
    %12 = stablehlo.broadcast_in_dim %10, dims = [0, 1] : (tensor<3x1xi64>) -> tensor<3x3xi64>
    %13 = stablehlo.subtract %11, %12 : tensor<3x3xi64>
    %14 = stablehlo.compare LE, %13, %c, SIGNED : (tensor<3x3xi64>, tensor<3x3xi64>) -> tensor<3x3xi1>
    %15 = stablehlo.and %14, %c_2 : tensor<3x3xi1>
    %16 = stablehlo.transpose %arg1, dims = [0, 1, 3, 2] : (tensor<2x4x3x8xf32>) -> tensor<2x4x8x3xf32>
    %17 = stablehlo.reshape %arg0 : (tensor<2x4x3x8xf32>) -> tensor<8x3x8xf32>
    %18 = stablehlo.reshape %16 : (tensor<2x4x8x3xf32>) -> tensor<8x8x3xf32>
    %19 = stablehlo.broadcast_in_dim %18, dims = [0, 1, 2] : (tensor<8x8x3xf32>) -> tensor<8x8x3xf32>
    %20 = stablehlo.dot_general %17, %19, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<8x3x8xf32>, tensor<8x8x3xf32>) -> tensor<8x3x3xf32>
    %21 = stablehlo.reshape %20 : (tensor<8x3x3xf32>) -> tensor<2x4x3x3xf32>
    %22 = stablehlo.convert %cst_4 : (tensor<1xf64>) -> tensor<1xf32>
    %23 = stablehlo.reshape %22 : (tensor<1xf32>) -> tensor<f32>
    %24 = stablehlo.broadcast_in_dim %23, dims = [] : (tensor<f32>) -> tensor<2x4x3x3xf32>
    %25 = stablehlo.multiply %21, %24 : tensor<2x4x3x3xf32>
    %26 = stablehlo.reshape %15 : (tensor<3x3xi1>) -> tensor<1x1x3x3xi1>
    %27 = stablehlo.broadcast_in_dim %26, dims = [0, 1, 2, 3] : (tensor<1x1x3x3xi1>) -> tensor<2x4x3x3xi1>
    %28 = stablehlo.broadcast_in_dim %25, dims = [0, 1, 2, 3] : (tensor<2x4x3x3xf32>) -> tensor<2x4x3x3xf32>
    %29 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x4x3x3xf32>
    %30 = stablehlo.select %27, %28, %29 : tensor<2x4x3x3xi1>, tensor<2x4x3x3xf32>
    %31 = stablehlo.reduce(%30 init: %cst) applies stablehlo.maximum across dimensions = [3] : (tensor<2x4x3x3xf32>, tensor<f32>) -> tensor<2x4x3xf32>
    %32 = stablehlo.reshape %31 : (tensor<2x4x3xf32>) -> tensor<2x4x3x1xf32>
    %33 = stablehlo.broadcast_in_dim %32, dims = [0, 1, 2, 3] : (tensor<2x4x3x1xf32>) -> tensor<2x4x3x3xf32>
    %34 = stablehlo.subtract %30, %33 : tensor<2x4x3x3xf32>
    %35 = stablehlo.exponential %34 : tensor<2x4x3x3xf32>
    %36 = stablehlo.reduce(%35 init: %cst_3) applies stablehlo.add across dimensions = [3] : (tensor<2x4x3x3xf32>, tensor<f32>) -> tensor<2x4x3xf32>
    %37 = stablehlo.reshape %36 : (tensor<2x4x3xf32>) -> tensor<2x4x3x1xf32>
    %38 = stablehlo.broadcast_in_dim %37, dims = [0, 1, 2, 3] : (tensor<2x4x3x1xf32>) -> tensor<2x4x3x3xf32>
    %39 = stablehlo.divide %35, %38 : tensor<2x4x3x3xf32>
    %40 = stablehlo.reshape %39 : (tensor<2x4x3x3xf32>) -> tensor<8x3x3xf32>
    %41 = stablehlo.reshape %arg2 : (tensor<2x4x3x8xf32>) -> tensor<8x3x8xf32>
    %42 = stablehlo.broadcast_in_dim %41, dims = [0, 1, 2] : (tensor<8x3x8xf32>) -> tensor<8x3x8xf32>
    %43 = stablehlo.dot_general %40, %42, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<8x3x3xf32>, tensor<8x3x8xf32>) -> tensor<8x3x8xf32>
    %44 = stablehlo.reshape %43 : (tensor<8x3x8xf32>) -> tensor<2x4x3x8xf32>
    return %44 : tensor<2x4x3x8xf32>
  }
}
