// op: onnx.Swish alpha=1.0
// source: torch 2.13.0, torch_mlir 20261001 fx.export_and_import(.., output_type='stablehlo') of nn.SiLU()
module {
  func.func @main(%arg0: tensor<?x?x8xf32>) -> tensor<?x?x8xf32> {
    %0 = stablehlo.logistic %arg0 : tensor<?x?x8xf32>
    %1 = shape.shape_of %arg0 : tensor<?x?x8xf32> -> tensor<3xindex>
    %2 = shape.shape_of %0 : tensor<?x?x8xf32> -> tensor<3xindex>
    %3 = shape.cstr_broadcastable %1, %2 : tensor<3xindex>, tensor<3xindex>
    %4 = shape.assuming %3 -> (tensor<?x?x8xf32>) {
      %5 = shape.broadcast %1, %2 : tensor<3xindex>, tensor<3xindex> -> tensor<3xindex>
      %6 = stablehlo.dynamic_broadcast_in_dim %arg0, %5, dims = [0, 1, 2] : (tensor<?x?x8xf32>, tensor<3xindex>) -> tensor<?x?x8xf32>
      %7 = stablehlo.dynamic_broadcast_in_dim %0, %5, dims = [0, 1, 2] : (tensor<?x?x8xf32>, tensor<3xindex>) -> tensor<?x?x8xf32>
      %8 = stablehlo.multiply %6, %7 : tensor<?x?x8xf32>
      shape.assuming_yield %8 : tensor<?x?x8xf32>
    }
    return %4 : tensor<?x?x8xf32>
  }
}
