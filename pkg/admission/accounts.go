package admission

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	delivery "github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

// verbImpersonate is the right to act as somebody else.
const verbImpersonate = "impersonate"

// accounts lets an Application name a ServiceAccount only for who may impersonate it: what the Application says is done by its rights. The same
// goes for who changes what such an Application says.
type accounts struct {
	*admission.Handler
	authorizer authorizer.Authorizer
}

var _ admission.ValidationInterface = &accounts{}

// SetAuthorizer implements initializer.WantsAuthorizer.
func (p *accounts) SetAuthorizer(a authorizer.Authorizer) { p.authorizer = a }

// ValidateInitialization implements admission.InitializationValidator.
func (p *accounts) ValidateInitialization() error {
	if p.authorizer == nil {
		return errors.New(AccountsPlugin + " needs an authorizer")
	}
	return nil
}

// Validate refuses a ServiceAccount to those who may not act as it.
func (p *accounts) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	now, isApplication := a.GetObject().(*delivery.Application)
	if !isApplication || a.GetSubresource() != "" || now.Spec.ServiceAccountName == "" || sameDone(a.GetOldObject(), now) {
		return nil
	}
	name := now.Spec.ServiceAccountName
	decision, reason, err := p.authorizer.Authorize(ctx, authorizer.AttributesRecord{
		User: a.GetUserInfo(), Verb: verbImpersonate, Namespace: a.GetNamespace(), Name: name, ResourceRequest: true,
		APIVersion: corev1.SchemeGroupVersion.Version, Resource: "serviceaccounts",
	})
	if decision == authorizer.DecisionAllow {
		return nil
	}
	detail := fmt.Sprintf("%s: you need the right to %q ServiceAccount %q in namespace %q", field.NewPath("spec", "serviceAccountName"), verbImpersonate, name, a.GetNamespace())
	return lacksRight(a, detail, reason, err)
}

// sameDone reports whether an Application has the same done as before. Who may stop it, or choose among its revisions, need not be able to make them.
func sameDone(old runtime.Object, now *delivery.Application) bool {
	before, was := old.(*delivery.Application)
	return was && before != nil && equality.Semantic.DeepEqual(done(before.Spec), done(now.Spec))
}

func done(spec delivery.ApplicationSpec) delivery.ApplicationSpec {
	spec.Revision, spec.Suspend, spec.Trigger, spec.Notifications = "", false, delivery.Trigger{}, nil
	spec.RevisionHistoryLimit, spec.ReleaseHistoryLimit = nil, nil
	return spec
}
