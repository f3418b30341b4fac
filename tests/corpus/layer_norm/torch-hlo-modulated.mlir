// op: onnx.LayerNormalization axis=-1 epsilon=1e-06
// beside: stablehlo.multiply stablehlo.add
// source: torch 2.13.0, torch_mlir 20261001 fx.export_and_import(.., output_type='stablehlo') of DiT: adaptive scale and shift behind it
module {
  func.func @main(%arg0: tensor<2x3x8xf32>, %arg1: tensor<2x8xf32>, %arg2: tensor<2x8xf32>) -> tensor<2x3x8xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f64>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %cst_1 = arith.constant dense<8> : tensor<1xi64>
    %cst_2 = arith.constant dense<9.9999999999999995E-7> : tensor<1xf64>
    %cst_3 = arith.constant dense<1> : tensor<1xi64>
    %0 = stablehlo.convert %arg0 : (tensor<2x3x8xf32>) -> tensor<2x3x8xf64>
    %1 = stablehlo.reduce(%0 init: %cst) applies stablehlo.add across dimensions = [2] : (tensor<2x3x8xf64>, tensor<f64>) -> tensor<2x3xf64>
    %2 = stablehlo.reshape %1 : (tensor<2x3xf64>) -> tensor<2x3x1xf64>
    %3 = stablehlo.convert %cst_1 : (tensor<1xi64>) -> tensor<1xf64>
    %4 = stablehlo.reshape %3 : (tensor<1xf64>) -> tensor<f64>
    %5 = stablehlo.broadcast_in_dim %4, dims = [] : (tensor<f64>) -> tensor<2x3x1xf64>
    %6 = stablehlo.divide %2, %5 : tensor<2x3x1xf64>
    %7 = stablehlo.broadcast_in_dim %6, dims = [0, 1, 2] : (tensor<2x3x1xf64>) -> tensor<2x3x8xf64>
    %8 = stablehlo.subtract %0, %7 : tensor<2x3x8xf64>
    %9 = stablehlo.multiply %8, %8 : tensor<2x3x8xf64>
    %10 = stablehlo.reduce(%9 init: %cst) applies stablehlo.add across dimensions = [2] : (tensor<2x3x8xf64>, tensor<f64>) -> tensor<2x3xf64>
    %11 = stablehlo.reshape %10 : (tensor<2x3xf64>) -> tensor<2x3x1xf64>
    %12 = stablehlo.divide %11, %5 : tensor<2x3x1xf64>
    %13 = stablehlo.convert %12 : (tensor<2x3x1xf64>) -> tensor<2x3x1xf32>
    %14 = stablehlo.reduce(%arg0 init: %cst_0) applies stablehlo.add across dimensions = [2] : (tensor<2x3x8xf32>, tensor<f32>) -> tensor<2x3xf32>
    %15 = stablehlo.reshape %14 : (tensor<2x3xf32>) -> tensor<2x3x1xf32>
    %16 = stablehlo.convert %cst_1 : (tensor<1xi64>) -> tensor<1xf32>
    %17 = stablehlo.reshape %16 : (tensor<1xf32>) -> tensor<f32>
    %18 = stablehlo.broadcast_in_dim %17, dims = [] : (tensor<f32>) -> tensor<2x3x1xf32>
    %19 = stablehlo.divide %15, %18 : tensor<2x3x1xf32>
    %20 = stablehlo.convert %cst_2 : (tensor<1xf64>) -> tensor<1xf32>
    %21 = stablehlo.reshape %20 : (tensor<1xf32>) -> tensor<f32>
    %22 = stablehlo.broadcast_in_dim %21, dims = [] : (tensor<f32>) -> tensor<2x3x1xf32>
    %23 = stablehlo.add %13, %22 : tensor<2x3x1xf32>
    %24 = stablehlo.rsqrt %23 : tensor<2x3x1xf32>
    %25 = stablehlo.broadcast_in_dim %19, dims = [0, 1, 2] : (tensor<2x3x1xf32>) -> tensor<2x3x8xf32>
    %26 = stablehlo.subtract %arg0, %25 : tensor<2x3x8xf32>
    %27 = stablehlo.broadcast_in_dim %24, dims = [0, 1, 2] : (tensor<2x3x1xf32>) -> tensor<2x3x8xf32>
    %28 = stablehlo.multiply %26, %27 : tensor<2x3x8xf32>
    %29 = stablehlo.reshape %arg2 : (tensor<2x8xf32>) -> tensor<2x1x8xf32>
    %30 = stablehlo.convert %cst_3 : (tensor<1xi64>) -> tensor<1xf32>
    %31 = stablehlo.reshape %30 : (tensor<1xf32>) -> tensor<f32>
    %32 = stablehlo.broadcast_in_dim %31, dims = [] : (tensor<f32>) -> tensor<2x1x8xf32>
    %33 = stablehlo.add %29, %32 : tensor<2x1x8xf32>
    %34 = stablehlo.broadcast_in_dim %33, dims = [0, 1, 2] : (tensor<2x1x8xf32>) -> tensor<2x3x8xf32>
    %35 = stablehlo.multiply %28, %34 : tensor<2x3x8xf32>
    %36 = stablehlo.reshape %arg1 : (tensor<2x8xf32>) -> tensor<2x1x8xf32>
    %37 = stablehlo.broadcast_in_dim %36, dims = [0, 1, 2] : (tensor<2x1x8xf32>) -> tensor<2x3x8xf32>
    %38 = stablehlo.add %35, %37 : tensor<2x3x8xf32>
    return %38 : tensor<2x3x8xf32>
  }
}
