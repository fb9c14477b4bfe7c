package access

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
	"github.com/manifold-dev/manifold/e2e/framework/membership"
	"github.com/manifold-dev/manifold/pkg/clusters/bearer"
)

// credential checks the condition about the credential of a cluster.
func credential(status metav1.ConditionStatus, reason, words string) func(*v1alpha1.Cluster) bool {
	return func(c *v1alpha1.Cluster) bool {
		condition := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ClusterCredentialValid)
		return condition != nil && condition.Status == status && condition.Reason == reason && strings.Contains(condition.Message, words)
	}
}

// ended waits until a cluster does not take a token any more. Its API server remembers for some seconds whom it has let in.
func ended(s *framework.Scenario, by *framework.Side) {
	s.Helper()
	s.Logical.Poll("the cluster refuses a token that has ended", func() error {
		r := by.Try("auth", "whoami")
		if r.Code == 0 || !strings.Contains(r.Stderr, "Unauthorized") && !strings.Contains(r.Stderr, "must be logged in") {
			return fmt.Errorf("it answers %s", r)
		}
		return nil
	})
}

// claimsOf reads what the token in a kubeconfig says of itself.
func claimsOf(t *testing.T, file string) bearer.Claims {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	token, _, err := bearer.Split(content)
	if err != nil {
		t.Fatal(err)
	}
	claims, err := bearer.Parse(token)
	if err != nil {
		t.Fatal(err)
	}
	return claims
}

func TestTheSyncerRenewsItsOwnTokenAndMakesNoOther(t *testing.T) {
	framework.Long(t)
	s := suite.Fragile(t)
	membership.Join(s, "north", "--token-lifetime", "24h")
	file := membership.StoredCredential(s, "north")
	claims := claimsOf(t, file)
	if got := claims.Expires.Sub(claims.Issued).Hours(); got != 24 {
		t.Errorf("the stored token lasts %v hours, want 24", got)
	}
	framework.Await(s.Logical, "north", "says what its token ends with", credential(metav1.ConditionTrue, "RenewsItself", claims.Ending()))

	syncer := s.Side("north").As(file).In(v1alpha1.SystemNamespace)
	bound := []string{"--bound-object-kind=Secret", "--bound-object-name=" + claims.Secret, "--bound-object-uid=" + string(claims.SecretUID)}
	syncer.Kubectl(append([]string{"create", "token", claims.Account}, bound...)...)
	expect.Refused(t, syncer.Try("create", "token", claims.Account), "forbidden") // it would end with nothing
	expect.Refused(t, syncer.Try("create", "token", "default"), "forbidden")
	expect.Refused(t, syncer.In("kube-system").Try("create", "token", claims.Account), "forbidden")
	expect.Refused(t, syncer.In("default").Try("create", "token", "default"), "forbidden")
	expect.Refused(t, syncer.Try("delete", "secret", claims.Secret), "forbidden")
}

// Each command ends the credentials from before its own, and never the one that another command has stored meanwhile.
func TestCommandsThatReplaceACredentialAtTheSameTimeLeaveOneThatIsGood(t *testing.T) {
	framework.Long(t)
	s := suite.Fragile(t)
	join := membership.Join(s, "north")
	rotate := []string{"cluster", "rotate", "north", "--cluster-kubeconfig", s.Environment.Clusters["north"].Kubeconfig()}
	var all sync.WaitGroup
	for _, args := range [][]string{join, rotate, join, rotate} {
		all.Go(func() {
			if r := s.Logical.TryCLI(args...); r.Code != 0 {
				t.Error(r)
			}
		})
	}
	all.Wait()
	claims := claimsOf(t, membership.StoredCredential(s, "north"))
	secrets, err := s.Side("north").Kube.CoreV1().Secrets(v1alpha1.SystemNamespace).List(t.Context(), metav1.ListOptions{LabelSelector: membership.Managed})
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for i := range secrets.Items {
		left = append(left, secrets.Items[i].Name)
	}
	if !slices.Equal(left, []string{claims.Secret}) {
		t.Errorf("tokens are good that end with %v, want the stored one alone, with %s", left, claims.Secret)
	}
	framework.Await(s.Logical, "north", "goes on with it", credential(metav1.ConditionTrue, "RenewsItself", claims.Ending()))
}

