// op: onnx.Softmax axis=-1
// source: torch 2.13.0, torch_mlir 20261001 fx.export_and_import(.., output_type='stablehlo') of exp(x - max) / sum
module {
  func.func @main(%arg0: tensor<?x?x8xf32>) -> tensor<?x?x8xf32> {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %dim = tensor.dim %arg0, %c0 : tensor<?x?x8xf32>
    %dim_1 = tensor.dim %arg0, %c1 : tensor<?x?x8xf32>
    %0 = stablehlo.reduce(%arg0 init: %cst) applies stablehlo.maximum across dimensions = [2] : (tensor<?x?x8xf32>, tensor<f32>) -> tensor<?x?xf32>
    %from_elements = tensor.from_elements %dim, %dim_1, %c1 : tensor<3xindex>
    %1 = stablehlo.dynamic_reshape %0, %from_elements : (tensor<?x?xf32>, tensor<3xindex>) -> tensor<?x?x1xf32>
    %2 = shape.shape_of %arg0 : tensor<?x?x8xf32> -> tensor<3xindex>
    %3 = shape.shape_of %1 : tensor<?x?x1xf32> -> tensor<3xindex>
    %4 = shape.cstr_broadcastable %2, %3 : tensor<3xindex>, tensor<3xindex>
    %5 = shape.assuming %4 -> (tensor<?x?x8xf32>) {
      %13 = shape.broadcast %2, %3 : tensor<3xindex>, tensor<3xindex> -> tensor<3xindex>
      %14 = stablehlo.dynamic_broadcast_in_dim %arg0, %13, dims = [0, 1, 2] : (tensor<?x?x8xf32>, tensor<3xindex>) -> tensor<?x?x8xf32>
      %15 = stablehlo.dynamic_broadcast_in_dim %1, %13, dims = [0, 1, 2] : (tensor<?x?x1xf32>, tensor<3xindex>) -> tensor<?x?x8xf32>
      %16 = stablehlo.subtract %14, %15 : tensor<?x?x8xf32>
      shape.assuming_yield %16 : tensor<?x?x8xf32>
    }
    %6 = stablehlo.exponential %5 : tensor<?x?x8xf32>
    %7 = stablehlo.reduce(%6 init: %cst_0) applies stablehlo.add across dimensions = [2] : (tensor<?x?x8xf32>, tensor<f32>) -> tensor<?x?xf32>
    %dim_2 = tensor.dim %6, %c0 : tensor<?x?x8xf32>
    %dim_3 = tensor.dim %6, %c1 : tensor<?x?x8xf32>
    %from_elements_4 = tensor.from_elements %dim_2, %dim_3, %c1 : tensor<3xindex>
    %8 = stablehlo.dynamic_reshape %7, %from_elements_4 : (tensor<?x?xf32>, tensor<3xindex>) -> tensor<?x?x1xf32>
    %9 = shape.shape_of %6 : tensor<?x?x8xf32> -> tensor<3xindex>
    %10 = shape.shape_of %8 : tensor<?x?x1xf32> -> tensor<3xindex>
    %11 = shape.cstr_broadcastable %9, %10 : tensor<3xindex>, tensor<3xindex>
    %12 = shape.assuming %11 -> (tensor<?x?x8xf32>) {
      %13 = shape.broadcast %9, %10 : tensor<3xindex>, tensor<3xindex> -> tensor<3xindex>
      %14 = stablehlo.dynamic_broadcast_in_dim %6, %13, dims = [0, 1, 2] : (tensor<?x?x8xf32>, tensor<3xindex>) -> tensor<?x?x8xf32>
      %15 = stablehlo.dynamic_broadcast_in_dim %8, %13, dims = [0, 1, 2] : (tensor<?x?x1xf32>, tensor<3xindex>) -> tensor<?x?x8xf32>
      %16 = stablehlo.divide %14, %15 : tensor<?x?x8xf32>
      shape.assuming_yield %16 : tensor<?x?x8xf32>
    }
    return %12 : tensor<?x?x8xf32>
  }
}
