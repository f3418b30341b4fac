// op: onnx.RMSNormalization axis=-1 epsilon=1e-06
// source: torch 2.13.0, torch_mlir 20261001 fx.export_and_import(.., output_type='stablehlo') of nn.RMSNorm(8)
module {
  func.func @main(%arg0: tensor<2x3x8xf32>) -> tensor<2x3x8xf32> {
    %cst = stablehlo.constant dense_resource<torch_tensor_8_torch.float32> : tensor<8xf32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %cst_1 = arith.constant dense<8> : tensor<1xi64>
    %cst_2 = arith.constant dense<9.9999999999999995E-7> : tensor<1xf64>
    %0 = stablehlo.multiply %arg0, %arg0 : tensor<2x3x8xf32>
    %1 = stablehlo.reduce(%0 init: %cst_0) applies stablehlo.add across dimensions = [2] : (tensor<2x3x8xf32>, tensor<f32>) -> tensor<2x3xf32>
    %2 = stablehlo.reshape %1 : (tensor<2x3xf32>) -> tensor<2x3x1xf32>
    %3 = stablehlo.convert %cst_1 : (tensor<1xi64>) -> tensor<1xf32>
    %4 = stablehlo.reshape %3 : (tensor<1xf32>) -> tensor<f32>
    %5 = stablehlo.broadcast_in_dim %4, dims = [] : (tensor<f32>) -> tensor<2x3x1xf32>
    %6 = stablehlo.divide %2, %5 : tensor<2x3x1xf32>
    %7 = stablehlo.convert %cst_2 : (tensor<1xf64>) -> tensor<1xf32>
    %8 = stablehlo.reshape %7 : (tensor<1xf32>) -> tensor<f32>
    %9 = stablehlo.broadcast_in_dim %8, dims = [] : (tensor<f32>) -> tensor<2x3x1xf32>
    %10 = stablehlo.add %6, %9 : tensor<2x3x1xf32>
    %11 = stablehlo.rsqrt %10 : tensor<2x3x1xf32>
    %12 = stablehlo.broadcast_in_dim %11, dims = [0, 1, 2] : (tensor<2x3x1xf32>) -> tensor<2x3x8xf32>
    %13 = stablehlo.multiply %arg0, %12 : tensor<2x3x8xf32>
    %14 = stablehlo.broadcast_in_dim %cst, dims = [2] : (tensor<8xf32>) -> tensor<2x3x8xf32>
    %15 = stablehlo.multiply %13, %14 : tensor<2x3x8xf32>
    return %15 : tensor<2x3x8xf32>
  }
}

{-#
  dialect_resources: {
    builtin: {
      torch_tensor_8_torch.float32: "0x040000000000803F0000803F0000803F0000803F0000803F0000803F0000803F0000803F"
    }
  }
#-}
