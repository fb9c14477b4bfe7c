package podtokens

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/google/go-cmp/cmp"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

const (
	identity = "logical"
	audience = "https://manifold.dev/logical/east"
)

// above is a logical cluster with one pod.
type above struct {
	pod     *corev1.Pod
	account *corev1.ServiceAccount
	calls   bool
}

func (a *above) Identity() (string, error) { return identity, nil }

func (a *above) Pod(namespace, name string) *corev1.Pod {
	if a.pod == nil || a.pod.Namespace != namespace || a.pod.Name != name {
		return nil
	}
	return a.pod
}

func (a *above) Account(namespace, name string) *corev1.ServiceAccount {
	if a.account == nil || a.account.Namespace != namespace || a.account.Name != name {
		return nil
	}
	return a.account
}

func (a *above) CallsAPI(*corev1.Pod) bool { return a.calls }

// said is what a token says of itself.
type said struct {
	audience             any
	subject, pod, podUID string
}

func (s said) token() string {
	claims, err := json.Marshal(map[string]any{
		"aud": s.audience, "sub": s.subject, "kubernetes.io": map[string]any{"pod": map[string]string{"name": s.pod, "uid": s.podUID}},
	})
	if err != nil {
		panic(err)
	}
	return "e30." + base64.RawURLEncoding.EncodeToString(claims) + ".c2ln"
}

// cluster is a cluster that is asked about tokens.
type cluster struct {
	asked  []string
	answer authenticationv1.TokenReviewStatus
	err    error
}

func (c *cluster) review(_ context.Context, name string, review *authenticationv1.TokenReview) (*authenticationv1.TokenReview, error) {
	c.asked = append(c.asked, name+" "+strings.Join(review.Spec.Audiences, ","))
	return &authenticationv1.TokenReview{Status: c.answer}, c.err
}

// trial is one request of a pod: all that is known above and below, and what it says.
type trial struct {
	above   above
	cluster cluster
	said    said
	// token is another one than what is said.
	token string
}

// honest is that of a pod as it should be.
func honest() *trial {
	return &trial{
		above: above{
			pod: &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1", UID: "pod-uid", Annotations: map[string]string{v1alpha1.AnnotationCluster: "east"}},
				Spec:       corev1.PodSpec{ServiceAccountName: "web", NodeName: "east"},
			},
			account: &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "uid-above"}},
			calls:   true,
		},
		cluster: cluster{answer: authenticationv1.TokenReviewStatus{
			Authenticated: true, Audiences: []string{audience}, User: authenticationv1.UserInfo{
				Username: "system:serviceaccount:shop:web", UID: "uid-below", Groups: []string{"system:masters"},
				Extra: map[string]authenticationv1.ExtraValue{
					"authentication.kubernetes.io/pod-name": {"web-1"}, "authentication.kubernetes.io/pod-uid": {"pod-uid"}, "scopes": {"all"},
				},
			},
		}},
		said: said{audience: audience, subject: "system:serviceaccount:shop:web", pod: "web-1", podUID: "pod-uid"},
	}
}

// next is what authenticates all others: whoever comes there is somebody.
var next = authenticator.RequestFunc(func(*http.Request) (*authenticator.Response, bool, error) {
	return &authenticator.Response{User: &user.DefaultInfo{Name: "somebody"}}, true, nil
})

func request(t *testing.T, token string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://manifold.example/api", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	return r
}

func (c *trial) run(t *testing.T) (user.Info, error) {
	t.Helper()
	if c.token == "" {
		c.token = c.said.token()
	}
	a := New(&c.above, c.cluster.review, authenticator.Audiences{"https://api"})
	response, ok, err := a.Before(next).AuthenticateRequest(request(t, c.token))
	if !ok {
		return nil, err
	}
	return response.User, err
}

