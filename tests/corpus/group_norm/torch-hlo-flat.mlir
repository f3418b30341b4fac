// op: onnx.GroupNormalization num_groups=2 epsilon=1e-05
// source: torch 2.13.0, torch_mlir 20261001 fx.export_and_import(.., output_type='stablehlo') of flattened groups, rsqrt
module {
  func.func @main(%arg0: tensor<2x8x4x5xf32>) -> tensor<2x8x4x5xf32> {
    %cst = stablehlo.constant dense_resource<torch_tensor_8_torch.float32_1> : tensor<8xf32>
    %cst_0 = stablehlo.constant dense_resource<torch_tensor_8_torch.float32> : tensor<8xf32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f64>
    %cst_3 = arith.constant dense<80> : tensor<1xi64>
    %cst_4 = arith.constant dense<1.000000e-05> : tensor<1xf64>
    %0 = stablehlo.reshape %arg0 : (tensor<2x8x4x5xf32>) -> tensor<2x2x80xf32>
    %1 = stablehlo.reduce(%0 init: %cst_1) applies stablehlo.add across dimensions = [2] : (tensor<2x2x80xf32>, tensor<f32>) -> tensor<2x2xf32>
    %2 = stablehlo.reshape %1 : (tensor<2x2xf32>) -> tensor<2x2x1xf32>
    %3 = stablehlo.convert %cst_3 : (tensor<1xi64>) -> tensor<1xf32>
    %4 = stablehlo.reshape %3 : (tensor<1xf32>) -> tensor<f32>
    %5 = stablehlo.broadcast_in_dim %4, dims = [] : (tensor<f32>) -> tensor<2x2x1xf32>
    %6 = stablehlo.divide %2, %5 : tensor<2x2x1xf32>
    %7 = stablehlo.broadcast_in_dim %6, dims = [0, 1, 2] : (tensor<2x2x1xf32>) -> tensor<2x2x80xf32>
    %8 = stablehlo.subtract %0, %7 : tensor<2x2x80xf32>
    %9 = stablehlo.convert %0 : (tensor<2x2x80xf32>) -> tensor<2x2x80xf64>
    %10 = stablehlo.reduce(%9 init: %cst_2) applies stablehlo.add across dimensions = [2] : (tensor<2x2x80xf64>, tensor<f64>) -> tensor<2x2xf64>
    %11 = stablehlo.reshape %10 : (tensor<2x2xf64>) -> tensor<2x2x1xf64>
    %12 = stablehlo.convert %cst_3 : (tensor<1xi64>) -> tensor<1xf64>
    %13 = stablehlo.reshape %12 : (tensor<1xf64>) -> tensor<f64>
    %14 = stablehlo.broadcast_in_dim %13, dims = [] : (tensor<f64>) -> tensor<2x2x1xf64>
    %15 = stablehlo.divide %11, %14 : tensor<2x2x1xf64>
    %16 = stablehlo.broadcast_in_dim %15, dims = [0, 1, 2] : (tensor<2x2x1xf64>) -> tensor<2x2x80xf64>
    %17 = stablehlo.subtract %9, %16 : tensor<2x2x80xf64>
    %18 = stablehlo.multiply %17, %17 : tensor<2x2x80xf64>
    %19 = stablehlo.reduce(%18 init: %cst_2) applies stablehlo.add across dimensions = [2] : (tensor<2x2x80xf64>, tensor<f64>) -> tensor<2x2xf64>
    %20 = stablehlo.reshape %19 : (tensor<2x2xf64>) -> tensor<2x2x1xf64>
    %21 = stablehlo.divide %20, %14 : tensor<2x2x1xf64>
    %22 = stablehlo.convert %21 : (tensor<2x2x1xf64>) -> tensor<2x2x1xf32>
    %23 = stablehlo.convert %cst_4 : (tensor<1xf64>) -> tensor<1xf32>
    %24 = stablehlo.reshape %23 : (tensor<1xf32>) -> tensor<f32>
    %25 = stablehlo.broadcast_in_dim %24, dims = [] : (tensor<f32>) -> tensor<2x2x1xf32>
    %26 = stablehlo.add %22, %25 : tensor<2x2x1xf32>
    %27 = stablehlo.rsqrt %26 : tensor<2x2x1xf32>
    %28 = stablehlo.broadcast_in_dim %27, dims = [0, 1, 2] : (tensor<2x2x1xf32>) -> tensor<2x2x80xf32>
    %29 = stablehlo.multiply %8, %28 : tensor<2x2x80xf32>
    %30 = stablehlo.reshape %29 : (tensor<2x2x80xf32>) -> tensor<2x8x4x5xf32>
    %31 = stablehlo.reshape %cst_0 : (tensor<8xf32>) -> tensor<8x1xf32>
    %32 = stablehlo.reshape %31 : (tensor<8x1xf32>) -> tensor<8x1x1xf32>
    %33 = stablehlo.broadcast_in_dim %32, dims = [1, 2, 3] : (tensor<8x1x1xf32>) -> tensor<2x8x4x5xf32>
    %34 = stablehlo.multiply %30, %33 : tensor<2x8x4x5xf32>
    %35 = stablehlo.reshape %cst : (tensor<8xf32>) -> tensor<8x1xf32>
    %36 = stablehlo.reshape %35 : (tensor<8x1xf32>) -> tensor<8x1x1xf32>
    %37 = stablehlo.broadcast_in_dim %36, dims = [1, 2, 3] : (tensor<8x1x1xf32>) -> tensor<2x8x4x5xf32>
    %38 = stablehlo.add %34, %37 : tensor<2x8x4x5xf32>
    return %38 : tensor<2x8x4x5xf32>
  }
}

{-#
  dialect_resources: {
    builtin: {
      torch_tensor_8_torch.float32_1: "0x04000000C2E42F3F8B2354BEB8F314BC757FACBE7E5B133F04C2343FD41CC6BEBAAA863E",
      torch_tensor_8_torch.float32: "0x040000002A1B91BE32F8FEBE55BF50BE11B82CBFD98A1540A19DB3BF3AA20CBFD472FB3C"
    }
  }
#-}
