package mirrors

import (
	"context"
	"errors"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/apps/install" // objects are converted
	api "k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install" // objects are converted
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/mirror"
	"github.com/manifold-dev/manifold/pkg/server/identity"
)

// asked notes what it is asked, and allows nothing but pods.
type asked struct{ questions []string }

func (g *asked) note(cluster, question string, objects ...metav1.Object) error {
	for _, o := range objects {
		question += " " + o.GetName()
	}
	g.questions = append(g.questions, cluster+": "+question)
	if strings.HasSuffix(strings.Fields(question)[0], "Pod") {
		return nil
	}
	return errors.New("not so")
}

func (g *asked) CreatePod(cluster string, pod *corev1.Pod) error {
	return g.note(cluster, "CreatePod", pod)
}
func (g *asked) UpdatePod(cluster string, pod, stored *corev1.Pod) error {
	return g.note(cluster, "UpdatePod", pod, stored)
}
func (g *asked) DeletePod(cluster string, stored *corev1.Pod) error {
	return g.note(cluster, "DeletePod", stored)
}
func (g *asked) CreateClaim(cluster string, claim *corev1.PersistentVolumeClaim) error {
	return g.note(cluster, "CreateClaim", claim)
}
func (g *asked) UpdateClaim(cluster string, claim, stored *corev1.PersistentVolumeClaim) error {
	return g.note(cluster, "UpdateClaim", claim, stored)
}
func (g *asked) DeleteClaim(cluster string, stored *corev1.PersistentVolumeClaim) error {
	return g.note(cluster, "DeleteClaim", stored)
}
func (g *asked) CreateEvent(cluster string, event *corev1.Event) error {
	return g.note(cluster, "CreateEvent", event)
}
func (g *asked) UpdateEvent(cluster string, event, stored *corev1.Event) error {
	return g.note(cluster, "UpdateEvent", event, stored)
}

func TestWhatAClusterWritesIsCompared(t *testing.T) {
	const east = "system:manifold:cluster:east"
	pod := func(name string) *api.Pod { return &api.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}} }
	claim := func(name string) *api.PersistentVolumeClaim {
		return &api.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	event := func(name string) *api.Event { return &api.Event{ObjectMeta: metav1.ObjectMeta{Name: name}} }
	for name, test := range map[string]struct {
		who, group, resource, subresource string
		operation                         admission.Operation
		object, old                       runtime.Object
		want                              string // the question, "" for none
		wantError                         string
	}{
		"a new pod":          {east, "", "pods", "", admission.Create, pod("new"), nil, "east: CreatePod new", ""},
		"a pod that changes": {east, "", "pods", "", admission.Update, pod("new"), pod("old"), "east: UpdatePod new old", ""},
		"a pod that goes":    {east, "", "pods", "", admission.Delete, nil, pod("old"), "east: DeletePod old", ""},
		"a claim that is not so": {
			east, "", "persistentvolumeclaims", "", admission.Create, claim("new"), nil, "east: CreateClaim new", `cluster "east": not so`,
		},
		"a claim that changes": {
			east, "", "persistentvolumeclaims", "", admission.Update, claim("new"), claim("old"), "east: UpdateClaim new old", "not so",
		},
		"a claim that goes": {
			east, "", "persistentvolumeclaims", "", admission.Delete, nil, claim("old"), "east: DeleteClaim old", "not so",
		},
		"an event":                      {east, "", "events", "", admission.Create, event("new"), nil, "east: CreateEvent new", "not so"},
		"an event of the other group":   {east, "events.k8s.io", "events", "", admission.Update, event("new"), event("old"), "east: UpdateEvent new old", "not so"},
		"an event that goes":            {east, "", "events", "", admission.Delete, nil, event("old"), "", "it deletes none"},
		"a ReplicaSet":                  {east, "apps", "replicasets", "", admission.Create, nil, nil, "", "none of its business"},
		"an object of another kind":     {east, "", "pods", "", admission.Create, claim("new"), nil, "", "cluster \"east\""},
		"nothing":                       {east, "", "pods", "", admission.Create, nil, nil, "", "the object is not known"},
		"what Manifold itself writes":   {v1alpha1.SummaryUser, "", "pods", "", admission.Create, pod("new"), nil, "", ""},
		"what users write is not asked": {"jane", "", "pods", "", admission.Create, pod("new"), nil, "", errRefused.Error()},
		"nor is a subresource":          {east, "", "pods", "status", admission.Update, pod("new"), pod("old"), "", errRefused.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			guard := &asked{}
			attributes := admission.NewAttributesRecord(test.object, test.old, schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, "shop", "web",
				schema.GroupVersionResource{Group: test.group, Version: "v1", Resource: test.resource}, test.subresource,
				test.operation, nil, false, &user.DefaultInfo{Name: test.who})
			err := Exempt{refusing{}, guard}.Validate(t.Context(), attributes, nil)
			if got := strings.Join(guard.questions, ", "); got != test.want {
				t.Errorf("asked %q, want %q", got, test.want)
			}
			if (err == nil) != (test.wantError == "") || err != nil && !strings.Contains(err.Error(), test.wantError) {
				t.Errorf("error %v, want %q in it", err, test.wantError)
			}
		})
	}
}

