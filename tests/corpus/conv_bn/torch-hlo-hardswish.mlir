// op: onnx.Conv
// op: onnx.HardSwish
// source: torch 2.13.0, torch_mlir 20261001 fx.export_and_import(.., output_type='stablehlo') of Conv2d, BatchNorm2d, Hardswish (MobileNetV3)
module {
  func.func @main(%arg0: tensor<2x3x6x6xf32>) -> tensor<2x4x4x4xf32> {
    %cst = stablehlo.constant dense_resource<torch_tensor_4_torch.float32_3> : tensor<4xf32>
    %cst_0 = stablehlo.constant dense_resource<torch_tensor_4_torch.float32_2> : tensor<4xf32>
    %cst_1 = stablehlo.constant dense_resource<torch_tensor_4_torch.float32_1> : tensor<4xf32>
    %cst_2 = stablehlo.constant dense_resource<torch_tensor_4_torch.float32> : tensor<4xf32>
    %cst_3 = stablehlo.constant dense_resource<torch_tensor_4_3_3_3_torch.float32> : tensor<4x3x3x3xf32>
    %cst_4 = stablehlo.constant dense<1.000000e+00> : tensor<4xf32>
    %cst_5 = stablehlo.constant dense<0x7F800000> : tensor<f32>
    %cst_6 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %cst_7 = arith.constant dense<1.000000e-03> : tensor<1xf64>
    %cst_8 = arith.constant dense<1> : tensor<1xi64>
    %cst_9 = arith.constant dense<3> : tensor<1xi64>
    %cst_10 = arith.constant dense<0> : tensor<1xi64>
    %cst_11 = arith.constant dense<6> : tensor<1xi64>
    %0 = stablehlo.convolution(%arg0, %cst_3) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [1, 1], pad = [[0, 0], [0, 0]], rhs_dilate = [1, 1]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x3x6x6xf32>, tensor<4x3x3x3xf32>) -> tensor<2x4x4x4xf32>
    %1 = stablehlo.convert %cst_7 : (tensor<1xf64>) -> tensor<1xf32>
    %2 = stablehlo.reshape %1 : (tensor<1xf32>) -> tensor<f32>
    %3 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %4 = stablehlo.add %3, %cst_1 : tensor<4xf32>
    %5 = stablehlo.sqrt %4 : tensor<4xf32>
    %6 = stablehlo.divide %cst_4, %5 : tensor<4xf32>
    %7 = stablehlo.convert %cst_8 : (tensor<1xi64>) -> tensor<1xf32>
    %8 = stablehlo.reshape %7 : (tensor<1xf32>) -> tensor<f32>
    %9 = stablehlo.broadcast_in_dim %8, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %10 = stablehlo.multiply %6, %9 : tensor<4xf32>
    %11 = stablehlo.reshape %cst_2 : (tensor<4xf32>) -> tensor<4x1xf32>
    %12 = stablehlo.reshape %11 : (tensor<4x1xf32>) -> tensor<4x1x1xf32>
    %13 = stablehlo.reshape %10 : (tensor<4xf32>) -> tensor<4x1xf32>
    %14 = stablehlo.reshape %13 : (tensor<4x1xf32>) -> tensor<4x1x1xf32>
    %15 = stablehlo.broadcast_in_dim %12, dims = [1, 2, 3] : (tensor<4x1x1xf32>) -> tensor<2x4x4x4xf32>
    %16 = stablehlo.subtract %0, %15 : tensor<2x4x4x4xf32>
    %17 = stablehlo.broadcast_in_dim %14, dims = [1, 2, 3] : (tensor<4x1x1xf32>) -> tensor<2x4x4x4xf32>
    %18 = stablehlo.multiply %16, %17 : tensor<2x4x4x4xf32>
    %19 = stablehlo.reshape %cst_0 : (tensor<4xf32>) -> tensor<4x1xf32>
    %20 = stablehlo.reshape %19 : (tensor<4x1xf32>) -> tensor<4x1x1xf32>
    %21 = stablehlo.broadcast_in_dim %20, dims = [1, 2, 3] : (tensor<4x1x1xf32>) -> tensor<2x4x4x4xf32>
    %22 = stablehlo.multiply %18, %21 : tensor<2x4x4x4xf32>
    %23 = stablehlo.reshape %cst : (tensor<4xf32>) -> tensor<4x1xf32>
    %24 = stablehlo.reshape %23 : (tensor<4x1xf32>) -> tensor<4x1x1xf32>
    %25 = stablehlo.broadcast_in_dim %24, dims = [1, 2, 3] : (tensor<4x1x1xf32>) -> tensor<2x4x4x4xf32>
    %26 = stablehlo.add %22, %25 : tensor<2x4x4x4xf32>
    %27 = stablehlo.convert %cst_9 : (tensor<1xi64>) -> tensor<1xf32>
    %28 = stablehlo.reshape %27 : (tensor<1xf32>) -> tensor<f32>
    %29 = stablehlo.broadcast_in_dim %28, dims = [] : (tensor<f32>) -> tensor<2x4x4x4xf32>
    %30 = stablehlo.add %26, %29 : tensor<2x4x4x4xf32>
    %31 = stablehlo.convert %cst_10 : (tensor<1xi64>) -> tensor<1xf32>
    %32 = stablehlo.reshape %31 : (tensor<1xf32>) -> tensor<f32>
    %33 = stablehlo.clamp %32, %30, %cst_5 : (tensor<f32>, tensor<2x4x4x4xf32>, tensor<f32>) -> tensor<2x4x4x4xf32>
    %34 = stablehlo.convert %cst_11 : (tensor<1xi64>) -> tensor<1xf32>
    %35 = stablehlo.reshape %34 : (tensor<1xf32>) -> tensor<f32>
    %36 = stablehlo.clamp %cst_6, %33, %35 : (tensor<f32>, tensor<2x4x4x4xf32>, tensor<f32>) -> tensor<2x4x4x4xf32>
    %37 = stablehlo.multiply %26, %36 : tensor<2x4x4x4xf32>
    %38 = stablehlo.broadcast_in_dim %35, dims = [] : (tensor<f32>) -> tensor<2x4x4x4xf32>
    %39 = stablehlo.divide %37, %38 : tensor<2x4x4x4xf32>
    return %39 : tensor<2x4x4x4xf32>
  }
}

