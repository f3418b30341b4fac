// op: onnx.LayerNormalization axis=-1 epsilon=1e-06
// source: torch 2.13.0, torch_mlir 20261001 fx.export_and_import(.., output_type='stablehlo') of mean, var(unbiased=False), rsqrt
module {
  func.func @main(%arg0: tensor<2x3x8xf32>) -> tensor<2x3x8xf32> {
    %cst = stablehlo.constant dense_resource<torch_tensor_8_torch.float32_1> : tensor<8xf32>
    %cst_0 = stablehlo.constant dense_resource<torch_tensor_8_torch.float32> : tensor<8xf32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f64>
    %cst_3 = arith.constant dense<8> : tensor<1xi64>
    %cst_4 = arith.constant dense<9.9999999999999995E-7> : tensor<1xf64>
    %0 = stablehlo.reduce(%arg0 init: %cst_1) applies stablehlo.add across dimensions = [2] : (tensor<2x3x8xf32>, tensor<f32>) -> tensor<2x3xf32>
    %1 = stablehlo.reshape %0 : (tensor<2x3xf32>) -> tensor<2x3x1xf32>
    %2 = stablehlo.convert %cst_3 : (tensor<1xi64>) -> tensor<1xf32>
    %3 = stablehlo.reshape %2 : (tensor<1xf32>) -> tensor<f32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [] : (tensor<f32>) -> tensor<2x3x1xf32>
    %5 = stablehlo.divide %1, %4 : tensor<2x3x1xf32>
    %6 = stablehlo.broadcast_in_dim %5, dims = [0, 1, 2] : (tensor<2x3x1xf32>) -> tensor<2x3x8xf32>
    %7 = stablehlo.subtract %arg0, %6 : tensor<2x3x8xf32>
    %8 = stablehlo.convert %arg0 : (tensor<2x3x8xf32>) -> tensor<2x3x8xf64>
    %9 = stablehlo.reduce(%8 init: %cst_2) applies stablehlo.add across dimensions = [2] : (tensor<2x3x8xf64>, tensor<f64>) -> tensor<2x3xf64>
    %10 = stablehlo.reshape %9 : (tensor<2x3xf64>) -> tensor<2x3x1xf64>
    %11 = stablehlo.convert %cst_3 : (tensor<1xi64>) -> tensor<1xf64>
    %12 = stablehlo.reshape %11 : (tensor<1xf64>) -> tensor<f64>
    %13 = stablehlo.broadcast_in_dim %12, dims = [] : (tensor<f64>) -> tensor<2x3x1xf64>
    %14 = stablehlo.divide %10, %13 : tensor<2x3x1xf64>
    %15 = stablehlo.broadcast_in_dim %14, dims = [0, 1, 2] : (tensor<2x3x1xf64>) -> tensor<2x3x8xf64>
    %16 = stablehlo.subtract %8, %15 : tensor<2x3x8xf64>
    %17 = stablehlo.multiply %16, %16 : tensor<2x3x8xf64>
    %18 = stablehlo.reduce(%17 init: %cst_2) applies stablehlo.add across dimensions = [2] : (tensor<2x3x8xf64>, tensor<f64>) -> tensor<2x3xf64>
    %19 = stablehlo.reshape %18 : (tensor<2x3xf64>) -> tensor<2x3x1xf64>
    %20 = stablehlo.divide %19, %13 : tensor<2x3x1xf64>
    %21 = stablehlo.convert %20 : (tensor<2x3x1xf64>) -> tensor<2x3x1xf32>
    %22 = stablehlo.convert %cst_4 : (tensor<1xf64>) -> tensor<1xf32>
    %23 = stablehlo.reshape %22 : (tensor<1xf32>) -> tensor<f32>
    %24 = stablehlo.broadcast_in_dim %23, dims = [] : (tensor<f32>) -> tensor<2x3x1xf32>
    %25 = stablehlo.add %21, %24 : tensor<2x3x1xf32>
    %26 = stablehlo.rsqrt %25 : tensor<2x3x1xf32>
    %27 = stablehlo.broadcast_in_dim %26, dims = [0, 1, 2] : (tensor<2x3x1xf32>) -> tensor<2x3x8xf32>
    %28 = stablehlo.multiply %7, %27 : tensor<2x3x8xf32>
    %29 = stablehlo.broadcast_in_dim %cst_0, dims = [2] : (tensor<8xf32>) -> tensor<2x3x8xf32>
    %30 = stablehlo.multiply %28, %29 : tensor<2x3x8xf32>
    %31 = stablehlo.broadcast_in_dim %cst, dims = [2] : (tensor<8xf32>) -> tensor<2x3x8xf32>
    %32 = stablehlo.add %30, %31 : tensor<2x3x8xf32>
    return %32 : tensor<2x3x8xf32>
  }
}

{-#
  dialect_resources: {
    builtin: {
      torch_tensor_8_torch.float32_1: "0x0400000078D57BBFD3EA9FBF3DCA40BE5FBC903EC6AA053E4717A93E525A9EBD8B236CBF",
      torch_tensor_8_torch.float32: "0x040000000CD3A33F207B7EBF0751E83F44541ABF40B2CE3FBC10F73F1D52D8BE9F5DAABD"
    }
  }
#-}
