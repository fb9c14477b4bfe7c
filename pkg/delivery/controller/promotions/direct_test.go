package promotions

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"github.com/manifold-dev/manifold/pkg/delivery/controller/objects"
	"github.com/manifold-dev/manifold/pkg/delivery/weave"
)

func TestADirectPromotionWritesTheTargetsAsTheAccountThatIsNamed(t *testing.T) {
	w := newWorld(t, pipelineOf(directly), inProd)
	w.look()
	if got := w.image(); got != "ghcr.io/shop/web:2 docker.io/envoy:7" {
		t.Errorf("prod is to run %s", got)
	}
	if got := w.promotion(); got.Phase != weave.PromotionStarted || got.Revision != "2" || got.Strategy != "direct" || got.Attempts != 1 {
		t.Errorf("the promotion is %+v", got)
	}
	if want := (objects.Account{Namespace: "shop", ServiceAccount: "promoter"}); len(w.accounts) != 1 || w.accounts[0] != want {
		t.Errorf("it is written as %v", w.accounts)
	}
	if got := w.writes(); !slices.Equal(got, []string{"patch pipelines/status", "patch deployments", "patch pipelines/status"}) {
		t.Errorf("written is %v", got)
	}
	if got := w.told(); len(got) != 1 || !strings.Contains(got[0], "PromotionStarted 2 is promoted to prod (direct)") {
		t.Errorf("events are %v", got)
	}
	w.look()
	if got := w.writes(); len(got) > 0 {
		t.Errorf("looked at again, there is written %v", got)
	}
	if ready := meta.FindStatusCondition(w.pipeline().Status.Conditions, weave.ConditionReady); ready == nil || ready.Reason != "Read" {
		t.Errorf("the condition of others is %v", ready)
	}
}

func TestWhyADirectPromotionFails(t *testing.T) {
	elsewhere := strings.ReplaceAll(pipelineOf(directly), "{namespace: prod}", "{namespace: prod, clusterRef: {kind: GitopsCluster, name: east}}")
	elsewhere = strings.Replace(elsewhere, "[{namespace: prod, ready", "[{kind: GitopsCluster, name: east, namespace: prod, ready", 1)
	for name, test := range map[string]struct {
		pipeline string
		object   string
		refused  error
		want     string
	}{
		"there is nothing":         {pipeline: pipelineOf(directly), want: "there is no Deployment prod/web"},
		"it is in a cluster alone": {pipeline: elsewhere, want: `Deployment prod/web is not in the logical cluster: what is in cluster "east" alone is not written directly`},
		"another image":            {pipeline: pipelineOf(directly), object: strings.ReplaceAll(inProd, "shop/web", "other/web"), want: "none of its containers has an image of ghcr.io/shop/web"},
		"the account has no right": {pipeline: pipelineOf(directly), object: inProd, refused: apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "deployments"}, "web", errors.New("no")), want: "write version 2 into Deployment prod/web as ServiceAccount shop/promoter"},
		"no account":               {pipeline: pipelineOf("{strategy: {direct: {serviceAccountName: \"\"}}}"), object: inProd, want: "no ServiceAccount is named"},
		"a kind that is not there": {pipeline: strings.ReplaceAll(strings.ReplaceAll(pipelineOf(directly), "apps/v1, kind: Deployment", "apps/v1, kind: StatefulSet"), "kind: Deployment, name: web", "kind: StatefulSet, name: web"), want: "find how StatefulSet prod/web is served"},
	} {
		t.Run(name, func(t *testing.T) {
			texts := []string{test.pipeline}
			if test.object != "" {
				texts = append(texts, test.object)
			}
			w := newWorld(t, texts...)
			if test.refused != nil {
				w.dynamic.PrependReactor("patch", "deployments", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, test.refused })
			}
			w.look()
			if got := w.promotion(); got.Phase != weave.PromotionFailed || !strings.Contains(got.Message, test.want) || got.Attempts != 1 {
				t.Errorf("the promotion is %+v, want %q", got, test.want)
			}
			if said := meta.FindStatusCondition(w.pipeline().Status.Conditions, weave.ConditionPromoting); said == nil || said.Reason != "Failed" {
				t.Errorf("the condition is %v", said)
			}
			if got := w.told(); len(got) != 1 || !strings.HasPrefix(got[0], "Warning PromotionFailed") {
				t.Errorf("events are %v", got)
			}
			w.look() // it is tried again later
			if got := w.promotion(); got.Attempts != 1 {
				t.Errorf("it is tried %d times at once", got.Attempts)
			}
			w.clock.SetTime(w.clock.Now().Add(3 * time.Second))
			w.look()
			if got := w.promotion(); got.Attempts != 2 {
				t.Errorf("it is tried %d times", got.Attempts)
			}
			if got := w.told(); len(got) > 0 {
				t.Errorf("what was told is told again: %v", got)
			}
		})
	}
}

