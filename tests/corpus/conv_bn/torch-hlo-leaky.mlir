// op: onnx.Conv
// op: onnx.LeakyRelu alpha=0.1
// source: torch 2.13.0, torch_mlir 20261001 fx.export_and_import(.., output_type='stablehlo') of dilated Conv2d, BatchNorm2d, LeakyReLU
module {
  func.func @main(%arg0: tensor<2x3x6x6xf32>) -> tensor<2x4x2x2xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %cst_0 = stablehlo.constant dense_resource<torch_tensor_4_torch.float32_4> : tensor<4xf32>
    %cst_1 = stablehlo.constant dense_resource<torch_tensor_4_torch.float32_3> : tensor<4xf32>
    %cst_2 = stablehlo.constant dense_resource<torch_tensor_4_torch.float32_2> : tensor<4xf32>
    %cst_3 = stablehlo.constant dense_resource<torch_tensor_4_torch.float32_1> : tensor<4xf32>
    %cst_4 = stablehlo.constant dense_resource<torch_tensor_4_3_3_3_torch.float32> : tensor<4x3x3x3xf32>
    %cst_5 = stablehlo.constant dense_resource<torch_tensor_4_torch.float32> : tensor<4xf32>
    %cst_6 = stablehlo.constant dense<1.000000e+00> : tensor<4xf32>
    %cst_7 = arith.constant dense<1.000000e-05> : tensor<1xf64>
    %cst_8 = arith.constant dense<1> : tensor<1xi64>
    %cst_9 = arith.constant dense<1.000000e-01> : tensor<1xf64>
    %0 = stablehlo.convolution(%arg0, %cst_4) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [1, 1], pad = [[0, 0], [0, 0]], rhs_dilate = [2, 2]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x3x6x6xf32>, tensor<4x3x3x3xf32>) -> tensor<2x4x2x2xf32>
    %1 = stablehlo.reshape %cst_5 : (tensor<4xf32>) -> tensor<4x1x1xf32>
    %2 = stablehlo.broadcast_in_dim %1, dims = [1, 2, 3] : (tensor<4x1x1xf32>) -> tensor<2x4x2x2xf32>
    %3 = stablehlo.add %0, %2 : tensor<2x4x2x2xf32>
    %4 = stablehlo.convert %cst_7 : (tensor<1xf64>) -> tensor<1xf32>
    %5 = stablehlo.reshape %4 : (tensor<1xf32>) -> tensor<f32>
    %6 = stablehlo.broadcast_in_dim %5, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %7 = stablehlo.add %6, %cst_2 : tensor<4xf32>
    %8 = stablehlo.sqrt %7 : tensor<4xf32>
    %9 = stablehlo.divide %cst_6, %8 : tensor<4xf32>
    %10 = stablehlo.convert %cst_8 : (tensor<1xi64>) -> tensor<1xf32>
    %11 = stablehlo.reshape %10 : (tensor<1xf32>) -> tensor<f32>
    %12 = stablehlo.broadcast_in_dim %11, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %13 = stablehlo.multiply %9, %12 : tensor<4xf32>
    %14 = stablehlo.reshape %cst_3 : (tensor<4xf32>) -> tensor<4x1xf32>
    %15 = stablehlo.reshape %14 : (tensor<4x1xf32>) -> tensor<4x1x1xf32>
    %16 = stablehlo.reshape %13 : (tensor<4xf32>) -> tensor<4x1xf32>
    %17 = stablehlo.reshape %16 : (tensor<4x1xf32>) -> tensor<4x1x1xf32>
    %18 = stablehlo.broadcast_in_dim %15, dims = [1, 2, 3] : (tensor<4x1x1xf32>) -> tensor<2x4x2x2xf32>
    %19 = stablehlo.subtract %3, %18 : tensor<2x4x2x2xf32>
    %20 = stablehlo.broadcast_in_dim %17, dims = [1, 2, 3] : (tensor<4x1x1xf32>) -> tensor<2x4x2x2xf32>
    %21 = stablehlo.multiply %19, %20 : tensor<2x4x2x2xf32>
    %22 = stablehlo.reshape %cst_1 : (tensor<4xf32>) -> tensor<4x1xf32>
    %23 = stablehlo.reshape %22 : (tensor<4x1xf32>) -> tensor<4x1x1xf32>
    %24 = stablehlo.broadcast_in_dim %23, dims = [1, 2, 3] : (tensor<4x1x1xf32>) -> tensor<2x4x2x2xf32>
    %25 = stablehlo.multiply %21, %24 : tensor<2x4x2x2xf32>
    %26 = stablehlo.reshape %cst_0 : (tensor<4xf32>) -> tensor<4x1xf32>
    %27 = stablehlo.reshape %26 : (tensor<4x1xf32>) -> tensor<4x1x1xf32>
    %28 = stablehlo.broadcast_in_dim %27, dims = [1, 2, 3] : (tensor<4x1x1xf32>) -> tensor<2x4x2x2xf32>
    %29 = stablehlo.add %25, %28 : tensor<2x4x2x2xf32>
    %30 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x4x2x2xf32>
    %31 = stablehlo.maximum %29, %30 : tensor<2x4x2x2xf32>
    %32 = stablehlo.minimum %29, %30 : tensor<2x4x2x2xf32>
    %33 = stablehlo.convert %cst_9 : (tensor<1xf64>) -> tensor<1xf32>
    %34 = stablehlo.reshape %33 : (tensor<1xf32>) -> tensor<f32>
    %35 = stablehlo.broadcast_in_dim %34, dims = [] : (tensor<f32>) -> tensor<2x4x2x2xf32>
    %36 = stablehlo.multiply %32, %35 : tensor<2x4x2x2xf32>
    %37 = stablehlo.add %31, %36 : tensor<2x4x2x2xf32>
    return %37 : tensor<2x4x2x2xf32>
  }
}

