package podhooks

import (
	"bytes"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/internal/text"
)

func TestPathsSayWhichClusterAsksWithWhichToken(t *testing.T) {
	url := URL("https://manifold.example:6443/", "east", "secret")
	if url != "https://manifold.example:6443/manifold.dev/pod-webhooks/east/secret" {
		t.Errorf("URL is %s", url)
	}
	if before, token := CutURL(url); before+token != url || token != "secret" {
		t.Errorf("URL is cut into %q and %q", before, token)
	}
	for path, want := range map[string]bool{
		PathPrefix + "east/secret":        true,
		PathPrefix + "east/":              false,
		PathPrefix + "/secret":            false,
		PathPrefix + "east":               false,
		PathPrefix + "east/secret/more":   false,
		"/api/v1" + PathPrefix + "east/s": false,
		"/":                               false,
	} {
		cluster, token, ok := CutPath(path)
		if ok != want || ok && (cluster != "east" || token != "secret") {
			t.Errorf("%s is %q, %q, %t, want %t", path, cluster, token, ok, want)
		}
	}
}

func TestNoTokenIsInWhatAnAPIServerSays(t *testing.T) {
	const say = `failed calling webhook "fail.pods.manifold.dev": failed to call webhook: Post "%s?timeout=20s": dial tcp: connection refused`
	token, err := NewToken()
	if err != nil {
		t.Fatal(err)
	}
	said := strings.Replace(say, "%s", URL("https://manifold.example", "east", token), 1)
	want := strings.Replace(say, "%s", URL("https://manifold.example", "east", "..."), 1)
	if got := text.WithoutTokens(said); got != want || strings.Contains(got, token) {
		t.Errorf("shown is %s, want %s", got, want)
	}
	for _, said := range []string{"", "Created pod: web-1", PathPrefix, PathPrefix + "east/"} {
		if got := text.WithoutTokens(said); got != said {
			t.Errorf("of %q, %q is shown", said, got)
		}
	}
}

func TestATokenIsGoodUntilAnotherHasTakenItsPlace(t *testing.T) {
	now := time.Date(2026, time.November, 23, 12, 0, 0, 0, time.UTC)
	renew := func(kept []byte, token string, at time.Time) []byte {
		t.Helper()
		kept, err := Renewed(kept, token, at)
		if err != nil {
			t.Fatal(err)
		}
		return kept
	}
	kept := renew(nil, "first", now)
	if bytes.Contains(kept, []byte("first")) {
		t.Errorf("the token itself is kept: %s", kept)
	}
	for token, want := range map[string]bool{"first": true, "": false, "firs": false, "first ": false} {
		if Accepts(kept, token, now.AddDate(1, 0, 0)) != want {
			t.Errorf("%q is accepted: %t", token, !want)
		}
	}
	next := renew(kept, "second", now)
	last := renew(next, "third", now.Add(time.Second))
	for name, test := range map[string]struct {
		kept  []byte
		token string
		after time.Duration
		want  bool
	}{
		"the next one at once":           {next, "second", 0, true},
		"the one before for a moment":    {next, "first", handover - time.Second, true},
		"and then no more":               {next, "first", handover + time.Second, false},
		"one that was replaced long ago": {last, "first", time.Second, false},
		"the last":                       {last, "third", 24 * time.Hour, true},
		"none of what cannot be read":    {[]byte("{"), "first", 0, false},
		"none of nothing":                {nil, "", 0, false},
	} {
		if got := Accepts(test.kept, test.token, now.Add(test.after)); got != test.want {
			t.Errorf("%s: accepted %t, want %t", name, got, test.want)
		}
	}
	if a, _ := NewToken(); len(a) < 40 {
		t.Errorf("a token is %q, which can be guessed", a)
	}
}