func TestACredentialIsRotatedWithoutABreak(t *testing.T) {
	s := suite.Fragile(t)
	membership.Join(s, "north")
	below := s.Side("north")
	s.Logical.Apply(manifests.Pinned(manifests.Deployment("web", 2), "north"))
	expect.RolledOut(s, "web", 2)
	pods, before := framework.PodUIDs(s, below, "web"), membership.Get(s, "north")
	old := membership.StoredCredential(s, "north")
	kubeconfig := s.Environment.Clusters["north"].Kubeconfig()
	watching := s.Logical.Start("get", "pods", "--watch")
	watching.AwaitOutput("web-")

	expect.Says(t, s.Logical.CLI("cluster", "rotate", "north", "--cluster-kubeconfig", kubeconfig), "cluster/north has a new credential")
	renewed := membership.StoredCredential(s, "north")
	if was, is := claimsOf(t, old), claimsOf(t, renewed); was.Secret == is.Secret || was.Account != is.Account {
		t.Errorf("the token ended with %s and ends with %s", was.Secret, is.Secret)
	}
	framework.Await(s.Logical, "north", "is reached with the new token", credential(metav1.ConditionTrue, "RenewsItself", claimsOf(t, renewed).Ending()))
	ended(s, below.As(old))
	expect.Says(t, below.As(renewed).Kubectl("auth", "whoami"), claimsOf(t, renewed).Account)
	after := membership.Get(s, "north")
	was, is := meta.FindStatusCondition(before.Status.Conditions, v1alpha1.ClusterReady), meta.FindStatusCondition(after.Status.Conditions, v1alpha1.ClusterReady)
	if is.Status != metav1.ConditionTrue || !is.LastTransitionTime.Equal(&was.LastTransitionTime) {
		t.Errorf("through the rotation the cluster was %v and is %v", was, is)
	}
	s.Logical.Kubectl("scale", "deployment/web", "--replicas=3")
	expect.RolledOut(s, "web", 3)
	if now := framework.PodUIDs(s, below, "web"); len(now) != 3 || !contained(pods, now) {
		t.Errorf("the pods were %v and are %v", pods, now)
	}

	// What a wrong file leads to is not touched.
	expect.Refused(t, s.Logical.TryCLI("cluster", "rotate", "north", "--cluster-kubeconfig", s.Environment.Clusters["east"].Kubeconfig()), "leads to another cluster")
	expect.Refused(t, s.Logical.TryCLI("cluster", "rotate", "north"), "--cluster-kubeconfig is required")
	expect.Refused(t, s.Logical.TryCLI("cluster", "rotate", "north", "--cluster-kubeconfig", kubeconfig, "--token-lifetime=1m"), "--token-lifetime must be at least 10m0s")
}

// contained reports whether all of some values are among others.
func contained[T comparable](some, others []T) bool {
	seen := map[T]bool{}
	for _, o := range others {
		seen[o] = true
	}
	for _, o := range some {
		if !seen[o] {
			return false
		}
	}
	return true
}

