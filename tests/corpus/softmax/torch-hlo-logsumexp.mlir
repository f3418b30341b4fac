// op: onnx.Softmax axis=-1
// source: torch 2.13.0, torch_mlir 20261001 fx.export_and_import(.., output_type='stablehlo') of exp(x - logsumexp(x))
module {
  func.func @main(%arg0: tensor<2x3x8xf32>) -> tensor<2x3x8xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %cst_0 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %cst_1 = arith.constant dense<0x7FF0000000000000> : tensor<1xf64>
    %0 = stablehlo.reduce(%arg0 init: %cst_0) applies stablehlo.maximum across dimensions = [2] : (tensor<2x3x8xf32>, tensor<f32>) -> tensor<2x3xf32>
    %1 = stablehlo.reshape %0 : (tensor<2x3xf32>) -> tensor<2x3x1xf32>
    %2 = stablehlo.abs %1 : tensor<2x3x1xf32>
    %3 = stablehlo.convert %cst_1 : tensor<1xf64>
    %4 = stablehlo.reshape %3 : (tensor<1xf64>) -> tensor<f64>
    %5 = stablehlo.convert %4 : (tensor<f64>) -> tensor<f32>
    %6 = stablehlo.broadcast_in_dim %5, dims = [] : (tensor<f32>) -> tensor<2x3x1xf32>
    %7 = stablehlo.compare EQ, %2, %6, FLOAT : (tensor<2x3x1xf32>, tensor<2x3x1xf32>) -> tensor<2x3x1xi1>
    %8 = stablehlo.broadcast_in_dim %7, dims = [0, 1, 2] : (tensor<2x3x1xi1>) -> tensor<2x3x1xi1>
    %9 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x3x1xf32>
    %10 = stablehlo.broadcast_in_dim %1, dims = [0, 1, 2] : (tensor<2x3x1xf32>) -> tensor<2x3x1xf32>
    %11 = stablehlo.select %8, %9, %10 : tensor<2x3x1xi1>, tensor<2x3x1xf32>
    %12 = stablehlo.broadcast_in_dim %11, dims = [0, 1, 2] : (tensor<2x3x1xf32>) -> tensor<2x3x8xf32>
    %13 = stablehlo.subtract %arg0, %12 : tensor<2x3x8xf32>
    %14 = stablehlo.exponential %13 : tensor<2x3x8xf32>
    %15 = stablehlo.reduce(%14 init: %cst) applies stablehlo.add across dimensions = [2] : (tensor<2x3x8xf32>, tensor<f32>) -> tensor<2x3xf32>
    %16 = stablehlo.reshape %15 : (tensor<2x3xf32>) -> tensor<2x3x1xf32>
    %17 = stablehlo.log %16 : tensor<2x3x1xf32>
    %18 = stablehlo.add %17, %11 : tensor<2x3x1xf32>
    %19 = stablehlo.broadcast_in_dim %18, dims = [0, 1, 2] : (tensor<2x3x1xf32>) -> tensor<2x3x8xf32>
    %20 = stablehlo.subtract %arg0, %19 : tensor<2x3x8xf32>
    %21 = stablehlo.exponential %20 : tensor<2x3x8xf32>
    return %21 : tensor<2x3x8xf32>
  }
}
