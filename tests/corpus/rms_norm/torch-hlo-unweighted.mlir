// op: onnx.RMSNormalization axis=-1 epsilon=1e-06
// source: torch 2.13.0, torch_mlir 20261001 fx.export_and_import(.., output_type='stablehlo') of without a weight
module {
  func.func @main(%arg0: tensor<2x3x8xf32>) -> tensor<2x3x8xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %cst_0 = arith.constant dense<2> : tensor<1xi64>
    %cst_1 = arith.constant dense<8> : tensor<1xi64>
    %cst_2 = arith.constant dense<9.9999999999999995E-7> : tensor<1xf64>
    %0 = stablehlo.convert %cst_0 : (tensor<1xi64>) -> tensor<1xf32>
    %1 = stablehlo.reshape %0 : (tensor<1xf32>) -> tensor<f32>
    %2 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<f32>) -> tensor<2x3x8xf32>
    %3 = stablehlo.power %arg0, %2 : tensor<2x3x8xf32>
    %4 = stablehlo.reduce(%3 init: %cst) applies stablehlo.add across dimensions = [2] : (tensor<2x3x8xf32>, tensor<f32>) -> tensor<2x3xf32>
    %5 = stablehlo.reshape %4 : (tensor<2x3xf32>) -> tensor<2x3x1xf32>
    %6 = stablehlo.convert %cst_1 : (tensor<1xi64>) -> tensor<1xf32>
    %7 = stablehlo.reshape %6 : (tensor<1xf32>) -> tensor<f32>
    %8 = stablehlo.broadcast_in_dim %7, dims = [] : (tensor<f32>) -> tensor<2x3x1xf32>
    %9 = stablehlo.divide %5, %8 : tensor<2x3x1xf32>
    %10 = stablehlo.convert %cst_2 : (tensor<1xf64>) -> tensor<1xf32>
    %11 = stablehlo.reshape %10 : (tensor<1xf32>) -> tensor<f32>
    %12 = stablehlo.broadcast_in_dim %11, dims = [] : (tensor<f32>) -> tensor<2x3x1xf32>
    %13 = stablehlo.add %9, %12 : tensor<2x3x1xf32>
    %14 = stablehlo.rsqrt %13 : tensor<2x3x1xf32>
    %15 = stablehlo.broadcast_in_dim %14, dims = [0, 1, 2] : (tensor<2x3x1xf32>) -> tensor<2x3x8xf32>
    %16 = stablehlo.multiply %arg0, %15 : tensor<2x3x8xf32>
    return %16 : tensor<2x3x8xf32>
  }
}