func TestWhatIsRepairedResumesByItself(t *testing.T) {
	w := newWorld(t, pipelineOf(directly), inProd)
	broken := true
	w.dynamic.PrependReactor("patch", "deployments", func(clienttesting.Action) (bool, runtime.Object, error) { return broken, nil, errors.New("not now") })
	w.look()
	broken = false
	w.clock.SetTime(w.clock.Now().Add(3 * time.Second))
	w.look()
	if got := w.promotion(); got.Phase != weave.PromotionStarted || got.Message != "" || got.Attempts != 2 {
		t.Errorf("the promotion is %+v", got)
	}
}

func TestVersionsAreWrittenWhereFluxHasThem(t *testing.T) {
	const sha = "0123456789abcdef0123456789abcdef01234567"
	of := func(kind, group, version string) string {
		text := strings.ReplaceAll(pipelineOf(directly), "apiVersion: apps/v1, kind: Deployment", "apiVersion: "+group+", kind: "+kind)
		text = strings.ReplaceAll(text, "{kind: Deployment, name: web", "{kind: "+kind+", name: web")
		text = strings.ReplaceAll(text, `version: "2", ready: true, images: ["ghcr.io/shop/web:2"]`, `version: "`+version+`", ready: true`)
		return strings.ReplaceAll(text, `, images: ["ghcr.io/shop/web:1"]`, "")
	}
	for name, test := range map[string]struct {
		pipeline string
		objects  []string
		resource schema.GroupVersionResource
		want     []string
		path     []string
	}{
		"the version of a chart": {
			of("HelmRelease", "helm.toolkit.fluxcd.io/v2", "6.1.8"),
			[]string{"{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, metadata: {namespace: prod, name: web}, spec: {chart: {spec: {chart: podinfo, version: 6.1.5}}}}"},
			schema.GroupVersionResource{Group: "helm.toolkit.fluxcd.io", Version: "v2", Resource: "helmreleases"}, []string{"6.1.8"}, []string{"spec", "chart", "spec", "version"},
		},
		"the commit of a source": {
			of("Kustomization", "kustomize.toolkit.fluxcd.io/v1", "main@sha1:"+sha),
			[]string{
				"{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {namespace: prod, name: web}, spec: {sourceRef: {kind: GitRepository, name: web}}}",
				"{apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, metadata: {namespace: prod, name: web}, spec: {ref: {branch: main}}}",
			},
			schema.GroupVersionResource{Group: "source.toolkit.fluxcd.io", Version: "v1", Resource: "gitrepositories"}, []string{sha}, []string{"spec", "ref", "commit"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, append(test.objects, test.pipeline)...)
			w.look()
			found, err := w.dynamic.Resource(test.resource).Namespace("prod").Get(t.Context(), "web", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if got, _, _ := unstructured.NestedString(found.Object, test.path...); got != test.want[0] {
				t.Errorf("it is %q: %+v", got, w.promotion())
			}
		})
	}
	t.Run("not of a source elsewhere", func(t *testing.T) {
		w := newWorld(t, of("Kustomization", "kustomize.toolkit.fluxcd.io/v1", "main@sha1:"+sha),
			"{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {namespace: prod, name: web}, spec: {sourceRef: {kind: GitRepository, name: web, namespace: flux-system}}}")
		w.look()
		if got := w.promotion(); got.Phase != weave.PromotionFailed || !strings.Contains(got.Message, "in namespace flux-system, which is not the one of the target") {
			t.Errorf("the promotion is %+v", got)
		}
	})
}
