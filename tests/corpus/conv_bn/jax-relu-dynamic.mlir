// op: onnx.Conv
// op: onnx.Relu
// source: jax 0.10.2, jax.export with a symbolic batch of lax convolution, inference normalization, relu
module @jit__conv_relu attributes {jax.uses_shape_polymorphism = true, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<?x3x6x6xf32> loc(unknown)) -> (tensor<?x4x6x6xf32> {jax.result_info = "result"}) {
    %c = stablehlo.constant dense<1> : tensor<i32>
    %0 = stablehlo.get_dimension_size %arg0, dim = 0 : (tensor<?x3x6x6xf32>) -> tensor<i32>
    %1 = stablehlo.compare GE, %0, %c, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.custom_call @shape_assertion(%1, %0) {api_version = 2 : i32, error_message = "Input shapes do not match the polymorphic shapes specification. Expected value >= 1 for dimension variable 'b'. Using the following polymorphic shapes specifications: args[0].shape = (b, 3, 6, 6). Obtained dimension variables: 'b' = {0} from specification 'b' for dimension args[0].shape[0] (= {0}), . Please see https://docs.jax.dev/en/latest/export/shape_poly.html#shape-assertion-errors for more details.", has_side_effect = true} : (tensor<i1>, tensor<i32>) -> ()
    %2 = call @_wrapped_jax_export_main(%0, %arg0) : (tensor<i32>, tensor<?x3x6x6xf32>) -> tensor<?x4x6x6xf32>
    return %2 : tensor<?x4x6x6xf32>
  }
  func.func private @_wrapped_jax_export_main(%arg0: tensor<i32> {jax.global_constant = "b"} loc(unknown), %arg1: tensor<?x3x6x6xf32> loc("x")) -> (tensor<?x4x6x6xf32> {jax.result_info = "result"}) {
    %c = stablehlo.constant dense<6> : tensor<1xi32>
    %c_0 = stablehlo.constant dense<4> : tensor<1xi32>
    %cst = stablehlo.constant dense<9.99999974E-6> : tensor<f32>
    %cst_1 = stablehlo.constant dense<"0x8CC1F63E664774BEAD2F753FEE984CBEFFBBC63C75DDC53F098C0B3FAC5601BF243A3BBEDB5F0A3FF7B0F73FAD0B8ABE726779BED04B803F0AEF62BF5B5C95BE13EE613FD291143F1C6DBB3DF68B2B3F9C0035C02FBA823F47AB75BF5695D5BF4C8A8D3EE956333F8FB8E3BEABC789BFBF03D63C900D58BDA4EAB33F21563F3F9C77463EFF498E3FA27452BEC1076DBFD884153F3D21153F1CFC5BBE256648BF52A76A3EF79B1FC004AC303F9F94FB3E12C6D1BFD14D7B3D3CCF76BF3DD9413FCC2F02C0501C6ABF09A7353FF304943FC31C0AC014FFFEBE40F2A73E97F51BBF199ACB3F1E7A98BF3685B53E273286BF98F6B33FEB5DB1BCA097BEBE7CEDDBBF0F46D73F19B6403F8FE9403F18A6913FD3CDB23EAAA523BF9CDC4CBFE8D94CBF885EAF3FC5EDBABFACAB18BF157AA4BE8802663E194A133F69E29FBF1571DDBF44A590BB0F569B3F8FCE413F8FD35C3E3962A2BEBA22963ED52C79BE7334513FE7604BBF3276093EB2E0E2BD9A190B3FA407663EC4332340EBD3BF3F1595BF3F3B8702C0FB3DAEBEE8CD1BBF7160083F92DB11C0F955963FE992883F42AAA6BF28827ABF9C194DBF0B57313DAE16243F"> : tensor<4x3x3x3xf32>
    %cst_2 = stablehlo.constant dense<[0.805144429, 0.952467918, 0.984664916, 1.20149553]> : tensor<4xf32>
    %cst_3 = stablehlo.constant dense<[2.04788613, -0.197445437, 0.767502546, 0.155417815]> : tensor<4xf32>
    %cst_4 = stablehlo.constant dense<[-0.192240715, -0.81377244, 1.50494742, 0.65763992]> : tensor<4xf32>
    %cst_5 = stablehlo.constant dense<[1.75992632, 0.742157876, 1.36855042, -1.07767522]> : tensor<4xf32>
    %0 = stablehlo.convolution(%arg1, %cst_1) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<?x3x6x6xf32>, tensor<4x3x3x3xf32>) -> tensor<?x4x6x6xf32>
    %1 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %2 = stablehlo.add %cst_2, %1 : tensor<4xf32>
    %3 = stablehlo.rsqrt %2 : tensor<4xf32>
    %4 = stablehlo.multiply %cst_3, %3 : tensor<4xf32>
    %5 = stablehlo.broadcast_in_dim %4, dims = [0] : (tensor<4xf32>) -> tensor<4x1x1xf32>
    %6 = stablehlo.broadcast_in_dim %cst_4, dims = [0] : (tensor<4xf32>) -> tensor<4x1x1xf32>
    %7 = stablehlo.broadcast_in_dim %6, dims = [1, 2, 3] : (tensor<4x1x1xf32>) -> tensor<1x4x1x1xf32>
    %8 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %9 = stablehlo.concatenate %8, %c_0, %c, %c, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %10 = stablehlo.dynamic_broadcast_in_dim %7, %9, dims = [0, 1, 2, 3] : (tensor<1x4x1x1xf32>, tensor<4xi32>) -> tensor<?x4x6x6xf32>
    %11 = stablehlo.subtract %0, %10 : tensor<?x4x6x6xf32>
    %12 = stablehlo.broadcast_in_dim %5, dims = [1, 2, 3] : (tensor<4x1x1xf32>) -> tensor<1x4x1x1xf32>
    %13 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %14 = stablehlo.concatenate %13, %c_0, %c, %c, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %15 = stablehlo.dynamic_broadcast_in_dim %12, %14, dims = [0, 1, 2, 3] : (tensor<1x4x1x1xf32>, tensor<4xi32>) -> tensor<?x4x6x6xf32>
    %16 = stablehlo.multiply %11, %15 : tensor<?x4x6x6xf32>
    %17 = stablehlo.broadcast_in_dim %cst_5, dims = [0] : (tensor<4xf32>) -> tensor<4x1x1xf32>
    %18 = stablehlo.broadcast_in_dim %17, dims = [1, 2, 3] : (tensor<4x1x1xf32>) -> tensor<1x4x1x1xf32>
    %19 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %20 = stablehlo.concatenate %19, %c_0, %c, %c, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %21 = stablehlo.dynamic_broadcast_in_dim %18, %20, dims = [0, 1, 2, 3] : (tensor<1x4x1x1xf32>, tensor<4xi32>) -> tensor<?x4x6x6xf32>
    %22 = stablehlo.add %16, %21 : tensor<?x4x6x6xf32>
    %23 = call @relu(%arg0, %22) : (tensor<i32>, tensor<?x4x6x6xf32>) -> tensor<?x4x6x6xf32>
    return %23 : tensor<?x4x6x6xf32>
  }
  func.func private @relu(%arg0: tensor<i32> {jax.global_constant = "b"} loc(unknown), %arg1: tensor<?x4x6x6xf32> loc(unknown)) -> tensor<?x4x6x6xf32> {
    %c = stablehlo.constant dense<6> : tensor<1xi32>
    %c_0 = stablehlo.constant dense<4> : tensor<1xi32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %1 = stablehlo.concatenate %0, %c_0, %c, %c, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %2 = stablehlo.dynamic_broadcast_in_dim %cst, %1, dims = [] : (tensor<f32>, tensor<4xi32>) -> tensor<?x4x6x6xf32>
    %3 = stablehlo.maximum %arg1, %2 : tensor<?x4x6x6xf32>
    return %3 : tensor<?x4x6x6xf32>
  }
}