func TestARevokedCredentialIsWorthNothingUntilTheClusterJoinsAgain(t *testing.T) {
	s := suite.Fragile(t)
	args := membership.Join(s, "north")
	below := s.Side("north")
	s.Logical.Apply(manifests.Pinned(manifests.Deployment("web", 2), "north"))
	expect.RolledOut(s, "web", 2)
	pods, old := framework.PodUIDs(s, below, "web"), membership.StoredCredential(s, "north")
	kubeconfig := s.Environment.Clusters["north"].Kubeconfig()

	expect.Says(t, s.Logical.CLI("cluster", "revoke", "north", "--cluster-kubeconfig", kubeconfig), "cluster/north no longer has a credential")
	ended(s, below.As(old))
	framework.Await(s.Logical, "north", "says that its credential was revoked", func(c *v1alpha1.Cluster) bool {
		ready := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ClusterReady)
		return ready.Status == metav1.ConditionFalse && ready.Reason == "InvalidCredential" && strings.Contains(ready.Message, "has been revoked") &&
			credential(metav1.ConditionFalse, "InvalidCredential", "has been revoked")(c)
	})
	expect.Refused(t, s.Logical.TryCLI("cluster", "rotate", "north", "--cluster-kubeconfig", kubeconfig), "manifold cluster join north")
	s.Logical.Kubectl("scale", "deployment/web", "--replicas=3")
	if now := framework.PodUIDs(s, below, "web"); !contained(pods, now) || len(now) != len(pods) {
		t.Errorf("the pods were %v and are %v, want them untouched", pods, now)
	}

	expect.Says(t, s.Logical.CLI(args...), "already joined")
	expect.RolledOut(s, "web", 3)
	if now := framework.PodUIDs(s, below, "web"); !contained(pods, now) {
		t.Errorf("the pods were %v and are %v", pods, now)
	}
	ended(s, below.As(old)) // for good
}

func TestATokenThatNeverEndsIsToldAndReplaced(t *testing.T) {
	framework.Long(t)
	s := suite.Fragile(t)
	args := membership.Join(s, "north")
	below := s.Side("north").In(v1alpha1.SystemNamespace)
	account := claimsOf(t, membership.StoredCredential(s, "north")).Account

	// This is what an earlier version made.
	below.KubectlInput(fmt.Sprintf("apiVersion: v1\nkind: Secret\ntype: kubernetes.io/service-account-token\nmetadata:\n  name: %[1]s\n"+
		"  labels: {app.kubernetes.io/managed-by: manifold}\n  annotations: {kubernetes.io/service-account.name: %[1]s}\n", account), "create", "-f", "-")
	secret := framework.Await(below, account, "has a token", func(secret *corev1.Secret) bool { return len(secret.Data[corev1.ServiceAccountTokenKey]) > 0 })
	config, err := os.ReadFile(membership.StoredCredential(s, "north"))
	if err != nil {
		t.Fatal(err)
	}
	token, _, err := bearer.Split(config)
	if err != nil {
		t.Fatal(err)
	}
	if config, err = bearer.Replace(config, token, string(secret.Data[corev1.ServiceAccountTokenKey])); err != nil {
		t.Fatal(err)
	}
	above := s.Logical.In(v1alpha1.SystemNamespace)
	credentialSecret := storedSecret(s, above)
	credentialSecret.Data["kubeconfig"] = config
	if _, err := above.Kube.CoreV1().Secrets(v1alpha1.SystemNamespace).Update(t.Context(), credentialSecret, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	framework.Await(s.Logical, "north", "says that its token never expires", credential(metav1.ConditionTrue, "NotRenewed", "never expires"))
	old := membership.StoredCredential(s, "north")

	expect.Says(t, s.Logical.CLI(args...), "already joined")
	framework.Await(s.Logical, "north", "has a token that ends", credential(metav1.ConditionTrue, "RenewsItself", ""))
	ended(s, below.As(old))
	if _, err := below.Kube.CoreV1().Secrets(v1alpha1.SystemNamespace).Get(t.Context(), account, metav1.GetOptions{}); err == nil {
		t.Error("the Secret with the token that never ends is left")
	}
}

// storedSecret reads the Secret with the credential of the cluster "north".
func storedSecret(s *framework.Scenario, above *framework.Side) *corev1.Secret {
	s.Helper()
	secret, err := above.Kube.CoreV1().Secrets(v1alpha1.SystemNamespace).Get(s.Context(), "cluster-north", metav1.GetOptions{})
	if err != nil {
		s.Fatal(errors.Join(errors.New("read the stored credential"), err))
	}
	return secret
}
