package delivery

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
)

// receiver is who is notified. It takes only what is signed.
type receiver struct {
	*httptest.Server
	mu sync.Mutex
	// got counts each notice, by its event, its release and its id.
	got map[string]int
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{got: map[string]int{}}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		body, _ := io.ReadAll(request.Body)
		mac := hmac.New(sha256.New, []byte("secret"))
		mac.Write(body)
		var notice struct{ ID, Event, Revision, Application string }
		if err := json.Unmarshal(body, &notice); err != nil || request.Header.Get("X-Signature") != "sha256="+hex.EncodeToString(mac.Sum(nil)) {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.got[strings.Join([]string{notice.Application, notice.Revision, notice.Event, notice.ID}, " ")]++
	}))
	t.Cleanup(r.Close)
	return r
}

// awaitNotice waits until there is a notice of a revision, and it is noted that there was.
func (r *receiver) awaitNotice(s *framework.Scenario, release, revision, event string) {
	s.Helper()
	s.Logical.Poll(fmt.Sprintf("there is notice of %s of %s", event, revision), func() error {
		r.mu.Lock()
		defer r.mu.Unlock()
		for notice := range r.got {
			if strings.HasPrefix(notice, "web "+revision+" "+event+" ") {
				noted := s.Logical.Kubectl("get", "release", release, "-o", `jsonpath={.metadata.annotations.delivery\.manifold\.dev/notified}`)
				return framework.Contains(noted, event)
			}
		}
		return fmt.Errorf("there are %v", r.got)
	})
}

// hook is a Secret with the address of a receiver, and an application whose events go there.
func hook(s *framework.Scenario, url string) string {
	s.Helper()
	s.Logical.Kubectl("create", "secret", "generic", "hook", "--from-literal=url="+url, "--from-literal=hmac-key=secret")
	return "  notifications: [{name: ops, secretRef: {name: hook}}]"
}

func TestEachEventIsToldOnceAlsoByAnotherProcess(t *testing.T) {
	framework.Long(t)
	s := suite.Fragile(t)
	r := newReceiver(t)
	releases(s, []string{"{name: WAIT_APPROVAL, id: agree}", "{name: K8S_PRIMARY_ROLLOUT, id: primary}"}, hook(s, r.URL))
	waiting := awaitStage(s, "web-v2", "agree", v1alpha1.StageRunning)
	r.awaitNotice(s, waiting.Name, "web-v2", "ApprovalRequired")
	if err := s.Environment.Manifold.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := s.Environment.Manifold.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	approve(s, waiting)
	awaitPhase(s, "web-v2", v1alpha1.ReleaseSucceeded)
	r.awaitNotice(s, waiting.Name, "web-v2", "ReleaseSucceeded")
	r.mu.Lock()
	defer r.mu.Unlock()
	events := map[string]int{}
	for notice, times := range r.got {
		events[strings.Join(strings.Fields(notice)[1:3], " ")] += times
	}
	for _, event := range []string{"web-v1 ReleaseStarted", "web-v1 ReleaseSucceeded", "web-v2 ReleaseStarted", "web-v2 ApprovalRequired", "web-v2 Approved", "web-v2 ReleaseSucceeded"} {
		if events[event] != 1 {
			t.Errorf("%s was told %d times: %v", event, events[event], r.got)
		}
	}
}

func TestAReceiverThatMayNotBeCalledIsToldOf(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	s.Logical.Apply(inlineApp("blue", hook(s, "http://169.254.169.254/hook")))
	awaitTold(s, v1alpha1.ApplicationNotified, "the address 169.254.169.254:80 may not be called")
	awaitPhase(s, "web-v1", v1alpha1.ReleaseSucceeded)
}
