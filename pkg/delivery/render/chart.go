package render

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	commonutil "helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/loader/archive"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"
	"helm.sh/helm/v4/pkg/ignore"
	"k8s.io/apimachinery/pkg/api/equality"
)

// chart reads the folder of a chart and the files of values.
func (g *gathering) chart(folder string, options Chart) error {
	at, err := below(folder, options.Path)
	if err != nil {
		return err
	}
	if !exists(g.tree, path.Join(at, chartFile)) {
		return fmt.Errorf("%w: folder %q has no %s", ErrInvalid, at, chartFile)
	}
	if err := g.addBelow(at); err != nil {
		return err
	}
	for _, name := range options.ValuesFiles {
		name, err := below(folder, name)
		if err != nil {
			return err
		}
		if err := g.add(name); err != nil {
			return err
		}
	}
	return nil
}

// chart renders the chart of a bundle.
func chart(bundle *Bundle, options Options, limits Limits) (objects []parsed, name string, warnings []string, err error) {
	at, err := below(bundle.Path, options.Chart.Path)
	if err != nil {
		return nil, "", nil, err
	}
	loaded, err := load(bundle, at)
	if err != nil {
		return nil, "", nil, fmt.Errorf("%w: chart %q: %w", ErrInvalid, at, err)
	}
	name = loaded.Name() + "-" + loaded.Metadata.Version
	values, err := valuesOf(bundle, loaded, options)
	if err != nil {
		return nil, "", nil, fmt.Errorf("%w: chart %q: %w", ErrInvalid, at, err)
	}
	r := rendering{chart: loaded, values: values, limits: limits, skipCRDs: options.Chart.SkipCRDs}
	objects, err = r.objects()
	if err != nil {
		return nil, "", nil, fmt.Errorf("%w: chart %q: %w", ErrInvalid, at, err)
	}
	again, err := r.objects()
	if err != nil {
		return nil, "", nil, fmt.Errorf("%w: chart %q: %w", ErrInvalid, at, err)
	}
	warnings = differences(objects, again)
	if r.looksUp {
		warnings = append(warnings, fmt.Sprintf("chart %q looks up objects in the cluster: it finds none here", at))
	}
	objects, hooks := withoutHooks(objects)
	return objects, name, append(warnings, hooks...), nil
}

// load makes a chart of the files in a folder of a bundle.
func load(bundle *Bundle, folder string) (*chartv2.Chart, error) {
	rules := ignore.Empty()
	if lines, err := bundle.file(path.Join(folder, ignore.HelmIgnore)); err == nil {
		if rules, err = ignore.Parse(bytes.NewReader(lines)); err != nil {
			return nil, fmt.Errorf("%s: %w", ignore.HelmIgnore, err)
		}
	}
	rules.AddDefaults()
	var files []*archive.BufferedFile
	for _, name := range slices.Sorted(maps.Keys(bundle.Files)) {
		inside, ok := inFolder(folder, name)
		if ok && !ignored(rules, inside) {
			files = append(files, &archive.BufferedFile{Name: inside, Data: bundle.Files[name]})
		}
	}
	for name, why := range bundle.Unread {
		if inside, ok := inFolder(folder, name); ok && !ignored(rules, inside) {
			return nil, fmt.Errorf("file %q cannot be read: %s", inside, why)
		}
	}
	loaded, err := loader.LoadFiles(files)
	if err != nil {
		return nil, err
	}
	if loaded.Metadata.APIVersion != chartv2.APIVersionV1 && loaded.Metadata.APIVersion != chartv2.APIVersionV2 {
		return nil, fmt.Errorf("apiVersion %q of charts is not supported", loaded.Metadata.APIVersion)
	}
	return loaded, loaded.Validate()
}

func inFolder(folder, name string) (inside string, ok bool) {
	if folder == "." {
		return name, name != ".." && !strings.HasPrefix(name, "../")
	}
	return strings.CutPrefix(name, folder+"/")
}

