// op: onnx.Softmax axis=-1
// source: torch 2.13.0, torch_mlir 20261001 fx.export_and_import(.., output_type='stablehlo') of exp of log_softmax
module {
  func.func @main(%arg0: tensor<2x3x8xf32>) -> tensor<2x3x8xf32> {
    %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.reduce(%arg0 init: %cst) applies stablehlo.maximum across dimensions = [2] : (tensor<2x3x8xf32>, tensor<f32>) -> tensor<2x3xf32>
    %1 = stablehlo.reshape %0 : (tensor<2x3xf32>) -> tensor<2x3x1xf32>
    %2 = stablehlo.broadcast_in_dim %1, dims = [0, 1, 2] : (tensor<2x3x1xf32>) -> tensor<2x3x8xf32>
    %3 = stablehlo.subtract %arg0, %2 : tensor<2x3x8xf32>
    %4 = stablehlo.exponential %3 : tensor<2x3x8xf32>
    %5 = stablehlo.reduce(%4 init: %cst_0) applies stablehlo.add across dimensions = [2] : (tensor<2x3x8xf32>, tensor<f32>) -> tensor<2x3xf32>
    %6 = stablehlo.reshape %5 : (tensor<2x3xf32>) -> tensor<2x3x1xf32>
    %7 = stablehlo.log %6 : tensor<2x3x1xf32>
    %8 = stablehlo.broadcast_in_dim %7, dims = [0, 1, 2] : (tensor<2x3x1xf32>) -> tensor<2x3x8xf32>
    %9 = stablehlo.subtract %3, %8 : tensor<2x3x8xf32>
    %10 = stablehlo.exponential %9 : tensor<2x3x8xf32>
    return %10 : tensor<2x3x8xf32>
  }
}
