package validation

import (
	"fmt"
	"maps"
	"slices"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/apis/internal/fields"
)

// Bounds of what a plugin may keep in one record.
const (
	mostRecordBytes  = 512 << 10
	mostRecordKeys   = 256
	mostRecordKey    = 256
	mostRecordStages = 256
)

// ValidatePluginRecord refuses a new record of a plugin that is not valid.
func ValidatePluginRecord(record *v1alpha1.PluginRecord) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&record.ObjectMeta, true, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	spec, path := &record.Spec, field.NewPath("spec")
	errs = append(errs, fields.Name(spec.Plugin, path.Child("plugin"), validation.IsDNS1123Subdomain)...)
	errs = append(errs, fields.Name(spec.Application, path.Child("application"), validation.IsDNS1123Subdomain)...)
	if spec.Release == "" {
		if len(spec.Metadata)+len(spec.Stages) > 0 {
			errs = append(errs, field.Required(path.Child("release"), "metadata and stages are those of a release"))
		}
	} else {
		errs = append(errs, fields.Name(spec.Release, path.Child("release"), validation.IsDNS1123Subdomain)...)
		if len(spec.Objects) > 0 {
			errs = append(errs, field.Forbidden(path.Child("objects"), "objects are those of an application"))
		}
	}
	if len(spec.Stages) > mostRecordStages {
		return append(errs, field.TooMany(path.Child("stages"), len(spec.Stages), mostRecordStages))
	}
	k := &kept{}
	k.take(path.Child("metadata"), sizesOf(spec.Metadata))
	for i := range spec.Stages {
		k.take(path.Child("stages").Index(i).Child("metadata"), sizesOf(spec.Stages[i].Metadata))
	}
	k.take(path.Child("objects"), sizesOf(spec.Objects))
	if k.bytes > mostRecordBytes {
		k.errs = append(k.errs, field.Forbidden(path, fmt.Sprintf("a plugin keeps at most %d bytes in one record, and this has %d", mostRecordBytes, k.bytes)))
	}
	return append(errs, k.errs...)
}

// kept adds up what a record holds.
type kept struct {
	bytes int
	errs  field.ErrorList
}

// take counts values, of which the sizes are given by their keys.
func (k *kept) take(path *field.Path, sizes map[string]int) {
	if len(sizes) > mostRecordKeys {
		k.errs = append(k.errs, field.TooMany(path, len(sizes), mostRecordKeys))
		return
	}
	for _, key := range slices.Sorted(maps.Keys(sizes)) {
		if key == "" || len(key) > mostRecordKey {
			k.errs = append(k.errs, field.Invalid(path, fmt.Sprintf("%.40q", key), fmt.Sprintf("a key has from 1 to %d bytes", mostRecordKey)))
		}
		k.bytes += len(key) + sizes[key]
	}
}

func sizesOf[V string | []byte](values map[string]V) map[string]int {
	out := make(map[string]int, len(values))
	for key, value := range values {
		out[key] = len(value)
	}
	return out
}

// ValidatePluginRecordUpdate refuses to have a record be that of something else.
func ValidatePluginRecordUpdate(record, old *v1alpha1.PluginRecord) field.ErrorList {
	errs := append(apivalidation.ValidateObjectMetaUpdate(&record.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata")), ValidatePluginRecord(record)...)
	path := field.NewPath("spec")
	errs = append(errs, apivalidation.ValidateImmutableField(record.Spec.Plugin, old.Spec.Plugin, path.Child("plugin"))...)
	errs = append(errs, apivalidation.ValidateImmutableField(record.Spec.Application, old.Spec.Application, path.Child("application"))...)
	return append(errs, apivalidation.ValidateImmutableField(record.Spec.Release, old.Spec.Release, path.Child("release"))...)
}
