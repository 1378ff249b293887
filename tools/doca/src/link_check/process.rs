//! The files that a program's start loads, in the loader's order.

use super::elf::Elf;
use super::library;
use super::loader::{Asker, By, Loader, Missed};
use std::fs;
use std::path::{Path, PathBuf};

/// A file that is loaded.
#[derive(Debug)]
pub(crate) struct Object {
    /// The name that it was asked for by.
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    pub(crate) elf: Elf,
    /// What found it; none for the program itself.
    pub(crate) by: Option<By>,
    /// The object that asked first.
    loader: Option<usize>,
    /// Its libraries, in order.
    pub(crate) needs: Vec<Need>,
}

/// A library that an object needs.
#[derive(Debug)]
pub(crate) struct Need {
    pub(crate) name: String,
    /// The object that it is, or where it was looked for.
    pub(crate) object: Result<usize, Missed>,
}

/// A program with all it needs. The program is the first object.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) objects: Vec<Object>,
}

impl Process {
    /// Follows the libraries of a program, breadth first as the loader does.
    pub(crate) fn start(path: &Path, elf: Elf, loader: &Loader) -> Process {
        // `$ORIGIN` of a program is where it really is.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut process =
            Process { objects: vec![Object { name, path, elf, by: None, loader: None, needs: Vec::new() }] };
        let mut next = 0;
        while next < process.objects.len() {
            for name in process.objects[next].elf.needed.clone() {
                let object = process.load(&name, next, loader);
                process.objects[next].needs.push(Need { name, object });
            }
            next += 1;
        }
        process
    }

    /// Looks for a library on behalf of an object without loading it, as `dlopen` of a name would.
    pub(crate) fn look_up(
        &self,
        name: &str,
        asker: usize,
        loader: &Loader,
    ) -> Result<(PathBuf, By, Elf), Missed> {
        let found = loader.find(name, &self.chain(asker), self.objects[0].elf.target)?;
        Ok((found.path, found.by, found.elf))
    }

    /// The directories of an object's own search paths.
    pub(crate) fn search_dirs(&self, object: usize, loader: &Loader) -> Vec<(PathBuf, By)> {
        let object = &self.objects[object];
        loader.own_dirs(Asker { path: &object.path, elf: &object.elf })
    }

    fn load(&mut self, name: &str, asker: usize, loader: &Loader) -> Result<usize, Missed> {
        let same = |object: &Object| object.name == name || object.elf.soname.as_deref() == Some(name);
        if let Some(known) = self.objects.iter().position(same) {
            return Ok(known);
        }
        let (path, by, elf) = self.look_up(name, asker, loader)?;
        let real = fs::canonicalize(&path).ok();
        let same = |object: &Object| real.is_some() && fs::canonicalize(&object.path).ok() == real;
        if let Some(known) = self.objects.iter().position(same) {
            return Ok(known);
        }
        let name = name.to_owned();
        self.objects.push(Object { name, path, elf, by: Some(by), loader: Some(asker), needs: Vec::new() });
        Ok(self.objects.len() - 1)
    }

    /// An object, what loaded it, and so on up to the program.
    fn chain(&self, object: usize) -> Vec<Asker<'_>> {
        let mut chain = Vec::new();
        let mut next = Some(object);
        while let Some(index) = next {
            let object = &self.objects[index];
            chain.push(Asker { path: &object.path, elf: &object.elf });
            next = object.loader;
        }
        chain
    }

    /// The program and its own libraries: all that is reached without passing through DOCA or the RDMA core
    /// libraries, which do what they do on the program's behalf.
    pub(crate) fn parts(&self) -> Vec<usize> {
        let mut parts = vec![0];
        let mut next = 0;
        while let Some(&index) = parts.get(next) {
            for object in self.objects[index].needs.iter().filter_map(|need| need.object.as_ref().ok()) {
                let name = &self.objects[*object].name;
                let foreign = library::doca_name(name).is_some() || library::is_rdma_core(name);
                if !foreign && !parts.contains(object) {
                    parts.push(*object);
                }
            }
            next += 1;
        }
        parts
    }
}
