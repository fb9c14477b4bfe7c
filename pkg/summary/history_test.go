package summary

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

var statefulSetGVK = appsv1.SchemeGroupVersion.WithKind("StatefulSet")

// planned is the history of an object after its template had the images, one after another, each carried out before the next.
func planned(t *testing.T, limit *int32, used map[string]bool, images ...string) []*appsv1.ControllerRevision {
	t.Helper()
	var history []*appsv1.ControllerRevision
	for i, image := range images {
		owner := set(1, func(in *appsv1.StatefulSet) {
			in.Spec.Template, in.Spec.RevisionHistoryLimit = templateOf(image), limit
		})
		plan, err := statefulSetKind.build().PlanHistory(owner, statefulSetGVK, history, used)
		if err != nil {
			t.Fatal(err)
		}
		history = carryOut(history, plan, i)
		again, err := statefulSetKind.build().PlanHistory(owner, statefulSetGVK, history, used)
		if err != nil || again.Write != nil || len(again.Prune) > 0 {
			t.Fatalf("after image %s there is still to do %+v, %v", image, again, err)
		}
	}
	return history
}

func carryOut(history []*appsv1.ControllerRevision, plan HistoryPlan, step int) []*appsv1.ControllerRevision {
	gone := map[string]bool{}
	for _, revision := range plan.Prune {
		gone[revision.Name] = true
	}
	if plan.Write != nil {
		gone[plan.Write.Name] = true // and comes back
		plan.Write.ResourceVersion = fmt.Sprint(step)
	}
	var out []*appsv1.ControllerRevision
	for _, revision := range history {
		if !gone[revision.Name] {
			out = append(out, revision)
		}
	}
	if plan.Write != nil {
		out = append(out, plan.Write)
	}
	return out
}

func TestHistoryIsNumberedByLastUse(t *testing.T) {
	for name, test := range map[string]struct {
		images []string
		limit  *int32
		used   map[string]bool
		// want are the images by number, "3=web:1" for example.
		want string
	}{
		"the first template":                       {images: []string{"web:1"}, want: "1=web:1"},
		"templates in their order":                 {images: []string{"web:1", "web:2", "web:3"}, want: "1=web:1 2=web:2 3=web:3"},
		"a template that is used again":            {images: []string{"web:1", "web:2", "web:1"}, want: "2=web:2 3=web:1"},
		"back and forth":                           {images: []string{"web:1", "web:2", "web:1", "web:2"}, want: "3=web:1 4=web:2"},
		"old ones are pruned":                      {images: []string{"web:1", "web:2", "web:3"}, limit: ptr.To[int32](1), want: "2=web:2 3=web:3"},
		"none but the one in use is kept":          {images: []string{"web:1", "web:2"}, limit: ptr.To[int32](0), want: "2=web:2"},
		"a limit below zero keeps all":             {images: []string{"web:1", "web:2"}, limit: ptr.To[int32](-1), want: "1=web:1 2=web:2"},
		"what pods still carry out is not history": {images: []string{"web:1", "web:2"}, limit: ptr.To[int32](0), used: map[string]bool{hashOf("web:1"): true}, want: "1=web:1 2=web:2"},
	} {
		t.Run(name, func(t *testing.T) {
			images := map[string]string{}
			for _, image := range test.images {
				images[revision(image)] = image
			}
			var got []string
			for number := int64(1); number < 9; number++ {
				for _, r := range planned(t, test.limit, test.used, test.images...) {
					if r.Revision == number {
						got = append(got, fmt.Sprintf("%d=%s", number, images[r.Name]))
					}
				}
			}
			if strings.Join(got, " ") != test.want {
				t.Errorf("got %s, want %s", strings.Join(got, " "), test.want)
			}
		})
	}
}

func TestARevisionBringsItsTemplateBack(t *testing.T) {
	owner := set(1, func(in *appsv1.StatefulSet) {
		in.Annotations = map[string]string{
			"kubernetes.io/change-cause": "a better image", corev1.LastAppliedConfigAnnotation: "{}", v1alpha1.AnnotationPlacement: "{}",
		}
	})
	plan, err := statefulSetKind.build().PlanHistory(owner, statefulSetGVK, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := plan.Write
	if got.Name != revision("web:2") || got.Namespace != "shop" || got.Revision != 1 || !metav1.IsControlledBy(got, owner) {
		t.Errorf("revision %s/%s, number %d, of %v", got.Namespace, got.Name, got.Revision, got.OwnerReferences)
	}
	if len(got.Annotations) != 1 || got.Annotations["kubernetes.io/change-cause"] != "a better image" {
		t.Errorf("annotations %v, want the cause of the change alone", got.Annotations)
	}
	if got.Labels["app"] != "web" || got.Labels["controller.kubernetes.io/hash"] != hashOf("web:2") {
		t.Errorf("labels %v, want those of the pods and the hash", got.Labels)
	}
	want := `{"spec":{"template":{"$patch":"replace","metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"image":"web:2","name":"web","resources":{}}]}}}}`
	if string(got.Data.Raw) != want {
		t.Errorf("data\n%s, want\n%s", got.Data.Raw, want)
	}
}

// Users may write revisions, as with the stock controllers: one with the same content stands for the template.
func TestWhatUsersMakeOfAHistoryCounts(t *testing.T) {
	history := planned(t, nil, nil, "web:1", "web:2")
	copied := history[1].DeepCopy()
	copied.Name, copied.Labels, copied.Revision = "db-by-hand", map[string]string{"app": "web"}, 7
	for name, test := range map[string]struct {
		history []*appsv1.ControllerRevision
		want    *int64
	}{
		"a copy with a higher number":      {append(history, copied), nil},
		"a copy alone":                     {[]*appsv1.ControllerRevision{copied}, nil},
		"a copy of another with a number ": {[]*appsv1.ControllerRevision{history[1], func() *appsv1.ControllerRevision { r := history[0].DeepCopy(); r.Revision = 7; return r }()}, ptr.To[int64](8)},
		"all are deleted":                  {nil, ptr.To[int64](1)},
	} {
		t.Run(name, func(t *testing.T) {
			plan, err := statefulSetKind.build().PlanHistory(set(1), statefulSetGVK, test.history, nil)
			if err != nil {
				t.Fatal(err)
			}
			var got *int64
			if plan.Write != nil {
				got = &plan.Write.Revision
			}
			if !ptr.Equal(got, test.want) {
				t.Errorf("writes %v, want %v", got, test.want)
			}
		})
	}
}

// A user may write the revision that the next template is to have, with another template in it.
func TestANameThatIsTakenIsACollision(t *testing.T) {
	history := planned(t, nil, nil, "web:1")
	taken := history[0].DeepCopy()
	taken.Name, taken.Revision = revision("web:2"), 2
	taken.Labels["controller.kubernetes.io/hash"] = hashOf("web:2")
	owner := set(1)
	plan, err := statefulSetKind.build().PlanHistory(owner, statefulSetGVK, []*appsv1.ControllerRevision{taken}, nil)
	if err != nil || plan.Write != nil || plan.Collisions != 1 {
		t.Fatalf("planned %+v, %v; want a collision alone", plan, err)
	}
	owner.Status.CollisionCount = &plan.Collisions
	plan, err = statefulSetKind.build().PlanHistory(owner, statefulSetGVK, []*appsv1.ControllerRevision{taken}, nil)
	if err != nil || plan.Write == nil || plan.Write.Name == taken.Name || plan.Write.Revision != 3 || plan.Collisions != 1 {
		t.Errorf("planned %+v, %v; want the third revision under a name of its own", plan, err)
	}
}
