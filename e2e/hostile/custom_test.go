package hostile

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/liar"
	"github.com/manifold-dev/manifold/pkg/identity"
)

// terminal is what a terminal would obey.
const terminal = "\x1b]0;owned\a\x1b[2J"

// customLies are what west does to custom objects of which it has the only copy. The status is what counts of it.
var customLies = map[string]func(a *arena, obj *unstructured.Unstructured){
	"a status without end": func(_ *arena, obj *unstructured.Unstructured) {
		obj.Object["status"] = map[string]any{"blob": filler(mebibyte), "observedGeneration": int64(1), "conditions": []any{condition("Ready", filler(mebibyte/4))}}
	},
	"a deep status": func(_ *arena, obj *unstructured.Unstructured) {
		var deep any = "bottom"
		for range 200 { // see TestACustomStatusThatIsTooDeepIsTold for more
			deep = map[string]any{"d": []any{deep}}
		}
		obj.Object["status"] = map[string]any{"deep": deep}
	},
	"a wide status": func(_ *arena, obj *unstructured.Unstructured) {
		wide := map[string]any{}
		for i := range 50_000 {
			wide[fmt.Sprint(i)] = int64(i)
		}
		obj.Object["status"] = wide
	},
	"conditions without end": func(_ *arena, obj *unstructured.Unstructured) {
		var all []any
		for i := range 1000 {
			all = append(all, condition(fmt.Sprintf("Type%d", i), filler(100)))
		}
		obj.Object["status"] = map[string]any{"conditions": all}
	},
	"words that a terminal obeys": func(_ *arena, obj *unstructured.Unstructured) {
		obj.Object["status"] = map[string]any{
			"phase": terminal, terminal: "key", "list": []any{map[string]any{"deep": terminal}},
			"conditions": []any{condition("Ready", terminal), condition(terminal, "type")},
		}
	},
	"numbers that overflow": func(_ *arena, obj *unstructured.Unstructured) {
		ready := condition("Ready", "")
		ready["observedGeneration"] = int64(9223372036854775807)
		obj.Object["status"] = map[string]any{"observedGeneration": int64(9223372036854775807), "replicas": int64(9223372036854775807), "conditions": []any{ready}}
		set(obj, int64(9223372036854775807), "metadata", "generation")
	},
	"numbers below none": func(_ *arena, obj *unstructured.Unstructured) {
		obj.Object["status"] = map[string]any{"observedGeneration": int64(-9223372036854775808), "replicas": int64(-1)}
		set(obj, int64(-5), "metadata", "generation")
	},
	"a status that is none": func(_ *arena, obj *unstructured.Unstructured) { obj.Object["status"] = []any{"Ready"} },
	"conditions that are none": func(_ *arena, obj *unstructured.Unstructured) {
		obj.Object["status"] = map[string]any{"conditions": []any{"Ready", int64(1), nil, map[string]any{"type": int64(1)}}, "observedGeneration": "1"}
	},
	"what other clusters say": func(_ *arena, obj *unstructured.Unstructured) {
		said := map[string]any{"east": map[string]any{"generation": int64(1), "state": "Ready"}, "west": map[string]any{"generation": int64(1), "state": "Ready"}}
		obj.Object["status"] = maps.Clone(said)
		text, _ := json.Marshal(said)
		annotate(obj, map[string]string{v1alpha1.AnnotationStatus: string(text), v1alpha1.AnnotationPlacement: `{"east":{"replicas":1}}`, v1alpha1.AnnotationClusters: "east"})
	},
	"every key of ours": func(_ *arena, obj *unstructured.Unstructured) {
		marks := maps.Clone(obj.GetAnnotations())
		for _, key := range v1alpha1.Keys() {
			boast(obj, key)
		}
		annotate(obj, marks) // it is still the copy
	},
	"labels of the victim's": func(_ *arena, obj *unstructured.Unstructured) {
		label(obj, map[string]string{"app": estateName, "mallory": evil})
		annotate(obj, map[string]string{"mallory": evil})
	},
	"an owner that is the victim's, and finalizers": func(a *arena, obj *unstructured.Unstructured) {
		set(obj, owner(a.getIn(a.Environment.Logical, deployments, victim, estateName)), "metadata", "ownerReferences")
		obj.SetFinalizers([]string{"orphan", "foregroundDeletion", v1alpha1.FinalizerProjection, "evil.example.com/held"})
	},
	"a deletion": func(_ *arena, obj *unstructured.Unstructured) {
		set(obj, "2020-01-02T00:00:00Z", "metadata", "deletionTimestamp")
		set(obj, int64(0), "metadata", "deletionGracePeriodSeconds")
		obj.SetFinalizers([]string{"evil.example.com/held"})
	},
	"another spec": func(_ *arena, obj *unstructured.Unstructured) {
		obj.Object = replaced(obj.Object, honestImage, evilImage).(map[string]any)
		set(obj, int64(2147483647), "spec", "replicas")
		set(obj, map[string]any{evil: evil}, "spec", evil)
	},
	"no UID of an object above": func(_ *arena, obj *unstructured.Unstructured) {
		annotate(obj, map[string]string{v1alpha1.AnnotationUID: ""})
		obj.Object["status"] = map[string]any{"phase": evil}
	},
	"the UID of the victim's": func(a *arena, obj *unstructured.Unstructured) {
		uid := a.getIn(a.Environment.Logical, trinkets, victim, estateName).GetUID()
		annotate(obj, map[string]string{v1alpha1.AnnotationUID: string(uid)})
		obj.Object["status"] = map[string]any{"phase": evil}
	},
	"an origin that is the victim's": func(a *arena, obj *unstructured.Unstructured) {
		above := a.getIn(a.Environment.Logical, trinkets, victim, estateName)
		annotate(obj, map[string]string{
			v1alpha1.AnnotationNamespace: victim, v1alpha1.AnnotationName: estateName, v1alpha1.AnnotationUID: string(above.GetUID()),
		})
		obj.Object["status"] = map[string]any{"phase": evil}
	},
}

