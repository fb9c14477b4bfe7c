package v1alpha1

import (
	"fmt"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	// DefaultDrain is how long the last replicas behind an address stay after it has left the status, where nobody says otherwise. Most records
	// of DNS that load balancers get live no longer.
	DefaultDrain = 30 * time.Second
	// longestDrain bounds what a user may ask for: as long, a cluster cannot be drained.
	longestDrain = time.Hour
)

// ParseDrain reads a value of AnnotationDrainSeconds.
func ParseDrain(value string) (time.Duration, error) {
	seconds, err := strconv.ParseUint(value, 10, 32)
	if drain := time.Duration(seconds) * time.Second; err == nil && drain <= longestDrain && strconv.FormatUint(seconds, 10) == value {
		return drain, nil
	}
	return 0, fmt.Errorf("must be a whole number of seconds from 0 to %d", longestDrain/time.Second)
}

// ValidateDrain refuses a value of AnnotationDrainSeconds that ParseDrain cannot read.
func ValidateDrain(value string, path *field.Path) field.ErrorList {
	if _, err := ParseDrain(value); err != nil {
		return field.ErrorList{field.Invalid(path, value, err.Error())}
	}
	return nil
}

// DrainOf returns what annotations say of how long to drain, false if they say nothing that can be read.
func DrainOf(annotations map[string]string) (drain time.Duration, said bool) {
	value, said := annotations[AnnotationDrainSeconds]
	if !said {
		return 0, false
	}
	drain, err := ParseDrain(value)
	return drain, err == nil
}
