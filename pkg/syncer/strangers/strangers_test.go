package strangers

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/syncer/physical"
)

func TestWhoElseUsesANamespace(t *testing.T) {
	named := func(name, logical string) metav1.ObjectMeta {
		out := metav1.ObjectMeta{Namespace: "shop", Name: name}
		if logical != "" {
			out.Labels = map[string]string{v1alpha1.LabelLogicalCluster: logical}
		}
		return out
	}
	pod := func(owner string, ending bool) *corev1.Pod {
		out := &corev1.Pod{ObjectMeta: named("web-1", "")}
		if owner != "" {
			yes := true
			out.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: owner, Name: "web", Controller: &yes}}
		}
		if ending {
			out.DeletionTimestamp = &metav1.Time{}
		}
		return out
	}
	for name, test := range map[string]struct {
		cached []*corev1.Pod
		served []runtime.Object
		want   string
	}{
		"nobody":                    {},
		"we ourselves":              {served: []runtime.Object{&appsv1.Deployment{ObjectMeta: named("web", "logical")}}},
		"the owner of a Deployment": {served: []runtime.Object{&appsv1.Deployment{ObjectMeta: named("web", "")}}, want: "Deployment web"},
		"another logical cluster":   {served: []runtime.Object{&appsv1.Deployment{ObjectMeta: named("web", "other")}}, want: "Deployment web"},
		"the owner of a Service":    {served: []runtime.Object{&corev1.Service{ObjectMeta: named("web", "")}}, want: "Service web"},
		"the owner of a pod":        {cached: []*corev1.Pod{pod("", false)}, want: "Pod web-1"},
		"the owner of a kind of workload of their own": {cached: []*corev1.Pod{pod("Fleet", false)}, want: "Pod web-1"},
		"the owner of a DaemonSet":                     {served: []runtime.Object{&appsv1.DaemonSet{ObjectMeta: named("web", "")}}, want: "DaemonSet web"},
		"not a DaemonSet on its way out":               {cached: []*corev1.Pod{pod("DaemonSet", false)}},
		"not a ReplicaSet on its way out":              {cached: []*corev1.Pod{pod("ReplicaSet", false)}},
		"not a pod on its way out":                     {cached: []*corev1.Pod{pod("", true)}},
		"not what every namespace is given":            {served: []runtime.Object{&corev1.ConfigMap{ObjectMeta: named("kube-root-ca.crt", "")}}},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset(test.served...)
			below := physical.New()
			below.Pods = informers.NewSharedInformerFactory(client, 0).Core().V1().Pods().Informer()
			for _, pod := range test.cached {
				if err := below.Pods.GetStore().Add(pod); err != nil {
					t.Fatal(err)
				}
			}
			f := Finder{Client: client, Below: below, LogicalCluster: "logical"}
			got, err := f.In(t.Context(), "shop")
			if err != nil || got != test.want {
				t.Errorf("found %q, %v; want %q", got, err, test.want)
			}
			if got, err := f.In(t.Context(), "elsewhere"); err != nil || got != "" {
				t.Errorf("found %q, %v in another namespace", got, err)
			}
		})
	}
}
