//! pkg-config modules: `doca-<lib>`, `doca-<lib>-lib` and the umbrella `doca`.

use crate::library::{self, Library};
use crate::release::Release;
use crate::{Result, place};
use std::path::Path;

/// Writes every module into `dir`.
pub(crate) fn write(release: Release, dir: &Path) -> Result {
    let templates = place::root().join("doca-sim/pkgconfig");
    let module = place::read(&templates.join("module.pc.in"))?;
    let module_lib = place::read(&templates.join("module-lib.pc.in"))?;
    let umbrella = place::read(&templates.join("umbrella.pc.in"))?;

    for library in library::ALL {
        let name = format!("doca-{}", library.name);
        let text = fill(&module, &name, release, library)?;
        place::write(&dir.join(format!("{name}.pc")), text)?;
        let name = format!("{name}-lib");
        let text = fill(&module_lib, &name, release, library)?;
        place::write(&dir.join(format!("{name}.pc")), text)?;
    }
    let all: Vec<String> =
        library::ALL.iter().rev().map(|library| format!("-ldoca_{}", library.name)).collect();
    let text = substitute(&umbrella, &[("LIBS", &all.join(" ")), ("VERSION", release.full())])?;
    place::write(&dir.join("doca.pc"), text)
}

fn fill(template: &str, name: &str, release: Release, library: &Library) -> Result<String> {
    // As on a real install: a module asks for its library and for the modules that its headers include.
    let mut requires = vec![format!("doca-{}-lib", library.name)];
    requires.extend(library.needs.iter().map(|needed| format!("doca-{needed}")));
    substitute(
        template,
        &[
            ("MODULE", name),
            ("DESCRIPTION", library.description),
            ("VERSION", release.full()),
            ("REQUIRES", &requires.join(", ")),
            ("LIBS", &format!("-ldoca_{}", library.name)),
        ],
    )
}

fn substitute(template: &str, values: &[(&str, &str)]) -> Result<String> {
    let mut text = template.to_owned();
    for (name, value) in values {
        text = text.replace(&format!("@{name}@"), value);
    }
    match text.split('@').nth(1) {
        None => Ok(text),
        Some(name) => {
            Err(format!("a template in doca-sim/pkgconfig asks for @{name}@, which nobody fills in"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_that_nobody_fills_in_is_an_error() {
        assert_eq!(substitute("a @X@ b", &[("X", "1")]).unwrap(), "a 1 b");
        assert!(substitute("a @Y@ b", &[("X", "1")]).unwrap_err().contains("@Y@"));
    }
}
