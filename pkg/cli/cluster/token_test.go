package cluster

import (
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	manifoldv1alpha1 "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/cli/cluster/physical"
	"github.com/manifold-dev/manifold/pkg/clusters/bearer"
)

// credentialOf returns what is stored of a cluster.
func credentialOf(t *testing.T, l *logical) map[string][]byte {
	t.Helper()
	secret, err := l.client.CoreV1().Secrets(manifoldv1alpha1.SystemNamespace).Get(t.Context(), credentialName("east"), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return secret.Data
}

const storedKubeconfig = `apiVersion: v1
kind: Config
current-context: east
clusters: [{name: east, cluster: {server: "https://from-the-server:6443"}}]
users: [{name: syncer, user: {token: old}}]
contexts: [{name: east, context: {cluster: east, user: syncer}}]
`

func TestTheStoredCredentialFromJoinToRevocationAndBack(t *testing.T) {
	l := &logical{client: fake.NewClientset()}
	var undo physical.Undo
	stored := func() *corev1.Secret {
		t.Helper()
		secret, err := l.credential(t.Context(), "east")
		if err != nil {
			t.Fatal(err)
		}
		return secret
	}
	join := func() error {
		return l.storeCredential(t.Context(), credentialName("east"), stored(), map[string][]byte{kubeconfigKey: []byte(storedKubeconfig)}, &undo)
	}
	if err := join(); err != nil {
		t.Fatal(err)
	}
	if err := l.storeCredential(t.Context(), credentialName("east"), nil, nil, &undo); err == nil || !strings.Contains(err.Error(), "another command") {
		t.Errorf("a credential that another command has stored meanwhile was replaced: %v", err)
	}
	if err := l.replaceToken(t.Context(), "east", stored(), "new"); err != nil {
		t.Fatal(err)
	}
	token, rest, err := bearer.Split(credentialOf(t, l)[kubeconfigKey])
	if err != nil || token != "new" || !strings.Contains(string(rest), "https://from-the-server:6443") {
		t.Errorf("after a rotation the token is %q, %v, and the rest:\n%s", token, err, rest)
	}

	if err := l.forget(t.Context(), "east"); err != nil {
		t.Fatal(err)
	}
	if got := slices.Sorted(maps.Keys(credentialOf(t, l))); !slices.Equal(got, []string{revokedKey}) {
		t.Errorf("after a revocation there are %v, want %s alone", got, revokedKey)
	}
	if err := l.replaceToken(t.Context(), "east", stored(), "newer"); err == nil || !strings.Contains(err.Error(), "manifold cluster join east") {
		t.Errorf("what is revoked was rotated: %v", err)
	}
	if err := join(); err != nil {
		t.Fatal(err)
	}
	if got := slices.Sorted(maps.Keys(credentialOf(t, l))); !slices.Equal(got, []string{kubeconfigKey}) {
		t.Errorf("after it joined again there are %v, want %s alone", got, kubeconfigKey)
	}
	if err := l.forget(t.Context(), "nobody"); err != nil {
		t.Errorf("a credential that is gone already: %v", err)
	}
}

func TestATokenIsTakenUpOnceTheClusterIsReachedWithIt(t *testing.T) {
	token := bearer.Claims{Namespace: manifoldv1alpha1.SystemNamespace, Account: "syncer", Secret: "syncer-new"}
	for name, test := range map[string]struct {
		valid  metav1.ConditionStatus
		secret string
		want   bool
	}{
		"it is reached with it":                   {metav1.ConditionTrue, "manifold-system/syncer-new", true},
		"it is still reached with the last one":   {metav1.ConditionTrue, "manifold-system/syncer-old", false},
		"nobody has tried":                        {"", "", false},
		"the cluster refuses it":                  {metav1.ConditionFalse, "manifold-system/syncer-new", false},
		"a Secret of that name elsewhere is none": {metav1.ConditionTrue, "default/syncer-new", false},
	} {
		t.Run(name, func(t *testing.T) {
			c := &manifoldv1alpha1.Cluster{Status: manifoldv1alpha1.ClusterStatus{TokenSecret: test.secret}}
			if test.valid != "" {
				c.Status.Conditions = []metav1.Condition{{Type: manifoldv1alpha1.ClusterCredentialValid, Status: test.valid}}
			}
			if got := reachedWith(c, token); got != test.want {
				t.Errorf("taken up: %t, want %t", got, test.want)
			}
		})
	}
}
