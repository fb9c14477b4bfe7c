// Package piped reads the configuration of PipeCD's agent, and makes Plugins of it. Pure: it reads what it is given, and neither a disk nor a network.
package piped

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	plugins "github.com/manifold-dev/manifold/apis/delivery/v1alpha1/validation"
	"github.com/manifold-dev/manifold/pkg/delivery/pipecd"
)

// Piped is what a file says.
type Piped struct {
	// Plugins are those that it has, in its order. None has a checksum, for which there is no field.
	Plugins []v1alpha1.Plugin
	// Unhonoured are the fields that PipeCD would act upon and nobody does here, in the order of their paths.
	Unhonoured []pipecd.Unhonoured
}

const (
	// mostBytes bounds a file.
	mostBytes  = 1 << 20
	apiVersion = "pipecd.dev/v1beta1"
	kind       = "Piped"
)

// file is how the configuration is written.
type file struct {
	APIVersion string                     `json:"apiVersion"`
	Kind       string                     `json:"kind"`
	Metadata   map[string]json.RawMessage `json:"metadata"`
	Spec       map[string]json.RawMessage `json:"spec"`
}

// entry is how a plugin is written.
type entry struct {
	Name          string          `json:"name"`
	URL           string          `json:"url"`
	SourceURL     string          `json:"sourceURL"`
	Port          int32           `json:"port"`
	Config        json.RawMessage `json:"config"`
	DeployTargets []target        `json:"deployTargets"`
}

type target struct {
	Name   string            `json:"name"`
	Labels map[string]string `json:"labels"`
	Config json.RawMessage   `json:"config"`
}

// spellings are how the list of plugins is called: as it was proposed first, and as it is.
var spellings = []string{"plugin", "plugins"}

// Parse reads a file. Its error names every field that is wrong.
func Parse(content []byte) (*Piped, error) {
	if len(content) > mostBytes {
		return nil, fmt.Errorf("the Piped file has %d bytes, and %d are allowed", len(content), mostBytes)
	}
	asJSON, err := yaml.YAMLToJSONStrict(content)
	if err != nil {
		return nil, fmt.Errorf("parse the Piped file: %w", err)
	}
	r := &reading{out: &Piped{}, seen: map[string]bool{}}
	r.file(asJSON)
	if err := r.errs.ToAggregate(); err != nil {
		return nil, fmt.Errorf("the Piped file: %w", err)
	}
	slices.SortStableFunc(r.out.Unhonoured, func(a, b pipecd.Unhonoured) int { return strings.Compare(a.Path, b.Path) })
	return r.out, nil
}

// reading collects what a file says.
type reading struct {
	out  *Piped
	errs field.ErrorList
	// seen are the names of plugins so far.
	seen map[string]bool
}

func (r *reading) refuse(at *field.Path, value any, why string) {
	r.errs = append(r.errs, field.Invalid(at, value, why))
}

func (r *reading) ignore(at *field.Path, why string) {
	r.out.Unhonoured = append(r.out.Unhonoured, pipecd.Unhonoured{Path: at.String(), Why: why})
}

func (r *reading) file(content []byte) {
	var from file
	if !r.decode(content, &from, nil) {
		return
	}
	if from.APIVersion != apiVersion {
		r.refuse(field.NewPath("apiVersion"), from.APIVersion, "must be "+apiVersion)
	}
	if from.Kind != kind {
		r.refuse(field.NewPath("kind"), from.Kind, "must be "+kind)
		return
	}
	if len(from.Metadata) > 0 {
		r.ignore(field.NewPath("metadata"), "each Plugin has the name that spec.plugins has for it")
	}
	spec := field.NewPath("spec")
	for _, name := range slices.Sorted(maps.Keys(from.Spec)) {
		why, known := unhonoured[name]
		switch {
		case slices.Contains(spellings, name):
			r.plugins(from.Spec[name], spec.Child(name))
		case !known:
			r.refuse(spec.Child(name), field.OmitValueType{}, "there is no such field")
		case !empty(from.Spec[name]):
			r.ignore(spec.Child(name), why)
		}
	}
	if len(r.errs) == 0 && len(r.out.Plugins) == 0 {
		r.errs = append(r.errs, field.Required(spec.Child("plugins"), "the file has no plugins"))
	}
}

// empty reports whether a field is set to nothing.
func empty(raw json.RawMessage) bool {
	return slices.Contains([]string{"null", "{}", "[]", `""`, "0", "false"}, string(raw))
}

