package promotions

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/pkg/delivery/weave"
)

func TestAWebhookAsksForWhatWaitsAlone(t *testing.T) {
	w := newWorld(t, pipelineOf("{manual: true, strategy: {direct: {serviceAccountName: promoter}}}"), inProd)
	w.look()
	if waits, err := w.Ask(t.Context(), w.pipeline(), "prod", "1", "ci"); waits || err != nil {
		t.Errorf("what does not wait is asked for: %t, %v", waits, err)
	}
	w.writes()
	if waits, err := w.Ask(t.Context(), w.pipeline(), "dev", "2", "ci"); waits || err != nil || len(w.writes()) > 0 {
		t.Errorf("an environment in which nothing waits is asked for: %t, %v", waits, err)
	}
	if waits, err := w.Ask(t.Context(), w.pipeline(), "prod", "2", "ci"); !waits || err != nil {
		t.Fatalf("what waits is not asked for: %v", err)
	}
	w.look()
	p := w.pipeline()
	if s := p.Status.Environments["prod"]; s.Asked == nil || s.Asked.By != "ci" || s.WaitingStatus != nil || s.Promotion.Phase != weave.PromotionStarted || s.Promotion.By != "ci" || s.Promotion.Held {
		t.Errorf("prod is %+v with %+v", s, s.Promotion)
	}
	if got := w.image(); !strings.HasPrefix(got, "ghcr.io/shop/web:2") {
		t.Errorf("prod is to run %s", got)
	}
}

func TestOfOneNameInBothGroupsTheNewerIsMeant(t *testing.T) {
	older := strings.Replace(pipelineOf(directly), "pipelines.weave.works/", "pipelines.wego.weave.works/", 1)
	w := newWorld(t, older)
	found, err := w.Find(t.Context(), web.ObjectName)
	if err != nil || found == nil || found.GroupVersionKind().Group != weave.OlderGroup {
		t.Errorf("found is %v: %v", found, err)
	}
	w = newWorld(t, older, pipelineOf(directly))
	found, err = w.Find(t.Context(), web.ObjectName)
	if err != nil || found == nil || found.GroupVersionKind().Group != weave.Group {
		t.Errorf("found is %v: %v", found, err)
	}
	if found, err = w.Find(t.Context(), cache.NewObjectName("shop", "none")); found != nil || err != nil {
		t.Errorf("found is %v: %v", found, err)
	}
}

func TestASecretThatSignsNothingIsToldByAnEvent(t *testing.T) {
	w := newWorld(t, pipelineOf(directly))
	p := w.pipeline()
	if w.SigningKey(p, "hook") != nil || len(w.told()) != 1 {
		t.Error("a Secret that is missing is not told")
	}
	if err := w.secrets.Add(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "hook"}, Data: map[string][]byte{"other": []byte("x")}}); err != nil {
		t.Fatal(err)
	}
	if w.SigningKey(p, "hook") != nil || len(w.told()) != 1 {
		t.Error("a Secret without the key is not told")
	}
	if err := w.secrets.Update(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "hook"}, Data: map[string][]byte{KeyHMAC: []byte("x")}}); err != nil {
		t.Fatal(err)
	}
	if string(w.SigningKey(p, "hook")) != "x" || len(w.told()) != 0 {
		t.Error("the key is not that of the Secret")
	}
}

func TestWhoeverWaitsIsToldOnceThePipelineWasLookedAt(t *testing.T) {
	w := newWorld(t, pipelineOf("{strategy: {notification: {}}}"))
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- w.Controller.Run(ctx) }()
	p, err := w.Look(t.Context(), w.pipeline())
	if err != nil || p.Status.Environments["prod"].Promotion == nil || p.Status.Environments["prod"].Promotion.Phase != weave.PromotionStarted {
		t.Errorf("it is %+v: %v", p, err)
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