// Pods get defaults that templates do not. What an honest syncer writes gets them on its way to storage.
func TestTheMirrorOfACompletedPodIsItsOwnImage(t *testing.T) {
	for name, change := range map[string]func(*corev1.PodSpec){
		"a plain pod":                           func(*corev1.PodSpec) {},
		"a pod of the host's network":           func(s *corev1.PodSpec) { s.HostNetwork = true },
		"a pod that is to end before it begins": func(s *corev1.PodSpec) { s.TerminationGracePeriodSeconds = ptr.To[int64](-1) },
		"a pod with limits alone": func(s *corev1.PodSpec) {
			s.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
		},
	} {
		t.Run(name, func(t *testing.T) {
			set := &appsv1.ReplicaSet{Spec: appsv1.ReplicaSetSpec{Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web:1", Ports: []corev1.ContainerPort{{ContainerPort: 80}}}}},
			}}}
			change(&set.Spec.Template.Spec)
			legacyscheme.Scheme.Default(set)
			owner := mirror.Owner{Object: set, Template: &set.Spec.Template}
			below := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-1", Labels: map[string]string{"app": "web"}}, Spec: *set.Spec.Template.Spec.DeepCopy()}
			below.Spec.Containers = append(below.Spec.Containers, corev1.Container{Name: "added", Image: "mesh:1", Ports: []corev1.ContainerPort{{ContainerPort: 81}}})
			Completed(below)

			written := below.DeepCopy()
			owner.Pod(written, nil)
			Completed(written)
			if err := owner.CheckPod(written, nil, "east", Completed); err != nil {
				t.Errorf("refused: %v", err)
			}
			again := below.DeepCopy()
			owner.Pod(again, written)
			if !equality.Semantic.DeepEqual(again.Spec, written.Spec) {
				t.Errorf("is written again as %+v, want %+v", again.Spec, written.Spec)
			}
		})
	}
}

// refusing is an admission chain that refuses everything.
type refusing struct{}

var errRefused = errors.New("refused")

func (refusing) Handles(admission.Operation) bool { return true }

func (refusing) Admit(context.Context, admission.Attributes, admission.ObjectInterfaces) error {
	return errRefused
}

func (refusing) Validate(context.Context, admission.Attributes, admission.ObjectInterfaces) error {
	return errRefused
}

