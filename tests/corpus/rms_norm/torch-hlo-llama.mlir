// op: onnx.RMSNormalization axis=-1 epsilon=1e-06
// source: torch 2.13.0, torch_mlir 20261001 fx.export_and_import(.., output_type='stablehlo') of Llama, T5, Mistral, Qwen: pow(2), mean, rsqrt, weight last
module {
  func.func @main(%arg0: tensor<?x?x8xf32>) -> tensor<?x?x8xf32> {
    %cst = stablehlo.constant dense_resource<torch_tensor_8_torch.float32> : tensor<8xf32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %cst_1 = arith.constant dense<2> : tensor<1xi64>
    %cst_2 = arith.constant dense<8> : tensor<1xi64>
    %cst_3 = arith.constant dense<9.9999999999999995E-7> : tensor<1xf64>
    %0 = shape.const_shape [8] : tensor<1xindex>
    %1 = stablehlo.convert %cst_1 : (tensor<1xi64>) -> tensor<1xf32>
    %2 = stablehlo.reshape %1 : (tensor<1xf32>) -> tensor<f32>
    %3 = shape.shape_of %arg0 : tensor<?x?x8xf32> -> tensor<3xindex>
    %4 = stablehlo.dynamic_broadcast_in_dim %arg0, %3, dims = [0, 1, 2] : (tensor<?x?x8xf32>, tensor<3xindex>) -> tensor<?x?x8xf32>
    %5 = stablehlo.dynamic_broadcast_in_dim %2, %3, dims = [] : (tensor<f32>, tensor<3xindex>) -> tensor<?x?x8xf32>
    %6 = stablehlo.power %4, %5 : tensor<?x?x8xf32>
    %7 = stablehlo.reduce(%6 init: %cst_0) applies stablehlo.add across dimensions = [2] : (tensor<?x?x8xf32>, tensor<f32>) -> tensor<?x?xf32>
    %dim = tensor.dim %6, %c0 : tensor<?x?x8xf32>
    %dim_4 = tensor.dim %6, %c1 : tensor<?x?x8xf32>
    %from_elements = tensor.from_elements %dim, %dim_4, %c1 : tensor<3xindex>
    %8 = stablehlo.dynamic_reshape %7, %from_elements : (tensor<?x?xf32>, tensor<3xindex>) -> tensor<?x?x1xf32>
    %9 = stablehlo.convert %cst_2 : (tensor<1xi64>) -> tensor<1xf32>
    %10 = stablehlo.reshape %9 : (tensor<1xf32>) -> tensor<f32>
    %11 = shape.shape_of %8 : tensor<?x?x1xf32> -> tensor<3xindex>
    %12 = stablehlo.dynamic_broadcast_in_dim %8, %11, dims = [0, 1, 2] : (tensor<?x?x1xf32>, tensor<3xindex>) -> tensor<?x?x1xf32>
    %13 = stablehlo.dynamic_broadcast_in_dim %10, %11, dims = [] : (tensor<f32>, tensor<3xindex>) -> tensor<?x?x1xf32>
    %14 = stablehlo.divide %12, %13 : tensor<?x?x1xf32>
    %15 = stablehlo.convert %cst_3 : (tensor<1xf64>) -> tensor<1xf32>
    %16 = stablehlo.reshape %15 : (tensor<1xf32>) -> tensor<f32>
    %17 = shape.shape_of %14 : tensor<?x?x1xf32> -> tensor<3xindex>
    %18 = stablehlo.dynamic_broadcast_in_dim %14, %17, dims = [0, 1, 2] : (tensor<?x?x1xf32>, tensor<3xindex>) -> tensor<?x?x1xf32>
    %19 = stablehlo.dynamic_broadcast_in_dim %16, %17, dims = [] : (tensor<f32>, tensor<3xindex>) -> tensor<?x?x1xf32>
    %20 = stablehlo.add %18, %19 : tensor<?x?x1xf32>
    %21 = stablehlo.rsqrt %20 : tensor<?x?x1xf32>
    %22 = shape.shape_of %21 : tensor<?x?x1xf32> -> tensor<3xindex>
    %23 = shape.cstr_broadcastable %3, %22 : tensor<3xindex>, tensor<3xindex>
    %24 = shape.assuming %23 -> (tensor<?x?x8xf32>) {
      %30 = shape.broadcast %3, %22 : tensor<3xindex>, tensor<3xindex> -> tensor<3xindex>
      %31 = stablehlo.dynamic_broadcast_in_dim %arg0, %30, dims = [0, 1, 2] : (tensor<?x?x8xf32>, tensor<3xindex>) -> tensor<?x?x8xf32>
      %32 = stablehlo.dynamic_broadcast_in_dim %21, %30, dims = [0, 1, 2] : (tensor<?x?x1xf32>, tensor<3xindex>) -> tensor<?x?x8xf32>
      %33 = stablehlo.multiply %31, %32 : tensor<?x?x8xf32>
      shape.assuming_yield %33 : tensor<?x?x8xf32>
    }
    %25 = shape.shape_of %24 : tensor<?x?x8xf32> -> tensor<3xindex>
    %26 = shape.broadcast %25, %0 : tensor<3xindex>, tensor<1xindex> -> tensor<3xindex>
    %27 = stablehlo.dynamic_broadcast_in_dim %24, %26, dims = [0, 1, 2] : (tensor<?x?x8xf32>, tensor<3xindex>) -> tensor<?x?x8xf32>
    %28 = stablehlo.dynamic_broadcast_in_dim %cst, %26, dims = [2] : (tensor<8xf32>, tensor<3xindex>) -> tensor<?x?x8xf32>
    %29 = stablehlo.multiply %27, %28 : tensor<?x?x8xf32>
    return %29 : tensor<?x?x8xf32>
  }
}

{-#
  dialect_resources: {
    builtin: {
      torch_tensor_8_torch.float32: "0x040000000CD3A33F207B7EBF0751E83F44541ABF40B2CE3FBC10F73F1D52D8BE9F5DAABD"
    }
  }
#-}
