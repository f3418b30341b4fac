// op: onnx.Gelu approximate=none
// source: jax 0.10.2, jax.export with a symbolic batch of jax.nn.gelu(approximate=False)
module @jit__lambda attributes {jax.uses_shape_polymorphism = true, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<?x3x8xf32> loc(unknown)) -> (tensor<?x3x8xf32> {jax.result_info = "result"}) {
    %c = stablehlo.constant dense<1> : tensor<i32>
    %0 = stablehlo.get_dimension_size %arg0, dim = 0 : (tensor<?x3x8xf32>) -> tensor<i32>
    %1 = stablehlo.compare GE, %0, %c, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.custom_call @shape_assertion(%1, %0) {api_version = 2 : i32, error_message = "Input shapes do not match the polymorphic shapes specification. Expected value >= 1 for dimension variable 'b'. Using the following polymorphic shapes specifications: args[0].shape = (b, 3, 8). Obtained dimension variables: 'b' = {0} from specification 'b' for dimension args[0].shape[0] (= {0}), . Please see https://docs.jax.dev/en/latest/export/shape_poly.html#shape-assertion-errors for more details.", has_side_effect = true} : (tensor<i1>, tensor<i32>) -> ()
    %2 = call @_wrapped_jax_export_main(%0, %arg0) : (tensor<i32>, tensor<?x3x8xf32>) -> tensor<?x3x8xf32>
    return %2 : tensor<?x3x8xf32>
  }
  func.func private @_wrapped_jax_export_main(%arg0: tensor<i32> {jax.global_constant = "b"} loc(unknown), %arg1: tensor<?x3x8xf32> loc("x")) -> (tensor<?x3x8xf32> {jax.result_info = "result"}) {
    %cst = stablehlo.constant dense<1.12837911> : tensor<f32>
    %cst_0 = stablehlo.constant dense<-0.37612626> : tensor<f32>
    %cst_1 = stablehlo.constant dense<0.112835854> : tensor<f32>
    %cst_2 = stablehlo.constant dense<-0.0268538129> : tensor<f32>
    %cst_3 = stablehlo.constant dense<0.00518832775> : tensor<f32>
    %cst_4 = stablehlo.constant dense<-8.0101937E-4> : tensor<f32>
    %cst_5 = stablehlo.constant dense<7.85386146E-5> : tensor<f32>
    %cst_6 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %cst_7 = stablehlo.constant dense<-88.7228394> : tensor<f32>
    %cst_8 = stablehlo.constant dense<0.564189494> : tensor<f32>
    %cst_9 = stablehlo.constant dense<-0.282076746> : tensor<f32>
    %cst_10 = stablehlo.constant dense<0.42184633> : tensor<f32>
    %cst_11 = stablehlo.constant dense<-1.01526523> : tensor<f32>
    %cst_12 = stablehlo.constant dense<2.92101908> : tensor<f32>
    %cst_13 = stablehlo.constant dense<-7.49551868> : tensor<f32>
    %cst_14 = stablehlo.constant dense<1.297720e+01> : tensor<f32>
    %cst_15 = stablehlo.constant dense<-10.477664> : tensor<f32>
    %cst_16 = stablehlo.constant dense<0.563825965> : tensor<f32>
    %cst_17 = stablehlo.constant dense<-0.274112701> : tensor<f32>
    %cst_18 = stablehlo.constant dense<3.404880e-01> : tensor<f32>
    %cst_19 = stablehlo.constant dense<-0.494451523> : tensor<f32>
    %cst_20 = stablehlo.constant dense<0.621000468> : tensor<f32>
    %cst_21 = stablehlo.constant dense<-0.582473278> : tensor<f32>
    %cst_22 = stablehlo.constant dense<0.368742466> : tensor<f32>
    %cst_23 = stablehlo.constant dense<-0.138703942> : tensor<f32>
    %cst_24 = stablehlo.constant dense<2.326820e-02> : tensor<f32>
    %cst_25 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %cst_26 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %cst_27 = stablehlo.constant dense<0.707106769> : tensor<f32>
    %c = stablehlo.constant dense<8> : tensor<1xi32>
    %c_28 = stablehlo.constant dense<3> : tensor<1xi32>
    %cst_29 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %0 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %1 = stablehlo.concatenate %0, %c_28, %c, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %2 = stablehlo.dynamic_broadcast_in_dim %cst_29, %1, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x3x8xf32>
    %3 = stablehlo.multiply %2, %arg1 : tensor<?x3x8xf32>
    %4 = stablehlo.negate %arg1 : tensor<?x3x8xf32>
    %5 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %6 = stablehlo.concatenate %5, %c_28, %c, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %7 = stablehlo.dynamic_broadcast_in_dim %cst_27, %6, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x3x8xf32>
    %8 = stablehlo.multiply %4, %7 : tensor<?x3x8xf32>
    %9 = stablehlo.multiply %8, %8 : tensor<?x3x8xf32>
    %10 = stablehlo.negate %9 : tensor<?x3x8xf32>
    %11 = stablehlo.abs %8 : tensor<?x3x8xf32>
    %12 = stablehlo.get_dimension_size %8, dim = 0 : (tensor<?x3x8xf32>) -> tensor<i32>
    %13 = stablehlo.reshape %12 : (tensor<i32>) -> tensor<1xi32>
    %14 = stablehlo.get_dimension_size %8, dim = 1 : (tensor<?x3x8xf32>) -> tensor<i32>
    %15 = stablehlo.reshape %14 : (tensor<i32>) -> tensor<1xi32>
    %16 = stablehlo.get_dimension_size %8, dim = 2 : (tensor<?x3x8xf32>) -> tensor<i32>
    %17 = stablehlo.reshape %16 : (tensor<i32>) -> tensor<1xi32>
    %18 = stablehlo.concatenate %13, %15, %17, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %19 = stablehlo.dynamic_broadcast_in_dim %cst_26, %18, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x3x8xf32>
    %20 = stablehlo.divide %19, %9 : tensor<?x3x8xf32>
    %21 = stablehlo.exponential %10 : tensor<?x3x8xf32>
    %22 = stablehlo.divide %19, %11 : tensor<?x3x8xf32>
    %23 = stablehlo.multiply %21, %22 : tensor<?x3x8xf32>
    %24 = stablehlo.get_dimension_size %8, dim = 0 : (tensor<?x3x8xf32>) -> tensor<i32>
    %25 = stablehlo.reshape %24 : (tensor<i32>) -> tensor<1xi32>
    %26 = stablehlo.get_dimension_size %8, dim = 1 : (tensor<?x3x8xf32>) -> tensor<i32>
    %27 = stablehlo.reshape %26 : (tensor<i32>) -> tensor<1xi32>
    %28 = stablehlo.get_dimension_size %8, dim = 2 : (tensor<?x3x8xf32>) -> tensor<i32>
    %29 = stablehlo.reshape %28 : (tensor<i32>) -> tensor<1xi32>
    %30 = stablehlo.concatenate %25, %27, %29, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %31 = stablehlo.dynamic_broadcast_in_dim %cst_25, %30, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x3x8xf32>
    %32 = stablehlo.compare LT, %11, %31 : (tensor<?x3x8xf32>, tensor<?x3x8xf32>) -> tensor<?x3x8xi1>
    %33 = stablehlo.get_dimension_size %20, dim = 0 : (tensor<?x3x8xf32>) -> tensor<i32>
    %34 = stablehlo.reshape %33 : (tensor<i32>) -> tensor<1xi32>
    %35 = stablehlo.get_dimension_size %20, dim = 1 : (tensor<?x3x8xf32>) -> tensor<i32>
    %36 = stablehlo.reshape %35 : (tensor<i32>) -> tensor<1xi32>
    %37 = stablehlo.get_dimension_size %20, dim = 2 : (tensor<?x3x8xf32>) -> tensor<i32>
    %38 = stablehlo.reshape %37 : (tensor<i32>) -> tensor<1xi32>
    %39 = stablehlo.concatenate %34, %36, %38, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %40 = stablehlo.dynamic_broadcast_in_dim %cst_24, %39, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x3x8xf32>
    %41 = stablehlo.multiply %40, %20 : tensor<?x3x8xf32>
    %42 = stablehlo.get_dimension_size %20, dim = 0 : (tensor<?x3x8xf32>) -> tensor<i32>
    %43 = stablehlo.reshape %42 : (tensor<i32>) -> tensor<1xi32>
    %44 = stablehlo.get_dimension_size %20, dim = 1 : (tensor<?x3x8xf32>) -> tensor<i32>
    %45 = stablehlo.reshape %44 : (tensor<i32>) -> tensor<1xi32>
    %46 = stablehlo.get_dimension_size %20, dim = 2 : (tensor<?x3x8xf32>) -> tensor<i32>
    %47 = stablehlo.reshape %46 : (tensor<i32>) -> tensor<1xi32>
    %48 = stablehlo.concatenate %43, %45, %47, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %49 = stablehlo.dynamic_broadcast_in_dim %cst_23, %48, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x3x8xf32>
    %50 = stablehlo.add %41, %49 : tensor<?x3x8xf32>
    %51 = stablehlo.multiply %50, %20 : tensor<?x3x8xf32>
    %52 = stablehlo.get_dimension_size %20, dim = 0 : (tensor<?x3x8xf32>) -> tensor<i32>
    %53 = stablehlo.reshape %52 : (tensor<i32>) -> tensor<1xi32>
    %54 = stablehlo.get_dimension_size %20, dim = 1 : (tensor<?x3x8xf32>) -> tensor<i32>
    %55 = stablehlo.reshape %54 : (tensor<i32>) -> tensor<1xi32>
    %56 = stablehlo.get_dimension_size %20, dim = 2 : (tensor<?x3x8xf32>) -> tensor<i32>
    %57 = stablehlo.reshape %56 : (tensor<i32>) -> tensor<1xi32>
    %58 = stablehlo.concatenate %53, %55, %57, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %59 = stablehlo.dynamic_broadcast_in_dim %cst_22, %58, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x3x8xf32>
    %60 = stablehlo.add %51, %59 : tensor<?x3x8xf32>
    %61 = stablehlo.multiply %60, %20 : tensor<?x3x8xf32>
    %62 = stablehlo.get_dimension_size %20, dim = 0 : (tensor<?x3x8xf32>) -> tensor<i32>
    %63 = stablehlo.reshape %62 : (tensor<i32>) -> tensor<1xi32>
    %64 = stablehlo.get_dimension_size %20, dim = 1 : (tensor<?x3x8xf32>) -> tensor<i32>
    %65 = stablehlo.reshape %64 : (tensor<i32>) -> tensor<1xi32>
    %66 = stablehlo.get_dimension_size %20, dim = 2 : (tensor<?x3x8xf32>) -> tensor<i32>
    %67 = stablehlo.reshape %66 : (tensor<i32>) -> tensor<1xi32>
    %68 = stablehlo.concatenate %63, %65, %67, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %69 = stablehlo.dynamic_broadcast_in_dim %cst_21, %68, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x3x8xf32>
    %70 = stablehlo.add %61, %69 : tensor<?x3x8xf32>
    %71 = stablehlo.multiply %70, %20 : tensor<?x3x8xf32>
    %72 = stablehlo.get_dimension_size %20, dim = 0 : (tensor<?x3x8xf32>) -> tensor<i32>
    %73 = stablehlo.reshape %72 : (tensor<i32>) -> tensor<1xi32>
    %74 = stablehlo.get_dimension_size %20, dim = 1 : (tensor<?x3x8xf32>) -> tensor<i32>
    %75 = stablehlo.reshape %74 : (tensor<i32>) -> tensor<1xi32>
    %76 = stablehlo.get_dimension_size %20, dim = 2 : (tensor<?x3x8xf32>) -> tensor<i32>
    %77 = stablehlo.reshape %76 : (tensor<i32>) -> tensor<1xi32>
    %78 = stablehlo.concatenate %73, %75, %77, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %79 = stablehlo.dynamic_broadcast_in_dim %cst_20, %78, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x3x8xf32>
    %80 = stablehlo.add %71, %79 : tensor<?x3x8xf32>
    %81 = stablehlo.multiply %80, %20 : tensor<?x3x8xf32>
    %82 = stablehlo.get_dimension_size %20, dim = 0 : (tensor<?x3x8xf32>) -> tensor<i32>
    %83 = stablehlo.reshape %82 : (tensor<i32>) -> tensor<1xi32>
    %84 = stablehlo.get_dimension_size %20, dim = 1 : (tensor<?x3x8xf32>) -> tensor<i32>
    %85 = stablehlo.reshape %84 : (tensor<i32>) -> tensor<1xi32>
    %86 = stablehlo.get_dimension_size %20, dim = 2 : (tensor<?x3x8xf32>) -> tensor<i32>
    %87 = stablehlo.reshape %86 : (tensor<i32>) -> tensor<1xi32>
    %88 = stablehlo.concatenate %83, %85, %87, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %89 = stablehlo.dynamic_broadcast_in_dim %cst_19, %88, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x3x8xf32>
    %90 = stablehlo.add %81, %89 : tensor<?x3x8xf32>
    %91 = stablehlo.multiply %90, %20 : tensor<?x3x8xf32>
    %92 = stablehlo.get_dimension_size %20, dim = 0 : (tensor<?x3x8xf32>) -> tensor<i32>
    %93 = stablehlo.reshape %92 : (tensor<i32>) -> tensor<1xi32>
    %94 = stablehlo.get_dimension_size %20, dim = 1 : (tensor<?x3x8xf32>) -> tensor<i32>
    %95 = stablehlo.reshape %94 : (tensor<i32>) -> tensor<1xi32>
    %96 = stablehlo.get_dimension_size %20, dim = 2 : (tensor<?x3x8xf32>) -> tensor<i32>
    %97 = stablehlo.reshape %96 : (tensor<i32>) -> tensor<1xi32>
    %98 = stablehlo.concatenate %93, %95, %97, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %99 = stablehlo.dynamic_broadcast_in_dim %cst_18, %98, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x3x8xf32>
    %100 = stablehlo.add %91, %99 : tensor<?x3x8xf32>
    %101 = stablehlo.multiply %100, %20 : tensor<?x3x8xf32>
    %102 = stablehlo.get_dimension_size %20, dim = 0 : (tensor<?x3x8xf32>) -> tensor<i32>
    %103 = stablehlo.reshape %102 : (tensor<i32>) -> tensor<1xi32>
    %104 = stablehlo.get_dimension_size %20, dim = 1 : (tensor<?x3x8xf32>) -> tensor<i32>
    %105 = stablehlo.reshape %104 : (tensor<i32>) -> tensor<1xi32>
    %106 = stablehlo.get_dimension_size %20, dim = 2 : (tensor<?x3x8xf32>) -> tensor<i32>
    %107 = stablehlo.reshape %106 : (tensor<i32>) -> tensor<1xi32>
    %108 = stablehlo.concatenate %103, %105, %107, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %109 = stablehlo.dynamic_broadcast_in_dim %cst_17, %108, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x3x8xf32>
    %110 = stablehlo.add %101, %109 : tensor<?x3x8xf32>
    %111 = stablehlo.multiply %110, %20 : tensor<?x3x8xf32>
    %112 = stablehlo.get_dimension_size %20, dim = 0 : (tensor<?x3x8xf32>) -> tensor<i32>
    %113 = stablehlo.reshape %112 : (tensor<i32>) -> tensor<1xi32>
    %114 = stablehlo.get_dimension_size %20, dim = 1 : (tensor<?x3x8xf32>) -> tensor<i32>
    %115 = stablehlo.reshape %114 : (tensor<i32>) -> tensor<1xi32>
    %116 = stablehlo.get_dimension_size %20, dim = 2 : (tensor<?x3x8xf32>) -> tensor<i32>
    %117 = stablehlo.reshape %116 : (tensor<i32>) -> tensor<1xi32>
    %118 = stablehlo.concatenate %113, %115, %117, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %119 = stablehlo.dynamic_broadcast_in_dim %cst_16, %118, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x3x8xf32>
    %120 = stablehlo.add %111, %119 : tensor<?x3x8xf32>
    %121 = stablehlo.get_dimension_size %20, dim = 0 : (tensor<?x3x8xf32>) -> tensor<i32>
    %122 = stablehlo.reshape %121 : (tensor<i32>) -> tensor<1xi32>
    %123 = stablehlo.get_dimension_size %20, dim = 1 : (tensor<?x3x8xf32>) -> tensor<i32>
    %124 = stablehlo.reshape %123 : (tensor<i32>) -> tensor<1xi32>
    %125 = stablehlo.get_dimension_size %20, dim = 2 : (tensor<?x3x8xf32>) -> tensor<i32>
    %126 = stablehlo.reshape %125 : (tensor<i32>) -> tensor<1xi32>
    %127 = stablehlo.concatenate %122, %124, %126, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %128 = stablehlo.dynamic_broadcast_in_dim %cst_15, %127, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x3x8xf32>
    %129 = stablehlo.multiply %128, %20 : tensor<?x3x8xf32>
    %130 = stablehlo.get_dimension_size %20, dim = 0 : (tensor<?x3x8xf32>) -> tensor<i32>
    %131 = stablehlo.reshape %130 : (tensor<i32>) -> tensor<1xi32>
    %132 = stablehlo.get_dimension_size %20, dim = 1 : (tensor<?x3x8xf32>) -> tensor<i32>
    %133 = stablehlo.reshape %132 : (tensor<i32>) -> tensor<1xi32>
    %134 = stablehlo.get_dimension_size %20, dim = 2 : (tensor<?x3x8xf32>) -> tensor<i32>
    %135 = stablehlo.reshape %134 : (tensor<i32>) -> tensor<1xi32>
    %136 = stablehlo.concatenate %131, %133, %135, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %137 = stablehlo.dynamic_broadcast_in_dim %cst_14, %136, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x3x8xf32>
    %138 = stablehlo.add %129, %137 : tensor<?x3x8xf32>
    %139 = stablehlo.multiply %138, %20 : tensor<?x3x8xf32>
    %140 = stablehlo.get_dimension_size %20, dim = 0 : (tensor<?x3x8xf32>) -> tensor<i32>
    %141 = stablehlo.reshape %140 : (tensor<i32>) -> tensor<1xi32>
    %142 = stablehlo.get_dimension_size %20, dim = 1 : (tensor<?x3x8xf32>) -> tensor<i32>
    %143 = stablehlo.reshape %142 : (tensor<i32>) -> tensor<1xi32>
    %144 = stablehlo.get_dimension_size %20, dim = 2 : (tensor<?x3x8xf32>) -> tensor<i32>
    %145 = stablehlo.reshape %144 : (tensor<i32>) -> tensor<1xi32>
    %146 = stablehlo.concatenate %141, %143, %145, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %147 = stablehlo.dynamic_broadcast_in_dim %cst_13, %146, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x3x8xf32>
    %148 = stablehlo.add %139, %147 : tensor<?x3x8xf32>
    %149 = stablehlo.multiply %148, %20 : tensor<?x3x8xf32>
    %150 = stablehlo.get_dimension_size %20, dim = 0 : (tensor<?x3x8xf32>) -> tensor<i32>
    %151 = stablehlo.reshape %150 : (tensor<i32>) -> tensor<1xi32>
    %152 = stablehlo.get_dimension_size %20, dim = 1 : (tensor<?x3x8xf32>) -> tensor<i32>
    %153 = stablehlo.reshape %152 : (tensor<i32>) -> tensor<1xi32>
    %154 = stablehlo.get_dimension_size %20, dim = 2 : (tensor<?x3x8xf32>) -> tensor<i32>
    %155 = stablehlo.reshape %154 : (tensor<i32>) -> tensor<1xi32>
    %156 = stablehlo.concatenate %151, %153, %155, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %157 = stablehlo.dynamic_broadcast_in_dim %cst_12, %156, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x3x8xf32>
    %158 = stablehlo.add %149, %157 : tensor<?x3x8xf32>
    %159 = stablehlo.multiply %158, %20 : tensor<?x3x8xf32>
    %160 = stablehlo.get_dimension_size %20, dim = 0 : (tensor<?x3x8xf32>) -> tensor<i32>
    %161 = stablehlo.reshape %160 : (tensor<i32>) -> tensor<1xi32>
    %162 = stablehlo.get_dimension_size %20, dim = 1 : (tensor<?x3x8xf32>) -> tensor<i32>
    %163 = stablehlo.reshape %162 : (tensor<i32>) -> tensor<1xi32>
    %164 = stablehlo.get_dimension_size %20, dim = 2 : (tensor<?x3x8xf32>) -> tensor<i32>
    %165 = stablehlo.reshape %164 : (tensor<i32>) -> tensor<1xi32>
    %166 = stablehlo.concatenate %161, %163, %165, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %167 = stablehlo.dynamic_broadcast_in_dim %cst_11, %166, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x3x8xf32>
    %168 = stablehlo.add %159, %167 : tensor<?x3x8xf32>
    %169 = stablehlo.multiply %168, %20 : tensor<?x3x8xf32>
    %170 = stablehlo.get_dimension_size %20, dim = 0 : (tensor<?x3x8xf32>) -> tensor<i32>
    %171 = stablehlo.reshape %170 : (tensor<i32>) -> tensor<1xi32>
    %172 = stablehlo.get_dimension_size %20, dim = 1 : (tensor<?x3x8xf32>) -> tensor<i32>
    %173 = stablehlo.reshape %172 : (tensor<i32>) -> tensor<1xi32>
    %174 = stablehlo.get_dimension_size %20, dim = 2 : (tensor<?x3x8xf32>) -> tensor<i32>
    %175 = stablehlo.reshape %174 : (tensor<i32>) -> tensor<1xi32>
    %176 = stablehlo.concatenate %171, %173, %175, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %177 = stablehlo.dynamic_broadcast_in_dim %cst_10, %176, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x3x8xf32>
    %178 = stablehlo.add %169, %177 : tensor<?x3x8xf32>
    %179 = stablehlo.multiply %178, %20 : tensor<?x3x8xf32>
    %180 = stablehlo.get_dimension_size %20, dim = 0 : (tensor<?x3x8xf32>) -> tensor<i32>
    %181 = stablehlo.reshape %180 : (tensor<i32>) -> tensor<1xi32>
    %182 = stablehlo.get_dimension_size %20, dim = 1 : (tensor<?x3x8xf32>) -> tensor<i32>
    %183 = stablehlo.reshape %182 : (tensor<i32>) -> tensor<1xi32>
    %184 = stablehlo.get_dimension_size %20, dim = 2 : (tensor<?x3x8xf32>) -> tensor<i32>
    %185 = stablehlo.reshape %184 : (tensor<i32>) -> tensor<1xi32>
    %186 = stablehlo.concatenate %181, %183, %185, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %187 = stablehlo.dynamic_broadcast_in_dim %cst_9, %186, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x3x8xf32>
    %188 = stablehlo.add %179, %187 : tensor<?x3x8xf32>
    %189 = stablehlo.multiply %188, %20 : tensor<?x3x8xf32>
    %190 = stablehlo.get_dimension_size %20, dim = 0 : (tensor<?x3x8xf32>) -> tensor<i32>
    %191 = stablehlo.reshape %190 : (tensor<i32>) -> tensor<1xi32>
    %192 = stablehlo.get_dimension_size %20, dim = 1 : (tensor<?x3x8xf32>) -> tensor<i32>
    %193 = stablehlo.reshape %192 : (tensor<i32>) -> tensor<1xi32>
    %194 = stablehlo.get_dimension_size %20, dim = 2 : (tensor<?x3x8xf32>) -> tensor<i32>
    %195 = stablehlo.reshape %194 : (tensor<i32>) -> tensor<1xi32>
    %196 = stablehlo.concatenate %191, %193, %195, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %197 = stablehlo.dynamic_broadcast_in_dim %cst_8, %196, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x3x8xf32>
    %198 = stablehlo.add %189, %197 : tensor<?x3x8xf32>
    %199 = stablehlo.select %32, %120, %198 : tensor<?x3x8xi1>, tensor<?x3x8xf32>
    %200 = stablehlo.multiply %23, %199 : tensor<?x3x8xf32>
    %201 = stablehlo.get_dimension_size %8, dim = 0 : (tensor<?x3x8xf32>) -> tensor<i32>
    %202 = stablehlo.reshape %201 : (tensor<i32>) -> tensor<1xi32>
    %203 = stablehlo.get_dimension_size %8, dim = 1 : (tensor<?x3x8xf32>) -> tensor<i32>
    %204 = stablehlo.reshape %203 : (tensor<i32>) -> tensor<1xi32>
    %205 = stablehlo.get_dimension_size %8, dim = 2 : (tensor<?x3x8xf32>) -> tensor<i32>
    %206 = stablehlo.reshape %205 : (tensor<i32>) -> tensor<1xi32>
    %207 = stablehlo.concatenate %202, %204, %206, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %208 = stablehlo.dynamic_broadcast_in_dim %cst_7, %207, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x3x8xf32>
    %209 = stablehlo.compare LT, %10, %208 : (tensor<?x3x8xf32>, tensor<?x3x8xf32>) -> tensor<?x3x8xi1>
    %210 = stablehlo.get_dimension_size %8, dim = 0 : (tensor<?x3x8xf32>) -> tensor<i32>
    %211 = stablehlo.reshape %210 : (tensor<i32>) -> tensor<1xi32>
    %212 = stablehlo.get_dimension_size %8, dim = 1 : (tensor<?x3x8xf32>) -> tensor<i32>
    %213 = stablehlo.reshape %212 : (tensor<i32>) -> tensor<1xi32>
    %214 = stablehlo.get_dimension_size %8, dim = 2 : (tensor<?x3x8xf32>) -> tensor<i32>
    %215 = stablehlo.reshape %214 : (tensor<i32>) -> tensor<1xi32>
    %216 = stablehlo.concatenate %211, %213, %215, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %217 = stablehlo.dynamic_broadcast_in_dim %cst_6, %216, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x3x8xf32>
    %218 = stablehlo.select %209, %217, %200 : tensor<?x3x8xi1>, tensor<?x3x8xf32>
    %219 = stablehlo.compare LT, %8, %217 : (tensor<?x3x8xf32>, tensor<?x3x8xf32>) -> tensor<?x3x8xi1>
    %220 = stablehlo.subtract %31, %218 : tensor<?x3x8xf32>
    %221 = stablehlo.select %219, %220, %218 : tensor<?x3x8xi1>, tensor<?x3x8xf32>
    %222 = stablehlo.get_dimension_size %8, dim = 0 : (tensor<?x3x8xf32>) -> tensor<i32>
    %223 = stablehlo.reshape %222 : (tensor<i32>) -> tensor<1xi32>
    %224 = stablehlo.get_dimension_size %8, dim = 1 : (tensor<?x3x8xf32>) -> tensor<i32>
    %225 = stablehlo.reshape %224 : (tensor<i32>) -> tensor<1xi32>
    %226 = stablehlo.get_dimension_size %8, dim = 2 : (tensor<?x3x8xf32>) -> tensor<i32>
    %227 = stablehlo.reshape %226 : (tensor<i32>) -> tensor<1xi32>
    %228 = stablehlo.concatenate %223, %225, %227, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %229 = stablehlo.dynamic_broadcast_in_dim %cst_26, %228, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x3x8xf32>
    %230 = stablehlo.multiply %8, %8 : tensor<?x3x8xf32>
    %231 = stablehlo.get_dimension_size %230, dim = 0 : (tensor<?x3x8xf32>) -> tensor<i32>
    %232 = stablehlo.reshape %231 : (tensor<i32>) -> tensor<1xi32>
    %233 = stablehlo.get_dimension_size %230, dim = 1 : (tensor<?x3x8xf32>) -> tensor<i32>
    %234 = stablehlo.reshape %233 : (tensor<i32>) -> tensor<1xi32>
    %235 = stablehlo.get_dimension_size %230, dim = 2 : (tensor<?x3x8xf32>) -> tensor<i32>
    %236 = stablehlo.reshape %235 : (tensor<i32>) -> tensor<1xi32>
    %237 = stablehlo.concatenate %232, %234, %236, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %238 = stablehlo.dynamic_broadcast_in_dim %cst_5, %237, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x3x8xf32>
    %239 = stablehlo.multiply %238, %230 : tensor<?x3x8xf32>
    %240 = stablehlo.get_dimension_size %230, dim = 0 : (tensor<?x3x8xf32>) -> tensor<i32>
    %241 = stablehlo.reshape %240 : (tensor<i32>) -> tensor<1xi32>
    %242 = stablehlo.get_dimension_size %230, dim = 1 : (tensor<?x3x8xf32>) -> tensor<i32>
    %243 = stablehlo.reshape %242 : (tensor<i32>) -> tensor<1xi32>
    %244 = stablehlo.get_dimension_size %230, dim = 2 : (tensor<?x3x8xf32>) -> tensor<i32>
    %245 = stablehlo.reshape %244 : (tensor<i32>) -> tensor<1xi32>
    %246 = stablehlo.concatenate %241, %243, %245, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %247 = stablehlo.dynamic_broadcast_in_dim %cst_4, %246, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x3x8xf32>
    %248 = stablehlo.add %239, %247 : tensor<?x3x8xf32>
    %249 = stablehlo.multiply %248, %230 : tensor<?x3x8xf32>
    %250 = stablehlo.get_dimension_size %230, dim = 0 : (tensor<?x3x8xf32>) -> tensor<i32>
    %251 = stablehlo.reshape %250 : (tensor<i32>) -> tensor<1xi32>
    %252 = stablehlo.get_dimension_size %230, dim = 1 : (tensor<?x3x8xf32>) -> tensor<i32>
    %253 = stablehlo.reshape %252 : (tensor<i32>) -> tensor<1xi32>
    %254 = stablehlo.get_dimension_size %230, dim = 2 : (tensor<?x3x8xf32>) -> tensor<i32>
    %255 = stablehlo.reshape %254 : (tensor<i32>) -> tensor<1xi32>
    %256 = stablehlo.concatenate %251, %253, %255, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %257 = stablehlo.dynamic_broadcast_in_dim %cst_3, %256, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x3x8xf32>
    %258 = stablehlo.add %249, %257 : tensor<?x3x8xf32>
    %259 = stablehlo.multiply %258, %230 : tensor<?x3x8xf32>
    %260 = stablehlo.get_dimension_size %230, dim = 0 : (tensor<?x3x8xf32>) -> tensor<i32>
    %261 = stablehlo.reshape %260 : (tensor<i32>) -> tensor<1xi32>
    %262 = stablehlo.get_dimension_size %230, dim = 1 : (tensor<?x3x8xf32>) -> tensor<i32>
    %263 = stablehlo.reshape %262 : (tensor<i32>) -> tensor<1xi32>
    %264 = stablehlo.get_dimension_size %230, dim = 2 : (tensor<?x3x8xf32>) -> tensor<i32>
    %265 = stablehlo.reshape %264 : (tensor<i32>) -> tensor<1xi32>
    %266 = stablehlo.concatenate %261, %263, %265, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %267 = stablehlo.dynamic_broadcast_in_dim %cst_2, %266, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x3x8xf32>
    %268 = stablehlo.add %259, %267 : tensor<?x3x8xf32>
    %269 = stablehlo.multiply %268, %230 : tensor<?x3x8xf32>
    %270 = stablehlo.get_dimension_size %230, dim = 0 : (tensor<?x3x8xf32>) -> tensor<i32>
    %271 = stablehlo.reshape %270 : (tensor<i32>) -> tensor<1xi32>
    %272 = stablehlo.get_dimension_size %230, dim = 1 : (tensor<?x3x8xf32>) -> tensor<i32>
    %273 = stablehlo.reshape %272 : (tensor<i32>) -> tensor<1xi32>
    %274 = stablehlo.get_dimension_size %230, dim = 2 : (tensor<?x3x8xf32>) -> tensor<i32>
    %275 = stablehlo.reshape %274 : (tensor<i32>) -> tensor<1xi32>
    %276 = stablehlo.concatenate %271, %273, %275, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %277 = stablehlo.dynamic_broadcast_in_dim %cst_1, %276, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x3x8xf32>
    %278 = stablehlo.add %269, %277 : tensor<?x3x8xf32>
    %279 = stablehlo.multiply %278, %230 : tensor<?x3x8xf32>
    %280 = stablehlo.get_dimension_size %230, dim = 0 : (tensor<?x3x8xf32>) -> tensor<i32>
    %281 = stablehlo.reshape %280 : (tensor<i32>) -> tensor<1xi32>
    %282 = stablehlo.get_dimension_size %230, dim = 1 : (tensor<?x3x8xf32>) -> tensor<i32>
    %283 = stablehlo.reshape %282 : (tensor<i32>) -> tensor<1xi32>
    %284 = stablehlo.get_dimension_size %230, dim = 2 : (tensor<?x3x8xf32>) -> tensor<i32>
    %285 = stablehlo.reshape %284 : (tensor<i32>) -> tensor<1xi32>
    %286 = stablehlo.concatenate %281, %283, %285, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %287 = stablehlo.dynamic_broadcast_in_dim %cst_0, %286, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x3x8xf32>
    %288 = stablehlo.add %279, %287 : tensor<?x3x8xf32>
    %289 = stablehlo.multiply %288, %230 : tensor<?x3x8xf32>
    %290 = stablehlo.get_dimension_size %230, dim = 0 : (tensor<?x3x8xf32>) -> tensor<i32>
    %291 = stablehlo.reshape %290 : (tensor<i32>) -> tensor<1xi32>
    %292 = stablehlo.get_dimension_size %230, dim = 1 : (tensor<?x3x8xf32>) -> tensor<i32>
    %293 = stablehlo.reshape %292 : (tensor<i32>) -> tensor<1xi32>
    %294 = stablehlo.get_dimension_size %230, dim = 2 : (tensor<?x3x8xf32>) -> tensor<i32>
    %295 = stablehlo.reshape %294 : (tensor<i32>) -> tensor<1xi32>
    %296 = stablehlo.concatenate %291, %293, %295, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %297 = stablehlo.dynamic_broadcast_in_dim %cst, %296, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x3x8xf32>
    %298 = stablehlo.add %289, %297 : tensor<?x3x8xf32>
    %299 = stablehlo.multiply %8, %298 : tensor<?x3x8xf32>
    %300 = stablehlo.subtract %229, %299 : tensor<?x3x8xf32>
    %301 = stablehlo.abs %8 : tensor<?x3x8xf32>
    %302 = stablehlo.compare LT, %301, %229 : (tensor<?x3x8xf32>, tensor<?x3x8xf32>) -> tensor<?x3x8xi1>
    %303 = stablehlo.select %302, %300, %221 : tensor<?x3x8xi1>, tensor<?x3x8xf32>
    %304 = stablehlo.multiply %3, %303 : tensor<?x3x8xf32>
    return %304 : tensor<?x3x8xf32>
  }
}
