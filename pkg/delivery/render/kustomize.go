package render

import (
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// mostBases bounds how many folders with kustomizations one rendering is made of.
const mostBases = 100

// kustomize reads the folders of all kustomizations that the one in folder leads to. A kustomization may only read files below its own folder,
// so that these folders are all that it can need.
func (g *gathering) kustomize(folder string) error {
	queue, seen := []string{folder}, map[string]bool{folder: true}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		if err := g.addBelow(at); err != nil {
			return err
		}
		next, err := g.bases(at)
		if err != nil {
			return err
		}
		for _, base := range next {
			if !seen[base] {
				seen[base] = true
				queue = append(queue, base)
			}
		}
		if len(seen) > mostBases {
			return fmt.Errorf("%w: the kustomization is made of over %d folders", ErrTooLarge, mostBases)
		}
	}
	return nil
}

// bases returns the folders that the kustomization in a folder builds on, and refuses it if it reaches for what is not in the tree.
func (g *gathering) bases(folder string) ([]string, error) {
	name := kustomizationIn(g.tree, folder)
	if name == "" {
		return nil, fmt.Errorf("%w: folder %q has no kustomization", ErrInvalid, folder)
	}
	content, err := g.out.file(name)
	if err != nil {
		return nil, err
	}
	var k types.Kustomization
	if err := k.Unmarshal(content); err != nil {
		return nil, fmt.Errorf("%w: %q: %w", ErrInvalid, name, err)
	}
	k.FixKustomization()
	if len(k.HelmCharts) > 0 || len(k.HelmChartInflationGenerator) > 0 || k.HelmGlobals != nil {
		return nil, fmt.Errorf("%w: %q: helmCharts runs the program helm, which is not done; render the chart by itself", ErrInvalid, name)
	}
	older, err := olderPatches(content)
	if err != nil {
		return nil, fmt.Errorf("%w: %q: %w", ErrInvalid, name, err)
	}
	for _, file := range append(filesOf(&k), older...) {
		if remote(file) {
			return nil, fmt.Errorf("%w: %q: %q lies elsewhere and is not fetched; put it into the repository", ErrInvalid, name, file)
		}
		if _, inside := inFolder(folder, path.Join(folder, withoutKey(file))); file != "" && !inside {
			return nil, fmt.Errorf("%w: %q: %w", ErrInvalid, name, outside(file))
		}
	}
	var out []string
	for _, entry := range slices.Concat(k.Resources, k.Components, k.Generators, k.Transformers, k.Validators) {
		base, err := g.base(folder, entry)
		if err != nil {
			return nil, fmt.Errorf("%w: %q: %w", ErrInvalid, name, err)
		}
		if base != "" {
			out = append(out, base)
		}
	}
	return out, nil
}

// base returns the folder that an entry of a kustomization names, or nothing if it is a file or written out in place.
func (g *gathering) base(folder, entry string) (string, error) {
	inPlace := strings.Contains(entry, "\n")
	if repository.MatchString(entry) || remote(entry) && !inPlace {
		return "", fmt.Errorf("%q lies elsewhere and is not fetched; put it into the repository", entry)
	}
	if inPlace {
		return "", nil
	}
	at, err := below(folder, entry)
	if err != nil {
		return "", err
	}
	info, err := fs.Stat(g.tree, at)
	switch {
	case err != nil:
		// Kustomize would take a path that does not exist for the address of a repository, and fetch it.
		return "", fmt.Errorf("%q: %w; what lies elsewhere is not fetched", entry, err)
	case info.IsDir():
		return at, nil
	}
	if _, inside := inFolder(folder, at); !inside {
		return "", outside(entry)
	}
	return "", nil
}

func outside(file string) error {
	return fmt.Errorf("%q lies outside of the kustomization's folder, where it may read no file; give it a kustomization of its own", file)
}

