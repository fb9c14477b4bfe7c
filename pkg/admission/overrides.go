package admission

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// overrides asks for a right of its own of who writes the overrides of a policy, or has them change other workloads: what clusters hold is
// not what its users have written, then. Others may go on changing the rest of such a policy.
type overrides struct {
	*admission.Handler
	authorizer authorizer.Authorizer
}

var _ admission.ValidationInterface = &overrides{}

// SetAuthorizer implements initializer.WantsAuthorizer.
func (p *overrides) SetAuthorizer(a authorizer.Authorizer) { p.authorizer = a }

// ValidateInitialization implements admission.InitializationValidator.
func (p *overrides) ValidateInitialization() error {
	if p.authorizer == nil {
		return errors.New(OverridesPlugin + " needs an authorizer")
	}
	return nil
}

// Validate refuses overrides to those who may not write them.
func (p *overrides) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetSubresource() != "" {
		return nil
	}
	now, isPolicy := overridingOf(a.GetObject())
	was, _ := overridingOf(a.GetOldObject())
	if !isPolicy || len(now.overrides) == 0 && len(was.overrides) == 0 || a.GetOperation() == admission.Update && now.same(was) {
		return nil
	}
	decision, reason, err := p.authorizer.Authorize(ctx, authorizer.AttributesRecord{
		User: a.GetUserInfo(), Verb: v1alpha1.VerbOverride, Namespace: a.GetNamespace(), Name: a.GetName(), ResourceRequest: true,
		APIGroup: a.GetResource().Group, APIVersion: a.GetResource().Version, Resource: a.GetResource().Resource,
	})
	if decision == authorizer.DecisionAllow {
		return nil
	}
	resource := a.GetResource().GroupResource()
	detail := fmt.Sprintf("%s: you need the right to %q %s", field.NewPath("spec", "overrides"), v1alpha1.VerbOverride, resource)
	if a.GetNamespace() != "" {
		detail += fmt.Sprintf(" in namespace %q", a.GetNamespace())
	}
	return lacksRight(a, detail, reason, err)
}

// overriding is what of a policy says which workloads it changes, and how.
type overriding struct {
	overrides []v1alpha1.Override
	workloads *v1alpha1.WorkloadSelector
	within    *metav1.LabelSelector
}

func overridingOf(obj runtime.Object) (overriding, bool) {
	switch p := obj.(type) {
	case *v1alpha1.PlacementPolicy:
		if p != nil {
			return overriding{p.Spec.Overrides, p.Spec.Workloads, nil}, true
		}
	case *v1alpha1.ClusterPlacementPolicy:
		if p != nil {
			return overriding{p.Spec.Overrides, p.Spec.Workloads, p.Spec.NamespaceSelector}, true
		}
	}
	return overriding{}, false
}

func (o overriding) same(other overriding) bool {
	return equality.Semantic.DeepEqual(o.overrides, other.overrides) && equality.Semantic.DeepEqual(o.workloads, other.workloads) &&
		equality.Semantic.DeepEqual(o.within, other.within)
}
