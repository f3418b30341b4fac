// op: onnx.Gelu approximate=tanh
// source: torch 2.13.0, torch_mlir 20261001 fx.export_and_import(.., output_type='stablehlo') of GPT-2 gelu_new: torch.pow(x, 3.0)
module {
  func.func @main(%arg0: tensor<2x3x8xf32>) -> tensor<2x3x8xf32> {
    %cst = arith.constant dense<5.000000e-01> : tensor<1xf64>
    %cst_0 = arith.constant dense<3> : tensor<1xi64>
    %cst_1 = arith.constant dense<4.471500e-02> : tensor<1xf64>
    %cst_2 = arith.constant dense<0.79788456080286541> : tensor<1xf64>
    %cst_3 = arith.constant dense<1.000000e+00> : tensor<1xf64>
    %0 = stablehlo.convert %cst : (tensor<1xf64>) -> tensor<1xf32>
    %1 = stablehlo.reshape %0 : (tensor<1xf32>) -> tensor<f32>
    %2 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<f32>) -> tensor<2x3x8xf32>
    %3 = stablehlo.multiply %arg0, %2 : tensor<2x3x8xf32>
    %4 = stablehlo.convert %cst_0 : (tensor<1xi64>) -> tensor<1xf32>
    %5 = stablehlo.reshape %4 : (tensor<1xf32>) -> tensor<f32>
    %6 = stablehlo.broadcast_in_dim %5, dims = [] : (tensor<f32>) -> tensor<2x3x8xf32>
    %7 = stablehlo.power %arg0, %6 : tensor<2x3x8xf32>
    %8 = stablehlo.convert %cst_1 : (tensor<1xf64>) -> tensor<1xf32>
    %9 = stablehlo.reshape %8 : (tensor<1xf32>) -> tensor<f32>
    %10 = stablehlo.broadcast_in_dim %9, dims = [] : (tensor<f32>) -> tensor<2x3x8xf32>
    %11 = stablehlo.multiply %7, %10 : tensor<2x3x8xf32>
    %12 = stablehlo.add %arg0, %11 : tensor<2x3x8xf32>
    %13 = stablehlo.convert %cst_2 : (tensor<1xf64>) -> tensor<1xf32>
    %14 = stablehlo.reshape %13 : (tensor<1xf32>) -> tensor<f32>
    %15 = stablehlo.broadcast_in_dim %14, dims = [] : (tensor<f32>) -> tensor<2x3x8xf32>
    %16 = stablehlo.multiply %12, %15 : tensor<2x3x8xf32>
    %17 = stablehlo.tanh %16 : tensor<2x3x8xf32>
    %18 = stablehlo.convert %cst_3 : (tensor<1xf64>) -> tensor<1xf32>
    %19 = stablehlo.reshape %18 : (tensor<1xf32>) -> tensor<f32>
    %20 = stablehlo.broadcast_in_dim %19, dims = [] : (tensor<f32>) -> tensor<2x3x8xf32>
    %21 = stablehlo.add %17, %20 : tensor<2x3x8xf32>
    %22 = stablehlo.multiply %3, %21 : tensor<2x3x8xf32>
    return %22 : tensor<2x3x8xf32>
  }
}
