//! Which peers run which workloads, and how their programs are started.
//!
//! `PEERS` names the folder where they are installed (default: `peers` in the system's temporary folder), `PEERS_SOURCE` the folder of their scripts
//! (default: `../shared/bench/peers`, beside the repository). Peers that are not there are left out.

use crate::workspace;
use std::path::PathBuf;
use std::process::Command;

/// Workloads that are run back to back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Matrix products.
    Gemm,
    /// Memory-bound operations and dispatch.
    Ops,
    /// Small training steps.
    Small,
    /// The GPT.
    Gpt,
    /// ResNet-18.
    Resnet,
    /// What only Kiln has: recording and replay.
    Own,
    /// The part of training steps outside of kernels.
    Outside,
    /// Weight files beside plain files of the same size.
    Files,
}

impl Group {
    /// Every group, in the order of running.
    pub const ALL: [Self; 8] = [Self::Gemm, Self::Ops, Self::Small, Self::Gpt, Self::Resnet, Self::Own, Self::Outside, Self::Files];

    /// Its workloads.
    pub fn workloads(self) -> &'static [&'static str] {
        match self {
            Self::Gemm => &["sgemm_256", "sgemm_512", "sgemm_1024", "sgemm_2048", "sgemm_64x784x128", "gemv_1x4096x4096"],
            Self::Ops => &[
                "ew_chain_16m",
                "ew_chain_4096",
                "softmax_4096x1024",
                "layernorm_4096x1024",
                "sum0_4096",
                "sum1_4096",
                "transpose_4096",
                "add16_x1000",
            ],
            Self::Small => &["mlp_train_b64", "mlp_train_b512", "cnn_train_b64"],
            Self::Gpt => &["gpt_train_b8", "gpt_fwd_b8", "gpt_decode_128"],
            Self::Resnet => &["resnet18_b1", "resnet18_b8"],
            Self::Own => &["record_x1000", "record_tape_x1000", "replay_1"],
            Self::Outside => &["outside_mlp_train_b64", "outside_mlp_train_b512", "outside_cnn_train_b64", "outside_gpt_train_b8"],
            Self::Files => &["save_plain", "save_safetensors", "read_plain", "load_safetensors", "load_and_sum", "sum_loaded"],
        }
    }

    /// Whether peers have these workloads.
    pub fn has_peers(self) -> bool {
        !matches!(self, Self::Own | Self::Outside | Self::Files)
    }
}

fn folder(variable: &str, default: PathBuf) -> PathBuf {
    std::env::var_os(variable).map_or(default, PathBuf::from)
}

/// The peers' programs for `workloads` of `group`, each with the name to call it by.
pub fn commands(group: Group, workloads: &[&str]) -> Vec<(String, Command)> {
    let peers = folder("PEERS", std::env::temp_dir().join("peers"));
    let source = folder("PEERS_SOURCE", workspace::root().join("../shared/bench/peers"));
    let python = peers.join("venv/bin/python");
    let torch = source.join("torch_bench.py");
    let mut commands = Vec::new();
    let mut add = |name: String, mut command: Command| {
        command.args(workloads);
        commands.push((name, command));
    };
    if python.exists() && torch.exists() {
        let mut modes = vec!["eager"];
        if group == Group::Gemm {
            modes.extend(["numpy", "mkl"]);
        } else {
            modes.push("compile");
        }
        if matches!(group, Group::Gemm | Group::Gpt | Group::Resnet) {
            modes.push("ort");
        }
        for mode in modes {
            let mut command = Command::new(&python);
            command.arg(&torch).arg(mode);
            if group == Group::Resnet && mode == "compile" {
                command.env("TORCHINDUCTOR_FREEZING", "1");
            }
            add(format!("torch_bench.py {mode}"), command);
        }
    }
    let mut programs = vec![("target-burn-seed/release/burn_bench", "flex"), ("target-candle/release/candle_bench", "candle")];
    if group == Group::Gemm {
        programs.extend([("target-gemm/release/gemm_bench", "gemm"), ("target-gemm/release/gemm_bench", "faer")]);
    }
    for (program, kind) in programs {
        let path = peers.join(program);
        if path.exists() {
            let mut command = Command::new(path);
            command.arg(kind);
            add(format!("{program} {kind}"), command);
        }
    }
    commands
}