// What controllers make that is no mirror is admitted like what users make.
func TestAdmissionSeesWhatControllersMake(t *testing.T) {
	for _, who := range identity.Controllers() {
		for _, resource := range []schema.GroupVersionResource{
			{Version: "v1", Resource: "namespaces"}, {Version: "v1", Resource: "configmaps"}, {Version: "v1", Resource: "nodes"},
			{Version: "v1", Resource: "secrets"}, {Version: "v1", Resource: "persistentvolumes"},
			{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}, {Group: "apps", Version: "v1", Resource: "deployments"},
			{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"},
			{Group: "manifold.dev", Version: "v1alpha1", Resource: "clusterplacementpolicies"},
			{Group: "example.com", Version: "v1", Resource: "widgets"},
		} {
			attributes := admission.NewAttributesRecord(nil, nil, schema.GroupVersionKind{}, "shop", "web", resource, "",
				admission.Create, nil, false, &user.DefaultInfo{Name: who})
			chain := Exempt{refusing{}, &asked{}}
			if err := chain.Admit(t.Context(), attributes, nil); !errors.Is(err, errRefused) {
				t.Errorf("%s makes %s past admission that changes: %v", who, resource.Resource, err)
			}
			if err := chain.Validate(t.Context(), attributes, nil); !errors.Is(err, errRefused) {
				t.Errorf("%s makes %s past admission that refuses: %v", who, resource.Resource, err)
			}
		}
	}
}

func TestAdmissionLeavesMirrorsAlone(t *testing.T) {
	const east = "system:manifold:cluster:east"
	for name, test := range map[string]struct {
		who         string
		resource    schema.GroupVersionResource
		subresource string
		wantExempt  bool
		update      bool
	}{
		"pods of a syncer":                         {east, schema.GroupVersionResource{Version: "v1", Resource: "pods"}, "", true, false},
		"volume claims of a syncer":                {east, schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}, "", true, false},
		"not volume claims of users":               {"jane", schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}, "", false, false},
		"events of a syncer":                       {east, schema.GroupVersionResource{Version: "v1", Resource: "events"}, "", true, false},
		"events of the new group":                  {east, schema.GroupVersionResource{Group: "events.k8s.io", Version: "v1", Resource: "events"}, "", true, false},
		"ReplicaSets of Manifold":                  {v1alpha1.SummaryUser, schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "replicasets"}, "", true, false},
		"not pods of users":                        {"jane", schema.GroupVersionResource{Version: "v1", Resource: "pods"}, "", false, false},
		"not ReplicaSets of users":                 {"jane", schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "replicasets"}, "", false, false},
		"not what a syncer evicts":                 {east, schema.GroupVersionResource{Version: "v1", Resource: "pods"}, "eviction", false, false},
		"not Secrets of a syncer":                  {east, schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, "", false, false},
		"not Deployments of Manifold":              {v1alpha1.PlacementUser, schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, "", false, false},
		"not pods of a group that is not ours":     {east, schema.GroupVersionResource{Group: "metrics.k8s.io", Version: "v1", Resource: "pods"}, "", false, false},
		"Manifold's decision on a Deployment":      {v1alpha1.PlacementUser, schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, "", true, true},
		"not its status":                           {v1alpha1.SummaryUser, schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, "status", false, true},
		"not what delivery writes of a Deployment": {v1alpha1.DeliveryUser, schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, "", false, true},
		"nor a ReplicaSet that it makes":           {v1alpha1.DeliveryUser, schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "replicasets"}, "", false, false},
		"not what users make of a Deployment":      {"jane", schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, "", false, true},
	} {
		t.Run(name, func(t *testing.T) {
			operation := admission.Create
			if test.update {
				operation = admission.Update
			}
			attributes := admission.NewAttributesRecord(nil, nil, schema.GroupVersionKind{}, "shop", "web", test.resource, test.subresource,
				operation, nil, false, &user.DefaultInfo{Name: test.who})
			chain := Exempt{refusing{}, &asked{}}
			for what, err := range map[string]error{
				"Admit": chain.Admit(t.Context(), attributes, nil), "Validate": chain.Validate(t.Context(), attributes, nil),
			} {
				if exempt := !errors.Is(err, errRefused); exempt != test.wantExempt {
					t.Errorf("%s: exempt %t, want %t", what, exempt, test.wantExempt)
				}
			}
		})
	}
}
