package admission

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	delivery "github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

const (
	// verbUse is the right to have a plugin work for an Application.
	verbUse         = "use"
	resourcePlugins = "plugins"
)

// used lets an Application name a Plugin only for who may use it: a plugin acts with the credentials that an admin has given it. The same goes for who
// changes what such an Application says, or else whoever may write to the namespace could have plugins do anything by way of the Applications of others.
type used struct {
	*admission.Handler
	authorizer authorizer.Authorizer
}

var _ admission.ValidationInterface = &used{}

// SetAuthorizer implements initializer.WantsAuthorizer.
func (p *used) SetAuthorizer(a authorizer.Authorizer) { p.authorizer = a }

// ValidateInitialization implements admission.InitializationValidator.
func (p *used) ValidateInitialization() error {
	if p.authorizer == nil {
		return errors.New(UsedPlugin + " needs an authorizer")
	}
	return nil
}

// Validate refuses plugins to those who may not use them.
func (p *used) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	now, isApplication := a.GetObject().(*delivery.Application)
	if !isApplication || a.GetSubresource() != "" || sameDone(a.GetOldObject(), now) {
		return nil
	}
	for i := range now.Spec.Plugins {
		name := now.Spec.Plugins[i].Name
		if name == "" {
			continue // the right to a resource without a name is that to all of them; validation refuses it
		}
		decision, reason, err := p.authorizer.Authorize(ctx, authorizer.AttributesRecord{
			User: a.GetUserInfo(), Verb: verbUse, Name: name, ResourceRequest: true,
			APIGroup: delivery.GroupName, APIVersion: delivery.SchemeGroupVersion.Version, Resource: resourcePlugins,
		})
		if decision == authorizer.DecisionAllow {
			continue
		}
		at := field.NewPath("spec", "plugins").Index(i).Child("name")
		return lacksRight(a, fmt.Sprintf("%s: you need the right to %q Plugin %q", at, verbUse, name), reason, err)
	}
	return nil
}
