// op: onnx.Gelu approximate=none
// source: torch 2.13.0, torch_mlir 20261001 fx.export_and_import(.., output_type='stablehlo') of x times the distribution function, 1 / sqrt(2) rounded
module {
  func.func @main(%arg0: tensor<2x3x8xf32>) -> tensor<2x3x8xf32> {
    %cst = stablehlo.constant dense<-4.000000e+00> : tensor<2x3x8xf32>
    %cst_0 = stablehlo.constant dense<4.000000e+00> : tensor<2x3x8xf32>
    %cst_1 = stablehlo.constant dense<-2.72614237E-10> : tensor<2x3x8xf32>
    %cst_2 = stablehlo.constant dense<2.77068146E-8> : tensor<2x3x8xf32>
    %cst_3 = stablehlo.constant dense<-2.10102394E-6> : tensor<2x3x8xf32>
    %cst_4 = stablehlo.constant dense<-5.69250624E-5> : tensor<2x3x8xf32>
    %cst_5 = stablehlo.constant dense<-7.34990637E-4> : tensor<2x3x8xf32>
    %cst_6 = stablehlo.constant dense<-2.954600e-03> : tensor<2x3x8xf32>
    %cst_7 = stablehlo.constant dense<-0.0160960332> : tensor<2x3x8xf32>
    %cst_8 = stablehlo.constant dense<-1.45660715E-5> : tensor<2x3x8xf32>
    %cst_9 = stablehlo.constant dense<-2.13374049E-4> : tensor<2x3x8xf32>
    %cst_10 = stablehlo.constant dense<-0.00168282702> : tensor<2x3x8xf32>
    %cst_11 = stablehlo.constant dense<-0.00737332925> : tensor<2x3x8xf32>
    %cst_12 = stablehlo.constant dense<-0.0142647391> : tensor<2x3x8xf32>
    %cst_13 = stablehlo.constant dense<-1.000000e+00> : tensor<2x3x8xf32>
    %cst_14 = stablehlo.constant dense<1.000000e+00> : tensor<2x3x8xf32>
    %cst_15 = arith.constant dense<0.70710678118654757> : tensor<1xf64>
    %cst_16 = arith.constant dense<1> : tensor<1xi64>
    %cst_17 = arith.constant dense<5.000000e-01> : tensor<1xf64>
    %0 = stablehlo.convert %cst_15 : (tensor<1xf64>) -> tensor<1xf32>
    %1 = stablehlo.reshape %0 : (tensor<1xf32>) -> tensor<f32>
    %2 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<f32>) -> tensor<2x3x8xf32>
    %3 = stablehlo.multiply %arg0, %2 : tensor<2x3x8xf32>
    %4 = stablehlo.clamp %cst, %3, %cst_0 : tensor<2x3x8xf32>
    %5 = stablehlo.multiply %4, %4 : tensor<2x3x8xf32>
    %6 = stablehlo.multiply %cst_1, %5 : tensor<2x3x8xf32>
    %7 = stablehlo.add %6, %cst_2 : tensor<2x3x8xf32>
    %8 = stablehlo.multiply %7, %5 : tensor<2x3x8xf32>
    %9 = stablehlo.add %8, %cst_3 : tensor<2x3x8xf32>
    %10 = stablehlo.multiply %9, %5 : tensor<2x3x8xf32>
    %11 = stablehlo.add %10, %cst_4 : tensor<2x3x8xf32>
    %12 = stablehlo.multiply %11, %5 : tensor<2x3x8xf32>
    %13 = stablehlo.add %12, %cst_5 : tensor<2x3x8xf32>
    %14 = stablehlo.multiply %13, %5 : tensor<2x3x8xf32>
    %15 = stablehlo.add %14, %cst_6 : tensor<2x3x8xf32>
    %16 = stablehlo.multiply %15, %5 : tensor<2x3x8xf32>
    %17 = stablehlo.add %16, %cst_7 : tensor<2x3x8xf32>
    %18 = stablehlo.multiply %cst_8, %5 : tensor<2x3x8xf32>
    %19 = stablehlo.add %18, %cst_9 : tensor<2x3x8xf32>
    %20 = stablehlo.multiply %19, %5 : tensor<2x3x8xf32>
    %21 = stablehlo.add %20, %cst_10 : tensor<2x3x8xf32>
    %22 = stablehlo.multiply %21, %5 : tensor<2x3x8xf32>
    %23 = stablehlo.add %22, %cst_11 : tensor<2x3x8xf32>
    %24 = stablehlo.multiply %23, %5 : tensor<2x3x8xf32>
    %25 = stablehlo.add %24, %cst_12 : tensor<2x3x8xf32>
    %26 = stablehlo.multiply %4, %17 : tensor<2x3x8xf32>
    %27 = stablehlo.divide %26, %25 : tensor<2x3x8xf32>
    %28 = stablehlo.clamp %cst_13, %27, %cst_14 : tensor<2x3x8xf32>
    %29 = stablehlo.convert %cst_16 : (tensor<1xi64>) -> tensor<1xf32>
    %30 = stablehlo.reshape %29 : (tensor<1xf32>) -> tensor<f32>
    %31 = stablehlo.broadcast_in_dim %30, dims = [] : (tensor<f32>) -> tensor<2x3x8xf32>
    %32 = stablehlo.add %28, %31 : tensor<2x3x8xf32>
    %33 = stablehlo.convert %cst_17 : (tensor<1xf64>) -> tensor<1xf32>
    %34 = stablehlo.reshape %33 : (tensor<1xf32>) -> tensor<f32>
    %35 = stablehlo.broadcast_in_dim %34, dims = [] : (tensor<f32>) -> tensor<2x3x8xf32>
    %36 = stablehlo.multiply %32, %35 : tensor<2x3x8xf32>
    %37 = stablehlo.multiply %arg0, %36 : tensor<2x3x8xf32>
    return %37 : tensor<2x3x8xf32>
  }
}
