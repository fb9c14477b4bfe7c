package tree

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"

	manifoldv1alpha1 "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/projection"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// now is the time of all that has happened.
var now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// about is metadata in namespace "shop". The UID is made of kind and name by typed.
func about(name string, annotations map[string]string, owners ...projection.Object) metav1.ObjectMeta {
	out := metav1.ObjectMeta{Namespace: "shop", Name: name, Annotations: annotations}
	for _, owner := range owners {
		typed(owner)
		out.OwnerReferences = append(out.OwnerReferences, *metav1.NewControllerRef(owner, owner.GetObjectKind().GroupVersionKind()))
	}
	return out
}

// typed names the type of an object and gives it a UID.
func typed[P projection.Object](obj P) P {
	if gvks, _, err := scheme.Scheme.ObjectKinds(obj); err == nil {
		obj.GetObjectKind().SetGroupVersionKind(gvks[0])
	}
	obj.SetUID(types.UID(obj.GetObjectKind().GroupVersionKind().Kind + "/" + obj.GetName()))
	return obj
}

// placed are the annotations of a workload.
func placed(decision, status string) map[string]string {
	return map[string]string{manifoldv1alpha1.AnnotationPlacement: decision, manifoldv1alpha1.AnnotationStatus: status}
}

func template(app string, change ...func(*corev1.PodSpec)) corev1.PodTemplateSpec {
	out := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": app}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: app}}},
	}
	for _, c := range change {
		c(&out.Spec)
	}
	return out
}

func mirrored(name, cluster string, owner projection.Object, change ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: about(name, map[string]string{manifoldv1alpha1.AnnotationCluster: cluster}, owner),
		Spec:       corev1.PodSpec{NodeName: cluster, Containers: []corev1.Container{{Name: "c"}}},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
			ContainerStatuses: []corev1.ContainerStatus{{Name: "c", Ready: true}},
		},
	}
	for _, c := range change {
		c(pod)
	}
	return typed(pod)
}

func cannotPull(pod *corev1.Pod) {
	pod.Status.Phase, pod.Status.Conditions = corev1.PodPending, nil
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", State: corev1.ContainerState{
		Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: `Back-off pulling image "web:2"`},
	}}}
}

func crashes(pod *corev1.Pod) {
	pod.Status.Conditions = nil
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "c", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
		LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"}},
	}}
}

func unschedulable(pod *corev1.Pod) {
	pod.Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/3 nodes are available: 3 Insufficient cpu.",
	}}}
}

func succeeded(pod *corev1.Pod) { pod.Status = corev1.PodStatus{Phase: corev1.PodSucceeded} }

func cluster(name string, ready metav1.ConditionStatus) manifoldv1alpha1.Cluster {
	return manifoldv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status: manifoldv1alpha1.ClusterStatus{Conditions: []metav1.Condition{{
			Type: manifoldv1alpha1.ClusterReady, Status: ready, Reason: "Unreachable", Message: "it was last heard of at noon",
		}}},
	}
}

var bothReady = []manifoldv1alpha1.Cluster{cluster("east", metav1.ConditionTrue), cluster("west", metav1.ConditionTrue)}

func warning(about projection.Object, reason, message string) corev1.Event {
	return corev1.Event{
		InvolvedObject: corev1.ObjectReference{UID: about.GetUID()}, Source: corev1.EventSource{Component: "manifold"},
		Type: corev1.EventTypeWarning, Reason: reason, Message: message, LastTimestamp: metav1.NewTime(now),
	}
}

