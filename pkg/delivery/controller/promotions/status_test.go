package promotions

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"github.com/manifold-dev/manifold/pkg/delivery/weave"
)

func TestAWriteOfTheStatusTouchesNothingElse(t *testing.T) {
	w := newWorld(t, pipelineOf(directly), inProd)
	w.look()
	for _, action := range w.dynamic.Actions() {
		patch, is := action.(clienttesting.PatchAction)
		if !is || action.GetSubresource() != "status" {
			continue
		}
		var got struct {
			Metadata map[string]any
			Spec     any
			Status   map[string]json.RawMessage
		}
		if err := json.Unmarshal(patch.GetPatch(), &got); err != nil {
			t.Fatal(err)
		}
		environments := map[string]map[string]any{}
		if err := json.Unmarshal(got.Status["environments"], &environments); err != nil {
			t.Fatal(err)
		}
		delete(got.Status, "environments")
		delete(got.Status, "conditions")
		if got.Metadata["uid"] != "uid-of-web" || got.Metadata["resourceVersion"] == nil || len(got.Metadata) != 2 || got.Spec != nil || len(got.Status) > 0 {
			t.Errorf("the patch is %s", patch.GetPatch())
		}
		for name, fields := range environments {
			for field := range fields {
				if field != "promotion" && field != "waitingStatus" {
					t.Errorf("it writes %s of %s", field, name)
				}
			}
		}
	}
}

func TestWhatWasDoneAndNotToldIsNotDoneAgain(t *testing.T) {
	for name, test := range map[string]struct {
		strategy string
		done     func(w *world) int
	}{
		"a version that was written": {directly, func(w *world) (n int) {
			for _, action := range w.dynamic.Actions() {
				if action.Matches("patch", "deployments") {
					n++
				}
			}
			return n
		}},
		"an event": {"{strategy: {notification: {}}}", func(w *world) int {
			events, err := w.kube.CoreV1().Events("shop").List(w.Context(), metav1.ListOptions{})
			if err != nil {
				w.Fatal(err)
			}
			return len(events.Items)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, pipelineOf(test.strategy), inProd)
			patches := 0
			w.dynamic.PrependReactor("patch", "pipelines", func(clienttesting.Action) (bool, runtime.Object, error) {
				if patches++; patches == 2 { // after it has begun, and was carried out
					return true, nil, errors.New("the server is gone")
				}
				return false, nil, nil
			})
			if err := w.sync(t.Context(), web); err == nil {
				t.Fatal("nothing has failed")
			}
			if n := test.done(w); n != 1 {
				t.Fatalf("it is done %d times", n)
			}
			w.clock.SetTime(w.clock.Now().Add(time.Minute))
			w.restart(w.Mapper.(mapper).RESTMapper)
			w.look()
			if n := test.done(w); n != 1 {
				t.Errorf("it is done %d times", n)
			}
			if got := w.promotion(); got.Phase != weave.PromotionStarted {
				t.Errorf("the promotion is %+v", got)
			}
		})
	}
}

func TestWhatOthersWriteMeanwhileStays(t *testing.T) {
	w := newWorld(t, pipelineOf("{manual: true, strategy: {notification: {}}}"))
	conflicts := 0
	w.dynamic.PrependReactor("patch", "pipelines", func(clienttesting.Action) (bool, runtime.Object, error) {
		if conflicts++; conflicts > 1 {
			return false, nil, nil
		}
		found, err := w.dynamic.Tracker().Get(schema.GroupVersionResource{Group: weave.Group, Version: weave.Version, Resource: weave.Resource}, "shop", "web")
		if err != nil {
			return true, nil, err
		}
		changed := found.(*unstructured.Unstructured).DeepCopy()
		_ = unstructured.SetNestedField(changed.Object, []any{map[string]any{"type": "Ready", "status": "False", "reason": "Silent", "message": "", "lastTransitionTime": "2026-05-01T11:00:00Z"}}, "status", "conditions")
		if err := w.dynamic.Tracker().Update(schema.GroupVersionResource{Group: weave.Group, Version: weave.Version, Resource: weave.Resource}, changed, "shop"); err != nil {
			return true, nil, err
		}
		return true, nil, apierrors.NewConflict(schema.GroupResource{Group: weave.Group, Resource: weave.Resource}, "web", errors.New("changed"))
	})
	w.look()
	p := w.pipeline()
	if ready := meta.FindStatusCondition(p.Status.Conditions, weave.ConditionReady); ready == nil || ready.Reason != "Silent" {
		t.Errorf("what others have written is %v", p.Status.Conditions)
	}
	if s := p.Status.Environments["prod"]; s.WaitingStatus == nil || s.WaitingStatus.Revision != "2" || s.Promotion.Phase != weave.PromotionWaiting || len(s.Targets) != 1 {
		t.Errorf("prod is %+v", s)
	}
}

func TestWhatIsLeftOfAnEnvironmentThatIsGoneIsTakenBack(t *testing.T) {
	w := newWorld(t, pipelineOf("{manual: true, strategy: {notification: {}}}"))
	w.look()
	w.change(func(o *unstructured.Unstructured) {
		_ = unstructured.SetNestedSlice(o.Object, []any{map[string]any{"name": "dev", "targets": []any{map[string]any{"namespace": "dev"}}}}, "spec", "environments")
	})
	w.look()
	if s := w.pipeline().Status.Environments["prod"]; s.WaitingStatus != nil || s.Promotion != nil || len(s.Targets) != 1 {
		t.Errorf("prod is %+v", s)
	}
}
