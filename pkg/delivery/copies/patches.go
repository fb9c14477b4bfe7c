package copies

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1/yamlpath"
)

// mostDocument bounds what a document in a field may become, in bytes: no object is larger.
const mostDocument = 1 << 20

// patched returns the objects with the changes of patches, and the keys of those that have been changed. It leaves the objects as they are.
func patched(objects []*unstructured.Unstructured, patches []v1alpha1.VariantPatch) ([]*unstructured.Unstructured, map[string]*field.Path, error) {
	out, changed := slices.Clone(objects), map[string]*field.Path{}
	for i := range patches {
		at, target := field.NewPath("patches").Index(i), patches[i].Target
		key := target.Kind + "/" + target.Name
		place := slices.IndexFunc(out, func(object *unstructured.Unstructured) bool { return Key(object) == key })
		if place < 0 {
			return nil, nil, field.Invalid(at.Child("target"), key, "there is no such object among the manifests")
		}
		if changed[key] == nil {
			out[place], changed[key] = out[place].DeepCopy(), at.Child("target")
		}
		if err := patch(out[place], &patches[i], at); err != nil {
			return nil, nil, err
		}
		if found := out[place]; Key(found) != key || found.GetAPIVersion() != objects[place].GetAPIVersion() || found.GetNamespace() != objects[place].GetNamespace() {
			return nil, nil, field.Invalid(at, key, "it may not become another object")
		}
	}
	return out, changed, nil
}

// patch changes an object, or the document in one of its fields.
func patch(object *unstructured.Unstructured, of *v1alpha1.VariantPatch, at *field.Path) error {
	if of.Target.DocumentRoot == "" {
		return replace(object.Object, of.YAMLOps, at)
	}
	root, err := yamlpath.Parse(of.Target.DocumentRoot)
	refuse := func(err error) error {
		return field.Invalid(at.Child("target", "documentRoot"), of.Target.DocumentRoot, fmt.Sprintf("%s: %v", Key(object), err))
	}
	if err != nil {
		return refuse(err)
	}
	value, err := root.Get(object.Object)
	if err != nil {
		return refuse(err)
	}
	text, is := value.(string)
	if !is {
		return refuse(fmt.Errorf("the field holds no text"))
	}
	document, err := yamlpath.Value(text)
	if err != nil {
		return refuse(fmt.Errorf("the text %w", err))
	}
	if err := replace(document, of.YAMLOps, at); err != nil {
		return err
	}
	written, err := yamlpath.Text(document, text)
	if err == nil && len(written) > mostDocument {
		err = fmt.Errorf("the text would have %d bytes, and %d are allowed", len(written), mostDocument)
	}
	if err == nil {
		err = root.Replace(object.Object, written)
	}
	if err != nil {
		return refuse(err)
	}
	return nil
}

// replace carries out the changes of a patch.
func replace(document any, ops []v1alpha1.VariantPatchOp, at *field.Path) error {
	for i, op := range ops {
		at := at.Child("yamlOps").Index(i)
		path, err := yamlpath.Parse(op.Path)
		if err != nil {
			return field.Invalid(at.Child("path"), op.Path, err.Error())
		}
		value, err := yamlpath.Value(op.Value)
		if err != nil {
			return field.Invalid(at.Child("value"), field.OmitValueType{}, err.Error())
		}
		if err := path.Replace(document, value); err != nil {
			return field.Invalid(at.Child("path"), op.Path, err.Error())
		}
	}
	return nil
}

// unused refuses a patch of an object that no copy is made of: nothing would come of it.
func unused(changed map[string]*field.Path, made map[string]bool) error {
	for _, key := range slices.Sorted(maps.Keys(changed)) {
		if !made[key] {
			return field.Invalid(changed[key], key, "no copy is made of it: copies have the workloads, the ConfigMaps and Secrets that these refer to, and the Service if createService is set")
		}
	}
	return nil
}
