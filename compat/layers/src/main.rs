//! Saves a model of many layers with Burn 0.22.1, with what each layer computes, for the tests of the facade: `cargo run FOLDER`. With a record that Kiln wrote as a
//! second argument, loads that instead and compares.

#[path = "../../../crates/kiln/tests/zoo.rs"]
mod zoo;

use burn::module::Module;
use burn::tensor::Device;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().expect("a folder");
    let device = Device::default();
    let zoo = zoo::Zoo::new(&device);
    let outputs = zoo.outputs(&device);
    if let Some(record) = arguments.next() {
        // Burn 0.22.1 refuses the recorded form of a linear layer in columns, in its own records too; that layer keeps its values.
        let record_of = burn::store::ModuleRecord::load(&record).expect("readable").validate(false).allow_partial(true).allow_unused(true);
        let loaded = zoo::Zoo::blank(&device).load_record(record_of);
        for ((name, expected), (_, found)) in outputs.iter().zip(loaded.outputs(&device)) {
            assert!(name == &"column" || *expected == found, "{name}");
        }
        println!("{record}: {} layers compute what they did", outputs.len() - 1);
        return;
    }
    zoo.save_file(format!("{folder}/zoo")).expect("writable");
    let lines = outputs.iter().map(|(name, values)| {
        let values: Vec<String> = values.iter().map(f32::to_string).collect();
        format!("{name} {}\n", values.join(" "))
    });
    std::fs::write(format!("{folder}/zoo.txt"), lines.collect::<String>()).expect("writable");
}
