// Package confined renders the files of strangers in a process of its own, with bounds on its time and memory.
//
// A template can ask for any amount of both in a few bytes, and so can aliases of YAML in what kustomize reads; neither library can be stopped
// halfway, and a process that has no memory left ends with all that it does. The process is the same program, started under another name: it
// has no environment, no credentials and no network of its own making, may write no files, and ends when its time or memory does.
package confined
