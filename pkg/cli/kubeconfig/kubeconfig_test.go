package kubeconfig

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/manifold-dev/manifold/pkg/delivery/plugins/targets"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func command(t *testing.T) (*Options, func() (out, errOut string)) {
	t.Helper()
	streams, _, out, errOut := genericiooptions.NewTestIOStreams()
	client := fake.NewClientset()
	client.PrependReactor("create", "serviceaccounts", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, &authenticationv1.TokenRequest{Status: authenticationv1.TokenRequestStatus{
			Token: "a token", ExpirationTimestamp: metav1.NewTime(noon.Add(time.Hour)),
		}}, nil
	})
	o := &Options{IOStreams: streams, client: client, clock: clocktesting.NewFakePassiveClock(noon), Access: targets.Access{
		Cluster: "east", Namespace: "shop", ServiceAccount: "deployer", Duration: time.Hour,
	}}
	if err := o.reach(&rest.Config{Host: "https://manifold.example:6443", TLSClientConfig: rest.TLSClientConfig{CAData: []byte("an authority")}}); err != nil {
		t.Fatal(err)
	}
	return o, func() (string, string) { return out.String(), errOut.String() }
}

func TestTheKubeconfigGoesToStandardOutputAlone(t *testing.T) {
	o, printed := command(t)
	if err := o.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	out, errOut := printed()
	if !strings.Contains(out, "server: https://manifold.example:6443/clusters/east\n") || !strings.Contains(out, "token: a token\n") || errOut != "" {
		t.Errorf("printed %s and on standard error %q", out, errOut)
	}
}

func TestAFileIsForItsOwnerAloneAndReplacedAsAWhole(t *testing.T) {
	o, printed := command(t)
	o.File = filepath.Join(t.TempDir(), "east.kubeconfig")
	if err := os.WriteFile(o.File, []byte("what was there before, and longer than what comes"+strings.Repeat(".", 4096)), 0o644); err != nil { //nolint:gosec // on purpose
		t.Fatal(err)
	}
	if err := o.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(o.File)
	if err != nil || !strings.Contains(string(content), "/clusters/east\n") || strings.Contains(string(content), "before") {
		t.Errorf("it holds %s, %v", content, err)
	}
	if info, err := os.Stat(o.File); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("others may read it: %v, %v", info.Mode(), err)
	}
	if out, errOut := printed(); out != "" || !strings.Contains(errOut, "is good until 2026-05-01T13:00:00Z") {
		t.Errorf("printed %q and on standard error %q", out, errOut)
	}
	left, err := os.ReadDir(filepath.Dir(o.File))
	if err != nil || len(left) != 1 {
		t.Errorf("left %v, %v", left, err)
	}
}

func TestATokenIsNotSentToWhoeverAnswers(t *testing.T) {
	o, _ := command(t)
	err := o.reach(&rest.Config{Host: "https://manifold.example", TLSClientConfig: rest.TLSClientConfig{Insecure: true}})
	if err == nil || !strings.Contains(err.Error(), "insecure-skip-tls-verify") {
		t.Errorf("error %v", err)
	}
}