func TestAPodIsItsServiceAccountAbove(t *testing.T) {
	c := honest()
	got, err := c.run(t)
	if err != nil {
		t.Fatal(err)
	}
	want := &user.DefaultInfo{
		Name: "system:serviceaccount:shop:web", UID: "uid-above", Groups: []string{"system:serviceaccounts", "system:serviceaccounts:shop", "system:authenticated"},
		Extra: map[string][]string{"authentication.kubernetes.io/pod-name": {"web-1"}, "authentication.kubernetes.io/pod-uid": {"pod-uid"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"east " + audience}, c.cluster.asked); diff != "" {
		t.Error(diff)
	}

	c = honest() // a pod that a user made has another UID below
	c.above.pod.UID, c.above.pod.Annotations = "above", map[string]string{v1alpha1.AnnotationPodUID: "pod-uid"}
	if _, err := c.run(t); err != nil {
		t.Error(err)
	}
}

// Tokens that no cluster is asked about.
func TestNoClusterIsAskedAboutAPodThatIsNotThere(t *testing.T) {
	for name, test := range map[string]struct {
		change  func(*trial)
		problem string
	}{
		"a pod that is gone": {func(c *trial) { c.above.pod = nil }, "shows no pod shop/web-1"},
		"a pod of another cluster": {
			func(c *trial) { c.above.pod.Annotations[v1alpha1.AnnotationCluster] = "west" }, "shows no pod",
		},
		"a pod that its user says to be there": {
			func(c *trial) { c.above.pod.Annotations = nil }, "shows no pod",
		},
		"an earlier pod of that name":     {func(c *trial) { c.said.podUID = "earlier" }, "with UID earlier"},
		"a pod of another namespace":      {func(c *trial) { c.said.subject = "system:serviceaccount:bank:web" }, "shows no pod bank/web-1"},
		"a pod of a namespace of systems": {func(c *trial) { c.said.subject = "system:serviceaccount:kube-system:web" }, "kube-system"},
		"another account than the pod's":  {func(c *trial) { c.said.subject = "system:serviceaccount:shop:admin" }, `does not run as ServiceAccount "admin"`},
		"somebody who is no account":      {func(c *trial) { c.said.subject = "system:admin" }, "not a ServiceAccount's"},
		"a pod that says cluster":         {func(c *trial) { c.above.calls = false }, "not to call the logical cluster"},
		"a pod that has ended":            {func(c *trial) { c.above.pod.Status.Phase = corev1.PodSucceeded }, "has ended"},
		"a pod that has failed":           {func(c *trial) { c.above.pod.Status.Phase = corev1.PodFailed }, "has ended"},
		"an account that is gone":         {func(c *trial) { c.above.account = nil }, "no ServiceAccount shop/web"},
		"a token that no pod ends":        {func(c *trial) { c.said.pod, c.said.podUID = "", "" }, "does not end with a pod"},
		"another logical cluster":         {func(c *trial) { c.said.audience = "https://manifold.dev/other/east" }, "another logical cluster"},
		"no cluster at all":               {func(c *trial) { c.said.audience = "https://manifold.dev/logical" }, "another logical cluster"},
		"two audiences, one of them ours": {func(c *trial) { c.said.audience = []string{"https://api", audience} }, "several audiences"},
		"the audience of another cluster": {func(c *trial) { c.said.audience = "https://manifold.dev/logical/west" }, "shows no pod"},
		"a path in the name of a cluster": {func(c *trial) { c.said.audience = audience + "/../west" }, "shows no pod"},
		"a pod that waits for its cluster": {func(c *trial) {
			c.above.pod.Annotations = map[string]string{v1alpha1.AnnotationPodUID: "pod-uid", v1alpha1.AnnotationPodCluster: "east"}
		}, "shows no pod"},
	} {
		t.Run(name, func(t *testing.T) {
			c := honest()
			test.change(c)
			got, err := c.run(t)
			if got != nil || err == nil || !strings.Contains(err.Error(), test.problem) {
				t.Errorf("it is %v, %v, want %q", got, err, test.problem)
			}
			if len(c.cluster.asked) > 0 {
				t.Errorf("asked: %q", c.cluster.asked)
			}
		})
	}
}

// Answers of a cluster that lies, or that knows better.
func TestAClusterSaysNoMoreThanWhichPodHasAToken(t *testing.T) {
	for name, test := range map[string]struct {
		change  func(*authenticationv1.TokenReviewStatus)
		problem string
	}{
		"it is not its own":          {func(s *authenticationv1.TokenReviewStatus) { s.Authenticated = false }, "not its own, or is over"},
		"it has not looked for whom": {func(s *authenticationv1.TokenReviewStatus) { s.Audiences = nil }, "not its own"},
		"it is for itself":           {func(s *authenticationv1.TokenReviewStatus) { s.Audiences = []string{"https://kubernetes"} }, "not its own"},
		"it is an admin's":           {func(s *authenticationv1.TokenReviewStatus) { s.User.Username = "system:admin" }, "somebody else's"},
		"it is of another namespace": {func(s *authenticationv1.TokenReviewStatus) { s.User.Username = "system:serviceaccount:bank:web" }, "somebody else's"},
		"it is of another account":   {func(s *authenticationv1.TokenReviewStatus) { s.User.Username = "system:serviceaccount:shop:admin" }, "somebody else's"},
		"it ends with no pod":        {func(s *authenticationv1.TokenReviewStatus) { s.User.Extra = nil }, "somebody else's"},
		"it is another pod's": {func(s *authenticationv1.TokenReviewStatus) {
			s.User.Extra["authentication.kubernetes.io/pod-uid"] = []string{"x"}
		}, "somebody else's"},
		"it is that of one of two pods": {func(s *authenticationv1.TokenReviewStatus) {
			s.User.Extra["authentication.kubernetes.io/pod-name"] = []string{"web-1", "x"}
		}, "somebody else's"},
	} {
		t.Run(name, func(t *testing.T) {
			c := honest()
			test.change(&c.cluster.answer)
			got, err := c.run(t)
			if got != nil || err == nil || !strings.Contains(err.Error(), test.problem) {
				t.Errorf("it is %v, %v, want %q", got, err, test.problem)
			}
		})
	}
}

func TestASilentClusterIsNamed(t *testing.T) {
	c := honest()
	c.cluster.err = errors.New(`no connection to cluster "east": it is silent`)
	if got, err := c.run(t); got != nil || err == nil || !strings.Contains(err.Error(), "it is silent") {
		t.Errorf("it is %v, %v", got, err)
	}
}

func TestOthersLogInAsEver(t *testing.T) {
	for name, token := range map[string]string{
		"a token for this server":                   said{audience: "https://api", subject: "system:serviceaccount:shop:web"}.token(),
		"no JSON web token":                         "secret",
		"one that is too long to be read":           "e30." + strings.Repeat("e", 1<<20) + ".c2ln",
		"one with an audience that only looks ours": said{audience: "https://manifold.dev.evil/logical/east"}.token(),
		"one with an audience that is no text":      said{audience: 7}.token(),
	} {
		t.Run(name, func(t *testing.T) {
			c := honest()
			c.token = token
			if got, err := c.run(t); err != nil || got.GetName() != "somebody" || len(c.cluster.asked) > 0 {
				t.Errorf("it is %v, %v, asked %q", got, err, c.cluster.asked)
			}
		})
	}
}

// What happens above counts at once; a cluster is asked once in a while, whatever it says.
func TestAClusterIsAskedOnceInAWhile(t *testing.T) {
	for name, authenticated := range map[string]bool{"it is its own": true, "it is not": false} {
		t.Run(name, func(t *testing.T) {
			c := honest()
			c.cluster.answer.Authenticated = authenticated
			a := New(&c.above, c.cluster.review, nil).Before(next)
			for range 3 {
				if _, ok, _ := a.AuthenticateRequest(request(t, c.said.token())); ok != authenticated {
					t.Fatalf("it is authenticated: %t", ok)
				}
			}
			if len(c.cluster.asked) != 1 {
				t.Errorf("asked: %q", c.cluster.asked)
			}
			c.above.pod = nil
			if _, ok, _ := a.AuthenticateRequest(request(t, c.said.token())); ok {
				t.Error("the token outlives its pod")
			}
		})
	}
}

// One cluster that does not answer takes no turn of another.
func TestAClusterIsAskedBoundedlyOften(t *testing.T) {
	a := newAsker(nil)
	for range questions {
		if _, err := a.begin(t.Context(), "east"); err != nil {
			t.Fatal(err)
		}
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := a.begin(over, "east"); err == nil {
		t.Error("it is asked once more")
	}
	if _, err := a.begin(t.Context(), "west"); err != nil {
		t.Error(err)
	}
}

func FuzzToken(f *testing.F) {
	f.Add(honest().said.token())
	f.Add("a.b.c")
	f.Fuzz(func(t *testing.T, token string) {
		c := honest()
		c.cluster.answer = authenticationv1.TokenReviewStatus{}
		c.token = token
		if got, _ := c.run(t); got != nil && got.GetName() != "somebody" {
			t.Errorf("%q is %v", token, got)
		}
	})
}
