package clusters

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/clusters/bearer"
	"github.com/manifold-dev/manifold/pkg/clusters/health"
)

// boundToken is one of a ServiceAccount of the system namespace that ends with a Secret.
func boundToken(account, secret string, issued time.Time, life time.Duration) string {
	claims := fmt.Sprintf(`{"sub":"system:serviceaccount:manifold-system:%s","iat":%d,"exp":%d,"kubernetes.io":{"secret":{"name":%q,"uid":"1"}}}`,
		account, issued.Unix(), issued.Add(life).Unix(), secret)
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2lnbmF0dXJl"
}

// with returns the kubeconfig of a cluster with another token.
func (b *below) with(next string) []byte {
	return bytes.Replace(b.kubeconfig(), []byte("token: "+token), []byte("token: "+next), 1)
}

func (h *harness) storedToken(name string) string {
	h.Helper()
	secret, err := h.client.CoreV1().Secrets(v1alpha1.SystemNamespace).Get(h.Context(), "cluster-"+name, metav1.GetOptions{})
	if err != nil {
		h.Fatal(err)
	}
	stored, _, err := bearer.Split(secret.Data["kubeconfig"])
	if err != nil {
		h.Fatal(err)
	}
	return stored
}

func (h *harness) eventuallyCredential(name string, step time.Duration, status metav1.ConditionStatus, reason string, words ...string) {
	h.Helper()
	h.eventually(fmt.Sprintf("the credential of %s is %s %s %q", name, status, reason, words), step, func() bool {
		c := meta.FindStatusCondition(h.cluster(name).Status.Conditions, v1alpha1.ClusterCredentialValid)
		if c == nil || c.Status != status || c.Reason != reason {
			return false
		}
		for _, word := range words {
			if !strings.Contains(c.Message, word) {
				return false
			}
		}
		return true
	})
}

// startBound starts a cluster that has joined with a token of an hour.
func startBound(t *testing.T, h *harness) (b *below, first string) {
	b = startBelow(t, "uid-1")
	first = boundToken("syncer", "syncer-x", noon, time.Hour)
	b.set(func(b *below) { b.token = first })
	h.join("east", b.with(first))
	h.eventuallyReady("east", 0, metav1.ConditionTrue, health.ReasonReady, "")
	h.eventuallyCredential("east", 0, metav1.ConditionTrue, "RenewsItself", "it is valid as long as Secret manifold-system/syncer-x exists there")
	if got, want := h.cluster("east").Status.TokenSecret, "manifold-system/syncer-x"; got != want {
		t.Fatalf("the token is said to end with Secret %q, not %q", got, want)
	}
	return b, first
}

// patient counts no cluster as silent: hours of the fake clock may pass before a busy machine has answered a probe.
func patient(o *Options) { o.GracePeriod = 24 * time.Hour }

func TestATokenIsRenewedAndTheSessionGoesOn(t *testing.T) {
	runner := newSyncer()
	h := startManager(t, runner, patient)
	b, first := startBound(t, h)
	connection := runner.connection("east")
	b.set(func(b *below) {
		b.next = func() (string, int) {
			return boundToken("syncer", "syncer-x", h.clock.Now(), time.Hour), http.StatusCreated
		}
	})

	for last := first; ; {
		h.eventually("another token is stored", time.Minute, func() bool { return h.storedToken("east") != last })
		next := h.storedToken("east")
		claims, err := bearer.Parse(next)
		if err != nil {
			t.Fatal(err)
		}
		if was, _ := bearer.Parse(last); claims.Issued.Before(was.Due(0)) || claims.Issued.After(was.Expires) {
			t.Errorf("a token from %s to %s was renewed at %s", was.Issued, was.Expires, claims.Issued)
		}
		h.eventually("requests carry it", 0, func() bool { used, _ := connection.Token.Token(); return used == next })
		b.set(func(b *below) { b.token, b.also = next, "" }) // the one before has ended
		if last = next; claims.Issued.Sub(noon) > 3*time.Hour {
			break
		}
	}
	h.eventuallyReady("east", 10*time.Second, metav1.ConditionTrue, health.ReasonReady, "")
	h.eventuallyCredential("east", 0, metav1.ConditionTrue, "RenewsItself")
	b.set(func(b *below) {
		if b.watches != 1 {
			t.Errorf("nodes were watched %d times, want one watch that goes on", b.watches)
		}
	})
	runner.mu.Lock()
	defer runner.mu.Unlock()
	if runner.starts != 1 || runner.running["east"] != connection {
		t.Errorf("the syncer was started %d times, want once", runner.starts)
	}
}

