package projection

import (
	"bytes"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
)

var quantityType = reflect.TypeFor[resource.Quantity]()

// Covers reports whether live has every label, annotation and field of desired, an object of the same type, with an equal value. What
// desired leaves unset may be anything in live: a default, an allocation, a container that a webhook added.
//
// This is the question whether a strategic merge patch from live to desired would be empty, answered on the typed objects: several
// times as fast, and right where that patch is not. Lists that merge by key may have more elements and another order; other lists are
// one value, whose elements may have more fields. Quantities are equal by amount, however written.
//
// The limit is that of every Kubernetes client: a field whose unset form is its zero value, such as paused: false, is not projected
// and so not put back.
func Covers(desired, live Object) bool {
	if !contains(desired.GetLabels(), live.GetLabels()) || !contains(desired.GetAnnotations(), live.GetAnnotations()) {
		return false
	}
	if content, ok := desired.(*unstructured.Unstructured); ok {
		return coversContent(content.Object, live.(*unstructured.Unstructured).Object)
	}
	return coversFields(reflect.ValueOf(desired).Elem(), reflect.ValueOf(live).Elem())
}

// covers is Covers for a part of an object.
func covers[T any](desired, live *T) bool {
	return coversFields(reflect.ValueOf(desired).Elem(), reflect.ValueOf(live).Elem())
}

func contains(desired, live map[string]string) bool {
	for key, want := range desired {
		if have, ok := live[key]; !ok || have != want {
			return false
		}
	}
	return true
}

var (
	typeMetaType   = reflect.TypeFor[metav1.TypeMeta]()
	objectMetaType = reflect.TypeFor[metav1.ObjectMeta]()
	timeType       = reflect.TypeFor[metav1.Time]()
	intOrStrType   = reflect.TypeFor[intstr.IntOrString]()
	localRefType   = reflect.TypeFor[corev1.LocalObjectReference]()
)

// coversFields compares the fields of two structs of the same type.
func coversFields(desired, live reflect.Value) bool {
	t := desired.Type()
	for i := range t.NumField() {
		field, want := t.Field(i), desired.Field(i)
		if unset(want) || field.Type == typeMetaType || (field.Type == objectMetaType && t.Field(0).Type == typeMetaType) {
			continue
		}
		if want.Kind() == reflect.Slice && mergesByKey(field) {
			if !coversSet(want, live.Field(i)) {
				return false
			}
		} else if !coversValue(want, live.Field(i)) {
			return false
		}
	}
	return true
}

// unset reports whether the field would be left out of the object's JSON.
func unset(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Map, reflect.Slice:
		return v.Len() == 0
	}
	return v.IsZero()
}

// mergesByKey reports whether the elements of a list stand for themselves. The tag patchStrategy says so, and references to Secrets for
// pulling images are of that sort everywhere: clusters are known to add their own to ServiceAccounts, where the tag is missing.
func mergesByKey(field reflect.StructField) bool {
	return strings.HasPrefix(field.Tag.Get("patchStrategy"), "merge") || field.Type.Elem() == localRefType
}

// coversValue compares two values of which desired was set, whatever its value.
func coversValue(desired, live reflect.Value) bool {
	switch desired.Type() {
	case quantityType:
		want, have := desired.Interface().(resource.Quantity), live.Interface().(resource.Quantity)
		return want.Cmp(have) == 0
	case timeType:
		want, have := desired.Interface().(metav1.Time), live.Interface().(metav1.Time)
		return want.Equal(&have)
	case intOrStrType:
		return desired.Interface() == live.Interface()
	}
	switch desired.Kind() {
	case reflect.Struct:
		return coversFields(desired, live)
	case reflect.Pointer:
		return !live.IsNil() && coversValue(desired.Elem(), live.Elem())
	case reflect.Map:
		return coversMap(desired, live)
	case reflect.Slice:
		return coversList(desired, live)
	}
	return desired.Equal(live)
}

func coversMap(desired, live reflect.Value) bool {
	for entries := desired.MapRange(); entries.Next(); {
		have := live.MapIndex(entries.Key())
		if !have.IsValid() || !coversValue(entries.Value(), have) {
			return false
		}
	}
	return true
}

// coversList compares element by element.
func coversList(desired, live reflect.Value) bool {
	if desired.Type().Elem().Kind() == reflect.Uint8 {
		return bytes.Equal(desired.Bytes(), live.Bytes())
	}
	if desired.Len() != live.Len() {
		return false
	}
	for i := range desired.Len() {
		if !coversValue(desired.Index(i), live.Index(i)) {
			return false
		}
	}
	return true
}

// coversSet finds an element of live for each one of desired. Their keys are fields like any other, so comparing all of them never
// takes the wrong one, even where the key of the patch alone is ambiguous (two ports of one number, for TCP and UDP).
func coversSet(desired, live reflect.Value) bool {
	for i := range desired.Len() {
		want := desired.Index(i)
		// Nearly always the order is the same.
		if i < live.Len() && coversValue(want, live.Index(i)) {
			continue
		}
		if !found(want, live) {
			return false
		}
	}
	return true
}

func found(want, live reflect.Value) bool {
	for i := range live.Len() {
		if coversValue(want, live.Index(i)) {
			return true
		}
	}
	return false
}

// isNil also sees the nil pointer in an interface, which is what a lister's not found easily turns into.
func isNil(o Object) bool { return o == nil || reflect.ValueOf(o).IsNil() }