{-#
  dialect_resources: {
    builtin: {
      torch_tensor_4_torch.float32_3: "0x040000007A22E3BE0EF73ABF1009D6BE8A351EBE",
      torch_tensor_4_torch.float32_2: "0x040000000E03123F72D00BBF73AE8BBE3248E1BC",
      torch_tensor_4_torch.float32_1: "0x04000000A0F52C3F103EB23F4B51433F5B9F693F",
      torch_tensor_4_torch.float32: "0x04000000B8F314BC757FACBE7E5B133F04C2343F",
      torch_tensor_4_3_3_3_torch.float32: "0x04000000EF17F13D2B29333E063A413E953D9B3DDEC5C03DF36D06BDACE9223EB2AF96BD893456BD602C83BD181B04BEC3E117BE0DB120BDE1451F3E6158C4BD01E932BE251B34BD6592323E8D203E3D3C4F47BC635661BDBB082D3E5B5D3DBEF355DF3DA007563DE612F73D3771E4BDEE3A81BD4FA3A5BD76383F3EB792CBBC13EA3BBE1FA1C53D6EFC173DB1BBD73C636A03BED89B38BE8E91323ED06B14BE67CA15BDD47910BD9017E13D1F2326BE4E96E1BDCD36D3BD7BBBC6BD9A1DF13DF342F13D20CBB23D4ADD203E931003BEA45548BA887A1FBEBA89C5B9906E28BE5ACF3DBECB41F83DDA6AAEBD523A7BBCCD5968BD2E4E1CBE5C489DBC38E4E83C99761D3E8BA9A7BDB9C33B3EE37DB6BD4A49FC3D11222C3E7503A33C3A5D87BDA9C6113EBFEF65BD66BBA8BDAE6689BD9BBA20BE50899DBCA55220BE300F013EEFCC3DBE2E6812BE40451C3DC5D3F33D0D7C3C3EF0B61FBE30E3213EA6150A3EDC4701BE4252A43DECBD5DBD3CE7623DE9752EBEDA4DE2BD99DFF9BD06BA19BD9C69E5BBBEB387BB8FD5E8BDE7AAC23D2F38C83D79DF2CBEC3AA36BE3D6329BDB8475B3D131916BE0F2E91BC2BF4323CD49416BE"
    }
  }
#-}