// shop is a Deployment "web" on two clusters with everything that a Deployment can have beside it.
func shop() objects {
	web := typed(&appsv1.Deployment{
		ObjectMeta: about("web", placed(`{"east":{"replicas":3},"west":{"replicas":2}}`,
			`{"east":{"replicas":3,"ready":3,"updated":3},"west":{"replicas":2,"updated":2,"problem":"Secret shop/token is there already and not ours"}}`)),
		Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](5), Template: template("web", func(p *corev1.PodSpec) {
			p.ServiceAccountName = "robot"
			p.Containers[0].EnvFrom = []corev1.EnvFromSource{
				{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}},
				{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "forgotten"}}},
				{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "token"}}},
				{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "extra"}, Optional: ptr.To(true)}},
			}
			p.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
			}}}
		})},
		Status: appsv1.DeploymentStatus{ReadyReplicas: 3, UpdatedReplicas: 5, Conditions: []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "NotApplied", Message: "west: Secret shop/token is there already and not ours"},
		}},
	})
	current := typed(&appsv1.ReplicaSet{
		ObjectMeta: about("web-6d5f8c9b7", map[string]string{revisionKey: "3"}, web),
		Spec:       appsv1.ReplicaSetSpec{Replicas: ptr.To[int32](5)}, Status: appsv1.ReplicaSetStatus{Replicas: 5, ReadyReplicas: 3},
	})
	others := []projection.Object{web, current}
	for i := range 3 {
		others = append(others, mirrored(fmt.Sprintf("web-6d5f8c9b7-e%d", i), "east", current))
	}
	others = append(others, mirrored("web-6d5f8c9b7-w0", "west", current, cannotPull), mirrored("web-6d5f8c9b7-w1", "west", current, crashes))
	for i := range 2 {
		others = append(others, typed(&appsv1.ReplicaSet{
			ObjectMeta: about(fmt.Sprintf("web-old%d", i), map[string]string{revisionKey: fmt.Sprint(i)}, web), Spec: appsv1.ReplicaSetSpec{Replicas: ptr.To[int32](0)},
		}))
	}
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	service := typed(&corev1.Service{ObjectMeta: about("web", nil), Spec: corev1.ServiceSpec{
		Type: corev1.ServiceTypeClusterIP, ClusterIP: "10.0.0.7", Selector: selector.MatchLabels,
	}})
	slice := &discoveryv1.EndpointSlice{ObjectMeta: about("web-x7k2p", nil, service)}
	slice.Labels = map[string]string{discoveryv1.LabelManagedBy: "endpointslice-controller.k8s.io", discoveryv1.LabelServiceName: "web"}
	for _, node := range []string{"east", "east", "east", "west"} {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{NodeName: &node, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(node == "east")}})
	}
	token := typed(&corev1.Secret{ObjectMeta: about("token", nil)})
	others = append(others, service, typed(slice), token,
		typed(&corev1.Secret{ObjectMeta: about("pull", nil)}),
		typed(&corev1.Secret{ObjectMeta: about("unrelated", nil)}),
		typed(&corev1.ConfigMap{ObjectMeta: about("settings", nil)}),
		typed(&corev1.ServiceAccount{ObjectMeta: about("robot", nil), ImagePullSecrets: []corev1.LocalObjectReference{{Name: "pull"}}}),
		typed(&corev1.PersistentVolumeClaim{ObjectMeta: about("data", nil), Status: corev1.PersistentVolumeClaimStatus{
			Phase: corev1.ClaimBound, Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("8Gi")},
		}}),
		typed(&networkingv1.Ingress{ObjectMeta: about("front", nil), Spec: networkingv1.IngressSpec{
			TLS: []networkingv1.IngressTLS{{SecretName: "certificate"}},
			Rules: []networkingv1.IngressRule{{Host: "shop.example", IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{
				Paths: []networkingv1.HTTPIngressPath{{Backend: networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: "web"}}}},
			}}}},
		}}),
		typed(&networkingv1.NetworkPolicy{ObjectMeta: about("web", nil), Spec: networkingv1.NetworkPolicySpec{PodSelector: *selector}}),
		typed(&policyv1.PodDisruptionBudget{ObjectMeta: about("web", nil), Spec: policyv1.PodDisruptionBudgetSpec{Selector: selector},
			Status: policyv1.PodDisruptionBudgetStatus{CurrentHealthy: 3, DesiredHealthy: 4}}),
		typed(&autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: about("web", nil),
			Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
				ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"},
				MinReplicas:    ptr.To[int32](2), MaxReplicas: 10,
			},
			Status: autoscalingv2.HorizontalPodAutoscalerStatus{CurrentReplicas: 5, Conditions: []autoscalingv2.HorizontalPodAutoscalerCondition{
				{Type: autoscalingv2.ScalingActive, Status: corev1.ConditionFalse, Reason: "FailedGetResourceMetric", Message: "no metrics are served"},
			}}}),
	)
	return objects{root: web, others: others, clusters: bothReady, events: []corev1.Event{
		warning(token, "NameTaken", `cluster "west": Secret shop/token is there already and not ours`),
		warning(token, "NameTaken", `cluster "east": Secret shop/token was there, which is settled`),
	}}
}

