package admission

import (
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/warning"

	delivery "github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// theApplications select what has the label app=web, in namespace shop.
type theApplications []string

func (theApplications) Known() bool { return true }

func (names theApplications) In(namespace string) (out []*delivery.Application) {
	for _, name := range names {
		app := &delivery.Application{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		app.Spec.Source.Selector = &delivery.ObjectSelector{LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}
		out = append(out, app)
	}
	return out
}

var (
	deploymentsResource = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	configMapsResource  = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
)

// write is one write of an object, and what it is to be afterwards.
type write struct {
	resource         schema.GroupVersionResource
	user, sub        string
	applications     theApplications
	old, obj         map[string]string // annotations; without old it is created
	oldApp, app      string            // the label that is selected by
	want             string
	warns            bool
	reinvoked, dryly bool
}

func TestWhatIsNewAwaitsTheFirstRelease(t *testing.T) {
	placed := map[string]string{v1alpha1.AnnotationPlacement: `{"east":{"replicas":1}}`}
	reported := map[string]string{v1alpha1.AnnotationStatus: `{"east":{"replicas":1}}`}
	marked := func(by string, more ...map[string]string) map[string]string {
		out := map[string]string{v1alpha1.AnnotationAwaits: by}
		for _, m := range more {
			maps.Copy(out, m)
		}
		return out
	}
	web := theApplications{"web"}
	for name, test := range map[string]write{
		"a workload that is selected":                      {applications: web, app: "web", want: "web", warns: true},
		"also in a dry run":                                {applications: web, app: "web", want: "web", warns: true, dryly: true},
		"also when webhooks have it looked at again":       {applications: web, app: "web", want: "web", warns: true, reinvoked: true},
		"what goes beside one":                             {resource: configMapsResource, applications: web, app: "web", want: "web", warns: true},
		"nothing that is not selected":                     {applications: web, app: "api"},
		"nothing without an Application":                   {app: "web"},
		"not who says so himself":                          {app: "web", obj: marked("web")},
		"nor who names another one":                        {applications: web, app: "web", obj: marked("api"), want: "web", warns: true},
		"what is selected from now on and runs nowhere":    {applications: web, old: map[string]string{}, app: "web", want: "web", warns: true},
		"not what is selected from now on and has a place": {applications: web, old: placed, obj: placed, app: "web"},
		"nor what is selected from now on and runs yet":    {applications: web, old: reported, obj: reported, app: "web"},
		"nor what goes beside and is there already":        {resource: configMapsResource, applications: web, old: map[string]string{}, app: "web"},
		"nor what was selected before, and runs nowhere":   {applications: web, old: map[string]string{}, oldApp: "web", app: "web"},
		"what waits goes on waiting":                       {applications: web, old: marked("web"), oldApp: "web", obj: marked("web"), app: "web", want: "web"},
		"whoever leaves the mark out":                      {applications: web, old: marked("web"), oldApp: "web", obj: map[string]string{}, app: "web", want: "web"},
		"whoever takes the mark off":                       {applications: web, old: marked("web"), oldApp: "web", obj: marked(""), app: "web", want: "web"},
		"by its status as well":                            {applications: web, sub: "status", old: marked("web"), oldApp: "web", obj: map[string]string{}, app: "web", want: "web"},
		"whoever marks a status":                           {applications: web, sub: "status", old: placed, oldApp: "web", obj: marked("web", placed), app: "web"},
		"what is not selected any more is let go":          {applications: web, old: marked("web"), oldApp: "web", obj: marked("web"), app: "api"},
		"what another one selects waits for that":          {applications: theApplications{"another"}, old: marked("web"), oldApp: "web", obj: marked("web"), app: "web", want: "another"},
		"with no Application it is let go":                 {old: marked("web"), oldApp: "web", obj: marked("web"), app: "web"},
		"what a release makes does not wait":               {user: v1alpha1.DeliveryUser, applications: web, app: "web"},
		"a release that says which revision leaves it":     {user: v1alpha1.DeliveryUser, applications: web, old: marked("web"), oldApp: "web", obj: marked("web"), app: "web", want: "web"},
		"a release lets it go":                             {user: v1alpha1.DeliveryUser, applications: web, old: marked("web", placed), oldApp: "web", obj: placed, app: "web"},
		"a release begins no waiting":                      {user: v1alpha1.DeliveryUser, applications: web, old: placed, oldApp: "web", obj: marked("web", placed), app: "web"},
		"what the server makes does not wait":              {user: user.APIServerUser, applications: web, app: "web"},
		"what shows what runs does not wait":               {user: v1alpha1.SummaryUser, applications: web, app: "web"},
		"nothing of kinds that stay":                       {resource: schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "cronjobs"}, applications: web, app: "web"},
		"nothing of a Scale":                               {sub: "scale", applications: web, old: map[string]string{}, app: "web"},
	} {
		t.Run(name, func(t *testing.T) {
			if test.resource.Empty() {
				test.resource = deploymentsResource
			}
			if test.user == "" {
				test.user = "jane"
			}
			object := func(annotations map[string]string, app string) *metav1.PartialObjectMetadata {
				return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "one", Namespace: "shop", Labels: map[string]string{"app": app}, Annotations: maps.Clone(annotations)}}
			}
			obj, operation := object(test.obj, test.app), admission.Create
			var old runtime.Object
			if test.old != nil {
				old, operation = object(test.old, test.oldApp), admission.Update
			}
			a := admission.NewAttributesRecord(obj, old, test.resource.GroupVersion().WithKind("Any"), "shop", "one", test.resource, test.sub, operation, nil, test.dryly,
				&user.DefaultInfo{Name: test.user, Groups: []string{user.SystemPrivilegedGroup}})
			seen, ran := &recorder{}, 1
			if test.reinvoked {
				ran = 2
			}
			for range ran {
				ctx := warning.WithWarningRecorder(t.Context(), seen)
				seen.texts = nil
				if err := (&managed{}).Admit(warning.WithWarningRecorder(t.Context(), &recorder{}), a, nil); err != nil {
					t.Fatal(err)
				}
				if err := newGate(test.applications).Admit(ctx, a, nil); err != nil {
					t.Fatal(err)
				}
			}
			if err := (&managed{}).Validate(t.Context(), a, nil); err != nil {
				t.Errorf("it is refused then: %v", err)
			}
			got, has := obj.Annotations[v1alpha1.AnnotationAwaits]
			if got != test.want || has != (test.want != "") {
				t.Errorf("it awaits %q, want %q", got, test.want)
			}
			want := ""
			if test.warns {
				want = `Any "one" waits for the first release of Application web: see manifold app get web -n shop; manifold app sync web -n shop begins one`
			}
			if said := strings.Join(seen.texts, "; "); said != want {
				t.Errorf("warnings %q, want %q", said, want)
			}
		})
	}
}

// The token of a ServiceAccount is selected by nobody, and no release would let it go.
func TestWhatNobodySelectsAwaitsNothing(t *testing.T) {
	for of, want := range map[corev1.SecretType]string{corev1.SecretTypeOpaque: "web", corev1.SecretTypeServiceAccountToken: "", delivery.SecretRevision: ""} {
		obj := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "one", Labels: map[string]string{"app": "web"}}, Type: of}
		resource := schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
		a := admission.NewAttributesRecord(obj, nil, resource.GroupVersion().WithKind("Secret"), "shop", "one", resource, "", admission.Create, nil, false, &user.DefaultInfo{Name: "jane"})
		if err := newGate(theApplications{"web"}).Admit(warning.WithWarningRecorder(t.Context(), &recorder{}), a, nil); err != nil {
			t.Fatal(err)
		}
		if got := obj.Annotations[v1alpha1.AnnotationAwaits]; got != want {
			t.Errorf("a Secret of type %s awaits %q, want %q", of, got, want)
		}
	}
}