func condition(of, message string) map[string]any {
	return map[string]any{"type": of, "status": "True", "reason": "Said", "message": message, "lastTransitionTime": "2020-01-01T00:00:00Z"}
}

// kindOf is the kind of which a lie is told: those about numbers and templates are told of what has pods.
func kindOf(lie string) resourceOf {
	switch lie {
	case "numbers that overflow", "numbers below none", "another spec":
		return flocks
	}
	return trinkets
}

// marked are the lies by which a copy is not that of its object any more: nothing that it says counts.
var marked = []string{"no UID of an object above", "the UID of the victim's", "an origin that is the victim's"}

// TestACustomObjectIsWhatItsUserWroteWhateverItsClusterSays has west say of custom objects, of which it has the only copies, whatever there is, of
// each something else.
func TestACustomObjectIsWhatItsUserWroteWhateverItsClusterSays(t *testing.T) {
	a := enter(t)
	lies := slices.Sorted(maps.Keys(customLies))
	nameOf := func(i int) string { return fmt.Sprintf("told-%d", i) }
	get := func(i int) *unstructured.Unstructured {
		return a.getIn(a.Environment.Logical, kindOf(lies[i]), a.Namespace, nameOf(i))
	}
	allCopied := func() {
		for i, lie := range lies {
			a.awaitCopied(kindOf(lie), nameOf(i), "west")
		}
	}
	for i, lie := range lies {
		a.create(object{resource: kindOf(lie), manifest: pin(manifest(kindOf(lie), nameOf(i), honestImage), "west").Object})
	}
	allCopied()
	var before []*unstructured.Unstructured
	for i := range lies {
		before = append(before, get(i))
	}
	var stops []func()
	honest := func() {
		for _, stop := range stops {
			stop()
		}
	}
	defer honest()
	for _, of := range customKinds() {
		stops = append(stops, a.west.Change(of.GroupResource(), func(obj *unstructured.Unstructured) bool {
			for i, lie := range lies {
				if a.ofArena(obj, nameOf(i)) {
					customLies[lie](a, obj)
				}
			}
			return true
		}))
	}
	// Some is the cluster's word, and shown as such: so it is known that the lies were heard.
	omitted := func(obj *unstructured.Unstructured) bool { return identity.CopiesOf(obj)["west"].Omitted }
	a.Logical.Poll("the lies are heard", func() error {
		for lie, shown := range map[string]func(*unstructured.Unstructured) bool{
			"a status without end":   omitted,
			"a wide status":          omitted,
			"conditions without end": func(obj *unstructured.Unstructured) bool { return len(conditionsOf(obj)) > 0 },
			"words that a terminal obeys": func(obj *unstructured.Unstructured) bool {
				phase, _, _ := unstructured.NestedString(obj.Object, "status", "phase")
				return strings.Contains(phase, "owned")
			},
			"numbers that overflow": func(obj *unstructured.Unstructured) bool { return obj.Object["status"] != nil },
		} {
			if obj := get(slices.Index(lies, lie)); !shown(obj) {
				return fmt.Errorf("%s: the status has %d conditions, and it is told %.300s", lie, len(conditionsOf(obj)), obj.GetAnnotations()[v1alpha1.AnnotationStatus])
			}
		}
		return nil
	})
	a.customCanary()
	a.unharmed()
	for i, lie := range lies {
		a.asWritten(lie, before[i], get(i))
	}
	honest()
	allCopied()
	a.unharmed()
}

