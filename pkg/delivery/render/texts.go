package render

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	fieldpath "k8s.io/apimachinery/pkg/util/validation/field"
)

// The fields of objects that are texts, and those that map names to texts: of all kinds, and of built-in ones.
var (
	texts    = []string{"name", "namespace", "generateName"}
	textMaps = [][]string{{"metadata", "labels"}, {"metadata", "annotations"}}

	builtInTextMaps = map[schema.GroupKind][][]string{
		{Kind: "ConfigMap"}:                  {{"data"}, {"binaryData"}},
		{Kind: "Secret"}:                     {{"data"}, {"stringData"}},
		{Kind: "Service"}:                    {{"spec", "selector"}},
		{Group: "apps", Kind: "Deployment"}:  workloadTextMaps,
		{Group: "apps", Kind: "StatefulSet"}: workloadTextMaps,
		{Group: "apps", Kind: "DaemonSet"}:   workloadTextMaps,
		{Group: "apps", Kind: "ReplicaSet"}:  workloadTextMaps,
		{Group: "batch", Kind: "Job"}:        workloadTextMaps,
		{Group: "batch", Kind: "CronJob"}: {
			{"spec", "jobTemplate", "metadata", "labels"}, {"spec", "jobTemplate", "metadata", "annotations"},
			{"spec", "jobTemplate", "spec", "template", "metadata", "labels"}, {"spec", "jobTemplate", "spec", "template", "metadata", "annotations"},
		},
	}
	workloadTextMaps = [][]string{
		{"spec", "selector", "matchLabels"}, {"spec", "template", "metadata", "labels"}, {"spec", "template", "metadata", "annotations"},
	}
)

// checkTexts refuses an object that has something else where the API server wants texts: in YAML yes is a boolean and 1 a number. One such value would have all
// labels or annotations of the object read as if there were none, also those that decide what becomes of it. A value that is null is empty for the API
// server, and is made so.
func checkTexts(object *unstructured.Unstructured) error {
	metadata := object.Object["metadata"]
	fields, is := metadata.(map[string]any)
	if metadata != nil && !is {
		return fieldpath.TypeInvalid(fieldpath.NewPath("metadata"), fieldpath.OmitValueType{}, "must map names of fields to values")
	}
	var errs fieldpath.ErrorList
	for _, name := range texts {
		if value := fields[name]; value != nil && !isText(value) {
			errs = append(errs, noText(fieldpath.NewPath("metadata", name), value))
		}
	}
	for _, path := range slices.Concat(textMaps, builtInTextMaps[object.GroupVersionKind().GroupKind()]) {
		errs = append(errs, checkTextMap(object.Object, path)...)
	}
	return errs.ToAggregate()
}

func checkTextMap(in map[string]any, path []string) (errs fieldpath.ErrorList) {
	at, value := fieldpath.NewPath(path[0], path[1:]...), any(in)
	for _, name := range path {
		inner, is := value.(map[string]any)
		if !is {
			return nil // what is around it is for the API server to refuse
		}
		value = inner[name]
	}
	values, is := value.(map[string]any)
	if value != nil && !is {
		return fieldpath.ErrorList{fieldpath.TypeInvalid(at, fieldpath.OmitValueType{}, "must map names to texts")}
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		switch value := values[key]; {
		case value == nil:
			values[key] = ""
		case !isText(value):
			if path[0] != "metadata" {
				value = fieldpath.OmitValueType{} // a Secret's are nobody's to read
			}
			errs = append(errs, noText(at.Key(key), value))
		}
	}
	return errs
}

func isText(value any) bool {
	_, is := value.(string)
	return is
}

func noText(at *fieldpath.Path, value any) *fieldpath.Error {
	switch value.(type) {
	case map[string]any, []any:
		return fieldpath.TypeInvalid(at, fieldpath.OmitValueType{}, "must be a text")
	}
	return fieldpath.TypeInvalid(at, value, "must be a text: put it into quotes")
}
