package promotions

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/pulls"
	"github.com/manifold-dev/manifold/pkg/delivery/weave"
)

// authored has the pipeline say who has it use what.
func (w *world) authored(note string) {
	w.Helper()
	w.change(func(o *unstructured.Unstructured) {
		o.SetAnnotations(map[string]string{v1alpha1.AnnotationAuthors: note})
	})
}

// secret adds the Secret of a forge, which also signs calls.
func (w *world) secret() {
	w.Helper()
	if err := w.secrets.Add(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "forge"}, Data: map[string][]byte{"token": []byte("t"), KeyHMAC: []byte("x")},
	}); err != nil {
		w.Fatal(err)
	}
}

const (
	throughForge = "{strategy: {pull-request: {type: github, url: 'https://forge/shop', baseBranch: main, secretRef: {name: forge}}}}"
	annOfForge   = `[{"user": "ann", "uses": ["secrets/forge"]}]`
	annLostForge = `ann get secrets "forge" in namespace "shop"`
)

// The status says within a moment that a right is lost. These are about that moment, and about a server that has just started.
func TestNothingIsDoneWithACredentialWhoseAuthorHasLostTheRightToIt(t *testing.T) {
	for name, test := range map[string]struct {
		strategy, note, lost string
		object               string
		// done reports whether something was done with it.
		done func(w *world) bool
	}{
		"a pull request": {strategy: throughForge, note: annOfForge, lost: annLostForge, done: func(w *world) bool { return len(w.forge.requests) > 0 }},
		"a direct promotion": {
			strategy: directly, note: `[{"user": "ann", "uses": ["serviceaccounts/promoter"]}]`, lost: `ann impersonate serviceaccounts "promoter" in namespace "shop"`, object: inProd,
			done: func(w *world) bool { return len(w.accounts) > 0 },
		},
	} {
		t.Run(name, func(t *testing.T) {
			texts := []string{pipelineOf(test.strategy)}
			if test.object != "" {
				texts = append(texts, test.object)
			}
			w := newWorld(t, texts...)
			w.secret()
			w.forge.result = pulls.Result{State: pulls.Open, URL: "https://forge/shop/1"}
			w.authored(test.note)
			w.lost = []string{test.lost}
			w.look()
			if got := w.promotion(); test.done(w) || got.Phase != weave.PromotionFailed || !strings.Contains(got.Message, `"ann", who has this pipeline use it, has lost the right to `+strings.TrimPrefix(test.lost, "ann ")) {
				t.Errorf("the promotion is %+v", got)
			}
			w.lost = nil
			w.clock.SetTime(w.clock.Now().Add(time.Minute))
			w.look()
			if got := w.promotion(); !test.done(w) || got.Phase != weave.PromotionStarted {
				t.Errorf("with the right, the promotion is %+v", got)
			}
		})
	}
}

func TestAnOpenPullRequestIsNotAskedAboutWithACredentialWhoseAuthorHasLostTheRightToIt(t *testing.T) {
	w := newWorld(t, pipelineOf(throughForge))
	w.secret()
	w.forge.result = pulls.Result{State: pulls.Open, URL: "https://forge/shop/1"}
	w.authored(annOfForge)
	w.look()
	w.lost = []string{annLostForge}
	w.clock.SetTime(w.clock.Now().Add(asksForges))
	w.look()
	if got := w.promotion(); len(w.forge.requests) != 1 || got.Phase != weave.PromotionStarted || !strings.Contains(got.Message, "lost the right") {
		t.Errorf("the forge is asked %d times, and the promotion is %+v", len(w.forge.requests), got)
	}
}

func TestARepositoryThatHasRefusedIsNotLookedAtWithACredentialWhoseAuthorHasLostTheRightToIt(t *testing.T) {
	w := newWorld(t, pipelineOf(throughForge))
	w.secret()
	w.forge.err, w.forge.base = pulls.Refusal(pulls.ErrMissing, "c0ffee"), "c0ffee"
	w.authored(annOfForge)
	w.look()
	w.lost = []string{annLostForge}
	w.clock.SetTime(w.clock.Now().Add(asksForges))
	w.look()
	if got := w.promotion(); len(w.forge.requests) != 1 || w.forge.glances > 0 || !strings.Contains(got.Message, "lost the right") {
		t.Errorf("the forge is asked %d times and looked at %d times, and the promotion is %+v", len(w.forge.requests), w.forge.glances, got)
	}
}

func TestACallIsNotBelievedByAKeyWhoseAuthorHasLostTheRightToIt(t *testing.T) {
	w := newWorld(t, pipelineOf(directly))
	w.secret()
	if string(w.SigningKey(w.pipeline(), "forge")) != "x" {
		t.Error("nobody is known to have named the key, and it does not count")
	}
	w.authored(annOfForge)
	if string(w.SigningKey(w.pipeline(), "forge")) != "x" {
		t.Error("its author may get the key, and it does not count")
	}
	w.lost = []string{annLostForge}
	if key := w.SigningKey(w.pipeline(), "forge"); key != nil {
		t.Errorf("its author may not get the key, and it is %q", key)
	}
	if got := w.told(); len(got) != 1 || !strings.Contains(got[0], `Warning WebhookUnusable a call is not believed: "ann", who has this pipeline use it, has lost the right to get secrets "forge" in namespace "shop"`) {
		t.Errorf("events are %v", got)
	}
}
