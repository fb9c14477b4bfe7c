package v1alpha1

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// pinAll is the value of AnnotationClusters that stands for all clusters that are schedulable.
const pinAll = "*"

// Pin is the value of AnnotationClusters: where the user wants a workload, or the workloads of a namespace, to run.
//
// +k8s:deepcopy-gen=false
// +k8s:openapi-gen=false
type Pin struct {
	// All says that every schedulable cluster is meant. Names is empty then.
	All bool
	// Names are the clusters that are meant, sorted, each one once. They need not have joined.
	Names []string
}

// ParsePin reads the value of AnnotationClusters. Spaces around names are ignored, and naming a cluster twice means the same as
// naming it once. An error says what is wrong with the value, for a person who wrote it.
func ParsePin(value string) (Pin, error) {
	if strings.TrimSpace(value) == "" {
		return Pin{}, errors.New(`names no cluster: write names separated by commas or "*", or remove the annotation to unpin`)
	}
	var names []string
	for i, entry := range strings.Split(value, ",") {
		name := strings.TrimSpace(entry)
		if err := checkPinEntry(name); err != nil {
			return Pin{}, fmt.Errorf("entry %d: %w", i+1, err)
		}
		names = append(names, name)
	}
	slices.Sort(names)
	names = slices.Compact(names)

	if !slices.Contains(names, pinAll) {
		return Pin{Names: names}, nil
	}
	if len(names) > 1 {
		return Pin{}, errors.New(`"*" stands for all clusters and may not be combined with names`)
	}
	return Pin{All: true}, nil
}

func checkPinEntry(name string) error {
	if name == "" {
		return errors.New("is blank")
	}
	if name == pinAll {
		return nil
	}
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
		return fmt.Errorf("%q is not a cluster name: %s", name, strings.Join(problems, "; "))
	}
	return nil
}

// ValidatePin refuses a value of AnnotationClusters that ParsePin cannot read.
func ValidatePin(value string, path *field.Path) field.ErrorList {
	if _, err := ParsePin(value); err != nil {
		return field.ErrorList{field.Invalid(path, value, err.Error())}
	}
	return nil
}

// Selects tells whether the cluster of this name is meant.
func (p Pin) Selects(cluster string) bool {
	return p.All || slices.Contains(p.Names, cluster)
}

// String writes the pin as ParsePin reads it.
func (p Pin) String() string {
	if p.All {
		return pinAll
	}
	return strings.Join(p.Names, ",")
}