// rooted is the same with another root.
func rooted(o objects, kind, name string) objects {
	for _, obj := range o.others {
		if obj.GetObjectKind().GroupVersionKind().Kind == kind && obj.GetName() == name {
			o.root = obj
		}
	}
	return o
}

func database() objects {
	set := typed(&appsv1.StatefulSet{
		ObjectMeta: about("db", placed(`{"east":{"replicas":2},"west":{"replicas":1,"start":2}}`,
			`{"east":{"replicas":2,"ready":2,"updated":2},"west":{"replicas":1,"ready":1,"updated":1,"start":2,"stale":true}}`)),
		Spec: appsv1.StatefulSetSpec{
			Replicas: ptr.To[int32](3), Template: template("db"),
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}},
		},
		Status: appsv1.StatefulSetStatus{ReadyReplicas: 3, UpdatedReplicas: 3},
	})
	others := []projection.Object{set, mirrored("db-0", "east", set), mirrored("db-1", "east", set), mirrored("db-2", "west", set),
		typed(&corev1.PersistentVolumeClaim{ObjectMeta: about("data-db-0", map[string]string{manifoldv1alpha1.AnnotationCluster: "east"})}),
		typed(&corev1.PersistentVolumeClaim{ObjectMeta: about("data-db-other", nil)}),
	}
	for i := range 3 {
		others = append(others, typed(&appsv1.ControllerRevision{ObjectMeta: about(fmt.Sprintf("db-%c", 'a'+i), nil, set), Revision: int64(i + 1)}))
	}
	return objects{root: set, others: others, clusters: []manifoldv1alpha1.Cluster{bothReady[0], cluster("west", metav1.ConditionUnknown)}}
}

func nightly() objects {
	needing := template("nightly", func(p *corev1.PodSpec) {
		p.Containers[0].EnvFrom = []corev1.EnvFromSource{
			{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "token"}}},
		}
	})
	cron := typed(&batchv1.CronJob{
		ObjectMeta: about("nightly", nil),
		Spec:       batchv1.CronJobSpec{Schedule: "0 3 * * *", Suspend: ptr.To(true), JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: needing}}},
		Status:     batchv1.CronJobStatus{LastScheduleTime: ptr.To(metav1.NewTime(now)), Active: []corev1.ObjectReference{{Name: "nightly-2"}}},
	})
	job := func(name string, conditions []batchv1.JobCondition) *batchv1.Job {
		return typed(&batchv1.Job{
			ObjectMeta: about(name, placed(`{"east":{"replicas":1}}`, `{"east":{"replicas":1,"ready":1}}`), cron),
			Spec:       batchv1.JobSpec{Template: needing, Parallelism: ptr.To[int32](1), Completions: ptr.To[int32](1)},
			Status:     batchv1.JobStatus{Conditions: conditions},
		})
	}
	done := job("nightly-1", []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}})
	done.Annotations = placed(`{"east":{"replicas":1}}`, `{"east":{"succeeded":1,"ended":"Complete"}}`)
	done.Status.Succeeded = 1
	failed := job("nightly-0", []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Reason: "BackoffLimitExceeded", Message: "it was tried 6 times"}})
	failed.Annotations = placed(`{"east":{"replicas":1}}`, `{"east":{"failed":6,"ended":"Failed"}}`)
	failed.Status.Failed = 6
	running := job("nightly-2", nil)
	running.Status.Active = 1
	return objects{root: cron, others: []projection.Object{
		cron, done, failed, running, mirrored("nightly-1-x", "east", done, succeeded), mirrored("nightly-2-y", "east", running),
		typed(&corev1.Secret{ObjectMeta: about("token", nil)}),
	}, hidden: map[schema.GroupVersionResource]string{}}
}

