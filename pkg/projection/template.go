package projection

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/utils/dump"
)

// TemplateHash returns what a Deployment controller labels the ReplicaSet of this pod template with, as long as it meets no hash
// collision: ComputeHash in k8s.io/kubernetes/pkg/controller/controller_utils.go by way of DeepHashObject in
// k8s.io/kubernetes/pkg/util/hash/hash.go.
//
// The controller hashes every field as it lies in memory, in which a quantity remembers whether it was ever printed, and how it was
// once written. The hash here is that of the template as it comes out of storage, so that it does not depend on who looked at it.
func TemplateHash(template *corev1.PodTemplateSpec) string { return CollidedHash(template, 0) }

// CollidedHash is TemplateHash for an object that has met so many hash collisions.
func CollidedHash(template *corev1.PodTemplateSpec, collisions int32) string {
	stored := template.DeepCopy()
	settleQuantities(reflect.ValueOf(stored))
	hash := fnv.New32a()
	// Hash.Write never returns an error.
	_, _ = fmt.Fprintf(hash, "%v", dump.ForHash(*stored))
	if collisions > 0 {
		_, _ = hash.Write(binary.LittleEndian.AppendUint64(nil, uint64(collisions)))
	}
	return rand.SafeEncodeString(fmt.Sprint(hash.Sum32()))
}

var quantityType = reflect.TypeFor[resource.Quantity]()

// settleQuantities gives every quantity in v the form that it has after being written and read again.
func settleQuantities(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			settleQuantities(v.Elem())
		}
	case reflect.Slice:
		if holdsQuantities(v.Type().Elem()) {
			for i := range v.Len() {
				settleQuantities(v.Index(i))
			}
		}
	case reflect.Map:
		if v.Type().Elem() == quantityType {
			for _, key := range v.MapKeys() {
				v.SetMapIndex(key, reflect.ValueOf(settled(v.MapIndex(key).Interface().(resource.Quantity))))
			}
		}
	case reflect.Struct:
		if v.Type() == quantityType {
			v.Set(reflect.ValueOf(settled(v.Interface().(resource.Quantity))))
			return
		}
		for i := range v.NumField() {
			if field := v.Field(i); field.CanSet() {
				settleQuantities(field)
			}
		}
	}
}

// holdsQuantities spares the walk over long lists that cannot hold any.
func holdsQuantities(element reflect.Type) bool {
	return element.Kind() == reflect.Struct || element.Kind() == reflect.Pointer
}

func settled(q resource.Quantity) resource.Quantity {
	out, err := resource.ParseQuantity(q.String())
	if err != nil {
		// A quantity always parses its own text; keeping it is the harmless answer if that ever changes.
		return q
	}
	return out
}