// decode reads a value, and refuses what it has no field for. It reports whether the value could be read.
func (r *reading) decode(content []byte, into any, at *field.Path) bool {
	below := func(name string) *field.Path {
		switch {
		case at == nil:
			return field.NewPath(cmp.Or(name, "(all)"))
		case name == "":
			return at
		}
		return at.Child(name)
	}
	unknown, err := kjson.UnmarshalStrict(content, into, kjson.DisallowUnknownFields)
	for _, problem := range unknown {
		if of := (kjson.FieldError)(nil); errors.As(problem, &of) {
			r.refuse(below(of.FieldPath()), field.OmitValueType{}, "there is no such field")
		}
	}
	if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) {
		r.errs = append(r.errs, field.TypeInvalid(below(wrong.Field), field.OmitValueType{}, "must be "+called(wrong.Type)))
	} else if err != nil {
		r.refuse(below(""), field.OmitValueType{}, err.Error())
	}
	return err == nil
}

// called is how people call the values of a type.
func called(of reflect.Type) string {
	switch of.Kind() {
	case reflect.String:
		return "a text"
	case reflect.Int32:
		return "a whole number"
	case reflect.Slice:
		return "a list"
	}
	return "an object"
}

func (r *reading) plugins(content json.RawMessage, at *field.Path) {
	var entries []json.RawMessage
	if !r.decode(content, &entries, at) {
		return
	}
	for i, raw := range entries {
		var from entry
		if !r.decode(raw, &from, at.Index(i)) {
			continue
		}
		plugin := v1alpha1.Plugin{
			TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "Plugin"},
			ObjectMeta: metav1.ObjectMeta{Name: r.name(from.Name, at.Index(i).Child("name"))},
			Spec:       v1alpha1.PluginSpec{URL: r.address(&from, at.Index(i)), Port: from.Port, Config: opaque(from.Config)},
		}
		if plugin.Name != from.Name {
			plugin.Spec.PipecdName = from.Name // by which application files go on to call it
		}
		for _, of := range from.DeployTargets {
			plugin.Spec.DeployTargets = append(plugin.Spec.DeployTargets, v1alpha1.PluginTarget{Name: of.Name, Labels: of.Labels, Config: opaque(of.Config)})
		}
		r.check(plugin.DeepCopy(), &from, at.Index(i))
		r.out.Plugins = append(r.out.Plugins, plugin)
	}
}

// name is that of the object. One with underscores, which names of objects cannot have, is spelled with hyphens, and kept beside it.
func (r *reading) name(written string, at *field.Path) string {
	name := written
	if len(validation.IsDNS1123Label(name)) > 0 {
		name = v1alpha1.PluginNameOf(name)
	}
	switch problems := validation.IsDNS1123Label(name); {
	case written == "":
		r.errs = append(r.errs, field.Required(at, ""))
	case len(problems) > 0:
		r.refuse(at, written, problems[0])
	case r.seen[name]:
		r.errs = append(r.errs, field.Duplicate(at, written))
	}
	r.seen[name] = true
	return name
}

// address is where the program is. PipeCD takes a path for a file of the machine.
func (r *reading) address(from *entry, at *field.Path) string {
	address, at := from.URL, at.Child("url")
	if from.SourceURL != "" {
		if address != "" {
			r.errs = append(r.errs, field.Forbidden(at, "may not be combined with sourceURL, which is an older spelling"))
		}
		address = from.SourceURL
	}
	if !path.IsAbs(address) {
		return address
	}
	return (&url.URL{Scheme: "file", Path: path.Clean(address)}).String()
}

// opaque is a configuration that nobody looks into; nil if there is none.
func opaque(raw json.RawMessage) *runtime.RawExtension {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	return &runtime.RawExtension{Raw: raw}
}

// check refuses what no Plugin may say, by the paths of the file.
func (r *reading) check(plugin *v1alpha1.Plugin, from *entry, at *field.Path) {
	v1alpha1.SetObjectDefaults_Plugin(plugin)
	plugin.Name, plugin.Spec.PipecdName = "a", "" // which were looked at
	plugin.Spec.Sha256 = strings.Repeat("0", 64)  // of which there is none in the file
	for _, err := range plugins.ValidatePlugin(plugin) {
		below := strings.TrimPrefix(err.Field, "spec")
		if below == ".url" && from.SourceURL != "" {
			below = ".sourceURL"
		}
		err.Field = at.String() + below
		r.errs = append(r.errs, err)
	}
}
