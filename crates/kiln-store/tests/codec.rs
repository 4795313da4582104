//! Burnpack files under the names and with the errors of Burn's codec.

use kiln_store::burn_pack::{AtomicFile, Error, Header, Reader, Scalar, Writer};
use kiln_tensor::Bytes;

use crate::{burnpack_sample, tensor};

#[test]
fn files_are_written_and_read_under_burns_names() {
    let folder = std::env::temp_dir().join(format!("kiln-codec-{}", std::process::id()));
    let path = folder.join("model");
    let writer = || Writer::new(vec![tensor("a", [1.0]), tensor("b", [2.0, 3.0])]).with_metadata("key", "text").with_scalar("step", Scalar::UInt(7));
    let size = writer().size().unwrap();
    let mut buffer = vec![0; size];
    writer().write_into(&mut buffer).unwrap();
    writer().write_to_file(&path).unwrap();
    assert_eq!(std::fs::read(folder.join("model.bpk")).unwrap(), buffer);
    let reader = Reader::from_file(&path).unwrap();
    assert_eq!(reader.tensor_names(), ["a", "b"]);
    assert_eq!((reader.metadata()["key"].as_str(), reader.scalars()["step"]), ("text", Scalar::UInt(7)));
    assert_eq!(reader.tensor_data("b").unwrap(), [2.0_f32.to_le_bytes(), 3.0_f32.to_le_bytes()].concat());
    assert!(matches!(reader.tensor_data("c"), Err(Error::TensorNotFound(text)) if text.contains("`c`")));
    assert_eq!(reader.into_tensors().unwrap().len(), 2);
    assert!(matches!(Reader::from_file_exact(&path), Err(Error::IoError(_))));
    let refused = writer().overwrite(false).write_to_file(&path);
    assert!(matches!(refused, Err(Error::AlreadyExists(text)) if text.contains("model.bpk")));
    let (atomic, _) = AtomicFile::create(&path).unwrap();
    let scratch = atomic.path().to_owned();
    assert!(scratch.is_file());
    drop(atomic);
    assert!(!scratch.exists());
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn what_is_wrong_is_told_in_burns_words() {
    let sample = std::fs::read(burnpack_sample("store_022.bpk")).unwrap();
    let refused = |bytes: &[u8]| match Reader::from_bytes(Bytes::from_bytes_vec(bytes.to_vec())) {
        Ok(_) => panic!("accepted"),
        Err(error) => error,
    };
    assert_eq!(refused(&sample[..9]), Error::InvalidHeader);
    let mut other = sample.clone();
    other[0] ^= 1;
    assert_eq!(refused(&other), Error::InvalidMagicNumber);
    let mut newer = sample.clone();
    newer[4] = 2;
    assert_eq!(refused(&newer), Error::InvalidVersion);
    assert!(matches!(refused(&sample[..20]), Error::MetadataDeserializationError(_)));
    assert!(matches!(refused(&sample[..sample.len() - 1]), Error::ValidationError(_)));
    let header = Header::from_bytes(&sample).unwrap();
    assert_eq!(header.into_bytes(), sample[..10]);
    assert!(Reader::from_bytes(Bytes::from_bytes_vec(sample)).is_ok());
}
