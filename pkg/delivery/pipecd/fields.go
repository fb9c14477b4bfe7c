package pipecd

import (
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// fields is an object of the file. What is taken of it is known; done refuses the rest.
type fields struct {
	reading *reading
	path    *field.Path
	values  map[string]any
	taken   map[string]bool
}

// at is the path of a field.
func (f *fields) at(key string) *field.Path {
	if f.path == nil {
		return field.NewPath(key)
	}
	return f.path.Child(key)
}

// has reports whether a field is set.
func (f *fields) has(key string) bool { return f.values[key] != nil }

// take returns a field, and notes that it is known.
func (f *fields) take(key string) any {
	if f.taken == nil {
		f.taken = map[string]bool{}
	}
	f.taken[key] = true
	return f.values[key]
}

// done refuses the fields that are not known.
func (f *fields) done() {
	for _, key := range slices.Sorted(maps.Keys(f.values)) {
		if !f.taken[key] {
			f.reading.refuse(f.at(key), field.OmitValueType{}, "there is no such field")
		}
	}
}

// ignore notes that nobody acts upon the fields that are set among keys.
func (f *fields) ignore(why string, keys ...string) {
	for _, key := range keys {
		if f.take(key) != nil {
			f.reading.ignore(f.at(key), why)
		}
	}
}

func (r *reading) ignore(at *field.Path, why string) {
	r.out.Unhonoured = append(r.out.Unhonoured, Unhonoured{Path: at.String(), Why: why})
}

// typed returns a field that has a value of type T, or the zero value.
func typed[T any](f *fields, key, kind string) T {
	var zero T
	value := f.take(key)
	if value == nil {
		return zero
	}
	out, ok := value.(T)
	if !ok {
		f.reading.errs = append(f.reading.errs, field.TypeInvalid(f.at(key), field.OmitValueType{}, "must be "+kind))
	}
	return out
}

func (f *fields) text(key string) string { return typed[string](f, key, "a text") }
func (f *fields) flag(key string) bool   { return typed[bool](f, key, "true or false") }

// object returns a field that is an object; one that is not set is empty.
func (f *fields) object(key string) *fields {
	return &fields{reading: f.reading, path: f.at(key), values: typed[map[string]any](f, key, "an object")}
}

func (f *fields) objects(key string) []*fields {
	var out []*fields
	for i, item := range typed[[]any](f, key, "a list") {
		values, ok := item.(map[string]any)
		if !ok {
			f.reading.errs = append(f.reading.errs, field.TypeInvalid(f.at(key).Index(i), field.OmitValueType{}, "must be an object"))
			continue
		}
		out = append(out, &fields{reading: f.reading, path: f.at(key).Index(i), values: values})
	}
	return out
}

func (f *fields) texts(key string) []string {
	var out []string
	for i, item := range typed[[]any](f, key, "a list") {
		text, ok := item.(string)
		if !ok {
			f.reading.errs = append(f.reading.errs, field.TypeInvalid(f.at(key).Index(i), field.OmitValueType{}, "must be a text"))
			continue
		}
		out = append(out, text)
	}
	return out
}

func (f *fields) textMap(key string) map[string]string {
	in := f.object(key)
	if len(in.values) == 0 {
		return nil
	}
	out := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(in.values)) {
		out[name] = in.text(name)
	}
	return out
}

func (f *fields) duration(key string) *metav1.Duration {
	text := f.text(key)
	if text == "" {
		return nil
	}
	out, err := time.ParseDuration(text)
	if err != nil {
		f.reading.refuse(f.at(key), text, "must be a duration, such as 10m")
		return nil
	}
	return &metav1.Duration{Duration: out}
}
