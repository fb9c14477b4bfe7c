package render

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/konfig"
)

// Bundle is all that a rendering needs of a tree. It can be written as JSON.
type Bundle struct {
	Kind Kind
	// Path is the folder of the application, from the root of the tree.
	Path string
	// Files are contents by their paths from the root of the tree.
	Files map[string][]byte
	// Unread says of files why they cannot be read. It matters only if they are needed.
	Unread map[string]string
}

const chartFile = "Chart.yaml"

// Gather reads what the application in a folder of a tree needs to be rendered.
func Gather(tree fs.FS, folder string, options Options) (*Bundle, error) {
	folder = path.Clean(folder)
	if !fs.ValidPath(folder) {
		return nil, fmt.Errorf("%w: path %q leads out of the repository", ErrInvalid, folder)
	}
	if err := isFolder(tree, folder); err != nil {
		return nil, err
	}
	g := &gathering{tree: tree, limits: options.Limits.withDefaults(), out: &Bundle{Path: folder, Files: map[string][]byte{}, Unread: map[string]string{}}}
	g.out.Kind = options.Kind
	if g.out.Kind == "" {
		g.out.Kind = detect(tree, folder, options)
	}
	var err error
	switch g.out.Kind {
	case Kustomize:
		err = g.kustomize(folder)
	case Helm:
		err = g.chart(folder, options.Chart)
	case Plain:
		err = g.plain(folder, options)
	default:
		err = fmt.Errorf("%w: there is no way %q to render", ErrInvalid, g.out.Kind)
	}
	if err != nil {
		return nil, err
	}
	return g.out, nil
}

func isFolder(tree fs.FS, folder string) error {
	switch info, err := fs.Stat(tree, folder); {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: there is no folder %q", ErrInvalid, folder)
	case err != nil:
		return fmt.Errorf("%w: folder %q: %w", ErrInvalid, folder, err)
	case !info.IsDir():
		return fmt.Errorf("%w: %q is no folder", ErrInvalid, folder)
	}
	return nil
}

// detect tells by the files of a folder how they are rendered.
func detect(tree fs.FS, folder string, options Options) Kind {
	switch {
	case options.Chart.Path != "":
		return Helm
	case kustomizationIn(tree, folder) != "":
		return Kustomize
	case exists(tree, path.Join(folder, chartFile)):
		return Helm
	}
	return Plain
}

func exists(tree fs.FS, name string) bool {
	info, err := fs.Stat(tree, name)
	return err == nil && !info.IsDir()
}

// kustomizationIn returns the path of the kustomization in a folder, or nothing.
func kustomizationIn(tree fs.FS, folder string) string {
	for _, name := range konfig.RecognizedKustomizationFileNames() {
		if name = path.Join(folder, name); exists(tree, name) {
			return name
		}
	}
	return ""
}

// gathering reads files into a bundle below bounds.
type gathering struct {
	tree   fs.FS
	limits Limits
	input  int64
	out    *Bundle
}

// add reads a file. One that cannot be read is noted.
func (g *gathering) add(name string) error {
	if _, done := g.out.Files[name]; done || g.out.Unread[name] != "" {
		return nil
	}
	if len(g.out.Files)+len(g.out.Unread) >= g.limits.Files {
		return fmt.Errorf("%w: over %d files", ErrTooLarge, g.limits.Files)
	}
	content, err := g.read(name)
	if err != nil {
		g.out.Unread[name] = err.Error()
		return nil
	}
	if g.input += int64(len(content)); g.input > g.limits.Input {
		return fmt.Errorf("%w: the files have over %d bytes", ErrTooLarge, g.limits.Input)
	}
	g.out.Files[name] = content
	return nil
}

func (g *gathering) read(name string) ([]byte, error) {
	file, err := g.tree.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, g.limits.File+1))
	if err != nil {
		return nil, err
	}
	if int64(len(content)) > g.limits.File {
		return nil, fmt.Errorf("%w: it has over %d bytes", ErrTooLarge, g.limits.File)
	}
	return content, nil
}

// addBelow reads all files below a folder.
func (g *gathering) addBelow(folder string) error {
	return fs.WalkDir(g.tree, folder, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return fmt.Errorf("%w: %w", ErrInvalid, err)
		case entry.IsDir():
			return nil
		case !entry.Type().IsRegular():
			g.out.Unread[name] = "it is a link to a folder, or a submodule, neither of which is followed"
			return nil
		}
		return g.add(name)
	})
}

// plain reads the manifests in a folder.
func (g *gathering) plain(folder string, options Options) error {
	for _, name := range options.Manifests {
		name, err := below(folder, name)
		if err != nil {
			return err
		}
		if err := g.add(name); err != nil {
			return err
		}
	}
	if len(options.Manifests) > 0 {
		return nil
	}
	return fs.WalkDir(g.tree, folder, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return fmt.Errorf("%w: %w", ErrInvalid, err)
		case entry.IsDir() && name != folder && (!options.Recurse || strings.HasPrefix(entry.Name(), ".")):
			return fs.SkipDir
		case entry.IsDir() || !isManifest(entry.Name()):
			return nil
		}
		return g.add(name)
	})
}

// isManifest reports whether a file may hold manifests, by its name. Files of tools that lie beside manifests, PipeCD's among them, do not.
func isManifest(name string) bool {
	switch {
	case strings.HasPrefix(name, "."), strings.HasSuffix(name, ".pipecd.yaml"), slices.Contains(konfig.RecognizedKustomizationFileNames(), name):
		return false
	}
	return slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(name))
}

// below returns the path of a file from the root of a tree, of one that is named from a folder.
func below(folder, name string) (string, error) {
	out := path.Join(folder, name)
	if path.IsAbs(name) || !fs.ValidPath(out) {
		return "", fmt.Errorf("%w: path %q leads out of the repository", ErrInvalid, name)
	}
	return out, nil
}

// file returns the content of a file that has been gathered.
func (b *Bundle) file(name string) ([]byte, error) {
	if content, ok := b.Files[name]; ok {
		return content, nil
	}
	if why, ok := b.Unread[name]; ok {
		return nil, fmt.Errorf("%w: file %q cannot be read: %s", ErrInvalid, name, why)
	}
	return nil, fmt.Errorf("%w: there is no file %q", ErrInvalid, name)
}
