package physical

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/pkg/cli/cluster/grants"
)

// granting is a cluster that notes what is applied there, in its order, and has these roles.
func granting(t *testing.T, roles ...*rbacv1.ClusterRole) (c *Cluster, applied *[]string) {
	t.Helper()
	var typed []runtime.Object
	for _, role := range roles {
		typed = append(typed, role)
	}
	applied = new([]string)
	client := dynamicfake.NewSimpleDynamicClient(scheme.Scheme)
	client.PrependReactor("patch", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
		patch := a.(clienttesting.PatchAction)
		object := &unstructured.Unstructured{}
		if err := json.Unmarshal(patch.GetPatch(), &object.Object); err != nil {
			return true, nil, err
		}
		*applied = append(*applied, object.GetKind()+" "+patch.GetName())
		return true, object, nil
	})
	return &Cluster{client: fake.NewClientset(typed...), dynamic: client}, applied
}

func roleOf(t *testing.T, all []grants.Piece, err error) *rbacv1.ClusterRole {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	role := &rbacv1.ClusterRole{}
	for _, piece := range all {
		if piece.Object.GetKind() == "ClusterRole" {
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(piece.Object.Object, role); err != nil {
				t.Fatal(err)
			}
		}
	}
	return role
}

func TestGrantAppliesWhatIsWantedAndWhatWasAllowedBefore(t *testing.T) {
	const name = "manifold-syncer-0a1b2c3d"
	widgets, gizmos := schema.GroupResource{Group: "example.com", Resource: "widgets"}, schema.GroupResource{Group: "example.com", Resource: "gizmos"}
	withKinds, err := grants.ForKinds(testLogical, []schema.GroupResource{widgets})
	kinds := roleOf(t, withKinds, err)
	withPriorities, err := grants.All(testLogical, grants.Allowances{PriorityClassesUpTo: ptr.To[int32](7)})
	priorities := roleOf(t, withPriorities, err)
	for test, c := range map[string]struct {
		before []*rbacv1.ClusterRole
		wanted grants.Allowances
		want   grants.Allowances
		// last are the ends of the names of what is applied beside what every cluster has.
		last []string
	}{
		"nothing beside": {},
		"what is wanted": {
			wanted: grants.Allowances{Kinds: []schema.GroupResource{gizmos}, PriorityClassesUpTo: ptr.To[int32](5), Volumes: true, Pipelines: true},
			want:   grants.Allowances{Kinds: []schema.GroupResource{gizmos}, PriorityClassesUpTo: ptr.To[int32](5), Volumes: true, Pipelines: true},
			last: []string{
				"ValidatingAdmissionPolicy -priorities", "ValidatingAdmissionPolicyBinding -priorities", "ClusterRole -priorities", "ClusterRoleBinding -priorities",
				"ValidatingAdmissionPolicy -volumes", "ValidatingAdmissionPolicyBinding -volumes", "ClusterRole -volumes", "ClusterRoleBinding -volumes",
				"ClusterRole -pipelines", "ClusterRoleBinding -pipelines", "ClusterRole -kinds", "ClusterRoleBinding -kinds",
			},
		},
		"kinds are added to those of before": {
			before: []*rbacv1.ClusterRole{kinds}, wanted: grants.Allowances{Kinds: []schema.GroupResource{gizmos}},
			want: grants.Allowances{Kinds: []schema.GroupResource{widgets, gizmos}}, last: []string{"ClusterRole -kinds", "ClusterRoleBinding -kinds"},
		},
		"kinds of before stay as they are if none are wanted": {before: []*rbacv1.ClusterRole{kinds}},
		"a value of before stays": {
			before: []*rbacv1.ClusterRole{priorities}, want: grants.Allowances{PriorityClassesUpTo: ptr.To[int32](7)},
			last: []string{"ValidatingAdmissionPolicy -priorities", "ValidatingAdmissionPolicyBinding -priorities", "ClusterRole -priorities", "ClusterRoleBinding -priorities"},
		},
		"a webhook for pods comes later": {
			wanted: grants.Allowances{PodWebhook: &grants.PodWebhook{Cluster: "east"}}, want: grants.Allowances{PodWebhook: &grants.PodWebhook{Cluster: "east"}},
		},
	} {
		t.Run(test, func(t *testing.T) {
			cluster, applied := granting(t, c.before...)
			var undo Undo
			got, err := cluster.Grant(t.Context(), testLogical, c.wanted, &undo)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("allowed (-want +got):\n%s", diff)
			}
			every, err := grants.All(testLogical, grants.Allowances{})
			if err != nil {
				t.Fatal(err)
			}
			var last []string
			for _, what := range (*applied)[len(every):] {
				last = append(last, strings.Replace(what, name, "", 1))
			}
			if !slices.Equal(last, c.last) {
				t.Errorf("applied are %q last, want %q", last, c.last)
			}
			made := len(*applied)
			if len(c.wanted.Kinds) > 0 && len(c.before) == 0 {
				made++ // their role, before it has any
			}
			if len(undo) != made {
				t.Errorf("%d can be taken back of %d that were made", len(undo), made)
			}
		})
	}
}

