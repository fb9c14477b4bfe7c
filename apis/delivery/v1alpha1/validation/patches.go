package validation

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1/yamlpath"
)

// mostPatched bounds the patches of a stage, in bytes: releases record them with the variants that they are for.
const mostPatched = 64 << 10

func validateVariantPatches(patches []v1alpha1.VariantPatch, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	size := 0
	for i := range patches {
		errs = append(errs, validateVariantPatch(&patches[i], path.Index(i))...)
		target := &patches[i].Target
		size += len(target.Kind) + len(target.Name) + len(target.DocumentRoot)
		for _, op := range patches[i].YAMLOps {
			size += len(op.Path) + len(op.Value)
		}
	}
	if size > mostPatched {
		errs = append(errs, field.Invalid(path, field.OmitValueType{}, fmt.Sprintf("must not have more than %d bytes, and has %d", mostPatched, size)))
	}
	return errs
}

func validateVariantPatch(patch *v1alpha1.VariantPatch, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, part := range []struct{ field, value string }{{"kind", patch.Target.Kind}, {"name", patch.Target.Name}} {
		if part.value == "" {
			errs = append(errs, field.Required(path.Child("target", part.field), ""))
		}
	}
	root := patch.Target.DocumentRoot
	if _, err := yamlpath.Parse(root); root != "" && err != nil {
		errs = append(errs, field.Invalid(path.Child("target", "documentRoot"), root, err.Error()))
	}
	if len(patch.YAMLOps) == 0 {
		errs = append(errs, field.Required(path.Child("yamlOps"), ""))
	}
	for i, op := range patch.YAMLOps {
		at := path.Child("yamlOps").Index(i)
		if op.Op != "" && op.Op != v1alpha1.PatchReplace {
			errs = append(errs, field.NotSupported(at.Child("op"), op.Op, []string{v1alpha1.PatchReplace}))
		}
		switch to, err := yamlpath.Parse(op.Path); {
		case err != nil:
			errs = append(errs, field.Invalid(at.Child("path"), op.Path, err.Error()))
		case root == "" && unpatchable(to) != "":
			errs = append(errs, field.Forbidden(at.Child("path"), unpatchable(to)))
		}
		if op.Value == "" {
			errs = append(errs, field.Required(at.Child("value"), `an empty text is written ""`))
		} else if _, err := yamlpath.Value(op.Value); err != nil {
			errs = append(errs, field.Invalid(at.Child("value"), field.OmitValueType{}, err.Error()))
		}
	}
	return errs
}

// unpatchable says why a patch may not change a field of an object, "" if it may.
func unpatchable(to yamlpath.Path) string {
	first, second := to[0].Name, ""
	if len(to) > 1 {
		second = to[1].Name
	}
	switch {
	case slices.Contains([]string{"apiVersion", "kind", "status"}, first), first == "metadata" && second != "labels" && second != "annotations":
		return "which object it is may not be changed: of its metadata, labels and annotations may"
	case first == "spec" && second == "replicas" && len(to) == 2:
		return "the option replicas says how many there are"
	}
	return ""
}

// patchesOnTheWay are those of the canary that there is at some stage of a pipeline, nil while there is none.
type patchesOnTheWay struct{ canary *[]v1alpha1.VariantPatch }

// pass goes through a stage, and refuses other patches than those of the canary that is there: a canary is one object in all of its clusters.
func (p *patchesOnTheWay) pass(stage *v1alpha1.Stage, options any, path *field.Path) field.ErrorList {
	switch v1alpha1.CanonicalStageName(stage.Name) {
	case v1alpha1.StageCanaryClean, v1alpha1.StageSync:
		if len(stage.Targets) == 0 {
			p.canary = nil
		}
		return nil
	}
	rollout, is := options.(*v1alpha1.CanaryRolloutOptions)
	if !is {
		return nil
	}
	before := p.canary
	p.canary = &rollout.Patches
	if before == nil || equality.Semantic.DeepEqual(*before, rollout.Patches) {
		return nil
	}
	return field.ErrorList{field.Invalid(path.Child("with", "patches"), field.OmitValueType{}, "must be those of the canary that an earlier stage has added: it is the same in all clusters")}
}