// valuesOf returns what the templates of a chart see.
func valuesOf(bundle *Bundle, c *chartv2.Chart, options Options) (common.Values, error) {
	values := map[string]any{}
	for _, name := range options.Chart.ValuesFiles {
		name, err := below(bundle.Path, name)
		if err != nil {
			return nil, err
		}
		content, err := bundle.file(name)
		if err != nil {
			return nil, err
		}
		read, err := loader.LoadValues(bytes.NewReader(content))
		if err != nil {
			return nil, fmt.Errorf("%q: %w", name, err)
		}
		values = loader.MergeMaps(values, read)
	}
	over, err := loader.LoadValues(bytes.NewReader(options.Chart.Values))
	if err != nil {
		return nil, fmt.Errorf("values: %w", err)
	}
	values = loader.MergeMaps(values, over)
	if err := vendored(c); err != nil {
		return nil, err
	}
	if err := chartutil.ProcessDependencies(c, values); err != nil {
		return nil, err
	}
	capabilities, err := capabilitiesOf(options.Chart)
	if err != nil {
		return nil, err
	}
	if wanted := c.Metadata.KubeVersion; wanted != "" && !chartutil.IsCompatibleRange(wanted, capabilities.KubeVersion.String()) {
		return nil, fmt.Errorf("it is for Kubernetes %s, and this is %s", wanted, capabilities.KubeVersion.String())
	}
	release := common.ReleaseOptions{Name: options.Chart.Release, Namespace: options.Namespace, Revision: 1, IsInstall: true}
	if err := chartutil.ValidateReleaseName(release.Name); err != nil {
		return nil, fmt.Errorf("release name %q: %w", release.Name, err)
	}
	seen, err := commonutil.ToRenderValuesWithSchemaValidation(c, values, release, capabilities, true)
	if err != nil {
		return nil, err
	}
	coalesced, err := seen.Table("Values")
	if err != nil {
		return nil, err
	}
	return seen, validate(c, coalesced)
}

// vendored refuses a chart whose dependencies are not all in its folder charts: nothing is downloaded.
func vendored(c *chartv2.Chart) error {
	var there []string
	for _, dependency := range c.Dependencies() {
		there = append(there, dependency.Name())
	}
	for _, wanted := range c.Metadata.Dependencies {
		if !slices.Contains(there, wanted.Name) {
			return fmt.Errorf("dependency %q is not in charts/, and nothing is downloaded; run helm dependency build and commit what it makes", wanted.Name)
		}
	}
	return nil
}

func capabilitiesOf(options Chart) (*common.Capabilities, error) {
	out := common.DefaultCapabilities.Copy()
	if options.KubeVersion != "" {
		version, err := common.ParseKubeVersion(options.KubeVersion)
		if err != nil {
			return nil, fmt.Errorf("version %q of Kubernetes: %w", options.KubeVersion, err)
		}
		out.KubeVersion = *version
	}
	out.APIVersions = append(slices.Clone(out.APIVersions), options.APIVersions...)
	return out, nil
}

// rendering runs the templates of a chart.
type rendering struct {
	chart    *chartv2.Chart
	values   common.Values
	limits   Limits
	skipCRDs bool
	looksUp  bool // a template has asked for an object of the cluster
}

// notes end the name of a template that is for people.
const notes = "NOTES.txt"

// objects returns what the templates make, and the definitions of the chart's kinds.
func (r *rendering) objects() ([]parsed, error) {
	templates := engine.Engine{CustomTemplateFuncs: map[string]any{
		"lookup": func(string, string, string, string) (map[string]any, error) {
			r.looksUp = true
			return map[string]any{}, nil
		},
	}}
	files, err := templates.Render(r.chart, r.values)
	if err != nil {
		return nil, err
	}
	if !r.skipCRDs {
		for _, crd := range r.chart.CRDObjects() {
			files[crd.Filename] = string(crd.File.Data)
		}
	}
	var out []parsed
	var size int64
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if size += int64(len(files[name])); size > r.limits.Output {
			return nil, fmt.Errorf("%w: the templates make over %d bytes", ErrTooLarge, r.limits.Output)
		}
		if strings.HasSuffix(name, notes) {
			continue
		}
		found, _, err := parse(name, []byte(files[name]), r.limits.Objects-len(out))
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

// differences warns of objects that are others each time a chart is rendered, such as certificates and passwords that it makes up: every
// rendering of the same commit would be a new revision.
func differences(first, second []parsed) []string {
	if len(first) != len(second) {
		return []string{"the chart makes other objects each time that it is rendered"}
	}
	var out []string
	for i := range first {
		if !equality.Semantic.DeepEqual(first[i].object.Object, second[i].object.Object) {
			out = append(out, fmt.Sprintf("%s is another each time that the chart is rendered; set what it makes up in its values", NameOf(first[i].object)))
		}
	}
	return out
}

// ignored reports whether a chart leaves out a file, by itself or with a folder that it is in.
func ignored(rules *ignore.Rules, name string) bool {
	for folder := path.Dir(name); folder != "."; folder = path.Dir(folder) {
		if rules.Ignore(folder, (&tar.Header{Name: folder, Typeflag: tar.TypeDir, Mode: int64(fs.ModePerm)}).FileInfo()) {
			return true
		}
	}
	return rules.Ignore(name, (&tar.Header{Name: name, Typeflag: tar.TypeReg}).FileInfo())
}