// withoutKey returns the file of an entry such as "key=file".
func withoutKey(entry string) string {
	if _, file, keyed := strings.Cut(entry, "="); keyed {
		return file
	}
	return entry
}

// remote reports whether kustomize would look for a file in the network.
func remote(name string) bool { return strings.Contains(name, "://") }

// repository begins what kustomize takes for the address of a repository, whatever there is in the tree.
var repository = regexp.MustCompile(`(?i)^(git::)?((ssh|https?|file)://|[a-z][a-z0-9-]*@|github\.com[/:])`)

// filesOf returns the files that a kustomization reads beside its resources.
func filesOf(k *types.Kustomization) []string {
	out := slices.Concat(k.Crds, k.Configurations, slices.Sorted(maps.Values(k.OpenAPI)))
	for _, patch := range k.Patches {
		out = append(out, patch.Path)
	}
	for _, replacement := range k.Replacements {
		out = append(out, replacement.Path)
	}
	for _, generator := range k.ConfigMapGenerator {
		out = append(out, sourcesOf(generator.KvPairSources)...)
	}
	for _, generator := range k.SecretGenerator {
		out = append(out, sourcesOf(generator.KvPairSources)...)
	}
	return out
}

// olderPatches returns the files of patches under the names that they had before.
func olderPatches(kustomization []byte) ([]string, error) {
	var k struct {
		PatchesJSON6902 []struct {
			Path string `json:"path"`
		} `json:"patchesJson6902"`
		PatchesStrategicMerge []string `json:"patchesStrategicMerge"`
	}
	if err := yaml.Unmarshal(kustomization, &k); err != nil {
		return nil, err
	}
	var out []string
	for _, patch := range k.PatchesJSON6902 {
		out = append(out, patch.Path)
	}
	for _, patch := range k.PatchesStrategicMerge {
		if !strings.Contains(patch, "\n") { // or it is written out in place
			out = append(out, patch)
		}
	}
	return out, nil
}

func sourcesOf(from types.KvPairSources) []string {
	return slices.Concat(from.FileSources, from.EnvSources, []string{from.EnvSource})
}

// root is where a bundle lies in the file system that kustomize sees.
const root = "/tree"

// kustomize builds the kustomization in the folder of a bundle.
func kustomize(bundle *Bundle, limits Limits) ([]parsed, error) {
	seen := filesys.MakeFsInMemory()
	for name, content := range bundle.Files {
		if err := seen.WriteFile(path.Join(root, name), content); err != nil {
			return nil, fmt.Errorf("%w: %q: %w", ErrInvalid, name, err)
		}
	}
	return build(seen, path.Join(root, bundle.Path), bundle.Path, limits)
}

// build runs kustomize in a folder of a file system.
func build(seen filesys.FileSystem, folder, name string, limits Limits) ([]parsed, error) {
	options := krusty.MakeDefaultOptions() // without plugins, and with files from below a kustomization alone
	built, err := krusty.MakeKustomizer(options).Run(seen, folder)
	if err != nil {
		return nil, fmt.Errorf("%w: kustomize %q: %w", ErrInvalid, name, err)
	}
	if built.Size() > limits.Objects {
		return nil, fmt.Errorf("%w: kustomize %q makes %d objects, and %d are allowed", ErrTooLarge, name, built.Size(), limits.Objects)
	}
	var out []parsed
	for _, resource := range built.Resources() {
		asJSON, err := resource.MarshalJSON()
		if err != nil {
			return nil, fmt.Errorf("%w: kustomize %q: %w", ErrInvalid, name, err)
		}
		object, err := decode(asJSON)
		if err != nil || object == nil {
			return nil, fmt.Errorf("%w: kustomize %q: %s: %w", ErrInvalid, name, resource.CurId(), err)
		}
		flat, err := flatten(object, fmt.Sprintf("the kustomization in %q", name), mostNested)
		if err != nil {
			return nil, err
		}
		out = append(out, flat...)
	}
	return out, nil
}
