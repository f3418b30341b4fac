// op: onnx.Gelu approximate=tanh
// source: torch 2.13.0, torch_mlir 20261001 fx.export_and_import(.., output_type='stablehlo') of nn.GELU('tanh')
module {
  func.func @main(%arg0: tensor<?x?x8xf32>) -> tensor<?x?x8xf32> {
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %cst_0 = stablehlo.constant dense<3.000000e+00> : tensor<f32>
    %cst_1 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %cst_2 = stablehlo.constant dense<0.636619746> : tensor<f32>
    %cst_3 = stablehlo.constant dense<4.471500e-02> : tensor<f32>
    %0 = shape.shape_of %arg0 : tensor<?x?x8xf32> -> tensor<3xindex>
    %1 = stablehlo.dynamic_broadcast_in_dim %cst, %0, dims = [] : (tensor<f32>, tensor<3xindex>) -> tensor<?x?x8xf32>
    %2 = stablehlo.dynamic_broadcast_in_dim %cst_0, %0, dims = [] : (tensor<f32>, tensor<3xindex>) -> tensor<?x?x8xf32>
    %3 = stablehlo.dynamic_broadcast_in_dim %cst_1, %0, dims = [] : (tensor<f32>, tensor<3xindex>) -> tensor<?x?x8xf32>
    %4 = stablehlo.dynamic_broadcast_in_dim %cst_2, %0, dims = [] : (tensor<f32>, tensor<3xindex>) -> tensor<?x?x8xf32>
    %5 = stablehlo.dynamic_broadcast_in_dim %cst_3, %0, dims = [] : (tensor<f32>, tensor<3xindex>) -> tensor<?x?x8xf32>
    %6 = stablehlo.multiply %arg0, %3 : tensor<?x?x8xf32>
    %7 = stablehlo.sqrt %4 : tensor<?x?x8xf32>
    %8 = stablehlo.power %arg0, %2 : tensor<?x?x8xf32>
    %9 = stablehlo.multiply %5, %8 : tensor<?x?x8xf32>
    %10 = stablehlo.add %arg0, %9 : tensor<?x?x8xf32>
    %11 = stablehlo.multiply %7, %10 : tensor<?x?x8xf32>
    %12 = stablehlo.tanh %11 : tensor<?x?x8xf32>
    %13 = stablehlo.add %12, %1 : tensor<?x?x8xf32>
    %14 = stablehlo.multiply %13, %6 : tensor<?x?x8xf32>
    return %14 : tensor<?x?x8xf32>
  }
}
