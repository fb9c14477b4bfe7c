package promotions

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/pkg/delivery/pulls"
	"github.com/manifold-dev/manifold/pkg/delivery/weave"
)

func TestWhatARepositoryRefusesIsTriedAgainOnceSomethingHasChanged(t *testing.T) {
	const how = "{strategy: {pull-request: {type: github, url: 'https://forge/shop', baseBranch: main, secretRef: {name: forge}}}}"
	secret := func(w *world, version string) {
		w.Helper()
		if err := w.secrets.Update(&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "forge", ResourceVersion: version}, Data: map[string][]byte{"token": []byte("t")},
		}); err != nil {
			w.Fatal(err)
		}
		w.SecretChanged(cache.NewObjectName("shop", "forge"))
	}
	for name, test := range map[string]struct {
		err  error
		then func(w *world)
		// tried says that it is tried again after that, and glances how often the base branch was looked at.
		tried   bool
		glances int
	}{
		"not if nothing has changed for a day": {err: pulls.ErrRefused, then: func(w *world) { w.clock.SetTime(w.clock.Now().Add(24 * time.Hour)) }},
		"once the pipeline has": {err: pulls.ErrRefused, tried: true, then: func(w *world) {
			w.change(func(p *unstructured.Unstructured) {
				p.SetGeneration(2)
				_ = unstructured.SetNestedField(p.Object, int64(2), "status", "observedGeneration")
			})
		}},
		"once the Secret has": {err: pulls.ErrRefused, tried: true, then: func(w *world) { secret(w, "2") }},
		"when the server starts anew, within the time in which forges are asked": {err: pulls.ErrRefused, tried: true, then: func(w *world) {
			w.restart(w.Mapper.(mapper).RESTMapper)
			w.look()
			w.clock.SetTime(w.clock.Now().Add(asksForges))
		}},
		"not while the base branch is at the commit that was refused": {err: pulls.Refusal(pulls.ErrMissing, "c0ffee"), glances: 1, then: func(w *world) { w.clock.SetTime(w.clock.Now().Add(time.Hour)) }},
		"once the base branch has another commit": {err: pulls.Refusal(pulls.ErrMissing, "c0ffee"), tried: true, glances: 1, then: func(w *world) {
			w.forge.base = "deadbeef"
			w.clock.SetTime(w.clock.Now().Add(firstGlance))
		}},
		"not at once, though the base branch has another commit":    {err: pulls.Refusal(pulls.ErrMissing, "c0ffee"), then: func(w *world) { w.forge.base = "deadbeef" }},
		"now and then, where the forge may know a credential since": {err: pulls.ErrForbidden, tried: true, then: func(w *world) { w.clock.SetTime(w.clock.Now().Add(asksForges)) }},
		"not before": {err: pulls.ErrForbidden, then: func(w *world) { w.clock.SetTime(w.clock.Now().Add(asksForges - time.Second)) }},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, pipelineOf(how))
			secret(w, "1")
			w.forge.err, w.forge.base = test.err, "c0ffee"
			w.look()
			if got := w.promotion(); got.Phase != weave.PromotionFailed || !got.Refused || got.Attempts != 1 {
				t.Fatalf("the promotion is %+v", got)
			}
			said := meta.FindStatusCondition(w.pipeline().Status.Conditions, weave.ConditionPromoting)
			if said == nil || said.Reason != "Refused" || !strings.Contains(said.Message, "once the pipeline, its Secret or the repository has changed") {
				t.Errorf("the condition is %v", said)
			}
			if got := w.told(); len(got) != 1 || !strings.Contains(got[0], "once the pipeline, its Secret or the repository has changed") {
				t.Errorf("events are %v", got)
			}
			w.forge.err, w.forge.result = nil, pulls.Result{State: pulls.Open, URL: "https://forge/shop/1"}
			test.then(w)
			w.writes()
			w.look()
			want := weave.PromotionFailed
			if test.tried {
				want = weave.PromotionStarted
			}
			if got := w.promotion(); got.Phase != want || got.Refused == test.tried {
				t.Errorf("the promotion is %+v, want it %s", got, want)
			}
			if w.forge.glances != test.glances {
				t.Errorf("the base branch was looked at %d times, want %d", w.forge.glances, test.glances)
			}
			if got := w.writes(); !test.tried && len(got) > 0 {
				t.Errorf("it waits, and yet there is written %v", got)
			}
		})
	}
}

func TestAChangeOfASecretConcernsThoseWhoWereRefusedWithIt(t *testing.T) {
	w := newWorld(t, pipelineOf("{strategy: {pull-request: {type: github, url: 'https://forge/shop', baseBranch: main, secretRef: {name: forge}}}}"))
	w.look() // there is no such Secret
	for name, want := range map[cache.ObjectName]int{
		cache.NewObjectName("shop", "forge"): 1, cache.NewObjectName("shop", "other"): 0, cache.NewObjectName("farm", "forge"): 0,
	} {
		w.SecretChanged(name)
		if got := w.queue.Len(); got != want {
			t.Errorf("Secret %s has %d pipelines looked at, want %d", name, got, want)
		}
		for w.queue.Len() > 0 {
			k, _ := w.queue.Get()
			w.queue.Done(k)
		}
	}
}

func TestALookAtARepositoryThatHasRefusedIsRareOnceItHasRefusedForLong(t *testing.T) {
	w := newWorld(t, pipelineOf("{strategy: {pull-request: {type: github, url: 'https://forge/shop', baseBranch: main, secretRef: {name: forge}}}}"))
	if err := w.secrets.Add(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "forge"}}); err != nil {
		t.Fatal(err)
	}
	w.forge.err, w.forge.base = pulls.Refusal(pulls.ErrAmbiguous, "c0ffee"), "c0ffee"
	for range 3600 {
		w.look()
		w.clock.SetTime(w.clock.Now().Add(time.Second))
	}
	if most := 8 + 12; w.forge.glances > most || w.forge.glances < 12 {
		t.Errorf("it was looked at %d times in an hour, want 12 to %d", w.forge.glances, most)
	}
	if len(w.forge.requests) != 1 {
		t.Errorf("it was tried %d times, want once", len(w.forge.requests))
	}
}
