package syncer

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// Nothing of what awaits a release is in a cluster that none has come to, and nothing goes there on its account.
func TestAClusterHasNothingOfWhatAwaitsARelease(t *testing.T) {
	const (
		none  = `{"east":{"replicas":1},"west":{"replicas":1}}`
		first = `{"east":{"replicas":1,"revision":"web-v1","target":"eu"},"west":{"replicas":1}}`
	)
	for name, test := range map[string]struct {
		deployment, secret                 string
		deploymentAwaits, secretAwaits     bool
		hasDeployment, hasSecret, wantsOne string
	}{
		"nothing awaits any":                           {deployment: none, hasDeployment: "east west", hasSecret: "east west"},
		"both await the first":                         {deployment: none, deploymentAwaits: true, secretAwaits: true},
		"it has come to the first cluster":             {deployment: first, deploymentAwaits: true, secret: first, secretAwaits: true, hasDeployment: "east", hasSecret: "east"},
		"what nobody selects goes along with it":       {deployment: first, deploymentAwaits: true, hasDeployment: "east", hasSecret: "east"},
		"what is used already and is new waits itself": {deployment: none, secret: first, secretAwaits: true, hasDeployment: "east west", hasSecret: "east"},
	} {
		t.Run(name, func(t *testing.T) {
			above, used := deployment("web", test.deployment, usingSecret("one"), ofReplicas(2)), secret("one")
			for of, awaits := range map[projection.Object]bool{above: test.deploymentAwaits, used: test.secretAwaits} {
				annotations := of.GetAnnotations()
				if annotations == nil {
					annotations = map[string]string{}
				}
				if awaits {
					annotations[v1alpha1.AnnotationAwaits] = "web"
				}
				of.SetAnnotations(annotations)
			}
			if test.secret != "" {
				used.GetAnnotations()[v1alpha1.AnnotationPlacement] = test.secret
			}
			r := newReleased(t, namespace("shop"), above, used)
			r.release(t, "web-v1", deployment("web", "", usingSecret("one")), secret("one"))
			var hasDeployment, hasSecret []string
			for _, cluster := range []string{"east", "west"} {
				s := attach(t, r.Upstream, cluster)
				for of, has := range map[projection.Object]*[]string{above: &hasDeployment, used: &hasSecret} {
					kind, _ := projection.KindOf(of)
					desired, _, err := s.desired(kind, of, nil)
					if err != nil {
						t.Fatal(err)
					}
					if desired != nil {
						*has = append(*has, cluster)
					}
					if wanted := r.Demand.Wanted(kind, of, cluster); wanted != (desired != nil) {
						t.Errorf("%s is wanted in %s: %t", kind.GVK.Kind, cluster, wanted)
					}
				}
			}
			if got := strings.Join(hasDeployment, " "); got != test.hasDeployment {
				t.Errorf("the Deployment is in %q, want %q", got, test.hasDeployment)
			}
			if got := strings.Join(hasSecret, " "); got != test.hasSecret {
				t.Errorf("the Secret is in %q, want %q", got, test.hasSecret)
			}
		})
	}
}

// What is let go is looked at again, and what was made a moment ago by its shares alone as well.
func TestWhatIsLetGoIsLookedAtAgain(t *testing.T) {
	for _, of := range []projection.Object{deployment("web", `{"west":{"replicas":1}}`, ofReplicas(1)), &corev1.ConfigMap{ObjectMeta: objectMeta("web")}} {
		before := of.DeepCopyObject().(projection.Object)
		before.SetAnnotations(map[string]string{v1alpha1.AnnotationAwaits: "web", v1alpha1.AnnotationPlacement: of.GetAnnotations()[v1alpha1.AnnotationPlacement]})
		after := of.DeepCopyObject().(projection.Object)
		after.SetResourceVersion("2")
		after.SetAnnotations(map[string]string{v1alpha1.AnnotationPlacement: of.GetAnnotations()[v1alpha1.AnnotationPlacement], v1alpha1.AnnotationClusters: "west"})
		before.GetAnnotations()[v1alpha1.AnnotationClusters] = "west"
		r := newReleased(t, namespace("shop"), after)
		s := attach(t, r.Upstream, "west")
		kind, _ := projection.KindOf(of)
		r.router.Objects(kind).OnUpdate(before, after)
		if got := strings.Join(s.enqueued(), " "); !strings.Contains(got, "shop/web") {
			t.Errorf("%s is let go, and looked at is %q", kind.GVK.Kind, got)
		}
	}
}
