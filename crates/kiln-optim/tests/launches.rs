//! The updates of a step in kernels: few launches, however many parameters there are.

use std::sync::{Arc, Mutex};

use kiln_cpu::CpuRuntime;
use kiln_ir::{Buffer, DType, DeviceInfo, Executable, Kernel, Limits, MemoryUse, Program, Runtime, RuntimeError};
use kiln_module::module::{Module, Param};
use kiln_optim::{AdamConfig, AdamWConfig, GradientsParams, ModuleOptimizer, SgdConfig};
use kiln_tensor::{Device, Tensor};

/// The CPU, with the launches and kernels of every program that it was given.
struct Watched {
    cpu: Arc<CpuRuntime>,
    programs: Arc<Mutex<Vec<(usize, usize)>>>,
}

impl Runtime for Watched {
    fn limits(&self) -> &Limits {
        self.cpu.limits()
    }

    fn info(&self) -> DeviceInfo {
        self.cpu.info()
    }

    fn supports(&self, kernel: &Kernel) -> bool {
        self.cpu.supports(kernel)
    }

    fn supports_dtype(&self, dtype: DType) -> bool {
        self.cpu.supports_dtype(dtype)
    }

    fn alloc(&self, bytes: usize) -> Result<Buffer, RuntimeError> {
        self.cpu.alloc(bytes)
    }

    fn upload(&self, bytes: &[u8]) -> Result<Buffer, RuntimeError> {
        self.cpu.upload(bytes)
    }

    fn download(&self, buffer: &Buffer, out: &mut [u8]) -> Result<(), RuntimeError> {
        self.cpu.download(buffer, out)
    }

    fn compile(&self, program: Arc<Program>) -> Result<Arc<dyn Executable>, RuntimeError> {
        self.programs.lock().unwrap().push((program.launches.len(), program.kernels().count()));
        self.cpu.compile(program)
    }

    fn run(&self, executable: &dyn Executable, inputs: &[Buffer], outputs: &[Buffer], args: &[u64]) -> Result<(), RuntimeError> {
        self.cpu.run(executable, inputs, outputs, args)
    }

    fn sync(&self) -> Result<(), RuntimeError> {
        self.cpu.sync()
    }

    fn memory(&self) -> MemoryUse {
        self.cpu.memory()
    }

    fn cleanup(&self) {
        self.cpu.cleanup();
    }
}

/// Parameters of different shapes.
#[derive(Module, Debug)]
struct Many {
    matrices: Vec<Param<Tensor<2>>>,
    vectors: Vec<Param<Tensor<1>>>,
}

/// An optimizer's name and how it is made.
type Make = (&'static str, fn() -> ModuleOptimizer);

#[test]
fn all_updates_of_a_step_are_one_launch_of_one_program() {
    let optimizers: [Make; 3] =
        [("sgd", || SgdConfig::new().init()), ("adam", || AdamConfig::new().with_amsgrad(true).init()), ("adamw", || AdamWConfig::new().init())];
    for (name, make) in optimizers {
        let programs = Arc::new(Mutex::new(Vec::new()));
        let device = Device::with_runtime("cpu", Arc::new(Watched { cpu: CpuRuntime::global(), programs: programs.clone() }));
        let tracked = device.clone().autodiff();
        let mut model = Many {
            matrices: (0..12).map(|n| Param::from_tensor(Tensor::ones([3 + n, 5], &tracked))).collect(),
            vectors: (0..12).map(|n| Param::from_tensor(Tensor::ones([2 + n], &tracked))).collect(),
        };
        let mut optimizer = make();
        for step in 0..6 {
            let mut gradients = GradientsParams::new();
            model.matrices.iter().for_each(|param| gradients.register(param.id, Tensor::<2>::ones(param.lazy_shape(), &device)));
            model.vectors.iter().for_each(|param| gradients.register(param.id, Tensor::<1>::ones(param.lazy_shape(), &device)));
            device.sync().unwrap();
            let before = device.trace_stats();
            programs.lock().unwrap().clear();
            model = optimizer.step(0.1, model, gradients);
            device.sync().unwrap();
            let after = device.trace_stats();
            assert_eq!(after.runs - before.runs, 1, "{name}: runs of step {step}");
            let programs = programs.lock().unwrap();
            assert!(programs.iter().all(|(launches, kernels)| *launches == 1 && *kernels <= 24), "{name}, step {step}: {programs:?}");
            // The state begins with the first step, its memory is reused from the second on; AMSGrad's maximum begins as the second moment itself.
            match step {
                0 | 1 => assert_eq!(programs.len(), 1, "{name}, step {step}"),
                2 => {}
                _ => assert_eq!(after.compiles, before.compiles, "{name}: step {step} was compiled anew"),
            }
        }
    }
}
