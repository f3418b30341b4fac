// op: onnx.Swish alpha=1.0
// source: torch 2.13.0, torch_mlir 20261001 fx.export_and_import(.., output_type='stablehlo') of x / (1 + exp(-x))
module {
  func.func @main(%arg0: tensor<2x3x8xf32>) -> tensor<2x3x8xf32> {
    %cst = arith.constant dense<1> : tensor<1xi64>
    %0 = stablehlo.negate %arg0 : tensor<2x3x8xf32>
    %1 = stablehlo.exponential %0 : tensor<2x3x8xf32>
    %2 = stablehlo.convert %cst : (tensor<1xi64>) -> tensor<1xf32>
    %3 = stablehlo.reshape %2 : (tensor<1xf32>) -> tensor<f32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [] : (tensor<f32>) -> tensor<2x3x8xf32>
    %5 = stablehlo.add %1, %4 : tensor<2x3x8xf32>
    %6 = stablehlo.divide %arg0, %5 : tensor<2x3x8xf32>
    return %6 : tensor<2x3x8xf32>
  }
}
