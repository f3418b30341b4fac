// op: onnx.Conv
// op: onnx.Relu
// source: jax 0.10.2, jax.jit(..).lower(..) of NHWC and HWIO (Flax)
module @jit__conv_last attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2x6x6x3xf32>) -> (tensor<2x6x6x4xf32> {jax.result_info = "result"}) {
    %cst = stablehlo.constant dense<"0x8CC1F63E664774BEAD2F753FEE984CBEFFBBC63C75DDC53F098C0B3FAC5601BF243A3BBEDB5F0A3FF7B0F73FAD0B8ABE726779BED04B803F0AEF62BF5B5C95BE13EE613FD291143F1C6DBB3DF68B2B3F9C0035C02FBA823F47AB75BF5695D5BF4C8A8D3EE956333F8FB8E3BEABC789BFBF03D63C900D58BDA4EAB33F21563F3F9C77463EFF498E3FA27452BEC1076DBFD884153F3D21153F1CFC5BBE256648BF52A76A3EF79B1FC004AC303F9F94FB3E12C6D1BFD14D7B3D3CCF76BF3DD9413FCC2F02C0501C6ABF09A7353FF304943FC31C0AC014FFFEBE40F2A73E97F51BBF199ACB3F1E7A98BF3685B53E273286BF98F6B33FEB5DB1BCA097BEBE7CEDDBBF0F46D73F19B6403F8FE9403F18A6913FD3CDB23EAAA523BF9CDC4CBFE8D94CBF885EAF3FC5EDBABFACAB18BF157AA4BE8802663E194A133F69E29FBF1571DDBF44A590BB0F569B3F8FCE413F8FD35C3E3962A2BEBA22963ED52C79BE7334513FE7604BBF3276093EB2E0E2BD9A190B3FA407663EC4332340EBD3BF3F1595BF3F3B8702C0FB3DAEBEE8CD1BBF7160083F92DB11C0F955963FE992883F42AAA6BF28827ABF9C194DBF0B57313DAE16243F"> : tensor<4x3x3x3xf32>
    %cst_0 = stablehlo.constant dense<[-0.192240715, -0.81377244, 1.50494742, 0.65763992]> : tensor<4xf32>
    %cst_1 = stablehlo.constant dense<[0.805144429, 0.952467918, 0.984664916, 1.20149553]> : tensor<4xf32>
    %cst_2 = stablehlo.constant dense<[2.04788613, -0.197445437, 0.767502546, 0.155417815]> : tensor<4xf32>
    %cst_3 = stablehlo.constant dense<[1.75992632, 0.742157876, 1.36855042, -1.07767522]> : tensor<4xf32>
    %0 = stablehlo.transpose %cst, dims = [2, 3, 1, 0] : (tensor<4x3x3x3xf32>) -> tensor<3x3x3x4xf32>
    %1 = stablehlo.convolution(%arg0, %0) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<2x6x6x3xf32>, tensor<3x3x3x4xf32>) -> tensor<2x6x6x4xf32>
    %2 = stablehlo.broadcast_in_dim %cst_0, dims = [3] : (tensor<4xf32>) -> tensor<1x1x1x4xf32>
    %3 = stablehlo.broadcast_in_dim %2, dims = [0, 1, 2, 3] : (tensor<1x1x1x4xf32>) -> tensor<2x6x6x4xf32>
    %4 = stablehlo.subtract %1, %3 : tensor<2x6x6x4xf32>
    %cst_4 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %5 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %6 = stablehlo.add %cst_1, %5 : tensor<4xf32>
    %7 = stablehlo.rsqrt %6 : tensor<4xf32>
    %8 = stablehlo.multiply %7, %cst_2 : tensor<4xf32>
    %9 = stablehlo.broadcast_in_dim %8, dims = [3] : (tensor<4xf32>) -> tensor<1x1x1x4xf32>
    %10 = stablehlo.broadcast_in_dim %9, dims = [0, 1, 2, 3] : (tensor<1x1x1x4xf32>) -> tensor<2x6x6x4xf32>
    %11 = stablehlo.multiply %4, %10 : tensor<2x6x6x4xf32>
    %12 = stablehlo.broadcast_in_dim %cst_3, dims = [3] : (tensor<4xf32>) -> tensor<1x1x1x4xf32>
    %13 = stablehlo.broadcast_in_dim %12, dims = [0, 1, 2, 3] : (tensor<1x1x1x4xf32>) -> tensor<2x6x6x4xf32>
    %14 = stablehlo.add %11, %13 : tensor<2x6x6x4xf32>
    %15 = call @relu(%14) : (tensor<2x6x6x4xf32>) -> tensor<2x6x6x4xf32>
    return %15 : tensor<2x6x6x4xf32>
  }
  func.func private @relu(%arg0: tensor<2x6x6x4xf32>) -> tensor<2x6x6x4xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x6x6x4xf32>
    %1 = stablehlo.maximum %arg0, %0 : tensor<2x6x6x4xf32>
    return %1 : tensor<2x6x6x4xf32>
  }
}
