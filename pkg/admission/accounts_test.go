package admission

import (
	"context"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/utils/ptr"

	delivery "github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

// impersonator is an authorizer that lets everybody act as one ServiceAccount of namespace shop.
type impersonator struct {
	asked
	account string
}

func (i impersonator) Authorize(_ context.Context, of authorizer.Attributes) (authorizer.Decision, string, error) {
	if of.GetVerb() == "impersonate" && of.GetResource() == "serviceaccounts" && of.GetAPIGroup() == "" && of.GetNamespace() == "shop" && of.GetName() == i.account {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

func TestAnApplicationNamesWhomItsWriterMayBe(t *testing.T) {
	app := func(account string, change ...func(*delivery.ApplicationSpec)) *delivery.Application {
		out := &delivery.Application{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: delivery.ApplicationSpec{ServiceAccountName: account}}
		for _, c := range change {
			c(&out.Spec)
		}
		return out
	}
	prunes := func(spec *delivery.ApplicationSpec) { spec.Prune = ptr.To(true) }
	stopped := func(spec *delivery.ApplicationSpec) { spec.Suspend, spec.Revision = true, "web-v1" }
	for name, test := range map[string]struct {
		object, old runtime.Object
		subresource string
		refused     string
	}{
		"who may be it names it":                       {object: app("deployer")},
		"who may not does not":                         {object: app("admin"), refused: `spec.serviceAccountName: you need the right to "impersonate" ServiceAccount "admin" in namespace "shop"`},
		"nor later":                                    {old: app(""), object: app("admin"), refused: `"admin"`},
		"nor in place of another":                      {old: app("deployer"), object: app("admin"), refused: `"admin"`},
		"who names none needs no right":                {object: app("")},
		"nor who takes it away":                        {old: app("admin"), object: app("")},
		"nor who changes nothing":                      {old: app("admin"), object: app("admin")},
		"who changes what is done by its rights does":  {old: app("admin"), object: app("admin", prunes), refused: `"admin"`},
		"and may, if he may be it":                     {old: app("deployer"), object: app("deployer", prunes)},
		"who stops it, or pins a revision, needs none": {old: app("admin"), object: app("admin", stopped)},
		"a status is no spec":                          {old: app("admin"), object: app("admin", prunes), subresource: "status"},
		"other kinds name nobody":                      {object: &delivery.Release{}},
	} {
		t.Run(name, func(t *testing.T) {
			operation := admission.Update
			if test.old == nil {
				operation = admission.Create
			}
			plugin := &accounts{Handler: admission.NewHandler(admission.Create, admission.Update)}
			if err := plugin.ValidateInitialization(); err == nil {
				t.Error("it does without an authorizer")
			}
			plugin.SetAuthorizer(impersonator{account: "deployer"})
			err := plugin.Validate(t.Context(), admission.NewAttributesRecord(test.object, test.old, delivery.SchemeGroupVersion.WithKind("Application"), "shop", "web",
				delivery.SchemeGroupVersion.WithResource("applications"), test.subresource, operation, nil, false, &user.DefaultInfo{Name: "mallory"}), nil)
			if test.refused == "" && err != nil || test.refused != "" && (err == nil || !strings.Contains(err.Error(), test.refused)) {
				t.Errorf("answer %v, want %q", err, test.refused)
			}
		})
	}
}
