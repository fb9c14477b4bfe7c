package render

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"regexp"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/kustomize/api/provider"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// mostPatches bounds the patches of one target.
const mostPatches = 100

// patched applies patches to objects by way of kustomize, one after the other, and warns of those that change nothing.
func patched(objects []parsed, patches []Patch, limits Limits) (_ []parsed, warnings []string, err error) {
	if len(patches) > mostPatches {
		return nil, nil, fmt.Errorf("%w: %d patches, and %d are allowed", ErrTooLarge, len(patches), mostPatches)
	}
	for i, patch := range patches {
		name := fmt.Sprintf("patch %d", i+1)
		after, err := overlay(objects, patch, name, limits)
		if err != nil {
			return nil, nil, err
		}
		if same(objects, after) {
			warnings = append(warnings, name+" changes nothing")
		}
		objects = after
	}
	return objects, warnings, nil
}

func same(a, b []parsed) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !equality.Semantic.DeepEqual(a[i].object.Object, b[i].object.Object) {
			return false
		}
	}
	return true
}

// overlay builds a kustomization of objects and a patch.
func overlay(objects []parsed, patch Patch, name string, limits Limits) ([]parsed, error) {
	const manifests = "objects.yaml"
	var all bytes.Buffer
	for _, p := range objects {
		content, err := p.object.MarshalJSON()
		if err != nil {
			return nil, err
		}
		all.WriteString("---\n")
		all.Write(content)
	}
	selector, err := selectorOf(patch)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrInvalid, name, err)
	}
	if err := selects(all.Bytes(), *selector); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrInvalid, name, err)
	}
	k := types.Kustomization{Resources: []string{manifests}, Patches: []types.Patch{{Patch: patch.Patch, Target: selector}}}
	k.FixKustomization()
	content, err := yaml.Marshal(k)
	if err != nil {
		return nil, err
	}
	seen := filesys.MakeFsInMemory()
	for file, content := range map[string][]byte{manifests: all.Bytes(), "kustomization.yaml": content} {
		if err := seen.WriteFile(path.Join(root, file), content); err != nil {
			return nil, err
		}
	}
	out, err := build(seen, root, name, limits)
	if err != nil {
		return nil, err
	}
	if len(out) == len(objects) {
		for i := range out {
			out[i].from = objects[i].from
		}
	}
	return out, nil
}

// selectorOf returns what a patch selects. One without a target is about the object that it names, whatever namespace that is in by now.
func selectorOf(patch Patch) (*types.Selector, error) {
	out := &types.Selector{}
	if t := patch.Target; t != nil {
		out.Group, out.Version, out.Kind, out.Name, out.Namespace, out.LabelSelector = t.Group, t.Version, t.Kind, t.Name, t.Namespace, t.LabelSelector
		return out, nil
	}
	object, err := decode([]byte(patch.Patch))
	if err != nil || object == nil || object.GetName() == "" {
		return nil, errors.New("it has no target, and is no object with an apiVersion, a kind and a name either")
	}
	gvk := object.GroupVersionKind()
	out.Group, out.Version, out.Kind, out.Name = gvk.Group, gvk.Version, gvk.Kind, regexp.QuoteMeta(object.GetName())
	return out, nil
}

// selects is an error if a selector selects nothing, which kustomize would pass over.
func selects(manifests []byte, selector types.Selector) error {
	all, err := resmap.NewFactory(provider.NewDefaultDepProvider().GetResourceFactory()).NewResMapFromBytes(manifests)
	if err != nil {
		return err
	}
	found, err := all.Select(selector)
	if err == nil && len(found) == 0 {
		err = errors.New("it selects no object")
	}
	return err
}