func TestATokenThatSomebodyStoresIsTakenUpWithoutABreak(t *testing.T) {
	runner := newSyncer()
	h := startManager(t, runner, patient)
	b, _ := startBound(t, h)
	rotated := boundToken("syncer", "syncer-y", noon, 2*time.Hour)
	b.set(func(b *below) { b.also = rotated })
	h.storeSecret("east", b.with(rotated))
	h.eventuallyCredential("east", 0, metav1.ConditionTrue, "RenewsItself", "it is valid as long as Secret manifold-system/syncer-y exists there")
	b.set(func(b *below) { b.token, b.also = rotated, "" })
	h.eventuallyReady("east", 10*time.Second, metav1.ConditionTrue, health.ReasonReady, "")
	runner.mu.Lock()
	defer runner.mu.Unlock()
	if runner.starts != 1 {
		t.Errorf("the syncer was started %d times, want once", runner.starts)
	}
}

func TestATokenThatCannotBeRenewedIsToldInTime(t *testing.T) {
	for name, test := range map[string]struct {
		next func(now time.Time) (string, int)
		want string
	}{
		"because the right is missing": {
			next: func(time.Time) (string, int) { return "", http.StatusForbidden },
			want: "ask for a token of ServiceAccount manifold-system/syncer",
		},
		"because the cluster gives one of somebody else": {
			next: func(now time.Time) (string, int) {
				return boundToken("admin", "syncer-x", now, time.Hour), http.StatusCreated
			},
			want: "for ServiceAccount manifold-system/admin",
		},
		"because the cluster gives none": {
			next: func(time.Time) (string, int) { return "none", http.StatusCreated }, want: "cannot be read",
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := startManager(t, newSyncer())
			b, first := startBound(t, h)
			b.set(func(b *below) { b.next = func() (string, int) { return test.next(h.clock.Now()) } })
			h.eventuallyCredential("east", 10*time.Second, metav1.ConditionFalse, "RenewalFails",
				"expires at 2026-11-20T13:00:00Z", test.want, `run "manifold cluster rotate east --cluster-kubeconfig FILE"`)
			if since := h.clock.Since(noon); since < 45*time.Minute {
				t.Errorf("told after %s, when there is time yet", since)
			}
			h.eventuallyCredential("east", time.Minute, metav1.ConditionFalse, "Expired", "rotate east")
			if h.storedToken("east") != first {
				t.Error("what the cluster gave was stored")
			}
		})
	}
}

func TestARevokedCredentialIsToldUntilTheClusterJoinsAgain(t *testing.T) {
	runner := newSyncer()
	h := startManager(t, runner)
	b, first := startBound(t, h)
	secrets := h.client.CoreV1().Secrets(v1alpha1.SystemNamespace)
	secret, err := secrets.Get(t.Context(), "cluster-east", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	secret.Data = map[string][]byte{"revoked": []byte("true")}
	if _, err := secrets.Update(t.Context(), secret, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	h.eventuallyReady("east", 0, metav1.ConditionFalse, health.ReasonInvalidCredential, "has been revoked")
	h.eventuallyCredential("east", 0, metav1.ConditionFalse, health.ReasonInvalidCredential, "has been revoked", `"manifold cluster join east"`)
	if runner.connection("east") != nil {
		t.Error("the syncer works on")
	}
	h.storeSecret("east", b.with(first))
	h.eventuallyReady("east", 0, metav1.ConditionTrue, health.ReasonReady, "")
	h.eventuallyCredential("east", 0, metav1.ConditionTrue, "RenewsItself")
}
