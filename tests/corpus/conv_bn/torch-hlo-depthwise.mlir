// op: onnx.Conv
// op: onnx.Relu
// source: torch 2.13.0, torch_mlir 20261001 fx.export_and_import(.., output_type='stablehlo') of depthwise Conv2d, BatchNorm2d, ReLU
module {
  func.func @main(%arg0: tensor<1x4x6x6xf32>) -> tensor<1x4x6x6xf32> {
    %cst = stablehlo.constant dense_resource<torch_tensor_4_torch.float32_3> : tensor<4xf32>
    %cst_0 = stablehlo.constant dense_resource<torch_tensor_4_torch.float32_2> : tensor<4xf32>
    %cst_1 = stablehlo.constant dense_resource<torch_tensor_4_torch.float32_1> : tensor<4xf32>
    %cst_2 = stablehlo.constant dense_resource<torch_tensor_4_torch.float32> : tensor<4xf32>
    %cst_3 = stablehlo.constant dense_resource<torch_tensor_4_1_3_3_torch.float32> : tensor<4x1x3x3xf32>
    %cst_4 = stablehlo.constant dense<1.000000e+00> : tensor<4xf32>
    %cst_5 = stablehlo.constant dense<0.000000e+00> : tensor<1x4x6x6xf32>
    %cst_6 = arith.constant dense<1.000000e-05> : tensor<1xf64>
    %cst_7 = arith.constant dense<1> : tensor<1xi64>
    %0 = stablehlo.convolution(%arg0, %cst_3) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], rhs_dilate = [1, 1]} {batch_group_count = 1 : i64, feature_group_count = 4 : i64} : (tensor<1x4x6x6xf32>, tensor<4x1x3x3xf32>) -> tensor<1x4x6x6xf32>
    %1 = stablehlo.convert %cst_6 : (tensor<1xf64>) -> tensor<1xf32>
    %2 = stablehlo.reshape %1 : (tensor<1xf32>) -> tensor<f32>
    %3 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %4 = stablehlo.add %3, %cst_1 : tensor<4xf32>
    %5 = stablehlo.sqrt %4 : tensor<4xf32>
    %6 = stablehlo.divide %cst_4, %5 : tensor<4xf32>
    %7 = stablehlo.convert %cst_7 : (tensor<1xi64>) -> tensor<1xf32>
    %8 = stablehlo.reshape %7 : (tensor<1xf32>) -> tensor<f32>
    %9 = stablehlo.broadcast_in_dim %8, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %10 = stablehlo.multiply %6, %9 : tensor<4xf32>
    %11 = stablehlo.reshape %cst_2 : (tensor<4xf32>) -> tensor<4x1xf32>
    %12 = stablehlo.reshape %11 : (tensor<4x1xf32>) -> tensor<4x1x1xf32>
    %13 = stablehlo.reshape %10 : (tensor<4xf32>) -> tensor<4x1xf32>
    %14 = stablehlo.reshape %13 : (tensor<4x1xf32>) -> tensor<4x1x1xf32>
    %15 = stablehlo.broadcast_in_dim %12, dims = [1, 2, 3] : (tensor<4x1x1xf32>) -> tensor<1x4x6x6xf32>
    %16 = stablehlo.subtract %0, %15 : tensor<1x4x6x6xf32>
    %17 = stablehlo.broadcast_in_dim %14, dims = [1, 2, 3] : (tensor<4x1x1xf32>) -> tensor<1x4x6x6xf32>
    %18 = stablehlo.multiply %16, %17 : tensor<1x4x6x6xf32>
    %19 = stablehlo.reshape %cst_0 : (tensor<4xf32>) -> tensor<4x1xf32>
    %20 = stablehlo.reshape %19 : (tensor<4x1xf32>) -> tensor<4x1x1xf32>
    %21 = stablehlo.broadcast_in_dim %20, dims = [1, 2, 3] : (tensor<4x1x1xf32>) -> tensor<1x4x6x6xf32>
    %22 = stablehlo.multiply %18, %21 : tensor<1x4x6x6xf32>
    %23 = stablehlo.reshape %cst : (tensor<4xf32>) -> tensor<4x1xf32>
    %24 = stablehlo.reshape %23 : (tensor<4x1xf32>) -> tensor<4x1x1xf32>
    %25 = stablehlo.broadcast_in_dim %24, dims = [1, 2, 3] : (tensor<4x1x1xf32>) -> tensor<1x4x6x6xf32>
    %26 = stablehlo.add %22, %25 : tensor<1x4x6x6xf32>
    %27 = stablehlo.maximum %26, %cst_5 : tensor<1x4x6x6xf32>
    return %27 : tensor<1x4x6x6xf32>
  }
}

{-#
  dialect_resources: {
    builtin: {
      torch_tensor_4_torch.float32_3: "0x04000000AE27C43E862E37BF8CC989BFF60607C0",
      torch_tensor_4_torch.float32_2: "0x04000000BED9683EC3600CC05831A0BE6518C63E",
      torch_tensor_4_torch.float32_1: "0x04000000346BA63FF4E9953FEED9A53F5BF0BF3F",
      torch_tensor_4_torch.float32: "0x040000002AA51EBF9FF1123FE46FA3BDD1A7773F",
      torch_tensor_4_1_3_3_torch.float32: "0x04000000EC709EBEB3576FBEABE0933C807B92BC33EE8C3ED6E83A3C8BC6AFBDE4C1A6BE70EA9CBE48CA0D3E5F03983E56BAA5BBC88A98BEA65FF23D07018B3EA0E961BE40BCB3BDC0A8E53CE8A842BEDA3F9EBE9B6D153EAB0B8CBEC05AABBD063E35BE1E59803E60CF833DCB4A1E3EF02367BE8BD28F3E804DF33CB8503DBED6A1B2BCDBAE71BE56177CBC839A3E3EB37119BE"
    }
  }
#-}