func TestAChangeIsProvenForOnePodAlone(t *testing.T) {
	key, err := DeriveKey([]byte("secret"))
	if err != nil {
		t.Fatal(err)
	}
	other, err := DeriveKey([]byte("another"))
	if err != nil {
		t.Fatal(err)
	}
	of := Subject{Cluster: "east", Namespace: "shop", Name: "web-1", Workload: "u1"}
	change := []byte(`{"metadata":{"labels":{"a":"b:c"}}}`)
	sealed := key.Seal(of, change)
	if got := key.Open(of, sealed); string(got) != string(change) {
		t.Fatalf("what was sealed is %s", got)
	}
	for name, test := range map[string]struct {
		key    Key
		of     Subject
		sealed string
	}{
		"another cluster":                    {key, Subject{"west", "shop", "web-1", "u1"}, sealed},
		"another namespace":                  {key, Subject{"east", "bank", "web-1", "u1"}, sealed},
		"another pod":                        {key, Subject{"east", "shop", "web-2", "u1"}, sealed},
		"another workload":                   {key, Subject{"east", "shop", "web-1", "u2"}, sealed},
		"names that are the same in a row":   {key, Subject{"easts", "hop", "web-1", "u1"}, sealed},
		"another change":                     {key, of, strings.Replace(sealed, `"a"`, `"x"`, 1)},
		"another proof":                      {key, of, "x" + sealed[1:]},
		"no proof":                           {key, of, string(change)},
		"nothing":                            {key, of, ""},
		"the key of another logical cluster": {other, of, sealed},
		"no key":                             {nil, of, Key(nil).Seal(of, change)},
		"too much":                           {key, of, key.Seal(of, bytes.Repeat([]byte("x"), MaxChange+1))},
	} {
		if got := test.key.Open(test.of, test.sealed); got != nil {
			t.Errorf("with %s it is %s", name, got)
		}
	}
	if _, err := DeriveKey(nil); err == nil {
		t.Error("a key is made of nothing")
	}
}

func TestWhichNamespacesAreAskedAbout(t *testing.T) {
	forPods := []admissionregistrationv1.RuleWithOperations{{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
	}}
	ignored := ptr.To(admissionregistrationv1.Ignore)
	meshed := &metav1.LabelSelector{MatchLabels: map[string]string{"mesh": "on"}}
	bad := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "?"}}}
	for name, test := range map[string]struct {
		webhooks []Webhook
		want     string
	}{
		"without a webhook":                     {nil, ""},
		"with one for all namespaces":           {[]Webhook{{Rules: forPods}}, v1alpha1.PodWebhooksFail},
		"with one that may fail":                {[]Webhook{{Rules: forPods, Failures: ignored}}, v1alpha1.PodWebhooksIgnore},
		"with one that must not among others":   {[]Webhook{{Rules: forPods, Failures: ignored}, {Rules: forPods, Failures: ptr.To(admissionregistrationv1.Fail)}}, v1alpha1.PodWebhooksFail},
		"with one for it":                       {[]Webhook{{Rules: forPods, Within: meshed}}, v1alpha1.PodWebhooksFail},
		"with one for others":                   {[]Webhook{{Rules: forPods, Within: &metav1.LabelSelector{MatchLabels: map[string]string{"mesh": "off"}}}}, ""},
		"with one whose selector nobody reads":  {[]Webhook{{Rules: forPods, Within: bad}}, ""},
		"with one for other kinds":              {[]Webhook{{Rules: nil}}, ""},
		"with one that must not fail elsewhere": {[]Webhook{{Rules: forPods, Failures: ignored}, {Rules: forPods, Within: &metav1.LabelSelector{MatchLabels: map[string]string{"x": "y"}}}}, v1alpha1.PodWebhooksIgnore},
	} {
		if got := LabelFor(map[string]string{"mesh": "on"}, test.webhooks); got != test.want {
			t.Errorf("a namespace %s is labelled %q, want %q", name, got, test.want)
		}
	}
	if of := WebhooksOf(&metav1.Status{}); len(of) > 0 {
		t.Errorf("a status has webhooks %v", of)
	}
}
