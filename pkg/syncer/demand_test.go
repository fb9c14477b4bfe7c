package syncer

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/projection"
)

const toEast = `{"east":{"replicas":2}}`

func TestClusterHoldsWhatItsWorkloadsNeed(t *testing.T) {
	ownSelector := map[string]string{"app": "web"}
	externalName := service("web", ownSelector)
	externalName.Spec.Type = corev1.ServiceTypeExternalName
	for name, test := range map[string]struct {
		objects []projection.Object
		below   []projection.Object // in east
		of      projection.Object
		want    []string // of east and west
	}{
		"a workload is where its decision says": {
			of: deployment("web", toEast), want: []string{"east"},
		},
		"a workload may have a share of nothing": {
			of: deployment("web", `{"west":{"replicas":0}}`), want: []string{"west"},
		},
		"a workload without a decision is nowhere": {
			of: deployment("web", ""),
		},
		"a workload whose decision is damaged is nowhere": {
			of: deployment("web", `{"east":`),
		},
		"a Secret follows the workload that mounts it": {
			objects: []projection.Object{deployment("web", toEast, usingSecret("key")), deployment("other", `{"west":{"replicas":1}}`)},
			of:      secret("key"), want: []string{"east"},
		},
		"a Secret that nothing refers to stays above": {
			objects: []projection.Object{deployment("web", toEast, usingSecret("other"))},
			of:      secret("key"),
		},
		"a Secret of another namespace stays above": {
			objects: []projection.Object{deployment("web", toEast, usingSecret("key"), func(d *appsv1.Deployment) { d.Namespace = "bank" })},
			of:      secret("key"),
		},
		"a Secret follows all workloads that need it": {
			objects: []projection.Object{deployment("web", toEast, usingSecret("key")), deployment("api", `{"west":{"replicas":1}}`, usingSecret("key"))},
			of:      secret("key"), want: []string{"east", "west"},
		},
		"a Secret that a ServiceAccount pulls images with follows the workloads that run as it": {
			objects: []projection.Object{deployment("web", toEast, runningAs("robot")), account("robot", "pull")},
			of:      secret("pull"), want: []string{"east"},
		},
		"a Secret of a ServiceAccount that no workload runs as stays above": {
			objects: []projection.Object{deployment("web", toEast), account("robot", "pull")},
			of:      secret("pull"),
		},
		"the default ServiceAccount follows workloads that name none": {
			objects: []projection.Object{deployment("web", toEast)},
			of:      account("default"), want: []string{"east"},
		},
		"another ServiceAccount does not": {
			objects: []projection.Object{deployment("web", toEast)},
			of:      account("robot"),
		},
		"a Service follows the workloads whose pods it selects": {
			objects: []projection.Object{deployment("web", toEast), deployment("api", `{"west":{"replicas":1}}`), service("web", ownSelector)},
			of:      service("web", ownSelector), want: []string{"east"},
		},
		"a Service without a selector goes wherever its namespace runs something": {
			objects: []projection.Object{deployment("web", toEast), service("web", nil)},
			of:      service("web", nil), want: []string{"east"},
		},
		"a Service that is but a name does too": {
			objects: []projection.Object{deployment("web", toEast), externalName},
			of:      externalName, want: []string{"east"},
		},
		"an Ingress follows the Service that it leads to": {
			objects: []projection.Object{deployment("web", toEast), service("web", ownSelector), ingress("site", "web")},
			of:      ingress("site", "web"), want: []string{"east"},
		},
		"an Ingress that leads to no Service that there is stays above": {
			objects: []projection.Object{deployment("web", toEast), service("web", ownSelector), ingress("site", "other")},
			of:      ingress("site", "other"),
		},
		"the certificate of an Ingress goes with it": {
			objects: []projection.Object{deployment("web", toEast), service("web", ownSelector), ingress("site", "web")},
			of:      secret("site-tls"), want: []string{"east"},
		},
		"a NetworkPolicy guards the pods that it selects": {
			objects: []projection.Object{deployment("web", toEast), deployment("api", `{"west":{"replicas":1}}`), networkPolicy("guard", map[string]string{"app": "api"})},
			of:      networkPolicy("guard", map[string]string{"app": "api"}), want: []string{"west"},
		},
		"a NetworkPolicy that selects all pods is wherever any are": {
			objects: []projection.Object{deployment("web", toEast), deployment("api", `{"west":{"replicas":1}}`), networkPolicy("deny", nil)},
			of:      networkPolicy("deny", nil), want: []string{"east", "west"},
		},
		"a namespace is where any of its workloads is": {
			objects: []projection.Object{deployment("web", toEast)},
			of:      namespace("shop"), want: []string{"east"},
		},
		"an empty namespace stays above": {
			objects: []projection.Object{deployment("web", toEast)},
			of:      namespace("bank"),
		},
		"what pods need stays until they have left": {
			objects: []projection.Object{deployment("web", `{"west":{"replicas":2}}`, usingSecret("key"), stillIn("east"))},
			below:   []projection.Object{projected(deployment("web", ""), 2, 2)},
			of:      secret("key"), want: []string{"east", "west"},
		},
		"that a cluster has something of the name, with the right marks, makes it none that runs it": {
			objects: []projection.Object{deployment("web", `{"west":{"replicas":2}}`, usingSecret("key"))},
			below:   []projection.Object{projected(deployment("web", ""), 2, 2)},
			of:      secret("key"), want: []string{"west"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			u := newUpstream(t, test.objects...)
			attachFound(t, u, "east", test.below...)
			attach(t, u, "west")
			kind, _ := projection.ForResource(resourceOf(test.of))
			var got []string
			for _, cluster := range []string{"east", "west"} {
				if _, wanted := u.Demand.Part(kind, test.of, cluster); wanted {
					got = append(got, cluster)
				}
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("wanted in %v, want %v", got, test.want)
			}
		})
	}
}

