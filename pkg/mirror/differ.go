package mirror

import (
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/api/equality"
)

// differingField names the first field by which two structs of one type differ, for messages.
func differingField(have, want any) string {
	a, b := reflect.ValueOf(have).Elem(), reflect.ValueOf(want).Elem()
	for i := range a.NumField() {
		if equality.Semantic.DeepEqual(a.Field(i).Interface(), b.Field(i).Interface()) {
			continue
		}
		return fmt.Sprintf("field %s is not the template's, nor what its cluster may say of it", a.Type().Field(i).Name)
	}
	return "they are the same"
}