{-#
  dialect_resources: {
    builtin: {
      torch_tensor_4_torch.float32_4: "0x040000001009D6BE8A351EBE02DF44BC21768F3E",
      torch_tensor_4_torch.float32_3: "0x0400000073AE8BBE3248E1BC7A22E3BE0EF73ABF",
      torch_tensor_4_torch.float32_2: "0x04000000441C5C3F73789E3F5F92083F7D7E2E3F",
      torch_tensor_4_torch.float32_1: "0x040000007E5B133F04C2343FD41CC6BEBAAA863E",
      torch_tensor_4_3_3_3_torch.float32: "0x04000000EF17F13D2B29333E063A413E953D9B3DDEC5C03DF36D06BDACE9223EB2AF96BD893456BD602C83BD181B04BEC3E117BE0DB120BDE1451F3E6158C4BD01E932BE251B34BD6592323E8D203E3D3C4F47BC635661BDBB082D3E5B5D3DBEF355DF3DA007563DE612F73D3771E4BDEE3A81BD4FA3A5BD76383F3EB792CBBC13EA3BBE1FA1C53D6EFC173DB1BBD73C636A03BED89B38BE8E91323ED06B14BE67CA15BDD47910BD9017E13D1F2326BE4E96E1BDCD36D3BD7BBBC6BD9A1DF13DF342F13D20CBB23D4ADD203E931003BEA45548BA887A1FBEBA89C5B9906E28BE5ACF3DBECB41F83DDA6AAEBD523A7BBCCD5968BD2E4E1CBE5C489DBC38E4E83C99761D3E8BA9A7BDB9C33B3EE37DB6BD4A49FC3D11222C3E7503A33C3A5D87BDA9C6113EBFEF65BD66BBA8BDAE6689BD9BBA20BE50899DBCA55220BE300F013EEFCC3DBE2E6812BE40451C3DC5D3F33D0D7C3C3EF0B61FBE30E3213EA6150A3EDC4701BE4252A43DECBD5DBD3CE7623DE9752EBEDA4DE2BD99DFF9BD06BA19BD9C69E5BBBEB387BB8FD5E8BDE7AAC23D2F38C83D79DF2CBEC3AA36BE3D6329BDB8475B3D131916BE0F2E91BC2BF4323CD49416BE",
      torch_tensor_4_torch.float32: "0x04000000618A383E70BA0E3E9785163E00B8A0BD"
    }
  }
#-}