// What nothing that is placed needs is in no cluster, unless it is sent there by itself.
func TestWhatIsNowhere(t *testing.T) {
	for name, test := range map[string]struct {
		above *appsv1.Deployment
		pin   string
		want  bool
	}{
		"a ConfigMap that a placed workload names":          {above: deployment("web", toEast, usingConfigMap("settings"))},
		"one that no workload names":                        {above: deployment("web", toEast), want: true},
		"one that a workload names which is placed nowhere": {above: deployment("web", "", usingConfigMap("settings")), want: true},
		"one that is pinned":                                {above: deployment("web", toEast), pin: "east"},
	} {
		t.Run(name, func(t *testing.T) {
			of := settings("settings", "red")
			if test.pin != "" {
				of.Annotations = map[string]string{v1alpha1.AnnotationClusters: test.pin}
			}
			u := newUpstream(t, namespace("shop"), test.above, of)
			attach(t, u, "east")
			kind, _ := projection.KindOf(of)
			if got := u.Demand.IsNowhere(kind, of); got != test.want {
				t.Errorf("it is nowhere: %t, want %t", got, test.want)
			}
		})
	}
}

// stillIn has the breakdown name a cluster that the decision does not name any more.
func stillIn(cluster string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) {
		d.Annotations[v1alpha1.AnnotationStatus] = `{"` + cluster + `":{"replicas":2}}`
	}
}

var deployments, _ = projection.ForResource(deploymentResource)

func TestShareOfAWorkloadIsThatOfItsDecision(t *testing.T) {
	kind, _ := projection.ForResource(deploymentResource)
	got, _ := newUpstream(t).Demand.Part(kind, deployment("web", `{"east":{"replicas":2},"west":{"replicas":3}}`), "west")
	if want := (placement.Share{Replicas: 3}); got.Share != want || got.Decision["east"].Replicas != 2 {
		t.Errorf("part %v, want the share %v and the decision", got, want)
	}
}

func TestDependentsOfAWorkload(t *testing.T) {
	d := deployment("web", toEast, usingSecret("key"), runningAs("robot"), func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.Containers = []corev1.Container{{EnvFrom: []corev1.EnvFromSource{
			{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "env"}}}}}}
	})
	u := newUpstream(t, d, account("robot", "pull"), service("web", map[string]string{"app": "web"}), service("api", map[string]string{"app": "api"}))
	var got []string
	for _, key := range u.Demand.Dependents(identity.Workload{Kind: deployments, Object: d}) {
		got = append(got, key.String())
	}
	if got[0] != "namespaces shop" {
		t.Errorf("%s comes first, want the namespace", got[0])
	}
	want := []string{"configmaps shop/env", "namespaces shop", "secrets shop/key", "secrets shop/pull", "serviceaccounts shop/robot", "services shop/web"}
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("dependents %v, want %v", got, want)
	}
}
