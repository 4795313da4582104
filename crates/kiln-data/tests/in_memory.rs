//! Items in memory, and the files they are read from.

use kiln_data::dataset::{Dataset, DatasetError, InMemDataset};
use serde::Deserialize;

use crate::{Folder, check_panics};

#[derive(Debug, Clone, PartialEq, Deserialize)]
struct Row {
    name: String,
    value: f64,
}

fn rows() -> Vec<Row> {
    let row = |name: &str, value| Row { name: name.into(), value };
    vec![row("a, b", 1.5), row("c", -2.0)]
}

fn read<I>(dataset: &impl Dataset<I>) -> Vec<I> {
    dataset.iter().map(|item| item.expect("readable")).collect()
}

#[test]
fn items_are_read_by_index_and_in_order() {
    let dataset = InMemDataset::new(vec![3, 1, 2]);
    assert_eq!(dataset.len(), 3);
    assert!(!dataset.is_empty());
    assert_eq!(dataset.get(1).expect("readable"), 1);
    assert_eq!(dataset.get_many(vec![2, 0, 2]).expect("readable"), [2, 3, 2]);
    assert_eq!(read(&dataset), [3, 1, 2]);
    assert_eq!(dataset.iter().size_hint(), (3, Some(3)));
    assert!(InMemDataset::<u8>::new(Vec::new()).iter().next().is_none());
}

#[test]
fn out_of_range_panics_with_index_and_length() {
    let read = || drop(InMemDataset::new(vec![1, 2]).get(2));
    check_panics(read, "get: index 2 out of range for a dataset of 2 items");
}

#[test]
fn json_rows_are_read_and_a_bad_line_is_named() {
    let folder = Folder::new();
    let good = "{\"name\": \"a, b\", \"value\": 1.5}\n\n{\"name\": \"c\", \"value\": -2}";
    let path = folder.write("good.json", good.as_bytes());
    let dataset = InMemDataset::<Row>::from_json_rows(path).expect("readable");
    assert_eq!(read(&dataset), rows());

    let path = folder.write("bad.json", b"{\"name\": \"a\", \"value\": 1}\n{\"name\": 3}\n");
    let error = InMemDataset::<Row>::from_json_rows(path).err().expect("line 2 is no row");
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidData);
    assert!(error.to_string().contains("bad.json, line 2: "), "{error}");
}

#[test]
fn csv_is_read_as_its_builder_says_and_a_bad_record_is_named() {
    let folder = Folder::new();
    let path = folder.write("good.csv", b"name,value\n\"a, b\",1.5\nc,-2\n");
    let dataset = InMemDataset::<Row>::from_csv(path, &csv::ReaderBuilder::new());
    assert_eq!(read(&dataset.expect("readable")), rows());

    let path = folder.write("good.tsv", b"a, b\t1.5\nc\t-2\n");
    let mut builder = csv::ReaderBuilder::new();
    builder.delimiter(b'\t').has_headers(false);
    let dataset = InMemDataset::<(String, f64)>::from_csv(path, &builder).expect("readable");
    assert_eq!(read(&dataset), [("a, b".into(), 1.5), ("c".into(), -2.0)]);

    let path = folder.write("bad.csv", b"name,value\na,1\nb,many\n");
    let error = InMemDataset::<Row>::from_csv(path, &csv::ReaderBuilder::new());
    let error = error.err().expect("record 2 has no number").to_string();
    assert!(error.contains("bad.csv: ") && error.contains("record 2"), "{error}");

    let error = InMemDataset::<Row>::from_csv("absent.csv", &csv::ReaderBuilder::new());
    let error = error.err().expect("there is no such file").to_string();
    assert!(error.contains("absent.csv: "), "{error}");
}

/// Fails to read item 1.
struct Broken;

impl Dataset<usize> for Broken {
    fn get(&self, index: usize) -> Result<usize, DatasetError> {
        match index {
            1 => Err(DatasetError::new(std::io::Error::other("bad sector"))),
            _ => Ok(index),
        }
    }

    fn len(&self) -> usize {
        3
    }
}

#[test]
fn iteration_goes_on_behind_an_item_that_fails() {
    let items: Vec<_> = Broken.iter().collect();
    assert_eq!(items.len(), 3);
    let error = items[1].as_ref().expect_err("item 1 fails");
    assert_eq!(error.to_string(), "bad sector");
    assert!(error.get_ref().downcast_ref::<std::io::Error>().is_some());
    assert!(matches!(items[2], Ok(2)));
    assert!(Broken.get_many(vec![0, 1]).is_err());
    let copy = || drop(InMemDataset::from_dataset(&Broken));
    check_panics(copy, "from_dataset: item 1 cannot be read: bad sector");
}

#[test]
fn shared_and_boxed_datasets_are_datasets() {
    let shared: std::sync::Arc<dyn Dataset<i32>> = std::sync::Arc::new(InMemDataset::new(vec![4, 5]));
    let boxed: Box<dyn Dataset<i32>> = Box::new(std::sync::Arc::clone(&shared));
    assert_eq!(read(&shared), [4, 5]);
    assert_eq!(read(&boxed), [4, 5]);
    assert_eq!(read(&InMemDataset::from_dataset(&boxed)), [4, 5]);
}
