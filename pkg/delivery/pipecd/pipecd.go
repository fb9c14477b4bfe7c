package pipecd

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

// Application is what an application file says.
type Application struct {
	Name, Description string
	Labels            map[string]string
	// Spec is without a source: the file does not say where it lies.
	Spec v1alpha1.ApplicationSpec
	// Prune says whether a release without the pipeline deletes what its revision does not have, nil if the file does not say. The field of the spec, which is
	// about all releases, is unset.
	Prune *bool
	// Named are the paths of the fields that name targets first, by the names of the targets.
	Named map[string]string
	// Input says how the manifests of all targets are rendered, Inputs what is different at targets, by their names.
	Input  Input
	Inputs map[string]Input
	// Unhonoured are the fields that PipeCD would act upon and nobody does here, in the order of their paths.
	Unhonoured []Unhonoured

	// nameAt, descriptionAt and namespaceAt are the paths of the fields that say so, empty if none does.
	nameAt, descriptionAt, namespaceAt string
}

// Unhonoured is a field that nobody acts upon.
type Unhonoured struct {
	Path, Why string
}

// String returns a sentence about the field.
func (u Unhonoured) String() string { return u.Path + " is not honoured: " + u.Why }

// Input says how manifests are rendered.
type Input struct {
	// Namespace is where objects go that name no namespace.
	Namespace string
	// Manifests are the files to read, from the folder of the application; unset stands for all.
	Manifests []string
	Chart     Chart
}

// Chart says how a Helm chart is rendered.
type Chart struct {
	// Path is the chart's folder, from the root of the repository; unset stands for the folder of the application.
	Path        string
	Release     string
	ValuesFiles []string
	APIVersions []string
	KubeVersion string
}

// mostBytes bounds a file.
const mostBytes = 1 << 20

const apiVersion = "pipecd.dev/v1beta1"

// Kinds of files.
const (
	kindKubernetes  = "KubernetesApp"
	kindApplication = "Application"
	// kindOthers ends the kinds from before there were plugins, which stand for platforms.
	kindOthers = "App"
)

// labelKind is the label by which files of kind Application say what they are for.
const labelKind = "kind"

// Uses says what of an application the file does not: which plugins it uses, and whether it has rights of its own.
type Uses struct {
	// Plugins are those that the application uses. What the file says to others is not honoured.
	Plugins []string
	// Only says that they alone deliver the application: what of the file is not about deployments as such is theirs to read.
	Only bool
	// Account says that a ServiceAccount writes the objects of the application.
	Account bool
}

// Parse reads an application file, with what it leaves to the configuration of piped. Its error names every field that is wrong.
func Parse(content []byte, config v1alpha1.PipecdConfig) (*Application, error) {
	return ParseFor(content, config, Uses{})
}

// ParseFor is the same, of an application of which more is known.
func ParseFor(content []byte, config v1alpha1.PipecdConfig, uses Uses) (*Application, error) {
	if len(content) > mostBytes {
		return nil, fmt.Errorf("the application file has %d bytes, and %d are allowed", len(content), mostBytes)
	}
	if err := single(content); err != nil {
		return nil, fmt.Errorf("parse the application file: %w", err)
	}
	asJSON, err := yaml.YAMLToJSONStrict(content)
	if err != nil {
		return nil, fmt.Errorf("parse the application file: %w", err)
	}
	var values map[string]any
	if err := json.Unmarshal(asJSON, &values); err != nil {
		return nil, fmt.Errorf("parse the application file: it is no object: %w", err)
	}
	r := &reading{config: config, uses: uses, out: &Application{Inputs: map[string]Input{}, Named: map[string]string{}}}
	r.file(&fields{reading: r, values: values})
	if err := r.errs.ToAggregate(); err != nil {
		return nil, fmt.Errorf("the application file: %w", err)
	}
	slices.SortFunc(r.out.Unhonoured, func(a, b Unhonoured) int { return strings.Compare(a.Path, b.Path) })
	return r.out, nil
}

// single refuses several documents, of which a parser would take the first.
func single(content []byte) error {
	decoder := yamlv3.NewDecoder(bytes.NewReader(content))
	for found := 0; ; {
		var document yamlv3.Node
		err := decoder.Decode(&document)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case len(document.Content) == 0 || document.Content[0].Tag == "!!null":
			continue // nothing but comments
		}
		if found++; found > 1 {
			return fmt.Errorf("line %d: it has several documents, separated by ---, and may have one: PipeCD has a file for each application", document.Content[0].Line)
		}
	}
}

// reading collects what a file says.
type reading struct {
	config v1alpha1.PipecdConfig
	uses   Uses
	out    *Application
	errs   field.ErrorList
	// selects is the field that has a quick sync change selectors, nil if none does, and selected says that a stage does it.
	selects  *field.Path
	selected bool
	// within is what has the pipeline, nil for the spec itself.
	within *fields
}

func (r *reading) file(file *fields) {
	if version := file.text("apiVersion"); version != apiVersion {
		r.refuse(file.at("apiVersion"), version, "must be "+apiVersion)
	}
	kind := file.text("kind")
	spec := file.object("spec")
	metadata := file.object("metadata")
	if name := metadata.text("name"); name != "" {
		r.out.Name, r.out.nameAt = name, metadata.at("name").String()
	}
	r.labels(metadata)
	metadata.done()
	switch {
	case r.uses.Only && (kind == kindApplication || strings.HasSuffix(kind, kindOthers)):
		r.common(spec)
		r.opaque(spec)
	case kind == kindKubernetes && !spec.has("plugins"):
		r.common(spec)
		r.kubernetes(spec)
	case kind == kindKubernetes, kind == kindApplication:
		r.common(spec)
		r.plugins(spec)
	default:
		r.refuse(file.at("kind"), kind, "must be "+kindKubernetes+" or "+kindApplication)
		return
	}
	r.pipeline(cmp.Or(r.within, spec))
	if label := r.out.Labels[labelKind]; label != "" && label != "KUBERNETES" && len(r.uses.Plugins) == 0 {
		r.refuse(spec.at("labels").Key(labelKind), label, "must be KUBERNETES")
	}
	delete(r.out.Labels, labelKind) // it is for PipeCD, which has other kinds as well
	spec.done()
	file.done()
}

// labels takes in those of the metadata, and then those of the spec.
func (r *reading) labels(from *fields) {
	labels := from.textMap("labels")
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if r.out.Labels == nil {
			r.out.Labels = map[string]string{}
		}
		if other, has := r.out.Labels[key]; has && other != labels[key] {
			r.refuse(from.at("labels").Key(key), labels[key], fmt.Sprintf("metadata.labels[%s] is %q: write one of them, or the same twice", key, other))
		}
		r.out.Labels[key] = labels[key]
	}
}

func (r *reading) refuse(at *field.Path, value any, why string) {
	r.errs = append(r.errs, field.Invalid(at, value, why))
}
