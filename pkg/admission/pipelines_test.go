package admission

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/client-go/informers"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/yaml"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// allowing is an authorizer that allows what it lists, as "VERB RESOURCE.GROUP NAMESPACE/NAME", and says why not otherwise.
type allowing struct {
	asked
	list []string
}

func (l allowing) Authorize(_ context.Context, of authorizer.Attributes) (authorizer.Decision, string, error) {
	resource := schema.GroupResource{Group: of.GetAPIGroup(), Resource: of.GetResource()}
	what := fmt.Sprintf("%s %s %s/%s", of.GetVerb(), resource, of.GetNamespace(), of.GetName())
	if of.GetUser().GetName() == "ann" && of.IsResourceRequest() && slices.Contains(l.list, what) {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "no role says so", nil
}

// weaveObject is what the server of custom resources hands on.
func weaveObject(t *testing.T, manifest string) runtime.Object {
	t.Helper()
	if manifest == "" {
		return nil
	}
	out := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(manifest), &out.Object); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestPipelinesAreForWhoMaySeeAndDoWhatTheyShowAndDo(t *testing.T) {
	pipeline := func(spec string) string {
		return "apiVersion: pipelines.weave.works/v1alpha1\nkind: Pipeline\nmetadata: {namespace: elsewhere, name: web}\nspec: {appRef: {apiVersion: apps/v1, kind: Deployment, name: web}, " + spec + "}"
	}
	older := func(spec string) string {
		return "apiVersion: pipelines.wego.weave.works/v1alpha1\nkind: Pipeline\nmetadata: {namespace: ops, name: web}\nspec: {" + spec + "}"
	}
	in := func(targets string) string { return "environments: [{name: dev, targets: [" + targets + "]}]" }
	const (
		lists  = "list deployments.apps shop/"
		cannot = `spec.environments[0].targets[0].namespace: you need the right to "list" deployments.apps in namespace "shop": no role says so`
		view   = "apiVersion: gitops.weave.works/v1alpha1\nkind: GitopsCluster\nmetadata: {namespace: ops, name: dev}\nspec: {secretRef: {name: admin}}"
	)
	for name, test := range map[string]struct {
		may         []string
		object, old string
		user        string
		subresource string
		refused     string
		invalid     bool
		warns       string
	}{
		"who may list what is there adds it":                          {may: []string{lists}, object: pipeline(in("{namespace: shop}"))},
		"who may not does not":                                        {object: pipeline(in("{namespace: shop}")), refused: cannot},
		"a right elsewhere is none":                                   {may: []string{"list deployments.apps farm/"}, object: pipeline(in("{namespace: shop}")), refused: cannot},
		"somebody else's is none":                                     {user: "joe", may: []string{lists}, object: pipeline(in("{namespace: shop}")), refused: cannot},
		"to get one is not to list them":                              {may: []string{"get deployments.apps shop/web"}, object: pipeline(in("{namespace: shop}")), refused: cannot},
		"nor later":                                                   {may: []string{lists}, old: pipeline(in("{namespace: shop}")), object: pipeline(in("{namespace: shop}, {namespace: farm}")), refused: `spec.environments[0].targets[1].namespace: you need the right to "list" deployments.apps in namespace "farm"`},
		"who changes no target needs no right":                        {old: pipeline(in("{namespace: shop}")), object: pipeline(in("{namespace: shop}") + ", promotion: {strategy: {notification: {}}}")},
		"nor who changes nothing of the spec":                         {old: older("environments: []"), object: strings.Replace(older("environments: []"), "name: web", "name: web, labels: {a: b}", 1)},
		"what makes no sense is told by its path":                     {old: pipeline(in("{namespace: shop}")), object: pipeline(in("{namespace: shop}, {namespace: shop}")), refused: "spec.environments[0].targets[1]: Duplicate value", invalid: true},
		"before who may do what":                                      {object: pipeline("environments: []"), refused: "spec.environments: Required value", invalid: true},
		"in the older group as well":                                  {object: older(in("{}")), refused: "spec.environments[0].targets[0].namespace: Required value", invalid: true},
		"where a label is all that it takes, all kinds are asked for": {may: []string{lists}, object: older(in("{namespace: shop}")), refused: `to "list" helmreleases.helm.toolkit.fluxcd.io in namespace "shop"`},
		"a Secret of the pipeline's namespace, whatever it says that is": {
			may: []string{lists, "get secrets elsewhere/token"}, object: pipeline(in("{namespace: shop}") + ", promotion: {strategy: {pull-request: {type: gitea, url: 'https://a.b/c', baseBranch: main, secretRef: {name: token}}}}"),
			refused: `spec.promotion.strategy.pull-request.secretRef.name: you need the right to "get" secrets "token" in namespace "ops"`,
		},
		"which somebody may read": {
			may: []string{lists, "get secrets ops/token"}, object: pipeline(in("{namespace: shop}") + ", promotion: {strategy: {pull-request: {type: gitea, url: 'https://a.b/c', baseBranch: main, secretRef: {name: token}}}}"),
		},
		"a ServiceAccount that he may not be": {
			may: []string{lists, "impersonate serviceaccounts ops/promoter"}, object: pipeline(in("{namespace: shop}") + ", promotion: {strategy: {direct: {serviceAccountName: admin}}}"),
			refused: `spec.promotion.strategy.direct.serviceAccountName: you need the right to "impersonate" serviceaccounts "admin" in namespace "ops"`,
		},
		"one that he may be": {
			may: []string{lists, "impersonate serviceaccounts ops/promoter"}, object: pipeline(in("{namespace: shop}") + ", promotion: {strategy: {direct: {serviceAccountName: promoter}}}"),
		},
		"W15 a cluster that has not joined": {
			may: []string{lists}, object: pipeline(in("{namespace: shop, clusterRef: {kind: GitopsCluster, name: west}}")), warns: `clusterRef.name: no cluster has joined as "west"`,
		},
		"one that has": {may: []string{lists}, object: pipeline(in("{namespace: shop, clusterRef: {kind: GitopsCluster, name: east}}"))},
		"W15 a namespace that is not": {
			may: []string{"list deployments.apps farm/"}, object: pipeline(in("{namespace: farm}")), warns: `targets[0].namespace: there is no namespace "farm"`,
		},
		"nobody is told what there is who may not know it": {object: pipeline(in("{namespace: farm}")), refused: `namespace "farm"`},
		"a status is none of its business":                 {old: pipeline(in("{namespace: shop}")), object: pipeline(in("{namespace: farm}")), subresource: "status"},
		"a GitopsCluster is for who may see the Cluster":   {object: view, refused: `metadata.name: you need the right to "get" clusters.manifold.dev "dev": no role says so`},
		"who then makes one":                               {may: []string{"get clusters.manifold.dev /dev"}, object: view},
		"another Cluster is another":                       {may: []string{"get clusters.manifold.dev /prod"}, object: view, refused: `"dev"`},
		"whoever changes what is not read needs no right":  {old: view, object: strings.Replace(view, "admin", "other", 1)},
	} {
		t.Run(name, func(t *testing.T) {
			kube := informers.NewSharedInformerFactory(kubefake.NewClientset(), 0)
			namespaces := kube.Core().V1().Namespaces().Informer().GetIndexer()
			if err := namespaces.Add(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}); err != nil {
				t.Fatal(err)
			}
			plugin := &pipelines{
				Handler: admission.NewHandler(admission.Create, admission.Update),
				joined:  func() []*v1alpha1.Cluster { return []*v1alpha1.Cluster{{ObjectMeta: metav1.ObjectMeta{Name: "east"}}} },
			}
			if err := plugin.ValidateInitialization(); err == nil {
				t.Error("it does without an authorizer")
			}
			plugin.SetAuthorizer(allowing{list: test.may})
			plugin.SetExternalKubeInformerFactory(kube)
			plugin.SetReadyFunc(func() bool { return true })
			object, operation := weaveObject(t, test.object), admission.Create
			if test.old != "" {
				operation = admission.Update
			}
			kind := object.GetObjectKind().GroupVersionKind()
			by := "ann"
			if test.user != "" {
				by = test.user
			}
			warnings := &recorder{}
			resource := kind.GroupVersion().WithResource(strings.ToLower(kind.Kind) + "s")
			err := plugin.Validate(warning.WithWarningRecorder(t.Context(), warnings), admission.NewAttributesRecord(object, weaveObject(t, test.old), kind, "ops",
				object.(*unstructured.Unstructured).GetName(), resource, test.subresource, operation, nil, false, &user.DefaultInfo{Name: by}), nil)
			if got := errorText(err); (got == "") != (test.refused == "") || !strings.Contains(got, test.refused) || strings.Contains(got, "is invalid") != test.invalid {
				t.Errorf("error %q, want %q", got, test.refused)
			}
			if got := strings.Join(warnings.texts, "\n"); (got == "") != (test.warns == "") || !strings.Contains(got, test.warns) {
				t.Errorf("warnings %q, want %q", got, test.warns)
			}
		})
	}
}

