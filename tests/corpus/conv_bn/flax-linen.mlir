// op: onnx.Conv
// op: onnx.Relu
// source: jax 0.10.2, flax 0.12.8, jax.jit(..).lower(..) of flax.linen Conv, BatchNorm, relu
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2x6x6x3xf32>) -> (tensor<2x6x6x4xf32> {jax.result_info = "result"}) {
    %cst = stablehlo.constant dense<"0xC2CF263E6E4D4C3E0009933F89EAE63E0809D53F2A6E5C3FAC158B3F8FB6B23E3A84F83E3EDBD63FE2ED883FB53D9A3E232F643FA9356B3F25236D3F4B63223F73E7823FE2E1423EA67B7C3FE129A03E19ACDF3F366FEA3FE93B183F6356C73EA493E63FDDECC33E974C9C3FEFC0783F3960843F295CE23E8C5F303F23328D3EE8C8D23F25630D3F4FCF443FF20EFE3F65FBAB3EA7D5493FCCDB203E51D75D3F13BBDA3F8B95C03FD369353EEDB5A23F68326F3FCE61B33FBED7BA3E45F10F3FD875B33FC1D6FF3F89A3A53EFDC1013FAFC13A3F3384623E585B973E484B583EC234D13D40BC1240044D513E653EE13ECC08A03F1ECF983F7CCC1F3F6ED1483E3CFF5F3F2BA7463E5C3B843F6099B23FF5C5BF3F9853F83E781DE93DB834523FCC20E13F4023FB3FD4C23B3F84E54E3F66BB5B3FF3D8793FDAB79D3F54CD933F725D853F75FD5E3F1AC3C73FFAB2143FD9EDB63E9081703E53FA1B3F160E4D3FC6D3F33E37A3963E5D174C3F8717843FECB2323F58A3753FE382BA3EF216F33F65BD813ECB08813EB50CFD3EAE8B8A3F750D2A3F3C59333F4033A63E3C268B3F8A1E9B3FD2B6503F6CB0C63E9A30933F"> : tensor<3x3x3x4xf32>
    %cst_0 = stablehlo.constant dense<[0.922365844, 0.447584838, 0.264092624, 1.07180941]> : tensor<4xf32>
    %cst_1 = stablehlo.constant dense<[0.823140919, 0.798252642, 0.372470975, 0.551436186]> : tensor<4xf32>
    %cst_2 = stablehlo.constant dense<[2.37222958, 0.79963082, 1.33684194, 0.199988872]> : tensor<4xf32>
    %cst_3 = stablehlo.constant dense<[1.59351015, 0.932598888, 0.252093405, 0.498219699]> : tensor<4xf32>
    %0 = stablehlo.convolution(%arg0, %cst) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<2x6x6x3xf32>, tensor<3x3x3x4xf32>) -> tensor<2x6x6x4xf32>
    %1 = stablehlo.broadcast_in_dim %cst_0, dims = [3] : (tensor<4xf32>) -> tensor<1x1x1x4xf32>
    %2 = stablehlo.broadcast_in_dim %cst_1, dims = [3] : (tensor<4xf32>) -> tensor<1x1x1x4xf32>
    %3 = stablehlo.broadcast_in_dim %1, dims = [0, 1, 2, 3] : (tensor<1x1x1x4xf32>) -> tensor<2x6x6x4xf32>
    %4 = stablehlo.subtract %0, %3 : tensor<2x6x6x4xf32>
    %cst_4 = stablehlo.constant dense<9.99999974E-6> : tensor<f32>
    %5 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<1x1x1x4xf32>
    %6 = stablehlo.add %2, %5 : tensor<1x1x1x4xf32>
    %7 = stablehlo.rsqrt %6 : tensor<1x1x1x4xf32>
    %8 = stablehlo.reshape %cst_2 : (tensor<4xf32>) -> tensor<1x1x1x4xf32>
    %9 = stablehlo.multiply %7, %8 : tensor<1x1x1x4xf32>
    %10 = stablehlo.broadcast_in_dim %9, dims = [0, 1, 2, 3] : (tensor<1x1x1x4xf32>) -> tensor<2x6x6x4xf32>
    %11 = stablehlo.multiply %4, %10 : tensor<2x6x6x4xf32>
    %12 = stablehlo.reshape %cst_3 : (tensor<4xf32>) -> tensor<1x1x1x4xf32>
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
