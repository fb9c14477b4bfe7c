package text

import (
	"reflect"
	"strings"
	"sync"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/resource"
)

// replacement stands for bytes that are no UTF-8, as in what encoding/json reads.
const replacement = "\uFFFD"

// Repair makes all texts in what object points to valid UTF-8, as they are when they have come as JSON. Protobuf lets anything pass, and what
// is stored so is not what is read later. It looks into exported fields but not into interfaces, and changes nothing where nothing is wrong.
func Repair(object any) {
	if v := reflect.ValueOf(object); v.Kind() == reflect.Pointer && !v.IsNil() {
		repair(v.Elem())
	}
}

func repair(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		if s := v.String(); !utf8.ValidString(s) {
			v.SetString(strings.ToValidUTF8(s, replacement))
		}
	case reflect.Pointer:
		if !v.IsNil() {
			repair(v.Elem())
		}
	case reflect.Struct:
		for _, i := range fieldsOf(v.Type()) {
			repair(v.Field(i))
		}
	case reflect.Slice, reflect.Array:
		if v.Len() > 0 && v.Type().Elem().Kind() != reflect.Uint8 {
			for i := range v.Len() {
				repair(v.Index(i))
			}
		}
	case reflect.Map:
		repairMap(v)
	}
}

// fields are those that are looked into, by the type of a struct.
var fields sync.Map

// fieldsOf returns the fields of a struct that may hold a text. A quantity has been parsed.
func fieldsOf(t reflect.Type) []int {
	if known, ok := fields.Load(t); ok {
		return known.([]int)
	}
	var found []int
	for i := range t.NumField() {
		if f := t.Field(i); f.IsExported() && f.Type != reflect.TypeFor[resource.Quantity]() {
			switch f.Type.Kind() {
			case reflect.String, reflect.Pointer, reflect.Struct, reflect.Slice, reflect.Array, reflect.Map:
				found = append(found, i)
			}
		}
	}
	fields.Store(t, found)
	return found
}

// repairMap also repairs the keys.
func repairMap(m reflect.Value) {
	for iter := m.MapRange(); iter.Next(); {
		key, value := iter.Key(), iter.Value()
		if !wrong(key) && !wrong(value) {
			continue
		}
		m.SetMapIndex(key, reflect.Value{})
		m.SetMapIndex(repaired(key), repaired(value))
	}
}

// wrong reports whether an entry of a map has to be replaced. What it points to is repaired in place.
func wrong(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.String:
		return !utf8.ValidString(v.String())
	case reflect.Pointer, reflect.Slice, reflect.Map:
		repair(v)
		return false
	case reflect.Struct:
		return v.Type() != reflect.TypeFor[resource.Quantity]() && len(fieldsOf(v.Type())) > 0
	}
	return false
}

// repaired returns a copy that is repaired.
func repaired(v reflect.Value) reflect.Value {
	out := reflect.New(v.Type()).Elem()
	out.Set(v)
	repair(out)
	return out
}
