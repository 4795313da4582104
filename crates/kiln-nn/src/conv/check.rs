//! What the configurations of convolutions must satisfy.

#[track_caller]
pub(super) fn check_groups(op: &str, channels_in: usize, channels_out: usize, groups: usize) {
    assert!(
        groups > 0 && channels_in.is_multiple_of(groups) && channels_out.is_multiple_of(groups),
        "{op}: {channels_in} input and {channels_out} output channels are no multiples of {groups} groups"
    );
}
