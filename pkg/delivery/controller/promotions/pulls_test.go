package promotions

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/manifold-dev/manifold/pkg/delivery/pulls"
	"github.com/manifold-dev/manifold/pkg/delivery/pulls/forges"
	"github.com/manifold-dev/manifold/pkg/delivery/weave"
)

func TestAPullRequestIsOpenedAndFollowed(t *testing.T) {
	const how = "{strategy: {pull-request: {type: github, url: 'https://forge/shop', baseBranch: main, secretRef: {name: forge}}}}"
	w := newWorld(t, pipelineOf(how))
	w.look()
	if got := w.promotion(); got.Phase != weave.PromotionFailed || !strings.Contains(got.Message, "there is no Secret shop/forge") {
		t.Errorf("the promotion is %+v", got)
	}
	if err := w.secrets.Add(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "forge"}, Data: map[string][]byte{"token": []byte("t")}}); err != nil {
		t.Fatal(err)
	}
	w.forge.result = pulls.Result{State: pulls.Open, URL: "https://forge/shop/1"}
	w.clock.SetTime(w.clock.Now().Add(time.Minute))
	w.look()
	if got := w.promotion(); got.Phase != weave.PromotionStarted || got.URL != "https://forge/shop/1" {
		t.Errorf("the promotion is %+v", got)
	}
	request := w.forge.requests[0]
	if request.Pipeline != (pulls.Pipeline{Group: weave.Group, Namespace: "shop", Name: "web"}) || request.Environment != "prod" || request.Version.Images["ghcr.io/shop/web"] != "2" ||
		request.Version.Revision != "2" || request.App.Name != "web" || !slices.Equal(request.App.Namespaces, []string{"prod"}) || string(request.Credentials["token"]) != "t" {
		t.Errorf("asked for is %+v", request)
	}
	w.look()
	if len(w.forge.requests) != 1 {
		t.Errorf("the forge is asked %d times", len(w.forge.requests))
	}
	w.clock.SetTime(w.clock.Now().Add(asksForges))
	w.forge.result = pulls.Result{State: pulls.Closed, URL: "https://forge/shop/1", Message: "it was closed"}
	w.look()
	if len(w.forge.requests) != 2 || w.forge.requests[1].Known != "https://forge/shop/1" {
		t.Errorf("the forge is asked for %+v", w.forge.requests)
	}
	if got := w.promotion(); got.Phase != weave.PromotionRevoked || got.Message != "it was closed" {
		t.Errorf("the promotion is %+v", got)
	}
	w.clock.SetTime(w.clock.Now().Add(asksForges))
	w.look()
	if len(w.forge.requests) != 2 {
		t.Errorf("the forge is asked %d times", len(w.forge.requests))
	}
}

func TestTheForgeIsAskedAtOnceWhenAVersionComesToWaitBehindAPullRequest(t *testing.T) {
	w := newWorld(t, pipelineOf("{strategy: {pull-request: {type: github, url: 'https://forge/shop', baseBranch: main, secretRef: {name: forge}}}}"))
	if err := w.secrets.Add(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "forge"}, Data: map[string][]byte{"token": []byte("t")}}); err != nil {
		t.Fatal(err)
	}
	w.forge.result = pulls.Result{State: pulls.Open, URL: "https://forge/shop/1"}
	w.look()
	runs := func(tag string) {
		w.change(func(found *unstructured.Unstructured) {
			workload := map[string]any{"kind": "Deployment", "name": "web", "version": tag, "ready": true, "images": []any{"ghcr.io/shop/web:" + tag}}
			target := map[string]any{"namespace": "dev", "ready": true, "workloads": []any{workload}}
			if err := unstructured.SetNestedSlice(found.Object, []any{target}, "status", "environments", "dev", "targets"); err != nil {
				t.Fatal(err)
			}
		})
		w.look()
	}
	for _, test := range []struct {
		tag   string
		asked int
	}{{"2", 1}, {"3", 2}, {"3", 2}, {"4", 3}} {
		if runs(test.tag); len(w.forge.requests) != test.asked {
			t.Errorf("with %s before it the forge was asked %d times, want %d", test.tag, len(w.forge.requests), test.asked)
		}
	}
	w.forge.result = pulls.Result{State: pulls.Closed, URL: "https://forge/shop/1"}
	runs("5")
	w.forge.result = pulls.Result{State: pulls.Open, URL: "https://forge/shop/2"}
	w.look()
	if got := w.promotion(); got.Revision != "5" || got.Phase != weave.PromotionStarted {
		t.Errorf("the promotion is %+v, want the newer version's, as the older one's was closed", got)
	}
}

func TestAForgeIsLeftAloneForAsLongAsItAsksWithACredential(t *testing.T) {
	w := newWorld(t, pipelineOf(throughForge))
	w.secret()
	w.forge.err = fmt.Errorf("open a pull request: %w", &forges.BusyError{Pause: 10 * time.Minute, Err: errors.New("slower")})
	w.look()
	if got := w.promotion(); got.Phase != weave.PromotionFailed || got.Refused || len(w.forge.requests) != 1 {
		t.Errorf("the promotion is %+v after %d calls", got, len(w.forge.requests))
	}
	for range 9 {
		w.clock.SetTime(w.clock.Now().Add(time.Minute))
		w.look()
	}
	if len(w.forge.requests) != 1 {
		t.Errorf("the forge asked to be left alone for 10 minutes, and had %d calls in 9", len(w.forge.requests))
	}
	w.forge.err, w.forge.result = nil, pulls.Result{State: pulls.Open, URL: "https://forge/shop/1"}
	w.clock.SetTime(w.clock.Now().Add(asksForges))
	w.look()
	if got := w.promotion(); got.Phase != weave.PromotionStarted || len(w.forge.requests) != 2 {
		t.Errorf("the promotion is %+v after %d calls", got, len(w.forge.requests))
	}
}

func TestAForgeIsAskedAgainWithAnotherCredential(t *testing.T) {
	w := newWorld(t, pipelineOf(throughForge))
	w.secret()
	w.forge.err = &forges.BusyError{Pause: time.Hour, Err: errors.New("slower")}
	w.look()
	found, err := w.Secrets.Secrets("shop").Get("forge")
	if err != nil {
		t.Fatal(err)
	}
	other := found.DeepCopy()
	other.ResourceVersion = "2"
	if err := w.secrets.Update(other); err != nil {
		t.Fatal(err)
	}
	w.forge.err, w.forge.result = nil, pulls.Result{State: pulls.Open, URL: "https://forge/shop/1"}
	w.clock.SetTime(w.clock.Now().Add(time.Minute))
	w.look()
	if got := w.promotion(); got.Phase != weave.PromotionStarted {
		t.Errorf("the promotion is %+v", got)
	}
}
