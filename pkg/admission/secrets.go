package admission

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	delivery "github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/secrets"
	"github.com/manifold-dev/manifold/pkg/delivery/weave"
)

// readers lets an Application name a Secret only for who may read it: the server sends what the Secret holds to where the Application says. The same goes for
// who has the Secret that an Application names already used for something else, such as another address. Whoever leaves both as they are is not asked: a
// controller, or a colleague without the right, may write all else.
type readers struct {
	*admission.Handler
	authorizer authorizer.Authorizer
}

var _ admission.ValidationInterface = &readers{}

// SetAuthorizer implements initializer.WantsAuthorizer.
func (p *readers) SetAuthorizer(a authorizer.Authorizer) { p.authorizer = a }

// ValidateInitialization implements admission.InitializationValidator.
func (p *readers) ValidateInitialization() error {
	if p.authorizer == nil {
		return errors.New(SecretsPlugin + " needs an authorizer")
	}
	return nil
}

// Validate refuses Secrets to those who may not read them.
func (p *readers) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	now, isApplication := a.GetObject().(*delivery.Application)
	if !isApplication || a.GetSubresource() != "" {
		return nil
	}
	var known []secrets.Use
	if before, was := a.GetOldObject().(*delivery.Application); was && before != nil {
		known = secrets.Of(&before.Spec)
	}
	may := map[string]bool{"": true} // the right to a resource without a name is that to all of them; validation refuses it
	for _, use := range secrets.Beyond(secrets.Of(&now.Spec), known) {
		if may[use.Name] {
			continue
		}
		right := weave.Right{Verb: "get", Resource: schema.GroupResource{Resource: "secrets"}, Namespace: a.GetNamespace(), Name: use.Name}
		if err := ask(ctx, p.authorizer, a, weave.Need{Path: use.Path, Right: right}); err != nil {
			return err
		}
		may[use.Name] = true
	}
	return nil
}
