//! The configuration file: what is read, and what is refused.

use kiln_tensor::config::{AutodiffLogLevel, BurnConfig, FusionLogLevel, LogCrateLevel, RemoteLogLevel, RuntimeConfig};

const FILE: &str = r#"
# How programs are made.
fusion.max_graph_size = 1_000   # in operations

[fusion]
growth_patience = 3
beam_search.max_blocks = 7
beam_search.max_explorations = 9

[fusion.logger]
level = "Medium"
stderr = true
file = "a # b.log"
append = false
log = 'debug'

[autodiff.logger]
level = "basic"
stdout = true

[remote]
logger.level = "full"
"#;

#[test]
fn every_key_of_the_file_is_read() {
    let config = BurnConfig::from_text(FILE).unwrap();
    let fusion = config.fusion();
    assert_eq!((fusion.max_graph_size, fusion.growth_patience), (Some(1000), 3));
    assert_eq!((fusion.beam_search.max_blocks, fusion.beam_search.max_explorations), (7, Some(9)));
    assert_eq!((fusion.logger.level, fusion.logger.stderr, fusion.logger.stdout, fusion.logger.append), (FusionLogLevel::Medium, true, false, false));
    assert_eq!((fusion.logger.file.as_deref(), fusion.logger.log), (Some("a # b.log".as_ref()), Some(LogCrateLevel::Debug)));
    assert_eq!((config.autodiff().logger.level, config.autodiff().logger.stdout), (AutodiffLogLevel::Basic, true));
    assert_eq!(config.remote().logger.level, RemoteLogLevel::Full);
    let text = serde_json::to_string(&config).unwrap();
    let again: BurnConfig = serde_json::from_str(&text).unwrap();
    assert_eq!(serde_json::to_string(&again).unwrap(), text);
    let little: BurnConfig = serde_json::from_str(r#"{"fusion": {"max_graph_size": 5}}"#).unwrap();
    assert_eq!((little.fusion().max_graph_size, little.fusion().beam_search.max_blocks), (Some(5), 5));
    assert_eq!(BurnConfig::file_names(), ["burn.toml", "Burn.toml"]);
}

#[test]
fn mistakes_name_the_line_and_what_is_expected() {
    for (text, line, part) in [
        ("fusion.max_graph_size = \"many\"", 1, "whole number"),
        ("\n[fusion]\nmax_graph_size = -1", 3, "whole number"),
        ("[fusion.logger]\nlevel = \"loud\"", 2, "\"disabled\", \"basic\", \"medium\", \"full\""),
        ("[fusion.logger]\nstdout = 1", 2, "true or false"),
        ("[fusion.logger]\nfile = true", 2, "text in quotes"),
        ("[fusion]\nunknown = 1", 2, "unknown key `fusion.unknown`"),
        ("fusion.growth_patience = 1\nfusion.growth_patience = 2", 2, "twice"),
        ("[[fusion]]", 1, "[table]"),
        ("[fusion", 1, "[table]"),
        ("fusion", 1, "key = value"),
        ("a b = 1", 1, "no key"),
        ("fusion.growth_patience = [1]", 1, "neither"),
        ("fusion.logger.file = \"open", 1, "neither"),
    ] {
        let error = BurnConfig::from_text(text).unwrap_err();
        assert!(error.contains(&format!("line {line}")) && error.contains(part), "{text:?}: {error}");
    }
}
