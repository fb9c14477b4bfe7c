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

	delivery "github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

// mayUse is an authorizer that lets one user use one plugin.
type mayUse struct {
	asked
	user, plugin string
}

func (m mayUse) Authorize(_ context.Context, of authorizer.Attributes) (authorizer.Decision, string, error) {
	if of.GetVerb() == "use" && of.GetResource() == "plugins" && of.GetAPIGroup() == delivery.GroupName && of.GetNamespace() == "" &&
		of.GetName() == m.plugin && of.GetUser().GetName() == m.user && of.IsResourceRequest() {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

func TestAnApplicationNamesThePluginsThatItsWriterMayUse(t *testing.T) {
	app := func(change func(*delivery.ApplicationSpec), plugins ...string) *delivery.Application {
		out := &delivery.Application{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
		for _, name := range plugins {
			out.Spec.Plugins = append(out.Spec.Plugins, delivery.ApplicationPlugin{Name: name})
		}
		if change != nil {
			change(&out.Spec)
		}
		return out
	}
	elsewhere := func(spec *delivery.ApplicationSpec) {
		spec.Source.Git = &delivery.GitSource{URL: "https://git.example/evil.git"}
	}
	production := func(spec *delivery.ApplicationSpec) { spec.Plugins[0].DeployTargets = []string{"production"} }
	stopped := func(spec *delivery.ApplicationSpec) { spec.Suspend = true }
	for name, test := range map[string]struct {
		who         string
		object, old runtime.Object
		subresource string
		refused     string
	}{
		"who may use it names it":                   {who: "alice", object: app(nil, "terraform")},
		"who may not does not":                      {who: "mallory", object: app(nil, "terraform"), refused: `spec.plugins[0].name: you need the right to "use" Plugin "terraform"`},
		"nor another one beside it":                 {who: "alice", object: app(nil, "terraform", "ecs"), refused: `spec.plugins[1].name: you need the right to "use" Plugin "ecs"`},
		"nor later":                                 {who: "mallory", old: app(nil), object: app(nil, "terraform"), refused: `"terraform"`},
		"nor has it deliver something else":         {who: "mallory", old: app(nil, "terraform"), object: app(elsewhere, "terraform"), refused: `"terraform"`},
		"nor go to another place":                   {who: "mallory", old: app(nil, "terraform"), object: app(production, "terraform"), refused: `"terraform"`},
		"who may use it changes what it does":       {who: "alice", old: app(nil, "terraform"), object: app(elsewhere, "terraform")},
		"who stops it needs no right":               {who: "mallory", old: app(nil, "terraform"), object: app(stopped, "terraform")},
		"nor who takes it away":                     {who: "mallory", old: app(nil, "terraform"), object: app(nil)},
		"nor who names none":                        {who: "mallory", object: app(elsewhere)},
		"a plugin without a name is for validation": {who: "mallory", object: app(nil, "")},
		"a status is no spec":                       {who: "mallory", old: app(nil), object: app(nil, "terraform"), subresource: "status"},
		"other kinds use no plugins":                {who: "mallory", object: &delivery.Release{}},
	} {
		t.Run(name, func(t *testing.T) {
			operation := admission.Update
			if test.old == nil {
				operation = admission.Create
			}
			plugin := &used{Handler: admission.NewHandler(admission.Create, admission.Update)}
			if err := plugin.ValidateInitialization(); err == nil {
				t.Error("it does without an authorizer")
			}
			plugin.SetAuthorizer(mayUse{user: "alice", plugin: "terraform"})
			err := plugin.Validate(t.Context(), admission.NewAttributesRecord(test.object, test.old, delivery.SchemeGroupVersion.WithKind("Application"), "shop", "web",
				delivery.SchemeGroupVersion.WithResource("applications"), test.subresource, operation, nil, false, &user.DefaultInfo{Name: test.who}), nil)
			if test.refused == "" && err != nil || test.refused != "" && (err == nil || !strings.Contains(err.Error(), test.refused)) {
				t.Errorf("answer %v, want %q", err, test.refused)
			}
		})
	}
}
