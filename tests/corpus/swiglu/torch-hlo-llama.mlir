// op: kernel.swiglu
// beside: stablehlo.dot_general
// source: torch 2.13.0, torch_mlir 20261001 fx.export_and_import(.., output_type='stablehlo') of Llama, Mistral, Qwen: down(silu(gate(x)) * up(x))
module {
  func.func @main(%arg0: tensor<?x?x8xf32>) -> tensor<?x?x8xf32> {
    %cst = stablehlo.constant dense_resource<torch_tensor_8_12_torch.float32> : tensor<8x12xf32>
    %cst_0 = stablehlo.constant dense_resource<torch_tensor_12_8_torch.float32_1> : tensor<12x8xf32>
    %c12_i64 = arith.constant 12 : i64
    %c8_i64 = arith.constant 8 : i64
    %cst_1 = stablehlo.constant dense_resource<torch_tensor_12_8_torch.float32> : tensor<12x8xf32>
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %dim = tensor.dim %arg0, %c0 : tensor<?x?x8xf32>
    %0 = arith.index_cast %dim : index to i64
    %dim_2 = tensor.dim %arg0, %c1 : tensor<?x?x8xf32>
    %1 = arith.index_cast %dim_2 : index to i64
    %2 = stablehlo.transpose %cst_1, dims = [1, 0] : (tensor<12x8xf32>) -> tensor<8x12xf32>
    %3 = arith.muli %0, %1 : i64
    %from_elements = tensor.from_elements %3, %c8_i64 : tensor<2xi64>
    %4 = stablehlo.dynamic_reshape %arg0, %from_elements : (tensor<?x?x8xf32>, tensor<2xi64>) -> tensor<?x8xf32>
    %5 = stablehlo.dot_general %4, %2, contracting_dims = [1] x [0] : (tensor<?x8xf32>, tensor<8x12xf32>) -> tensor<?x12xf32>
    %from_elements_3 = tensor.from_elements %0, %1, %c12_i64 : tensor<3xi64>
    %6 = stablehlo.dynamic_reshape %5, %from_elements_3 : (tensor<?x12xf32>, tensor<3xi64>) -> tensor<?x?x12xf32>
    %7 = stablehlo.logistic %6 : tensor<?x?x12xf32>
    %8 = shape.shape_of %6 : tensor<?x?x12xf32> -> tensor<3xindex>
    %9 = shape.shape_of %7 : tensor<?x?x12xf32> -> tensor<3xindex>
    %10 = shape.cstr_broadcastable %8, %9 : tensor<3xindex>, tensor<3xindex>
    %11 = shape.assuming %10 -> (tensor<?x?x12xf32>) {
      %23 = shape.broadcast %8, %9 : tensor<3xindex>, tensor<3xindex> -> tensor<3xindex>
      %24 = stablehlo.dynamic_broadcast_in_dim %6, %23, dims = [0, 1, 2] : (tensor<?x?x12xf32>, tensor<3xindex>) -> tensor<?x?x12xf32>
      %25 = stablehlo.dynamic_broadcast_in_dim %7, %23, dims = [0, 1, 2] : (tensor<?x?x12xf32>, tensor<3xindex>) -> tensor<?x?x12xf32>
      %26 = stablehlo.multiply %24, %25 : tensor<?x?x12xf32>
      shape.assuming_yield %26 : tensor<?x?x12xf32>
    }
    %12 = stablehlo.transpose %cst_0, dims = [1, 0] : (tensor<12x8xf32>) -> tensor<8x12xf32>
    %13 = stablehlo.dot_general %4, %12, contracting_dims = [1] x [0] : (tensor<?x8xf32>, tensor<8x12xf32>) -> tensor<?x12xf32>
    %14 = stablehlo.dynamic_reshape %13, %from_elements_3 : (tensor<?x12xf32>, tensor<3xi64>) -> tensor<?x?x12xf32>
    %15 = shape.shape_of %11 : tensor<?x?x12xf32> -> tensor<3xindex>
    %16 = shape.shape_of %14 : tensor<?x?x12xf32> -> tensor<3xindex>
    %17 = shape.cstr_broadcastable %15, %16 : tensor<3xindex>, tensor<3xindex>
    %18 = shape.assuming %17 -> (tensor<?x?x12xf32>) {
      %23 = shape.broadcast %15, %16 : tensor<3xindex>, tensor<3xindex> -> tensor<3xindex>
      %24 = stablehlo.dynamic_broadcast_in_dim %11, %23, dims = [0, 1, 2] : (tensor<?x?x12xf32>, tensor<3xindex>) -> tensor<?x?x12xf32>
      %25 = stablehlo.dynamic_broadcast_in_dim %14, %23, dims = [0, 1, 2] : (tensor<?x?x12xf32>, tensor<3xindex>) -> tensor<?x?x12xf32>
      %26 = stablehlo.multiply %24, %25 : tensor<?x?x12xf32>
      shape.assuming_yield %26 : tensor<?x?x12xf32>
    }
    %19 = stablehlo.transpose %cst, dims = [1, 0] : (tensor<8x12xf32>) -> tensor<12x8xf32>
    %from_elements_4 = tensor.from_elements %3, %c12_i64 : tensor<2xi64>
    %20 = stablehlo.dynamic_reshape %18, %from_elements_4 : (tensor<?x?x12xf32>, tensor<2xi64>) -> tensor<?x12xf32>
    %21 = stablehlo.dot_general %20, %19, contracting_dims = [1] x [0] : (tensor<?x12xf32>, tensor<12x8xf32>) -> tensor<?x8xf32>
    %from_elements_5 = tensor.from_elements %0, %1, %c8_i64 : tensor<3xi64>
    %22 = stablehlo.dynamic_reshape %21, %from_elements_5 : (tensor<?x8xf32>, tensor<3xi64>) -> tensor<?x?x8xf32>
    return %22 : tensor<?x?x8xf32>
  }
}

