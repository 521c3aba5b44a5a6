//! Links the program at a fixed address on Linux: 1.9 MiB less resident memory for each session's two processes, and
//! no relocations at every start. What it gives up is the random address of the program itself; libraries, heap and
//! stacks keep theirs.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let target = |name: &str| std::env::var(format!("CARGO_CFG_TARGET_{name}")).unwrap_or_default();
    if target("OS") == "linux" && target("ENV") == "gnu" && target("ARCH") == "x86_64" {
        println!("cargo:rustc-link-arg-bins=-no-pie");
    }
}
