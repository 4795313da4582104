//! Modules that were loaded from a file and read its memory where it lies.

use std::path::PathBuf;

use kiln_module::module::{Module, Param};
use kiln_module::record::ModuleRecord;
use kiln_module::record::burnpack::Reader;
use kiln_store::burn_pack::Tensor;
use kiln_store::safetensors::SafetensorsReader;
use kiln_store::{BurnpackStore, ModuleSnapshot, SafetensorsStore};
use kiln_tensor::Device;

/// One parameter that is large enough to be read in place.
#[derive(Module, Debug)]
struct Large {
    weight: Param<kiln_tensor::Tensor<2>>,
}

const SHAPE: [usize; 2] = [600, 512];

fn large(value: f32) -> Large {
    Large { weight: Param::from_tensor(kiln_tensor::Tensor::full(SHAPE, value, &Device::default())) }
}

/// A path that no other test uses.
fn path(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("kiln-mapped-{}-{name}", std::process::id()))
}

fn uniform(module: &Large, value: f32) -> bool {
    module.weight.val().into_data().as_slice::<f32>().expect("floats").iter().all(|found| *found == value)
}

/// Loads a module from opened tensors; says whether its parameter lies where the stored tensor does.
fn in_place(module: &mut Large, tensors: Vec<Tensor>) -> bool {
    let stored = tensors[0].to_bytes().expect("mapped").as_ptr();
    assert_eq!(module.apply(tensors, None, None, false).applied, ["weight"]);
    core::ptr::eq(stored, module.weight.val().into_data().as_bytes().as_ptr())
}

#[cfg(unix)]
#[test]
fn a_module_reads_the_file_where_it_lies() {
    let (safetensors, burnpack) = (path("a.safetensors"), path("a.bpk"));
    large(2.0).save_into(&mut SafetensorsStore::from_file(&safetensors)).expect("writable");
    large(3.0).save_into(&mut BurnpackStore::from_file(&burnpack)).expect("writable");
    let mut module = large(0.0);
    assert!(in_place(&mut module, SafetensorsReader::open(&safetensors).expect("readable").tensors()) && uniform(&module, 2.0));
    assert!(in_place(&mut module, Reader::open(&burnpack).expect("readable").tensors()) && uniform(&module, 3.0));
    let module = large(0.0).load_record(ModuleRecord::load(&burnpack).expect("readable"));
    assert!(uniform(&module, 3.0));
    for path in [safetensors, burnpack] {
        std::fs::remove_file(path).expect("is there");
    }
}

#[test]
fn updates_and_saves_over_the_file_leave_what_was_loaded_as_it_was() {
    let path = path("b.safetensors");
    large(1.0).save_into(&mut SafetensorsStore::from_file(&path)).expect("writable");
    let mut first = large(0.0);
    first.load_from(&mut SafetensorsStore::from_file(&path)).expect("fits");
    let updated = Large { weight: first.weight.clone().map(|weight| weight.detach() + 4) };
    let bytes = std::fs::read(&path).expect("readable");
    assert!(uniform(&updated, 5.0) && uniform(&first, 1.0));
    assert!(std::fs::read(&path).expect("readable") == bytes, "an update reached the file");
    for round in 0..2 {
        updated.save_into(&mut SafetensorsStore::from_file(&path).overwrite(true)).expect("writable");
        assert!(uniform(&first, 1.0), "round {round}");
    }
    let mut second = large(0.0);
    second.load_from(&mut SafetensorsStore::from_file(&path)).expect("fits");
    std::fs::remove_file(&path).expect("is there");
    assert!(uniform(&second, 5.0), "the memory outlives the file's name");
}