{-#
  dialect_resources: {
    builtin: {
      torch_tensor_8_12_torch.float32: "0x0400000067A7A0BD90C2C4BDA32846BEA4D263BE920971BDD1E86E3E494213BEC12E86BE5C1487BDCCED853E6A988E3D6D7B95BCCA00A9BD8CC6813E04068EBE7680273EB785A03D2C4E393EE9542BBE64D8C1BDF774F8BD586A8F3E09AE18BD8EEF8CBED738143EA4FA633DC4CC213D941F45BEE2748ABE2AED853EB8A15EBE9AAF60BDBEB658BDACD1283EAE3479BEBA3029BE1A691EBE9C0C15BE33D6343E36F2343E5818063EEE4B713EDC9844BE3B4096BACB376FBE4B2714BAD8A57CBE835B8EBE58313A3E23D002BEBD6BBCBC5943AEBD45756ABE8AECEBBC2AAB2E3DE5316C3E507EFBBDCBD28C3E6ADE08BEF7363D3E8D19813E2E85F43CD60BCBBDFDA95A3ECF73ACBD1919FDBD051ACEBDE81771BEF74DECBCF87B70BEC896413EB3598EBE449C5BBEE0676A3DD3DE363E095D8D3E67926FBEC8D4723E78204F3EC9EB41BE637BF63D714EA6BD6D2DAA3D6FD882BE63BA29BEB2673BBE089766BD350F2CBC9D8DCBBB2BA02EBE2D00123E232A163E9BA781BE120089BEDC147EBDCA75A43D",
      torch_tensor_12_8_torch.float32_1: "0x040000005B0DA8BE73DC7DBE0FD99C3C3A5E9BBCB57A953E5A3F463C2970BABD77DFB0BE2F6FA6BE2464163EFB3BA13EECC7AFBB9CCBA1BEBC89003E9F6F933ED29D6FBE5CA3BEBD2197F33CC7774EBE4ED9A7BE137E1E3E6F8A94BEB7BFB5BD883C40BE3B22883E41CE8B3DE9E4273E512975BEF68B983EE007013D99CC48BED077BDBCFA2B80BE07B185BC652A4A3E88C022BEBE02993E5714DD3D0D687DBDAB2FE23DAF6485BD8549A8BD58866DBEFFF3523E5254593E60EDF73D851E563EB3D8B43E1C73AA3EC3B0AEBECD1AA53DD7FCF7BC74DDF53D386D8CBDC518CA3D1E8EA6BE1979253E45E9AD3EB53782BDD0FC8FBEEF7996BEEFE78ABDBE3EAFBB4683213D62B3353D6B59883EC35C83BD5FA2CE3D286940BE490AB23EFBED0A3E9ED648BD29FD6D3E2128003EFA5A783D02C0D5BD3C18363DDA11CF3CC98553BED7C7A53BF41D9E3D777056BEDF56813DCA57F0BDF19996BE28D258BEA8AA8FBEDD92A73D61755D3ED991A43E727DB13EF9980E3EBF12313E76F676BD1BA5953E0A6A0ABE",
      torch_tensor_12_8_torch.float32: "0x04000000B8812B3E3508A9BEE2EF93BE8599903EA6B5B23EF91CACBC6B088FBEC0451E3C6D6D28BE0B2E32BA6F34313EED43203E5ED129BD936F1F3D390CC53D20E38DBE9E7DF5BD3ECD623C25954EBE5E1D1EBE8F33F33D0D5D503E5054A23BD7D30CBE7C39463E8B7546BE2FF5A9BDADC4AA3EEA5A853DE013CC3CE718F43DB691B0BD61E09A3E71A493BE672DC7BDB9567ABD17F814BEC635B3BDE85F603E01A6463E820BA13CA9B39D3E209E7FBE1BE257BE3293233E28AD9BBCFBF5A4BEBF967ABEDA655CBE00C98B3E6FF4233EC7098C3E6FC486BED67CB0BE1A6A6DBE00ED1A3DB2028FBDB42564BE05C7833E2681E9BD206551BE973B273E0318C3BDF9CD663E6E90AC3DD2E80E3CFE00983D6C0588BEF9B541BEDD272ABE7BDB4CBE7665803D82A8903DD06C16BE9E026C3EED6F49BE402F923DE1C1CEBD6A059DBE9EBD6BBE8AE2133EB0440F3E35DE5FBE93CAE1BDA339A9BE839C423E90869C3E79CAEC3DD00260BEF8F53E3EB139963EB02294BD74636DBDDA9DFA3D784D3A3DE150EFBD"
    }
  }
#-}