func TestItIsNotedWhoHasNamedTheTargetsOfAPipeline(t *testing.T) {
	pipeline := func(note, targets string) string {
		return "apiVersion: pipelines.weave.works/v1alpha1\nkind: Pipeline\nmetadata: {name: web, annotations: {" + note + "}}\n" +
			"spec: {appRef: {apiVersion: apps/v1, kind: Deployment, name: web}, environments: [{name: dev, targets: [" + targets + "]}]}"
	}
	const (
		shop  = "{namespace: shop}"
		note  = `manifold.dev/authors: '[{"user":"ann","groups":["ops"],"targets":["shop"]}]'`
		byAnn = `[{"user":"ann","groups":["ops"],"targets":["shop"]}]`
	)
	for name, test := range map[string]struct {
		object, old, by, subresource string
		want                         string
	}{
		"when it is made":                            {object: pipeline("", shop), by: "ann", want: byAnn},
		"whatever stands there":                      {object: pipeline(`manifold.dev/authors: "x"`, shop), by: "ann", want: byAnn},
		"when a target is added":                     {old: pipeline(note, shop), object: pipeline(note, shop+", {namespace: farm}"), by: "joe", want: `[{"user":"ann","groups":["ops"],"targets":["shop"]},{"user":"joe","groups":["ops"],"targets":["farm"]}]`},
		"and stays through what others write":        {old: pipeline(note, shop), object: pipeline(note, shop), by: "joe", want: byAnn},
		"nothing by Manifold itself":                 {object: pipeline("", shop), by: v1alpha1.PipelinesUser},
		"nothing where the status is written":        {old: pipeline("", shop), object: pipeline("", shop), by: "ann", subresource: "status"},
		"nothing of what was there before it was so": {old: pipeline("", shop), object: pipeline("", shop), by: "ann"},
	} {
		t.Run(name, func(t *testing.T) {
			plugin := &pipelines{Handler: admission.NewHandler(admission.Create, admission.Update), authorizer: allowing{list: []string{"list deployments.apps shop/"}}}
			object, operation := weaveObject(t, test.object), admission.Create
			if test.old != "" {
				operation = admission.Update
			}
			kind := object.GetObjectKind().GroupVersionKind()
			if err := plugin.Admit(t.Context(), admission.NewAttributesRecord(object, weaveObject(t, test.old), kind, "ops", "web", kind.GroupVersion().WithResource("pipelines"),
				test.subresource, operation, nil, false, &user.DefaultInfo{Name: test.by, Groups: []string{"ops"}}), nil); err != nil {
				t.Fatal(err)
			}
			if got := object.(*unstructured.Unstructured).GetAnnotations()[v1alpha1.AnnotationAuthors]; got != test.want {
				t.Errorf("noted is %s, want %s", got, test.want)
			}
		})
	}
}

// The kinds of others that are called the same are none of its business.
func TestPipelinesOfOtherGroupsAreLeftAlone(t *testing.T) {
	plugin := &pipelines{authorizer: allowing{}, joined: func() []*v1alpha1.Cluster { return nil }}
	for _, group := range []string{"tekton.dev", "gitops.example.com"} {
		object := weaveObject(t, "apiVersion: "+group+"/v1\nkind: Pipeline\nmetadata: {name: a}\nspec: {tasks: []}")
		for _, resource := range []string{"pipelines", "gitopsclusters"} {
			err := plugin.Validate(t.Context(), admission.NewAttributesRecord(object, nil, object.GetObjectKind().GroupVersionKind(), "ops", "a",
				schema.GroupVersionResource{Group: group, Version: "v1", Resource: resource}, "", admission.Create, nil, false, &user.DefaultInfo{Name: "ann"}), nil)
			if err != nil {
				t.Errorf("%s of %s: %v", resource, group, err)
			}
		}
	}
}