// Two admins who allow a kind each at the same time both have their way.
func TestAKindThatIsAllowedMeanwhileStays(t *testing.T) {
	widgets, gizmos := schema.GroupResource{Group: "example.com", Resource: "widgets"}, schema.GroupResource{Group: "example.com", Resource: "gizmos"}
	none, err := grants.ForKinds(testLogical, nil)
	before := roleOf(t, none, err)
	before.ResourceVersion = "1"
	cluster, applied := granting(t, before)
	conflicts := 0
	cluster.dynamic.(*dynamicfake.FakeDynamicClient).PrependReactor("patch", "clusterroles", func(a clienttesting.Action) (bool, runtime.Object, error) {
		patch := a.(clienttesting.PatchAction)
		if patch.GetName() != before.Name || !strings.Contains(string(patch.GetPatch()), `"resourceVersion":"1"`) {
			return false, nil, nil
		}
		conflicts++
		theirs, err := grants.ForKinds(testLogical, []schema.GroupResource{widgets})
		after := roleOf(t, theirs, err)
		after.ResourceVersion = "2"
		if _, err := cluster.client.RbacV1().ClusterRoles().Update(t.Context(), after, metav1.UpdateOptions{}); err != nil {
			t.Error(err)
		}
		return true, nil, apierrors.NewConflict(rbacv1.Resource("clusterroles"), before.Name, errors.New("it was modified"))
	})
	var undo Undo
	got, err := cluster.Grant(t.Context(), testLogical, grants.Allowances{Kinds: []schema.GroupResource{gizmos}}, &undo)
	if err != nil || conflicts != 1 || !slices.Equal(got.Kinds, []schema.GroupResource{widgets, gizmos}) {
		t.Errorf("allowed are %v after %d conflicts and %v, %v; want both", got.Kinds, conflicts, *applied, err)
	}
}

func TestKindsAreThoseOfTheLogicalCluster(t *testing.T) {
	want := []schema.GroupResource{{Group: "example.com", Resource: "widgets"}}
	made, err := grants.ForKinds(testLogical, want)
	c := &Cluster{client: fake.NewClientset(roleOf(t, made, err))}
	if got, err := c.Kinds(t.Context(), testLogical); err != nil || !slices.Equal(got, want) {
		t.Errorf("allowed are %v, error %v, want %v", got, err, want)
	}
	if got, err := c.Kinds(t.Context(), "another-one"); err != nil || len(got) > 0 {
		t.Errorf("another logical cluster is allowed %v, error %v", got, err)
	}
}

func TestThatPipelinesSeeTheClusterIsTakenBackIfItWasAllowed(t *testing.T) {
	pieces, err := grants.ForPipelines(testLogical)
	role := roleOf(t, pieces, err)
	theirs := role.DeepCopy()
	theirs.Labels = nil // somebody else has made one of that name
	for name, test := range map[string]struct {
		before []*rbacv1.ClusterRole
		stays  grants.Allowances
		want   []string
	}{
		"it was not allowed":                   {},
		"it was":                               {before: []*rbacv1.ClusterRole{role}, want: []string{"clusterrolebindings", "clusterroles"}},
		"it was, and is again":                 {before: []*rbacv1.ClusterRole{role}, stays: grants.Allowances{Pipelines: true}},
		"a role of somebody else is not taken": {before: []*rbacv1.ClusterRole{theirs}},
	} {
		t.Run(name, func(t *testing.T) {
			cluster, _ := granting(t, test.before...)
			taken, err := cluster.TakeBack(t.Context(), testLogical, test.stays)
			if err != nil || (len(taken) > 0) != (len(test.want) > 0) {
				t.Errorf("taken back are %v: %v", taken, err)
			}
			var deleted []string
			for _, action := range cluster.dynamic.(*dynamicfake.FakeDynamicClient).Actions() {
				if of, is := action.(clienttesting.DeleteAction); is && strings.HasSuffix(of.GetName(), "-pipelines") {
					deleted = append(deleted, of.GetResource().Resource)
				}
			}
			if !slices.Equal(deleted, test.want) {
				t.Errorf("deleted are %v, want %v", deleted, test.want)
			}
		})
	}
}