// mostStatus is how large the status of a custom object may be above, in JSON.
const mostStatus = 300 << 10

// asWritten checks that of a custom object nothing is changed above that is not west's to say, and that what west says has bounds.
func (a *arena) asWritten(lie string, was, is *unstructured.Unstructured) {
	a.Helper()
	fail := func(format string, args ...any) {
		a.Helper()
		a.Errorf("%s, %s: %s", lie, is.GetKind(), fmt.Sprintf(format, args...))
	}
	if !equality.Semantic.DeepEqual(was.Object["spec"], is.Object["spec"]) || is.GetGeneration() != was.GetGeneration() {
		fail("the spec is %v, was %v", is.Object["spec"], was.Object["spec"])
	}
	if is.GetUID() != was.GetUID() || is.GetDeletionTimestamp() != nil || len(is.GetOwnerReferences()) > 0 ||
		!equality.Semantic.DeepEqual(was.GetLabels(), is.GetLabels()) || !equality.Semantic.DeepEqual(was.GetFinalizers(), is.GetFinalizers()) {
		fail("the metadata is %v, was %v", is.Object["metadata"], was.Object["metadata"])
	}
	told, now := maps.Clone(was.GetAnnotations()), maps.Clone(is.GetAnnotations())
	breakdown := now[v1alpha1.AnnotationStatus]
	delete(told, v1alpha1.AnnotationStatus)
	delete(now, v1alpha1.AnnotationStatus)
	if !maps.Equal(told, now) {
		fail("the annotations are %v, were %v", now, told)
	}
	if clusters := identity.CopiesOf(is).Clusters(); !slices.Equal(clusters, []string{"west"}) {
		fail("it is told of clusters %v: %.300s", clusters, breakdown)
	}
	raw, err := json.Marshal(is.Object["status"])
	if err != nil {
		a.Fatal(err)
	}
	if len(raw) > mostStatus || len(breakdown) > mostStatus {
		fail("the status has %d bytes, the breakdown %d", len(raw), len(breakdown))
	}
	// What is written out has a backslash of its own, which JSON has as two.
	if text := strings.ReplaceAll(breakdown+string(raw), `\\`, ""); strings.ContainsAny(text, "\x1b\a") || strings.Contains(text, `\u001b`) || strings.Contains(text, `\u0007`) {
		fail("a terminal obeys %.300q", text)
	}
	if slices.Contains(marked, lie) && is.Object["status"] != nil {
		fail("the status is %.300s", raw)
	}
	if observed, _, _ := unstructured.NestedInt64(is.Object, "status", "observedGeneration"); observed < 0 || observed > is.GetGeneration() {
		fail("generation %d is observed of %d", observed, is.GetGeneration())
	}
	conditions := conditionsOf(is)
	if len(conditions) > 64 {
		fail("it has %d conditions", len(conditions))
	}
	for _, c := range conditions {
		if message, _ := c["message"].(string); len(message) > 1<<10 {
			fail("a condition has a message of %d bytes", len(message))
		}
	}
}

func conditionsOf(obj *unstructured.Unstructured) []map[string]any {
	list, _, _ := unstructured.NestedFieldNoCopy(obj.Object, "status", "conditions")
	all, _ := list.([]any)
	var out []map[string]any
	for _, c := range all {
		if c, ok := c.(map[string]any); ok {
			out = append(out, c)
		}
	}
	return out
}