func unplacedOne() objects {
	d := typed(&appsv1.Deployment{
		ObjectMeta: about("lost", nil),
		Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](2), Template: template("lost", func(p *corev1.PodSpec) {
			p.Containers[0].EnvFrom = []corev1.EnvFromSource{
				{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "token"}}},
			}
		})},
		Status: appsv1.DeploymentStatus{Conditions: []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "Unplaced", Message: "0/2 clusters can run it: 1 is cordoned, 1 lacks cpu"},
		}},
	})
	return objects{
		root: d, others: []projection.Object{d}, hidden: map[schema.GroupVersionResource]string{secretResource: "forbidden"},
		events: []corev1.Event{warning(d, "Unplaced", "0/2 clusters can run it: 1 is cordoned, 1 lacks cpu")},
	}
}

func operated() objects {
	custom := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Shop", "metadata": map[string]any{"name": "main", "namespace": "shop", "uid": "Shop/main"},
		"status": map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "False", "reason": "Waiting", "message": "the database is not ready"}}},
	}}
	all := database()
	all.others[0].SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(custom, custom.GroupVersionKind())})
	all.root = custom
	return all
}

func bare() objects {
	pod := typed(&corev1.Pod{
		ObjectMeta: about("once", map[string]string{manifoldv1alpha1.AnnotationPlacement: `{"west":{"replicas":1}}`}),
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c"}}},
	})
	unschedulable(pod)
	return objects{root: pod, others: []projection.Object{pod}, clusters: bothReady}
}

func TestTree(t *testing.T) {
	stranger := operated()
	for name, test := range map[string]struct {
		from objects
		all  bool
	}{
		"a deployment with everything":           {from: shop()},
		"each pod and revision":                  {from: shop(), all: true},
		"a secret shows who needs it":            {from: rooted(shop(), "Secret", "pull")},
		"a service shows what it leads to":       {from: rooted(shop(), "Service", "web")},
		"an autoscaler shows what it scales":     {from: rooted(shop(), "HorizontalPodAutoscaler", "web")},
		"a mirrored pod shows what it is of":     {from: rooted(shop(), "Pod", "web-6d5f8c9b7-w0")},
		"a statefulset with a silent cluster":    {from: database()},
		"a cronjob":                              {from: nightly()},
		"placed nowhere and secrets are hidden":  {from: unplacedOne()},
		"a custom resource and what it operates": {from: stranger},
		"a bare pod":                             {from: bare()},
		"an application in mid release":          {from: releasing()},
		"an application with a halted cluster":   {from: halted()},
		"an application that nobody released":    {from: unreleased()},
	} {
		t.Run(name, func(t *testing.T) {
			tree := grow(test.from, test.all)
			var wide, narrow, data strings.Builder
			for out, width := range map[*strings.Builder]int{&wide: 120, &narrow: 80} {
				if err := tree.print(out, "", width); err != nil {
					t.Fatal(err)
				}
				for line := range strings.Lines(out.String()) {
					if got := utf8.RuneCountInString(strings.TrimRight(line, "\n")); got > max(width, 100) {
						t.Errorf("a line of %d characters on a screen of %d:\n%s", got, width, line)
					}
				}
			}
			if err := tree.print(&data, "yaml", 0); err != nil {
				t.Fatal(err)
			}
			checkGolden(t, strings.ReplaceAll(name, " ", "-")+".txt", wide.String()+"---\n"+narrow.String()+"---\n"+data.String())
		})
	}
}

func checkGolden(t *testing.T, name, got string) {
	t.Helper()
	golden := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("go test ./pkg/cli/tree -update rewrites %s (-want +got):\n%s", golden, diff)
	}
}
