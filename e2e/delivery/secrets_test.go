package delivery

import (
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/pkg/delivery/source/git/gittest"
)

// listener is a server with TLS, without which no credentials are sent, that counts who calls, and who does so with the word that a Secret holds.
type listener struct {
	*httptest.Server
	calls, words atomic.Int32
}

func newListener(t *testing.T, word string) *listener {
	l := &listener{}
	l.Server = httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		l.calls.Add(1)
		if r.Header.Get("Authorization") == "Bearer "+word {
			l.words.Add(1)
		}
	}))
	t.Cleanup(l.Close)
	return l
}

// applicants are Mallory, who may write Applications and Releases and read no Secrets, and a ServiceAccount that may read one besides.
const applicants = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: applier}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: applicant}
rules: [{apiGroups: [delivery.manifold.dev], resources: [applications, releases], verbs: ["*"]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: applicant}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: applicant}
subjects: [{kind: User, apiGroup: rbac.authorization.k8s.io, name: mallory}, {kind: ServiceAccount, name: applier}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader}
rules: [{apiGroups: [""], resources: [secrets], resourceNames: [crown], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects: [{kind: ServiceAccount, name: applier}]
`

// measuredApp is an application whose pipeline has an analysis by these metrics or requests alone, as YAML.
func measuredApp(by string, more ...string) string {
	return stagedApp("web:1", []string{"{name: ANALYSIS, id: measure, with: {duration: 2s, " + by + "}}", "{name: K8S_SYNC, id: sync}"},
		append(more, "  planner: {alwaysUsePipeline: true}")...)
}

// Whoever may write Applications has the server call whom he likes, but with no word of a Secret that he may not read: not by a field, not by another address for
// a Secret that is named already, and not by a file in a repository.
func TestNobodyHasASecretSentThatHeMayNotRead(t *testing.T) {
	s := suite.Scenario(t)
	const word = "j3wel"
	evil, good := newListener(t, word), newListener(t, word)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: good.Certificate().Raw}) // both have the same
	s.Logical.Kubectl("create", "secret", "generic", "crown", "--from-literal=token="+word, "--from-literal=username=king", "--from-literal=password="+word,
		"--from-literal=hmac-key="+word, "--from-literal=url="+evil.URL, "--from-literal=ca.crt="+string(authority))
	s.Logical.Apply(applicants)
	mallory, applier := somebody{s, []string{"--as=mallory"}}, somebody{s, []string{"--as=system:serviceaccount:" + s.Namespace + ":applier"}}
	s.Logical.Poll("both have their roles", func() error {
		return errors.Join(framework.Failure(mallory.may("create applications")), framework.Failure(applier.try("auth", "can-i", "get", "secrets/crown")))
	})

	const right = `: you need the right to "get" secrets "crown" in namespace "`
	fromGit := func(more string) string {
		return strings.Replace(application, "url: https://git.example/shop.git", "url: '"+evil.URL+"/shop.git', "+more, 1)
	}
	metric := func(of *listener) string {
		return fmt.Sprintf("metrics: [{provider: %q, query: up, expected: {max: 1}, interval: 1s, secretRef: {name: crown}}]", of.URL)
	}
	request := func(of *listener) string {
		return fmt.Sprintf("https: [{url: %q, expectedCode: 200, interval: 1s, secretRef: {name: crown}}]", of.URL)
	}
	for _, test := range []struct{ field, manifest string }{
		{"spec.source.git.secretRef.name", fromGit("secretRef: {name: crown}")},
		{"spec.source.git.webhook.secretRef.name", fromGit("webhook: {secretRef: {name: crown}}")},
		{"spec.source.git.pipecd.analysisSecrets[prom]", fromGit("pipecd: {analysisProviders: {prom: '" + evil.URL + "'}, analysisSecrets: {prom: crown}}")},
		{"spec.notifications[0].secretRef.name", inlineApp("blue", "  notifications: [{name: ops, secretRef: {name: crown}}]")},
		{"spec.pipeline.stages[0].with.metrics[0].secretRef.name", measuredApp(metric(evil))},
		{"spec.pipeline.stages[0].with.https[0].secretRef.name", measuredApp(request(evil))},
		{"spec.pipeline.stages[0].with.https[0].secretRef.name", measuredApp(request(good))},
	} {
		expect.Refused(t, mallory.applies(test.manifest), "forbidden", test.field+right+s.Namespace)
	}
	expect.Refused(t, s.Logical.TryInput(measuredApp(request(evil)), "create", "--dry-run=server", "-f", "-", "--as=mallory"), right)

	// What somebody else has had sent he may stop, and not lead to himself.
	s.Logical.Apply(measuredApp(request(good), "  trigger: {mode: Manual}"))
	const address = `[{"op":"replace","path":"/spec/pipeline/stages/0/with/https/0/url","value":%q}]`
	expect.Refused(t, mallory.try("patch", "application", "web", "--type=json", "-p", fmt.Sprintf(address, evil.URL)), right)
	told(mallory.try("patch", "application", "web", "--type=merge", "-p", `{"spec":{"suspend":true}}`))(t)
	s.Logical.Kubectl("delete", "application", "web")

	// Nor does he by what a repository says.
	r := gittest.New(t, "shop")
	file := strings.Replace(pipecdFile, "      - name: WAIT_APPROVAL\n", "      - {name: ANALYSIS, with: {duration: 2s, "+metric(evil)+"}}\n      - name: WAIT_APPROVAL\n", 1)
	r.Commit("the first", microservice(file, "1"))
	told(mallory.applies(fromRepository(r.Serve(), "branch: main")))(t)
	awaitTold(s, v1alpha1.ApplicationRendered, `metrics[0].secretRef.name: Forbidden: the Application does not say itself that Secret "crown" is for queries to "`+evil.URL)
	s.Logical.Kubectl("delete", "application", "web")

	// Who may read it has it sent, such as a controller that applies what a repository has.
	told(applier.applies(measuredApp(request(good))))(t)
	s.Logical.Poll("the word is sent", func() error {
		if good.words.Load() == 0 {
			return fmt.Errorf("there were %d calls without it", good.calls.Load())
		}
		return nil
	})
	if calls := evil.calls.Load(); calls != 0 {
		t.Errorf("the listener was called %d times, %d of them with the word", calls, evil.words.Load())
	}
}