// TestACopyThatNobodyPlacedSaysNothing has west hold copies, to the last mark, of custom objects that are east's alone, that are nowhere, and that
// are both clusters'. Of the last it says what east would, and what east should not.
func TestACopyThatNobodyPlacedSaysNothing(t *testing.T) {
	framework.Long(t)
	a := enter(t)
	east, both := a.custom(trinkets, "theirs", "east"), a.custom(trinkets, "both", "east", "west")
	above := a.create(object{resource: trinkets, manifest: manifest(trinkets, "nowhere", honestImage).Object})
	honest := map[string]any{"phase": "Up", "address": "192.0.2.1", "observedGeneration": int64(1), "conditions": []any{condition("Ready", "as east has it")}}
	a.says("east", trinkets, "theirs", honest)
	a.says("east", trinkets, "both", honest)
	shows := func(name, want string) {
		t.Helper()
		a.Logical.Poll(name+" shows what east says", func() error {
			obj := a.getIn(a.Environment.Logical, trinkets, a.Namespace, name)
			got, _, _ := unstructured.NestedString(obj.Object, "status", "phase")
			state := identity.CopiesOf(obj)["east"].State // which is written right after
			if got == want && state == "Ready" {
				return nil
			}
			return fmt.Errorf("the status is %v, and of east it is told %q", obj.Object["status"], state)
		})
	}
	shows("theirs", "Up")
	shows("both", "")
	was := a.getIn(a.Environment.Logical, trinkets, a.Namespace, "theirs")
	lying := map[string]any{"phase": "Down", "address": "203.0.113.6", "observedGeneration": int64(1), "conditions": []any{condition("Ready", "as west lies")}}
	// The right UID, one that there is not, and that of another kind; where it is, and in the namespaces of others.
	forged := map[resourceOf][]*unstructured.Unstructured{}
	forge := func(like *unstructured.Unstructured, name string, marks *unstructured.Unstructured) {
		obj := a.claimed(invented(trinkets, like.GetNamespace(), like.GetName()), marks.GetUID())
		annotate(obj, map[string]string{v1alpha1.AnnotationName: name})
		obj.SetName(name)
		set(obj, lying, "status")
		forged[trinkets] = append(forged[trinkets], obj)
	}
	forge(east, "theirs", east)
	forge(above, "nowhere", above)
	forge(east, "never", &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"uid": string(uuid.NewUUID())}}})
	forge(east, "of-a-deployment", a.getIn(a.Environment.Logical, deployments, a.Namespace, "own"))
	for _, namespace := range []string{victim, metav1.NamespaceDefault, v1alpha1.SystemNamespace} {
		estate := a.getIn(a.Environment.Logical, trinkets, namespace, estateName)
		forge(estate, estateName, estate)
	}
	leave := a.settleIn(victim, metav1.NamespaceDefault, v1alpha1.SystemNamespace)
	defer leave()
	stop := a.invent(forged)
	defer stop()
	change := a.west.Change(trinkets.GroupResource(), func(obj *unstructured.Unstructured) bool {
		if a.ofArena(obj, "both") {
			said := maps.Clone(lying)
			said["phase"] = "Up"
			said["east"] = lying
			obj.Object["status"] = said
			boasted, _ := json.Marshal(map[string]any{"east": lying, "west": lying})
			annotate(obj, map[string]string{v1alpha1.AnnotationStatus: string(boasted)})
		}
		return true
	})
	defer change()
	a.Logical.Poll("west's word is shown beside east's", func() error {
		obj := a.getIn(a.Environment.Logical, trinkets, a.Namespace, "both")
		if text := obj.GetAnnotations()[v1alpha1.AnnotationStatus]; !strings.Contains(text, "203.0.113.6") || !strings.Contains(text, "192.0.2.1") {
			return fmt.Errorf("it is told %s", text)
		}
		return nil
	})
	a.customCanary()
	a.unharmed()
	if is := a.getIn(a.Environment.Logical, trinkets, a.Namespace, "theirs"); is.GetResourceVersion() != was.GetResourceVersion() {
		t.Errorf("what is east's alone was changed: it is %v, was %v", is.Object, was.Object)
	}
	if is := a.getIn(a.Environment.Logical, trinkets, a.Namespace, "nowhere"); is.GetResourceVersion() != above.GetResourceVersion() {
		t.Errorf("what is nowhere was changed: it is %v, was %v", is.Object, above.Object)
	}
	for _, name := range []string{"never", "of-a-deployment"} {
		for _, obj := range a.list(a.Environment.Logical, trinkets, "") {
			if obj.GetName() == name {
				t.Errorf("%s has come to be above: %v", name, obj.Object)
			}
		}
	}
	is := a.getIn(a.Environment.Logical, trinkets, a.Namespace, "both")
	status, _ := is.Object["status"].(map[string]any)
	if status["phase"] != "Up" || status["address"] != nil || status["east"] != nil {
		t.Errorf("of both clusters it is told %v, want what both say alike", status)
	}
	if said := identity.CopiesOf(is); said["east"].Status["address"] != "192.0.2.1" || said["west"].Status["address"] != "203.0.113.6" ||
		!slices.Equal(said.Clusters(), []string{"east", "west"}) {
		t.Errorf("each cluster's own is told as %s", said)
	}
	if is.GetUID() != both.GetUID() || !equality.Semantic.DeepEqual(is.Object["spec"], both.Object["spec"]) {
		t.Errorf("it is %v, was %v", is.Object, both.Object)
	}
	// All that is ever done about what was made up is to have it go, in west alone.
	for _, obj := range forged[trinkets] {
		path := "/namespaces/" + obj.GetNamespace() + "/" + trinkets.Resource + "/" + obj.GetName()
		for _, sent := range a.asked(func(sent liar.Sent) bool {
			return sent.Method != "DELETE" && strings.HasSuffix(strings.Split(sent.Path, "?")[0], path)
		}) {
			t.Errorf("west was sent %s %s", sent.Method, sent.Path)
		}
	}
	change()
	stop()
	leave()
	shows("both", "") // west says nothing of it then, as in truth it never has
	a.unharmed()
}
